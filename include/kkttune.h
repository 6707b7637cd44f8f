/* kkttune as a library: the analytic model, occupancy, and the look-up of tuned configurations.
 *
 *     kkt_context *context;
 *     kkt_results *results;
 *     kkt_choice choice;
 *     kkt_error error;
 *     if (kkt_context_open("sm90", "h200", &context, &error) == KKT_OK &&
 *         kkt_results_open(context, "kkttune_sm90.json", &results, &error) == KKT_OK &&
 *         kkt_results_lookup(results, "kkt_solve", "tokens=8192,heads_v=32", 0, &choice,
 *                            &error) == KKT_OK)
 *         use(kkt_choice_value(&choice, "chunk", 64), choice.threads, choice.smem_bytes);
 *
 * Problems and configurations are texts "k=v,k=v"; keys left out have their default. There is no
 * global state; an object belongs to one thread at a time, different objects to any. Strings that a
 * function gives out live as long as the object it was called on. Errors: kkttune/status.h; `err`
 * may be NULL. Unknown figures are NaN (reals) or -1 (integers). */
#ifndef KKTTUNE_H
#define KKTTUNE_H

#include <stddef.h>
#include <stdint.h>

#include "kkttune/status.h"

#ifdef __cplusplus
extern "C" {
#endif

const char *kkt_version(void); /* "0.1.0" */

/* ---- an architecture and a device of it ---- */

typedef struct kkt_context kkt_context;
/* `arch`: "sm90", "9.0", ...; `device`: "h200", "NVIDIA H200"; NULL: that of the recorded
 * measurements installed beside the library (or in $KKTTUNE_REFERENCE), else the first of the
 * table; results that are opened then answer for the device they are of. KKT_ERR_INPUT lists what
 * exists. */
kkt_status kkt_context_open(const char *arch, const char *device, kkt_context **out,
                            kkt_error *err);
void kkt_context_close(kkt_context *context); /* NULL is a no-op; close its results first */
const char *kkt_context_device(const kkt_context *context); /* full name */

/* ---- the model ---- */

typedef struct kkt_model_result {
    int threads;        /* per block */
    int registers;      /* per thread, at most 255 */
    int64_t smem_bytes; /* static and dynamic, the driver's reserve not included */
    int blocks_per_sm;
    int feasible;               /* 0: cannot launch; `reason` says why */
    int spills;                 /* 1: wants more than 255 registers a thread */
    double hbm_bytes;           /* read and written by one launch */
    double hbm_bytes_per_token; /* all heads */
    double chain_steps;         /* dependent steps of one chunk */
    double lower_bound_us;      /* no implementation of the configuration is faster */
    double predicted_us;        /* from constants fitted on an H200 */
    const char *limiter;        /* "hbm", "registers", ...; a constant string */
    char reason[320];           /* one sentence with the numbers */
} kkt_model_result;

/* `style` NULL: the kernel's first. KKT_ERR_INPUT: unknown kernel, style, key or value, or a
 * configuration that its constraints exclude. */
kkt_status kkt_model_predict(const kkt_context *context, const char *kernel, const char *style,
                             const char *problem, const char *config, kkt_model_result *out,
                             kkt_error *err);

typedef struct kkt_model_blocks {
    int blocks_per_sm, warps_per_sm;
    const char *limiter; /* "registers", "shared_memory", "threads", "blocks", "barriers" */
    int by_registers, by_shared_memory, by_threads, by_blocks, by_barriers;
} kkt_model_blocks;

/* Occupancy as the CUDA driver computes it. Threads 1..1024, registers 1..255, bytes >= 0, else
 * KKT_ERR_INPUT; what does not fit gives 0 blocks. */
kkt_status kkt_model_occupancy(const kkt_context *context, int threads, int registers,
                               int64_t dynamic_smem_bytes, int64_t static_smem_bytes,
                               kkt_model_blocks *out, kkt_error *err);

/* ---- results: a database or an export ---- */

typedef struct kkt_results kkt_results;
/* `path`: a database (kkttune.db) or an export (kkttune_sm90.json), told apart by its content.
 * NULL: no results, look-up then answers from the model. The context must outlive the results. */
kkt_status kkt_results_open(const kkt_context *context, const char *path, kkt_results **out,
                            kkt_error *err);
void kkt_results_close(kkt_results *results); /* NULL is a no-op */

typedef struct kkt_choice {
    const char *kernel, *style, *problem, *config; /* `problem`: what it was found for; in tier
                                                      "nearest" its is the time, all else is for the
                                                      problem asked */
    const char *tier;                              /* "exact", "nearest", "model", "default" */
    double distance;                               /* 0 for exact */
    const char *provenance;   /* "measured", "replayed", "compiled", "predicted", "stale" */
    const char *stale_reason; /* NULL: fresh */
    const char *limiter;      /* may be NULL */
    const char *kernel_hash;  /* may be NULL */
    int64_t chunk;            /* 0: the kernel has none */
    int threads, registers;
    int64_t smem_bytes;              /* dynamic, of the launch */
    double time_us, low_us, high_us; /* NaN: not measured */
    double predicted_us;
} kkt_choice;

/* `chunk` 0: 64 where the kernel has it. KKT_ERR_INPUT: unknown kernel, key, value or chunk. */
kkt_status kkt_results_lookup(kkt_results *results, const char *kernel, const char *problem,
                              int64_t chunk, kkt_choice *out, kkt_error *err);
/* The stored entries of the device, one a kernel, style, problem and chunk; `tier` is
 * then "exact". KKT_ERR_INPUT: `index` is not below the count. */
size_t kkt_results_count(const kkt_results *results);
kkt_status kkt_results_get(const kkt_results *results, size_t index, kkt_choice *out,
                           kkt_error *err);

/* The integer of a parameter of `config`; `fallback` where there is none. */
int64_t kkt_choice_value(const kkt_choice *choice, const char *key, int64_t fallback);
/* Copies the text of a parameter ("recursive") into `out`; "" where there is none. */
void kkt_choice_text(const kkt_choice *choice, const char *key, char *out, size_t size);

#ifdef __cplusplus
}
#endif

#endif
