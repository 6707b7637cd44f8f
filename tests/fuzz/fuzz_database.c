/* Any bytes as a database file: refused with a sentence, or checked, read and merged without a
 * wrong step. The file lies in memory; one database takes all that is merged, and is rolled back.
 */
#include <stdlib.h>

#include "db/maintain.h"
#include "tests/fuzz/sqlite_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The store asks the system whether there is such a file, and SQLite reads the one in memory. */
static const char path[] = "/proc/self/exe";
static const char recovered[] = "/nowhere/recovered.db";

static kkt_status visit(void *context, const kkt_result *result, kkt_error *err) {
    (void)err;
    int64_t *rows = context;
    ++*rows;
    if (!result->id.kernel || !result->id.config || result->outcome >= KKT_OUTCOME_COUNT)
        abort();
    return KKT_OK;
}

static kkt_status visit_pipeline(void *context, const kkt_pipeline_record *record, kkt_error *err) {
    (void)err;
    int64_t *rows = context;
    ++*rows;
    if (!record->pipeline || !record->problem || record->run.outcome >= KKT_OUTCOME_COUNT)
        abort();
    return KKT_OK;
}

static void expect_said(kkt_status status, const kkt_error *error) {
    if (status != KKT_OK && error->message[0] == '\0')
        abort();
}

static void look_into(kkt_db *db) {
    kkt_error error = {0};
    int64_t findings = 0, rows = 0;
    expect_said(kkt_db_check(db, NULL, NULL, &findings, &error), &error);
    error = (kkt_error){0};
    expect_said(kkt_db_results(db, NULL, NULL, visit, &rows, &error), &error);
    error = (kkt_error){0};
    expect_said(kkt_db_pipeline_runs(db, NULL, NULL, visit_pipeline, &rows, &error), &error);
    float *samples = NULL;
    size_t count = 0;
    char mark[32];
    error = (kkt_error){0};
    expect_said(kkt_db_samples(db, 1, &samples, &count, &error), &error);
    free(samples);
    error = (kkt_error){0};
    expect_said(kkt_db_get_mark(db, "calibrated", mark, sizeof mark, &error), &error);
}

/* A merge leaves the sound database sound, whatever it takes in. */
static void merge(kkt_db *into, bool thorough) {
    kkt_error error = {0};
    kkt_db_changes changes;
    int64_t findings = 0;
    if (kkt_db_begin(into, &error) != KKT_OK)
        abort();
    kkt_status status = kkt_db_merge(into, path, &changes, &error);
    expect_said(status, &error);
    if (thorough && (kkt_db_check(into, NULL, NULL, &findings, &error) != KKT_OK || findings != 0))
        abort();
    kkt_db_rollback(into);
}

/* What is recovered is sound, whatever it comes from. */
static void recover(void) {
    kkt_error error = {0};
    kkt_db_changes changes;
    kkt_db *db = NULL;
    kkt_status status = kkt_db_recover(path, recovered, &changes, &error);
    expect_said(status, &error);
    if (status != KKT_OK)
        return;
    /* As a file that stands where the first one was: the store asks the system for it. */
    fuzz_sqlite_rename(recovered, path);
    int64_t findings = 0;
    if (kkt_db_open(path, KKT_DB_READ, &db, &error) != KKT_OK ||
        kkt_db_check(db, NULL, NULL, &findings, &error) != KKT_OK || findings != 0)
        abort();
    kkt_db_close(db);
}

/* Recovering and checking what came out cost many times all the rest: one input of 64. */
static bool chosen(const uint8_t *data, size_t size) {
    unsigned sum = 0;
    for (size_t i = 0; i < size; i++)
        sum += data[i];
    return sum % 64 == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static kkt_db *into;
    kkt_db *db = NULL;
    kkt_error error = {0};
    if (!into) {
        fuzz_sqlite_start();
        if (kkt_db_open(":memory:", KKT_DB_WRITE, &into, &error) != KKT_OK)
            abort();
    }
    fuzz_sqlite_put(path, data, size);
    kkt_status status = kkt_db_open(path, KKT_DB_READ, &db, &error);
    expect_said(status, &error);
    if (status == KKT_OK) {
        look_into(db);
        kkt_db_close(db);
        bool thorough = chosen(data, size);
        merge(into, thorough);
        if (thorough)
            recover();
    } else if (db) {
        abort();
    }
    fuzz_sqlite_put(path, NULL, 0);
    return 0;
}
