#include "reports/contrast.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "reports/canonical.h"

/* A row under what it must share with its partner. */
typedef struct keyed {
    const char *key;
    const kkt_entry *row;
} keyed;

/* The problem, and the configuration without `param`. */
static const char *key_of(const kkt_entry *row, const char *param, kkt_arena *arena) {
    const char *at = row->config;
    size_t length = strlen(param);
    kkt_text key = {0};
    kkt_text_printf(&key, "%s;", row->problem);
    while (*at != '\0') {
        size_t piece = strcspn(at, ",");
        if (strncmp(at, param, length) != 0 || at[length] != '=') {
            kkt_text_add_bytes(&key, at, piece);
            kkt_text_add(&key, ",");
        }
        at += piece + (at[piece] == ',');
    }
    const char *copy = kkt_arena_strdup(arena, kkt_text_get(&key));
    kkt_text_free(&key);
    return copy;
}

static int compare_keys(const void *a, const void *b) {
    return strcmp(((const keyed *)a)->key, ((const keyed *)b)->key);
}

static int compare_gains(const void *a, const void *b) {
    const kkt_contrast *x = a, *y = b;
    int order = (x->gain < y->gain) - (x->gain > y->gain);
    if (order == 0)
        order = strcmp(x->with->problem, y->with->problem);
    return order != 0 ? order : strcmp(x->with->config, y->with->config);
}

static keyed *collect(const kkt_view *view, const kkt_contrast_query *query, const char *value,
                      kkt_arena *arena, size_t *count) {
    keyed *list = kkt_arena_array(arena, view->row_count + 1, sizeof *list);
    *count = 0;
    for (size_t i = 0; i < view->row_count; i++) {
        const kkt_entry *row = &view->rows[i];
        if (row->chunk == query->chunk && kkt_entry_measured(row) && !row->noisy &&
            strcmp(row->kernel, query->kernel) == 0 && strcmp(row->style, query->style) == 0 &&
            (query->problem == NULL || strcmp(row->problem, query->problem) == 0) &&
            kkt_pair_is(row->config, query->param, value))
            list[(*count)++] = (keyed){key_of(row, query->param, arena), row};
    }
    qsort(list, *count, sizeof *list, compare_keys);
    return list;
}

static bool same_text(const char *a, const char *b) {
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool comparable(const kkt_entry *a, const kkt_entry *b) {
    return same_text(a->gpu, b->gpu) && same_text(a->driver, b->driver) &&
           same_text(a->kernel_hash, b->kernel_hash) &&
           (a->stale_reason == NULL) == (b->stale_reason == NULL);
}

static kkt_contrast contrast_of(const kkt_entry *with, const kkt_entry *without) {
    double drift = with->in_turns && without->in_turns ? 0 : KKT_TIMED_APART_DRIFT;
    double with_low = fmin(with->low_us, with->time_us * (1 - drift));
    double with_high = fmax(with->high_us, with->time_us * (1 + drift));
    double without_low = fmin(without->low_us, without->time_us * (1 - drift));
    double without_high = fmax(without->high_us, without->time_us * (1 + drift));
    return (kkt_contrast){.with = with,
                          .without = without,
                          .gain = without->time_us / with->time_us - 1.0,
                          .noise = with_low <= without_high && without_low <= with_high};
}

void kkt_contrasts_find(const kkt_view *view, const kkt_contrast_query *query, kkt_arena *arena,
                        kkt_contrasts *out) {
    size_t with_count, without_count;
    keyed *with = collect(view, query, query->with, arena, &with_count);
    keyed *without = collect(view, query, query->without, arena, &without_count);
    *out = (kkt_contrasts){.pairs = kkt_arena_array(arena, with_count + 1, sizeof *out->pairs)};
    for (size_t i = 0, j = 0; i < with_count && j < without_count;) {
        int order = strcmp(with[i].key, without[j].key);
        if (order == 0 && comparable(with[i].row, without[j].row)) {
            kkt_contrast pair = contrast_of(with[i].row, without[j].row);
            out->noise += pair.noise;
            out->faster += !pair.noise && pair.gain > 0;
            out->slower += !pair.noise && pair.gain <= 0;
            out->pairs[out->count++] = pair;
        }
        i += order <= 0;
        j += order >= 0;
    }
    qsort(out->pairs, out->count, sizeof *out->pairs, compare_gains);
}

double kkt_contrasts_median(const kkt_contrasts *contrasts) {
    size_t n = contrasts->count;
    if (n == 0)
        return (double)NAN;
    return (contrasts->pairs[(n - 1) / 2].gain + contrasts->pairs[n / 2].gain) / 2;
}

const char *kkt_contrasts_finding(const kkt_contrasts *contrasts, kkt_arena *arena) {
    const struct {
        const char *word;
        size_t count;
    } findings[] = {{"faster", contrasts->faster},
                    {"slower", contrasts->slower},
                    {"within noise", contrasts->noise}};
    kkt_text text = {0};
    if (contrasts->count == 0)
        return "open: no measured pair differs in this alone";
    for (size_t i = 0; i < sizeof findings / sizeof findings[0]; i++) {
        if (findings[i].count == contrasts->count)
            return findings[i].word;
        if (findings[i].count > 0)
            kkt_text_printf(&text, "%s%s in %zu", text.length > 0 ? ", " : "", findings[i].word,
                            findings[i].count);
    }
    const char *copy = kkt_arena_strdup(arena, kkt_text_get(&text));
    kkt_text_free(&text);
    return copy;
}
