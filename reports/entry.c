/* Comparing entries, and the one that stands for a kernel and problem. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reports/curve.h"

/* Two readings of the same launch's energy differ by so much. */
#define ENERGY_SHARE 0.02

bool kkt_entry_measured(const kkt_entry *entry) {
    return isfinite(entry->time_us) != 0;
}

double kkt_figure_round(double value) {
    char text[32];
    if (!isfinite(value))
        return value;
    snprintf(text, sizeof text, "%.7g", value);
    return strtod(text, NULL);
}

const char *kkt_entry_provenance(const kkt_entry *entry) {
    return entry->stale_reason != NULL ? "stale" : kkt_provenance_name(entry->provenance);
}

bool kkt_entry_made_up(const kkt_entry *entry) {
    const kkt_run_record run = {.gpu = entry->gpu};
    return kkt_run_made_up(&run);
}

const char *kkt_entry_shown(const kkt_entry *entry) {
    return kkt_entry_made_up(entry) ? "fake" : kkt_entry_provenance(entry);
}

kkt_rank kkt_entry_rank(const kkt_entry *entry) {
    if (kkt_entry_measured(entry) && entry->noisy)
        return KKT_RANK_NOISY;
    if (kkt_entry_measured(entry))
        return entry->stale_reason != NULL ? KKT_RANK_STALE_MEASURED : KKT_RANK_MEASURED;
    if (entry->provenance == KKT_COMPILED)
        return entry->stale_reason != NULL ? KKT_RANK_STALE_COMPILED : KKT_RANK_COMPILED;
    return KKT_RANK_PREDICTED;
}

/* NaN comes last. */
static int compare_reals(double a, double b) {
    if (isnan(a) || isnan(b))
        return (isnan(a) != 0) - (isnan(b) != 0);
    return (a > b) - (a < b);
}

static double cost_of(const kkt_entry *entry) {
    return kkt_objective_cost(entry->objective, entry->time_us, entry->energy_mj, entry->rel_fro);
}

bool kkt_entry_tied(const kkt_entry *a, const kkt_entry *b) {
    if (a->objective == KKT_OBJECTIVE_TIME)
        return a->low_us <= b->high_us && b->low_us <= a->high_us;
    double share = a->objective == KKT_OBJECTIVE_ENERGY ? ENERGY_SHARE : 0.0;
    double x = cost_of(a), y = cost_of(b);
    return fabs(x - y) <= share * fmin(x, y); /* false where either is unknown */
}

bool kkt_entry_known_faster(const kkt_entry *a, const kkt_entry *b) {
    return kkt_entry_measured(a) && kkt_entry_measured(b) &&
           kkt_entry_rank(a) == kkt_entry_rank(b) && cost_of(a) < cost_of(b) &&
           !kkt_entry_tied(a, b);
}

int kkt_entry_compare_problem(const kkt_entry *a, const kkt_entry *b) {
    int order = strcmp(a->kernel, b->kernel);
    if (order == 0)
        order = (a->problem_rank > b->problem_rank) - (a->problem_rank < b->problem_rank);
    return order != 0 ? order : strcmp(a->problem, b->problem);
}

/* Of entries without a time. */
static int compare_untimed(const kkt_entry *a, const kkt_entry *b) {
    int order = (a->spill_bytes > 0) - (b->spill_bytes > 0);
    return order != 0 ? order : compare_reals(a->predicted_us, b->predicted_us);
}

static int compare_configs(const kkt_entry *a, const kkt_entry *b) {
    int order = (a->departures > b->departures) - (a->departures < b->departures);
    return order != 0 ? order : strcmp(a->config, b->config);
}

int kkt_entry_compare(const kkt_entry *a, const kkt_entry *b) {
    kkt_rank rank_a = kkt_entry_rank(a), rank_b = kkt_entry_rank(b);
    if (rank_a != rank_b)
        return rank_a > rank_b ? -1 : 1;
    int order;
    if (rank_a >= KKT_RANK_NOISY) {
        order = compare_reals(cost_of(a), cost_of(b));
        if (order == 0)
            order = compare_reals(a->time_us, b->time_us);
        if (order == 0)
            order = compare_reals(a->low_us, b->low_us);
    } else {
        order = compare_untimed(a, b);
    }
    return order != 0 ? order : compare_configs(a, b);
}

int kkt_entry_compare_chunks(const kkt_entry *a, const kkt_entry *b) {
    if (kkt_entry_measured(a) || kkt_entry_measured(b))
        return kkt_entry_compare(a, b);
    int order = compare_untimed(a, b);
    return order != 0 ? order : kkt_entry_compare(a, b);
}

static bool timed(const kkt_view *view, const kkt_entry *like) {
    for (size_t i = 0; i < view->entry_count; i++) {
        const kkt_entry *entry = &view->entries[i];
        if (kkt_entry_measured(entry) && strcmp(entry->style, like->style) == 0 &&
            kkt_entry_compare_problem(entry, like) == 0)
            return true;
    }
    return false;
}

const kkt_entry *kkt_view_untimed(const kkt_view *view, const kkt_entry *best) {
    const kkt_entry *found = NULL;
    if (best->objective != KKT_OBJECTIVE_TIME || !kkt_entry_measured(best))
        return NULL;
    for (size_t i = 0; i < view->entry_count; i++) {
        const kkt_entry *entry = &view->entries[i];
        if (!entry->model_only && kkt_entry_compare_problem(entry, best) == 0 &&
            entry->predicted_us * (1 + KKT_UNTIMED_SHARE) < best->time_us &&
            (found == NULL || entry->predicted_us < found->predicted_us) && !timed(view, entry))
            found = entry;
    }
    return found;
}

const kkt_entry *kkt_view_standing(const kkt_view *view, const char *kernel, const char *problem,
                                   int64_t chunk) {
    const kkt_entry *at_chunk = NULL, *best = NULL;
    const int64_t wanted = chunk != 0 ? chunk : kkt_view_chunk(view, kernel, problem)->chunk;
    for (size_t i = 0; i < view->entry_count; i++) {
        const kkt_entry *entry = &view->entries[i];
        if (strcmp(entry->kernel, kernel) != 0 || strcmp(entry->problem, problem) != 0)
            continue;
        bool better = entry->best_of_problem || (best != NULL && !best->best_of_problem &&
                                                 kkt_entry_compare(entry, best) < 0);
        if (best == NULL || better)
            best = entry;
        if (entry->chunk == wanted && (at_chunk == NULL || kkt_entry_compare(entry, at_chunk) < 0))
            at_chunk = entry;
    }
    return at_chunk != NULL || chunk != 0 ? at_chunk : best;
}
