/* What was rejected or failed, in groups of like causes. */
#include "reports/view_rejects.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* "heads_per_block 4 does not divide 2" -> "heads_per_block # does not divide #". */
static char *without_numbers(kkt_arena *arena, const char *reason) {
    char *out = kkt_arena_strdup(arena, reason), *to = out;
    for (const char *from = reason; *from != '\0';) {
        if (*from >= '0' && *from <= '9') {
            from += strspn(from, "0123456789.,");
            *to++ = '#';
        } else {
            *to++ = *from++;
        }
    }
    *to = '\0';
    return out;
}

/* Takes " (N configurations)" off the end of a reason; N, or 1 where it does not say so. */
static int64_t take_count(char *reason) {
    static const char tail[] = " configurations)";
    size_t length = strlen(reason), end = sizeof tail - 1;
    int64_t count = 1;
    char *open = strrchr(reason, '(');
    if (open == NULL || open == reason || open[-1] != ' ' || length < end ||
        strcmp(reason + length - end, tail) != 0)
        return 1;
    reason[length - end] = '\0';
    if (!kkt_parse_i64(open + 1, 1, INT64_MAX / 2, &count)) {
        reason[length - end] = ' ';
        return 1;
    }
    open[-1] = '\0';
    return count;
}

static bool same_text(const char *a, const char *b) {
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

void kkt_view_count_reject(kkt_view *view, kkt_reject_keys *keys_of, kkt_arena *arena,
                           const kkt_result *result, const char *outcome) {
    const char *reason =
        result->run.reason != NULL && result->has_run ? result->run.reason : result->reason;
    if (reason == NULL)
        reason = result->has_prediction && result->prediction.reason != NULL
                     ? result->prediction.reason
                     : "no reason stored";
    char *text = kkt_arena_strdup(arena, reason);
    int64_t count = take_count(text);
    char *key = without_numbers(arena, text);
    /* Rows come sorted, so that the group is most often among the last ones. */
    for (size_t i = view->reject_count; i-- > 0;) {
        kkt_reject_group *group = &view->rejects[i];
        if (strcmp(group->outcome, outcome) == 0 && same_text(keys_of->keys[i], key) &&
            strcmp(group->kernel, result->id.kernel) == 0 &&
            strcmp(group->style, result->id.style) == 0) {
            group->count += count;
            return;
        }
    }
    if (view->reject_count == keys_of->capacity) {
        size_t capacity = keys_of->capacity == 0 ? 64 : 2 * keys_of->capacity;
        kkt_reject_group *groups = kkt_arena_array(arena, capacity, sizeof *groups);
        const char **keys = kkt_arena_array(arena, capacity, sizeof *keys);
        if (view->reject_count > 0) {
            memcpy(groups, view->rejects, view->reject_count * sizeof *groups);
            memcpy(keys, keys_of->keys, view->reject_count * sizeof *keys);
        }
        view->rejects = groups;
        keys_of->keys = keys;
        keys_of->capacity = capacity;
    }
    keys_of->keys[view->reject_count] = key;
    view->rejects[view->reject_count++] = (kkt_reject_group){
        .kernel = kkt_arena_strdup(arena, result->id.kernel),
        .style = kkt_arena_strdup(arena, result->id.style),
        .problem = kkt_arena_strdup(arena, result->id.problem),
        .outcome = kkt_arena_strdup(arena, outcome),
        .reason = text,
        .count = count,
        .example = kkt_arena_strdup(arena, result->id.config),
    };
}

static int compare_rejects(const void *left, const void *right) {
    const kkt_reject_group *a = left, *b = right;
    int order = strcmp(a->kernel, b->kernel);
    if (order == 0)
        order = strcmp(a->style, b->style);
    const char *rejected = kkt_outcome_name(KKT_OUTCOME_REJECTED);
    if (order == 0)
        order = (strcmp(a->outcome, rejected) == 0) - (strcmp(b->outcome, rejected) == 0);
    if (order == 0)
        order = strcmp(a->outcome, b->outcome);
    if (order == 0)
        order = (a->count < b->count) - (a->count > b->count);
    return order != 0 ? order : strcmp(a->reason, b->reason);
}

void kkt_view_sort_rejects(kkt_view *view) {
    if (view->reject_count > 0)
        qsort(view->rejects, view->reject_count, sizeof *view->rejects, compare_rejects);
}
