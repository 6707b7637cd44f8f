/* What happens to the file: killed writers, full disks, read-only folders, locks, files that are
 * something else, older and newer schemas. SQLite is used directly to make such files. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "db/maintain.h"
#include "db/recording.h"
#include "db/store_sqlite.h"
#include "fixture.h"

static int64_t count_runs(kkt_db *db) {
    kkt_error error;
    kkt_db_info info;
    assert_ok(kkt_db_get_info(db, &info, &error));
    return info.runs;
}

static void assert_sound(kkt_db *db) {
    kkt_error error;
    int64_t findings = -1;
    assert_ok(kkt_db_check(db, NULL, NULL, &findings, &error));
    assert_int_equal(findings, 0);
}

static kkt_db *open_mode(const fixture *f, kkt_db_mode mode) {
    kkt_error error;
    kkt_db *db = NULL;
    assert_ok(kkt_db_open(f->path, mode, &db, &error));
    return db;
}

/* The whole file, to see that nothing touched it. */
static char *read_all(const char *path, size_t *length) {
    kkt_error error;
    char *data = NULL;
    assert_ok(kkt_file_read(path, (size_t)1 << 28, &data, length, &error));
    return data;
}

static void execute(const char *path, const char *sql) {
    sqlite3 *handle = NULL;
    assert_int_equal(sqlite3_open(path, &handle), SQLITE_OK);
    char *message = NULL;
    if (sqlite3_exec(handle, sql, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s", message);
    sqlite3_close(handle);
}

/* ---- killed writers ---- */

/* Stores runs for ever and says after each commit how many there are. */
static void write_until_killed(const char *path, int report) {
    kkt_error error;
    kkt_db *db = NULL;
    if (kkt_db_open(path, KKT_DB_WRITE, &db, &error) != KKT_OK)
        _exit(9);
    kkt_db_info info;
    kkt_db_get_info(db, &info, &error);
    for (int64_t i = info.runs;; i++) {
        char config[32];
        snprintf(config, sizeof config, "c=%lld", (long long)i);
        kkt_identity id = identity(config);
        kkt_build_record b = build(HASH_A, "nvrtc 13.0");
        float samples[] = {1.5F, 2.5F};
        kkt_run_record r = run(KKT_MEASURED, "2026-01-01T00:00:00Z", (double)i);
        r.samples_us = samples;
        r.sample_count = 2;
        int64_t candidate = 0, build_id = 0, run_id = 0, committed = i + 1;
        if (kkt_db_candidate(db, &id, &candidate, &error) ||
            kkt_db_put_build(db, candidate, &b, &build_id, &error) ||
            kkt_db_put_run(db, build_id, &r, &run_id, &error))
            _exit(8);
        if (write(report, &committed, sizeof committed) != sizeof committed)
            _exit(7);
    }
}

static void test_kill_loses_at_most_the_one_in_flight(void **state) {
    const fixture *f = *state;
    int64_t stored = 0;
    for (int round = 0; round < 20; round++) {
        int ends[2];
        assert_int_equal(pipe(ends), 0);
        pid_t child = fork();
        if (child == 0)
            write_until_killed(f->path, ends[1]);
        close(ends[1]);
        int64_t committed = 0;
        /* A different moment each time, some of them while the file is being made. */
        struct timespec pause = {0, 1000000L + 1700000L * round};
        if (round % 4 != 0)
            assert_int_equal(read(ends[0], &committed, sizeof committed), sizeof committed);
        nanosleep(&pause, NULL);
        kill(child, SIGKILL);
        int status = 0;
        waitpid(child, &status, 0);
        assert_true(WIFSIGNALED(status));
        for (int64_t next; read(ends[0], &next, sizeof next) == sizeof next;)
            committed = next;
        close(ends[0]);
        kkt_db *db = open_mode(f, KKT_DB_WRITE);
        stored = count_runs(db);
        if (stored < committed || (committed > 0 && stored > committed + 1))
            fail_msg("%lld committed, %lld found", (long long)committed, (long long)stored);
        assert_sound(db);
        kkt_db_close(db);
    }
    assert_true(stored >= 15);
}

/* ---- two writers ---- */

static void test_two_writers(void **state) {
    const fixture *f = *state;
    enum { WRITERS = 3, ROWS = 60 };
    pid_t children[WRITERS];
    for (int w = 0; w < WRITERS; w++) {
        children[w] = fork();
        if (children[w] != 0)
            continue;
        kkt_error error;
        kkt_db *db = NULL;
        if (kkt_db_open(f->path, KKT_DB_WRITE, &db, &error) != KKT_OK)
            _exit(1);
        for (int i = 0; i < ROWS; i++) {
            char config[32];
            snprintf(config, sizeof config, "c=%d", i); /* the same candidates for all */
            kkt_identity id = identity(config);
            kkt_build_record b = build(HASH_A, "nvrtc 13.0");
            kkt_run_record r = run(KKT_MEASURED, "2026-01-01T00:00:00Z", w);
            int64_t candidate = 0, build_id = 0, run_id = 0;
            if (kkt_db_candidate(db, &id, &candidate, &error) ||
                kkt_db_put_build(db, candidate, &b, &build_id, &error) ||
                kkt_db_put_run(db, build_id, &r, &run_id, &error))
                _exit(2);
        }
        kkt_db_close(db);
        _exit(0);
    }
    for (int w = 0; w < WRITERS; w++) {
        int status = -1;
        waitpid(children[w], &status, 0);
        assert_int_equal(status, 0);
    }
    kkt_db *db = open_mode(f, KKT_DB_READ);
    kkt_error error;
    kkt_db_info info;
    assert_ok(kkt_db_get_info(db, &info, &error));
    assert_int_equal(info.candidates, ROWS);
    assert_int_equal(info.builds, ROWS);
    assert_int_equal(info.runs, WRITERS * ROWS);
    assert_sound(db);
    kkt_db_close(db);
}

static void test_locked(void **state) {
    const fixture *f = *state;
    kkt_error error;
    kkt_db *holder = open_mode(f, KKT_DB_WRITE), *other = open_mode(f, KKT_DB_WRITE);
    kkt_db_set_timeout(other, 50);
    assert_ok(kkt_db_begin(holder, &error));
    kkt_identity id = identity("c=1");
    int64_t candidate = 0;
    assert_status(KKT_ERR_ENVIRONMENT, kkt_db_candidate(other, &id, &candidate, &error));
    assert_says("locked by another process"); /* this one does not count as its own rival */
    assert_int_equal(error.native & 0xff, SQLITE_BUSY);
    kkt_db_info info; /* reading goes on */
    assert_ok(kkt_db_get_info(other, &info, &error));
    kkt_db_rollback(holder);
    assert_ok(kkt_db_candidate(other, &id, &candidate, &error));
    kkt_db_close(holder);
    kkt_db_close(other);
}

/* Holds the write lock until the pipe is closed. */
static void hold_lock(const char *path, int ready, int end) {
    kkt_error error;
    kkt_db *db = NULL;
    char byte = 1;
    if (kkt_db_open(path, KKT_DB_WRITE, &db, &error) != KKT_OK ||
        kkt_db_begin(db, &error) != KKT_OK || write(ready, &byte, 1) != 1)
        _exit(1);
    _exit(read(end, &byte, 1) == 0 ? 0 : 1);
}

static void test_the_holder_is_named(void **state) {
    const fixture *f = *state;
    kkt_error error;
    int ready[2], end[2];
    char byte, expected[64];
    kkt_db_close(open_mode(f, KKT_DB_WRITE));
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(end), 0);
    pid_t child = fork();
    if (child == 0) {
        close(end[1]);
        hold_lock(f->path, ready[1], end[0]);
    }
    close(end[0]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    kkt_db *db = open_mode(f, KKT_DB_WRITE);
    kkt_db_set_timeout(db, 20);
    kkt_identity id = identity("c=1");
    int64_t candidate = 0;
    assert_status(KKT_ERR_ENVIRONMENT, kkt_db_candidate(db, &id, &candidate, &error));
    snprintf(expected, sizeof expected, "locked by process %ld (test_durable", (long)child);
    assert_says(expected);
    close(end[1]);
    int status = -1;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    assert_ok(kkt_db_candidate(db, &id, &candidate, &error)); /* and the lock has gone with it */
    kkt_db_close(db);
    close(ready[0]);
    close(ready[1]);
}

/* ---- files that are something else ---- */

static void assert_refused(const fixture *f, kkt_db_mode mode, kkt_status expected,
                           const char *says) {
    kkt_error error;
    kkt_db *db = (kkt_db *)&error;
    size_t before = 0, after = 0;
    char *old = read_all(f->path, &before);
    assert_status(expected, kkt_db_open(f->path, mode, &db, &error));
    assert_null(db);
    assert_says(says);
    assert_says(f->path);
    char *new = read_all(f->path, &after);
    assert_int_equal(before, after);
    assert_memory_equal(old, new, before);
    free(old);
    free(new);
}

static void test_not_a_database(void **state) {
    const fixture *f = *state;
    kkt_error error;
    kkt_db *db = NULL;
    assert_status(KKT_ERR_INPUT, kkt_db_open(f->path, KKT_DB_READ, &db, &error));
    assert_says("there is no database");
    assert_false(kkt_file_exists(f->path));
    assert_status(KKT_ERR_INPUT, kkt_db_open(f->folder, KKT_DB_WRITE, &db, &error));
    assert_says("not a regular file");
    assert_ok(kkt_file_write(f->path, "hello\n", 6, &error));
    assert_refused(f, KKT_DB_WRITE, KKT_ERR_INPUT, "not a kkttune database");
    assert_refused(f, KKT_DB_READ, KKT_ERR_INPUT, "not a kkttune database");
    char fake[4096] = "SQLite format 3";
    memset(fake + 16, 0x5a, sizeof fake - 16);
    assert_ok(kkt_file_write(f->path, fake, sizeof fake, &error));
    assert_refused(f, KKT_DB_WRITE, KKT_ERR_INPUT, "not a kkttune database");
    assert_ok(kkt_file_write(f->path, fake, 50, &error));
    assert_refused(f, KKT_DB_WRITE, KKT_ERR_INPUT, f->path);
    unlink(f->path);
    execute(f->path, "CREATE TABLE theirs (x)");
    assert_refused(f, KKT_DB_WRITE, KKT_ERR_INPUT, "another program");
    unlink(f->path);
    assert_ok(kkt_file_write(f->path, "", 0, &error)); /* as mktemp leaves it */
    assert_refused(f, KKT_DB_READ, KKT_ERR_INPUT, "is empty");
    db = open_mode(f, KKT_DB_WRITE);
    assert_sound(db);
    kkt_db_close(db);
}

/* Reading changes nothing, allows no change, and leaves no log files behind. */
static void test_reading(void **state) {
    const fixture *f = *state;
    kkt_error error;
    kkt_db *db = open_mode(f, KKT_DB_WRITE);
    kkt_run_record r = run(KKT_MEASURED, "2026-01-01T00:00:00Z", 3);
    int64_t candidate = add_run(db, "c=1", HASH_A, &r), other = 0;
    kkt_db_close(db);
    size_t before = 0, after = 0;
    char *old = read_all(f->path, &before);
    db = open_mode(f, KKT_DB_READ);
    assert_int_equal(count_runs(db), 1);
    assert_status(KKT_ERR_ENVIRONMENT,
                  kkt_db_set_outcome(db, candidate, KKT_OUTCOME_RACY, NULL, &error));
    kkt_identity id = identity("c=2");
    assert_status(KKT_ERR_ENVIRONMENT, kkt_db_candidate(db, &id, &other, &error));
    assert_says("cannot write");
    kkt_db_close(db);
    char *new = read_all(f->path, &after);
    assert_int_equal(before, after);
    assert_memory_equal(old, new, before);
    free(old);
    free(new);
    char log[128];
    snprintf(log, sizeof log, "%s-wal", f->path);
    assert_false(kkt_file_exists(log));
}

static void test_newer_schema(void **state) {
    const fixture *f = *state;
    kkt_db_close(open_mode(f, KKT_DB_WRITE));
    execute(f->path, "PRAGMA journal_mode=DELETE; PRAGMA user_version=99");
    assert_refused(f, KKT_DB_WRITE, KKT_ERR_INPUT, "schema version 99");
    assert_refused(f, KKT_DB_READ, KKT_ERR_INPUT, "use a newer kkttune");
}

/* Version 0 as it was before the first release. */
static const char version_0[] =
    "PRAGMA application_id=1802204276; PRAGMA user_version=0;"
    "CREATE TABLE meta (key TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL) STRICT;"
    "CREATE TABLE problems (id INTEGER PRIMARY KEY, kernel TEXT NOT NULL, text TEXT NOT NULL,"
    " UNIQUE (kernel, text)) STRICT;"
    "CREATE TABLE configurations (id INTEGER PRIMARY KEY, kernel TEXT NOT NULL, style TEXT NOT"
    " NULL, text TEXT NOT NULL, UNIQUE (kernel, style, text)) STRICT;"
    "CREATE TABLE candidates (id INTEGER PRIMARY KEY, problem_id INTEGER NOT NULL REFERENCES"
    " problems (id), configuration_id INTEGER NOT NULL REFERENCES configurations (id), arch TEXT"
    " NOT NULL, device TEXT NOT NULL, verdict TEXT, verdict_reason TEXT, UNIQUE (problem_id,"
    " configuration_id, arch, device)) STRICT;"
    "CREATE TABLE predictions (candidate_id INTEGER PRIMARY KEY REFERENCES candidates (id),"
    " model_version TEXT, registers INTEGER, smem_bytes INTEGER, hbm_bytes REAL,"
    " hbm_bytes_per_token REAL, blocks_per_sm INTEGER, feasible INTEGER NOT NULL, spills INTEGER"
    " NOT NULL, calibrated INTEGER NOT NULL, limiter TEXT, reason TEXT, chain_steps REAL,"
    " lower_bound_us REAL, predicted_us REAL) STRICT;"
    "CREATE TABLE builds (id INTEGER PRIMARY KEY, candidate_id INTEGER NOT NULL REFERENCES"
    " candidates (id), kernel_hash TEXT NOT NULL, options TEXT NOT NULL, compiler TEXT NOT NULL,"
    " outcome TEXT NOT NULL, log TEXT, registers INTEGER, static_smem_bytes INTEGER,"
    " dynamic_smem_bytes INTEGER, spill_store_bytes INTEGER, spill_load_bytes INTEGER, stack_bytes"
    " INTEGER, barriers INTEGER, cubin_bytes INTEGER, compile_ms REAL, UNIQUE (candidate_id,"
    " kernel_hash, options, compiler)) STRICT;"
    "CREATE TABLE runs (id INTEGER PRIMARY KEY, build_id INTEGER NOT NULL REFERENCES builds (id),"
    " provenance TEXT NOT NULL, outcome TEXT NOT NULL, reason TEXT, gpu TEXT, driver TEXT, date"
    " TEXT, policy TEXT, tool_version TEXT, time_us REAL, time_low_us REAL, time_high_us REAL,"
    " sample_count INTEGER NOT NULL, rel_fro REAL, max_abs REAL, growth REAL, tolerance REAL,"
    " sm_clock_mhz REAL, memory_clock_mhz REAL, temperature_c REAL, power_w REAL, throttle TEXT,"
    " hbm_bytes_counted REAL) STRICT;"
    "CREATE TABLE samples (run_id INTEGER PRIMARY KEY REFERENCES runs (id), times_us TEXT NOT NULL)"
    " STRICT;"
    "CREATE VIEW results AS SELECT 1 AS old;"
    "INSERT INTO problems VALUES (1, 'kkt_solve', 'tokens=64');"
    "INSERT INTO configurations VALUES (1, 'kkt_solve', 'materialized', 'chunk=64');"
    "INSERT INTO candidates VALUES (1, 1, 1, 'sm90', 'h200', NULL, NULL);"
    "INSERT INTO builds (id, candidate_id, kernel_hash, options, compiler, outcome)"
    " VALUES (1, 1, 'ab', '', 'nvrtc 13.0', 'compiled');"
    "INSERT INTO runs (build_id, provenance, outcome, time_us, sample_count)"
    " VALUES (1, 'measured', 'ok', 12.5, 2);"
    "INSERT INTO samples VALUES (1, '[12.25,12.75]');";

static kkt_status take_time(void *context, const kkt_result *result, kkt_error *err) {
    (void)err;
    *(double *)context = result->run.time_us;
    return KKT_OK;
}

/* What turned version 0 into version 1, as it was then. */
static const char to_version_1[] = "ALTER TABLE builds ADD COLUMN stale_reason TEXT;"
                                   "ALTER TABLE runs ADD COLUMN counters_note TEXT;"
                                   "PRAGMA user_version=1;";

static const char to_version_2[] =
    "CREATE TABLE counters (run_id INTEGER NOT NULL REFERENCES runs (id), name TEXT NOT NULL, value"
    " REAL NOT NULL, unit TEXT NOT NULL, chip TEXT NOT NULL, UNIQUE (run_id, name)) STRICT;"
    "PRAGMA user_version=2;";

static const char to_version_3[] = "ALTER TABLE runs ADD COLUMN energy_mj REAL;"
                                   "ALTER TABLE runs ADD COLUMN outliers INTEGER;"
                                   "ALTER TABLE runs ADD COLUMN throttled INTEGER;"
                                   "ALTER TABLE runs ADD COLUMN disturbed TEXT;"
                                   "PRAGMA user_version=3;";

static void migrate_from(const fixture *f, const char *const *scripts) {
    kkt_error error;
    for (; *scripts; scripts++)
        execute(f->path, *scripts);
    size_t before = 0, after = 0;
    char *old = read_all(f->path, &before);
    kkt_db *db = open_mode(f, KKT_DB_READ); /* in memory: the file stays */
    double us = 0;
    assert_ok(kkt_db_results(db, NULL, NULL, take_time, &us, &error));
    assert_true(us == 12.5);
    kkt_db_close(db);
    char *same = read_all(f->path, &after);
    assert_int_equal(before, after);
    assert_memory_equal(old, same, before);
    free(old);
    free(same);
    db = open_mode(f, KKT_DB_WRITE);
    kkt_db_info info;
    assert_ok(kkt_db_get_info(db, &info, &error));
    assert_int_equal(info.schema_version, KKT_DB_SCHEMA_VERSION);
    assert_int_equal(info.runs, 1);
    assert_int_equal(info.samples, 2);
    kkt_run_record r = run(KKT_MEASURED, "2026-01-01T00:00:00Z", 3);
    add_run(db, "chunk=32", HASH_A, &r);
    assert_sound(db);
    kkt_db_close(db);
    kkt_db_close(open_mode(f, KKT_DB_READ));
}

static void test_older_schemas(void **state) {
    const fixture *f = *state;
    static const char *const versions[][5] = {
        {version_0},
        {version_0, to_version_1},
        {version_0, to_version_1, to_version_2},
        {version_0, to_version_1, to_version_2, to_version_3}};
    assert_true(sizeof versions / sizeof versions[0] >= KKT_DB_SCHEMA_VERSION); /* add yours */
    for (int version = 0; version < KKT_DB_SCHEMA_VERSION; version++) {
        migrate_from(f, versions[version]);
        unlink(f->path);
    }
}

/* ---- disks and permissions ---- */

/* Runs `body` in a child that cannot write to what it does not own. */
static void in_child(void (*body)(const fixture *f), const fixture *f) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
            _exit(77);
        body(f);
        _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
}

static void read_only_body(const fixture *f) {
    kkt_error error = {0};
    kkt_db *db = NULL;
    char other[160];
    snprintf(other, sizeof other, "%s/new.db", f->folder);
    if (kkt_db_open(other, KKT_DB_WRITE, &db, &error) != KKT_ERR_ENVIRONMENT ||
        !strstr(error.message, "check the permissions"))
        _exit(1);
    if (kkt_db_open(f->path, KKT_DB_WRITE, &db, &error) != KKT_ERR_ENVIRONMENT)
        _exit(2);
    if (kkt_db_open(f->path, KKT_DB_READ, &db, &error) != KKT_OK)
        _exit(3);
    kkt_db_info info;
    if (kkt_db_get_info(db, &info, &error) != KKT_OK || info.runs != 1)
        _exit(4);
    kkt_identity id = identity("c=2");
    int64_t candidate = 0;
    if (kkt_db_candidate(db, &id, &candidate, &error) != KKT_ERR_ENVIRONMENT)
        _exit(5);
    kkt_db_close(db);
}

static void test_read_only_folder(void **state) {
    const fixture *f = *state;
    kkt_db *db = open_mode(f, KKT_DB_WRITE);
    kkt_run_record r = run(KKT_MEASURED, "2026-01-01T00:00:00Z", 3);
    add_run(db, "c=1", HASH_A, &r);
    kkt_db_close(db);
    assert_int_equal(chmod(f->path, 0444), 0);
    assert_int_equal(chmod(f->folder, 0555), 0);
    in_child(read_only_body, f);
    assert_int_equal(chmod(f->folder, 0755), 0);
}

/* A limit on file size acts as a full disk: writes beyond it fail. */
static void full_disk_body(const fixture *f) {
    kkt_error error = {0};
    kkt_db *db = NULL;
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit limit = {1500000, 1500000};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
        _exit(70);
    if (kkt_db_open(f->path, KKT_DB_WRITE, &db, &error) != KKT_OK)
        _exit(71);
    int64_t stored = 0;
    kkt_status status = KKT_OK;
    char options[1000];
    memset(options, 'x', sizeof options);
    options[sizeof options - 1] = '\0';
    for (; status == KKT_OK && stored < 10000; stored++) {
        char config[32];
        snprintf(config, sizeof config, "c=%lld", (long long)stored);
        kkt_identity id = identity(config);
        kkt_build_record b = build(HASH_A, "nvrtc 13.0");
        b.options = options;
        int64_t candidate = 0, build_id = 0, run_id = 0;
        kkt_run_record r = run(KKT_MEASURED, "2026-01-01T00:00:00Z", 1);
        status = kkt_db_candidate(db, &id, &candidate, &error);
        if (status == KKT_OK)
            status = kkt_db_put_build(db, candidate, &b, &build_id, &error);
        if (status == KKT_OK)
            status = kkt_db_put_run(db, build_id, &r, &run_id, &error);
    }
    stored--; /* the one that failed */
    if (status != KKT_ERR_ENVIRONMENT)
        _exit(72);
    if (!strstr(error.message, "committed before is safe"))
        _exit(73);
    kkt_db_close(db);
    if (stored < 10 || stored > 200)
        _exit(74);
    _exit((int)stored);
}

static void test_full_disk(void **state) {
    const fixture *f = *state;
    kkt_error error;
    kkt_db_close(open_mode(f, KKT_DB_WRITE));
    pid_t child = fork();
    if (child == 0)
        full_disk_body(f);
    int status = -1;
    waitpid(child, &status, 0);
    assert_true(WIFEXITED(status));
    int stored = WEXITSTATUS(status);
    if (stored >= 70 && stored <= 74)
        fail_msg("the child gave up with %d", stored);
    kkt_db *db = open_mode(f, KKT_DB_WRITE);
    kkt_db_info info;
    assert_ok(kkt_db_get_info(db, &info, &error));
    assert_int_equal(info.runs, stored);
    assert_sound(db);
    kkt_db_close(db);
}

static void test_network_filesystems(void **state) {
    const fixture *f = *state;
    assert_string_equal(kkt_db_network_filesystem(0x6969), "NFS");
    assert_string_equal(kkt_db_network_filesystem((long)0xff534d42), "CIFS");
    /* 32-bit f_type fields are sign-extended */
    assert_string_equal(kkt_db_network_filesystem(-11317950L), "CIFS");
    assert_string_equal(kkt_db_network_filesystem(0x01021997), "9p");
    assert_null(kkt_db_network_filesystem(0xef53));     /* ext4 */
    assert_null(kkt_db_network_filesystem(0x01021994)); /* tmpfs */
    assert_null(kkt_db_network_filesystem(0x794c7630)); /* overlay */
    kkt_db *db = open_mode(f, KKT_DB_WRITE);
    assert_true(db->wal == !kkt_db_note(db));
    kkt_db_close(db);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_kill_loses_at_most_the_one_in_flight, setup, teardown),
        cmocka_unit_test_setup_teardown(test_two_writers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_locked, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_holder_is_named, setup, teardown),
        cmocka_unit_test_setup_teardown(test_not_a_database, setup, teardown),
        cmocka_unit_test_setup_teardown(test_reading, setup, teardown),
        cmocka_unit_test_setup_teardown(test_newer_schema, setup, teardown),
        cmocka_unit_test_setup_teardown(test_older_schemas, setup, teardown),
        cmocka_unit_test_setup_teardown(test_read_only_folder, setup, teardown),
        cmocka_unit_test_setup_teardown(test_full_disk, setup, teardown),
        cmocka_unit_test_setup_teardown(test_network_filesystems, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
