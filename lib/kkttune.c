/* The public library: a thin facade over model, reports and database. */
#include "kkttune.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/version.h"
#include "kernels/kernel.h"
#include "model/predict.h"
#include "reports/canonical.h"
#include "reports/lookup.h"
#include "reports/recorded_device.h"

struct kkt_context {
    const kkt_arch *arch;
    const kkt_device *device;
    bool named; /* by the caller; else results may bring their own */
};

struct kkt_results {
    const kkt_context *context;
    kkt_arena *arena;
    const kkt_device *device; /* the context's, or the results' own where that was not named */
    kkt_view *views;          /* the first is the device's, where it has any */
    size_t view_count;
};

const char *kkt_version(void) {
    return KKT_VERSION;
}

/* The recordings beside the library: installed in lib/, or built in BUILD/lib/ of the source tree.
 * malloc'ed; NULL where there are none. */
static char *recordings_folder(void) {
    static const char here = 0; /* an address of the library's own */
    static const char *const places[] = {"../share/kkttune/reference", "../../db/reference"};
    const char *given = getenv("KKTTUNE_REFERENCE");
    Dl_info info;
    if (given != NULL && *given != '\0')
        return strdup(given);
    if (dladdr(&here, &info) == 0 || info.dli_fname == NULL)
        return NULL;
    const char *slash = strrchr(info.dli_fname, '/');
    int length = slash == NULL ? 1 : (int)(slash - info.dli_fname) + 1;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        kkt_text path = {0};
        kkt_text_printf(&path, "%.*s/%s", length, slash == NULL ? "." : info.dli_fname, places[i]);
        char *found = kkt_file_exists(kkt_text_get(&path)) ? strdup(kkt_text_get(&path)) : NULL;
        kkt_text_free(&path);
        if (found != NULL)
            return found;
    }
    return NULL;
}

kkt_status kkt_context_open(const char *arch, const char *device, kkt_context **out,
                            kkt_error *err) {
    kkt_context context = {.named = device != NULL};
    kkt_status status = kkt_arch_parse(arch != NULL ? arch : "", &context.arch, err);
    if (status != KKT_OK)
        return status;
    if (device == NULL) {
        char *folder = recordings_folder();
        context.device = kkt_recorded_device(context.arch, folder);
        free(folder);
    } else {
        status = kkt_device_parse(device, context.arch, &context.device, err);
    }
    if (status != KKT_OK)
        return status;
    *out = malloc(sizeof **out);
    if (*out == NULL)
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "out of memory");
    **out = context;
    return KKT_OK;
}

void kkt_context_close(kkt_context *context) {
    free(context);
}

const char *kkt_context_device(const kkt_context *context) {
    return context->device->full_name;
}

static kkt_status parse_values(const kkt_param_table *table, const char *text, kkt_values *out,
                               kkt_error *err) {
    kkt_params_defaults(table, out);
    return kkt_params_parse(table, text != NULL ? text : "", out, NULL, err);
}

static kkt_status parse_variant(const kkt_kernel *kernel, const char *style,
                                const kkt_variant **out, kkt_error *err) {
    const kkt_variant *variant = kernel->variants[0];
    if (style != NULL) {
        const kkt_style *found = kkt_style_find(style);
        variant = found == NULL ? NULL : kkt_kernel_variant(kernel, found->id);
    }
    if (variant == NULL)
        return kkt_fail(err, KKT_ERR_INPUT, 0, "%s has no style '%.60s'", kernel->name, style);
    *out = variant;
    return KKT_OK;
}

static kkt_status parse_kernel(const char *name, const char *problem_text,
                               const kkt_kernel **kernel, kkt_values *problem, kkt_error *err) {
    char reason[320];
    kkt_status status = kkt_kernel_parse(name != NULL ? name : "", kernel, err);
    if (status == KKT_OK)
        status = kkt_kernel_problem_parse(*kernel, problem_text, problem, err);
    if (status == KKT_OK && !kkt_kernel_problem_valid(*kernel, problem, reason, sizeof reason))
        status = kkt_fail(err, KKT_ERR_INPUT, 0, "impossible problem: %s", reason);
    return status;
}

static void fill_model(const kkt_context *context, const kkt_variant *variant,
                       const kkt_values *problem, const kkt_values *config, kkt_model_result *out) {
    kkt_footprint footprint;
    kkt_prediction prediction;
    memset(&footprint, 0, sizeof footprint);
    memset(out, 0, sizeof *out);
    variant->footprint(problem, config, context->arch, &footprint);
    kkt_predict(&footprint, context->arch, context->device, NULL, &prediction);
    kkt_prediction_reason(&footprint, context->arch, context->device, &prediction, out->reason,
                          sizeof out->reason);
    out->threads = footprint.threads;
    out->registers = prediction.registers;
    out->smem_bytes = prediction.smem_bytes;
    out->blocks_per_sm = prediction.occupancy.blocks_per_sm;
    out->feasible = prediction.infeasible == KKT_FEASIBLE;
    out->spills = prediction.spills;
    out->hbm_bytes = prediction.hbm_bytes;
    out->hbm_bytes_per_token = prediction.hbm_bytes_per_token;
    out->chain_steps = prediction.chain_steps;
    out->lower_bound_us = prediction.lower_bound_us;
    out->predicted_us = prediction.predicted_us;
    out->limiter = kkt_limiter_name(prediction.limiter);
}

kkt_status kkt_model_predict(const kkt_context *context, const char *kernel_name, const char *style,
                             const char *problem_text, const char *config_text,
                             kkt_model_result *out, kkt_error *err) {
    const kkt_kernel *kernel;
    const kkt_variant *variant = NULL;
    kkt_values problem, config;
    char reason[320];
    kkt_status status = parse_kernel(kernel_name, problem_text, &kernel, &problem, err);
    if (status == KKT_OK)
        status = parse_variant(kernel, style, &variant, err);
    if (status == KKT_OK)
        status = parse_values(&variant->params, config_text, &config, err);
    if (status != KKT_OK || variant == NULL)
        return status;
    if (!variant->applicable(&problem, &config, context->arch, reason, sizeof reason))
        return kkt_fail(err, KKT_ERR_INPUT, 0, "the configuration does not apply: %s", reason);
    fill_model(context, variant, &problem, &config, out);
    return KKT_OK;
}

kkt_status kkt_model_occupancy(const kkt_context *context, int threads, int registers,
                               int64_t dynamic_smem_bytes, int64_t static_smem_bytes,
                               kkt_model_blocks *out, kkt_error *err) {
    kkt_occupancy_request request = {.threads = threads,
                                     .registers = registers,
                                     .dynamic_smem = dynamic_smem_bytes,
                                     .static_smem = static_smem_bytes};
    kkt_occupancy occupancy;
    kkt_status status = kkt_occupancy_checked(context->arch, &request, &occupancy, err);
    if (status != KKT_OK)
        return status;
    *out = (kkt_model_blocks){
        .blocks_per_sm = occupancy.blocks_per_sm,
        .warps_per_sm = occupancy.warps_per_sm,
        .limiter = kkt_limiter_name(occupancy.limiter),
        .by_registers = occupancy.limits[KKT_LIMIT_REGISTERS],
        .by_shared_memory = occupancy.limits[KKT_LIMIT_SHARED_MEMORY],
        .by_threads = occupancy.limits[KKT_LIMIT_THREADS],
        .by_blocks = occupancy.limits[KKT_LIMIT_BLOCKS],
        .by_barriers = occupancy.limits[KKT_LIMIT_BARRIERS],
    };
    return KKT_OK;
}

/* ---- results ---- */

/* The hash of the sources embedded here; options and compiler are not compared. */
static bool present(void *context, const kkt_identity *id, const char **kernel_hash,
                    const char **options) {
    size_t count;
    const kkt_kernel *const *kernels = kkt_kernels(&count);
    const kkt_style *style = kkt_style_find(id->style);
    *options = NULL;
    for (size_t k = 0; k < count; k++) {
        if (style == NULL || strcmp(kernels[k]->name, id->kernel) != 0)
            continue;
        const kkt_variant *variant = kkt_kernel_variant(kernels[k], style->id);
        if (variant == NULL)
            return false;
        char hash[65];
        kkt_variant_hash(variant, hash);
        *kernel_hash = kkt_arena_strdup(context, hash);
        return true;
    }
    return false;
}

/* The first byte tells an export from a database. */
static kkt_status looks_like_json(const char *path, bool *out, kkt_error *err) {
    FILE *file = fopen(path, "rbe");
    if (file == NULL)
        return kkt_fail(err, KKT_ERR_INPUT, 0, "cannot open '%.200s'", path);
    int first;
    do
        first = fgetc(file);
    while (first == ' ' || first == '\n' || first == '\r' || first == '\t');
    *out = first == '{';
    fclose(file);
    return KKT_OK;
}

static kkt_status read_export(kkt_results *results, const char *path, kkt_error *err) {
    results->views = kkt_arena_alloc(results->arena, sizeof *results->views);
    results->view_count = 1;
    kkt_status status = kkt_view_read(path, results->arena, results->views, err);
    if (status == KKT_OK && results->views->arch != results->context->arch)
        return kkt_fail(err, KKT_ERR_INPUT, 0, "'%.200s' is for %s, not for %s", path,
                        results->views->arch->name, results->context->arch->name);
    if (status == KKT_OK && !results->context->named)
        results->device = results->views->device;
    return status;
}

static kkt_status read_database(kkt_results *results, const char *path, kkt_error *err) {
    kkt_db *db;
    kkt_freshness freshness = {.present = present, .context = results->arena};
    kkt_status status = kkt_db_open(path, KKT_DB_READ, &db, err);
    if (status != KKT_OK)
        return status;
    status = kkt_lookup_views(db, &freshness, results->context->arch, results->context->device,
                              NULL, results->arena, &results->views, &results->view_count, err);
    kkt_db_close(db);
    if (status == KKT_OK && !results->context->named)
        results->device = kkt_lookup_own_device(results->views, results->view_count);
    return status;
}

kkt_status kkt_results_open(const kkt_context *context, const char *path, kkt_results **out,
                            kkt_error *err) {
    kkt_results *results = calloc(1, sizeof *results);
    bool json = false;
    if (results == NULL)
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "out of memory");
    results->context = context;
    results->device = context->device;
    results->arena = kkt_arena_open();
    kkt_status status = path == NULL ? KKT_OK : looks_like_json(path, &json, err);
    if (status == KKT_OK && path != NULL)
        status = json ? read_export(results, path, err) : read_database(results, path, err);
    if (status != KKT_OK) {
        kkt_results_close(results);
        return status;
    }
    *out = results;
    return KKT_OK;
}

void kkt_results_close(kkt_results *results) {
    if (results != NULL)
        kkt_arena_close(results->arena);
    free(results);
}

static void fill_choice(const kkt_entry *entry, const char *tier, double distance,
                        kkt_choice *out) {
    *out = (kkt_choice){
        .kernel = entry->kernel,
        .style = entry->style,
        .problem = entry->problem,
        .config = entry->config,
        .tier = tier,
        .distance = distance,
        .provenance = kkt_entry_provenance(entry),
        .stale_reason = entry->stale_reason,
        .limiter = entry->limiter,
        .kernel_hash = entry->kernel_hash,
        .chunk = entry->chunk,
        .threads = entry->threads,
        .registers = entry->registers,
        .smem_bytes = entry->smem_bytes,
        .time_us = entry->time_us,
        .low_us = entry->low_us,
        .high_us = entry->high_us,
        .predicted_us = entry->predicted_us,
    };
}

kkt_status kkt_results_lookup(kkt_results *results, const char *kernel_name,
                              const char *problem_text, int64_t chunk, kkt_choice *out,
                              kkt_error *err) {
    const kkt_kernel *kernel;
    kkt_values problem;
    kkt_lookup found;
    kkt_status status = parse_kernel(kernel_name, problem_text, &kernel, &problem, err);
    if (status == KKT_OK)
        status =
            kkt_lookup_find(results->views, results->view_count, kernel, &problem, chunk,
                            results->context->arch, results->device, results->arena, &found, err);
    if (status == KKT_OK)
        fill_choice(&found.entry, kkt_lookup_tier_name(found.tier), found.distance, out);
    return status;
}

size_t kkt_results_count(const kkt_results *results) {
    return results->view_count == 0 ? 0 : results->views[0].entry_count;
}

kkt_status kkt_results_get(const kkt_results *results, size_t index, kkt_choice *out,
                           kkt_error *err) {
    size_t count = kkt_results_count(results);
    if (index >= count)
        return kkt_fail(err, KKT_ERR_INPUT, 0, "entry %zu of %zu does not exist", index, count);
    fill_choice(&results->views[0].entries[index], "exact", 0, out);
    return KKT_OK;
}

int64_t kkt_choice_value(const kkt_choice *choice, const char *key, int64_t fallback) {
    return kkt_pair_integer(choice->config, key, fallback);
}

void kkt_choice_text(const kkt_choice *choice, const char *key, char *out, size_t size) {
    kkt_pair pair;
    const char *cursor = choice->config;
    if (size > 0)
        out[0] = '\0';
    while (kkt_pair_next(&cursor, &pair))
        if (strcmp(pair.key, key) == 0)
            snprintf(out, size, "%s", pair.text);
}
