/* The compiled tier: NVRTC turns a configuration into a cubin without a GPU; registers, spills,
 * shared memory and barriers are read from it. NVRTC is opened with dlopen; search order: the
 * environment's KKTTUNE_CUDA, the private folder of wheels, CUDA_HOME/CUDA_PATH, /usr/local/cuda,
 * the loader's own path. */
#ifndef KKT_TUNER_COMPILE_H
#define KKT_TUNER_COMPILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "kernels/kernel.h"

typedef struct kkt_compiler kkt_compiler;

/* KKT_ERR_ENVIRONMENT where no NVRTC of 13.0 or later is found; the message says where it looked.
 */
kkt_status kkt_compiler_open(kkt_compiler **out, kkt_error *err);
void kkt_compiler_close(kkt_compiler *compiler);
const char *kkt_compiler_version(const kkt_compiler *compiler); /* "nvrtc 13.0" */

/* What is compiled. Strings are borrowed. */
typedef struct kkt_compile_job {
    const char *source_path; /* relative to kernels/, for messages */
    const char *nvrtc_arch;  /* "sm_90a" */
    const char *defines;     /* "NAME=value\n" lines */
    /* The source itself, where it is not one of the embedded ones; NULL: by path. */
    const char *source_text;
} kkt_compile_job;

/* What a cubin says about its kernels: each figure that of the kernel with the most. */
typedef struct kkt_cubin_info {
    int registers;                               /* per thread, at launch */
    int64_t static_smem_bytes;                   /* without the driver's reserve */
    int64_t spill_store_bytes, spill_load_bytes; /* per thread, from the compiler's log */
    int64_t stack_bytes;
    int barriers;
    int max_threads; /* __launch_bounds__ of the one with the most registers; 0 where there are none
                      */
    int64_t cubin_bytes;
} kkt_cubin_info;

typedef struct kkt_compile_result {
    bool ok;
    bool timed_out;       /* set by the pool */
    unsigned char *cubin; /* malloc'ed; NULL unless ok */
    size_t cubin_size;
    kkt_cubin_info info;
    char *log; /* malloc'ed; the compiler's messages; may be "" */
    double compile_ms;
    bool from_cache;
} kkt_compile_result;
void kkt_compile_result_free(kkt_compile_result *result);

/* Fills a job for a configuration: `defines` is appended to `text`, which must outlive the job. */
void kkt_compile_job_fill(const kkt_kernel *kernel, const kkt_variant *variant,
                          const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                          kkt_text *text, kkt_compile_job *job);
/* The options given to NVRTC, without paths, as stored with a build. */
void kkt_compile_options(const kkt_compile_job *job, kkt_text *out);
/* Content key of a job: SHA-256 over all project sources it may include (the whole embedded
 * set named by `sources`), options and compiler version. */
void kkt_compile_key(const char *compiler_version, const kkt_variant *variant,
                     const kkt_compile_job *job, char out[65]);

/* In this process, without a cache. A kernel that does not compile is a result (ok false), not
 * an error. */
kkt_status kkt_compile(kkt_compiler *compiler, const kkt_compile_job *job, kkt_compile_result *out,
                       kkt_error *err);

/* Makes a failed build of a cubin that lacks an entry point of the configuration's plan, which
 * would fail at its first launch only; the log says which. A result that is not ok stays as it is.
 */
void kkt_compile_check_entries(const kkt_variant *variant, const kkt_values *problem,
                               const kkt_values *config, const kkt_arch *arch,
                               kkt_compile_result *result);

/* Whether a cubin is without a kernel of that name (hostile input, too). Of what is no cubin
 * nothing is said: kkt_cubin_read refuses it. */
bool kkt_cubin_lacks(const void *cubin, size_t size, const char *kernel);
/* Reads a cubin (hostile input: every offset is checked). Of several kernels it tells the
 * most of each figure. */
kkt_status kkt_cubin_read(const void *cubin, size_t size, kkt_cubin_info *out, kkt_error *err);

#endif
