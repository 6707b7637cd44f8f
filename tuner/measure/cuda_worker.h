/* The GPU worker: the process that runs candidates, so that a crash or a hang costs one of them
 * and a poisoned context never outlives its candidate. */
#ifndef KKT_TUNER_MEASURE_CUDA_WORKER_H
#define KKT_TUNER_MEASURE_CUDA_WORKER_H

#include "tuner/measure/wire.h"

#define KKT_CUDA_ROLE "cuda"   /* --worker cuda: checks and times */
#define KKT_COUNT_ROLE "count" /* --worker count: reads hardware counters, and nothing else */

/* Answers the parent's messages until it is gone; returns the process's exit code. */
int kkt_cuda_worker_serve(kkt_kernel_lookup lookup);
int kkt_count_worker_serve(kkt_kernel_lookup lookup);

#endif
