#include "reports/modelled.h"

#include <math.h>
#include <string.h>

#include "model/predict.h"

void kkt_entry_clear(kkt_entry *entry) {
    memset(entry, 0, sizeof *entry);
    entry->candidate_id = KKT_UNKNOWN_INT;
    entry->provenance = KKT_PREDICTED;
    entry->threads = entry->registers = entry->registers_predicted = KKT_UNKNOWN_INT;
    entry->smem_bytes = entry->smem_predicted = entry->spill_bytes = KKT_UNKNOWN_INT;
    entry->blocks_per_sm = KKT_UNKNOWN_INT;
    entry->time_us = entry->low_us = entry->high_us = KKT_UNKNOWN_REAL;
    entry->predicted_us = entry->lower_bound_us = KKT_UNKNOWN_REAL;
    entry->hbm_bytes = entry->hbm_bytes_per_token = entry->chain_steps = KKT_UNKNOWN_REAL;
    entry->hbm_bytes_counted = KKT_UNKNOWN_REAL;
    entry->rel_fro = entry->max_abs = entry->tolerance = KKT_UNKNOWN_REAL;
    entry->energy_mj = KKT_UNKNOWN_REAL;
}

bool kkt_modelled_find(const char *kernel, const char *style, const kkt_kernel **out_kernel,
                       const kkt_variant **out_variant) {
    size_t count;
    const kkt_kernel *const *kernels = kkt_kernels(&count);
    for (size_t k = 0; k < count; k++) {
        if (strcmp(kernels[k]->name, kernel) != 0)
            continue;
        const kkt_style *found = kkt_style_find(style);
        const kkt_variant *variant =
            found == NULL ? NULL : kkt_kernel_variant(kernels[k], found->id);
        if (variant == NULL)
            return false;
        *out_kernel = kernels[k];
        *out_variant = variant;
        return true;
    }
    return false;
}

static int departures(const kkt_variant *variant, const kkt_values *config) {
    int count = 0;
    for (size_t i = 0; i < variant->params.count; i++)
        count += config->v[i] != variant->params.params[i].fallback;
    return count;
}

int kkt_modelled_departures(const char *kernel_name, const char *style, const char *config) {
    const kkt_kernel *kernel;
    const kkt_variant *variant;
    kkt_values values;
    if (!kkt_modelled_find(kernel_name, style, &kernel, &variant))
        return 0;
    kkt_params_defaults(&variant->params, &values);
    return kkt_params_parse(&variant->params, config, &values, NULL, NULL) == KKT_OK
               ? departures(variant, &values)
               : 0;
}

void kkt_modelled_fill(const kkt_variant *variant, const kkt_arch *arch, const kkt_device *device,
                       const kkt_values *problem, const kkt_values *config, kkt_arena *arena,
                       kkt_entry *entry) {
    kkt_footprint footprint;
    kkt_prediction prediction;
    char reason[512] = "";
    memset(&footprint, 0, sizeof footprint);
    variant->footprint(problem, config, arch, &footprint);
    kkt_predict(&footprint, arch, device, NULL, &prediction);
    kkt_prediction_reason(&footprint, arch, device, &prediction, reason, sizeof reason);
    entry->departures = departures(variant, config);
    entry->threads = footprint.threads;
    entry->smem_bytes = prediction.dynamic_smem_bytes;
    entry->registers = entry->registers_predicted = prediction.registers;
    entry->smem_predicted = prediction.smem_bytes;
    entry->calibrated = prediction.calibrated;
    entry->predicted_us = prediction.predicted_us;
    entry->lower_bound_us = prediction.lower_bound_us;
    entry->hbm_bytes = prediction.hbm_bytes;
    entry->hbm_bytes_per_token = prediction.hbm_bytes_per_token;
    entry->chain_steps = prediction.chain_steps;
    entry->blocks_per_sm = prediction.occupancy.blocks_per_sm;
    entry->limiter = kkt_limiter_name(prediction.limiter);
    entry->reason = kkt_arena_strdup(arena, reason);
}

typedef struct descent {
    const kkt_variant *variant;
    const kkt_arch *arch;
    const kkt_device *device;
    const kkt_values *problem;
    int chunk_index; /* the parameter that is held; -1: none */
    kkt_modelled_exclude exclude;
    const void *context;
} descent;

/* Predicted time of a configuration; infinite where it cannot be used. A spilling one is worth a
 * multiple of its predicted time, for of local memory the time model counts the bytes, and for some
 * kernels the instructions, but not what waits for them. */
static double cost(const descent *d, const kkt_values *config) {
    if (!d->variant->applicable(d->problem, config, d->arch, NULL, 0) ||
        (d->exclude != NULL && d->exclude(d->context, config)))
        return (double)INFINITY;
    kkt_footprint footprint;
    kkt_prediction prediction;
    memset(&footprint, 0, sizeof footprint);
    d->variant->footprint(d->problem, config, d->arch, &footprint);
    kkt_predict(&footprint, d->arch, d->device, NULL, &prediction);
    if (prediction.infeasible != KKT_FEASIBLE || !isfinite(prediction.predicted_us))
        return (double)INFINITY;
    return prediction.predicted_us * (prediction.spills ? 4.0 : 1.0);
}

/* Changes `left` of the parameters from `first` on, all ways in their order, until a configuration
 * is usable; `config` is then that one. */
static bool change(const descent *d, size_t first, int left, kkt_values *config, double *best) {
    const kkt_param_table *table = &d->variant->params;
    if (left == 0) {
        *best = cost(d, config);
        return isfinite(*best);
    }
    for (size_t p = first; p < table->count; p++) {
        const int64_t own = config->v[p];
        for (size_t i = 0; i < table->params[p].count && (int)p != d->chunk_index; i++) {
            config->v[p] = table->params[p].values[i];
            if (config->v[p] != own && change(d, p + 1, left - 1, config, best))
                return true;
        }
        config->v[p] = own;
    }
    return false;
}

/* So many parameters may have to change together (layout t of gemv, an odd lda: the load's width,
 * the rows of a block and the threads of a row). */
enum { CHANGES_MOST = 3 };

/* The first usable configuration with the fewest changes of `config`. */
static bool first_usable(const descent *d, kkt_values *config, double *best) {
    for (int changes = 0; changes <= CHANGES_MOST; changes++)
        if (change(d, 0, changes, config, best))
            return true;
    return false;
}

/* One sweep over all parameters; true where something improved. */
static bool sweep(const descent *d, kkt_values *config, double *best) {
    const kkt_param_table *table = &d->variant->params;
    bool improved = false;
    for (size_t p = 0; p < table->count; p++) {
        if ((int)p == d->chunk_index)
            continue;
        for (size_t i = 0; i < table->params[p].count; i++) {
            kkt_values other = *config;
            other.v[p] = table->params[p].values[i];
            double time = cost(d, &other);
            if (time < *best) {
                *best = time;
                *config = other;
                improved = true;
            }
        }
    }
    return improved;
}

/* Back to the defaults where that costs nothing, so that a configuration says only what matters. */
static void simplify(const descent *d, kkt_values *config, double best) {
    const kkt_param_table *table = &d->variant->params;
    for (size_t p = 0; p < table->count; p++) {
        kkt_values other = *config;
        other.v[p] = table->params[p].fallback;
        if ((int)p != d->chunk_index && cost(d, &other) <= best)
            *config = other;
    }
}

static bool find_best(const kkt_kernel *kernel, descent d, int64_t chunk, kkt_values *config) {
    const kkt_variant *variant = d.variant;
    kkt_params_defaults(&variant->params, config);
    if (kernel->chunk_param != NULL && chunk != 0) {
        d.chunk_index = kkt_params_find(&variant->params, kernel->chunk_param);
        if (d.chunk_index >= 0)
            config->v[d.chunk_index] = chunk;
    }
    double best;
    if (!first_usable(&d, config, &best))
        return false;
    for (int round = 0; round < 8 && sweep(&d, config, &best); round++) {
    }
    simplify(&d, config, best);
    return true;
}

bool kkt_modelled_best(const kkt_kernel *kernel, const kkt_variant *variant, const kkt_arch *arch,
                       const kkt_device *device, const kkt_values *problem, int64_t chunk,
                       kkt_values *config) {
    const descent d = {variant, arch, device, problem, -1, NULL, NULL};
    return find_best(kernel, d, chunk, config);
}

bool kkt_modelled_entry(const kkt_kernel *kernel, const kkt_variant *variant, const kkt_arch *arch,
                        const kkt_device *device, const kkt_values *problem, int64_t chunk,
                        kkt_modelled_exclude exclude, const void *context, kkt_arena *arena,
                        kkt_entry *entry) {
    const descent d = {variant, arch, device, problem, -1, exclude, context};
    kkt_values config;
    if (!find_best(kernel, d, chunk, &config))
        return false;
    kkt_entry_clear(entry);
    entry->problem = kkt_params_text(arena, &kernel->problem, problem);
    entry->config = kkt_params_text(arena, &variant->params, &config);
    entry->kernel = kernel->name;
    entry->style = kkt_style_get(variant->style)->name;
    entry->chunk = chunk;
    kkt_modelled_fill(variant, arch, device, problem, &config, arena, entry);
    entry->model_only = !kkt_variant_runs(variant);
    if (!entry->model_only) {
        char hash[65];
        kkt_variant_hash(variant, hash);
        entry->kernel_hash = kkt_arena_strdup(arena, hash);
    }
    return true;
}
