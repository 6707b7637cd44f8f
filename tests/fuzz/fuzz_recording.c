/* Any bytes as a recording: nothing is imported or all of it, and the database stays sound. One
 * database in memory serves all inputs: what an input stored is rolled back after it. */
#include <stdlib.h>

#include "db/maintain.h"
#include "db/recording.h"
#include "tests/fuzz/sqlite_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int64_t count_rows(kkt_db *db) {
    kkt_db_info info;
    if (kkt_db_get_info(db, &info, NULL) != KKT_OK)
        abort();
    return info.candidates + info.builds + info.runs;
}

static void check_stored(kkt_db *db, int64_t rows) {
    int64_t findings = -1;
    kkt_error error = {0};
    if ((rows > 0) != (count_rows(db) > 0))
        abort();
    if (rows > 0 && (kkt_db_check(db, NULL, NULL, &findings, &error) != KKT_OK || findings != 0))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static kkt_db *db;
    kkt_error error = {0};
    int64_t rows = 0;
    if (!db) {
        fuzz_sqlite_start();
        if (kkt_db_open(":memory:", KKT_DB_WRITE, &db, &error) != KKT_OK)
            abort();
    }
    if (kkt_db_begin(db, &error) != KKT_OK)
        abort();
    kkt_status status =
        kkt_recording_import_text(db, "fuzz", (const char *)data, size, &rows, &error);
    if (status != KKT_OK && (rows != 0 || error.message[0] == '\0'))
        abort();
    check_stored(db, rows);
    kkt_db_rollback(db);
    return 0;
}
