/* Whole runs on the fake backend: what is stored, counted, resumed and survived. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "db/store_sqlite.h"
#include "folder.h"
#include "tuner/engine/session.h"

typedef struct run_request {
    const char *db;
    const char *fake; /* options of the fake backend; NULL: no backend at all */
    int64_t evals;
    double seconds;
    const char *fixed; /* NULL: PART */
    bool retry, revalidate;
} run_request;

/* Of the space: all chunk sizes and ways, and no more than a moment's walk. */
#define PART "carveout=0,heads_per_block=4,min_blocks=0,persistent=0"

static const char *in_folder(const char *name, char path[128]) {
    snprintf(path, 128, "%s/%s", folder, name);
    return path;
}

static kkt_status run_session(const run_request *request, kkt_session_summary *out,
                              kkt_error *err) {
    kkt_session_options options = {.problem = "tokens=8192", .budget_evals = request->evals};
    options.budget_seconds = request->seconds;
    options.fixed = request->fixed ? request->fixed : PART;
    options.retry = request->retry;
    options.revalidate = request->revalidate;
    options.arch = kkt_arch_find("sm90");
    options.device = kkt_device_first(options.arch);
    options.seed = 1;
    kkt_policy_defaults(&options.policy);
    assert_int_equal(kkt_kernel_parse("kkt_solve", &options.kernel, NULL), KKT_OK);
    assert_int_equal(kkt_search_parse("model", &options.search, NULL), KKT_OK);
    kkt_db *db = NULL;
    kkt_status status = kkt_db_open(request->db, KKT_DB_WRITE, &db, err);
    if (status != KKT_OK) {
        return status;
    }
    char cache[128];
    kkt_compile_pool_options pool_options = {.cache = in_folder("cache", cache), .workers = 1};
    kkt_compile_pool *pool = NULL;
    assert_int_equal(kkt_compile_pool_open(&pool_options, &pool, err), KKT_OK);
    const kkt_backend_type *type = NULL;
    kkt_backend *backend = NULL;
    if (request->fake) {
        kkt_backend_options fake = {.fake = request->fake};
        type = kkt_backend_find("fake");
        assert_int_equal(type->open(&fake, &backend, err), KKT_OK);
    }
    status = kkt_session_run(&options, db, pool, type, backend, out, err);
    if (backend) {
        type->close(backend);
    }
    kkt_compile_pool_close(pool);
    kkt_db_close(db);
    return status;
}

typedef struct best_row {
    double time_us;
    char config[512];
    int64_t rows, failed;
} best_row;

static kkt_status visit_best(void *context, const kkt_result *result, kkt_error *err) {
    (void)err;
    best_row *best = context;
    best->rows++;
    if (result->outcome != KKT_OUTCOME_OK) {
        best->failed += result->has_run;
        return KKT_OK;
    }
    if (!(result->run.time_us >= best->time_us)) {
        best->time_us = result->run.time_us;
        snprintf(best->config, sizeof best->config, "%s", result->id.config);
    }
    return KKT_OK;
}

static best_row best_of(const char *path) {
    best_row best = {.time_us = (double)NAN};
    kkt_db *db = NULL;
    assert_int_equal(kkt_db_open(path, KKT_DB_READ, &db, NULL), KKT_OK);
    kkt_result_filter filter = {0};
    assert_int_equal(kkt_db_results(db, &filter, NULL, visit_best, &best, NULL), KKT_OK);
    kkt_db_close(db);
    return best;
}

static void a_budget_of_seconds_covers_the_walk(void **state) {
    (void)state;
    char path[128];
    run_request request = {
        .db = in_folder("walk.db", path), .fake = "seed=5", .evals = 1, .fixed = ""};
    kkt_session_summary whole;
    kkt_session_summary part;
    assert_int_equal(run_session(&request, &whole, NULL), KKT_OK);
    request.db = in_folder("part.db", path);
    request.seconds = 1e-3;
    assert_int_equal(run_session(&request, &part, NULL), KKT_OK);
    assert_true(part.counts.enumerated < whole.counts.enumerated / 2);
}

static void measures_and_reuses(void **state) {
    (void)state;
    char path[128];
    run_request request = {.db = in_folder("reuse.db", path), .fake = "seed=5", .evals = 24};
    kkt_session_summary first;
    kkt_session_summary second;
    assert_int_equal(run_session(&request, &first, NULL), KKT_OK);
    assert_int_equal(first.tier, KKT_TIER_MEASURED);
    assert_int_equal(first.counts.measured + first.counts.noisy, 24);
    assert_int_equal(first.counts.reused, 0);
    assert_true(first.counts.rejected > 0);
    best_row before = best_of(path);
    assert_int_equal(run_session(&request, &second, NULL), KKT_OK);
    assert_int_equal(second.counts.reused, 24);
    assert_int_equal(second.counts.measured, 0);
    best_row after = best_of(path);
    assert_string_equal(before.config, after.config);
    assert_int_equal(before.rows, after.rows);
}

/* A run stopped half-way and resumed ends like one that was never stopped. */
static void resumes_to_the_same_end(void **state) {
    (void)state;
    char whole_path[128];
    char parts_path[128];
    run_request whole = {.db = in_folder("whole.db", whole_path), .fake = "seed=9", .evals = 40};
    run_request parts = {.db = in_folder("parts.db", parts_path), .fake = "seed=9", .evals = 40};
    kkt_session_summary summary;
    assert_int_equal(run_session(&whole, &summary, NULL), KKT_OK);
    summary.counts.measured = 0;
    parts.fake = "seed=9,sleep_us=5000"; /* so that it ends somewhere on the way */
    for (parts.seconds = 0.01; summary.counts.measured == 0; parts.seconds *= 2) {
        assert_int_equal(run_session(&parts, &summary, NULL), KKT_OK);
    }
    assert_true(summary.counts.measured < 40);
    parts.fake = "seed=9";
    parts.seconds = 0;
    assert_int_equal(run_session(&parts, &summary, NULL), KKT_OK);
    best_row a = best_of(whole_path);
    best_row b = best_of(parts_path);
    assert_string_equal(a.config, b.config);
    assert_true(a.time_us <= b.time_us && b.time_us <= a.time_us);
}

static void faults_cost_one_candidate(void **state) {
    (void)state;
    static const struct {
        const char *fault;
        size_t counter;
    } rows[] = {
        {"illegal_address", offsetof(kkt_session_counts, launch_failed)},
        {"hang", offsetof(kkt_session_counts, timed_out)},
        {"abort", offsetof(kkt_session_counts, crashed)},
        {"wrong", offsetof(kkt_session_counts, wrong_result)},
        {"race", offsetof(kkt_session_counts, racy)},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char path[128];
        char fake[64];
        char name[64];
        snprintf(name, sizeof name, "fault-%s.db", rows[i].fault);
        snprintf(fake, sizeof fake, "seed=3,fault=%s", rows[i].fault);
        run_request request = {.db = in_folder(name, path), .fake = fake, .evals = 24};
        kkt_session_summary summary;
        assert_int_equal(run_session(&request, &summary, NULL), KKT_OK);
        int64_t faults;
        memcpy(&faults, (const char *)&summary.counts + rows[i].counter, sizeof faults);
        assert_true(faults >= 1);
        assert_true(summary.counts.measured > 12);
        assert_int_equal(summary.counts.measured + summary.counts.noisy + faults, 24);
        best_row best = best_of(path);
        assert_true(best.failed >= 1);
        assert_true(isfinite(best.time_us));
        kkt_session_summary again;
        assert_int_equal(run_session(&request, &again, NULL), KKT_OK);
        assert_int_equal(again.counts.reused, 24); /* a failure is not tried again either */
        assert_int_equal(again.counts.quarantined, faults);
        /* The cause is gone: nobody notices unless told to look. */
        request.fake = "seed=3";
        assert_int_equal(run_session(&request, &again, NULL), KKT_OK);
        assert_int_equal(again.counts.quarantined, faults);
        assert_int_equal(again.counts.measured + again.counts.noisy, 0);
        request.retry = true;
        assert_int_equal(run_session(&request, &again, NULL), KKT_OK);
        /* Each failure again; then the search, which their times may lead elsewhere. */
        assert_int_equal(again.counts.quarantined, 0);
        assert_int_equal(again.counts.measured + again.counts.noisy,
                         faults + 24 - again.counts.reused);
        assert_int_equal(best_of(path).failed, 0);
    }
}

static void forget_the_gate(const char *path) {
    kkt_db *db = NULL;
    assert_int_equal(kkt_db_open(path, KKT_DB_WRITE, &db, NULL), KKT_OK);
    assert_int_equal(
        kkt_db_exec(db, "UPDATE runs SET policy = replace(policy, ',gate=', ',gate_then=')", NULL),
        KKT_OK);
    kkt_db_close(db);
}

/* Turned down by a gate that asked for something else: tried again. What passed is not. */
static void verdicts_of_a_former_gate(void **state) {
    (void)state;
    char path[128];
    run_request request = {
        .db = in_folder("gate.db", path), .fake = "seed=3,fault=wrong", .evals = 24};
    kkt_session_summary first;
    kkt_session_summary again;
    assert_int_equal(run_session(&request, &first, NULL), KKT_OK);
    assert_true(first.counts.wrong_result >= 1 && first.counts.measured > 12);
    request.fake = "seed=3";
    assert_int_equal(run_session(&request, &again, NULL), KKT_OK);
    assert_int_equal(again.counts.reused, 24);
    assert_int_equal(again.counts.quarantined, first.counts.wrong_result);
    forget_the_gate(path);
    request.revalidate = true;
    assert_int_equal(run_session(&request, &again, NULL), KKT_OK);
    assert_int_equal(again.counts.quarantined, 0);
    assert_int_equal(again.counts.measured + again.counts.noisy, first.counts.wrong_result);
    assert_int_equal(best_of(path).failed, 0);
}

static void fixed_parameters(void **state) {
    (void)state;
    char path[128];
    run_request request = {
        .db = in_folder("fixed.db", path), .fake = "", .evals = 8, .fixed = PART ",chunk=32"};
    kkt_session_summary summary;
    assert_int_equal(run_session(&request, &summary, NULL), KKT_OK);
    assert_non_null(strstr(best_of(path).config, "chunk=32,"));
    kkt_error err = {0};
    request.fixed = PART ",chunk=33";
    assert_int_equal(run_session(&request, &summary, &err), KKT_ERR_INPUT);
    assert_non_null(strstr(err.message, "33"));
}

typedef struct one_row {
    int64_t candidate_id;
    bool from_gpu;
    double time_us;
} one_row;

static kkt_status visit_one(void *context, const kkt_result *result, kkt_error *err) {
    (void)err;
    one_row *row = context;
    if (result->has_run && (row->candidate_id == 0 || row->candidate_id == result->candidate_id)) {
        row->candidate_id = result->candidate_id;
        row->from_gpu = result->run.gpu && strcmp(result->run.gpu, "NVIDIA H200") == 0;
        row->time_us = result->run.time_us;
    }
    return KKT_OK;
}

/* However late they come, made-up times never stand before a GPU's. */
static void made_up_times_rank_last(void **state) {
    (void)state;
    char path[128];
    run_request request = {.db = in_folder("mixed.db", path), .fake = "seed=5", .evals = 8};
    kkt_session_summary summary;
    assert_int_equal(run_session(&request, &summary, NULL), KKT_OK);
    kkt_db *db = NULL;
    one_row row = {0};
    kkt_result_filter filter = {0};
    assert_int_equal(kkt_db_open(path, KKT_DB_WRITE, &db, NULL), KKT_OK);
    assert_int_equal(kkt_db_results(db, &filter, NULL, visit_one, &row, NULL), KKT_OK);
    assert_false(row.from_gpu);
    kkt_build_record build = {.kernel_hash = "0", .options = "", .compiler = "nvrtc 13.0"};
    build.outcome = KKT_OUTCOME_COMPILED;
    kkt_run_record run = {.provenance = KKT_REPLAYED,
                          .outcome = KKT_OUTCOME_OK,
                          .gpu = "NVIDIA H200",
                          .date = "2001-01-01T00:00:00Z",
                          .time_us = 12345,
                          .time_low_us = 12344,
                          .time_high_us = 12346};
    int64_t build_id;
    int64_t run_id;
    assert_int_equal(kkt_db_put_build(db, row.candidate_id, &build, &build_id, NULL), KKT_OK);
    assert_int_equal(kkt_db_put_run(db, build_id, &run, &run_id, NULL), KKT_OK);
    assert_int_equal(kkt_db_results(db, &filter, NULL, visit_one, &row, NULL), KKT_OK);
    assert_true(row.from_gpu);
    assert_true(row.time_us > 12344 && row.time_us < 12346);
    kkt_db_close(db);
}

/* What cannot give a result says so instead of ending well with nothing. */
static void empty_searches(void **state) {
    (void)state;
    char path[128];
    kkt_error err = {0};
    kkt_session_summary summary;
    run_request request = {
        .db = in_folder("empty.db", path), .fake = "", .fixed = PART ",couple=tf32,transpose=1"};
    assert_int_equal(run_session(&request, &summary, &err), KKT_ERR_MISSING);
    assert_non_null(strstr(err.message, "transpose"));
}

/* A run without a GPU that compiled all it meant to leaves its repetition nothing to walk through;
 * other parameters to hold are another run. */
static void repetition_finds_nothing_left(void **state) {
    (void)state;
    char path[128];
    kkt_session_summary first;
    kkt_session_summary second;
    run_request request = {.db = in_folder("mark.db", path),
                           .fixed = "chunk=16,couple=tf32,inverse=row,kload=ldg,threads=32"};
    assert_int_equal(run_session(&request, &first, NULL), KKT_OK);
    if (first.counts.compiled == 0) {
        skip(); /* no NVRTC here */
    }
    assert_int_equal(run_session(&request, &second, NULL), KKT_OK);
    assert_int_equal(second.counts.compiled, 0);
    assert_int_equal(second.counts.enumerated, first.counts.enumerated);
    assert_int_equal(second.counts.rejected, first.counts.rejected);
    assert_true(second.seconds < first.seconds);
    request.fixed = "chunk=16,couple=tf32,inverse=row,kload=ldg,threads=32,row_stride=17";
    assert_int_equal(run_session(&request, &second, NULL), KKT_OK);
    assert_true(second.counts.enumerated < first.counts.enumerated);
}

/* The program is its own compile worker, as kkttune is. */
int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "--worker") == 0) {
        return kkt_compile_worker_main();
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_budget_of_seconds_covers_the_walk),
        cmocka_unit_test(measures_and_reuses),
        cmocka_unit_test(resumes_to_the_same_end),
        cmocka_unit_test(faults_cost_one_candidate),
        cmocka_unit_test(verdicts_of_a_former_gate),
        cmocka_unit_test(fixed_parameters),
        cmocka_unit_test(made_up_times_rank_last),
        cmocka_unit_test(empty_searches),
        cmocka_unit_test(repetition_finds_nothing_left),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
