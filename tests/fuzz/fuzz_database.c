/* Any bytes as a database file: refused with a sentence, or checked, read and merged without a
 * wrong step. The file lies in memory (/dev/shm) where there is such a place. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "db/maintain.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void name_file(char path[64]) {
    const char *folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(path, 64, "%s/kkttune-fuzz-%ld.db", folder, (long)getpid());
}

static void write_file(const char *path, const uint8_t *data, size_t size) {
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(data, 1, size, file) != size || fclose(file) != 0)
        abort();
}

static kkt_status visit(void *context, const kkt_result *result, kkt_error *err) {
    (void)err;
    int64_t *rows = context;
    ++*rows;
    if (!result->id.kernel || !result->id.config || result->outcome >= KKT_OUTCOME_COUNT)
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
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[64];
    kkt_db *db = NULL, *into = NULL;
    kkt_error error = {0};
    kkt_db_changes changes;
    name_file(path);
    write_file(path, data, size);
    kkt_status status = kkt_db_open(path, KKT_DB_READ, &db, &error);
    expect_said(status, &error);
    if (status == KKT_OK) {
        look_into(db);
        kkt_db_close(db);
        if (kkt_db_open(":memory:", KKT_DB_WRITE, &into, &error) != KKT_OK)
            abort();
        error = (kkt_error){0};
        expect_said(kkt_db_merge(into, path, &changes, &error), &error);
        kkt_db_close(into);
    } else if (db) {
        abort();
    }
    unlink(path);
    return 0;
}
