#include <stdio.h>

#include "db/store_sqlite.h"

kkt_status kkt_db_get_mark(kkt_db *db, const char *key, char *value, size_t size, kkt_error *err) {
    sqlite3_stmt *statement = NULL;
    value[0] = '\0';
    kkt_status status =
        kkt_db_cached(db, "SELECT value FROM meta WHERE key = 'mark:' || ?1", &statement, err);
    if (status != KKT_OK)
        return status;
    kkt_bind_text(statement, 1, key);
    int code = sqlite3_step(statement);
    if (code == SQLITE_ROW && kkt_column_text(statement, 0))
        snprintf(value, size, "%s", kkt_column_text(statement, 0));
    sqlite3_reset(statement);
    return code == SQLITE_ROW || code == SQLITE_DONE ? KKT_OK : kkt_db_fail(db, code, err);
}

kkt_status kkt_db_put_mark(kkt_db *db, const char *key, const char *value, kkt_error *err) {
    sqlite3_stmt *statement = NULL;
    bool own = false;
    kkt_status status = kkt_db_scope_begin(db, false, &own, err);
    if (status != KKT_OK)
        return status;
    status = kkt_db_cached(db, "INSERT OR REPLACE INTO meta VALUES ('mark:' || ?1, ?2)", &statement,
                           err);
    if (status == KKT_OK) {
        kkt_bind_text(statement, 1, key);
        kkt_bind_text(statement, 2, value);
        status = kkt_db_step_done(db, statement, err);
    }
    return kkt_db_scope_end(db, own, status, err);
}
