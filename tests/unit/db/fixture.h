/* Small records and throw-away folders for the database's tests. */
#ifndef KKT_TESTS_DB_FIXTURE_H
#define KKT_TESTS_DB_FIXTURE_H

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
#include "db/store.h"

#define HASH_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define HASH_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

#define assert_ok(call) assert_status(KKT_OK, call)
#define assert_status(expected, call)                                                              \
    do {                                                                                           \
        error = (kkt_error){0};                                                                    \
        kkt_status status_ = (call);                                                               \
        if (status_ != (expected))                                                                 \
            fail_msg("%s gave %d: %s", #call, (int)status_, error.message);                        \
    } while (0)
#define assert_says(text)                                                                          \
    do {                                                                                           \
        if (!strstr(error.message, text))                                                          \
            fail_msg("'%s' is not in: %s", text, error.message);                                   \
    } while (0)

typedef struct fixture {
    char folder[64], path[96];
} fixture;

static inline int setup(void **state) {
    fixture *f = calloc(1, sizeof *f);
    snprintf(f->folder, sizeof f->folder, "/tmp/kkt_db_XXXXXX");
    if (!f || !mkdtemp(f->folder))
        return -1;
    snprintf(f->path, sizeof f->path, "%s/k.db", f->folder);
    *state = f;
    return 0;
}

static inline int teardown(void **state) {
    fixture *f = *state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", f->folder);
    int code = system(command); /* NOLINT(cert-env33-c): a path of our own */
    free(f);
    return code;
}

static inline kkt_identity identity(const char *config) {
    return (kkt_identity){.kernel = "kkt_solve",
                          .style = "materialized",
                          .arch = "sm90",
                          .device = "h200",
                          .problem = "dtype=bf16,heads_k=16,heads_v=64,tokens=32768",
                          .config = config};
}

static inline kkt_prediction_record prediction(double us) {
    return (kkt_prediction_record){.model_version = "1",
                                   .registers = 96,
                                   .smem_bytes = 33792,
                                   .hbm_bytes = 4.2e8,
                                   .hbm_bytes_per_token = 12800.5,
                                   .blocks_per_sm = 5,
                                   .feasible = true,
                                   .spills = false,
                                   .calibrated = false,
                                   .limiter = "hbm",
                                   .reason = "bytes at the measured copy rate",
                                   .chain_steps = 21,
                                   .lower_bound_us = 98.25,
                                   .predicted_us = us};
}

static inline kkt_build_record build(const char *hash, const char *compiler) {
    return (kkt_build_record){.kernel_hash = hash,
                              .options = "-DCHUNK=64\n-std=c++17",
                              .compiler = compiler,
                              .outcome = KKT_OUTCOME_COMPILED,
                              .registers = 88,
                              .static_smem_bytes = 1024,
                              .dynamic_smem_bytes = 32768,
                              .spill_store_bytes = 4,
                              .spill_load_bytes = 8,
                              .stack_bytes = 16,
                              .barriers = 1,
                              .cubin_bytes = 20480,
                              .compile_ms = 812.5};
}

static inline kkt_run_record run(kkt_provenance provenance, const char *date, double us) {
    return (kkt_run_record){.provenance = provenance,
                            .outcome = KKT_OUTCOME_OK,
                            .gpu = "NVIDIA H200",
                            .driver = "580.159",
                            .date = date,
                            .policy = "flush=512,interval=0.01",
                            .tool_version = "0.1.0",
                            .time_us = us,
                            .time_low_us = us - 0.5,
                            .time_high_us = us + 0.75,
                            .rel_fro = 1.7e-3,
                            .max_abs = 0.015625,
                            .growth = 1.5,
                            .tolerance = 4e-3,
                            .sm_clock_mhz = 1980,
                            .memory_clock_mhz = 3201,
                            .temperature_c = 41,
                            .power_w = 512.5,
                            .throttle = "",
                            .hbm_bytes_counted = KKT_UNKNOWN_REAL,
                            .counters_note = "counters need permission"};
}

/* A candidate with one build and one run. */
static inline int64_t add_run(kkt_db *db, const char *config, const char *hash,
                              const kkt_run_record *record) {
    kkt_error error = {0};
    kkt_identity id = identity(config);
    kkt_build_record compiled = build(hash, "nvrtc 13.0");
    int64_t candidate = 0, build_id = 0, run_id = 0;
    assert_ok(kkt_db_candidate(db, &id, &candidate, &error));
    assert_ok(kkt_db_put_build(db, candidate, &compiled, &build_id, &error));
    assert_ok(kkt_db_put_run(db, build_id, record, &run_id, &error));
    return candidate;
}

#endif
