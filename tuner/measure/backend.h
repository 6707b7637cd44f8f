/* Where candidates are checked and timed. Backends are const descriptors: cuda, fake (times from
 * the model plus seeded noise and injected faults). Replay needs none: recorded rows are in the
 * database. Everything above this header is tested without a GPU. */
#ifndef KKT_TUNER_BACKEND_H
#define KKT_TUNER_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "db/record.h"
#include "kernels/pipeline.h"
#include "model/predict.h"
#include "tuner/measure/counters.h"

typedef struct kkt_backend kkt_backend;

/* How candidates are checked and timed; stored with each run as canonical text. */
typedef struct kkt_policy {
    int warmup_launches; /* at least; warming ends when two medians agree within 2 % */
    int min_samples, max_samples;
    double interval_share;    /* stop when the median's interval is below this share: 0.01 */
    double sample_seconds;    /* or when this time is spent */
    double candidate_seconds; /* limit of one candidate, check included: 10 */
    int64_t flush_bytes;      /* read before each timed launch; 512 MiB */
    uint64_t seed;            /* of inputs */
    int large_parts;          /* parts of the full problem checked against the reference */
    double energy_seconds;    /* of launches back to back whose energy is read; 0: no energy */
    bool energy_each;         /* for every candidate, not for the finalists alone */
} kkt_policy;

/* Of what the gate asks: its cases' draws, scores and tolerances. It goes up when they change such
 * that a result that was turned down might pass now; such a verdict of a former gate is none, and
 * the candidate is tried again. One that passed stands.
 *     2  errors are measured against what fp16 resolves; steep_gate has mild gates among the steep
 */
#define KKT_GATE_REVISION 2

void kkt_policy_defaults(kkt_policy *out);
void kkt_policy_format(const kkt_policy *policy, kkt_text *out);
/* The revision of the gate in that text; 1 where it names none, or is NULL. */
int kkt_policy_gate(const char *policy);

typedef struct kkt_backend_info {
    char gpu[128]; /* "NVIDIA H200"; "" for fake */
    char driver[64];
    int major, minor; /* compute capability */
    int index;
    char note[200]; /* one line worth telling, or "" */
} kkt_backend_info;

typedef struct kkt_backend_options {
    int gpu;             /* -1: CUDA's first visible */
    const char *fake;    /* "seed=N,fault=KIND" or NULL */
    const char *program; /* what to re-execute as worker; NULL: /proc/self/exe */
    const char *cache;   /* cubin cache folder; NULL: see compile/pool.h */
} kkt_backend_options;

/* One candidate to check and time. Pointers are borrowed for the call. */
typedef struct kkt_measure_request {
    const kkt_kernel *kernel;
    const kkt_variant *variant;
    const kkt_arch *arch;
    const kkt_device *device;
    const kkt_values *problem;
    const kkt_values *config;
    const void *cubin; /* NULL where the variant has no source */
    size_t cubin_size;
    const kkt_prediction *prediction;
    const kkt_policy *policy;
} kkt_measure_request;

/* The answer: `run` has outcome, reason, times, error figures and the GPU's state filled;
 * samples are malloc'ed. */
typedef struct kkt_measure_result {
    kkt_run_record run; /* strings point into `strings` */
    float *samples;
    char reason[320], throttle[96], date[32], policy[256], disturbed[160];
} kkt_measure_result;
void kkt_measure_result_free(kkt_measure_result *result);

/* A pipeline to time as one. The members run in this order, all with one chunk size; `whole` is the
 * kernel that computes the same in one launch, with the pipeline's problem and that chunk size. */
typedef struct kkt_chain_request {
    kkt_measure_request whole; /* needs no cubin: its inputs and reference are the pipeline's */
    const kkt_measure_request *members;
    size_t count;
    kkt_launch_order order;
} kkt_chain_request;

#define KKT_LIBRARY_VERSION_BYTES 32

/* What hardware counters say of a candidate. */
typedef enum kkt_count_state {
    KKT_COUNT_DONE,
    KKT_COUNT_FAILED,      /* this candidate could not be counted; another may */
    KKT_COUNT_UNAVAILABLE, /* none can be: denied, busy, absent, not supported */
} kkt_count_state;

typedef struct kkt_counts {
    kkt_count_state state;
    double values[KKT_COUNTER_COUNT]; /* by kkt_counter_id; NaN where not counted */
    char chip[32];                    /* "GH100" */
    int passes;                       /* runs of the candidate that one count takes */
    char note[320]; /* why nothing was counted, with the remedy, or what is to be known of the
                       counts; "" where all is well */
} kkt_counts;
/* Nothing counted yet, for the reason given ("%s" style). */
void kkt_counts_set(kkt_counts *counts, kkt_count_state state, const char *format, ...)
    KKT_PRINTF(3, 4);
/* Bytes read and written; NaN where either was not counted. */
double kkt_counts_hbm_bytes(const kkt_counts *counts);

typedef struct kkt_backend_type {
    const char *name;
    bool needs_cubin; /* false: `cubin` of a request may be NULL (fake) */
    /* KKT_ERR_ENVIRONMENT where it cannot be had (no driver, no GPU): the message says why. */
    kkt_status (*open)(const kkt_backend_options *options, kkt_backend **out, kkt_error *err);
    void (*close)(kkt_backend *backend);
    const kkt_backend_info *(*info)(const kkt_backend *backend);
    /* A bad candidate is a result, not an error; errors are what ends a run (GPU lost). */
    kkt_status (*measure)(kkt_backend *backend, const kkt_measure_request *request,
                          kkt_measure_result *out, kkt_error *err);
    /* Runs a plan once on the caller's tensors (outputs are allocated and filled). NULL where
     * the backend cannot. */
    kkt_status (*run)(kkt_backend *backend, const kkt_measure_request *request,
                      kkt_host_tensors *tensors, kkt_error *err);
    /* Re-times candidates interleaved in random order; results in the order of the requests.
     * NULL where the backend cannot. */
    kkt_status (*retime)(kkt_backend *backend, const kkt_measure_request *requests, size_t count,
                         kkt_measure_result *out, kkt_error *err);
    /* Checks and times a whole pipeline, whose members were measured before. NULL where the backend
     * cannot. */
    kkt_status (*chain)(kkt_backend *backend, const kkt_chain_request *request,
                        kkt_measure_result *out, kkt_error *err);
    /* Whether the routines of a library (kkt_variant.library) can be called, and its version,
     * "13.1.0". KKT_ERR_MISSING in one line where they cannot. NULL: nothing is called, for times
     * are made up. */
    kkt_status (*library)(kkt_backend *backend, const kkt_arch *arch, const char *name,
                          char version[KKT_LIBRARY_VERSION_BYTES], kkt_error *err);
    /* Hardware counters of a candidate that was measured before, in a process of its own: never
     * beside a timing. What cannot be counted is a result; an error ends the run (no worker can be
     * started). NULL where the backend has none. */
    kkt_status (*count)(kkt_backend *backend, const kkt_measure_request *request, kkt_counts *out,
                        kkt_error *err);
} kkt_backend_type;

const kkt_backend_type *const *kkt_backends(size_t *count);
const kkt_backend_type *kkt_backend_find(const char *name); /* or NULL */

/* The GPU worker's main loop (this program re-executed with --worker cuda). */
int kkt_cuda_worker_main(void);
/* The same for the process that counts (--worker count). */
int kkt_count_worker_main(void);

#endif
