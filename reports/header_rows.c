#include "reports/header_rows.h"

#include <string.h>

#include "reports/lookup.h"

const kkt_entry *kkt_header_standing(const kkt_view *view, const char *kernel) {
    const kkt_entry *standing = NULL;
    for (size_t i = 0; i < view->entry_count && standing == NULL; i++)
        if (strcmp(view->entries[i].kernel, kernel) == 0)
            standing = kkt_view_standing(view, kernel, view->entries[i].problem, 0);
    return standing == NULL || standing->model_only ? NULL : standing;
}

static double expected_us(const kkt_entry *entry) {
    return kkt_entry_measured(entry) ? entry->time_us : entry->predicted_us;
}

static bool is_faster(const kkt_entry *other, const kkt_entry *row) {
    if (kkt_entry_measured(row) || row->objective != KKT_OBJECTIVE_TIME)
        return kkt_entry_known_faster(other, row);
    return expected_us(other) * KKT_LOOKUP_STYLE < row->predicted_us;
}

/* Whether two entries are of one kernel, problem and chunk size. */
static bool alike(const kkt_entry *a, const kkt_entry *b) {
    return a->chunk == b->chunk && kkt_entry_compare_problem(a, b) == 0;
}

const kkt_entry *kkt_header_faster(const kkt_view *view, const kkt_entry *row) {
    const kkt_entry *best = NULL;
    for (size_t i = 0; i < view->entry_count; i++) {
        const kkt_entry *other = &view->entries[i];
        if (alike(other, row) && strcmp(other->style, row->style) != 0 && !other->model_only &&
            is_faster(other, row) && (best == NULL || kkt_entry_compare(other, best) < 0))
            best = other;
    }
    return best;
}

size_t kkt_header_left_out(const kkt_view *view, const char *kernel, const char *style) {
    const kkt_entry *standing = kkt_header_standing(view, kernel);
    size_t count = 0;
    for (size_t i = 0; standing != NULL && i < view->entry_count; i++) {
        const kkt_entry *entry = &view->entries[i], *row = NULL, *best = entry;
        if (strcmp(entry->kernel, kernel) != 0 || strcmp(entry->style, style) != 0 ||
            strcmp(style, standing->style) == 0)
            continue;
        for (size_t j = 0; j < view->entry_count; j++) {
            const kkt_entry *other = &view->entries[j];
            if (!alike(other, entry) || other->model_only)
                continue;
            if (strcmp(other->style, standing->style) == 0)
                row = other;
            else if (kkt_entry_compare(other, best) < 0)
                best = other;
        }
        count += row != NULL ? kkt_header_faster(view, row) == entry
                             : best == entry && kkt_entry_measured(entry);
    }
    return count;
}
