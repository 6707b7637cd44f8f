/* Hardware counters of runs: stored, replaced, carried by recordings, merges and recovery, and a
 * database of the schema before them. */
#include <math.h>
#include <sqlite3.h>

#include "db/maintain.h"
#include "db/recording.h"
#include "db/store_sqlite.h"
#include "fixture.h"

static const kkt_counter_record two[] = {
    {"dram_read_bytes", 123456789.25, "bytes", "GH100"},
    {"l2_hit_rate", 1.0 / 3.0, "%", "GH100"},
};

static kkt_db *open_at(const char *path, kkt_db_mode mode) {
    kkt_db *db = NULL;
    kkt_error error;
    assert_ok(kkt_db_open(path, mode, &db, &error));
    return db;
}

typedef struct seen {
    int64_t run_id;
    size_t counters;
    double sum, hbm;
    char note[80], names[200];
    kkt_db *db;
} seen;

static kkt_status add_counter(void *context, const kkt_counter_record *counter, kkt_error *err) {
    (void)err;
    seen *s = context;
    s->counters++;
    s->sum += counter->value;
    size_t used = strlen(s->names);
    snprintf(s->names + used, sizeof s->names - used, "%s/%s/%s ", counter->name, counter->unit,
             counter->chip);
    return KKT_OK;
}

static kkt_status look(void *context, const kkt_result *result, kkt_error *err) {
    seen *s = context;
    s->run_id = result->run_id;
    s->hbm = result->run.hbm_bytes_counted;
    snprintf(s->note, sizeof s->note, "%s",
             result->run.counters_note ? result->run.counters_note : "");
    return kkt_db_counters(s->db, result->run_id, add_counter, s, err);
}

/* Counters and bytes of the only candidate. */
static seen look_at(kkt_db *db) {
    kkt_error error;
    seen s = {.db = db};
    assert_ok(kkt_db_results(db, NULL, NULL, look, &s, &error));
    assert_true(s.run_id > 0);
    return s;
}

static void assert_two(kkt_db *db) {
    seen s = look_at(db);
    assert_int_equal(s.counters, 2);
    assert_true(s.sum == two[0].value + two[1].value);
    assert_string_equal(s.names, "dram_read_bytes/bytes/GH100 l2_hit_rate/%/GH100 ");
    assert_true(s.hbm == 2.5e8);
    assert_string_equal(s.note, "modelled");
}

/* A database of one measured run with two counters. */
static kkt_db *counted(const char *path) {
    kkt_error error;
    kkt_db *db = open_at(path, KKT_DB_WRITE);
    kkt_run_record r = run(KKT_MEASURED, "2026-01-01T00:00:00Z", 10);
    add_run(db, "chunk=64", HASH_A, &r);
    assert_ok(kkt_db_put_counters(db, look_at(db).run_id, two, 2, 2.5e8, "modelled", &error));
    return db;
}

static void test_put_and_replace(void **state) {
    const fixture *f = *state;
    kkt_error error;
    kkt_db *db = counted(f->path);
    assert_two(db);
    const kkt_counter_record other[] = {{"instructions", 7, "warps", "GH100"},
                                        {"dram_read_bytes", (double)NAN, "bytes", "GH100"}};
    int64_t run_id = look_at(db).run_id;
    assert_ok(kkt_db_put_counters(db, run_id, other, 2, KKT_UNKNOWN_REAL, NULL, &error));
    seen s = look_at(db);
    assert_string_equal(s.names, "instructions/warps/GH100 ");
    assert_true(isnan(s.hbm));
    assert_string_equal(s.note, "");
    assert_status(KKT_ERR_INPUT, kkt_db_put_counters(db, run_id + 1, two, 2, 1, NULL, &error));
    assert_says("has no run");
    kkt_db_close(db);
}

static void test_view_shows_the_bytes(void **state) {
    const fixture *f = *state;
    kkt_error error;
    kkt_db *db = counted(f->path);
    sqlite3_stmt *s = NULL;
    assert_ok(kkt_db_prepare(db, "SELECT hbm_bytes_counted FROM results", &s, &error));
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    assert_true(sqlite3_column_double(s, 0) == 2.5e8);
    sqlite3_finalize(s);
    kkt_db_close(db);
}

static void test_recording_round_trip(void **state) {
    const fixture *f = *state;
    kkt_error error;
    kkt_db *db = counted(f->path);
    kkt_text first = {0}, second = {0};
    int64_t rows = 0;
    assert_ok(kkt_recording_export_text(db, NULL, false, &first, &rows, &error));
    kkt_db *copy = open_at(":memory:", KKT_DB_WRITE);
    assert_ok(kkt_recording_import_text(copy, "r", first.data, first.length, &rows, &error));
    assert_two(copy);
    assert_ok(kkt_recording_export_text(copy, NULL, true, &second, &rows, &error));
    assert_string_equal(first.data, second.data);
    kkt_db_close(copy);
    kkt_db_close(db);
    kkt_text_free(&first);
    kkt_text_free(&second);
}

/* A recording made without counters stays readable, and one with them completes its rows. */
static void test_recording_completes_rows(void **state) {
    const fixture *f = *state;
    kkt_error error;
    kkt_db *db = open_at(f->path, KKT_DB_WRITE);
    kkt_run_record r = run(KKT_MEASURED, "2026-01-01T00:00:00Z", 10);
    add_run(db, "chunk=64", HASH_A, &r);
    kkt_text plain = {0}, full = {0};
    int64_t rows = 0;
    assert_ok(kkt_recording_export_text(db, NULL, false, &plain, &rows, &error));
    assert_null(strstr(plain.data, "\"counters\":"));
    assert_ok(kkt_db_put_counters(db, look_at(db).run_id, two, 2, 2.5e8, "modelled", &error));
    assert_ok(kkt_recording_export_text(db, NULL, false, &full, &rows, &error));
    kkt_db *copy = open_at(":memory:", KKT_DB_WRITE);
    assert_ok(kkt_recording_import_text(copy, "r", plain.data, plain.length, &rows, &error));
    assert_int_equal(look_at(copy).counters, 0);
    assert_ok(kkt_recording_import_text(copy, "r", full.data, full.length, &rows, &error));
    assert_two(copy);
    assert_ok(kkt_recording_import_text(copy, "r", plain.data, plain.length, &rows, &error));
    assert_two(copy);
    kkt_db_close(copy);
    kkt_db_close(db);
    kkt_text_free(&plain);
    kkt_text_free(&full);
}

static void test_hostile_counters(void **state) {
    const fixture *f = *state;
    kkt_error error;
    static const struct {
        const char *from, *to;
    } edits[] = {
        {"\"value\":123456789.25", "\"value\":\"many\""},
        {"\"value\":123456789.25", "\"valve\":123456789.25"},
        {"\"name\":\"dram_read_bytes\"", "\"name\":\"\""},
        {"\"unit\":\"bytes\"", "\"unit\":null"},
        {"\"chip\":\"GH100\"", "\"chip\":[]"},
    };
    kkt_db *db = counted(f->path);
    kkt_text text = {0};
    int64_t rows = 0;
    assert_ok(kkt_recording_export_text(db, NULL, false, &text, &rows, &error));
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        kkt_text bad = {0};
        const char *at = strstr(text.data, edits[i].from);
        assert_non_null(at);
        kkt_text_add_bytes(&bad, text.data, (size_t)(at - text.data));
        kkt_text_add(&bad, edits[i].to);
        kkt_text_add(&bad, at + strlen(edits[i].from));
        kkt_db *copy = open_at(":memory:", KKT_DB_WRITE);
        assert_status(KKT_ERR_INPUT,
                      kkt_recording_import_text(copy, "bad", bad.data, bad.length, &rows, &error));
        assert_says("'counters'");
        assert_says("line 3");
        kkt_db_close(copy);
        kkt_text_free(&bad);
    }
    kkt_db_close(db);
    kkt_text_free(&text);
}

static void test_merge_and_recover(void **state) {
    const fixture *f = *state;
    kkt_error error;
    char other[128];
    snprintf(other, sizeof other, "%s/other.db", f->folder);
    kkt_db_close(counted(f->path));
    kkt_db *to = open_at(":memory:", KKT_DB_WRITE);
    kkt_db_changes changes;
    assert_ok(kkt_db_merge(to, f->path, &changes, &error));
    assert_two(to);
    assert_ok(kkt_db_merge(to, f->path, &changes, &error));
    assert_int_equal(changes.runs, 0);
    assert_two(to);
    kkt_db_close(to);
    assert_ok(kkt_db_recover(f->path, other, &changes, &error));
    assert_int_equal(changes.lost, 0);
    kkt_db *recovered = open_at(other, KKT_DB_READ);
    assert_two(recovered);
    kkt_db_close(recovered);
}

static void test_schema_without_counters(void **state) {
    const fixture *f = *state;
    kkt_error error;
    kkt_db *db = counted(f->path);
    assert_ok(kkt_db_exec(db,
                          "DROP VIEW pipelines; DROP VIEW results; DROP VIEW best_runs;"
                          "DROP TABLE pipeline_members; DROP TABLE pipeline_runs;"
                          "DROP TABLE counters;"
                          "ALTER TABLE runs DROP COLUMN energy_mj;"
                          "ALTER TABLE runs DROP COLUMN outliers;"
                          "ALTER TABLE runs DROP COLUMN throttled;"
                          "ALTER TABLE runs DROP COLUMN disturbed;"
                          "PRAGMA user_version=1",
                          &error));
    kkt_db_close(db);
    db = open_at(f->path, KKT_DB_READ); /* migrated in memory */
    assert_int_equal(look_at(db).counters, 0);
    kkt_db_close(db);
    db = open_at(f->path, KKT_DB_WRITE);
    kkt_db_info info;
    assert_ok(kkt_db_get_info(db, &info, &error));
    assert_int_equal(info.schema_version, KKT_DB_SCHEMA_VERSION);
    assert_true(look_at(db).hbm == 2.5e8);
    assert_ok(kkt_db_put_counters(db, look_at(db).run_id, two, 2, 2.5e8, "modelled", &error));
    assert_two(db);
    int64_t findings = -1;
    assert_ok(kkt_db_check(db, NULL, NULL, &findings, &error));
    assert_int_equal(findings, 0);
    kkt_db_close(db);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_put_and_replace, setup, teardown),
        cmocka_unit_test_setup_teardown(test_view_shows_the_bytes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_recording_round_trip, setup, teardown),
        cmocka_unit_test_setup_teardown(test_recording_completes_rows, setup, teardown),
        cmocka_unit_test_setup_teardown(test_hostile_counters, setup, teardown),
        cmocka_unit_test_setup_teardown(test_merge_and_recover, setup, teardown),
        cmocka_unit_test_setup_teardown(test_schema_without_counters, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
