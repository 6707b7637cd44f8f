/* Checking, merging and recovering database files. SQLite is used directly to damage them. */
#include "base/text.h"
#include "db/maintain.h"
#include "db/recording.h"
#include "db/store_sqlite.h"
#include "fixture.h"

typedef struct findings {
    kkt_text text;
    int64_t count;
} findings;

static void keep(void *context, const char *finding) {
    kkt_text_printf(context, "%s\n", finding);
}

static findings check(kkt_db *db) {
    kkt_error error;
    findings f = {0};
    assert_ok(kkt_db_check(db, keep, &f.text, &f.count, &error));
    int64_t lines = 0;
    for (const char *c = kkt_text_get(&f.text); *c; c++)
        lines += *c == '\n';
    assert_int_equal(lines, f.count < 100 ? f.count : 100); /* one each */
    return f;
}

/* Runs SQL behind the store's back. */
static void execute(const char *path, const char *sql) {
    sqlite3 *handle = NULL;
    assert_int_equal(sqlite3_open(path, &handle), SQLITE_OK);
    char *message = NULL;
    sqlite3_exec(handle, "SAVEPOINT undo", NULL, NULL, NULL);
    if (sqlite3_exec(handle, sql, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s: %s", sql, message);
    sqlite3_exec(handle, "RELEASE undo", NULL, NULL, NULL);
    sqlite3_close(handle);
}

static void assert_finds(const fixture *f, const char *damage, const char *says) {
    kkt_error error;
    execute(f->path, damage);
    kkt_db *db = NULL;
    assert_ok(kkt_db_open(f->path, KKT_DB_READ, &db, &error));
    findings found = check(db);
    if (found.count < 1 || !strstr(kkt_text_get(&found.text), says))
        fail_msg("'%s' is not among %lld findings: %s", says, (long long)found.count,
                 kkt_text_get(&found.text));
    kkt_text_free(&found.text);
    kkt_db_close(db);
}

static void fill(const char *path, int rows, const char *hash) {
    kkt_error error;
    kkt_db *db = NULL;
    float samples[] = {1.25F, 2.5F, 3.125F};
    assert_ok(kkt_db_open(path, KKT_DB_WRITE, &db, &error));
    assert_ok(kkt_db_begin(db, &error));
    for (int i = 0; i < rows; i++) {
        char config[32];
        snprintf(config, sizeof config, "c=%06d", i);
        kkt_run_record r = run(KKT_MEASURED, "2026-01-01T00:00:00Z", i);
        r.samples_us = samples;
        r.sample_count = 3;
        int64_t id = add_run(db, config, hash, &r);
        kkt_prediction_record p = prediction(i);
        assert_ok(kkt_db_put_prediction(db, id, &p, &error));
    }
    assert_ok(kkt_db_commit(db, &error));
    kkt_db_close(db);
}

static void test_semantic_checks(void **state) {
    const fixture *f = *state;
    static const char *const cases[][2] = {
        {"UPDATE candidates SET verdict='splendid' WHERE id=2", "unknown outcome splendid"},
        {"UPDATE runs SET outcome='okay' WHERE id=1", "run 1 has unknown outcome okay"},
        {"UPDATE builds SET outcome='' WHERE id=3", "build 3 has unknown outcome"},
        {"UPDATE samples SET times_us='[1,2]' WHERE run_id=2", "samples of run 2 are not 3"},
        {"UPDATE samples SET times_us='[1,2,x]' WHERE run_id=3", "samples of run 3 are not 3"},
        {"UPDATE problems SET text='b=1,a=2'", "problem 1 is not canonical: b=1,a=2"},
        {"UPDATE configurations SET text='c' WHERE id=1", "configuration 1 is not canonical: c"},
        {"UPDATE configurations SET kernel='gdn' WHERE id=2", "joins a problem of kkt_solve"},
        {"UPDATE runs SET time_low_us=1e9 WHERE id=2", "run 2 has a median outside"},
        {"UPDATE runs SET time_us=9e999, time_high_us=9e999 WHERE id=4",
         "run 4 has a time that is no finite number"},
        {"DELETE FROM candidates WHERE id=4", "refers to no row of candidates"},
        {"DROP VIEW results; CREATE VIEW results AS SELECT no_such FROM candidates",
         "view results is not the one of this kkttune"},
        {"PRAGMA user_version", "unreadable: no such column: no_such"},
        {"DROP VIEW best_runs; CREATE VIEW best_runs AS SELECT id AS candidate_id, NULL AS run_id"
         " FROM candidates",
         "view best_runs is not the one"},
        {"PRAGMA writable_schema=1; UPDATE sqlite_schema SET sql = replace(sql, 'NOT NULL', '')"
         " WHERE name = 'problems'; PRAGMA writable_schema=RESET; UPDATE problems SET text=NULL;"
         " PRAGMA writable_schema=1; UPDATE sqlite_schema SET sql = replace(sql, 'TEXT', 'TEXT NOT"
         " NULL') WHERE name = 'problems'; PRAGMA writable_schema=RESET",
         "problem 1 is not canonical: "},
        {"CREATE TRIGGER evil AFTER INSERT ON runs BEGIN DELETE FROM runs; END", "trigger evil"},
    };
    fill(f->path, 5, HASH_A);
    kkt_error error;
    kkt_db *db = NULL;
    assert_ok(kkt_db_open(f->path, KKT_DB_READ, &db, &error));
    assert_int_equal(check(db).count, 0);
    kkt_db_close(db);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_finds(f, cases[i][0], cases[i][1]);
    /* The trigger is found, and does not run. */
    assert_ok(kkt_db_open(f->path, KKT_DB_WRITE, &db, &error));
    kkt_run_record r = run(KKT_MEASURED, "2026-02-01T00:00:00Z", 1);
    add_run(db, "c=000000", HASH_A, &r);
    kkt_db_info info;
    assert_ok(kkt_db_get_info(db, &info, &error));
    assert_int_equal(info.runs, 6);
    kkt_db_close(db);
}

static void test_merge_is_idempotent(void **state) {
    const fixture *f = *state;
    kkt_error error;
    char other[160];
    snprintf(other, sizeof other, "%s/other.db", f->folder);
    fill(f->path, 4, HASH_A);
    fill(other, 6, HASH_B);
    kkt_db *db = NULL;
    kkt_db_changes added;
    assert_ok(kkt_db_open(other, KKT_DB_WRITE, &db, &error));
    kkt_identity id = identity("c=rejected");
    int64_t candidate = 0;
    assert_ok(kkt_db_candidate(db, &id, &candidate, &error));
    assert_ok(kkt_db_set_outcome(db, candidate, KKT_OUTCOME_REJECTED, "too much", &error));
    kkt_db_close(db);

    assert_ok(kkt_db_open(f->path, KKT_DB_WRITE, &db, &error));
    assert_ok(kkt_db_merge(db, other, &added, &error));
    assert_int_equal(added.candidates, 3); /* two more, and the rejected one */
    assert_int_equal(added.predictions, 2);
    assert_int_equal(added.builds, 6);
    assert_int_equal(added.runs, 6);
    assert_ok(kkt_db_merge(db, other, &added, &error));
    assert_int_equal(added.candidates + added.predictions + added.builds + added.runs, 0);
    kkt_db_summary summary;
    assert_ok(kkt_db_summarize(db, &summary, &error));
    assert_int_equal(summary.tiers[KKT_MEASURED], 6);
    assert_int_equal(summary.tiers[KKT_PREDICTED], 1);
    assert_int_equal(summary.outcomes[KKT_OUTCOME_REJECTED], 1);
    assert_int_equal(summary.outcomes[KKT_OUTCOME_OK], 6);
    assert_int_equal(summary.stale, 0);
    kkt_freshness other_compiler = {"nvrtc 14.0", NULL, NULL, NULL};
    assert_ok(kkt_db_mark_stale(db, &other_compiler, &error));
    assert_ok(kkt_db_summarize(db, &summary, &error));
    assert_int_equal(summary.stale, 6);
    assert_int_equal(summary.tiers[KKT_MEASURED], 6);
    kkt_freshness same = {"nvrtc 13.0", NULL, NULL, NULL};
    assert_ok(kkt_db_mark_stale(db, &same, &error));
    assert_ok(kkt_db_summarize(db, &summary, &error));
    assert_int_equal(summary.stale, 0);
    assert_int_equal(check(db).count, 0);
    /* A file that cannot be read adds nothing. */
    assert_status(KKT_ERR_INPUT, kkt_db_merge(db, "/nowhere/x.db", &added, &error));
    kkt_db_close(db);
}

static int64_t count_runs(kkt_db *db) {
    kkt_error error;
    kkt_db_info info;
    assert_ok(kkt_db_get_info(db, &info, &error));
    return info.runs;
}

/* Runs without a time, of one build, in one second: told apart by reason and policy. */
static void test_merge_keeps_failures_apart(void **state) {
    const fixture *f = *state;
    static const char *const told[][2] = {
        {"10 s passed", "default"}, {"two runs differ", "default"}, {"10 s passed", "long"}};
    kkt_error error;
    char other[160];
    snprintf(other, sizeof other, "%s/other.db", f->folder);
    kkt_db *db = NULL;
    assert_ok(kkt_db_open(other, KKT_DB_WRITE, &db, &error));
    for (size_t i = 0; i < 3; i++) {
        kkt_run_record r = run(KKT_MEASURED, "2026-01-01T00:00:00Z", KKT_UNKNOWN_REAL);
        r.outcome = KKT_OUTCOME_TIMED_OUT;
        r.reason = told[i][0];
        r.policy = told[i][1];
        add_run(db, "c=1", HASH_A, &r);
    }
    assert_int_equal(count_runs(db), 3);
    kkt_db_close(db);
    kkt_db_changes added;
    assert_ok(kkt_db_open(f->path, KKT_DB_WRITE, &db, &error));
    assert_ok(kkt_db_merge(db, other, &added, &error));
    assert_int_equal(added.runs, 3);
    assert_ok(kkt_db_merge(db, other, &added, &error));
    assert_int_equal(added.runs, 0);
    assert_int_equal(count_runs(db), 3);
    kkt_db_close(db);
}

/* A file of sound pages whose rows mean nothing: not merged, and left behind by recovery. */
static void test_unsound_rows_stay_where_they_are(void **state) {
    const fixture *f = *state;
    static const char *const faults[] = {
        "UPDATE samples SET times_us = '[1,2'",
        "UPDATE runs SET outliers = sample_count + 1",
        "UPDATE runs SET time_us = time_high_us + 1",
        "UPDATE configurations SET text = 'c=1,' || text",
    };
    kkt_error error;
    char other[160], saved[160];
    snprintf(other, sizeof other, "%s/other.db", f->folder);
    fill(f->path, 1, HASH_A);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        kkt_db *db = NULL;
        kkt_db_changes added;
        fill(other, 2, HASH_B);
        execute(other, faults[i]);
        assert_ok(kkt_db_open(f->path, KKT_DB_WRITE, &db, &error));
        assert_status(KKT_ERR_INPUT, kkt_db_merge(db, other, &added, &error));
        assert_says("other.db");
        assert_int_equal(added.runs, 0);
        assert_int_equal(count_runs(db), 1);
        assert_int_equal(check(db).count, 0);
        kkt_db_close(db);
        /* What is recovered of it is sound. */
        snprintf(saved, sizeof saved, "%s/saved-%zu.db", f->folder, i);
        assert_ok(kkt_db_recover(other, saved, &added, &error));
        assert_int_equal(added.lost > 0, 1);
        assert_ok(kkt_db_open(saved, KKT_DB_READ, &db, &error));
        assert_int_equal(check(db).count, 0);
        kkt_db_close(db);
        unlink(other);
    }
}

static kkt_status pass(void *context, const kkt_result *result, kkt_error *err) {
    (void)context;
    (void)result;
    (void)err;
    return KKT_OK;
}

static kkt_status pass_counter(void *context, const kkt_counter_record *counter, kkt_error *err) {
    (void)context;
    (void)counter;
    (void)err;
    return KKT_OK;
}

/* NOT NULL is kept by whoever writes through SQLite; the pages of a damaged file hold anything. */
static void test_missing_values(void **state) {
    const fixture *f = *state;
    static const char *const columns[][2] = {
        {"problems", "text"},       {"problems", "kernel"}, {"configurations", "style"},
        {"configurations", "text"}, {"candidates", "arch"}, {"candidates", "device"},
        {"builds", "outcome"},      {"runs", "provenance"}, {"samples", "times_us"},
        {"counters", "name"},       {"counters", "unit"},   {"counters", "chip"},
    };
    const kkt_counter_record counter = {"l2_hit_rate", 0.5, "%", "GH100"};
    kkt_error error;
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
        kkt_db *db = NULL, *into = NULL;
        kkt_db_changes added;
        char sql[400];
        float *samples = NULL;
        size_t count = 0;
        fill(f->path, 1, HASH_A);
        assert_ok(kkt_db_open(f->path, KKT_DB_WRITE, &db, &error));
        assert_ok(kkt_db_put_counters(db, 1, &counter, 1, 5.0, NULL, &error));
        kkt_db_close(db);
        snprintf(sql, sizeof sql,
                 "PRAGMA writable_schema=1; UPDATE sqlite_schema SET sql = replace(sql, 'NOT NULL',"
                 " '') WHERE name = '%s'; PRAGMA writable_schema=RESET; UPDATE %s SET %s = NULL%s",
                 columns[i][0], columns[i][0], columns[i][1],
                 strcmp(columns[i][0], "samples") == 0 ? "; UPDATE runs SET sample_count = 0" : "");
        execute(f->path, sql);
        assert_ok(kkt_db_open(f->path, KKT_DB_READ, &db, &error));
        kkt_status results = kkt_db_results(db, NULL, NULL, pass, NULL, &error);
        kkt_status counters = kkt_db_counters(db, 1, pass_counter, NULL, &error);
        kkt_status kept = kkt_db_samples(db, 1, &samples, &count, &error);
        if (results == KKT_OK && counters == KKT_OK && kept == KKT_OK)
            fail_msg("nobody minds that %s.%s is missing", columns[i][0], columns[i][1]);
        free(samples);
        kkt_db_close(db);
        assert_ok(kkt_db_open(":memory:", KKT_DB_WRITE, &into, &error));
        if (kkt_db_merge(into, f->path, &added, &error) == KKT_OK) /* without the samples */
            assert_int_equal(check(into).count, 0);
        kkt_db_close(into);
        unlink(f->path);
    }
}

/* Overwrites a page of the file with noise. */
static void damage_page(const char *path, long page) {
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    unsigned char noise[4096];
    memset(noise, 0xa7, sizeof noise);
    assert_int_equal(fseek(file, (page - 1) * 4096, SEEK_SET), 0);
    assert_int_equal(fwrite(noise, 1, sizeof noise, file), sizeof noise);
    assert_int_equal(fclose(file), 0);
}

static int64_t page_count(const char *path) {
    kkt_error error;
    char *data = NULL;
    size_t length = 0;
    assert_ok(kkt_file_read(path, (size_t)1 << 28, &data, &length, &error));
    free(data);
    return (int64_t)(length / 4096);
}

static kkt_status ignore(void *context, const kkt_result *result, kkt_error *err) {
    (void)err;
    *(int64_t *)context += result->candidate_id > 0;
    return KKT_OK;
}

/* Every page damaged in turn: nothing crashes, errors are sentences, and what is recovered is
 * sound. Damage of one page costs a part of the rows, not all. */
static void test_recover_from_any_damaged_page(void **state) {
    const fixture *f = *state;
    kkt_error error;
    char damaged[160], saved[160];
    snprintf(damaged, sizeof damaged, "%s/damaged.db", f->folder);
    snprintf(saved, sizeof saved, "%s/saved.db", f->folder);
    fill(f->path, 120, HASH_A);
    int64_t pages = page_count(f->path), recovered = 0, seen = 0, complete = 0;
    for (long page = 1; page <= pages; page++) {
        char command[600];
        snprintf(command, sizeof command, "cp '%s' '%s'; rm -f '%s'*", f->path, damaged, saved);
        assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): paths of our own */
        damage_page(damaged, page);
        kkt_db *db = NULL;
        kkt_db_changes changes;
        kkt_status status = kkt_db_open(damaged, KKT_DB_READ, &db, &error);
        if (status != KKT_OK) {
            assert_int_equal(status, KKT_ERR_INPUT);
            assert_true(strstr(error.message, "damaged") || strstr(error.message, "not a kkttune"));
            assert_status(KKT_ERR_INPUT, kkt_db_recover(damaged, saved, &changes, &error));
            assert_false(kkt_file_exists(saved));
            continue;
        }
        findings found = check(db);
        assert_true(found.count > 0);
        kkt_text_free(&found.text);
        if (kkt_db_results(db, NULL, NULL, ignore, &seen, &error) != KKT_OK)
            assert_says("damaged");
        kkt_db_close(db);
        assert_ok(kkt_db_recover(damaged, saved, &changes, &error));
        recovered++;
        complete += changes.runs == 120;
        assert_ok(kkt_db_open(saved, KKT_DB_READ, &db, &error));
        found = check(db);
        if (found.count != 0)
            fail_msg("page %ld: %s", page, kkt_text_get(&found.text));
        kkt_db_close(db);
    }
    /* All but the pages that hold the schema itself. */
    print_message("%lld of %lld pages could be lost, %lld without losing a run\n",
                  (long long)recovered, (long long)pages, (long long)complete);
    assert_true(recovered >= pages - 6);
    assert_true(complete >= 3); /* indexes, predictions and samples cost no run */
    kkt_db_changes changes;
    assert_status(KKT_ERR_INPUT, kkt_db_recover(f->path, f->path, &changes, &error));
    assert_says("exists");
}

static void test_recover_keeps_all_of_a_sound_file(void **state) {
    const fixture *f = *state;
    kkt_error error;
    char saved[160];
    kkt_db *db = NULL;
    kkt_db_changes changes;
    kkt_text before = {0}, after = {0};
    int64_t rows = 0;
    snprintf(saved, sizeof saved, "%s/saved.db", f->folder);
    fill(f->path, 50, HASH_A);
    assert_ok(kkt_db_recover(f->path, saved, &changes, &error));
    assert_int_equal(changes.runs, 50);
    assert_int_equal(changes.predictions, 50);
    assert_int_equal(changes.lost, 0);
    assert_ok(kkt_db_open(f->path, KKT_DB_READ, &db, &error));
    assert_ok(kkt_recording_export_text(db, NULL, false, &before, &rows, &error));
    kkt_db_close(db);
    assert_ok(kkt_db_open(saved, KKT_DB_READ, &db, &error));
    assert_ok(kkt_recording_export_text(db, NULL, false, &after, &rows, &error));
    kkt_db_close(db);
    assert_string_equal(before.data, after.data);
    kkt_text_free(&before);
    kkt_text_free(&after);
}

/* The SQL view says what kkt_db_results says, column by column. */
static kkt_status compare_view(void *context, const kkt_result *r, kkt_error *err) {
    sqlite3_stmt *s = context;
    (void)err;
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    assert_string_equal(kkt_column_text(s, 0), r->id.kernel);
    assert_string_equal(kkt_column_text(s, 5), r->id.config);
    assert_string_equal(kkt_column_text(s, 6), kkt_outcome_name(r->outcome));
    const char *reason = kkt_column_text(s, 7);
    assert_string_equal(reason ? reason : "", r->reason ? r->reason : "");
    assert_int_equal(kkt_column_int(s, 9), r->build.registers);
    if (r->has_build && r->build.static_smem_bytes >= 0)
        assert_int_equal(kkt_column_int(s, 11),
                         r->build.static_smem_bytes + r->build.dynamic_smem_bytes);
    double us = kkt_column_real(s, 16);
    assert_true(us == r->run.time_us || (isnan(us) && isnan(r->run.time_us)));
    assert_int_equal(sqlite3_column_int64(s, 19), r->run.sample_count);
    assert_string_equal(kkt_column_text(s, 20),
                        r->stale_reason ? "stale" : kkt_provenance_name(r->provenance));
    const char *stale = kkt_column_text(s, 21);
    assert_string_equal(stale ? stale : "", r->stale_reason ? r->stale_reason : "");
    return KKT_OK;
}

static bool present_b(void *context, const kkt_identity *id, const char **hash,
                      const char **options) {
    (void)context;
    *hash = HASH_B;
    *options = NULL;
    return strcmp(id->config, "c=000003") != 0;
}

static void test_view(void **state) {
    const fixture *f = *state;
    kkt_error error;
    fill(f->path, 6, HASH_A);
    kkt_db *db = NULL;
    assert_ok(kkt_db_open(f->path, KKT_DB_WRITE, &db, &error));
    kkt_run_record r = run(KKT_REPLAYED, "2025-01-01T00:00:00Z", 77);
    add_run(db, "c=000001", HASH_B, &r);
    r.provenance = KKT_MEASURED;
    r.outcome = KKT_OUTCOME_TIMED_OUT;
    r.reason = "10 s";
    r.time_us = KKT_UNKNOWN_REAL;
    add_run(db, "c=000002", HASH_B, &r);
    kkt_identity id = identity("c=9");
    kkt_build_record failed = build(HASH_A, "nvrtc 13.0");
    failed.outcome = KKT_OUTCOME_BUILD_FAILED;
    failed.log = "first line\nsecond line";
    int64_t candidate = 0, build_id = 0;
    assert_ok(kkt_db_candidate(db, &id, &candidate, &error));
    assert_ok(kkt_db_put_build(db, candidate, &failed, &build_id, &error));
    kkt_freshness fresh = {"nvrtc 13.0", present_b, NULL, NULL};
    assert_ok(kkt_db_mark_stale(db, &fresh, &error));
    sqlite3_stmt *s = NULL;
    assert_ok(kkt_db_prepare(db,
                             "SELECT kernel, style, arch, device, problem, config, outcome, reason,"
                             " registers_predicted, registers_compiled, smem_predicted,"
                             " smem_compiled, spill_bytes, hbm_bytes_predicted, hbm_bytes_counted,"
                             " predicted_us, time_us, time_low_us, time_high_us, samples,"
                             " provenance, stale_reason FROM results ORDER BY kernel, style, arch,"
                             " device, problem, config",
                             &s, &error));
    assert_ok(kkt_db_results(db, NULL, &fresh, compare_view, s, &error));
    assert_int_equal(sqlite3_step(s), SQLITE_DONE);
    sqlite3_finalize(s);
    assert_ok(kkt_db_prepare(db, "SELECT count(*) FROM pragma_table_info('results')", &s, &error));
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    assert_int_equal(sqlite3_column_int(s, 0), 25);
    sqlite3_finalize(s);
    kkt_db_close(db);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_semantic_checks, setup, teardown),
        cmocka_unit_test_setup_teardown(test_merge_is_idempotent, setup, teardown),
        cmocka_unit_test_setup_teardown(test_merge_keeps_failures_apart, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unsound_rows_stay_where_they_are, setup, teardown),
        cmocka_unit_test_setup_teardown(test_missing_values, setup, teardown),
        cmocka_unit_test_setup_teardown(test_recover_from_any_damaged_page, setup, teardown),
        cmocka_unit_test_setup_teardown(test_recover_keeps_all_of_a_sound_file, setup, teardown),
        cmocka_unit_test_setup_teardown(test_view, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
