/* Ablation: from one configuration every parameter is moved to every other value, and the pairs
 * that a family's claims compare are added (kernels/moves.h); all are compiled, checked, timed
 * interleaved and stored like any other candidate. What came of it is read from the database. */
#ifndef KKT_TUNER_ABLATE_H
#define KKT_TUNER_ABLATE_H

#include "kernels/moves.h"
#include "tuner/engine/session.h"

/* Where the base comes from. */
typedef enum kkt_ablate_origin {
    KKT_ABLATE_GIVEN,    /* the caller's */
    KKT_ABLATE_EARLIER,  /* of an earlier ablation, and no candidate tuned since is faster */
    KKT_ABLATE_MEASURED, /* the best that is known, measured here */
    KKT_ABLATE_REPLAYED, /* the best that is known, from a recording */
    KKT_ABLATE_PREDICTED /* the model's best */
} kkt_ablate_origin;
const char *kkt_ablate_origin_name(kkt_ablate_origin origin); /* "given", ... */

typedef struct kkt_ablate_options {
    /* Used as kkt_session_run does: arch, device, kernel (required), problem (NULL: the default
     * one), seed, reference_folder, policy, retry, budget_seconds, progress. */
    kkt_session_options session;
    const kkt_variant *variant; /* of the kernel; NULL: its first with device code */
    const char *start;          /* "k=v,...", the rest at its default; NULL: the best known */
    int64_t chunk;              /* of the base; 0: whatever the best has, or `start` says */
} kkt_ablate_options;

typedef struct kkt_ablate_result {
    const kkt_variant *variant;
    kkt_values problem, base;
    kkt_ablate_origin origin;
    kkt_session_summary summary; /* `tier` of the base; counts of this call alone */
} kkt_ablate_result;

/* Whether the problem can be had at `options->chunk` at all; no database is needed.
 * KKT_ERR_MISSING: no configuration of the style can be launched so, and why; KKT_ERR_INPUT: the
 * problem is none, or the style has no such chunk. */
kkt_status kkt_ablate_check_chunk(const kkt_ablate_options *options, kkt_error *err);

/* Can be interrupted like a session, and goes on where it stopped: what is known of a candidate is
 * reused, and all are timed again together unless all were. `backend_type` NULL: nothing is timed;
 * recordings, compilation and predictions serve. KKT_ERR_INPUT: problem or base cannot be had;
 * KKT_ERR_MISSING: nothing in the space is feasible. */
kkt_status kkt_ablate_run(const kkt_ablate_options *options, kkt_db *db, kkt_compile_pool *pool,
                          const kkt_backend_type *backend_type, kkt_backend *backend,
                          kkt_ablate_result *out, kkt_error *err);

#endif
