/* Results that are the best in some trade between time, energy and error. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reports/view.h"

kkt_status kkt_view_make(kkt_db *db, const kkt_freshness *freshness, const kkt_arch *arch,
                         const kkt_device *device, const char *kernel, kkt_arena *arena,
                         kkt_view *out, kkt_error *err) {
    return kkt_view_make_by(db, freshness, arch, device, kernel, KKT_OBJECTIVE_TIME, arena, out,
                            err);
}

static double known(double value) {
    return isnan(value) ? (double)INFINITY : value;
}

/* Nowhere worse and somewhere better; or equal, and first in the order of results. */
static bool beats(const kkt_entry *a, const kkt_entry *b) {
    double energy_a = known(a->energy_mj), energy_b = known(b->energy_mj);
    double error_a = known(a->rel_fro), error_b = known(b->rel_fro);
    if (a->time_us > b->time_us || energy_a > energy_b || error_a > error_b)
        return false;
    bool better = a->time_us < b->time_us || energy_a < energy_b || error_a < error_b;
    return better || kkt_entry_compare(a, b) < 0;
}

static int compare_places(const void *left, const void *right) {
    const kkt_entry *a = *(const kkt_entry *const *)left, *b = *(const kkt_entry *const *)right;
    int order = kkt_entry_compare_problem(a, b);
    if (order == 0)
        order = (a->time_us > b->time_us) - (a->time_us < b->time_us);
    return order != 0 ? order : kkt_entry_compare(a, b);
}

/* Of rows sorted by time only the ones before can beat a row, but for equal times; so the front of
 * a problem is walked once, each row against the front so far. */
static size_t keep_front(const kkt_entry **rows, size_t count) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        bool beaten = false;
        for (size_t j = 0; j < kept && !beaten; j++)
            beaten = beats(rows[j], rows[i]);
        if (beaten)
            continue;
        size_t stay = 0;
        for (size_t j = 0; j < kept; j++)
            if (!beats(rows[i], rows[j]))
                rows[stay++] = rows[j];
        rows[stay] = rows[i];
        kept = stay + 1;
    }
    return kept;
}

void kkt_view_add_pareto(kkt_view *view, kkt_arena *arena) {
    const kkt_entry **rows = kkt_arena_array(arena, view->row_count + 1, sizeof(kkt_entry *));
    size_t count = 0;
    for (size_t i = 0; i < view->row_count; i++)
        if (kkt_entry_rank(&view->rows[i]) == KKT_RANK_MEASURED)
            rows[count++] = &view->rows[i];
    if (count > 0)
        qsort(rows, count, sizeof(kkt_entry *), compare_places);
    size_t kept = 0;
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i; end < count && strcmp(rows[end]->kernel, rows[i]->kernel) == 0 &&
                      strcmp(rows[end]->problem, rows[i]->problem) == 0;)
            end++;
        size_t front = keep_front(&rows[i], end - i);
        memmove(&rows[kept], &rows[i], front * sizeof(kkt_entry *));
        kept += front;
    }
    view->pareto = rows;
    view->pareto_count = kept;
}
