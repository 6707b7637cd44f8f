/* Parallel compilation: worker processes (this program re-executed with --worker compile) behind
 * a content-addressed cubin cache. */
#ifndef KKT_TUNER_COMPILE_POOL_H
#define KKT_TUNER_COMPILE_POOL_H

#include "tuner/compile/compile.h"

typedef struct kkt_compile_pool kkt_compile_pool;

typedef struct kkt_compile_pool_options {
    int workers; /* 0: one a core, at most 16 */
    /* Limit of one compile in seconds of its worker's processor time, so that a busy machine fails
     * none; 0: 20. The worker is then killed, as it is after `clock_factor` times as long by the
     * clock. */
    double job_seconds;
    double clock_factor; /* 0: 4; more where other work may take nearly all of the machine */
    const char *cache;   /* folder; NULL: $XDG_CACHE_HOME/kkttune or ~/.cache/kkttune */
    const char *program; /* what to re-execute; NULL: /proc/self/exe */
} kkt_compile_pool_options;

kkt_status kkt_compile_pool_open(const kkt_compile_pool_options *options, kkt_compile_pool **out,
                                 kkt_error *err);
void kkt_compile_pool_close(kkt_compile_pool *pool); /* kills what is still running */
const char *kkt_compile_pool_version(const kkt_compile_pool *pool); /* "nvrtc 13.0" */
/* One line why compiling is not possible (no NVRTC), or NULL. The pool then answers from the
 * cache alone. */
const char *kkt_compile_pool_unavailable(const kkt_compile_pool *pool);
/* Whether the cache can be written; a read-only one serves all the same. */
bool kkt_compile_pool_cache_writable(const kkt_compile_pool *pool);
/* One line why what is compiled is not kept, or NULL. */
const char *kkt_compile_pool_cache_note(const kkt_compile_pool *pool);

/* Hands a job in; `tag` comes back with its result. A key is compiled once in a pool's life: a job
 * whose key is queued is answered along with that one, and a later one from the cache or, where the
 * cache has none (it failed, it timed out, the cache cannot be written), from the pool's memory.
 * After a crash of its worker a key is tried again. */
kkt_status kkt_compile_pool_submit(kkt_compile_pool *pool, const kkt_variant *variant,
                                   const kkt_compile_job *job, int64_t tag, kkt_error *err);
/* Waits at most `seconds` for the next finished job. `*got` false: none in time, or none queued.
 * A worker that crashed gives ok false with the signal in `log`. The caller frees the result. */
kkt_status kkt_compile_pool_next(kkt_compile_pool *pool, double seconds, bool *got, int64_t *tag,
                                 kkt_compile_result *out, kkt_error *err);
size_t kkt_compile_pool_pending(const kkt_compile_pool *pool);
/* Drops queued jobs that no worker has begun. */
void kkt_compile_pool_cancel(kkt_compile_pool *pool);

/* The worker's main loop (jobs on standard input, results on standard output); returns the exit
 * code of the process. */
int kkt_compile_worker_main(void);

#endif
