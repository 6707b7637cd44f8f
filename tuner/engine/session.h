/* One run: for each kernel and problem predict, compile, check, time, store; resumable, because
 * every step first looks for its result in the database. The main job and `tune` call it. */
#ifndef KKT_TUNER_SESSION_H
#define KKT_TUNER_SESSION_H

#include "db/objective.h"
#include "db/store.h"
#include "tuner/compile/pool.h"
#include "tuner/engine/search.h"
#include "tuner/measure/backend.h"

typedef enum kkt_tier {
    KKT_TIER_PREDICTED,
    KKT_TIER_COMPILED,
    KKT_TIER_REPLAYED,
    KKT_TIER_MEASURED
} kkt_tier;
const char *kkt_tier_name(kkt_tier tier);

/* Which candidates hardware counters are read for, after they were timed. */
typedef enum kkt_counters_scope {
    KKT_COUNTERS_FINALISTS, /* the best five of each problem, style and chunk size */
    KKT_COUNTERS_ALL,       /* whatever was timed */
    KKT_COUNTERS_NONE,
    KKT_COUNTERS_SCOPE_COUNT
} kkt_counters_scope;
const char *kkt_counters_scope_name(kkt_counters_scope scope);
/* KKT_ERR_INPUT lists what exists. */
kkt_status kkt_counters_scope_parse(const char *name, kkt_counters_scope *out, kkt_error *err);

/* Something that became of a candidate, as it happens. Pointers are borrowed for the call. */
typedef struct kkt_session_event {
    const char *step;       /* "compile", "measure", "finalist", "reuse" or "pipeline" */
    const kkt_identity *id; /* of a pipeline: its name, how it was launched, and its chunk size */
    kkt_outcome outcome;
    const char *reason;        /* NULL: none */
    const kkt_run_record *run; /* NULL: it was not run in this session */
    double time_us;            /* of `run` or of the one that is reused; NaN: none */
    double predicted_us;
} kkt_session_event;

typedef struct kkt_session_options {
    const kkt_arch *arch;
    const kkt_device *device;
    const kkt_kernel *kernel; /* NULL: all, or those of the pipeline */
    /* Its kernels are tuned at every chunk size that they share, on all of its problems, then timed
     * together. NULL: those of the main job, where `kernel` is NULL, too. */
    const kkt_pipeline *pipeline;
    const char *problem;        /* of the kernel or pipeline; NULL: its default problems */
    const kkt_variant *variant; /* that one of `kernel` alone; NULL: all with device code */
    const char *fixed; /* "chunk=64": parameters held; NULL: none. Of a pipeline: chunk alone. */
    const kkt_search_type *search;
    uint64_t seed;
    int64_t budget_evals;  /* whole run, reused results included, baselines left out; 0: 64 a
                              kernel and problem, in all styles */
    double budget_seconds; /* 0: none; without a GPU the run then ends after a minute */
    bool exhaustive;
    /* Candidates that failed before are tried again, outside of the budget of evals: each was
     * counted when it failed. */
    bool retry;
    /* Nothing is searched: what is in the database is gone through, and measured again where it is
     * stale. */
    bool revalidate;
    kkt_objective objective; /* chooses the finalists; the search itself goes by time */
    kkt_counters_scope counters;
    const char *reference_folder; /* recordings; NULL: none */
    kkt_policy policy;
    /* One line of progress: "compile 12 of 64"; NULL: silent. */
    void (*progress)(void *context, const char *phase, int64_t done, int64_t total,
                     const char *detail);
    void *progress_context;
    /* Each result, and what is worth one line to whoever waits (each such line comes once); either
     * may be NULL. */
    void (*event)(void *context, const kkt_session_event *event);
    void (*note)(void *context, const char *line);
    void *event_context;
} kkt_session_options;

/* Of candidates: baselines beside other styles are none. */
typedef struct kkt_session_counts {
    int64_t enumerated, rejected, compiled, build_failed, verified, wrong_result, racy,
        launch_failed, timed_out, crashed, noisy, measured, replayed, reused;
    int64_t quarantined; /* of `reused`: failed before, not tried again */
    int64_t counted;     /* by hardware counters */
    int64_t disturbed;   /* timings that something else disturbed */
    int64_t pipelines;   /* whole pipelines that were timed */
} kkt_session_counts;

typedef struct kkt_session_summary {
    kkt_tier tier;
    kkt_session_counts counts;
    double seconds;
    bool interrupted;        /* by a signal: what was done is committed */
    char counters_note[320]; /* why nothing could be counted, with the remedy; "" where all is well
                              */
} kkt_session_summary;

/* `backend` NULL: no GPU; recordings, predictions and compilation. `pool` may be unavailable. */
kkt_status kkt_session_run(const kkt_session_options *options, kkt_db *db, kkt_compile_pool *pool,
                           const kkt_backend_type *backend_type, kkt_backend *backend,
                           kkt_session_summary *out, kkt_error *err);
/* Asks a running session to end after the candidate in flight; safe in a signal handler. */
void kkt_session_interrupt(void);
#endif
