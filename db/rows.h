/* Every run with its build, and putting them into another database: what recordings and merging
 * share. Internal to db/. */
#ifndef KKT_DB_ROWS_H
#define KKT_DB_ROWS_H

#include "base/text.h"
#include "db/store.h"

typedef struct kkt_run_row {
    kkt_identity id;
    kkt_build_record build;
    kkt_run_record run;       /* samples_us is NULL */
    const char *samples_json; /* a JSON array; NULL where none are kept */
    int64_t run_id;
} kkt_run_row;

/* Every run that matches, measured or (with `replayed`) of either provenance, in an order that
 * depends on the rows alone. An unknown outcome name is KKT_ERR_INPUT. */
kkt_status kkt_db_each_run(kkt_db *db, const kkt_result_filter *filter, bool replayed,
                           kkt_status (*visit)(void *context, const kkt_run_row *row,
                                               kkt_error *err),
                           void *context, kkt_error *err);
/* Stores a build unless the candidate has it already; never changes one. */
kkt_status kkt_db_keep_build(kkt_db *db, int64_t candidate_id, const kkt_build_record *record,
                             int64_t *build_id, bool *added, kkt_error *err);
/* Stores a run unless the build has the same measurement (date, GPU, outcome and median), of
 * whichever provenance. `samples_json` NULL: run->samples_us is used. */
kkt_status kkt_db_keep_run(kkt_db *db, int64_t build_id, const kkt_run_record *run,
                           const char *samples_json, int64_t *run_id, bool *added, kkt_error *err);
/* Checks a run to be stored, and gives its samples as JSON where they come as numbers: `*json` NULL
 * is replaced by `text`. */
kkt_status kkt_run_samples(const kkt_run_record *record, const char **json, kkt_text *text,
                           kkt_error *err);
/* Stores the run of a pipeline unless the same measurement is there. */
kkt_status kkt_db_keep_pipeline_run(kkt_db *db, const kkt_pipeline_record *record, int64_t *run_id,
                                    bool *added, kkt_error *err);
/* The counters of a run, copied. Zero-initialise; freed also after a failure. */
typedef struct kkt_counter_list {
    kkt_counter_record *rows;
    size_t count, capacity;
} kkt_counter_list;
kkt_status kkt_db_read_counters(kkt_db *db, int64_t run_id, kkt_counter_list *out, kkt_error *err);
void kkt_counter_list_free(kkt_counter_list *list);
/* Gives a run the counters that it lacks; never changes one. hbm_bytes_counted and the note are
 * set where no bytes were counted so far. */
kkt_status kkt_db_keep_counters(kkt_db *db, int64_t run_id, const kkt_counter_record *counters,
                                size_t count, double hbm_bytes_counted, const char *note,
                                kkt_error *err);
/* All or nothing, whether or not the caller has a transaction open: `end` undoes everything since
 * `begin` unless `status` is KKT_OK, and returns it. */
typedef struct kkt_savepoint {
    bool own; /* a transaction of its own */
} kkt_savepoint;
kkt_status kkt_savepoint_begin(kkt_db *db, kkt_savepoint *out, kkt_error *err);
kkt_status kkt_savepoint_end(kkt_db *db, kkt_savepoint savepoint, kkt_status status,
                             kkt_error *err);
/* Appends samples as a JSON array, each with the fewest digits that give the same float. */
void kkt_samples_format(const float *samples, size_t count, kkt_text *out);
/* The reverse; false where it is no array of `count` finite numbers. `out` holds `count`. */
bool kkt_samples_parse(const char *json, size_t count, float *out);
/* Whether a text has the canonical form "k=v,k=v" with keys sorted and unique ("" included). */
bool kkt_canonical_valid(const char *text);

#endif
