/* Runs of whole pipelines: stored with their members, read back beside the members' own times,
 * recorded, merged, checked and recovered. */
#include "db/maintain.h"
#include "db/recording.h"
#include "db/store_sqlite.h"
#include "fixture.h"

#define PROBLEM "heads_k=16,heads_v=64,tokens=32768"

static kkt_db *open_at(const char *path, kkt_db_mode mode) {
    kkt_error error;
    kkt_db *db = NULL;
    assert_ok(kkt_db_open(path, mode, &db, &error));
    return db;
}

static kkt_identity consumer(const char *config) {
    kkt_identity id = identity(config);
    id.kernel = "gdn_fwd_t";
    id.style = "warp_specialized";
    return id;
}

/* Two kernels, 400 us together; their members are given by identity. */
static kkt_pipeline_record pipeline(const char *date, double us) {
    static const float samples[] = {401.5F, 400.0F, 398.25F};
    kkt_pipeline_record record = {.pipeline = "gdn_t",
                                  .arch = "sm90",
                                  .device = "h200",
                                  .problem = PROBLEM,
                                  .chunk = 64,
                                  .order = KKT_OVERLAPPED,
                                  .member_count = 2,
                                  .run = run(KKT_MEASURED, date, us)};
    record.members[0] =
        (kkt_member_record){.id = identity("chunk=64"), .build = build(HASH_A, "nvrtc 13.0")};
    record.members[1] =
        (kkt_member_record){.id = consumer("chunk=64"), .build = build(HASH_B, "nvrtc 13.0")};
    record.run.samples_us = samples;
    record.run.sample_count = 3;
    return record;
}

static void put(kkt_db *db, const kkt_pipeline_record *record) {
    kkt_error error;
    int64_t id = 0;
    assert_ok(kkt_db_put_pipeline_run(db, record, &id, &error));
    assert_true(id > 0);
}

typedef struct seen {
    size_t count;
    kkt_pipeline_record last;
    char kernels[200], stale[200], samples[200];
} seen;

static kkt_status take(void *context, const kkt_pipeline_record *record, kkt_error *err) {
    (void)err;
    seen *s = context;
    s->count++;
    s->last = *record;
    s->kernels[0] = s->stale[0] = '\0';
    for (size_t i = 0; i < record->member_count; i++) {
        const kkt_member_record *m = &record->members[i];
        size_t at = strlen(s->kernels);
        snprintf(s->kernels + at, sizeof s->kernels - at, "%s %s;", m->id.kernel, m->id.config);
        if (m->stale_reason)
            snprintf(s->stale, sizeof s->stale, "%s", m->stale_reason);
    }
    snprintf(s->samples, sizeof s->samples, "%s", record->samples_json ? record->samples_json : "");
    return KKT_OK;
}

static seen look(kkt_db *db, const kkt_pipeline_filter *filter, const kkt_freshness *freshness) {
    kkt_error error;
    seen s = {0};
    assert_ok(kkt_db_pipeline_runs(db, filter, freshness, take, &s, &error));
    return s;
}

static void test_stored_with_its_members(void **state) {
    const fixture *f = *state;
    kkt_db *db = open_at(f->path, KKT_DB_WRITE);
    kkt_pipeline_record record = pipeline("2026-02-01T00:00:00Z", 400);
    put(db, &record);
    seen s = look(db, NULL, NULL);
    assert_int_equal(s.count, 1);
    assert_string_equal(s.kernels, "kkt_solve chunk=64;gdn_fwd_t chunk=64;");
    assert_int_equal(s.last.chunk, 64);
    assert_int_equal(s.last.order, KKT_OVERLAPPED);
    assert_true(s.last.run.time_us == 400);
    assert_string_equal(s.samples, "[401.500,400,398.250]");
    assert_true(isnan(s.last.members_us)); /* neither member was timed alone */
    kkt_run_record own = run(KKT_MEASURED, "2026-02-01T00:00:00Z", 150);
    add_run(db, "chunk=64", HASH_A, &own);
    assert_true(isnan(look(db, NULL, NULL).last.members_us));
    kkt_error error;
    int64_t run_id = 0;
    own.time_us = 260;
    own.time_high_us = 261;
    assert_ok(kkt_db_put_run(db, s.last.members[1].build_id, &own, &run_id, &error));
    assert_true(look(db, NULL, NULL).last.members_us == 410);
    kkt_db_close(db);
}

static void test_filters_and_order(void **state) {
    const fixture *f = *state;
    kkt_db *db = open_at(f->path, KKT_DB_WRITE);
    kkt_pipeline_record record = pipeline("2026-02-01T00:00:00Z", 400);
    put(db, &record);
    record.chunk = 32;
    put(db, &record);
    record.pipeline = "gdn_fused";
    record.member_count = 1;
    put(db, &record);
    assert_int_equal(look(db, NULL, NULL).count, 3);
    assert_int_equal(look(db, NULL, NULL).last.chunk, 64); /* gdn_fused, gdn_t 32, gdn_t 64 */
    assert_int_equal(look(db, &(kkt_pipeline_filter){.pipeline = "gdn_t"}, NULL).count, 2);
    assert_int_equal(look(db, &(kkt_pipeline_filter){.device = "h100"}, NULL).count, 0);
    assert_int_equal(look(db, &(kkt_pipeline_filter){.problem = PROBLEM}, NULL).count, 3);
    kkt_db_close(db);
}

static bool present(void *context, const kkt_identity *id, const char **hash,
                    const char **options) {
    (void)context;
    (void)id;
    *hash = HASH_A;
    *options = NULL;
    return true;
}

static void test_stale_with_a_member(void **state) {
    const fixture *f = *state;
    kkt_error error;
    kkt_db *db = open_at(f->path, KKT_DB_WRITE);
    kkt_pipeline_record record = pipeline("2026-02-01T00:00:00Z", 400);
    const kkt_freshness freshness = {.compiler = "nvrtc 13.0", .present = present};
    put(db, &record);
    seen s = look(db, NULL, &freshness);
    assert_null(s.last.members[0].stale_reason);
    assert_true(s.stale[0] != '\0'); /* the consumer was built from another source */
    assert_ok(kkt_db_mark_stale(db, &freshness, &error));
    int64_t stale = 0;
    assert_ok(kkt_db_query_int(
        db, "SELECT count(*) FROM pipelines WHERE provenance = 'stale' AND stale_reason NOT NULL",
        &stale, &error));
    assert_int_equal(stale, 1);
    kkt_db_close(db);
}

static void test_refused(void **state) {
    (void)state;
    kkt_error error;
    int64_t id = 0;
    kkt_db *db = open_at(":memory:", KKT_DB_WRITE);
    kkt_pipeline_record record = pipeline("2026-02-01T00:00:00Z", 400);
    record.member_count = 0;
    assert_status(KKT_ERR_INPUT, kkt_db_put_pipeline_run(db, &record, &id, &error));
    assert_says("has 0 members");
    record = pipeline("2026-02-01T00:00:00Z", 400);
    record.problem = "tokens=1,heads_k=1";
    assert_status(KKT_ERR_INPUT, kkt_db_put_pipeline_run(db, &record, &id, &error));
    record = pipeline("2026-02-01T00:00:00Z", 400);
    record.members[1].id.config = NULL;
    assert_status(KKT_ERR_INPUT, kkt_db_put_pipeline_run(db, &record, &id, &error));
    record = pipeline("2026-02-01T00:00:00Z", 400);
    record.chunk = 0;
    assert_status(KKT_ERR_INPUT, kkt_db_put_pipeline_run(db, &record, &id, &error));
    assert_says("chunk size 0");
    assert_int_equal(look(db, NULL, NULL).count, 0); /* nothing half-stored */
    kkt_db_close(db);
}

/* ---- recordings ---- */

static void record_text(kkt_db *db, bool replayed, kkt_text *out) {
    kkt_error error;
    int64_t rows = 0;
    assert_ok(kkt_recording_export_text(db, NULL, replayed, out, &rows, &error));
}

static void test_recording_round_trip(void **state) {
    (void)state;
    kkt_error error;
    int64_t rows = 0;
    kkt_db *db = open_at(":memory:", KKT_DB_WRITE), *copy = open_at(":memory:", KKT_DB_WRITE);
    kkt_text plain = {0}, first = {0}, second = {0};
    kkt_run_record own = run(KKT_MEASURED, "2026-02-01T00:00:00Z", 150);
    add_run(db, "chunk=64", HASH_A, &own);
    record_text(db, false, &plain);
    assert_non_null(strstr(plain.data, "kkttune.recording/1")); /* as ever without pipelines */
    kkt_pipeline_record record = pipeline("2026-02-02T00:00:00Z", 400);
    put(db, &record);
    record_text(db, false, &first);
    assert_non_null(strstr(first.data, "kkttune.recording/2"));
    assert_ok(kkt_recording_import_text(copy, "r", first.data, first.length, &rows, &error));
    assert_int_equal(rows, 2);
    seen s = look(copy, NULL, NULL);
    assert_int_equal(s.count, 1);
    assert_int_equal(s.last.run.provenance, KKT_REPLAYED);
    assert_string_equal(s.kernels, "kkt_solve chunk=64;gdn_fwd_t chunk=64;");
    assert_string_equal(s.samples, "[401.500,400,398.250]");
    record_text(copy, true, &second);
    assert_string_equal(first.data, second.data);
    /* Twice is once, and what came from a recording is not passed on as this machine's own. */
    assert_ok(kkt_recording_import_text(copy, "r", first.data, first.length, &rows, &error));
    assert_int_equal(look(copy, NULL, NULL).count, 1);
    kkt_text none = {0};
    assert_status(KKT_ERR_MISSING,
                  kkt_recording_export_text(copy, NULL, false, &none, &rows, &error));
    kkt_text_free(&plain);
    kkt_text_free(&first);
    kkt_text_free(&second);
    kkt_text_free(&none);
    kkt_db_close(copy);
    kkt_db_close(db);
}

/* One word of a sound recording replaced: refused with its line, and nothing of it is stored. */
static void test_malformed_recordings(void **state) {
    (void)state;
    static const char *const edits[][2] = {
        {"\"launch\":\"overlapped\"", "\"launch\":\"sideways\""},
        {"\"chunk\":64,", "\"chunk\":0,"},
        {"\"pipeline\":\"gdn_t\"", "\"pipeline\":\"\""},
        {"\"members\":[", "\"members\":[7,"},
        {"\"members\":[{\"p\":0", "\"members\":[{\"p\":9"},
        {"\"problem\":\"heads_k", "\"problem\":\"heads_v=1,heads_k"},
        {"\"sample_count\":3", "\"sample_count\":2"},
        {"\"time_us\":400", "\"time_us\":500"},
    };
    kkt_error error;
    int64_t rows = 0;
    kkt_db *db = open_at(":memory:", KKT_DB_WRITE);
    kkt_text sound = {0};
    kkt_pipeline_record record = pipeline("2026-02-02T00:00:00Z", 400);
    put(db, &record);
    record_text(db, false, &sound);
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        kkt_db *into = open_at(":memory:", KKT_DB_WRITE);
        kkt_text bad = {0};
        const char *at = strstr(sound.data, edits[i][0]);
        if (!at)
            fail_msg("%s is not in %s", edits[i][0], sound.data);
        kkt_text_add_bytes(&bad, sound.data, (size_t)(at - sound.data));
        kkt_text_add(&bad, edits[i][1]);
        kkt_text_add(&bad, at + strlen(edits[i][0]));
        error = (kkt_error){0};
        if (kkt_recording_import_text(into, "r", bad.data, bad.length, &rows, &error) !=
            KKT_ERR_INPUT)
            fail_msg("%s was taken", edits[i][1]);
        assert_says("line 5");
        assert_int_equal(look(into, NULL, NULL).count, 0);
        kkt_text_free(&bad);
        kkt_db_close(into);
    }
    kkt_text_free(&sound);
    kkt_db_close(db);
}

/* ---- looking after files ---- */

static void test_merge(void **state) {
    const fixture *f = *state;
    kkt_error error;
    kkt_db_changes changes;
    kkt_db *from = open_at(f->path, KKT_DB_WRITE), *into = open_at(":memory:", KKT_DB_WRITE);
    kkt_pipeline_record record = pipeline("2026-02-02T00:00:00Z", 400);
    kkt_run_record other = run(KKT_MEASURED, "2026-02-01T00:00:00Z", 150);
    add_run(into, "chunk=16", HASH_A, &other); /* so that builds have other numbers there */
    put(from, &record);
    kkt_db_close(from);
    assert_ok(kkt_db_merge(into, f->path, &changes, &error));
    assert_int_equal(changes.pipeline_runs, 1);
    seen s = look(into, NULL, NULL);
    assert_string_equal(s.kernels, "kkt_solve chunk=64;gdn_fwd_t chunk=64;");
    assert_int_equal(s.last.run.provenance, KKT_MEASURED);
    assert_ok(kkt_db_merge(into, f->path, &changes, &error));
    assert_int_equal(changes.pipeline_runs, 0);
    assert_int_equal(look(into, NULL, NULL).count, 1);
    kkt_db_close(into);
}

static void test_check_and_recover(void **state) {
    const fixture *f = *state;
    kkt_error error;
    char saved[120];
    int64_t findings = -1;
    kkt_db_changes changes;
    snprintf(saved, sizeof saved, "%s/saved.db", f->folder);
    kkt_db *db = open_at(f->path, KKT_DB_WRITE);
    kkt_pipeline_record record = pipeline("2026-02-02T00:00:00Z", 400);
    put(db, &record);
    record.chunk = 32;
    put(db, &record);
    record.chunk = 16;
    put(db, &record);
    assert_ok(kkt_db_check(db, NULL, NULL, &findings, &error));
    assert_int_equal(findings, 0);
    assert_ok(kkt_db_exec(db,
                          "UPDATE pipeline_runs SET times_us = '[1]' WHERE chunk = 32;"
                          "DELETE FROM pipeline_members WHERE pipeline_run_id ="
                          " (SELECT id FROM pipeline_runs WHERE chunk = 16)",
                          &error));
    assert_ok(kkt_db_check(db, NULL, NULL, &findings, &error));
    assert_int_equal(findings, 2);
    kkt_db_close(db);
    assert_ok(kkt_db_recover(f->path, saved, &changes, &error));
    assert_int_equal(changes.pipeline_runs, 1);
    db = open_at(saved, KKT_DB_WRITE);
    assert_int_equal(look(db, NULL, NULL).last.chunk, 64);
    assert_ok(kkt_db_check(db, NULL, NULL, &findings, &error));
    assert_int_equal(findings, 0);
    kkt_db_close(db);
}

/* What no reader takes is what the check finds. */
static void test_check_finds_what_readers_refuse(void **state) {
    (void)state;
    static const char *const faults[] = {
        "UPDATE pipeline_runs SET chunk = 0",
        "UPDATE pipeline_runs SET time_us = 9e999, time_high_us = 9e999",
        "INSERT INTO pipeline_members SELECT 1, value, 1 FROM json_each('[2,3,4]')",
    };
    kkt_error error;
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        int64_t findings = 0;
        kkt_db *db = open_at(":memory:", KKT_DB_WRITE);
        kkt_pipeline_record record = pipeline("2026-02-02T00:00:00Z", 400);
        put(db, &record);
        assert_ok(kkt_db_exec(db, faults[i], &error));
        assert_ok(kkt_db_check(db, NULL, NULL, &findings, &error));
        if (findings != 1)
            fail_msg("%d findings of: %s", (int)findings, faults[i]);
        kkt_db_close(db);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_stored_with_its_members, setup, teardown),
        cmocka_unit_test_setup_teardown(test_filters_and_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stale_with_a_member, setup, teardown),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_recording_round_trip),
        cmocka_unit_test(test_malformed_recordings),
        cmocka_unit_test_setup_teardown(test_merge, setup, teardown),
        cmocka_unit_test_setup_teardown(test_check_and_recover, setup, teardown),
        cmocka_unit_test(test_check_finds_what_readers_refuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
