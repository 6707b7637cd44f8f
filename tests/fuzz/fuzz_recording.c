/* Any bytes as a recording: nothing is imported or all of it, and the database stays sound. */
#include <stdlib.h>

#include "db/maintain.h"
#include "db/recording.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int64_t count_rows(kkt_db *db) {
    kkt_db_info info;
    if (kkt_db_get_info(db, &info, NULL) != KKT_OK)
        abort();
    return info.candidates + info.builds + info.runs;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    kkt_db *db = NULL;
    kkt_error error = {0};
    int64_t rows = 0, findings = 0;
    if (kkt_db_open(":memory:", KKT_DB_WRITE, &db, &error) != KKT_OK)
        abort();
    kkt_status status =
        kkt_recording_import_text(db, "fuzz", (const char *)data, size, &rows, &error);
    int64_t stored = count_rows(db);
    if (status != KKT_OK && (stored != 0 || rows != 0 || error.message[0] == '\0'))
        abort();
    if (status == KKT_OK && rows > 0 && stored == 0)
        abort();
    if (status == KKT_OK && kkt_db_check(db, NULL, NULL, &findings, &error) != KKT_OK)
        abort();
    if (findings != 0)
        abort();
    kkt_db_close(db);
    return 0;
}
