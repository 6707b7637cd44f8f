/* Baselines through whole runs: a backend that makes times up but has a library, another version of
 * it, or none. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "folder.h"
#include "tuner/engine/session.h"

/* What the backend of the run at hand says of cuBLAS. */
static const char *version_there; /* NULL: it is not there */
static int times_asked;

static kkt_status library(kkt_backend *backend, const kkt_arch *arch, const char *name,
                          char version[KKT_LIBRARY_VERSION_BYTES], kkt_error *err) {
    (void)backend;
    (void)arch;
    times_asked++;
    assert_string_equal(name, "cublas");
    if (version_there == NULL)
        return kkt_fail(err, KKT_ERR_MISSING, 0, "no cuBLAS in this test");
    snprintf(version, KKT_LIBRARY_VERSION_BYTES, "%s", version_there);
    return KKT_OK;
}

typedef struct notes {
    int count;
    char last[300];
    int calls_in_turn; /* timings of a library's call among finalists */
} notes;

static void take_event(void *context, const kkt_session_event *event) {
    notes *n = context;
    n->calls_in_turn +=
        strcmp(event->step, "finalist") == 0 && strcmp(event->id->style, "library") == 0;
}

static void take_note(void *context, const char *line) {
    notes *n = context;
    n->count++;
    snprintf(n->last, sizeof n->last, "%s", line);
}

typedef struct asked {
    const char *db, *fixed, *style; /* `style` NULL: all */
    int64_t evals;
} asked;

static kkt_session_summary run_session(const asked *request, notes *told) {
    kkt_error err = {0};
    kkt_session_summary out;
    kkt_session_options options = {.problem = "m=4096,k=4096",
                                   .fixed = request->fixed,
                                   .budget_evals = request->evals,
                                   .seed = 1,
                                   .counters = KKT_COUNTERS_NONE,
                                   .note = take_note,
                                   .event = take_event,
                                   .event_context = told};
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, request->db);
    options.arch = kkt_arch_find("sm90");
    options.device = kkt_device_first(options.arch);
    kkt_policy_defaults(&options.policy);
    options.policy.energy_seconds = 0.0;
    assert_int_equal(kkt_kernel_parse("gemv", &options.kernel, NULL), KKT_OK);
    assert_int_equal(kkt_search_parse("model", &options.search, NULL), KKT_OK);
    if (request->style != NULL)
        options.variant = kkt_kernel_variant(options.kernel, kkt_style_find(request->style)->id);
    kkt_db *db = NULL;
    kkt_backend *backend = NULL;
    kkt_backend_options fake = {.fake = "seed=3"};
    kkt_backend_type type = *kkt_backend_find("fake");
    type.library = library;
    assert_int_equal(kkt_db_open(path, KKT_DB_WRITE, &db, &err), KKT_OK);
    assert_int_equal(type.open(&fake, &backend, &err), KKT_OK);
    if (kkt_session_run(&options, db, NULL, &type, backend, &out, &err) != KKT_OK)
        fail_msg("%s", err.message);
    type.close(backend);
    kkt_db_close(db);
    return out;
}

typedef struct rows {
    int64_t library, tuned;
    int64_t versioned; /* of the library's, those whose build says which */
    const char *version;
} rows;

static kkt_status count_row(void *context, const kkt_result *result, kkt_error *err) {
    rows *r = context;
    (void)err;
    if (!result->has_run)
        return KKT_OK;
    const bool baseline = strcmp(result->id.style, "library") == 0;
    r->library += baseline;
    r->tuned += !baseline;
    if (baseline) {
        r->versioned +=
            result->build.compiler != NULL && strcmp(result->build.compiler, r->version) == 0;
        assert_int_equal(result->build.registers, KKT_UNKNOWN_INT);
    }
    return KKT_OK;
}

static rows rows_of(const char *name, const char *version) {
    kkt_error err = {0};
    kkt_db *db = NULL;
    rows r = {.version = version};
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(kkt_db_open(path, KKT_DB_READ, &db, &err), KKT_OK);
    assert_int_equal(kkt_db_results(db, NULL, NULL, count_row, &r, &err), KKT_OK);
    kkt_db_close(db);
    return r;
}

/* All calls are timed once, beside the budget, which is for the styles to choose from; their one
 * turn among finalists is beside those of all styles. */
static void they_are_timed_in_the_same_run(void **state) {
    (void)state;
    notes told = {0};
    const asked request = {.db = "same.db", .evals = 24};
    version_there = "13.1.0";
    times_asked = 0;
    kkt_session_summary first = run_session(&request, &told);
    rows r = rows_of(request.db, "cublas 13.1.0");
    const int64_t calls = r.library;
    assert_int_equal(calls, 2); /* every configuration of the style */
    assert_int_equal(first.counts.measured + first.counts.noisy, 24);
    assert_int_equal(r.tuned, 24);
    assert_int_equal(r.versioned, calls);
    assert_int_equal(times_asked, 1);
    assert_int_equal(told.count, 0);
    assert_int_equal(told.calls_in_turn, calls);
    kkt_session_summary again = run_session(&request, &told);
    assert_int_equal(again.counts.measured, 0);
    assert_int_equal(again.counts.reused, 24);
}

/* Another version of the library makes its own results stale. */
static void another_version_is_measured_anew(void **state) {
    (void)state;
    notes told = {0};
    const asked request = {.db = "other.db", .style = "library", .evals = 24};
    version_there = "13.1.0";
    run_session(&request, &told);
    const int64_t calls = rows_of(request.db, "cublas 13.1.0").library;
    version_there = "13.1.1";
    kkt_session_summary second = run_session(&request, &told);
    assert_int_equal(second.counts.measured, calls);
    assert_true(calls > 0);
    assert_int_equal(rows_of(request.db, "cublas 13.1.1").versioned, calls);
}

/* Asked for alone, they need leave nothing of a budget to others. */
static void alone_they_have_all_of_a_budget(void **state) {
    (void)state;
    notes told = {0};
    const asked request = {.db = "alone.db", .style = "library", .evals = 2};
    version_there = "13.1.0";
    assert_int_equal(run_session(&request, &told).counts.measured, 2);
    assert_int_equal(rows_of(request.db, "cublas 13.1.0").versioned, 2);
}

static void without_the_library_they_are_left_out(void **state) {
    (void)state;
    notes told = {0};
    const asked request = {.db = "none.db", .evals = 20};
    version_there = NULL;
    kkt_session_summary summary = run_session(&request, &told);
    assert_int_equal(summary.counts.measured + summary.counts.noisy, 20);
    assert_int_equal(rows_of(request.db, "").library, 0);
    assert_int_equal(told.count, 1);
    assert_string_equal(told.last, "what calls cublas is left out: no cuBLAS in this test");
    const asked alone = {.db = "none.db", .evals = 20, .style = "library"};
    summary = run_session(&alone, &told); /* nothing to do, which was said */
    assert_int_equal(summary.counts.measured, 0);
    assert_int_equal(told.count, 2);
}

/* Parameters that are held belong to the styles to choose from; a baseline without them is none. */
static void held_parameters_leave_them_out(void **state) {
    (void)state;
    notes told = {0};
    const asked request = {.db = "held.db", .evals = 8, .fixed = "threads=128"};
    version_there = "13.1.0";
    run_session(&request, &told);
    assert_int_equal(rows_of(request.db, "").library, 0);
    assert_int_equal(told.count, 0);
}

static kkt_status take_reason(void *context, const kkt_result *result, kkt_error *err) {
    (void)err;
    snprintf(context, 200, "%s", result->stale_reason ? result->stale_reason : "");
    return KKT_OK;
}

/* A recorded call is fresh where the library is not known, and where it is the same one. */
static void staleness_goes_by_tool(void **state) {
    (void)state;
    static const struct {
        const char *then, *now, *told;
    } table[] = {
        {"cublas 13.1.0", NULL, NULL},
        {"cublas 13.1.0", "nvrtc 13.0", NULL},
        {"nvrtc 13.0, cublas 13.1.0", "nvrtc 13.0", NULL},
        {"nvrtc 13.0.48, cublas 13.1.0", "nvrtc 13.0, cublas 13.1.0", NULL},
        {"cublas 13.1.0", "nvrtc 13.0, cublas 13.1.1", "library changed"},
        {"nvrtc 13.0, cublas 13.1.0", "nvrtc 13.1, cublas 13.1.0", "compiler changed"},
        {"nvrtc 13.0", "nvrtc 13.0, cublas 13.1.1", NULL},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        kkt_error err = {0};
        kkt_db *db = NULL;
        int64_t candidate = 0, build = 0;
        const kkt_identity id = {"k", "library", "sm90", "h200", "n=1", "routine=x"};
        const kkt_build_record record = {
            .compiler = table[i].then, .kernel_hash = "ab", .outcome = KKT_OUTCOME_COMPILED};
        const kkt_freshness freshness = {.compiler = table[i].now};
        char name[32], path[128];
        snprintf(name, sizeof name, "stale%zu.db", i);
        snprintf(path, sizeof path, "%s/%s", folder, name);
        assert_int_equal(kkt_db_open(path, KKT_DB_WRITE, &db, &err), KKT_OK);
        assert_int_equal(kkt_db_candidate(db, &id, &candidate, &err), KKT_OK);
        assert_int_equal(kkt_db_put_build(db, candidate, &record, &build, &err), KKT_OK);
        char why[200] = "";
        assert_int_equal(kkt_db_results(db, NULL, &freshness, take_reason, why, &err), KKT_OK);
        if (table[i].told == NULL ? why[0] != '\0' : strstr(why, table[i].told) == NULL)
            fail_msg("%s then, %s now: %s", table[i].then, table[i].now, why);
        kkt_db_close(db);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_are_timed_in_the_same_run),
        cmocka_unit_test(another_version_is_measured_anew),
        cmocka_unit_test(alone_they_have_all_of_a_budget),
        cmocka_unit_test(without_the_library_they_are_left_out),
        cmocka_unit_test(held_parameters_leave_them_out),
        cmocka_unit_test(staleness_goes_by_tool),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
