#include <string.h>

#include "base/text.h"
#include "db/maintain.h"
#include "db/rows.h"
#include "db/store_sqlite.h"

#define FINDINGS_MAX 100

typedef struct checker {
    kkt_db *db;
    void (*report)(void *context, const char *finding);
    void *context;
    int64_t findings;
} checker;

static void find(checker *c, const char *finding) {
    if (c->findings++ < FINDINGS_MAX && c->report)
        c->report(c->context, finding);
}

/* SQLite says several lines of a damaged page in one text, under a title for each database. */
static void find_lines(checker *c, const char *text) {
    for (size_t length; *text; text += length + (text[length] == '\n')) {
        length = strcspn(text, "\n");
        kkt_text line = {0};
        kkt_text_add_bytes(&line, text, length);
        if (length > 0 && strncmp(text, "*** in database", 15) != 0 && strcmp(line.data, "ok") != 0)
            find(c, line.data);
        kkt_text_free(&line);
    }
}

/* Reports every row of a query, a literal: its one text column is the finding. A query that fails
 * because the file is damaged is a finding as well. */
static void find_rows(checker *c, const char *sql, bool lines) {
    sqlite3_stmt *s = NULL;
    int code = kkt_db_cached(c->db, sql, &s, NULL) == KKT_OK ? SQLITE_OK : SQLITE_ERROR;
    while (code == SQLITE_OK || code == SQLITE_ROW) {
        code = sqlite3_step(s);
        if (code != SQLITE_ROW)
            break;
        const char *finding = kkt_column_text(s, 0);
        if (lines && finding)
            find_lines(c, finding);
        else
            find(c, finding ? finding : "a finding without a text");
    }
    if (code != SQLITE_DONE) {
        kkt_text text = {0};
        kkt_text_printf(&text, "unreadable: %s", sqlite3_errmsg(c->db->handle));
        find(c, text.data);
        kkt_text_free(&text);
    }
    sqlite3_reset(s);
}

/* SQL functions of the checks: canonical(text), outcome(name), samples(json, count) and
 * same_view(sql): 1 if sound. */
static void canonical_function(sqlite3_context *context, int count, sqlite3_value **values) {
    const char *text = count == 1 ? (const char *)sqlite3_value_text(values[0]) : NULL;
    sqlite3_result_int(context, text && kkt_canonical_valid(text));
}

static void outcome_function(sqlite3_context *context, int count, sqlite3_value **values) {
    kkt_outcome outcome;
    const char *text = count == 1 ? (const char *)sqlite3_value_text(values[0]) : NULL;
    sqlite3_result_int(context, kkt_outcome_parse(text, &outcome));
}

static void samples_function(sqlite3_context *context, int argc, sqlite3_value **values) {
    const char *json = argc == 2 ? (const char *)sqlite3_value_text(values[0]) : NULL;
    int64_t count = argc == 2 ? sqlite3_value_int64(values[1]) : -1;
    float *out = NULL;
    if (json && count >= 0 && count <= sqlite3_value_bytes(values[0]))
        out = sqlite3_malloc64(((sqlite3_uint64)count + 1) * sizeof *out);
    sqlite3_result_int(context, out && kkt_samples_parse(json, (size_t)count, out));
    sqlite3_free(out);
}

static void same_view_function(sqlite3_context *context, int count, sqlite3_value **values) {
    const char *sql = count == 1 ? (const char *)sqlite3_value_text(values[0]) : NULL;
    const char *ours = sql ? strstr(kkt_sql_views, sql) : NULL;
    sqlite3_result_int(context, ours && ours[strlen(sql)] == ';');
}

kkt_status kkt_db_add_checks(kkt_db *db, kkt_error *err) {
    int flags = SQLITE_UTF8 | SQLITE_DIRECTONLY | SQLITE_DETERMINISTIC;
    if (db->has_checks) /* once more would void what is prepared */
        return KKT_OK;
    int code = sqlite3_create_function(db->handle, "canonical", 1, flags, NULL, canonical_function,
                                       NULL, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_create_function(db->handle, "outcome", 1, flags, NULL, outcome_function,
                                       NULL, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_create_function(db->handle, "samples", 2, flags, NULL, samples_function,
                                       NULL, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_create_function(db->handle, "same_view", 1, flags, NULL, same_view_function,
                                       NULL, NULL);
    db->has_checks = code == SQLITE_OK;
    return code == SQLITE_OK ? KKT_OK : kkt_db_fail(db, code, err);
}

/* The views compute what everyone reads: each must run, and be the one of views.sql. */
static const char *const view_checks[] = {
    "SELECT printf('view %s is not the one of this kkttune', v.name) FROM (SELECT 'results' AS name"
    " UNION ALL SELECT 'best_runs' UNION ALL SELECT 'pipelines') v LEFT JOIN sqlite_schema s ON "
    "s.name = v.name AND s.type ="
    " 'view' WHERE same_view(s.sql) IS NOT 1",
    "SELECT NULL FROM results WHERE 0",
    "SELECT NULL FROM pipelines WHERE 0",
};

static const char objects_check[] =
    "SELECT 'there is a ' || type || ' ' || name || ' that is none of kkttune''s' FROM"
    " sqlite_schema WHERE name NOT LIKE 'sqlite_%' AND (type = 'trigger' OR name NOT IN ('meta',"
    " 'problems', 'configurations', 'candidates', 'candidates_by_configuration', 'predictions',"
    " 'builds', 'runs', 'runs_by_build', 'samples', 'counters', 'pipeline_runs', "
    "'pipeline_members', 'best_runs', 'results', 'pipelines'))";

static void find_unsound_rows(checker *c) {
    for (const kkt_db_rule *rule = kkt_db_rules; rule->mend; rule++) {
        if (rule->check)
            find_rows(c, rule->check, false);
    }
}

kkt_status kkt_db_check(kkt_db *db, void (*report)(void *context, const char *finding),
                        void *context, int64_t *findings, kkt_error *err) {
    checker c = {.db = db, .report = report, .context = context};
    kkt_status status = kkt_db_add_checks(db, err);
    if (status != KKT_OK)
        return status;
    find_rows(&c, "SELECT integrity_check FROM pragma_integrity_check(100)", true);
    find_rows(&c,
              "SELECT 'row ' || coalesce(rowid, '?') || ' of ' || \"table\" || ' refers to no "
              "row of ' || parent FROM pragma_foreign_key_check",
              false);
    find_rows(&c, objects_check, false);
    find_unsound_rows(&c);
    for (size_t i = 0; i < sizeof view_checks / sizeof view_checks[0]; i++)
        find_rows(&c, view_checks[i], false);
    *findings = c.findings;
    return KKT_OK;
}

static void keep_first(void *context, const char *finding) {
    kkt_text *first = context;
    if (first->length == 0)
        kkt_text_add(first, finding);
}

kkt_status kkt_db_check_meaning(kkt_db *db, kkt_text *first, kkt_error *err) {
    checker c = {.db = db, .report = keep_first, .context = first};
    kkt_status status = kkt_db_add_checks(db, err);
    if (status == KKT_OK)
        find_unsound_rows(&c);
    return status;
}

/* ---- summary ---- */

/* Counts rows by the name in the first column, into the place the parser gives. */
static kkt_status count_names(kkt_db *db, const char *sql,
                              int64_t *(*place)(kkt_db_summary *out, const char *name),
                              kkt_db_summary *out, kkt_error *err) {
    sqlite3_stmt *s = NULL;
    kkt_status status = kkt_db_prepare(db, sql, &s, err);
    if (status != KKT_OK)
        return status;
    int code;
    while ((code = sqlite3_step(s)) == SQLITE_ROW) {
        int64_t *count = place(out, kkt_column_text(s, 0));
        if (count)
            *count += sqlite3_column_int64(s, 1);
    }
    if (code != SQLITE_DONE)
        status = kkt_db_fail(db, sqlite3_extended_errcode(db->handle), err);
    sqlite3_finalize(s);
    return status;
}

static int64_t *tier_place(kkt_db_summary *out, const char *name) {
    kkt_provenance tier;
    return kkt_provenance_parse(name, &tier) ? &out->tiers[tier] : NULL;
}

static int64_t *outcome_place(kkt_db_summary *out, const char *name) {
    kkt_outcome outcome;
    return kkt_outcome_parse(name, &outcome) ? &out->outcomes[outcome] : NULL;
}

kkt_status kkt_db_summarize(kkt_db *db, kkt_db_summary *out, kkt_error *err) {
    *out = (kkt_db_summary){0};
    kkt_status status = count_names(
        db,
        "SELECT coalesce(r.provenance, CASE WHEN EXISTS (SELECT 1 FROM builds b"
        " WHERE b.candidate_id = f.candidate_id) THEN 'compiled' ELSE 'predicted' END), count(*)"
        " FROM best_runs f LEFT JOIN runs r ON r.id = f.run_id GROUP BY 1",
        tier_place, out, err);
    if (status == KKT_OK)
        status = count_names(db, "SELECT outcome, count(*) FROM results GROUP BY 1", outcome_place,
                             out, err);
    if (status == KKT_OK)
        status = kkt_db_query_int(db, "SELECT count(*) FROM results WHERE stale_reason IS NOT NULL",
                                  &out->stale, err);
    return status;
}
