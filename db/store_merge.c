#include "db/maintain.h"
#include "db/rows.h"
#include "db/store_sqlite.h"

/* Copies between two open handles; used inside one transaction of `to`. */
typedef struct merger {
    kkt_db *from, *to;
    kkt_db_changes added;
} merger;

static kkt_status has_prediction(kkt_db *db, int64_t candidate_id, bool *has, kkt_error *err) {
    sqlite3_stmt *s = NULL;
    int64_t one = 0;
    kkt_status status =
        kkt_db_cached(db, "SELECT 1 FROM predictions WHERE candidate_id=?1", &s, err);
    if (status != KKT_OK)
        return status;
    sqlite3_bind_int64(s, 1, candidate_id);
    return kkt_db_step_int(db, s, &one, has, err);
}

/* The candidate of the row's identity, its verdict and prediction where it has none yet. */
static kkt_status merge_candidate(merger *m, sqlite3_stmt *s, kkt_error *err) {
    kkt_identity id;
    kkt_prediction_record prediction;
    int64_t candidate = 0, before = sqlite3_total_changes64(m->to->handle);
    kkt_read_identity(s, 0, &id);
    kkt_status status = kkt_db_candidate(m->to, &id, &candidate, err);
    if (status != KKT_OK)
        return status;
    bool made = sqlite3_total_changes64(m->to->handle) > before;
    m->added.candidates += made;
    int at = KKT_IDENTITY_COUNT;
    kkt_outcome verdict;
    if (made && kkt_outcome_parse(kkt_column_text(s, at), &verdict))
        status = kkt_db_set_outcome(m->to, candidate, verdict, kkt_column_text(s, at + 1), err);
    bool has = false;
    if (status == KKT_OK)
        status = has_prediction(m->to, candidate, &has, err);
    if (status != KKT_OK || has || sqlite3_column_type(s, at + 2) == SQLITE_NULL)
        return status;
    kkt_read_prediction(s, at + 3, &prediction);
    m->added.predictions++;
    return kkt_db_put_prediction(m->to, candidate, &prediction, err);
}

static kkt_status merge_build(merger *m, sqlite3_stmt *s, kkt_error *err) {
    kkt_identity id;
    kkt_build_record build;
    int64_t candidate = 0, build_id = 0;
    bool added = false;
    kkt_read_identity(s, 0, &id);
    if (!kkt_read_build(s, KKT_IDENTITY_COUNT, &build))
        return kkt_fail(err, KKT_ERR_INPUT, 0,
                        "database '%s' has a build of unknown outcome; 'kkttune db check' lists "
                        "what is wrong",
                        m->from->path);
    kkt_status status = kkt_db_candidate(m->to, &id, &candidate, err);
    if (status == KKT_OK)
        status = kkt_db_keep_build(m->to, candidate, &build, &build_id, &added, err);
    m->added.builds += added;
    return status;
}

static kkt_status merge_run(void *context, const kkt_run_row *row, kkt_error *err) {
    merger *m = context;
    int64_t candidate = 0, build_id = 0, run_id = 0;
    bool added = false;
    kkt_status status = kkt_db_candidate(m->to, &row->id, &candidate, err);
    if (status == KKT_OK)
        status = kkt_db_keep_build(m->to, candidate, &row->build, &build_id, &added, err);
    if (status == KKT_OK)
        status =
            kkt_db_keep_run(m->to, build_id, &row->run, row->samples_json, &run_id, &added, err);
    m->added.runs += status == KKT_OK && added;
    kkt_counter_list counters = {0};
    if (status == KKT_OK)
        status = kkt_db_read_counters(m->from, row->run_id, &counters, err);
    if (status == KKT_OK)
        status = kkt_db_keep_counters(m->to, run_id, counters.rows, counters.count,
                                      row->run.hbm_bytes_counted, row->run.counters_note, err);
    kkt_counter_list_free(&counters);
    return status;
}

static kkt_status merge_pipeline(void *context, const kkt_pipeline_record *record, kkt_error *err) {
    merger *m = context;
    int64_t run_id = 0;
    bool added = false;
    kkt_pipeline_record copy = *record;
    for (size_t i = 0; i < copy.member_count; i++)
        copy.members[i].build_id = 0; /* of the other database */
    kkt_status status = kkt_db_keep_pipeline_run(m->to, &copy, &run_id, &added, err);
    m->added.pipeline_runs += status == KKT_OK && added;
    return status;
}

static kkt_status merge_rows(merger *m, const char *sql,
                             kkt_status (*merge)(merger *m, sqlite3_stmt *s, kkt_error *err),
                             kkt_error *err) {
    sqlite3_stmt *s = NULL;
    kkt_status status = kkt_db_prepare(m->from, sql, &s, err);
    int code = SQLITE_DONE;
    while (status == KKT_OK && (code = sqlite3_step(s)) == SQLITE_ROW)
        status = merge(m, s, err);
    if (status == KKT_OK && code != SQLITE_DONE)
        status = kkt_db_fail(m->from, sqlite3_extended_errcode(m->from->handle), err);
    sqlite3_finalize(s);
    return status;
}

/* Builds go in in the order of their ids, since the latest build counts. */
static kkt_status merge_all(merger *m, kkt_error *err) {
    kkt_status status = merge_rows(
        m,
        "SELECT " KKT_IDENTITY_COLUMNS
        ", c.verdict, c.verdict_reason, d.candidate_id, " KKT_PREDICTION_COLUMNS KKT_FROM_CANDIDATES
        " LEFT JOIN predictions d ON d.candidate_id = c.id" KKT_ORDER_IDENTITY,
        merge_candidate, err);
    if (status == KKT_OK)
        status =
            merge_rows(m,
                       "SELECT " KKT_IDENTITY_COLUMNS ", " KKT_BUILD_COLUMNS KKT_FROM_CANDIDATES
                       " JOIN builds b ON b.candidate_id = c.id ORDER BY b.id",
                       merge_build, err);
    if (status == KKT_OK)
        status = kkt_db_each_run(m->from, NULL, true, merge_run, m, err);
    if (status == KKT_OK)
        status = kkt_db_pipeline_runs(m->from, NULL, NULL, merge_pipeline, m, err);
    return status;
}

/* What was copied is read back: a row that means nothing must not spoil a sound database. */
static kkt_status merge_checked(merger *m, kkt_error *err) {
    kkt_text finding = {0};
    kkt_status status = merge_all(m, err);
    if (status == KKT_OK)
        status = kkt_db_check_meaning(m->to, &finding, err);
    if (status == KKT_OK && finding.length > 0)
        status =
            kkt_fail(err, KKT_ERR_INPUT, 0,
                     "merging '%s' would leave '%s' with: %s; 'kkttune db check' lists what is "
                     "wrong with each, 'kkttune db recover' copies what is sound",
                     m->from->path, m->to->path, finding.data);
    kkt_text_free(&finding);
    return status;
}

kkt_status kkt_db_merge(kkt_db *db, const char *path, kkt_db_changes *out, kkt_error *err) {
    merger m = {.to = db};
    *out = (kkt_db_changes){0};
    kkt_status status = kkt_db_open(path, KKT_DB_READ, &m.from, err);
    if (status != KKT_OK)
        return status;
    kkt_savepoint savepoint;
    status = kkt_savepoint_begin(db, &savepoint, err);
    if (status == KKT_OK)
        status = kkt_savepoint_end(db, savepoint, merge_checked(&m, err), err);
    if (status == KKT_OK)
        *out = m.added;
    kkt_db_close(m.from);
    return status;
}
