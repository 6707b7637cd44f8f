/* A database of made-up rows of kkt_solve, and its view. */
#ifndef KKT_TESTS_REPORTS_FIXTURE_H
#define KKT_TESTS_REPORTS_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "db/store.h"
#include "kernels/kernel.h"
#include "reports/report.h"
#include "reports/view.h"

#define OLD_HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

typedef struct fixture {
    char folder[64], path[96];
    kkt_db *db;
    kkt_arena *arena;
    const kkt_arch *arch;
    const kkt_device *device;
    const kkt_kernel *kernel;
    const kkt_variant *variant;
    char hash[65]; /* of the present sources */
    kkt_freshness freshness;
    const kkt_freshness *sources; /* NULL, or gives the options of the rows; their compiler is then
                                     unknown, so that any present one matches */
    kkt_error error;
} fixture;

static inline bool present(void *context, const kkt_identity *id, const char **hash,
                           const char **options) {
    fixture *f = context;
    *hash = f->hash;
    *options = NULL;
    return strcmp(id->kernel, f->kernel->name) == 0;
}

static inline int setup(void **state) {
    fixture *f = calloc(1, sizeof *f);
    if (f == NULL)
        return -1;
    snprintf(f->folder, sizeof f->folder, "/tmp/kkt_reports_XXXXXX");
    if (mkdtemp(f->folder) == NULL)
        return -1;
    snprintf(f->path, sizeof f->path, "%s/k.db", f->folder);
    f->arena = kkt_arena_open();
    f->arch = kkt_arch_find("sm90");
    if (kkt_device_parse("h200", f->arch, &f->device, NULL) != KKT_OK ||
        kkt_kernel_parse("kkt_solve", &f->kernel, NULL) != KKT_OK ||
        kkt_db_open(f->path, KKT_DB_WRITE, &f->db, NULL) != KKT_OK)
        return -1;
    f->variant = f->kernel->variants[0];
    kkt_variant_hash(f->variant, f->hash);
    f->freshness = (kkt_freshness){.present = present, .context = f};
    *state = f;
    return 0;
}

static inline int teardown(void **state) {
    fixture *f = *state;
    char command[128];
    kkt_db_close(f->db);
    kkt_arena_close(f->arena);
    snprintf(command, sizeof command, "rm -rf '%s'", f->folder);
    int code = system(command); /* NOLINT(cert-env33-c): a path of our own */
    free(f);
    return code;
}

/* What a configuration of kkt_solve leaves out: couplings through shared memory, four warps. */
static inline const char *canonical(fixture *f, const kkt_param_table *table, const char *text) {
    kkt_values values;
    kkt_text out = {0};
    kkt_params_defaults(table, &values);
    if (kkt_params_find(table, "couple") >= 0 &&
        kkt_params_parse(table, "couple=tf32,threads=128", &values, NULL, &f->error) != KKT_OK)
        fail_msg("%s", f->error.message);
    if (kkt_params_parse(table, text, &values, NULL, &f->error) != KKT_OK)
        fail_msg("%s", f->error.message);
    kkt_params_format(table, &values, &out);
    const char *copy = kkt_arena_strdup(f->arena, kkt_text_get(&out));
    kkt_text_free(&out);
    return copy;
}

static inline kkt_identity identity(fixture *f, const char *problem, const char *config) {
    return (kkt_identity){
        .kernel = f->kernel->name,
        .style = kkt_style_get(f->variant->style)->name,
        .arch = "sm90",
        .device = "h200",
        .problem = canonical(f, &f->kernel->problem, problem),
        .config = canonical(f, &f->variant->params, config),
    };
}

static inline kkt_prediction_record prediction(double us) {
    return (kkt_prediction_record){.model_version = "1",
                                   .registers = 90,
                                   .smem_bytes = 30000,
                                   .hbm_bytes = 419430400,
                                   .hbm_bytes_per_token = 12800,
                                   .blocks_per_sm = 5,
                                   .feasible = true,
                                   .limiter = "hbm",
                                   .reason = "419 MB at 4.8 TB/s",
                                   .chain_steps = 19,
                                   .lower_bound_us = us / 2,
                                   .predicted_us = us};
}

static inline int64_t add_build(fixture *f, const kkt_identity *id, const char *hash) {
    int64_t candidate, build;
    kkt_prediction_record predicted = prediction(150);
    kkt_build_record record = {.kernel_hash = hash,
                               .options = "-arch=sm_90a",
                               .compiler = "nvrtc 13.0",
                               .outcome = KKT_OUTCOME_COMPILED,
                               .registers = 96,
                               .static_smem_bytes = 0,
                               .dynamic_smem_bytes = 33792,
                               .barriers = 1,
                               .cubin_bytes = 20000,
                               .compile_ms = 200};
    const char *present_hash;
    if (f->sources != NULL) {
        record.compiler = NULL;
        if (!f->sources->present(f->sources->context, id, &present_hash, &record.options))
            fail_msg("no options for %s", id->config);
    }
    assert_int_equal(kkt_db_candidate(f->db, id, &candidate, &f->error), KKT_OK);
    assert_int_equal(kkt_db_put_prediction(f->db, candidate, &predicted, &f->error), KKT_OK);
    assert_int_equal(kkt_db_put_build(f->db, candidate, &record, &build, &f->error), KKT_OK);
    return build;
}

static inline void add_run(fixture *f, const kkt_identity *id, const char *hash,
                           kkt_provenance provenance, kkt_outcome outcome, const char *reason,
                           double low, double median, double high) {
    int64_t run;
    kkt_run_record record = {.provenance = provenance,
                             .outcome = outcome,
                             .reason = reason,
                             .gpu = "NVIDIA H200",
                             .driver = "580.159",
                             .date = "2026-07-01T10:00:00Z",
                             .policy = "seed=1",
                             .tool_version = "0.1.0",
                             .time_us = median,
                             .time_low_us = low,
                             .time_high_us = high,
                             .sample_count = 60,
                             .rel_fro = 1.7e-3,
                             .max_abs = 2e-3,
                             .growth = 1,
                             .tolerance = 4e-3,
                             .sm_clock_mhz = 1980,
                             .memory_clock_mhz = 3201,
                             .temperature_c = 40,
                             .power_w = 500,
                             .throttle = "",
                             .hbm_bytes_counted = KKT_UNKNOWN_REAL};
    int64_t build = add_build(f, id, hash);
    if (kkt_db_put_run(f->db, build, &record, &run, &f->error) != KKT_OK)
        fail_msg("%s", f->error.message);
}

static inline void add_measured(fixture *f, const char *problem, const char *config, double low,
                                double median, double high) {
    kkt_identity id = identity(f, problem, config);
    add_run(f, &id, f->hash, KKT_MEASURED, KKT_OUTCOME_OK, NULL, low, median, high);
}

static inline kkt_view make_view(fixture *f) {
    kkt_view view;
    if (kkt_view_make(f->db, &f->freshness, f->arch, f->device, NULL, f->arena, &view, &f->error) !=
        KKT_OK)
        fail_msg("%s", f->error.message);
    return view;
}

static inline const kkt_entry *entry_at(fixture *f, const kkt_view *view, const char *problem,
                                        int64_t chunk) {
    const char *text = canonical(f, &f->kernel->problem, problem);
    for (size_t i = 0; i < view->entry_count; i++)
        if (strcmp(view->entries[i].kernel, f->kernel->name) == 0 &&
            strcmp(view->entries[i].problem, text) == 0 && view->entries[i].chunk == chunk)
            return &view->entries[i];
    fail_msg("no entry of %s at %lld", text, (long long)chunk);
    return NULL;
}

static inline kkt_text render(fixture *f, const kkt_view *view, const char *name) {
    const kkt_report_type *type;
    kkt_text text = {0};
    if (kkt_report_parse(name, &type, &f->error) != KKT_OK ||
        type->render(view, &text, &f->error) != KKT_OK)
        fail_msg("%s", f->error.message);
    return text;
}

#endif
