/* `kkttune lookup KERNEL`: the configuration to use for a problem, and how it was found. */
#include <math.h>
#include <stdio.h>

#include "base/file.h"
#include "cli/lookup_pipeline.h"
#include "cli/stale_print.h"
#include "reports/lookup.h"
#include "reports/report.h"
#include "tuner/engine/freshness.h"

/* `pick`: the model's own choice where it is much faster than what was found; else NULL. */
static void print_json(const kkt_lookup *found, const kkt_device *device, const kkt_entry *pick) {
    kkt_json *root = kkt_json_object();
    kkt_json_add_string(root, "schema", "kkttune.lookup/1");
    kkt_json_add_string(root, "arch", device->arch);
    kkt_json_add_string(root, "device", device->full_name);
    kkt_json_add_string(root, "device_id", device->name);
    kkt_json_add_string(root, "tier", kkt_lookup_tier_name(found->tier));
    kkt_json_add_real(root, "distance", found->distance);
    kkt_json_add_string(root, "entry_device", found->device->full_name);
    if (found->tier == KKT_LOOKUP_DEFAULT)
        kkt_json_add_string(root, "reason", found->entry.reason);
    kkt_entry_add_json(&found->entry, root, "entry");
    if (found->passed != NULL) {
        kkt_json *passed = kkt_json_add_object(root, "passed_over");
        kkt_json_add_string(passed, "style", found->passed->style);
        kkt_json_add_string(passed, "problem", found->passed->problem);
        kkt_json_add_real(passed, "distance", found->passed_distance);
        if (found->slower != NULL) {
            kkt_json_add_string(passed, "slower_on", found->slower->problem);
            kkt_json_add_real(passed, "time_us", found->slower->time_us);
            kkt_json_add_real(passed, "faster_us", found->faster->time_us);
        } else {
            kkt_json_add_real(passed, "predicted_us", found->passed_us);
        }
    }
    if (pick != NULL) {
        kkt_json *model = kkt_json_add_object(root, "model_pick");
        kkt_json_add_string(model, "style", pick->style);
        kkt_json_add_string(model, "config", pick->config);
        kkt_json_add_real(model, "predicted_us", pick->predicted_us);
    }
    kkt_print_json(root);
}

/* What the model would rather use, and how to find out which of the two is faster. */
static void print_pick(const kkt_args *args, const kkt_entry *pick) {
    const char *problem = kkt_args_get(args, "--problem");
    const bool named = problem != NULL && *problem != '\0';
    printf(
        "model's own %s\n            style %s, predicted %.4g us; 'kkttune tune %s --arch %s%s%s' "
        "compares them\n",
        pick->config, pick->style, pick->predicted_us, pick->kernel, kkt_args_get(args, "--arch"),
        named ? " --problem " : "", named ? problem : "");
}

static void print_passed(const kkt_lookup *found) {
    if (found->passed == NULL)
        return;
    printf("passed over %s, distance %.3g from %s: ", found->passed->style, found->passed_distance,
           found->passed->problem);
    if (found->slower != NULL)
        printf("on %s it takes %.4g us, %s %.4g\n", found->slower->problem, found->slower->time_us,
               found->faster->style, found->faster->time_us);
    else
        printf("here its configuration is predicted to take %.4g us\n", found->passed_us);
}

static void print_text(const kkt_lookup *found, const kkt_device *device) {
    const kkt_entry *entry = &found->entry;
    printf("tier        %s", kkt_lookup_tier_name(found->tier));
    if (found->tier == KKT_LOOKUP_NEAREST)
        printf(", distance %.3g from %s", found->distance, entry->problem);
    if (found->device != device)
        printf(", measured on %s, not on %s", found->device->full_name, device->full_name);
    if (found->tier == KKT_LOOKUP_DEFAULT)
        printf(", nothing is known to run: %s", entry->reason);
    printf("\nconfig      %s\nstyle       %s\nprovenance  %s%s%s\n", entry->config, entry->style,
           kkt_entry_shown(entry), entry->stale_reason != NULL ? ": " : "",
           entry->stale_reason != NULL ? entry->stale_reason : "");
    printf("launch      %d threads, %lld bytes of dynamic shared memory, %d registers\n",
           entry->threads, (long long)entry->smem_bytes, entry->registers);
    if (kkt_entry_measured(entry))
        printf("time        %.4g us [%.4g, %.4g]%s\n", entry->time_us, entry->low_us,
               entry->high_us, found->tier == KKT_LOOKUP_NEAREST ? ", of that problem" : "");
    if ((found->tier != KKT_LOOKUP_EXACT || !kkt_entry_measured(entry)) &&
        isfinite(entry->predicted_us))
        printf("predicted   %.4g us%s\n", entry->predicted_us,
               entry->calibrated ? "" : " (uncalibrated)");
    if (entry->limiter != NULL)
        printf("limiter     %s\n", entry->limiter);
    print_passed(found);
}

/* Opens what is looked in: an export, the database named, the default one where it exists, or
 * nothing but the model. */
static kkt_status open_views(const kkt_args *args, const kkt_arch *arch, const kkt_device *device,
                             const kkt_kernel *kernel, kkt_db **db, kkt_arena *arena,
                             kkt_view **views, size_t *count, kkt_error *err) {
    const char *config = kkt_args_get(args, "--config"), *path = kkt_args_get(args, "--db");
    if (config != NULL && path != NULL)
        return kkt_fail(err, KKT_ERR_INPUT, 0, "give --db or --config, not both");
    if (config != NULL) {
        *views = kkt_arena_alloc(arena, sizeof **views);
        *count = 1;
        kkt_status status = kkt_view_read(config, arena, *views, err);
        if (status == KKT_OK && (*views)->arch != arch)
            return kkt_fail(err, KKT_ERR_INPUT, 0, "%s is for %s, not for %s", config,
                            (*views)->arch->name, arch->name);
        return status;
    }
    if (path == NULL && !kkt_file_exists("kkttune.db")) {
        fprintf(stderr,
                "there is no kkttune.db in this folder: the model answers; 'kkttune tune %s --arch "
                "%s' makes one, --db names another\n",
                kernel->name, arch->name);
        return KKT_OK;
    }
    kkt_status status = kkt_db_open(path != NULL ? path : "kkttune.db", KKT_DB_READ, db, err);
    return status != KKT_OK ? status
                            : kkt_lookup_views(*db, kkt_freshness_make(arena, NULL), arch, device,
                                               kernel->name, arena, views, count, err);
}

static void print_found(const kkt_args *args, const kkt_lookup *found, const kkt_kernel *kernel,
                        const kkt_values *problem, const kkt_arch *arch, const kkt_device *device,
                        kkt_arena *arena) {
    kkt_entry pick;
    const bool other = kkt_lookup_model_pick(found, kernel, problem, arch, device, arena, &pick);
    if (kkt_args_has(args, "--json")) {
        print_json(found, device, other ? &pick : NULL);
        return;
    }
    print_text(found, device);
    if (other)
        print_pick(args, &pick);
}

static kkt_status run_kernel(const kkt_args *args, kkt_error *err) {
    const kkt_kernel *kernel;
    const kkt_arch *arch;
    const kkt_device *device;
    kkt_db *db = NULL;
    kkt_view *views = NULL;
    size_t count = 0;
    kkt_values problem;
    kkt_lookup found;
    int64_t chunk = 0;
    kkt_arena *arena = kkt_arena_open();
    const char *text = kkt_args_get(args, "--problem"), *chunk_text = kkt_args_get(args, "--chunk");
    kkt_status status = kkt_kernel_parse(kkt_args_operand(args, 0), &kernel, err);
    if (status == KKT_OK)
        status = kkt_args_arch(args, &arch, &device, err);
    if (status == KKT_OK)
        status = kkt_kernel_problem_parse(kernel, text, &problem, err);
    if (status == KKT_OK && chunk_text != NULL && !kkt_parse_i64(chunk_text, 1, 1 << 20, &chunk))
        status = kkt_fail(err, KKT_ERR_INPUT, 0, "--chunk '%s' is no chunk size", chunk_text);
    if (status == KKT_OK)
        status = open_views(args, arch, device, kernel, &db, arena, &views, &count, err);
    if (status == KKT_OK && count > 0 && !kkt_args_has(args, "--device"))
        device = kkt_lookup_own_device(views, count);
    if (status == KKT_OK)
        status = kkt_lookup_find(views, count, kernel, &problem, chunk, arch, device, arena, &found,
                                 err);
    if (status == KKT_OK)
        print_found(args, &found, kernel, &problem, arch, device, arena);
    if (status == KKT_OK && count > 0)
        kkt_stale_print(&views[0], kernel->name, NULL, stderr);
    kkt_db_close(db);
    kkt_arena_close(arena);
    return status;
}

static kkt_status run_lookup(const kkt_args *args, kkt_error *err) {
    const kkt_pipeline *pipeline = kkt_pipeline_find(kkt_args_operand(args, 0));
    return pipeline != NULL ? kkt_lookup_pipeline(args, pipeline, err) : run_kernel(args, err);
}

static const kkt_option options[] = {
    KKT_OPTION_ARCH,
    KKT_OPTION_DEVICE,
    KKT_OPTION_DB,
    KKT_OPTION_JSON,
    {"--config", "FILE", "look in an export (kkttune_A.json) instead of the database"},
    {"--problem", "k=v,...", "the problem; keys left out have their default"},
    {"--chunk", "N", "chunk size; default that of the fastest pipeline, 64 until one is timed"},
};

const kkt_command kkt_cmd_lookup = {
    .name = "lookup",
    .operands = "NAME",
    .summary = "the configuration of a kernel or pipeline for a problem, and how it was found",
    .details =
        "Tiers: exact (a result for this problem), nearest (measured for a similar one; the\n"
        "distance is the weighted sum of log2 ratios of the sizes; a farther one is taken where\n"
        "its style is known to be faster, or the model says that it is much faster here), model,\n"
        "default.\n"
        "Of a pipeline: its chunk size, its kernels' configurations at it, and the whole curve.",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run_lookup,
};
