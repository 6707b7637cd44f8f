/* The database: every problem, configuration, candidate, prediction, build, run and sample, each
 * with its provenance. The only user of SQLite. docs/formats.md describes the tables.
 *
 * A kkt_db belongs to one thread. Every kkt_db_put_* is one committed transaction unless the
 * caller has opened one with kkt_db_begin. */
#ifndef KKT_DB_STORE_H
#define KKT_DB_STORE_H

#include "base/error.h"
#include "db/record.h"

typedef struct kkt_db kkt_db;

typedef enum kkt_db_mode { KKT_DB_READ, KKT_DB_WRITE /* made where absent */ } kkt_db_mode;

/* ":memory:" is a database that ends with the handle. Not a database, or one of a newer schema:
 * KKT_ERR_INPUT, the file untouched. Unwritable or full: KKT_ERR_ENVIRONMENT. An older schema is
 * migrated in WRITE mode. */
kkt_status kkt_db_open(const char *path, kkt_db_mode mode, kkt_db **out, kkt_error *err);
void kkt_db_close(kkt_db *db); /* NULL is a no-op */

/* One line worth telling about how the file is used (network file system), or NULL. */
const char *kkt_db_note(const kkt_db *db);
/* How long to wait for a lock of another process; 30 s at first. */
void kkt_db_set_timeout(kkt_db *db, int milliseconds);

/* After a failed call within a transaction, roll back. */
kkt_status kkt_db_begin(kkt_db *db, kkt_error *err);
kkt_status kkt_db_commit(kkt_db *db, kkt_error *err);
void kkt_db_rollback(kkt_db *db);

/* Finds or makes the candidate; its outcome starts as PREDICTED. */
kkt_status kkt_db_candidate(kkt_db *db, const kkt_identity *id, int64_t *candidate_id,
                            kkt_error *err);
/* Sets outcome and reason (NULL: none) of a candidate, until the next run (or the next build, where
 * there is no run) decides. PREDICTED takes such a verdict back: the outcome then follows from the
 * best run, else the best build. */
kkt_status kkt_db_set_outcome(kkt_db *db, int64_t candidate_id, kkt_outcome outcome,
                              const char *reason, kkt_error *err);
/* Replaces the candidate's prediction. */
kkt_status kkt_db_put_prediction(kkt_db *db, int64_t candidate_id,
                                 const kkt_prediction_record *record, kkt_error *err);
/* Adds a build; one of the same kernel_hash, options and compiler is replaced. Sets the outcome
 * to COMPILED or BUILD_FAILED unless a run has set it already. */
kkt_status kkt_db_put_build(kkt_db *db, int64_t candidate_id, const kkt_build_record *record,
                            int64_t *build_id, kkt_error *err);
/* Adds a run of a build, with its samples; never replaces one, except that a REPLAYED run of the
 * same build, date, gpu, outcome and median is kept once. Sets the candidate's outcome. */
kkt_status kkt_db_put_run(kkt_db *db, int64_t build_id, const kkt_run_record *record,
                          int64_t *run_id, kkt_error *err);

/* Stores what hardware counters said of a run: its counters (those it had are replaced; values that
 * are not finite are left out), hbm_bytes_counted (NaN: not counted) and, where not all is well, a
 * note in words (NULL: none). */
kkt_status kkt_db_put_counters(kkt_db *db, int64_t run_id, const kkt_counter_record *counters,
                               size_t count, double hbm_bytes_counted, const char *note,
                               kkt_error *err);
/* Calls `visit` for each counter of a run, by name. */
kkt_status kkt_db_counters(kkt_db *db, int64_t run_id,
                           kkt_status (*visit)(void *context, const kkt_counter_record *counter,
                                               kkt_error *err),
                           void *context, kkt_error *err);

/* What a result must match not to be stale. A NULL member is not compared. Options and kernel
 * hash differ by variant, hence the callback: it gives the present hash (and options, where it
 * knows them) for a row's identity; false: unknown kernel, which is stale too ("kernel gone").
 * `readable` says of a row whose kernel is known whether its problem and configuration still are
 * of that kernel's: false is stale, whatever the hash. */
typedef struct kkt_freshness {
    const char *compiler; /* "nvrtc 13.0" */
    bool (*present)(void *context, const kkt_identity *id, const char **kernel_hash,
                    const char **options);
    void *context;
    bool (*readable)(void *context, const kkt_identity *id);
} kkt_freshness;

typedef struct kkt_result_filter {
    const char *kernel, *style, *arch, *device, *problem, *config; /* NULL: any */
} kkt_result_filter;

/* Calls `visit` for every matching candidate, in the order kernel, style, arch, device, problem,
 * config. The best run of a candidate is the fresh measured one, else the fresh replayed one, else
 * the stale ones in that order, and one that the fake backend made up only where there is no other;
 * the latest of those; failures count as runs. `visit` returns KKT_OK
 * to go on. `freshness` may be NULL: then nothing is stale. */
kkt_status
kkt_db_results(kkt_db *db, const kkt_result_filter *filter, const kkt_freshness *freshness,
               kkt_status (*visit)(void *context, const kkt_result *result, kkt_error *err),
               void *context, kkt_error *err);
/* All samples of the candidate's best run, staleness as kkt_db_mark_stale last wrote it; `*samples`
 * is malloc'ed, NULL with `*count` 0 where none are kept. */
kkt_status kkt_db_samples(kkt_db *db, int64_t candidate_id, float **samples, size_t *count,
                          kkt_error *err);
/* Median of the first measured run of a build that was timed; NaN where there is none. */
kkt_status kkt_db_first_time(kkt_db *db, int64_t build_id, double *time_us, kkt_error *err);
/* Writes stale_reason of every candidate as `freshness` sees it, so that the SQL view `results`
 * shows it too. */
kkt_status kkt_db_mark_stale(kkt_db *db, const kkt_freshness *freshness, kkt_error *err);

/* Adds the run of a whole pipeline; never replaces one. A REPLAYED one that is there already (same
 * members, date, GPU, outcome and median) is kept once. Members without a build_id are found by
 * their identity and build, or made. */
kkt_status kkt_db_put_pipeline_run(kkt_db *db, const kkt_pipeline_record *record, int64_t *run_id,
                                   kkt_error *err);

typedef struct kkt_pipeline_filter {
    const char *pipeline, *arch, *device, *problem; /* NULL: any */
} kkt_pipeline_filter;

/* Calls `visit` for every matching run of a pipeline, in an order that depends on the rows alone
 * (pipeline, arch, device, problem, chunk, date, ...); which of them stands for a chunk size is the
 * caller's to say. `freshness` may be NULL: then nothing is stale. */
kkt_status kkt_db_pipeline_runs(
    kkt_db *db, const kkt_pipeline_filter *filter, const kkt_freshness *freshness,
    kkt_status (*visit)(void *context, const kkt_pipeline_record *record, kkt_error *err),
    void *context, kkt_error *err);

/* Marks: short texts by which a program tells its next run what it found; not results. A mark that
 * is not there reads as "". */
kkt_status kkt_db_get_mark(kkt_db *db, const char *key, char *value, size_t size, kkt_error *err);
kkt_status kkt_db_put_mark(kkt_db *db, const char *key, const char *value, kkt_error *err);

typedef struct kkt_db_info {
    int schema_version;
    int64_t candidates, predictions, builds, runs, samples, pipeline_runs;
} kkt_db_info;
kkt_status kkt_db_get_info(kkt_db *db, kkt_db_info *out, kkt_error *err);

#endif
