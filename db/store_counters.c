#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "db/rows.h"
#include "db/store_sqlite.h"

/* Both statements take the same parameters. */
static const char replace_counter[] = "INSERT OR REPLACE INTO counters VALUES (?1,?2,?3,?4,?5)";
static const char keep_counter[] = "INSERT OR IGNORE INTO counters VALUES (?1,?2,?3,?4,?5)";

static kkt_status insert_all(kkt_db *db, const char *sql, int64_t run_id,
                             const kkt_counter_record *counters, size_t count, kkt_error *err) {
    kkt_status status = KKT_OK;
    for (size_t i = 0; i < count && status == KKT_OK; i++) {
        sqlite3_stmt *s = NULL;
        if (!isfinite(counters[i].value))
            continue;
        status = kkt_db_cached(db, sql, &s, err);
        if (status != KKT_OK)
            break;
        sqlite3_bind_int64(s, 1, run_id);
        kkt_bind_text(s, 2, counters[i].name);
        sqlite3_bind_double(s, 3, counters[i].value);
        kkt_bind_text(s, 4, counters[i].unit);
        kkt_bind_text(s, 5, counters[i].chip);
        status = kkt_db_step_done(db, s, err);
    }
    return status;
}

/* Runs a statement on one run: its number, the bytes and the note. */
static kkt_status mark_run(kkt_db *db, const char *sql, int64_t run_id, double hbm_bytes_counted,
                           const char *note, kkt_error *err) {
    sqlite3_stmt *s = NULL;
    kkt_status status = kkt_db_cached(db, sql, &s, err);
    if (status != KKT_OK)
        return status;
    sqlite3_bind_int64(s, 1, run_id);
    kkt_bind_real(s, 2, hbm_bytes_counted);
    kkt_bind_text(s, 3, note);
    return kkt_db_step_done(db, s, err);
}

kkt_status kkt_db_put_counters(kkt_db *db, int64_t run_id, const kkt_counter_record *counters,
                               size_t count, double hbm_bytes_counted, const char *note,
                               kkt_error *err) {
    bool own = false;
    kkt_status status = kkt_db_scope_begin(db, true, &own, err);
    if (status != KKT_OK)
        return status;
    status =
        mark_run(db, "UPDATE runs SET hbm_bytes_counted = ?2, counters_note = ?3 WHERE id = ?1",
                 run_id, hbm_bytes_counted, note, err);
    if (status == KKT_OK && sqlite3_changes(db->handle) == 0)
        status = kkt_fail(err, KKT_ERR_INPUT, 0, "database '%s' has no run %lld", db->path,
                          (long long)run_id);
    sqlite3_stmt *s = NULL;
    if (status == KKT_OK)
        status = kkt_db_cached(db, "DELETE FROM counters WHERE run_id = ?1", &s, err);
    if (status == KKT_OK) {
        sqlite3_bind_int64(s, 1, run_id);
        status = kkt_db_step_done(db, s, err);
    }
    if (status == KKT_OK)
        status = insert_all(db, replace_counter, run_id, counters, count, err);
    return kkt_db_scope_end(db, own, status, err);
}

kkt_status kkt_db_keep_counters(kkt_db *db, int64_t run_id, const kkt_counter_record *counters,
                                size_t count, double hbm_bytes_counted, const char *note,
                                kkt_error *err) {
    kkt_status status = insert_all(db, keep_counter, run_id, counters, count, err);
    if (status == KKT_OK && isfinite(hbm_bytes_counted))
        status = mark_run(db,
                          "UPDATE runs SET hbm_bytes_counted = ?2, counters_note = ?3"
                          " WHERE id = ?1 AND hbm_bytes_counted IS NULL",
                          run_id, hbm_bytes_counted, note, err);
    return status;
}

kkt_status kkt_db_counters(kkt_db *db, int64_t run_id,
                           kkt_status (*visit)(void *context, const kkt_counter_record *counter,
                                               kkt_error *err),
                           void *context, kkt_error *err) {
    sqlite3_stmt *s = NULL;
    kkt_status status = kkt_db_prepare(
        db, "SELECT name, value, unit, chip FROM counters WHERE run_id = ?1 ORDER BY name", &s,
        err);
    if (status != KKT_OK)
        return status;
    sqlite3_bind_int64(s, 1, run_id);
    int code = SQLITE_DONE;
    while (status == KKT_OK && (code = sqlite3_step(s)) == SQLITE_ROW) {
        const kkt_counter_record counter = {
            .name = kkt_column_text(s, 0),
            .value = sqlite3_column_double(s, 1),
            .unit = kkt_column_text(s, 2),
            .chip = kkt_column_text(s, 3),
        };
        if (!counter.name || !counter.unit || !counter.chip)
            status = kkt_fail(err, KKT_ERR_INPUT, 0,
                              "database '%s' has a counter of run %lld without a name, unit or "
                              "chip; 'kkttune db check' lists what is wrong",
                              db->path, (long long)run_id);
        else if (isfinite(counter.value))
            status = visit(context, &counter, err);
    }
    if (status == KKT_OK && code != SQLITE_DONE)
        status = kkt_db_fail(db, sqlite3_extended_errcode(db->handle), err);
    sqlite3_finalize(s);
    return status;
}

/* ---- copies for recordings and merging ---- */

static kkt_status append(void *context, const kkt_counter_record *counter, kkt_error *err) {
    (void)err;
    kkt_counter_list *list = context;
    if (list->count == list->capacity) {
        list->capacity = list->capacity * 2 + 32;
        list->rows = kkt_memory_resize(list->rows, list->capacity * sizeof *list->rows);
    }
    list->rows[list->count++] = (kkt_counter_record){
        .name = kkt_memory_strdup(counter->name),
        .value = counter->value,
        .unit = kkt_memory_strdup(counter->unit),
        .chip = kkt_memory_strdup(counter->chip),
    };
    return KKT_OK;
}

kkt_status kkt_db_read_counters(kkt_db *db, int64_t run_id, kkt_counter_list *out, kkt_error *err) {
    return kkt_db_counters(db, run_id, append, out, err);
}

void kkt_counter_list_free(kkt_counter_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        free((char *)list->rows[i].name);
        free((char *)list->rows[i].unit);
        free((char *)list->rows[i].chip);
    }
    free(list->rows);
    *list = (kkt_counter_list){0};
}
