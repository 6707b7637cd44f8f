/* Whole pipelines that were timed: which builds each was made of, and its run. */
#include <string.h>

#include "base/arena.h"
#include "db/rows.h"
#include "db/store_sqlite.h"

/* ---- storing ---- */

static kkt_status check_record(const kkt_pipeline_record *record, kkt_error *err) {
    const char *const texts[] = {record->pipeline, record->arch, record->device};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (!texts[i] || !*texts[i])
            return kkt_fail(err, KKT_ERR_INPUT, 0,
                            "a pipeline's run needs a pipeline, an "
                            "architecture and a device");
    if (!record->problem || !kkt_canonical_valid(record->problem))
        return kkt_fail(err, KKT_ERR_INPUT, 0, "the problem of a run of %.60s is not canonical",
                        record->pipeline);
    if (record->member_count == 0 || record->member_count > KKT_PIPELINE_MEMBERS_MAX)
        return kkt_fail(err, KKT_ERR_INPUT, 0, "a run of %.60s has %zu members, not 1 to %d",
                        record->pipeline, record->member_count, KKT_PIPELINE_MEMBERS_MAX);
    if (record->chunk < 1)
        return kkt_fail(err, KKT_ERR_INPUT, 0, "a run of %.60s has the chunk size %lld",
                        record->pipeline, (long long)record->chunk);
    return KKT_OK;
}

/* The builds of the members, found or made. */
static kkt_status find_members(kkt_db *db, const kkt_pipeline_record *record,
                               int64_t builds[KKT_PIPELINE_MEMBERS_MAX], kkt_error *err) {
    for (size_t i = 0; i < record->member_count; i++) {
        const kkt_member_record *member = &record->members[i];
        int64_t candidate = 0;
        bool added = false;
        builds[i] = member->build_id;
        if (builds[i] != 0)
            continue;
        kkt_status status = kkt_db_candidate(db, &member->id, &candidate, err);
        if (status == KKT_OK)
            status = kkt_db_keep_build(db, candidate, &member->build, &builds[i], &added, err);
        if (status != KKT_OK)
            return status;
    }
    return KKT_OK;
}

static kkt_status add_members(kkt_db *db, int64_t run_id, const int64_t *builds, size_t count,
                              kkt_error *err) {
    sqlite3_stmt *s = NULL;
    kkt_status status = KKT_OK;
    for (size_t i = 0; i < count && status == KKT_OK; i++) {
        status = kkt_db_cached(db, "INSERT INTO pipeline_members VALUES (?1,?2,?3)", &s, err);
        if (status != KKT_OK)
            return status;
        sqlite3_bind_int64(s, 1, run_id);
        sqlite3_bind_int64(s, 2, (int64_t)i);
        sqlite3_bind_int64(s, 3, builds[i]);
        status = kkt_db_step_done(db, s, err);
    }
    return status;
}

/* What was timed, as parameters 1 to 6 of a statement. */
static void bind_identity(sqlite3_stmt *s, const kkt_pipeline_record *record) {
    kkt_bind_text(s, 1, record->pipeline);
    kkt_bind_text(s, 2, record->problem);
    kkt_bind_text(s, 3, record->arch);
    kkt_bind_text(s, 4, record->device);
    sqlite3_bind_int64(s, 5, record->chunk);
    kkt_bind_text(s, 6, kkt_launch_order_name(record->order));
}

static kkt_status add_run(kkt_db *db, const kkt_pipeline_record *record, const int64_t *builds,
                          int64_t *run_id, kkt_error *err) {
    sqlite3_stmt *s = NULL;
    kkt_text text = {0};
    const char *samples = record->samples_json;
    kkt_status status = kkt_run_samples(&record->run, &samples, &text, err);
    if (status == KKT_OK)
        status = kkt_db_cached(db,
                               "INSERT INTO pipeline_runs VALUES (NULL,?1,?2,?3,?4,?5,?6,?7,?8,?9,"
                               "?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20,?21,?22,?23,?24,?25,"
                               "?26,?27,?28,?29,?30,?31,?32,?33,?34)",
                               &s, err);
    if (status == KKT_OK) {
        bind_identity(s, record);
        kkt_bind_run(s, 7, &record->run);
        kkt_bind_text(s, 7 + KKT_RUN_COUNT, samples);
        status = kkt_db_step_done(db, s, err);
    }
    kkt_text_free(&text);
    *run_id = sqlite3_last_insert_rowid(db->handle);
    return status == KKT_OK ? add_members(db, *run_id, builds, record->member_count, err) : status;
}

/* The same measurement: its members, how they were launched, when and where, and what came of it.
 */
static kkt_status find_run(kkt_db *db, const kkt_pipeline_record *record, const int64_t *builds,
                           int64_t *run_id, bool *found, kkt_error *err) {
    sqlite3_stmt *s = NULL;
    kkt_status status = kkt_db_cached(
        db,
        "SELECT t.id FROM pipeline_runs t WHERE pipeline=?1 AND problem=?2 AND arch=?3 AND"
        " device=?4 AND chunk=?5 AND launch=?6 AND date IS ?7 AND gpu IS ?8 AND outcome=?9 AND"
        " time_us IS ?10 AND policy IS ?11 AND (SELECT count(*) FROM pipeline_members m WHERE"
        " m.pipeline_run_id = t.id) = ?12 AND NOT EXISTS (SELECT 1 FROM pipeline_members m WHERE"
        " m.pipeline_run_id = t.id AND m.build_id IS NOT CASE m.place WHEN 0 THEN ?13 WHEN 1 THEN"
        " ?14 WHEN 2 THEN ?15 ELSE ?16 END)",
        &s, err);
    if (status != KKT_OK)
        return status;
    bind_identity(s, record);
    kkt_bind_text(s, 7, record->run.date);
    kkt_bind_text(s, 8, record->run.gpu);
    kkt_bind_text(s, 9, kkt_outcome_name(record->run.outcome));
    kkt_bind_real(s, 10, record->run.time_us);
    kkt_bind_text(s, 11, record->run.policy);
    sqlite3_bind_int64(s, 12, (int64_t)record->member_count);
    for (int i = 0; i < KKT_PIPELINE_MEMBERS_MAX; i++)
        sqlite3_bind_int64(s, 13 + i, (size_t)i < record->member_count ? builds[i] : 0);
    return kkt_db_step_int(db, s, run_id, found, err);
}

kkt_status kkt_db_keep_pipeline_run(kkt_db *db, const kkt_pipeline_record *record, int64_t *run_id,
                                    bool *added, kkt_error *err) {
    int64_t builds[KKT_PIPELINE_MEMBERS_MAX] = {0};
    bool found = false;
    *added = false;
    kkt_status status = check_record(record, err);
    if (status == KKT_OK)
        status = find_members(db, record, builds, err);
    if (status == KKT_OK)
        status = find_run(db, record, builds, run_id, &found, err);
    if (status == KKT_OK && !found)
        status = add_run(db, record, builds, run_id, err);
    *added = status == KKT_OK && !found;
    return status;
}

kkt_status kkt_db_put_pipeline_run(kkt_db *db, const kkt_pipeline_record *record, int64_t *run_id,
                                   kkt_error *err) {
    int64_t builds[KKT_PIPELINE_MEMBERS_MAX] = {0};
    bool own = false, added = false;
    kkt_status status = kkt_db_scope_begin(db, true, &own, err);
    if (status != KKT_OK)
        return status;
    if (record->run.provenance == KKT_REPLAYED) {
        status = kkt_db_keep_pipeline_run(db, record, run_id, &added, err);
    } else {
        status = check_record(record, err);
        if (status == KKT_OK)
            status = find_members(db, record, builds, err);
        if (status == KKT_OK)
            status = add_run(db, record, builds, run_id, err);
    }
    return kkt_db_scope_end(db, own, status, err);
}

/* ---- reading ---- */

/* The sum of the members' own times is that of the view `pipelines`. */
static const char runs_sql[] =
    "SELECT t.pipeline, t.problem, t.arch, t.device, t.chunk, t.launch, t.id, v.members_us,"
    " t.times_us, " KKT_RUN_COLUMNS_OF(
        "t") " FROM pipeline_runs t JOIN pipelines v ON"
             " v.pipeline_run_id = t.id WHERE t.pipeline = coalesce(?1, t.pipeline) AND t.arch ="
             " coalesce(?2, t.arch) AND t.device = coalesce(?3, t.device) AND t.problem = "
             "coalesce(?4,"
             " t.problem) ORDER BY t.pipeline, t.arch, t.device, t.problem, t.chunk, t.date, "
             "t.launch,"
             " v.members, t.gpu, t.time_us, t.outcome, t.times_us, t.id";

static const char members_sql[] = "SELECT b.id, " KKT_STALE(
    "b") ", " KKT_IDENTITY_COLUMNS ", " KKT_BUILD_COLUMNS KKT_FROM_CANDIDATES
         " JOIN builds b ON b.candidate_id = c.id JOIN pipeline_members m ON"
         " m.build_id = b.id WHERE m.pipeline_run_id = ?1 ORDER BY m.place";

static void copy_member(kkt_arena *arena, kkt_member_record *m) {
    const char **const texts[] = {&m->id.kernel,         &m->id.style,      &m->id.arch,
                                  &m->id.device,         &m->id.problem,    &m->id.config,
                                  &m->build.kernel_hash, &m->build.options, &m->build.compiler,
                                  &m->build.log,         &m->stale_reason};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        *texts[i] = kkt_arena_strdup(arena, *texts[i]);
}

static kkt_status read_members(kkt_db *db, kkt_pipeline_record *record,
                               const kkt_freshness *freshness, kkt_arena *arena, kkt_error *err) {
    sqlite3_stmt *s = NULL;
    kkt_status status = kkt_db_prepare(db, members_sql, &s, err);
    if (status != KKT_OK)
        return status;
    const kkt_freshness *outer = db->freshness;
    db->freshness = freshness;
    sqlite3_bind_int64(s, 1, record->run_id);
    int code = SQLITE_DONE;
    bool good = true;
    while (good && (code = sqlite3_step(s)) == SQLITE_ROW) {
        good = record->member_count < KKT_PIPELINE_MEMBERS_MAX;
        if (!good)
            break;
        kkt_member_record *member = &record->members[record->member_count++];
        *member = (kkt_member_record){.build_id = sqlite3_column_int64(s, 0),
                                      .stale_reason = kkt_column_text(s, 1)};
        good = kkt_read_identity(s, 2, &member->id);
        good = kkt_read_build(s, 2 + KKT_IDENTITY_COUNT, &member->build) && good;
        copy_member(arena, member);
    }
    if (good && code != SQLITE_DONE)
        status = kkt_db_fail(db, sqlite3_extended_errcode(db->handle), err);
    db->freshness = outer;
    sqlite3_finalize(s);
    if (status == KKT_OK && (!good || record->member_count == 0))
        status = kkt_fail(err, KKT_ERR_INPUT, 0,
                          "database '%s' has a pipeline run %lld without sound members; 'kkttune "
                          "db check' lists what is wrong",
                          db->path, (long long)record->run_id);
    return status;
}

static bool read_run(sqlite3_stmt *s, kkt_pipeline_record *out) {
    enum { AT_RUN = 9 };
    *out = (kkt_pipeline_record){
        .pipeline = kkt_column_text(s, 0),
        .problem = kkt_column_text(s, 1),
        .arch = kkt_column_text(s, 2),
        .device = kkt_column_text(s, 3),
        .chunk = kkt_column_int(s, 4),
        .run_id = sqlite3_column_int64(s, 6),
        .members_us = kkt_column_real(s, 7),
        .samples_json = kkt_column_text(s, 8),
    };
    return out->pipeline && out->problem && out->arch && out->device &&
           kkt_launch_order_parse(kkt_column_text(s, 5), &out->order) &&
           kkt_read_run(s, AT_RUN, &out->run);
}

kkt_status kkt_db_pipeline_runs(
    kkt_db *db, const kkt_pipeline_filter *filter, const kkt_freshness *freshness,
    kkt_status (*visit)(void *context, const kkt_pipeline_record *record, kkt_error *err),
    void *context, kkt_error *err) {
    static const kkt_pipeline_filter any = {0};
    const kkt_pipeline_filter *f = filter ? filter : &any;
    sqlite3_stmt *s = NULL;
    kkt_status status = kkt_db_prepare(db, runs_sql, &s, err);
    if (status != KKT_OK)
        return status;
    kkt_bind_text(s, 1, f->pipeline);
    kkt_bind_text(s, 2, f->arch);
    kkt_bind_text(s, 3, f->device);
    kkt_bind_text(s, 4, f->problem);
    int code = SQLITE_DONE;
    while (status == KKT_OK && (code = sqlite3_step(s)) == SQLITE_ROW) {
        kkt_pipeline_record record;
        kkt_arena *arena = kkt_arena_open();
        if (!read_run(s, &record))
            status = kkt_fail(
                err, KKT_ERR_INPUT, 0,
                "database '%s' has an unknown outcome, provenance or launch order, or "
                "lacks a text, at pipeline run %lld; 'kkttune db check' lists what is wrong",
                db->path, (long long)record.run_id);
        if (status == KKT_OK)
            status = read_members(db, &record, freshness, arena, err);
        if (status == KKT_OK)
            status = visit(context, &record, err);
        kkt_arena_close(arena);
    }
    if (status == KKT_OK && code != SQLITE_DONE)
        status = kkt_db_fail(db, sqlite3_extended_errcode(db->handle), err);
    sqlite3_finalize(s);
    return status;
}
