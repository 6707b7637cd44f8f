/* Checking and timing candidates on the GPU; the worker's work, without its messages. */
#ifndef KKT_TUNER_MEASURE_BENCH_H
#define KKT_TUNER_MEASURE_BENCH_H

#include "tuner/engine/gate.h"
#include "tuner/measure/backends.h"
#include "tuner/measure/program.h"

#define KKT_BENCH_BATCH 10 /* samples between two looks at the clock and the GPU's state */
#define KKT_BENCH_SETS 2   /* sets of outputs, used in turn */
#define KKT_BENCH_STANDARDS 4
#define KKT_BENCH_CHUNKS KKT_CHOICES_MAX

/* Outputs of a full problem that were found right. */
typedef struct kkt_standard {
    char *key; /* inputs and chunk; NULL: none is kept here */
    double tolerance;
    kkt_slab slab;
    CUdeviceptr data[KKT_TENSORS_MAX];
} kkt_standard;

/* Inputs that depend on the chunk, on the GPU. A finalist of another chunk has its own, so that
 * finalists can be timed in turn. */
typedef struct kkt_chunk_inputs {
    int64_t chunk; /* 0: none are kept here */
    kkt_slab slab;
    kkt_bindings bound;
} kkt_chunk_inputs;

/* What stays from candidate to candidate. Zero-initialise. */
typedef struct kkt_bench {
    kkt_gpu gpu;
    kkt_reference_cache *references;
    char *inputs_key; /* kernel, problem and seed that `inputs` belong to; NULL: none */
    kkt_host_tensors inputs;
    uint64_t common;      /* bit i: input i does not depend on the chunk */
    int64_t inputs_chunk; /* whose chunk inputs `inputs` holds; 0: none */
    bool uploaded;        /* the inputs that do not depend on the chunk are in `bound` too */
    kkt_chunk_inputs chunk_inputs[KKT_BENCH_CHUNKS];
    kkt_bindings bound;
    kkt_slab input_slab, output_slabs[KKT_BENCH_SETS];
    kkt_slab small_input_slab, small_output_slab;
    void *host_outputs[KKT_TENSORS_MAX];
    size_t host_output_bytes[KKT_TENSORS_MAX];
    kkt_standard standards[KKT_BENCH_STANDARDS];
    unsigned oldest_standard;
    CUevent events[2 * KKT_BENCH_BATCH];
    int dropped;  /* batches thrown away so far because the GPU was slowed down */
    bool replace; /* the context is lost: nothing more can run in this process */
    bool lost;    /* the device is lost: nothing more can run at all */
} kkt_bench;

void kkt_bench_close(kkt_bench *bench);

/* Makes the inputs of the full problem on the host, unless the last candidate had the same. */
kkt_status kkt_bench_inputs(kkt_bench *bench, const kkt_measure_request *request, kkt_error *err);

/* Loads a candidate and binds it to the full problem, whose inputs are made. False: the result says
 * why. */
bool kkt_bench_prepare(kkt_bench *bench, const kkt_measure_request *request, kkt_program *program,
                       kkt_bindings sets[KKT_BENCH_SETS], kkt_measure_result *result);

/* A pipeline as one program: its kernels' launches one after the other, what one writes and another
 * reads bound by name, the rest as the whole kernel has it. The result is checked against the whole
 * kernel's reference, within the sum of the members' tolerances, then timed. Inputs are the whole
 * kernel's (kkt_bench_inputs of `chain->whole`). In chain.c. */
kkt_status kkt_bench_chain(kkt_bench *bench, const kkt_chain_request *chain,
                           kkt_measure_result *result, kkt_error *err);

/* Gate, full problem, time. `result` comes from kkt_measure_result_init. A bad candidate is a
 * result; an error is what ends the run. */
kkt_status kkt_bench_measure(kkt_bench *bench, const kkt_measure_request *request,
                             kkt_measure_result *result, kkt_error *err);
/* Candidates of one kernel and problem: each checked on the full problem again, then sampled in
 * turn, in an order drawn anew for each round. Results that could not be had because another
 * candidate spoilt the context keep the outcome PREDICTED. */
kkt_status kkt_bench_retime(kkt_bench *bench, const kkt_measure_request *requests, size_t count,
                            kkt_measure_result *results, kkt_error *err);
/* Once, on the caller's tensors: outputs (in `tensors`, allocated where NULL) are filled. */
kkt_status kkt_bench_run(kkt_bench *bench, const kkt_measure_request *request,
                         kkt_host_tensors *tensors, kkt_measure_result *result, kkt_error *err);

/* ---- the parts, in check.c and timing.c ---- */

/* The inputs on the GPU, in `bench->bound`; nothing where they are there already. */
CUresult kkt_bench_upload(kkt_bench *bench, const kkt_measure_request *request);
/* The present date into a result. */
void kkt_bench_stamp(kkt_measure_result *result);
/* The error of a lost device; the result says what was seen of it. */
kkt_status kkt_bench_lost(const kkt_bench *bench, const kkt_measure_result *result, kkt_error *err);

/* True where `status` is a failure: the result is then LAUNCH_FAILED with `what` and the driver's
 * words, and the bench knows whether anything can still run. */
bool kkt_bench_failed(kkt_bench *bench, kkt_measure_result *result, const char *what,
                      CUresult status);

/* The input case whose inputs are used for timing. */
int kkt_timing_case(const kkt_kernel *kernel);

/* Runs a loaded candidate once on host tensors: inputs copied in, outputs poisoned, guards checked,
 * outputs copied out (allocated where NULL). OK, or the result says why not. */
kkt_outcome kkt_bench_once(kkt_bench *bench, const kkt_measure_request *request,
                           kkt_program *program, const kkt_values *problem,
                           kkt_host_tensors *tensors, kkt_measure_result *result);

/* The gate on small problems. `*passed` false: the result says why not. */
kkt_status kkt_check_small(kkt_bench *bench, const kkt_measure_request *request,
                           kkt_program *program, kkt_measure_result *result, bool *passed,
                           kkt_error *err);
/* The full problem: every element written and finite, guards intact, two runs alike,
 * policy.large_parts parts against the reference, and every element against the standard. */
kkt_status kkt_check_full(kkt_bench *bench, const kkt_measure_request *request,
                          kkt_program *program, const kkt_bindings sets[KKT_BENCH_SETS],
                          double tolerance, kkt_measure_result *result, bool *passed,
                          kkt_error *err);
/* What a candidate is allowed on the inputs that are timed. */
double kkt_full_tolerance(const kkt_measure_request *request);

/* Judges a score of the full problem and keeps the figures of the check with the least headroom.
 * False: the result says `where`, and why. */
bool kkt_check_judge(const kkt_score *score, double tolerance, const char *where,
                     kkt_measure_result *result);
/* Compares all outputs of a candidate that passed so far (on the GPU, and `tensors` on the host)
 * with the first right candidate's; where they differ the reference decides. Without a standard yet
 * this candidate becomes it. */
kkt_status kkt_check_standard(kkt_bench *bench, const kkt_measure_request *request,
                              const kkt_bindings *set, kkt_host_tensors *tensors, double tolerance,
                              kkt_measure_result *result, bool *passed, kkt_error *err);

/* A candidate being sampled. */
typedef struct kkt_timed {
    const kkt_policy *policy;
    kkt_measure_result *result; /* samples and figures go here */
    CUgraphExec graphs[KKT_BENCH_SETS];
    CUgraphExec before[KKT_BENCH_SETS]; /* run before each launch of those; NULL: nothing is */
    double seconds;                     /* spent so far */
    size_t launches;                    /* so far, for taking the sets in turn */
    int dropped;                        /* batches thrown away because the GPU was slowed down */
    unsigned long long throttle;        /* reasons seen while kept samples were taken */
    int64_t throttled;                  /* samples kept although there were such reasons */
    bool done;
    bool broken; /* done, because a launch failed */
} kkt_timed;

/* Makes the graphs and warms up. False: the result says why. */
bool kkt_timed_open(kkt_bench *bench, const kkt_program *program,
                    const kkt_bindings sets[KKT_BENCH_SETS], const kkt_policy *policy,
                    kkt_measure_result *result, kkt_timed *out);
/* One batch of samples; sets `done` when the interval is narrow enough or the budget is spent. */
void kkt_timed_sample(kkt_bench *bench, kkt_timed *timed);
/* Energy of one launch, after the sampling (energy.c): launches back to back for the policy's
 * energy_seconds. The result keeps no energy where the device does not count it. */
void kkt_timed_energy(kkt_bench *bench, kkt_timed *timed);
/* Median, interval and the GPU's state into the result; frees the graphs. */
void kkt_timed_close(kkt_bench *bench, kkt_timed *timed);

#endif
