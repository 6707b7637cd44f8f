/* The plain structs of everything that is stored. Strings are borrowed: by the store from its
 * caller for the length of a call, by a caller from the store for the length of a callback. NULL
 * means unknown; numbers that are unknown are KKT_UNKNOWN (NaN for reals, -1 for integers). */
#ifndef KKT_DB_RECORD_H
#define KKT_DB_RECORD_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KKT_UNKNOWN_REAL ((double)NAN)
#define KKT_UNKNOWN_INT (-1)

/* What became of a candidate. Stored by name; the order is stable. */
typedef enum kkt_outcome {
    KKT_OUTCOME_PREDICTED, /* nothing but a prediction yet */
    KKT_OUTCOME_COMPILED,
    KKT_OUTCOME_OK,       /* checked and timed */
    KKT_OUTCOME_REJECTED, /* a constraint or the model says it cannot launch */
    KKT_OUTCOME_BUILD_FAILED,
    KKT_OUTCOME_LAUNCH_FAILED,
    KKT_OUTCOME_WRONG_RESULT,
    KKT_OUTCOME_RACY,
    KKT_OUTCOME_TIMED_OUT,
    KKT_OUTCOME_CRASHED,
    KKT_OUTCOME_NOISY, /* timed, but the interval stayed wide */
    KKT_OUTCOME_COUNT
} kkt_outcome;
const char *kkt_outcome_name(kkt_outcome outcome);
bool kkt_outcome_parse(const char *name, kkt_outcome *out);
/* Whether a candidate was tried and did not work: its build, launch or check failed, or it took too
 * long. A rejected one was not tried; a noisy time is one. */
bool kkt_outcome_failed(kkt_outcome outcome);

typedef enum kkt_provenance {
    KKT_PREDICTED,
    KKT_COMPILED,
    KKT_MEASURED,
    KKT_REPLAYED,
    KKT_PROVENANCE_COUNT
} kkt_provenance;
const char *kkt_provenance_name(kkt_provenance provenance);
bool kkt_provenance_parse(const char *name, kkt_provenance *out);

/* Identity of a candidate: never the candidate list, never what produced the result. `problem`
 * and `config` are canonical texts (base/params.h). */
typedef struct kkt_identity {
    const char *kernel, *style, *arch, *device, *problem, *config;
} kkt_identity;

typedef struct kkt_prediction_record {
    const char *model_version;
    int registers;
    int64_t smem_bytes;
    double hbm_bytes, hbm_bytes_per_token;
    int blocks_per_sm;
    bool feasible, spills, calibrated;
    const char *limiter, *reason;
    double chain_steps, lower_bound_us, predicted_us;
} kkt_prediction_record;

/* What was compiled, by what, from what. */
typedef struct kkt_build_record {
    const char *kernel_hash; /* 64 hex digits */
    const char *options;     /* compiler options without paths */
    const char *compiler;    /* "nvrtc 13.0" */
    kkt_outcome outcome;     /* COMPILED, BUILD_FAILED or TIMED_OUT */
    const char *log;         /* the compiler's message where it failed */
    int registers;
    int64_t static_smem_bytes;  /* the cubin's, the reserve taken off */
    int64_t dynamic_smem_bytes; /* the launch's */
    int64_t spill_store_bytes, spill_load_bytes, stack_bytes;
    int barriers;
    int64_t cubin_bytes;
    double compile_ms;
} kkt_build_record;

/* Where and how a candidate was run. */
typedef struct kkt_run_record {
    kkt_provenance provenance; /* MEASURED or REPLAYED */
    kkt_outcome outcome;
    const char *reason; /* why it is not ok, in words; NULL where it is */
    const char *gpu;    /* "NVIDIA H200" */
    const char *driver; /* "580.159" */
    const char *date;   /* ISO 8601, UTC, of the measurement */
    const char *policy; /* measurement and check policy, canonical text */
    const char *tool_version;
    double time_us, time_low_us, time_high_us; /* median and its confidence interval */
    int64_t sample_count;
    const float *samples_us; /* may be NULL where none are kept */
    double rel_fro, max_abs, growth, tolerance;
    double sm_clock_mhz, memory_clock_mhz, temperature_c, power_w;
    const char *throttle;      /* reasons, comma-separated; "" for none */
    double hbm_bytes_counted;  /* from hardware counters */
    const char *counters_note; /* why there are none */
    double energy_mj;          /* of one launch of the plan; above 0, else unknown */
    int64_t outliers;          /* samples far from the median (tuner/measure/statistics.h) */
    int64_t throttled;         /* samples kept although the GPU was slowed down */
    const char *disturbed;     /* what else used the GPU, in words; NULL: nothing was noticed */
} kkt_run_record;

/* One hardware counter of a run. Names are the project's own (kkttune list counters). */
typedef struct kkt_counter_record {
    const char *name; /* "dram_read_bytes" */
    double value;
    const char *unit; /* "bytes" */
    const char *chip; /* whose counter it is: "GH100" */
} kkt_counter_record;

/* Whether the fake backend made a run up: it names itself as the GPU. */
bool kkt_run_made_up(const kkt_run_record *run);

/* One row of the view `results`: a candidate with everything known of it side by side. */
typedef struct kkt_result {
    int64_t candidate_id;
    int64_t build_id, run_id; /* 0: none */
    kkt_identity id;
    kkt_outcome outcome;
    const char *reason;
    bool has_prediction, has_build, has_run;
    kkt_prediction_record prediction;
    kkt_build_record build;
    kkt_run_record run;        /* samples are not loaded: samples_us is NULL */
    kkt_provenance provenance; /* the best tier reached */
    const char *stale_reason;  /* NULL where it is not stale */
} kkt_result;

/* How the launches of a pipeline followed each other when they were timed. */
typedef enum kkt_launch_order {
    KKT_IN_ORDER,   /* each begins when the one before it has ended */
    KKT_OVERLAPPED, /* each begins while the one before it ends (programmatic dependent launch) */
    KKT_LAUNCH_ORDER_COUNT
} kkt_launch_order;
const char *kkt_launch_order_name(kkt_launch_order order); /* "in_order", "overlapped" */
bool kkt_launch_order_parse(const char *name, kkt_launch_order *out);

#define KKT_PIPELINE_MEMBERS_MAX 4

/* A kernel of a pipeline as it was timed: a build of a candidate. */
typedef struct kkt_member_record {
    int64_t build_id; /* to store: of a build that is there; 0: `id` and `build` say which */
    kkt_identity id;
    kkt_build_record build;
    const char *stale_reason; /* read back: why the build is stale; NULL: it is not */
} kkt_member_record;

/* A whole pipeline, its launches timed together. `problem` is canonical, of the pipeline; how its
 * members write what passes between them is in their own problems. */
typedef struct kkt_pipeline_record {
    const char *pipeline, *arch, *device, *problem;
    int64_t chunk;
    kkt_launch_order order;
    size_t member_count; /* in the order of launching */
    kkt_member_record members[KKT_PIPELINE_MEMBERS_MAX];
    kkt_run_record run; /* read back: samples_us is NULL */
    /* Read back. */
    int64_t run_id;
    double members_us;        /* the members' own best times, added up; NaN: one has none */
    const char *samples_json; /* NULL where none are kept */
} kkt_pipeline_record;

#endif
