/* Looking after database files: what is in one, whether it is sound, joining two, saving what is
 * sound of a damaged one. */
#ifndef KKT_DB_MAINTAIN_H
#define KKT_DB_MAINTAIN_H

#include "db/store.h"

/* Candidates by the best tier they reached and by outcome, as the view `results` shows them. */
typedef struct kkt_db_summary {
    int64_t tiers[KKT_PROVENANCE_COUNT]; /* stale ones included */
    int64_t stale;
    int64_t outcomes[KKT_OUTCOME_COUNT];
} kkt_db_summary;
kkt_status kkt_db_summarize(kkt_db *db, kkt_db_summary *out, kkt_error *err);

/* Checks pages and indexes, foreign keys and meaning (texts canonical, outcomes known, samples that
 * parse and are as many as they should). `report` is called once a finding, at most 100 times;
 * `*findings` is their number. The status is KKT_OK however damaged the file is: it says whether
 * the check could be carried out. */
kkt_status kkt_db_check(kkt_db *db, void (*report)(void *context, const char *finding),
                        void *context, int64_t *findings, kkt_error *err);

typedef struct kkt_db_changes {
    int64_t candidates, predictions, builds, runs, pipeline_runs; /* rows added */
    int64_t lost; /* recover: rows known to be lost; behind a table's last readable row they cannot
                     be counted */
} kkt_db_changes;

/* Adds to `db` what the database at `path` has and it lacks, in one transaction. Provenance is
 * kept; merging again adds nothing. Where a row then means nothing (kkt_db_check), none is added:
 * KKT_ERR_INPUT. */
kkt_status kkt_db_merge(kkt_db *db, const char *path, kkt_db_changes *out, kkt_error *err);

/* Copies every readable and sound row of a damaged database into a new file; the damaged one is
 * opened for reading alone. `to` exists: KKT_ERR_INPUT. Damage in the file's first page, which
 * names the tables, leaves nothing to recover: KKT_ERR_INPUT. */
kkt_status kkt_db_recover(const char *from, const char *to, kkt_db_changes *out, kkt_error *err);

#endif
