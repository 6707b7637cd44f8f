/* What to say: one query layer from the database (and the model) to the exports and reports, so
 * that JSON, header, Markdown and HTML never disagree. */
#ifndef KKT_REPORTS_VIEW_H
#define KKT_REPORTS_VIEW_H

#include "base/arena.h"
#include "db/store.h"
#include "model/arch.h"

/* One exported entry: the best configuration of a kernel, style, problem and chunk. All strings
 * live in the view's arena. */
typedef struct kkt_entry {
    const char *kernel, *style, *problem, *config;
    int64_t chunk;        /* 0: the kernel has none */
    bool best_of_problem; /* the best over all chunks of its kernel and problem */
    int64_t candidate_id;
    kkt_provenance provenance;
    const char *stale_reason; /* NULL: fresh */
    int threads;
    int64_t smem_bytes; /* dynamic, of the launch */
    int registers;      /* compiled where known, else predicted */
    int registers_predicted;
    int64_t smem_predicted;
    int64_t spill_bytes;
    double time_us, low_us, high_us; /* NaN without measurement */
    int64_t samples;
    double predicted_us, lower_bound_us, hbm_bytes, hbm_bytes_per_token;
    double chain_steps;
    int blocks_per_sm;
    const char *limiter;
    const char *reason; /* the prediction's sentence */
    double rel_fro, max_abs, tolerance;
    const char *kernel_hash; /* of the build; the present source's where there is none */
    const char *gpu, *driver, *date;
    const char *const *ties; /* configurations within noise, canonical texts, sorted;
                                NULL-terminated, the entry itself not among them */
    size_t tie_count;
} kkt_entry;

typedef struct kkt_reject_group {
    const char *kernel, *style, *problem, *outcome, *reason;
    int64_t count;
    const char *example; /* one configuration */
} kkt_reject_group;

typedef struct kkt_view {
    const kkt_arch *arch;
    const kkt_device *device;
    size_t entry_count;
    kkt_entry *entries; /* sorted: kernel, style, problem (default problem first), chunk */
    size_t reject_count;
    kkt_reject_group *rejects;
    int64_t candidates, measured, replayed, compiled, stale;
} kkt_view;

/* Builds the view of an architecture and device (`kernel` NULL: all). The best entry: fresh
 * before stale, measured or replayed before compiled before predicted, then the smallest median;
 * overlapping intervals are a tie, broken by lower bound of the interval's configuration text order
 * so that the same database always gives the same winner. */
kkt_status kkt_view_make(kkt_db *db, const kkt_freshness *freshness, const kkt_arch *arch,
                         const kkt_device *device, const char *kernel, kkt_arena *arena,
                         kkt_view *out, kkt_error *err);

#endif
