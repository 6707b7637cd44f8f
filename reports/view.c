#include "reports/view.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "model/occupancy.h"
#include "reports/baseline.h"
#include "reports/canonical.h"
#include "reports/curve.h"
#include "reports/failures.h"
#include "reports/modelled.h"
#include "reports/view_rejects.h"

typedef struct builder {
    kkt_arena *arena;
    const kkt_arch *arch;
    const kkt_device *device;
    kkt_view *view;
    bool real;        /* there are times of a GPU: made-up ones do not count then */
    const char *only; /* the kernel that is wanted; what else is read serves the curves alone */
    kkt_entry *rows;  /* one a candidate that is a result */
    size_t row_count, row_capacity;
    kkt_baselines baselines;
    kkt_reject_keys reject_keys;
    kkt_failures *failures;
    const char *ranked_kernel, *ranked_problem; /* what `ranked` was found for last */
    int ranked;
} builder;

/* Position of a problem in its kernel's default list; INT_MAX where it is none of them. */
static int problem_order(const char *kernel_name, const char *problem) {
    size_t count;
    const kkt_kernel *const *kernels = kkt_kernels(&count);
    for (size_t k = 0; k < count; k++) {
        const kkt_kernel *kernel = kernels[k];
        if (strcmp(kernel->name, kernel_name) != 0)
            continue;
        for (int i = 0; kernel->default_problems[i] != NULL; i++) {
            kkt_values values;
            kkt_text text = {0};
            bool same = kkt_kernel_problem_parse(kernel, kernel->default_problems[i], &values,
                                                 NULL) == KKT_OK;
            kkt_params_format(&kernel->problem, &values, &text);
            same = same && strcmp(kkt_text_get(&text), problem) == 0;
            kkt_text_free(&text);
            if (same)
                return i;
        }
    }
    return INT_MAX;
}

/* Kernel, style, problem, chunk: what an entry is kept for. */
static int compare_groups(const kkt_entry *a, const kkt_entry *b) {
    int order = strcmp(a->kernel, b->kernel);
    if (order == 0)
        order = strcmp(a->style, b->style);
    if (order == 0)
        order = (a->problem_rank > b->problem_rank) - (a->problem_rank < b->problem_rank);
    if (order == 0)
        order = strcmp(a->problem, b->problem);
    return order != 0 ? order : (a->chunk > b->chunk) - (a->chunk < b->chunk);
}

static int compare_rows(const void *a, const void *b) {
    int order = compare_groups(a, b);
    return order != 0 ? order : kkt_entry_compare(a, b);
}

/* Rows come sorted by problem: looked up once for each. */
static int cached_problem_order(builder *b, const char *kernel, const char *problem) {
    if (b->ranked_kernel == NULL || strcmp(b->ranked_kernel, kernel) != 0 ||
        strcmp(b->ranked_problem, problem) != 0) {
        b->ranked_kernel = kernel;
        b->ranked_problem = problem;
        b->ranked = problem_order(kernel, problem);
    }
    return b->ranked;
}

static kkt_entry *add_row(builder *b) {
    b->rows = kkt_arena_grow(b->arena, b->rows, b->row_count, &b->row_capacity, sizeof *b->rows);
    return &b->rows[b->row_count++];
}

static void fill_prediction(kkt_entry *entry, const kkt_prediction_record *prediction,
                            kkt_arena *arena) {
    entry->registers = entry->registers_predicted = prediction->registers;
    entry->smem_predicted = prediction->smem_bytes;
    entry->hbm_bytes = prediction->hbm_bytes;
    entry->hbm_bytes_per_token = prediction->hbm_bytes_per_token;
    entry->blocks_per_sm = prediction->blocks_per_sm;
    entry->limiter = kkt_arena_strdup(arena, prediction->limiter);
    entry->reason = kkt_arena_strdup(arena, prediction->reason);
    entry->chain_steps = prediction->chain_steps;
    entry->lower_bound_us = prediction->lower_bound_us;
    entry->calibrated = prediction->calibrated;
    entry->predicted_us = prediction->predicted_us;
    if (entry->smem_bytes < 0)
        entry->smem_bytes = prediction->smem_bytes;
}

static void fill_build(kkt_entry *entry, const kkt_build_record *build, kkt_arena *arena) {
    entry->kernel_hash = kkt_arena_strdup(arena, build->kernel_hash);
    if (build->registers > 0)
        entry->registers = build->registers;
    if (build->dynamic_smem_bytes >= 0)
        entry->smem_bytes = build->dynamic_smem_bytes;
    if (build->spill_store_bytes >= 0)
        entry->spill_bytes =
            build->spill_store_bytes + (build->spill_load_bytes > 0 ? build->spill_load_bytes : 0);
}

/* Blocks per SM of the compiled figures: what the model predicted is then no longer needed. */
static void fill_occupancy(kkt_entry *entry, const kkt_build_record *build, const kkt_arch *arch) {
    kkt_occupancy_request request = {
        .threads = entry->threads,
        .registers = build->registers,
        .dynamic_smem = build->dynamic_smem_bytes,
        .static_smem = build->static_smem_bytes,
        .barriers = build->barriers > 0 ? build->barriers : 0,
    };
    kkt_occupancy occupancy;
    if (kkt_occupancy_checked(arch, &request, &occupancy, NULL) == KKT_OK)
        entry->blocks_per_sm = occupancy.blocks_per_sm;
}

static void fill_run(kkt_entry *entry, const kkt_run_record *run, kkt_arena *arena) {
    entry->time_us = kkt_figure_round(run->time_us);
    entry->low_us =
        isfinite(run->time_low_us) ? kkt_figure_round(run->time_low_us) : entry->time_us;
    entry->high_us =
        isfinite(run->time_high_us) ? kkt_figure_round(run->time_high_us) : entry->time_us;
    entry->samples = run->sample_count;
    entry->rel_fro = kkt_figure_round(run->rel_fro);
    entry->max_abs = kkt_figure_round(run->max_abs);
    entry->tolerance = run->tolerance;
    entry->energy_mj = kkt_figure_round(run->energy_mj);
    entry->disturbed = kkt_arena_strdup(arena, run->disturbed);
    entry->hbm_bytes_counted = run->hbm_bytes_counted;
    entry->counters_note = kkt_arena_strdup(arena, run->counters_note);
    entry->in_turns = run->policy != NULL && strstr(run->policy, "ablation=") != NULL;
    entry->gpu = kkt_arena_strdup(arena, run->gpu);
    entry->driver = kkt_arena_strdup(arena, run->driver);
    entry->date = kkt_arena_strdup(arena, run->date);
}

/* What the kernel's tables make of a result: its problem in canonical form (a key that came later
 * has its default: the same problem as ever; one of several texts of a problem is the kernel's),
 * its chunk size and what the model says. False where the row is of a problem or configuration that
 * is no longer one of the kernel's. */
static bool fill_known(builder *b, const kkt_kernel *kernel, const kkt_variant *variant,
                       kkt_entry *entry) {
    kkt_values problem, config;
    kkt_params_defaults(&variant->params, &config);
    if (kkt_kernel_problem_parse(kernel, entry->problem, &problem, NULL) != KKT_OK ||
        kkt_params_parse(&variant->params, entry->config, &config, NULL, NULL) != KKT_OK)
        return false;
    entry->problem = kkt_params_text(b->arena, &kernel->problem, &problem);
    entry->model_only = variant->source == NULL;
    entry->chunk =
        kernel->chunk_param == NULL ? 0 : kkt_pair_integer(entry->config, kernel->chunk_param, 0);
    kkt_modelled_fill(variant, b->arch, b->device, &problem, &config, b->arena, entry);
    return true;
}

/* Adds an entry, unless nothing could be made of its configuration today: that stands for nothing,
 * and is counted as stale by whoever knows what is. */
static void add_result(builder *b, const kkt_result *result) {
    kkt_entry made, *entry = &made;
    kkt_arena *arena = b->arena;
    kkt_entry_clear(entry);
    entry->objective = b->view->objective;
    entry->kernel = kkt_arena_strdup(arena, result->id.kernel);
    entry->style = kkt_arena_strdup(arena, result->id.style);
    entry->problem = kkt_arena_strdup(arena, result->id.problem);
    entry->config = kkt_arena_strdup(arena, result->id.config);
    entry->noisy = result->outcome == KKT_OUTCOME_NOISY;
    entry->candidate_id = result->candidate_id;
    entry->provenance = result->provenance;
    entry->stale_reason = kkt_arena_strdup(arena, result->stale_reason);
    const kkt_kernel *kernel;
    const kkt_variant *variant;
    if (!kkt_modelled_find(entry->kernel, entry->style, &kernel, &variant))
        entry->chunk = kkt_pair_integer(entry->config, "chunk", 0);
    else if (!fill_known(b, kernel, variant, entry))
        return;
    entry->problem_rank = cached_problem_order(b, entry->kernel, entry->problem);
    if (entry->threads < 0)
        entry->threads = (int)kkt_pair_integer(entry->config, "threads", KKT_UNKNOWN_INT);
    if (result->has_prediction)
        fill_prediction(entry, &result->prediction, arena);
    if (result->has_build) {
        fill_build(entry, &result->build, arena);
        fill_occupancy(entry, &result->build, b->arch);
    }
    if (result->has_run)
        fill_run(entry, &result->run, arena);
    if (kkt_baseline_is(entry))
        kkt_baselines_add(&b->baselines, entry, arena);
    else
        *add_row(b) = made;
}

static void count_result(kkt_view *view, const kkt_result *result) {
    view->candidates++;
    bool timed = result->outcome == KKT_OUTCOME_OK || result->outcome == KKT_OUTCOME_NOISY;
    view->measured += timed && result->provenance == KKT_MEASURED;
    view->made_up = view->made_up || (timed && kkt_run_made_up(&result->run));
    view->replayed += timed && result->provenance == KKT_REPLAYED;
    view->compiled += result->outcome == KKT_OUTCOME_COMPILED;
    view->stale += result->stale_reason != NULL;
}

static bool made_up(const kkt_result *result) {
    return result->has_run && kkt_run_made_up(&result->run);
}

static kkt_status look_for_real(void *context, const kkt_result *result, kkt_error *err) {
    (void)err;
    builder *b = context;
    b->real = b->real || (result->has_run && !made_up(result));
    return KKT_OK;
}

/* A result without the times that the fake backend made up for it, nor the build it did without. */
static kkt_result without_run(const kkt_result *result) {
    kkt_result plain = *result;
    plain.has_run = false;
    plain.has_build = result->has_build && result->build.compiler != NULL;
    plain.outcome = plain.has_build ? result->build.outcome : KKT_OUTCOME_PREDICTED;
    plain.provenance = plain.has_build ? KKT_COMPILED : KKT_PREDICTED;
    plain.reason = NULL;
    return plain;
}

static kkt_status visit(void *context, const kkt_result *result, kkt_error *err) {
    (void)err;
    builder *b = context;
    kkt_result plain;
    if (b->real && made_up(result)) {
        plain = without_run(result);
        result = &plain;
    }
    bool wanted = b->only == NULL || strcmp(b->only, result->id.kernel) == 0;
    kkt_failures_add(b->failures, b->arena, result);
    if (wanted)
        count_result(b->view, result);
    else if (result->outcome != KKT_OUTCOME_PREDICTED && result->outcome != KKT_OUTCOME_COMPILED &&
             result->outcome != KKT_OUTCOME_OK && result->outcome != KKT_OUTCOME_NOISY)
        return KKT_OK;
    switch (result->outcome) {
    case KKT_OUTCOME_PREDICTED:
        if (!result->has_prediction || result->prediction.feasible)
            add_result(b, result);
        else if (wanted)
            kkt_view_count_reject(b->view, &b->reject_keys, b->arena, result,
                                  kkt_outcome_name(KKT_OUTCOME_REJECTED));
        break;
    case KKT_OUTCOME_COMPILED:
    case KKT_OUTCOME_OK:
        add_result(b, result);
        break;
    case KKT_OUTCOME_NOISY: /* told as such, and still better than no time at all */
        add_result(b, result);
        if (wanted)
            kkt_view_count_reject(b->view, &b->reject_keys, b->arena, result,
                                  kkt_outcome_name(result->outcome));
        break;
    case KKT_OUTCOME_REJECTED:
    case KKT_OUTCOME_BUILD_FAILED:
    case KKT_OUTCOME_LAUNCH_FAILED:
    case KKT_OUTCOME_WRONG_RESULT:
    case KKT_OUTCOME_RACY:
    case KKT_OUTCOME_TIMED_OUT:
    case KKT_OUTCOME_CRASHED:
    case KKT_OUTCOME_COUNT:
    default:
        kkt_view_count_reject(b->view, &b->reject_keys, b->arena, result,
                              kkt_outcome_name(result->outcome));
        break;
    }
    return KKT_OK;
}

/* Adds a modelled row for every chunk of one problem; a group that has results ignores it. */
static void add_modelled(builder *b, const kkt_kernel *kernel, const kkt_variant *variant,
                         const kkt_values *problem) {
    int index =
        kernel->chunk_param == NULL ? -1 : kkt_params_find(&variant->params, kernel->chunk_param);
    size_t chunks = index < 0 ? 1 : variant->params.params[index].count;
    for (size_t c = 0; c < chunks; c++) {
        int64_t chunk = index < 0 ? 0 : variant->params.params[index].values[c];
        kkt_entry entry;
        if (kkt_failures_modelled(b->failures, kernel, variant, b->arch, b->device, problem, chunk,
                                  b->arena, &entry)) {
            entry.problem_rank = cached_problem_order(b, entry.kernel, entry.problem);
            *add_row(b) = entry;
        }
    }
}

static void add_modelled_problem(builder *b, const kkt_kernel *kernel, const char *text) {
    kkt_values problem;
    char reason[320];
    if (kkt_kernel_problem_parse(kernel, text, &problem, NULL) != KKT_OK ||
        !kkt_kernel_problem_valid(kernel, &problem, reason, sizeof reason))
        return;
    for (size_t v = 0; v < kernel->variant_count; v++)
        if (kernel->variants[v]->library == NULL)
            add_modelled(b, kernel, kernel->variants[v], &problem);
}

/* Whether a kernel is wanted, or shares a pipeline with the one that is. */
static bool concerns(const char *only, const char *kernel) {
    if (only == NULL || strcmp(only, kernel) == 0)
        return true;
    size_t count;
    const kkt_pipeline *const *all = kkt_pipelines(&count);
    for (size_t i = 0; i < count; i++) {
        bool has_only = false, has_kernel = false;
        for (const char *const *member = all[i]->members; *member != NULL; member++) {
            has_only = has_only || strcmp(*member, only) == 0;
            has_kernel = has_kernel || strcmp(*member, kernel) == 0;
        }
        if (has_only && has_kernel)
            return true;
    }
    return false;
}

static void add_all_modelled(builder *b, const char *only) {
    size_t count;
    const kkt_kernel *const *kernels = kkt_kernels(&count);
    size_t stored = b->row_count;
    for (size_t k = 0; k < count; k++) {
        if (!concerns(only, kernels[k]->name))
            continue;
        for (size_t i = 0; kernels[k]->default_problems[i] != NULL; i++)
            add_modelled_problem(b, kernels[k], kernels[k]->default_problems[i]);
        const char *last = NULL;
        for (size_t i = 0; i < stored; i++) {
            const kkt_entry *row = &b->rows[i];
            if (strcmp(row->kernel, kernels[k]->name) != 0 ||
                (last != NULL && strcmp(last, row->problem) == 0))
                continue;
            last = row->problem;
            if (row->problem_rank == INT_MAX)
                add_modelled_problem(b, kernels[k], last);
        }
    }
}

static int compare_texts(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* `rows` are one group, the best first. */
static void find_ties(builder *b, kkt_entry *best, const kkt_entry *rows, size_t count) {
    if (!kkt_entry_measured(best))
        count = 1;
    const char **ties = kkt_arena_array(b->arena, count, sizeof *ties);
    for (size_t i = 1; i < count && kkt_entry_rank(&rows[i]) == kkt_entry_rank(best); i++)
        if (kkt_entry_tied(&rows[i], best) && strcmp(rows[i].config, best->config) != 0)
            ties[best->tie_count++] = rows[i].config;
    qsort(ties, best->tie_count, sizeof *ties, compare_texts);
    best->ties = ties;
}

static void choose(builder *b) {
    kkt_view *view = b->view;
    view->entries = kkt_arena_array(b->arena, b->row_count + 1, sizeof *view->entries);
    if (b->rows == NULL)
        return;
    qsort(b->rows, b->row_count, sizeof *b->rows, compare_rows);
    view->rows = b->rows;
    view->row_count = b->row_count;
    for (size_t i = 0, end; i < b->row_count; i = end) {
        for (end = i + 1; end < b->row_count && compare_groups(&b->rows[i], &b->rows[end]) == 0;)
            end++;
        kkt_entry *entry = &view->entries[view->entry_count++];
        *entry = b->rows[i];
        find_ties(b, entry, &b->rows[i], end - i);
        const kkt_kernel *kernel;
        const kkt_variant *variant;
        if (entry->kernel_hash == NULL && !entry->model_only &&
            kkt_modelled_find(entry->kernel, entry->style, &kernel, &variant)) {
            char hash[65];
            kkt_variant_hash(variant, hash);
            entry->kernel_hash = kkt_arena_strdup(b->arena, hash);
        }
    }
}

/* Whether another entry of the same problem, and of the same chunk size where `same_chunk`, is the
 * better one; without it those are looked at that won their chunk size. What the model alone knows
 * of stands for nothing. */
static bool is_beaten(const kkt_view *view, size_t at, bool same_chunk) {
    const kkt_entry *entry = &view->entries[at];
    for (size_t i = 0; i < view->entry_count; i++) {
        const kkt_entry *other = &view->entries[i];
        if (i == at || other->model_only || (other->chunk == entry->chunk) != same_chunk ||
            (!same_chunk && !other->best_of_problem) || strcmp(entry->kernel, other->kernel) != 0 ||
            strcmp(entry->problem, other->problem) != 0)
            continue;
        int order =
            same_chunk ? kkt_entry_compare(other, entry) : kkt_entry_compare_chunks(other, entry);
        if (order < 0 || (order == 0 && i < at))
            return true;
    }
    return false;
}

/* First the best style of each chunk size, then the best of those. */
static void mark_best(kkt_view *view) {
    for (size_t i = 0; i < view->entry_count; i++) {
        kkt_entry *entry = &view->entries[i];
        entry->best_of_problem = !entry->model_only && !is_beaten(view, i, true);
    }
    for (size_t i = 0; i < view->entry_count; i++)
        if (view->entries[i].best_of_problem && is_beaten(view, i, false))
            view->entries[i].best_of_problem = false;
}

typedef kkt_status (*visitor)(void *context, const kkt_result *result, kkt_error *err);

/* Shows `each` one kernel's results, or those of all (`kernel` NULL). */
static kkt_status read_results(builder *b, kkt_db *db, const kkt_freshness *freshness,
                               const char *kernel, visitor each, kkt_error *err) {
    const kkt_result_filter filter = {
        .kernel = kernel, .arch = b->arch->name, .device = b->device->name};
    return kkt_db_results(db, &filter, freshness, each, b, err);
}

static kkt_status read_all(builder *b, kkt_db *db, const kkt_freshness *freshness, visitor each,
                           kkt_error *err) {
    if (b->only == NULL)
        return read_results(b, db, freshness, NULL, each, err);
    size_t count;
    const kkt_kernel *const *kernels = kkt_kernels(&count);
    kkt_status status = KKT_OK;
    for (size_t k = 0; k < count && status == KKT_OK; k++)
        if (concerns(b->only, kernels[k]->name))
            status = read_results(b, db, freshness, kernels[k]->name, each, err);
    return status;
}

/* Takes out what was read for the curves' sake. */
static size_t keep_only(const char *only, kkt_entry *entries, size_t count) {
    size_t kept = 0;
    for (size_t i = 0; entries != NULL && i < count; i++)
        if (strcmp(entries[i].kernel, only) == 0)
            entries[kept++] = entries[i];
    return kept;
}

kkt_status kkt_view_make_by(kkt_db *db, const kkt_freshness *freshness, const kkt_arch *arch,
                            const kkt_device *device, const char *kernel, kkt_objective objective,
                            kkt_arena *arena, kkt_view *out, kkt_error *err) {
    memset(out, 0, sizeof *out);
    out->objective = objective;
    out->arch = arch;
    out->device = device;
    builder b = {.arena = arena, .arch = arch, .device = device, .view = out, .only = kernel};
    b.failures = kkt_arena_alloc(arena, sizeof *b.failures);
    *b.failures = (kkt_failures){0};
    out->failures = b.failures;
    if (db != NULL) {
        kkt_status status = read_all(&b, db, NULL, look_for_real, err);
        if (status == KKT_OK)
            status = read_all(&b, db, freshness, visit, err);
        if (status != KKT_OK)
            return status;
    }
    add_all_modelled(&b, kernel);
    b.row_count = kkt_failures_drop(b.failures, b.rows, b.row_count);
    choose(&b);
    mark_best(out);
    kkt_view_sort_rejects(out);
    kkt_status status = kkt_curves_make(db, freshness, kernel, b.real, arena, out, err);
    if (kernel != NULL) {
        out->entry_count = keep_only(kernel, out->entries, out->entry_count);
        out->row_count = keep_only(kernel, b.rows, out->row_count);
    }
    kkt_baselines_finish(&b.baselines, kernel, out);
    return status;
}
