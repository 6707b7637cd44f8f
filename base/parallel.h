/* Independent pieces of work on all processors. */
#ifndef KKT_BASE_PARALLEL_H
#define KKT_BASE_PARALLEL_H

#include <stdint.h>

/* Calls work(context, i) once for each i in [0, count), on up to 16 threads, and returns when all
 * are done. The calls must not depend on each other or on their order; `work` must be thread-safe.
 * Where threads cannot be had, the caller's does what is left. */
void kkt_parallel_for(int64_t count, void (*work)(void *context, int64_t index), void *context);

#endif
