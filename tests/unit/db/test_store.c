/* Round trips, identity against provenance, the choice of the best run. */
#include "fixture.h"

/* What a test looks at in the one result it expects. */
typedef struct seen {
    int count;
    kkt_result result;
    char reason[200], stale[200], hash[80], date[40], config[80];
} seen;

static void copy(char *to, size_t size, const char *from) {
    snprintf(to, size, "%s", from ? from : "(none)");
}

static kkt_status look(void *context, const kkt_result *result, kkt_error *err) {
    seen *s = context;
    (void)err;
    s->count++;
    s->result = *result;
    copy(s->reason, sizeof s->reason, result->reason);
    copy(s->stale, sizeof s->stale, result->stale_reason);
    copy(s->hash, sizeof s->hash, result->build.kernel_hash);
    copy(s->date, sizeof s->date, result->run.date);
    copy(s->config, sizeof s->config, result->id.config);
    return KKT_OK;
}

static seen look_at(kkt_db *db, const kkt_result_filter *filter, const kkt_freshness *freshness) {
    kkt_error error;
    seen s = {0};
    assert_ok(kkt_db_results(db, filter, freshness, look, &s, &error));
    return s;
}

static kkt_db *open_write(const fixture *f) {
    kkt_error error;
    kkt_db *db = NULL;
    assert_ok(kkt_db_open(f->path, KKT_DB_WRITE, &db, &error));
    return db;
}

static bool present_a(void *context, const kkt_identity *id, const char **hash,
                      const char **options) {
    (void)id;
    *hash = context;
    *options = "-DCHUNK=64\n-std=c++17";
    return true;
}

static bool present_none(void *context, const kkt_identity *id, const char **hash,
                         const char **options) {
    (void)context;
    (void)id;
    (void)hash;
    (void)options;
    return false;
}

static void test_round_trip(void **state) {
    kkt_error error;
    kkt_db *db = open_write(*state);
    float samples[] = {101.25F, 100.003F, 1.0F / 3.0F, 99.999F, 3.4e38F, 1e-30F, 0.0F};
    kkt_run_record record = run(KKT_MEASURED, "2026-01-02T03:04:05Z", 100.003);
    record.samples_us = samples;
    record.sample_count = 7;
    int64_t id = add_run(db, "chunk=64", HASH_A, &record);
    kkt_prediction_record predicted = prediction(123.5);
    assert_ok(kkt_db_put_prediction(db, id, &predicted, &error));
    kkt_db_close(db);

    assert_ok(kkt_db_open(((fixture *)*state)->path, KKT_DB_READ, &db, &error));
    seen s = look_at(db, NULL, NULL);
    const kkt_result *r = &s.result;
    assert_int_equal(s.count, 1);
    assert_int_equal(r->outcome, KKT_OUTCOME_OK);
    assert_int_equal(r->provenance, KKT_MEASURED);
    assert_true(r->has_prediction && r->has_build && r->has_run);
    assert_null(r->stale_reason);
    assert_null(r->reason);
    assert_int_equal(r->prediction.registers, 96);
    assert_int_equal(r->prediction.smem_bytes, 33792);
    assert_true(r->prediction.hbm_bytes_per_token == 12800.5);
    assert_true(r->prediction.feasible && !r->prediction.spills);
    assert_true(r->prediction.predicted_us == 123.5);
    assert_int_equal(r->build.registers, 88);
    assert_int_equal(r->build.dynamic_smem_bytes, 32768);
    assert_int_equal(r->build.spill_load_bytes, 8);
    assert_true(r->build.compile_ms == 812.5);
    assert_true(r->run.time_us == 100.003 && r->run.time_high_us == 100.003 + 0.75);
    assert_true(r->run.rel_fro == 1.7e-3);
    assert_true(isnan(r->run.hbm_bytes_counted));
    assert_string_equal(s.date, "2026-01-02T03:04:05Z");
    assert_string_equal(s.hash, HASH_A);

    float *kept = NULL;
    size_t count = 0;
    assert_ok(kkt_db_samples(db, r->candidate_id, &kept, &count, &error));
    assert_int_equal(count, 7);
    assert_memory_equal(kept, samples, sizeof samples);
    free(kept);
    kkt_db_close(db);
}

static void test_unknown_is_null(void **state) {
    kkt_error error;
    kkt_db *db = open_write(*state);
    kkt_identity id = identity("chunk=16");
    int64_t candidate = 0, build_id = 0, run_id = 0;
    assert_ok(kkt_db_candidate(db, &id, &candidate, &error));
    seen s = look_at(db, NULL, NULL);
    assert_false(s.result.has_prediction || s.result.has_build || s.result.has_run);
    assert_int_equal(s.result.outcome, KKT_OUTCOME_PREDICTED);
    assert_true(isnan(s.result.prediction.predicted_us) && isnan(s.result.run.time_us));
    assert_int_equal(s.result.build.registers, KKT_UNKNOWN_INT);
    assert_int_equal(s.result.run.sample_count, 0);

    kkt_build_record empty = {.outcome = KKT_OUTCOME_COMPILED,
                              .registers = KKT_UNKNOWN_INT,
                              .static_smem_bytes = KKT_UNKNOWN_INT,
                              .compile_ms = KKT_UNKNOWN_REAL};
    assert_ok(kkt_db_put_build(db, candidate, &empty, &build_id, &error));
    kkt_run_record failed = run(KKT_MEASURED, NULL, (double)INFINITY);
    failed.outcome = KKT_OUTCOME_CRASHED;
    failed.reason = "signal 11";
    assert_ok(kkt_db_put_run(db, build_id, &failed, &run_id, &error));
    s = look_at(db, NULL, NULL);
    assert_string_equal(s.hash, "(none)");
    assert_int_equal(s.result.build.static_smem_bytes, KKT_UNKNOWN_INT);
    assert_int_equal(s.result.build.dynamic_smem_bytes, 0);
    assert_true(isnan(s.result.build.compile_ms) && isnan(s.result.run.time_us));
    assert_int_equal(s.result.outcome, KKT_OUTCOME_CRASHED);
    assert_string_equal(s.reason, "signal 11");
    float *kept = (float *)&s;
    size_t count = 5;
    assert_ok(kkt_db_samples(db, candidate, &kept, &count, &error));
    assert_null(kept);
    assert_int_equal(count, 0);
    kkt_db_close(db);
}

static void test_identity_is_not_provenance(void **state) {
    kkt_error error;
    kkt_db *db = open_write(*state);
    kkt_run_record record = run(KKT_MEASURED, "2026-01-01T00:00:00Z", 100);
    int64_t first = add_run(db, "chunk=64", HASH_A, &record);
    int64_t again = add_run(db, "chunk=64", HASH_B, &record);
    assert_int_equal(first, again);
    char hash[] = HASH_A;
    kkt_freshness fresh = {"nvrtc 13.0", present_a, hash, NULL};
    assert_null(look_at(db, NULL, &fresh).result.stale_reason);
    memset(hash, 'c', 64);
    seen s = look_at(db, NULL, &fresh);
    assert_int_equal(s.count, 1); /* stale, not missing */
    assert_non_null(strstr(s.stale, "kernel source changed: "));
    assert_true(s.result.has_run);
    kkt_freshness gone = {NULL, present_none, NULL, NULL};
    assert_non_null(strstr(look_at(db, NULL, &gone).stale, "kernel gone"));
    kkt_freshness other = {"nvrtc 13.1", NULL, NULL, NULL};
    assert_string_equal(look_at(db, NULL, &other).stale,
                        "compiler changed: nvrtc 13.0 then, nvrtc 13.1 now");
    kkt_freshness patch = {"nvrtc 13.0.88", NULL, NULL, NULL};
    assert_null(look_at(db, NULL, &patch).result.stale_reason);
    kkt_freshness longer = {"nvrtc 13.01", NULL, NULL, NULL};
    assert_non_null(look_at(db, NULL, &longer).result.stale_reason);
    /* What one side does not know is not compared. */
    kkt_freshness unknown = {NULL, present_a, NULL, NULL};
    assert_null(look_at(db, NULL, &unknown).result.stale_reason);
    kkt_identity id = identity("chunk=32");
    int64_t candidate = 0, build_id = 0;
    kkt_build_record nameless = build(NULL, NULL);
    nameless.options = NULL;
    assert_ok(kkt_db_candidate(db, &id, &candidate, &error));
    assert_ok(kkt_db_put_build(db, candidate, &nameless, &build_id, &error));
    kkt_result_filter only = {.config = "chunk=32"};
    assert_null(look_at(db, &only, &fresh).result.stale_reason);
    /* Options that differ are named. */
    nameless = build("cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc", NULL);
    nameless.options = "-DCHUNK=16";
    id = identity("chunk=8");
    assert_ok(kkt_db_candidate(db, &id, &candidate, &error));
    assert_ok(kkt_db_put_build(db, candidate, &nameless, &build_id, &error));
    only.config = "chunk=8";
    assert_string_equal(look_at(db, &only, &fresh).stale, "compiler options changed");
    kkt_db_close(db);
}

static void test_best_run(void **state) {
    kkt_db *db = open_write(*state);
    char hash[] = HASH_A;
    kkt_freshness fresh = {"nvrtc 13.0", present_a, hash, NULL};
    kkt_run_record r = run(KKT_REPLAYED, "2026-05-01T00:00:00Z", 1);
    add_run(db, "c=1", HASH_B, &r); /* stale replayed */
    assert_true(look_at(db, NULL, &fresh).result.run.time_us == 1);
    r = run(KKT_MEASURED, "2026-01-01T00:00:00Z", 2);
    add_run(db, "c=1", HASH_B, &r); /* stale measured beats it though older */
    assert_true(look_at(db, NULL, &fresh).result.run.time_us == 2);
    assert_non_null(look_at(db, NULL, &fresh).result.stale_reason);
    r = run(KKT_REPLAYED, "2025-01-01T00:00:00Z", 3);
    add_run(db, "c=1", HASH_A, &r); /* fresh replayed beats any stale one */
    assert_true(look_at(db, NULL, &fresh).result.run.time_us == 3);
    assert_int_equal(look_at(db, NULL, &fresh).result.provenance, KKT_REPLAYED);
    r = run(KKT_MEASURED, "2024-01-01T00:00:00Z", 4);
    add_run(db, "c=1", HASH_A, &r); /* fresh measured beats all */
    assert_true(look_at(db, NULL, &fresh).result.run.time_us == 4);
    r = run(KKT_MEASURED, "2024-02-01T00:00:00Z", 5);
    add_run(db, "c=1", HASH_A, &r); /* the latest of them */
    r = run(KKT_MEASURED, "2024-01-15T00:00:00Z", 6);
    add_run(db, "c=1", HASH_A, &r); /* put last, but not the latest */
    assert_true(look_at(db, NULL, &fresh).result.run.time_us == 5);
    r = run(KKT_MEASURED, "2024-03-01T00:00:00Z", 7);
    r.outcome = KKT_OUTCOME_RACY; /* failures count as runs */
    r.reason = "outputs differ";
    add_run(db, "c=1", HASH_A, &r);
    seen s = look_at(db, NULL, &fresh);
    assert_int_equal(s.result.outcome, KKT_OUTCOME_RACY);
    assert_string_equal(s.reason, "outputs differ");
    /* The edit taken back: the other build is the fresh one, with its outcome. */
    memcpy(hash, HASH_B, sizeof hash);
    s = look_at(db, NULL, &fresh);
    assert_true(s.result.run.time_us == 2);
    assert_int_equal(s.result.outcome, KKT_OUTCOME_OK);
    kkt_db_close(db);
}

static void test_replayed_once_measured_always(void **state) {
    kkt_error error;
    kkt_db *db = open_write(*state);
    kkt_db_info info;
    kkt_run_record r = run(KKT_REPLAYED, "2026-01-01T00:00:00Z", 1);
    add_run(db, "c=1", HASH_A, &r);
    add_run(db, "c=1", HASH_A, &r);
    assert_ok(kkt_db_get_info(db, &info, &error));
    assert_int_equal(info.runs, 1);
    r.provenance = KKT_MEASURED;
    add_run(db, "c=1", HASH_A, &r);
    add_run(db, "c=1", HASH_A, &r);
    assert_ok(kkt_db_get_info(db, &info, &error));
    assert_int_equal(info.runs, 3);
    assert_int_equal(info.builds, 1);
    assert_int_equal(info.candidates, 1);
    r.provenance = KKT_PREDICTED;
    int64_t id = 0;
    assert_status(KKT_ERR_INPUT, kkt_db_put_run(db, 1, &r, &id, &error));
    assert_says("measured or replayed");
    r.provenance = KKT_MEASURED;
    assert_status(KKT_ERR_INPUT, kkt_db_put_run(db, 99, &r, &id, &error));
    assert_says("refuses a row");
    kkt_db_close(db);
}

static void test_verdicts(void **state) {
    kkt_error error;
    kkt_db *db = open_write(*state);
    kkt_identity id = identity("chunk=128");
    int64_t candidate = 0, build_id = 0;
    assert_ok(kkt_db_candidate(db, &id, &candidate, &error));
    assert_ok(kkt_db_set_outcome(db, candidate, KKT_OUTCOME_REJECTED, "needs 300 KiB", &error));
    seen s = look_at(db, NULL, NULL);
    assert_int_equal(s.count, 1);
    assert_int_equal(s.result.outcome, KKT_OUTCOME_REJECTED);
    assert_string_equal(s.reason, "needs 300 KiB");
    kkt_build_record b = build(HASH_A, "nvrtc 13.0");
    b.outcome = KKT_OUTCOME_BUILD_FAILED;
    b.log = "kkt.cu(3): error: no such name\n1 error detected\n";
    assert_ok(kkt_db_put_build(db, candidate, &b, &build_id, &error));
    s = look_at(db, NULL, NULL);
    assert_int_equal(s.result.outcome, KKT_OUTCOME_BUILD_FAILED);
    assert_string_equal(s.reason, "kkt.cu(3): error: no such name");
    assert_int_equal(s.result.provenance, KKT_COMPILED);
    b.outcome = KKT_OUTCOME_COMPILED; /* the same key: replaced */
    b.registers = 40;
    int64_t second = 0;
    assert_ok(kkt_db_put_build(db, candidate, &b, &second, &error));
    assert_int_equal(second, build_id);
    s = look_at(db, NULL, NULL);
    assert_int_equal(s.result.outcome, KKT_OUTCOME_COMPILED);
    assert_int_equal(s.result.build.registers, 40);
    kkt_run_record r = run(KKT_MEASURED, "2026-01-01T00:00:00Z", 9);
    add_run(db, "chunk=128", HASH_A, &r);
    assert_ok(kkt_db_set_outcome(db, candidate, KKT_OUTCOME_RACY, "racecheck: 2 hazards", &error));
    assert_ok(kkt_db_put_build(db, candidate, &b, &second, &error)); /* a run has set it */
    s = look_at(db, NULL, NULL);
    assert_int_equal(s.result.outcome, KKT_OUTCOME_RACY);
    assert_true(s.result.has_run);
    assert_ok(kkt_db_set_outcome(db, candidate, KKT_OUTCOME_PREDICTED, NULL, &error));
    assert_int_equal(look_at(db, NULL, NULL).result.outcome, KKT_OUTCOME_OK);
    assert_status(KKT_ERR_INPUT, kkt_db_set_outcome(db, 77, KKT_OUTCOME_OK, NULL, &error));
    assert_says("no candidate 77");
    /* A prediction is replaced, not added. */
    kkt_db_info info;
    kkt_prediction_record p = prediction(1);
    assert_ok(kkt_db_put_prediction(db, candidate, &p, &error));
    p = prediction(2);
    assert_ok(kkt_db_put_prediction(db, candidate, &p, &error));
    assert_ok(kkt_db_get_info(db, &info, &error));
    assert_int_equal(info.predictions, 1);
    assert_true(look_at(db, NULL, NULL).result.prediction.predicted_us == 2);
    kkt_db_close(db);
}

static kkt_status check_order(void *context, const kkt_result *result, kkt_error *err) {
    seen *s = context;
    (void)err;
    char key[300];
    snprintf(key, sizeof key, "%s", result->id.config);
    if (s->count > 0)
        assert_true(strcmp(s->config, key) < 0);
    return look(context, result, err);
}

static void test_order_filter_and_stop(void **state) {
    kkt_error error;
    kkt_db *db = open_write(*state);
    const char *configs[] = {"c=9", "b=1,c=2", "c=10", "a=5", "c=1"};
    int64_t candidate = 0;
    for (int i = 0; i < 5; i++) {
        kkt_identity id = identity(configs[i]);
        assert_ok(kkt_db_candidate(db, &id, &candidate, &error));
    }
    kkt_identity other = identity("c=1");
    other.arch = "sm80";
    other.device = "a100";
    assert_ok(kkt_db_candidate(db, &other, &candidate, &error));
    kkt_result_filter filter = {.arch = "sm90"};
    seen s = {0};
    assert_ok(kkt_db_results(db, &filter, NULL, check_order, &s, &error));
    assert_int_equal(s.count, 5);
    filter.config = "c=10";
    assert_int_equal(look_at(db, &filter, NULL).count, 1);
    filter = (kkt_result_filter){.kernel = "kkt_solve' OR '1'='1"};
    assert_int_equal(look_at(db, &filter, NULL).count, 0);
    assert_int_equal(look_at(db, NULL, NULL).count, 6);
    kkt_identity nameless = identity("c=1");
    nameless.device = NULL;
    assert_status(KKT_ERR_INPUT, kkt_db_candidate(db, &nameless, &candidate, &error));
    assert_says("needs a device");
    kkt_db_close(db);
}

static void test_hostile_strings(void **state) {
    kkt_error error;
    kkt_db *db = open_write(*state);
    size_t size = 1000000;
    char *longest = malloc(size + 1);
    memset(longest, 'x', size);
    longest[size] = '\0';
    kkt_run_record r = run(KKT_MEASURED, "'); DROP TABLE runs; --", 1);
    r.outcome = KKT_OUTCOME_WRONG_RESULT;
    r.reason = "<script>alert(1)</script>\n\"'%s\x01";
    r.policy = longest;
    add_run(db, "'; DROP TABLE candidates; --", HASH_A, &r);
    seen s = look_at(db, NULL, NULL);
    assert_string_equal(s.config, "'; DROP TABLE candidates; --");
    assert_string_equal(s.reason, "<script>alert(1)</script>\n\"'%s\x01");
    kkt_identity id = identity(longest);
    int64_t candidate = 0;
    assert_status(KKT_ERR_INPUT, kkt_db_candidate(db, &id, &candidate, &error));
    assert_says("config of a candidate is over");
    free(longest);
    kkt_db_close(db);
}

static kkt_status write_while_reading(void *context, const kkt_result *result, kkt_error *err) {
    kkt_db *db = context;
    seen s = look_at(db, NULL, NULL); /* nested */
    assert_int_equal(s.count, 20);
    return kkt_db_set_outcome(db, result->candidate_id, KKT_OUTCOME_REJECTED, "seen", err);
}

static kkt_status refuse(void *context, const kkt_result *result, kkt_error *err) {
    (*(int *)context)++;
    return kkt_fail(err, KKT_ERR_MISSING, 0, "enough of %s", result->id.config);
}

static void test_callbacks_may_write(void **state) {
    kkt_error error;
    kkt_db *db = open_write(*state);
    for (int i = 0; i < 20; i++) {
        char config[16];
        snprintf(config, sizeof config, "c=%d", i);
        kkt_run_record r = run(KKT_MEASURED, "2026-01-01T00:00:00Z", i);
        add_run(db, config, HASH_A, &r);
    }
    kkt_freshness fresh = {"nvrtc 13.0", present_none, NULL, NULL};
    assert_ok(kkt_db_results(db, NULL, &fresh, write_while_reading, db, &error));
    assert_int_equal(look_at(db, NULL, NULL).result.outcome, KKT_OUTCOME_REJECTED);
    int calls = 0;
    assert_status(KKT_ERR_MISSING, kkt_db_results(db, NULL, NULL, refuse, &calls, &error));
    assert_int_equal(calls, 1);
    assert_says("enough of c=0");
    kkt_db_close(db);
}

static void test_names(void **state) {
    (void)state;
    for (int i = 0; i < KKT_OUTCOME_COUNT; i++) {
        kkt_outcome outcome = KKT_OUTCOME_COUNT;
        assert_true(kkt_outcome_parse(kkt_outcome_name((kkt_outcome)i), &outcome));
        assert_int_equal(outcome, i);
    }
    for (int i = 0; i < KKT_PROVENANCE_COUNT; i++) {
        kkt_provenance provenance = KKT_PROVENANCE_COUNT;
        assert_true(kkt_provenance_parse(kkt_provenance_name((kkt_provenance)i), &provenance));
        assert_int_equal(provenance, i);
    }
    kkt_outcome outcome;
    assert_false(kkt_outcome_parse("okay", &outcome));
    assert_false(kkt_outcome_parse(NULL, &outcome));
    assert_string_equal(kkt_outcome_name(KKT_OUTCOME_COUNT), "unknown");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_round_trip, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unknown_is_null, setup, teardown),
        cmocka_unit_test_setup_teardown(test_identity_is_not_provenance, setup, teardown),
        cmocka_unit_test_setup_teardown(test_best_run, setup, teardown),
        cmocka_unit_test_setup_teardown(test_replayed_once_measured_always, setup, teardown),
        cmocka_unit_test_setup_teardown(test_verdicts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_order_filter_and_stop, setup, teardown),
        cmocka_unit_test_setup_teardown(test_hostile_strings, setup, teardown),
        cmocka_unit_test_setup_teardown(test_callbacks_may_write, setup, teardown),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
