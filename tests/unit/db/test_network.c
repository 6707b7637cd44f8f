/* A database on a network file system, of which the C library is made to speak here: no write-ahead
 * log, said once, and everything works. */
#include <sys/vfs.h>

#include "db/maintain.h"
#include "db/store_sqlite.h"
#include "fixture.h"

/* Stands in for the C library's. Nothing but the type is asked for. */
int statfs(const char *path, struct statfs *out) {
    (void)path;
    memset(out, 0, sizeof *out);
    out->f_type = 0x6969; /* NFS */
    return 0;
}

static void expect_journal(kkt_db *db, const char *expected) {
    sqlite3_stmt *s = NULL;
    assert_int_equal(sqlite3_prepare_v2(db->handle, "PRAGMA journal_mode", -1, &s, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    assert_string_equal(kkt_column_text(s, 0), expected);
    sqlite3_finalize(s);
}

static void test_safe_mode(void **state) {
    const fixture *f = *state;
    kkt_error error;
    kkt_db *db = NULL;
    assert_ok(kkt_db_open(f->path, KKT_DB_WRITE, &db, &error));
    assert_non_null(kkt_db_note(db));
    assert_non_null(strstr(kkt_db_note(db), "network file system"));
    assert_false(db->wal);
    expect_journal(db, "delete");
    kkt_run_record r = run(KKT_MEASURED, "2026-01-01T00:00:00Z", 3);
    add_run(db, "c=1", HASH_A, &r);
    char log[160];
    snprintf(log, sizeof log, "%s-wal", f->path);
    assert_false(kkt_file_exists(log));
    kkt_db_close(db);
    /* One that has a log already is given up its log. */
    sqlite3 *handle = NULL;
    assert_int_equal(sqlite3_open(f->path, &handle), SQLITE_OK);
    assert_int_equal(sqlite3_exec(handle, "PRAGMA journal_mode=WAL", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(handle);
    assert_ok(kkt_db_open(f->path, KKT_DB_WRITE, &db, &error));
    expect_journal(db, "delete");
    kkt_db_info info;
    int64_t findings = -1;
    assert_ok(kkt_db_get_info(db, &info, &error));
    assert_int_equal(info.runs, 1);
    assert_ok(kkt_db_check(db, NULL, NULL, &findings, &error));
    assert_int_equal(findings, 0);
    kkt_db_close(db);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_safe_mode, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
