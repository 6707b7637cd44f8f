/* Recordings: byte-identical round trips, all-or-nothing imports, malformed lines by number. */
#include <sys/stat.h>
#include <time.h>

#include "base/text.h"
#include "db/recording.h"
#include "db/rows.h"
#include "db/store_sqlite.h"
#include "fixture.h"

static kkt_db *open_named(const fixture *f, const char *name) {
    kkt_error error;
    char path[160];
    kkt_db *db = NULL;
    snprintf(path, sizeof path, "%s/%s", f->folder, name);
    assert_ok(kkt_db_open(path, KKT_DB_WRITE, &db, &error));
    return db;
}

static int64_t count_runs(kkt_db *db) {
    kkt_error error;
    kkt_db_info info;
    assert_ok(kkt_db_get_info(db, &info, &error));
    return info.runs;
}

/* Five runs: samples of every kind of digits, failures, a rebuilt kernel, hostile texts. */
static void fill(kkt_db *db) {
    float samples[] = {98.304F, 1.0F / 3.0F, 1e-7F, 123456.789F, 100.0F};
    kkt_run_record r = run(KKT_MEASURED, "2026-01-02T00:00:00Z", 1.0 / 3.0);
    r.samples_us = samples;
    r.sample_count = 5;
    add_run(db, "base=16,chunk=64", HASH_A, &r);
    r.time_us = 0.1 + 0.2;
    r.date = "2026-01-03T00:00:00Z";
    add_run(db, "base=16,chunk=64", HASH_A, &r);
    add_run(db, "base=16,chunk=64", HASH_B, &r);
    kkt_run_record failed = run(KKT_MEASURED, "2026-01-02T00:00:01Z", KKT_UNKNOWN_REAL);
    failed.time_low_us = failed.time_high_us = KKT_UNKNOWN_REAL;
    failed.outcome = KKT_OUTCOME_WRONG_RESULT;
    failed.reason = "rel_fro 0.5 > 0.004 in \"tail\"\\\n\t\x01 <script> \xc3\xa9";
    add_run(db, "base=8,chunk=16", HASH_A, &failed);
    failed.outcome = KKT_OUTCOME_LAUNCH_FAILED;
    failed.gpu = NULL;
    failed.throttle = NULL;
    add_run(db, "base=8,chunk=32", HASH_A, &failed);
}

static void export_text(kkt_db *db, bool replayed, kkt_text *out, int64_t *rows) {
    kkt_error error;
    assert_ok(kkt_recording_export_text(db, NULL, replayed, out, rows, &error));
}

static void test_round_trip_is_byte_identical(void **state) {
    kkt_error error;
    kkt_db *db = open_named(*state, "a.db"), *copy = open_named(*state, "b.db");
    fill(db);
    kkt_text first = {0}, again = {0}, second = {0};
    int64_t rows = 0;
    export_text(db, false, &first, &rows);
    assert_int_equal(rows, 5);
    export_text(db, false, &again, &rows);
    assert_string_equal(first.data, again.data);
    assert_ok(kkt_recording_import_text(copy, "r", first.data, first.length, &rows, &error));
    assert_int_equal(rows, 5);
    export_text(copy, true, &second, &rows);
    assert_string_equal(first.data, second.data);
    /* Replayed rows are not passed on as this machine's own. */
    kkt_text none = {0};
    assert_status(KKT_ERR_MISSING,
                  kkt_recording_export_text(copy, NULL, false, &none, &rows, &error));
    assert_says("no measured rows");
    assert_int_equal(none.length, 0);
    /* Twice is once; and back where it came from is nothing new. */
    assert_ok(kkt_recording_import_text(copy, "r", first.data, first.length, &rows, &error));
    assert_int_equal(count_runs(copy), 5);
    assert_ok(kkt_recording_import_text(db, "r", first.data, first.length, &rows, &error));
    assert_int_equal(count_runs(db), 5);
    float *samples = NULL;
    size_t count = 0;
    kkt_identity id = identity("base=16,chunk=64");
    int64_t candidate = 0;
    assert_ok(kkt_db_candidate(copy, &id, &candidate, &error));
    assert_ok(kkt_db_samples(copy, candidate, &samples, &count, &error));
    assert_int_equal(count, 5);
    assert_true(samples[1] == 1.0F / 3.0F && samples[3] == 123456.789F);
    free(samples);
    kkt_text_free(&first);
    kkt_text_free(&again);
    kkt_text_free(&second);
    kkt_text_free(&none);
    kkt_db_close(db);
    kkt_db_close(copy);
}

static void test_one_arch_and_device(void **state) {
    kkt_error error;
    kkt_db *db = open_named(*state, "a.db");
    fill(db);
    kkt_identity id = identity("base=8,chunk=16");
    id.device = "h100";
    int64_t candidate = 0, build_id = 0, run_id = 0, rows = 0;
    kkt_build_record b = build(HASH_A, "nvrtc 13.0");
    kkt_run_record r = run(KKT_MEASURED, "2026-01-01T00:00:00Z", 5);
    assert_ok(kkt_db_candidate(db, &id, &candidate, &error));
    assert_ok(kkt_db_put_build(db, candidate, &b, &build_id, &error));
    assert_ok(kkt_db_put_run(db, build_id, &r, &run_id, &error));
    char path[160];
    snprintf(path, sizeof path, "%s/out.jsonl", ((fixture *)*state)->folder);
    assert_status(KKT_ERR_INPUT, kkt_recording_export(db, NULL, path, &rows, &error));
    assert_says("more than one device (h100, h200)");
    assert_false(kkt_file_exists(path));
    kkt_result_filter filter = {.device = "h100"};
    assert_ok(kkt_recording_export(db, &filter, path, &rows, &error));
    assert_int_equal(rows, 1);
    assert_true(kkt_file_exists(path));
    kkt_db_close(db);
}

static void test_truncation_at_every_byte(void **state) {
    kkt_error error;
    kkt_db *db = open_named(*state, "a.db"), *copy = open_named(*state, "b.db");
    fill(db);
    kkt_text text = {0};
    int64_t rows = 0;
    export_text(db, false, &text, &rows);
    kkt_db_set_timeout(copy, 0);
    assert_ok(kkt_db_begin(copy, &error)); /* nested: one commit instead of thousands */
    for (size_t length = 0; length < text.length; length++) {
        char *piece = malloc(length + 1); /* exact size: an overrun is seen */
        memcpy(piece, text.data, length);
        piece[length] = '\0';
        assert_status(KKT_ERR_INPUT,
                      kkt_recording_import_text(copy, "cut", piece, length, &rows, &error));
        assert_int_equal(rows, 0);
        assert_says("cut");
        free(piece);
    }
    assert_int_equal(count_runs(copy), 0);
    assert_ok(kkt_db_commit(copy, &error));
    kkt_db_info info;
    assert_ok(kkt_db_get_info(copy, &info, &error));
    assert_int_equal(info.candidates + info.builds, 0);
    kkt_text_free(&text);
    kkt_db_close(db);
    kkt_db_close(copy);
}

static const char header[] =
    "{\"schema\":\"kkttune.recording/1\",\"arch\":\"sm90\",\"device\":\"h200\"}\n";
#define PROVENANCE "{\"provenance\":0,\"gpu\":\"NVIDIA H200\"}\n"
#define ROW(run)                                                                                   \
    "{\"p\":0,\"kernel\":\"k\",\"style\":\"s\",\"problem\":\"a=1\",\"config\":\"b=2\","            \
    "\"build\":{\"outcome\":\"compiled\"},\"run\":{" run "}}\n"
#define GOOD ROW("\"outcome\":\"ok\",\"time_us\":5,\"sample_count\":1,\"samples_us\":[5.5]")

static void test_malformed_lines(void **state) {
    static const struct {
        bool bare; /* the header is not put before it */
        const char *text, *says;
    } cases[] = {
        {true, "", "truncated"},
        {true, "{\"schema\":\"kkttune.config/1\"}\n", "not a recording"},
        {true, "[1]\n", "line 1: not a recording (no schema kkttune.recording/1)"},
        {true, "{\n  \"schema\": \"kkttune.config/1\"\n}\n", "line 1: not a recording"},
        {false, "[1]\n", "line 2: not a JSON object"},
        {false, PROVENANCE "{\"p\":0,\n", "; nothing was imported from it"},
        {false,
         PROVENANCE "{\"p\":0,\"kernel\":\"k\",\"style\":\"s\",\"problem\":\"a=1\","
                    "\"config\":\"b=2\",\"build\":{\"outcome\":\"compiled\",\"registers\":256},"
                    "\"run\":{\"outcome\":\"ok\"}}\n",
         "line 3: 'registers' is missing or no such value"},
        {true, "{\"schema\":\"kkttune.recording/3\",\"arch\":\"x\",\"device\":\"y\"}\n",
         "newer kkttune"},
        {true, "{\"schema\":\"kkttune.recording/1\",\"arch\":\"sm90\"}\n", "no arch or no device"},
        {false, "{\"rows\":0}\n{\"p\":0}\n", "line 3: there is text after"},
        {false, "{\"provenance\":1}\n", "line 2: provenances are not numbered"},
        {false, PROVENANCE GOOD "{\"rows\":2}\n", "line 4: the row count does not match"},
        {false, PROVENANCE GOOD "{\"rows\":1}\n" GOOD, "line 5: there is text after"},
        {false, PROVENANCE GOOD, "truncated: the line with the row count"},
        {false, PROVENANCE "{\"p\":1}\n", "line 3: the row names no provenance"},
        {false, PROVENANCE "{\"p\":0}\n", "no build or no run"},
        {false, PROVENANCE ROW("\"outcome\":\"okay\""), "line 3: 'outcome'"},
        {false, PROVENANCE ROW("\"outcome\":\"ok\",\"time_us\":\"5\""), "'time_us'"},
        {false, PROVENANCE ROW("\"outcome\":\"ok\",\"reason\":7"), "'reason'"},
        {false, PROVENANCE ROW("\"outcome\":\"ok\",\"time_us\":5,\"time_low_us\":6"), "'time_us'"},
        {false, PROVENANCE ROW("\"outcome\":\"ok\",\"sample_count\":-1"), "'sample_count'"},
        {false, PROVENANCE ROW("\"outcome\":\"ok\",\"sample_count\":2,\"samples_us\":[1]"),
         "'samples_us'"},
        {false, PROVENANCE ROW("\"outcome\":\"ok\",\"sample_count\":1,\"samples_us\":[1e99]"),
         "'samples_us'"},
        {false, PROVENANCE ROW("\"outcome\":\"ok\",\"sample_count\":1,\"samples_us\":[\"1\"]"),
         "'samples_us'"},
        {false,
         PROVENANCE "{\"p\":0,\"kernel\":\"k\",\"style\":\"s\",\"problem\":\"b=1,a=1\",\"config\":"
                    "\"b=2\",\"build\":{\"outcome\":\"compiled\"},\"run\":{\"outcome\":\"ok\"}}\n",
         "not canonical"},
        {false, PROVENANCE GOOD "{\"rows\":\n", "line 4"},
    };
    kkt_error error;
    kkt_db *db = open_named(*state, "a.db");
    int64_t rows = 0;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        kkt_text text = {0};
        kkt_text_add(&text, cases[i].bare ? "" : header);
        kkt_text_add(&text, cases[i].text);
        assert_status(KKT_ERR_INPUT, kkt_recording_import_text(db, "bad", kkt_text_get(&text),
                                                               text.length, &rows, &error));
        assert_says(cases[i].says);
        kkt_text_free(&text);
    }
    assert_int_equal(count_runs(db), 0);
    kkt_text text = {0};
    kkt_text_printf(&text, "%s%s{\"rows\":1}\n", header, PROVENANCE GOOD);
    assert_ok(kkt_recording_import_text(db, "good", text.data, text.length, &rows, &error));
    assert_int_equal(count_runs(db), 1);
    kkt_text_free(&text);
    kkt_db_close(db);
}

static void write_recording(const fixture *f, const char *name, const char *arch,
                            const char *device, const char *config) {
    kkt_error error;
    kkt_text text = {0};
    char path[200];
    snprintf(path, sizeof path, "%s/rec", f->folder);
    assert_ok(kkt_folder_make(path, &error));
    snprintf(path, sizeof path, "%s/rec/%s", f->folder, name);
    kkt_text_printf(
        &text,
        "{\"schema\":\"kkttune.recording/1\",\"arch\":\"%s\",\"device\":\"%s\"}\n"
        "{\"provenance\":0}\n{\"p\":0,\"kernel\":\"k\",\"style\":\"s\",\"problem\":\"\","
        "\"config\":\"%s\",\"build\":{\"outcome\":\"compiled\"},\"run\":{\"outcome\":"
        "\"ok\",\"time_us\":1}}\n{\"rows\":1}\n",
        arch, device, config);
    assert_ok(kkt_file_write(path, text.data, text.length, &error));
    kkt_text_free(&text);
}

static void test_folder(void **state) {
    const fixture *f = *state;
    kkt_error error;
    kkt_db *db = open_named(f, "a.db");
    char folder[160];
    int64_t rows = 7;
    snprintf(folder, sizeof folder, "%s/rec", f->folder);
    assert_ok(kkt_recording_import_folder(db, folder, NULL, &rows, &error));
    assert_int_equal(rows, 0);
    assert_null(kkt_recording_device(folder, "sm90"));
    write_recording(f, "b_h100.jsonl", "sm90", "h100", "c=1");
    write_recording(f, "c_h200.jsonl", "sm90", "h200", "c=1");
    write_recording(f, "a_a100.jsonl", "sm80", "a100", "c=1");
    write_recording(f, "README.md", "sm90", "h200", "c=2");
    char *device = kkt_recording_device(folder, "sm90");
    assert_string_equal(device, "h100");
    free(device);
    assert_null(kkt_recording_device(folder, "sm120"));
    assert_ok(kkt_recording_import_folder(db, folder, "sm90", &rows, &error));
    assert_int_equal(rows, 2);
    assert_ok(kkt_recording_import_folder(db, folder, NULL, &rows, &error));
    assert_int_equal(rows, 3);
    assert_int_equal(count_runs(db), 3);
    char path[200];
    snprintf(path, sizeof path, "%s/broken.jsonl", folder);
    assert_ok(kkt_file_write(path, "{\"schema\"", 9, &error));
    assert_status(KKT_ERR_INPUT, kkt_recording_import_folder(db, folder, "sm90", &rows, &error));
    assert_says("broken.jsonl");
    assert_says("; put the file back as it was, or take it out of its folder");
    /* What is wrong with the database has the database's remedy alone. */
    assert_int_equal(remove(path), 0);
    assert_ok(kkt_db_exec(db, "ALTER TABLE runs RENAME TO gone", &error));
    write_recording(f, "d_h200.jsonl", "sm90", "h200", "c=9");
    assert_status(KKT_ERR_INPUT, kkt_recording_import_folder(db, folder, "sm90", &rows, &error));
    assert_says("is damaged: no such table");
    assert_says("a.db NEW'");
    assert_null(strstr(error.message, "put the file back"));
    kkt_db_close(db);
}

static void test_samples_text(void **state) {
    (void)state;
    const float values[] = {0.0F, 1.5F, 0.001F, 98.304F, 16777216.0F, 3.4028235e38F, 1e-45F, -2.5F};
    size_t count = sizeof values / sizeof values[0];
    kkt_text text = {0};
    float back[8];
    kkt_samples_format(values, count, &text);
    assert_non_null(strstr(text.data, "[0,1.500,0.001,98.304,"));
    assert_true(kkt_samples_parse(text.data, count, back));
    assert_memory_equal(back, values, sizeof values);
    assert_false(kkt_samples_parse(text.data, count - 1, back));
    const char *bad[] = {"", "[", "[1", "[1,]", "[1 2]", "[nan]", "[inf]", "[1e99]", "[1]x", "1"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(kkt_samples_parse(bad[i], 1, back));
    assert_true(kkt_samples_parse(" [ ] ", 0, back));
    kkt_text_free(&text);
    const char *canonical[] = {"", "a=1", "a=1,b=2", "a=1,ab=2", "chunk=64,inverse=row"};
    for (size_t i = 0; i < sizeof canonical / sizeof canonical[0]; i++)
        assert_true(kkt_canonical_valid(canonical[i]));
    const char *wrong[] = {"a", "a=", "=1", "b=1,a=2", "a=1,a=2", "a=1,", ",", "a=1=2", "ab=1,a=2"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_false(kkt_canonical_valid(wrong[i]));
}

/* Processor time: tests run side by side. */
static double seconds(void) {
    return (double)clock() / CLOCKS_PER_SEC;
}

static kkt_status count_visits(void *context, const kkt_result *result, kkt_error *err) {
    (void)err;
    *(int64_t *)context += result->has_run;
    return KKT_OK;
}

/* 50,000 candidates: the size of a space that is measured in full. An idle core needs 0.8 s and
 * 0.3 s. */
static void test_fifty_thousand(void **state) {
    enum { ROWS = 50000 };
    kkt_error error;
    kkt_db *db = open_named(*state, "a.db");
    kkt_text text = {0};
    kkt_text_printf(&text, "%s%s", header, PROVENANCE);
    for (int i = 0; i < ROWS; i++)
        kkt_text_printf(&text,
                        "{\"p\":0,\"kernel\":\"k\",\"style\":\"s\",\"problem\":\"tokens=%d\","
                        "\"config\":\"chunk=%d\",\"build\":{\"outcome\":\"compiled\"},\"run\":{"
                        "\"outcome\":\"ok\",\"time_us\":%d.5,\"sample_count\":4,\"samples_us\":"
                        "[1.25,2.125,3.5,4.75]}}\n",
                        i % 5, 10000 + i / 5, i);
    kkt_text_printf(&text, "{\"rows\":%d}\n", ROWS);
    double start = seconds();
    int64_t rows = 0, visits = 0;
    assert_ok(kkt_recording_import_text(db, "big", text.data, text.length, &rows, &error));
    double imported = seconds();
    assert_int_equal(rows, ROWS);
    assert_ok(kkt_db_results(db, NULL, NULL, count_visits, &visits, &error));
    double queried = seconds();
    assert_int_equal(visits, ROWS);
    kkt_result_filter one = {.kernel = "k", .style = "s", .arch = "sm90", .device = "h200"};
    one.problem = "tokens=3";
    one.config = "chunk=12345";
    visits = 0;
    for (int i = 0; i < 1000; i++)
        assert_ok(kkt_db_results(db, &one, NULL, count_visits, &visits, &error));
    double found = seconds();
    assert_int_equal(visits, 1000);
    print_message("import %.2f s, results %.2f s, 1000 exact look-ups %.2f s\n", imported - start,
                  queried - imported, found - queried);
#if !defined(__SANITIZE_ADDRESS__)
    assert_true(imported - start < 3.0);
    assert_true(queried - imported < 1.0);
    assert_true(found - queried < 2.0);
#endif
    kkt_text_free(&text);
    kkt_db_close(db);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_round_trip_is_byte_identical, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_arch_and_device, setup, teardown),
        cmocka_unit_test_setup_teardown(test_truncation_at_every_byte, setup, teardown),
        cmocka_unit_test_setup_teardown(test_malformed_lines, setup, teardown),
        cmocka_unit_test_setup_teardown(test_folder, setup, teardown),
        cmocka_unit_test(test_samples_text),
        cmocka_unit_test_setup_teardown(test_fifty_thousand, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
