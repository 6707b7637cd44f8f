/* Which chunk size stands for a kernel and problem: that of the fastest pipeline that uses it. */
#include <math.h>
#include <string.h>

#include "reports/curve.h"

/* Whether a pipeline that has chosen runs an entry's kernel on this problem. */
static bool uses(const kkt_curve *curve, const kkt_entry *entry) {
    kkt_pipeline_kernels p;
    if (curve->best == NULL || !kkt_pipeline_has(curve->pipeline, entry->kernel) ||
        !kkt_pipeline_open(curve->pipeline, &p, NULL))
        return false;
    for (size_t i = 0; i < p.count; i++) {
        kkt_values own, whole;
        const kkt_param_table *table = &p.members[i]->problem;
        if (strcmp(p.members[i]->name, entry->kernel) != 0)
            continue;
        kkt_params_defaults(table, &own);
        kkt_params_defaults(&p.whole->problem, &whole);
        if (kkt_params_parse(table, entry->problem, &own, NULL, NULL) == KKT_OK &&
            kkt_params_parse(&p.whole->problem, curve->problem, &whole, NULL, NULL) == KKT_OK &&
            kkt_pipeline_serves(&p, i, &own, &whole))
            return true;
    }
    return false;
}

/* Whether a pipeline's best chunk size takes less than another's: totals are compared where both
 * chose by them, else the sums of the members of both; NaN is never less. */
static bool faster(const kkt_curve *a, const kkt_curve *b) {
    bool sums = a->by_members || b->by_members;
    double left = sums ? a->best->members_us : a->best->time_us;
    double right = sums ? b->best->members_us : b->best->time_us;
    return left < right || (isnan(right) && isfinite(left));
}

void kkt_view_add_standing(kkt_view *view, kkt_arena *arena) {
    kkt_standing *all = kkt_arena_array(arena, view->entry_count + 1, sizeof *all);
    view->standing = all;
    for (size_t i = 0; i < view->entry_count; i++) {
        const kkt_entry *entry = &view->entries[i];
        if (entry->chunk == 0 || kkt_view_chunk(view, entry->kernel, entry->problem)->kernel)
            continue;
        kkt_standing *standing = &all[view->standing_count++];
        *standing = (kkt_standing){entry->kernel, entry->problem, KKT_DEFAULT_CHUNK, NULL};
        for (size_t c = 0; c < view->curve_count; c++) {
            const kkt_curve *curve = &view->curves[c];
            const kkt_curve *before = standing->curve;
            if (uses(curve, entry) && (before == NULL || faster(curve, before))) {
                standing->curve = curve;
                standing->chunk = curve->best->chunk;
            }
        }
    }
}

const kkt_standing *kkt_view_chunk(const kkt_view *view, const char *kernel, const char *problem) {
    static const kkt_standing none = {.chunk = KKT_DEFAULT_CHUNK};
    for (size_t i = 0; i < view->standing_count; i++)
        if (strcmp(view->standing[i].kernel, kernel) == 0 &&
            strcmp(view->standing[i].problem, problem) == 0)
            return &view->standing[i];
    return &none;
}
