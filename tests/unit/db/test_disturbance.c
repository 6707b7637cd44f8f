/* Energy, outliers and what disturbed a timing: stored, shown by the view, carried by recordings
 * and merges; and a database of the schema before them. */
#include <math.h>

#include "db/maintain.h"
#include "db/recording.h"
#include "db/store_sqlite.h"
#include "fixture.h"

static kkt_db *open_at(const char *path, kkt_db_mode mode) {
    kkt_db *db = NULL;
    kkt_error error;
    assert_ok(kkt_db_open(path, mode, &db, &error));
    return db;
}

static kkt_run_record disturbed_run(void) {
    kkt_run_record record = run(KKT_MEASURED, "2026-01-01T00:00:00Z", 107.5);
    record.sample_count = 20;
    record.energy_mj = 61.0625;
    record.outliers = 3;
    record.throttled = 10;
    record.disturbed = "2 other processes use the GPU";
    return record;
}

typedef struct seen {
    double energy_mj;
    int64_t outliers, throttled, rows;
    char disturbed[80];
} seen;

static kkt_status look(void *context, const kkt_result *result, kkt_error *err) {
    (void)err;
    seen *s = context;
    s->rows++;
    s->energy_mj = result->run.energy_mj;
    s->outliers = result->run.outliers;
    s->throttled = result->run.throttled;
    snprintf(s->disturbed, sizeof s->disturbed, "%s",
             result->run.disturbed ? result->run.disturbed : "");
    return KKT_OK;
}

static seen look_at(kkt_db *db) {
    kkt_error error;
    seen s = {0};
    assert_ok(kkt_db_results(db, NULL, NULL, look, &s, &error));
    assert_int_equal(s.rows, 1);
    return s;
}

static void assert_all(kkt_db *db) {
    seen s = look_at(db);
    assert_true(s.energy_mj == 61.0625);
    assert_int_equal(s.outliers, 3);
    assert_int_equal(s.throttled, 10);
    assert_string_equal(s.disturbed, "2 other processes use the GPU");
}

static int64_t count(kkt_db *db, const char *sql) {
    kkt_error error;
    int64_t value = -1;
    assert_ok(kkt_db_query_int(db, sql, &value, &error));
    return value;
}

static void test_stored_and_shown(void **state) {
    (void)state;
    kkt_db *db = open_at(":memory:", KKT_DB_WRITE);
    kkt_run_record record = disturbed_run();
    add_run(db, "chunk=64", HASH_A, &record);
    assert_all(db);
    assert_int_equal(count(db, "SELECT count(*) FROM results WHERE energy_mj = 61.0625 AND"
                               " rel_fro = 1.7e-3 AND disturbed LIKE '2 other%'"),
                     1);
    kkt_db_close(db);
}

static void test_unknown_stays_unknown(void **state) {
    (void)state;
    kkt_db *db = open_at(":memory:", KKT_DB_WRITE);
    kkt_run_record record = disturbed_run();
    record.energy_mj = KKT_UNKNOWN_REAL;
    record.outliers = record.throttled = KKT_UNKNOWN_INT;
    record.disturbed = NULL;
    add_run(db, "chunk=64", HASH_A, &record);
    seen s = look_at(db);
    assert_true(isnan(s.energy_mj));
    assert_int_equal(s.outliers, KKT_UNKNOWN_INT);
    assert_int_equal(s.throttled, KKT_UNKNOWN_INT);
    assert_int_equal(count(db, "SELECT count(*) FROM runs WHERE energy_mj IS NULL AND outliers IS"
                               " NULL AND throttled IS NULL AND disturbed IS NULL"),
                     1);
    kkt_db_close(db);
}

static void test_recording_and_merge(void **state) {
    const fixture *f = *state;
    kkt_error error;
    kkt_text text = {0};
    int64_t rows = 0;
    kkt_db *db = open_at(f->path, KKT_DB_WRITE);
    kkt_run_record record = disturbed_run();
    add_run(db, "chunk=64", HASH_A, &record);
    assert_ok(kkt_recording_export_text(db, NULL, false, &text, &rows, &error));
    kkt_db_close(db);
    kkt_db *from_text = open_at(":memory:", KKT_DB_WRITE);
    assert_ok(kkt_recording_import_text(from_text, "r", text.data, text.length, &rows, &error));
    assert_all(from_text);
    kkt_db_close(from_text);
    kkt_db *merged = open_at(":memory:", KKT_DB_WRITE);
    kkt_db_changes changes;
    assert_ok(kkt_db_merge(merged, f->path, &changes, &error));
    assert_all(merged);
    kkt_db_close(merged);
    kkt_text_free(&text);
}

/* Figures that cannot be are refused where they come from outside, and found in a file. */
static void test_impossible_figures(void **state) {
    (void)state;
    kkt_error error;
    static const char *const members[] = {"\"energy_mj\":0", "\"energy_mj\":-3", "\"outliers\":21",
                                          "\"throttled\":21", "\"disturbed\":7"};
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        char text[600];
        int64_t rows = 0;
        snprintf(text, sizeof text,
                 "{\"schema\":\"kkttune.recording/1\",\"arch\":\"sm90\",\"device\":\"h200\"}\n"
                 "{\"provenance\":0,\"kernel_hash\":\"" HASH_A "\"}\n"
                 "{\"p\":0,\"kernel\":\"k\",\"style\":\"s\",\"problem\":\"\",\"config\":\"a=1\","
                 "\"build\":{\"outcome\":\"compiled\"},\"run\":{\"outcome\":\"ok\","
                 "\"sample_count\":20,%s}}\n{\"rows\":1}\n",
                 members[i]);
        kkt_db *db = open_at(":memory:", KKT_DB_WRITE);
        assert_status(KKT_ERR_INPUT,
                      kkt_recording_import_text(db, "r", text, strlen(text), &rows, &error));
        kkt_db_close(db);
    }
    kkt_db *db = open_at(":memory:", KKT_DB_WRITE);
    kkt_run_record record = disturbed_run();
    int64_t findings = -1;
    add_run(db, "chunk=64", HASH_A, &record);
    assert_ok(kkt_db_check(db, NULL, NULL, &findings, &error));
    assert_int_equal(findings, 0);
    assert_ok(kkt_db_exec(db, "UPDATE runs SET energy_mj = -1, throttled = 99", &error));
    assert_ok(kkt_db_check(db, NULL, NULL, &findings, &error));
    assert_int_equal(findings, 2);
    kkt_db_close(db);
}

static void test_schema_before(void **state) {
    const fixture *f = *state;
    kkt_error error;
    kkt_db *db = open_at(f->path, KKT_DB_WRITE);
    kkt_run_record record = disturbed_run();
    add_run(db, "chunk=64", HASH_A, &record);
    assert_ok(kkt_db_exec(db,
                          "DROP VIEW pipelines; DROP VIEW results; DROP VIEW best_runs;"
                          "DROP TABLE pipeline_members; DROP TABLE pipeline_runs;"
                          "ALTER TABLE runs DROP COLUMN energy_mj;"
                          "ALTER TABLE runs DROP COLUMN outliers;"
                          "ALTER TABLE runs DROP COLUMN throttled;"
                          "ALTER TABLE runs DROP COLUMN disturbed; PRAGMA user_version=2",
                          &error));
    kkt_db_close(db);
    db = open_at(f->path, KKT_DB_READ); /* migrated in memory */
    assert_true(isnan(look_at(db).energy_mj));
    kkt_db_close(db);
    db = open_at(f->path, KKT_DB_WRITE);
    kkt_db_info info;
    assert_ok(kkt_db_get_info(db, &info, &error));
    assert_int_equal(info.schema_version, KKT_DB_SCHEMA_VERSION);
    assert_int_equal(look_at(db).outliers, KKT_UNKNOWN_INT);
    record.date = "2026-02-01T00:00:00Z";
    add_run(db, "chunk=64", HASH_A, &record);
    assert_all(db);
    kkt_db_close(db);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_stored_and_shown, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unknown_stays_unknown, setup, teardown),
        cmocka_unit_test_setup_teardown(test_recording_and_merge, setup, teardown),
        cmocka_unit_test_setup_teardown(test_impossible_figures, setup, teardown),
        cmocka_unit_test_setup_teardown(test_schema_before, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
