#include <stdlib.h>
#include <string.h>

#include "db/rows.h"
#include "db/store_sqlite.h"

#define IDENTITY_LIMIT 65536 /* longest identity text, bytes */

/* Finds the row of a unique text key or makes it: both statements take the same parameters. */
static kkt_status find_or_make(kkt_db *db, const char *find, const char *make,
                               const char *const *keys, int count, int64_t *id, kkt_error *err) {
    sqlite3_stmt *statement = NULL;
    bool found = false;
    kkt_status status = kkt_db_cached(db, find, &statement, err);
    if (status != KKT_OK)
        return status;
    for (int i = 0; i < count; i++)
        kkt_bind_text(statement, i + 1, keys[i]);
    status = kkt_db_step_int(db, statement, id, &found, err);
    if (status != KKT_OK || found)
        return status;
    status = kkt_db_cached(db, make, &statement, err);
    if (status != KKT_OK)
        return status;
    for (int i = 0; i < count; i++)
        kkt_bind_text(statement, i + 1, keys[i]);
    status = kkt_db_step_done(db, statement, err);
    *id = sqlite3_last_insert_rowid(db->handle);
    return status;
}

static kkt_status check_identity(const kkt_identity *id, kkt_error *err) {
    const char *const texts[] = {id->kernel, id->style,   id->arch,
                                 id->device, id->problem, id->config};
    static const char *const names[] = {"kernel", "style", "arch", "device", "problem", "config"};
    for (int i = 0; i < KKT_IDENTITY_COUNT; i++) {
        bool may_be_empty = i >= 4;
        if (!texts[i] || (!may_be_empty && !*texts[i]))
            return kkt_fail(err, KKT_ERR_INPUT, 0, "a candidate needs a %s", names[i]);
        if (strlen(texts[i]) > IDENTITY_LIMIT)
            return kkt_fail(err, KKT_ERR_INPUT, 0, "the %s of a candidate is over %d bytes long",
                            names[i], IDENTITY_LIMIT);
    }
    return KKT_OK;
}

static kkt_status make_candidate(kkt_db *db, const kkt_identity *id, int64_t *candidate_id,
                                 kkt_error *err) {
    int64_t problem = 0, configuration = 0;
    kkt_status status =
        find_or_make(db, "SELECT id FROM problems WHERE kernel=?1 AND text=?2",
                     "INSERT INTO problems (kernel, text) VALUES (?1, ?2)",
                     (const char *const[]){id->kernel, id->problem}, 2, &problem, err);
    if (status == KKT_OK)
        status = find_or_make(
            db, "SELECT id FROM configurations WHERE kernel=?1 AND style=?2 AND text=?3",
            "INSERT INTO configurations (kernel, style, text) VALUES (?1, ?2, ?3)",
            (const char *const[]){id->kernel, id->style, id->config}, 3, &configuration, err);
    sqlite3_stmt *statement = NULL;
    if (status == KKT_OK)
        status = kkt_db_cached(db,
                               "INSERT INTO candidates (problem_id, configuration_id, arch, device)"
                               " VALUES (?1, ?2, ?3, ?4)",
                               &statement, err);
    if (status != KKT_OK)
        return status;
    sqlite3_bind_int64(statement, 1, problem);
    sqlite3_bind_int64(statement, 2, configuration);
    kkt_bind_text(statement, 3, id->arch);
    kkt_bind_text(statement, 4, id->device);
    status = kkt_db_step_done(db, statement, err);
    *candidate_id = sqlite3_last_insert_rowid(db->handle);
    return status;
}

static kkt_status find_candidate(kkt_db *db, const kkt_identity *id, int64_t *candidate_id,
                                 bool *found, kkt_error *err) {
    sqlite3_stmt *statement = NULL;
    kkt_status status =
        kkt_db_cached(db,
                      "SELECT c.id FROM candidates c"
                      " WHERE c.problem_id = (SELECT id FROM problems WHERE kernel=?1 AND text=?5)"
                      " AND c.configuration_id ="
                      " (SELECT id FROM configurations WHERE kernel=?1 AND style=?2 AND text=?6)"
                      " AND c.arch=?3 AND c.device=?4",
                      &statement, err);
    if (status != KKT_OK)
        return status;
    const kkt_result_filter exact = {.kernel = id->kernel,
                                     .style = id->style,
                                     .arch = id->arch,
                                     .device = id->device,
                                     .problem = id->problem,
                                     .config = id->config};
    kkt_bind_filter(statement, &exact);
    return kkt_db_step_int(db, statement, candidate_id, found, err);
}

kkt_status kkt_db_candidate(kkt_db *db, const kkt_identity *id, int64_t *candidate_id,
                            kkt_error *err) {
    bool found = false, own = false;
    kkt_status status = check_identity(id, err);
    if (status == KKT_OK)
        status = find_candidate(db, id, candidate_id, &found, err);
    if (status != KKT_OK || found)
        return status;
    status = kkt_db_scope_begin(db, false, &own, err);
    if (status != KKT_OK)
        return status;
    /* Once more under the lock: another process may have made it. */
    if (own)
        status = find_candidate(db, id, candidate_id, &found, err);
    if (status == KKT_OK && !found)
        status = make_candidate(db, id, candidate_id, err);
    return kkt_db_scope_end(db, own, status, err);
}

kkt_status kkt_db_set_outcome(kkt_db *db, int64_t candidate_id, kkt_outcome outcome,
                              const char *reason, kkt_error *err) {
    sqlite3_stmt *statement = NULL;
    bool own = false;
    kkt_status status = kkt_db_scope_begin(db, false, &own, err);
    if (status != KKT_OK)
        return status;
    status = kkt_db_cached(db, "UPDATE candidates SET verdict=?2, verdict_reason=?3 WHERE id=?1",
                           &statement, err);
    if (status == KKT_OK) {
        bool verdict = outcome != KKT_OUTCOME_PREDICTED;
        sqlite3_bind_int64(statement, 1, candidate_id);
        kkt_bind_text(statement, 2, verdict ? kkt_outcome_name(outcome) : NULL);
        kkt_bind_text(statement, 3, verdict ? reason : NULL);
        status = kkt_db_step_done(db, statement, err);
    }
    if (status == KKT_OK && sqlite3_changes(db->handle) == 0)
        status = kkt_fail(err, KKT_ERR_INPUT, 0, "database '%s' has no candidate %lld", db->path,
                          (long long)candidate_id);
    return kkt_db_scope_end(db, own, status, err);
}

kkt_status kkt_db_put_prediction(kkt_db *db, int64_t candidate_id,
                                 const kkt_prediction_record *record, kkt_error *err) {
    sqlite3_stmt *s = NULL;
    bool own = false;
    kkt_status status = kkt_db_scope_begin(db, false, &own, err);
    if (status != KKT_OK)
        return status;
    status = kkt_db_cached(db,
                           "INSERT OR REPLACE INTO predictions VALUES"
                           " (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15)",
                           &s, err);
    if (status == KKT_OK) {
        sqlite3_bind_int64(s, 1, candidate_id);
        kkt_bind_text(s, 2, record->model_version);
        kkt_bind_int(s, 3, record->registers);
        kkt_bind_int(s, 4, record->smem_bytes);
        kkt_bind_real(s, 5, record->hbm_bytes);
        kkt_bind_real(s, 6, record->hbm_bytes_per_token);
        kkt_bind_int(s, 7, record->blocks_per_sm);
        sqlite3_bind_int(s, 8, record->feasible);
        sqlite3_bind_int(s, 9, record->spills);
        sqlite3_bind_int(s, 10, record->calibrated);
        kkt_bind_text(s, 11, record->limiter);
        kkt_bind_text(s, 12, record->reason);
        kkt_bind_real(s, 13, record->chain_steps);
        kkt_bind_real(s, 14, record->lower_bound_us);
        kkt_bind_real(s, 15, record->predicted_us);
        status = kkt_db_step_done(db, s, err);
    }
    return kkt_db_scope_end(db, own, status, err);
}

/* ---- builds ---- */

#define INSERT_BUILD                                                                               \
    "INSERT INTO builds (candidate_id, kernel_hash, options, compiler, outcome, log, registers,"   \
    " static_smem_bytes, dynamic_smem_bytes, spill_store_bytes, spill_load_bytes, stack_bytes,"    \
    " barriers, cubin_bytes, compile_ms)"                                                          \
    " VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15)"

static kkt_status insert_build(kkt_db *db, const char *sql, int64_t candidate_id,
                               const kkt_build_record *record, kkt_error *err) {
    sqlite3_stmt *s = NULL;
    kkt_status status = kkt_db_cached(db, sql, &s, err);
    if (status != KKT_OK)
        return status;
    sqlite3_bind_int64(s, 1, candidate_id);
    kkt_bind_key(s, 2, record->kernel_hash);
    kkt_bind_key(s, 3, record->options);
    kkt_bind_key(s, 4, record->compiler);
    kkt_bind_text(s, 5, kkt_outcome_name(record->outcome));
    kkt_bind_text(s, 6, record->log);
    kkt_bind_int(s, 7, record->registers);
    kkt_bind_int(s, 8, record->static_smem_bytes);
    kkt_bind_int(s, 9, record->dynamic_smem_bytes);
    kkt_bind_int(s, 10, record->spill_store_bytes);
    kkt_bind_int(s, 11, record->spill_load_bytes);
    kkt_bind_int(s, 12, record->stack_bytes);
    kkt_bind_int(s, 13, record->barriers);
    kkt_bind_int(s, 14, record->cubin_bytes);
    kkt_bind_real(s, 15, record->compile_ms);
    return kkt_db_step_done(db, s, err);
}

static kkt_status find_build(kkt_db *db, int64_t candidate_id, const kkt_build_record *record,
                             int64_t *build_id, bool *found, kkt_error *err) {
    sqlite3_stmt *s = NULL;
    kkt_status status = kkt_db_cached(db,
                                      "SELECT id FROM builds WHERE candidate_id=?1 AND"
                                      " kernel_hash=?2 AND options=?3 AND compiler=?4",
                                      &s, err);
    if (status != KKT_OK)
        return status;
    sqlite3_bind_int64(s, 1, candidate_id);
    kkt_bind_key(s, 2, record->kernel_hash);
    kkt_bind_key(s, 3, record->options);
    kkt_bind_key(s, 4, record->compiler);
    return kkt_db_step_int(db, s, build_id, found, err);
}

kkt_status kkt_db_keep_build(kkt_db *db, int64_t candidate_id, const kkt_build_record *record,
                             int64_t *build_id, bool *added, kkt_error *err) {
    bool found = false;
    kkt_status status = find_build(db, candidate_id, record, build_id, &found, err);
    *added = status == KKT_OK && !found;
    if (!*added)
        return status;
    status = insert_build(db, INSERT_BUILD, candidate_id, record, err);
    *build_id = sqlite3_last_insert_rowid(db->handle);
    return status;
}

/* A build decides the outcome unless a run has: an older verdict ("rejected") is void then. */
static kkt_status clear_verdict(kkt_db *db, const char *sql, int64_t id, kkt_error *err) {
    sqlite3_stmt *s = NULL;
    kkt_status status = kkt_db_cached(db, sql, &s, err);
    if (status != KKT_OK)
        return status;
    sqlite3_bind_int64(s, 1, id);
    return kkt_db_step_done(db, s, err);
}

kkt_status kkt_db_put_build(kkt_db *db, int64_t candidate_id, const kkt_build_record *record,
                            int64_t *build_id, kkt_error *err) {
    bool own = false, found = false;
    kkt_status status = kkt_db_scope_begin(db, false, &own, err);
    if (status != KKT_OK)
        return status;
    status = insert_build(db,
                          INSERT_BUILD
                          " ON CONFLICT (candidate_id, kernel_hash, options, compiler) DO UPDATE"
                          " SET outcome=?5, log=?6, registers=?7, static_smem_bytes=?8,"
                          " dynamic_smem_bytes=?9, spill_store_bytes=?10, spill_load_bytes=?11,"
                          " stack_bytes=?12, barriers=?13, cubin_bytes=?14, compile_ms=?15,"
                          " stale_reason=NULL",
                          candidate_id, record, err);
    if (status == KKT_OK)
        status = find_build(db, candidate_id, record, build_id, &found, err);
    if (status == KKT_OK)
        status = clear_verdict(db,
                               "UPDATE candidates SET verdict=NULL, verdict_reason=NULL"
                               " WHERE id=?1 AND verdict IS NOT NULL AND NOT EXISTS"
                               " (SELECT 1 FROM builds b JOIN runs r ON r.build_id = b.id"
                               " WHERE b.candidate_id=?1)",
                               candidate_id, err);
    return kkt_db_scope_end(db, own, status, err);
}

/* ---- runs ---- */

static kkt_status insert_run(kkt_db *db, int64_t build_id, const kkt_run_record *record,
                             kkt_error *err) {
    sqlite3_stmt *s = NULL;
    kkt_status status = kkt_db_cached(
        db,
        "INSERT INTO runs VALUES (NULL,?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,"
        "?17,?18,?19,?20,?21,?22,?23,?24,?25,?26,?27,?28)",
        &s, err);
    if (status != KKT_OK)
        return status;
    sqlite3_bind_int64(s, 1, build_id);
    kkt_bind_run(s, 2, record);
    return kkt_db_step_done(db, s, err);
}

static kkt_status insert_samples(kkt_db *db, int64_t run_id, const char *json, kkt_error *err) {
    sqlite3_stmt *s = NULL;
    kkt_status status = kkt_db_cached(db, "INSERT INTO samples VALUES (?1, ?2)", &s, err);
    if (status != KKT_OK)
        return status;
    sqlite3_bind_int64(s, 1, run_id);
    kkt_bind_text(s, 2, json);
    return kkt_db_step_done(db, s, err);
}

kkt_status kkt_run_samples(const kkt_run_record *record, const char **json, kkt_text *text,
                           kkt_error *err) {
    if (record->provenance != KKT_MEASURED && record->provenance != KKT_REPLAYED)
        return kkt_fail(err, KKT_ERR_INPUT, 0, "a run is measured or replayed, not %s",
                        kkt_provenance_name(record->provenance));
    if (*json || !record->samples_us || record->sample_count <= 0)
        return KKT_OK;
    for (int64_t i = 0; i < record->sample_count; i++) {
        if (!isfinite(record->samples_us[i]))
            return kkt_fail(err, KKT_ERR_INPUT, 0, "sample %lld of a run is not finite",
                            (long long)i);
    }
    kkt_samples_format(record->samples_us, (size_t)record->sample_count, text);
    *json = kkt_text_get(text);
    return KKT_OK;
}

/* The run with its samples; inside the caller's transaction. */
static kkt_status add_run(kkt_db *db, int64_t build_id, const kkt_run_record *record,
                          const char *samples_json, int64_t *run_id, kkt_error *err) {
    kkt_text text = {0};
    kkt_status status = kkt_run_samples(record, &samples_json, &text, err);
    if (status == KKT_OK)
        status = insert_run(db, build_id, record, err);
    *run_id = sqlite3_last_insert_rowid(db->handle);
    if (status == KKT_OK && samples_json)
        status = insert_samples(db, *run_id, samples_json, err);
    kkt_text_free(&text);
    return status;
}

kkt_status kkt_db_keep_run(kkt_db *db, int64_t build_id, const kkt_run_record *run,
                           const char *samples_json, int64_t *run_id, bool *added, kkt_error *err) {
    sqlite3_stmt *s = NULL;
    bool found = false;
    kkt_status status = kkt_db_cached(db,
                                      "SELECT id FROM runs WHERE build_id=?1 AND date IS ?2 AND"
                                      " gpu IS ?3 AND outcome=?4 AND time_us IS ?5 AND reason IS ?6"
                                      " AND policy IS ?7",
                                      &s, err);
    if (status != KKT_OK)
        return status;
    sqlite3_bind_int64(s, 1, build_id);
    kkt_bind_text(s, 2, run->date);
    kkt_bind_text(s, 3, run->gpu);
    kkt_bind_text(s, 4, kkt_outcome_name(run->outcome));
    kkt_bind_real(s, 5, run->time_us);
    kkt_bind_text(s, 6, run->reason);
    kkt_bind_text(s, 7, run->policy);
    status = kkt_db_step_int(db, s, run_id, &found, err);
    *added = status == KKT_OK && !found;
    return *added ? add_run(db, build_id, run, samples_json, run_id, err) : status;
}

kkt_status kkt_db_put_run(kkt_db *db, int64_t build_id, const kkt_run_record *record,
                          int64_t *run_id, kkt_error *err) {
    bool own = false, added = false;
    kkt_status status = kkt_db_scope_begin(db, true, &own, err);
    if (status != KKT_OK)
        return status;
    if (record->provenance == KKT_REPLAYED)
        status = kkt_db_keep_run(db, build_id, record, NULL, run_id, &added, err);
    else
        status = add_run(db, build_id, record, NULL, run_id, err);
    if (status == KKT_OK && (added || record->provenance == KKT_MEASURED))
        status = clear_verdict(db,
                               "UPDATE candidates SET verdict=NULL, verdict_reason=NULL WHERE"
                               " verdict IS NOT NULL AND"
                               " id = (SELECT candidate_id FROM builds WHERE id=?1)",
                               build_id, err);
    return kkt_db_scope_end(db, own, status, err);
}
