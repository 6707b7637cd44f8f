/* Hardware counters through whole runs on the fake backend: who is counted, what is stored, and a
 * run that is denied them. */
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

enum { EVALS = 40, FINALISTS = 5 };

/* Of the space: all chunk sizes and ways, and no more than a moment's walk. */
#define PART "carveout=0,heads_per_block=4,min_blocks=0,persistent=0"

typedef struct run_request {
    const char *db, *fake;
    kkt_counters_scope scope;
} run_request;

static kkt_session_summary run_session(const run_request *request) {
    kkt_error err = {0};
    kkt_session_summary out;
    kkt_session_options options = {.problem = "tokens=8192", .budget_evals = EVALS, .fixed = PART};
    char path[128], cache[128];
    snprintf(path, sizeof path, "%s/%s", folder, request->db);
    snprintf(cache, sizeof cache, "%s/cache", folder);
    options.arch = kkt_arch_find("sm90");
    options.device = kkt_device_first(options.arch);
    options.seed = 1;
    options.counters = request->scope;
    kkt_policy_defaults(&options.policy);
    assert_int_equal(kkt_kernel_parse("kkt_solve", &options.kernel, NULL), KKT_OK);
    assert_int_equal(kkt_search_parse("model", &options.search, NULL), KKT_OK);
    kkt_db *db = NULL;
    kkt_backend *backend = NULL;
    kkt_compile_pool *pool = NULL;
    kkt_compile_pool_options pool_options = {.cache = cache, .workers = 1};
    kkt_backend_options fake = {.fake = request->fake};
    const kkt_backend_type *type = kkt_backend_find("fake");
    assert_int_equal(kkt_db_open(path, KKT_DB_WRITE, &db, &err), KKT_OK);
    assert_int_equal(kkt_compile_pool_open(&pool_options, &pool, &err), KKT_OK);
    assert_int_equal(type->open(&fake, &backend, &err), KKT_OK);
    assert_int_equal(kkt_session_run(&options, db, pool, type, backend, &out, &err), KKT_OK);
    type->close(backend);
    kkt_compile_pool_close(pool);
    kkt_db_close(db);
    return out;
}

/* What the rows of a database say. */
typedef struct rows {
    kkt_db *db;
    int64_t timed, finalists, counted, noted, counters;
    char note[400];
    double worst; /* counted against predicted bytes, largest relative difference */
} rows;

static kkt_status add_counter(void *context, const kkt_counter_record *counter, kkt_error *err) {
    (void)err;
    rows *r = context;
    assert_string_equal(counter->chip, "GH100");
    r->counters++;
    return KKT_OK;
}

static kkt_status add_row(void *context, const kkt_result *result, kkt_error *err) {
    rows *r = context;
    if (!result->has_run || !isfinite(result->run.time_us)) {
        return KKT_OK;
    }
    r->timed++;
    r->finalists += strstr(result->run.policy, "finalist") != NULL;
    if (result->run.counters_note) {
        r->noted++;
        snprintf(r->note, sizeof r->note, "%s", result->run.counters_note);
    }
    if (isfinite(result->run.hbm_bytes_counted)) {
        r->counted++;
        double ratio = result->run.hbm_bytes_counted / result->prediction.hbm_bytes;
        r->worst = fmax(r->worst, fabs(ratio - 1.0));
    }
    return kkt_db_counters(r->db, result->run_id, add_counter, r, err);
}

static rows rows_of(const char *name) {
    kkt_error err = {0};
    rows r = {0};
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(kkt_db_open(path, KKT_DB_READ, &r.db, &err), KKT_OK);
    assert_int_equal(kkt_db_results(r.db, NULL, NULL, add_row, &r, &err), KKT_OK);
    kkt_db_close(r.db);
    return r;
}

static void finalists_are_counted_once(void **state) {
    (void)state;
    run_request request = {"finalists.db", "seed=2", KKT_COUNTERS_FINALISTS};
    kkt_session_summary summary = run_session(&request);
    rows r = rows_of(request.db);
    assert_true(r.finalists >= FINALISTS);
    assert_true(r.finalists < r.timed);
    assert_true(r.counted >= r.finalists); /* a chunk's only candidate is counted, not re-timed */
    assert_true(r.counted < r.timed);
    assert_int_equal(summary.counts.counted, r.counted);
    assert_int_equal(r.counters, r.counted * KKT_COUNTER_COUNT);
    assert_int_equal(r.noted, 0);
    assert_true(r.worst <= 0.03);
    assert_string_equal(summary.counters_note, "");
    kkt_session_summary again = run_session(&request);
    assert_int_equal(again.counts.counted, 0);
    assert_int_equal(rows_of(request.db).counted, r.counted);
}

static void all_or_none(void **state) {
    (void)state;
    run_request request = {"all.db", "seed=2", KKT_COUNTERS_NONE};
    assert_int_equal(run_session(&request).counts.counted, 0);
    rows r = rows_of(request.db);
    assert_int_equal(r.counted + r.noted, 0);
    request.scope = KKT_COUNTERS_ALL; /* what was timed before is counted now */
    assert_int_equal(run_session(&request).counts.counted, r.timed);
    r = rows_of(request.db);
    assert_int_equal(r.counted, r.timed);
}

static void denied_counters_cost_a_note(void **state) {
    (void)state;
    run_request request = {"denied.db", "seed=2,counters=denied", KKT_COUNTERS_FINALISTS};
    kkt_session_summary summary = run_session(&request);
    rows r = rows_of(request.db);
    assert_int_equal(summary.counts.measured + summary.counts.noisy, EVALS);
    assert_int_equal(summary.counts.counted, 0);
    assert_non_null(strstr(summary.counters_note, "CAP_SYS_ADMIN"));
    assert_true(r.noted >= r.finalists && r.noted > 0);
    assert_int_equal(r.counted + r.counters, 0);
    assert_non_null(strstr(r.note, "unavailable: the driver denies"));
    /* Allowed in a later run: the rows get their counters then. */
    request.fake = "seed=2";
    assert_int_equal(run_session(&request).counts.counted, r.noted);
    rows after = rows_of(request.db);
    assert_int_equal(after.counted, r.noted);
    assert_int_equal(after.noted, 0);
}

static void a_candidates_own_failure_is_settled(void **state) {
    (void)state;
    run_request request = {"failed.db", "seed=2,counters=failed", KKT_COUNTERS_FINALISTS};
    kkt_session_summary summary = run_session(&request);
    rows r = rows_of(request.db);
    assert_string_equal(summary.counters_note, "");
    assert_int_equal(summary.counts.counted, 0);
    assert_true(r.noted > 0);
    assert_non_null(strstr(r.note, "failed: "));
    request.fake = "seed=2";
    assert_int_equal(run_session(&request).counts.counted, 0);
}

static void a_fault_is_not_counted(void **state) {
    (void)state;
    run_request request = {"fault.db", "seed=2,fault=all", KKT_COUNTERS_ALL};
    kkt_session_summary summary = run_session(&request);
    rows r = rows_of(request.db);
    assert_true(r.timed < EVALS);
    assert_int_equal(summary.counts.counted, r.timed);
}

static void scopes_by_name(void **state) {
    (void)state;
    kkt_error err = {0};
    kkt_counters_scope scope = KKT_COUNTERS_NONE;
    assert_int_equal(kkt_counters_scope_parse("all", &scope, &err), KKT_OK);
    assert_int_equal(scope, KKT_COUNTERS_ALL);
    assert_string_equal(kkt_counters_scope_name(scope), "all");
    assert_int_equal(kkt_counters_scope_parse("some", &scope, &err), KKT_ERR_INPUT);
    assert_non_null(strstr(err.message, "finalists, all, none"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finalists_are_counted_once),
        cmocka_unit_test(all_or_none),
        cmocka_unit_test(denied_counters_cost_a_note),
        cmocka_unit_test(a_candidates_own_failure_is_settled),
        cmocka_unit_test(a_fault_is_not_counted),
        cmocka_unit_test(scopes_by_name),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
