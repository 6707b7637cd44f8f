/* Pipelines in whole runs on the fake backend. This file brings its own lists of kernels and
 * pipelines. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "folder.h"
#include "kernels/pipeline.h"
#include "synthetic.h"
#include "tuner/engine/session.h"

static const char *const problems[] = {"tokens=4096", "tokens=20000", NULL};
static const kkt_pipeline twice = {.name = "twice",
                                   .whole = "step",
                                   .members = {"step", "step"},
                                   .problems = problems,
                                   .main_problems = 2};
static const kkt_pipeline sketch = {.name = "sketch",
                                    .whole = "step",
                                    .members = {"step", "not_there"},
                                    .problems = problems,
                                    .main_problems = 1};
static const kkt_pipeline *const pipelines[] = {&twice, &sketch};

const kkt_pipeline *const *kkt_pipelines(size_t *count) {
    *count = 2;
    return pipelines;
}

/* One launch that waits for the one before it by itself: pipelines can overlap. */
static void one_launch(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                       kkt_plan *out) {
    (void)problem;
    (void)config;
    (void)arch;
    *out = (kkt_plan){.launch_count = 1};
    out->launches[0].waits = true;
}

static const kkt_variant variant = {
    .style = KKT_STYLE_PIPELINED,
    .params = {"parameter", synthetic_params, sizeof synthetic_params / sizeof *synthetic_params},
    .source = "none.cu",
    .applicable = synthetic_applicable,
    .footprint = synthetic_footprint,
    .plan = one_launch,
};
static const kkt_variant *const variants[] = {&variant};

static const kkt_kernel step = {
    .name = "step",
    .problem = {"problem key", synthetic_problem, 1},
    .default_problems = synthetic_problems,
    .variants = variants,
    .variant_count = 1,
    .chunk_param = "chunk",
};

static const kkt_kernel *const families[] = {&step};

const kkt_kernel *const *kkt_kernels(size_t *count) {
    *count = 1;
    return families;
}

kkt_status kkt_kernel_parse(const char *name, const kkt_kernel **out, kkt_error *err) {
    if (strcmp(name, families[0]->name) != 0) {
        return kkt_fail(err, KKT_ERR_INPUT, 0, "unknown kernel '%s'", name);
    }
    *out = families[0];
    return KKT_OK;
}

typedef struct run_request {
    const char *name; /* of the database's file */
    const kkt_pipeline *pipeline;
    const char *problem, *fixed, *fake;
    int64_t evals;
} run_request;

static char *path_of(const char *name, char path[160]) {
    snprintf(path, 160, "%s/%s", folder, name);
    return path;
}

static void count_events(void *context, const kkt_session_event *event) {
    int *count = context;
    *count += strcmp(event->step, "pipeline") == 0;
}

/* What the progress of the last phase said. */
static int64_t pipelines_done;

static void note_progress(void *context, const char *phase, int64_t done, int64_t total,
                          const char *detail) {
    (void)context;
    (void)detail;
    if (strcmp(phase, "pipelines") == 0) {
        assert_int_equal(done, total);
        pipelines_done = done;
    }
}

static kkt_status run(const run_request *request, kkt_session_summary *out, int *events,
                      kkt_error *err) {
    char path[160], cache[160];
    kkt_session_options options = {.pipeline = request->pipeline,
                                   .problem = request->problem,
                                   .fixed = request->fixed,
                                   .budget_evals = request->evals,
                                   .seed = 1,
                                   .progress = note_progress,
                                   .event = count_events,
                                   .event_context = events};
    *events = 0;
    options.arch = kkt_arch_find("sm90");
    options.device = kkt_device_first(options.arch);
    kkt_policy_defaults(&options.policy);
    assert_int_equal(kkt_search_parse("model", &options.search, NULL), KKT_OK);
    kkt_db *db = NULL;
    kkt_compile_pool *pool = NULL;
    kkt_compile_pool_options pool_options = {.cache = path_of("cache", cache), .workers = 1};
    assert_int_equal(kkt_db_open(path_of(request->name, path), KKT_DB_WRITE, &db, err), KKT_OK);
    assert_int_equal(kkt_compile_pool_open(&pool_options, &pool, err), KKT_OK);
    kkt_backend_options fake = {.fake = request->fake ? request->fake : "seed=5"};
    const kkt_backend_type *type = kkt_backend_find("fake");
    kkt_backend *backend = NULL;
    assert_int_equal(type->open(&fake, &backend, err), KKT_OK);
    kkt_status status = kkt_session_run(&options, db, pool, type, backend, out, err);
    type->close(backend);
    kkt_compile_pool_close(pool);
    kkt_db_close(db);
    return status;
}

/* What is stored of pipelines, by chunk size. */
typedef struct stored {
    int runs, failed, overlapped;
    int64_t chunks; /* bit C for chunk size C / 16 */
    bool sums;      /* every run is close to the sum of its members' own times */
} stored;

static kkt_status visit(void *context, const kkt_pipeline_record *record, kkt_error *err) {
    (void)err;
    stored *s = context;
    s->runs++;
    s->overlapped += record->order == KKT_OVERLAPPED;
    s->chunks |= (int64_t)1 << record->chunk / 16;
    assert_int_equal(record->member_count, 2);
    if (record->run.outcome != KKT_OUTCOME_OK) {
        s->failed++;
        return KKT_OK;
    }
    /* The fake backend takes 5 % off where launches overlap, and adds 2 % at most elsewhere. */
    s->sums = s->sums && fabs(record->run.time_us / record->members_us - 1) < 0.07;
    for (size_t m = 0; m < 2; m++) {
        char chunk[32];
        snprintf(chunk, sizeof chunk, "chunk=%lld,", (long long)record->chunk);
        assert_non_null(strstr(record->members[m].id.config, chunk));
    }
    return KKT_OK;
}

static stored look(const char *name) {
    char path[160];
    stored s = {.sums = true};
    kkt_db *db = NULL;
    assert_int_equal(kkt_db_open(path_of(name, path), KKT_DB_READ, &db, NULL), KKT_OK);
    assert_int_equal(kkt_db_pipeline_runs(db, NULL, NULL, visit, &s, NULL), KKT_OK);
    kkt_db_close(db);
    return s;
}

static const int64_t all_chunks = 1 << 1 | 1 << 2 | 1 << 4 | 1 << 8;

static void every_chunk_is_tuned_and_timed(void **state) {
    (void)state;
    int events;
    kkt_session_summary first, second;
    run_request request = {.name = "all.db", .pipeline = &twice, .evals = 48};
    assert_int_equal(run(&request, &first, &events, NULL), KKT_OK);
    assert_int_equal(first.counts.measured + first.counts.noisy, 48);
    assert_int_equal(first.counts.pipelines, 16); /* two problems, four chunk sizes, two orders */
    assert_int_equal(events, 16);
    assert_int_equal(pipelines_done, 16);
    pipelines_done = 0;
    stored s = look("all.db");
    assert_int_equal(s.runs, 16);
    assert_int_equal(s.overlapped, 8);
    assert_int_equal(s.chunks, all_chunks);
    assert_true(s.sums);
    /* Again: everything is known. */
    assert_int_equal(run(&request, &second, &events, NULL), KKT_OK);
    assert_int_equal(second.counts.measured, 0);
    assert_int_equal(second.counts.pipelines, 0);
    assert_int_equal(pipelines_done, 16); /* not 0 of 0 */
    assert_int_equal(look("all.db").runs, 16);
}

static void one_problem_and_one_chunk(void **state) {
    (void)state;
    int events;
    kkt_session_summary summary;
    run_request request = {
        .name = "one.db", .pipeline = &twice, .problem = "tokens=1024", .fixed = "chunk=32"};
    assert_int_equal(run(&request, &summary, &events, NULL), KKT_OK);
    assert_int_equal(summary.counts.measured + summary.counts.noisy, 16);
    stored s = look("one.db");
    assert_int_equal(s.runs, 2);
    assert_int_equal(s.chunks, 1 << 2);
}

/* The main job times its own problems, and measures a few candidates where a chunk size has none:
 * the search of one kernel need not have come by all of them. */
static void the_main_job_fills_what_is_missing(void **state) {
    (void)state;
    int events;
    kkt_session_summary summary;
    run_request request = {.name = "main.db"};
    assert_int_equal(run(&request, &summary, &events, NULL), KKT_OK);
    /* The kernel's own problem, and one of the pipeline's that it has not. */
    assert_true(summary.counts.measured + summary.counts.noisy >= 64 + 4 * 8);
    stored s = look("main.db");
    assert_int_equal(s.runs, 16);
    assert_int_equal(s.chunks, all_chunks);
}

static void a_failure_is_stored_and_not_repeated(void **state) {
    (void)state;
    int events;
    kkt_session_summary summary;
    char fake[64], path[160];
    run_request request = {
        .name = "bad.db", .pipeline = &twice, .problem = problems[0], .fake = fake};
    stored before = {0};
    request.evals = 16;
    /* Many seeds: sooner or later one of the four chunk sizes is hit. */
    for (int seed = 1; seed < 40 && before.failed == 0; seed++) {
        snprintf(fake, sizeof fake, "seed=%d,fault=wrong+race", seed);
        unlink(path_of("bad.db", path));
        assert_int_equal(run(&request, &summary, &events, NULL), KKT_OK);
        before = look("bad.db");
    }
    assert_true(before.failed > 0);
    assert_int_equal(run(&request, &summary, &events, NULL), KKT_OK);
    assert_int_equal(summary.counts.pipelines, 0);
    assert_int_equal(look("bad.db").runs, before.runs);
}

static void a_missing_kernel_is_named(void **state) {
    (void)state;
    int events;
    kkt_error err = {0};
    kkt_session_summary summary;
    run_request request = {.name = "sketch.db", .pipeline = &sketch};
    assert_int_equal(run(&request, &summary, &events, &err), KKT_ERR_INPUT);
    assert_non_null(strstr(err.message, "sketch needs the kernel not_there"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_chunk_is_tuned_and_timed),
        cmocka_unit_test(one_problem_and_one_chunk),
        cmocka_unit_test(the_main_job_fills_what_is_missing),
        cmocka_unit_test(a_failure_is_stored_and_not_repeated),
        cmocka_unit_test(a_missing_kernel_is_named),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
