#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "db/maintain.h"
#include "db/store_sqlite.h"

/* How far behind the last readable row single rows are tried where the end of a table is
 * damaged. */
#define PROBE_AHEAD 10000

/* Copying one table by row number; no index is trusted. */
typedef struct table_copy {
    kkt_db *from, *to;
    const char *name;
    kkt_text columns;
    sqlite3_stmt *insert;
    int64_t copied, lost;
} table_copy;

static const char *const tables[] = {
    "problems", "configurations", "candidates", "predictions",   "builds",
    "runs",     "samples",        "counters",   "pipeline_runs", "pipeline_members"};

/* Column names come from the new file, so they are ours; table names are literals above. */
static kkt_status prepare_copy(table_copy *t, kkt_error *err) {
    sqlite3_stmt *s = NULL;
    kkt_text sql = {0};
    kkt_status status =
        kkt_db_prepare(t->to, "SELECT name FROM pragma_table_info(?1) ORDER BY cid", &s, err);
    if (status != KKT_OK)
        return status;
    kkt_bind_text(s, 1, t->name);
    int count = 0;
    while (sqlite3_step(s) == SQLITE_ROW)
        kkt_text_printf(&t->columns, "%s%s", count++ ? "," : "", kkt_column_text(s, 0));
    sqlite3_finalize(s);
    kkt_text_printf(&sql, "INSERT OR IGNORE INTO %s (%s) VALUES (", t->name, t->columns.data);
    for (int i = 1; i <= count; i++)
        kkt_text_printf(&sql, "%s?%d", i > 1 ? "," : "", i);
    kkt_text_add(&sql, ")");
    status = kkt_db_prepare(t->to, sql.data, &t->insert, err);
    kkt_text_free(&sql);
    return status;
}

/* One row over; a row the new file's rules refuse is lost. Only the new file's own trouble (a full
 * disk) is an error. */
static kkt_status copy_row(table_copy *t, sqlite3_stmt *row, kkt_error *err) {
    int count = sqlite3_bind_parameter_count(t->insert);
    for (int i = 0; i < count; i++)
        sqlite3_bind_value(t->insert, i + 1, sqlite3_column_value(row, i + 1));
    int code = sqlite3_step(t->insert);
    kkt_status status = KKT_OK;
    if (code == SQLITE_DONE && sqlite3_changes(t->to->handle) > 0)
        t->copied++;
    else if (code == SQLITE_DONE || (code & 0xff) == SQLITE_CONSTRAINT)
        t->lost++;
    else
        status = kkt_db_fail(t->to, sqlite3_extended_errcode(t->to->handle), err);
    sqlite3_reset(t->insert);
    return status;
}

/* Copies rows in one direction until the end or the first damage; `*last` is the last row read. */
static kkt_status copy_rows(table_copy *t, bool down, int64_t above, int64_t *last, bool *damaged,
                            kkt_error *err) {
    kkt_text sql = {0};
    sqlite3_stmt *s = NULL;
    kkt_status status = KKT_OK;
    kkt_text_printf(&sql, "SELECT rowid,%s FROM %s NOT INDEXED WHERE rowid > ?1 ORDER BY rowid %s",
                    t->columns.data, t->name, down ? "DESC" : "ASC");
    int code = sqlite3_prepare_v2(t->from->handle, sql.data, -1, &s, NULL);
    sqlite3_bind_int64(s, 1, above);
    while (code == SQLITE_OK && status == KKT_OK && sqlite3_step(s) == SQLITE_ROW) {
        *last = sqlite3_column_int64(s, 0);
        status = copy_row(t, s, err);
    }
    code = sqlite3_finalize(s);
    *damaged = status == KKT_OK && (code != SQLITE_OK || !s);
    kkt_text_free(&sql);
    return status;
}

/* Rows between the two runs, each by its number; only known holes count as lost. */
static kkt_status probe_rows(table_copy *t, int64_t low, int64_t high, bool count_lost,
                             kkt_error *err) {
    kkt_text sql = {0};
    sqlite3_stmt *s = NULL;
    kkt_text_printf(&sql, "SELECT rowid,%s FROM %s NOT INDEXED WHERE rowid = ?1", t->columns.data,
                    t->name);
    kkt_status status = KKT_OK; /* a statement that cannot be made: the table is gone */
    low = sqlite3_prepare_v2(t->from->handle, sql.data, -1, &s, NULL) == SQLITE_OK ? low : high;
    for (int64_t id = low; status == KKT_OK && id < high; id++) {
        sqlite3_bind_int64(s, 1, id);
        int code = sqlite3_step(s);
        if (code == SQLITE_ROW)
            status = copy_row(t, s, err);
        else if (code != SQLITE_DONE)
            t->lost += count_lost;
        sqlite3_reset(s);
    }
    sqlite3_finalize(s);
    kkt_text_free(&sql);
    return status;
}

static kkt_status copy_table(table_copy *t, kkt_error *err) {
    int64_t first = INT64_MIN, last = INT64_MAX;
    bool damaged = false, damaged_again = false;
    kkt_status status = prepare_copy(t, err);
    if (status == KKT_OK)
        status = copy_rows(t, false, INT64_MIN, &first, &damaged, err);
    if (status == KKT_OK && damaged) {
        int64_t from = first == INT64_MIN ? 1 : first + 1;
        status = copy_rows(t, true, from - 1, &last, &damaged_again, err);
        bool end_known = last != INT64_MAX;
        int64_t to = end_known ? last : from + PROBE_AHEAD;
        if (to - from > 1000000) /* a hostile row number, not a hole */
            to = from + 1000000;
        if (status == KKT_OK)
            status = probe_rows(t, from, to, end_known, err);
        t->lost += !end_known;
    }
    sqlite3_finalize(t->insert);
    kkt_text_free(&t->columns);
    return status;
}

static kkt_status recover_into(kkt_db *from, kkt_db *to, kkt_db_changes *out, kkt_error *err) {
    kkt_status status = kkt_db_add_checks(to, err);
    for (size_t i = 0; status == KKT_OK && i < sizeof tables / sizeof tables[0]; i++) {
        table_copy t = {.from = from, .to = to, .name = tables[i]};
        status = copy_table(&t, err);
        out->lost += t.lost;
    }
    /* What refers to nothing or means nothing goes. */
    for (const kkt_db_rule *rule = kkt_db_rules; status == KKT_OK && rule->mend; rule++) {
        status = kkt_db_exec(to, rule->mend, err);
        out->lost += sqlite3_changes(to->handle);
    }
    return status;
}

static kkt_status recover_whole(kkt_db *from, kkt_db *to, kkt_db_changes *out, kkt_error *err) {
    kkt_db_info info;
    kkt_status status = kkt_db_exec(to, "PRAGMA foreign_keys=OFF", err);
    if (status == KKT_OK)
        status = kkt_db_begin(to, err);
    if (status != KKT_OK)
        return status;
    status = kkt_db_scope_end(to, true, recover_into(from, to, out, err), err);
    if (status == KKT_OK)
        status = kkt_db_get_info(to, &info, err);
    if (status != KKT_OK)
        return status;
    out->candidates = info.candidates;
    out->predictions = info.predictions;
    out->builds = info.builds;
    out->runs = info.runs;
    out->pipeline_runs = info.pipeline_runs;
    return KKT_OK;
}

static void remove_database(const char *path) {
    static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        kkt_text name = {0};
        kkt_text_printf(&name, "%s%s", path, suffixes[i]);
        unlink(name.data);
        kkt_text_free(&name);
    }
}

kkt_status kkt_db_recover(const char *from, const char *to, kkt_db_changes *out, kkt_error *err) {
    kkt_db *damaged = NULL, *sound = NULL;
    *out = (kkt_db_changes){0};
    if (kkt_file_exists(to))
        return kkt_fail(err, KKT_ERR_INPUT, 0, "'%s' exists; recover into a new file", to);
    kkt_error cause = {0};
    kkt_status status = kkt_db_open(from, KKT_DB_READ, &damaged, &cause);
    if (status == KKT_ERR_INPUT && (cause.native & 0xff) == SQLITE_CORRUPT)
        return kkt_fail(err, status, cause.native,
                        "the part of '%s' that names its tables is damaged: nothing can be "
                        "recovered from it",
                        from);
    if (status != KKT_OK)
        return kkt_fail(err, status, cause.native, "%s", cause.message);
    status = kkt_db_open(to, KKT_DB_WRITE, &sound, err);
    if (status == KKT_OK) {
        status = recover_whole(damaged, sound, out, err);
        kkt_db_close(sound);
        if (status != KKT_OK)
            remove_database(to);
    }
    kkt_db_close(damaged);
    return status;
}
