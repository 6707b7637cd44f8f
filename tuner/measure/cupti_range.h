/* Counting on a GPU: CUPTI's range profiler with the caller's own ranges and passes, so that a plan
 * of several launches, or a plan and what empties the cache after it, count as one.
 *
 * Functions return CUPTI's result, 0 for success; `step` of the profiler names the call that
 * failed. One profiler a context at a time. */
#ifndef KKT_TUNER_MEASURE_CUPTI_RANGE_H
#define KKT_TUNER_MEASURE_CUPTI_RANGE_H

#include <cuda.h>

#include "tuner/measure/cupti.h"

typedef struct kkt_cupti_profiler {
    const kkt_cupti *cupti;
    const kkt_cupti_config *config;
    void *object; /* CUPTI's; NULL: not enabled */
    unsigned char *data;
    size_t data_size, dropped;
    const char *step;
} kkt_cupti_profiler;

/* Initialises the profiler of this process, which needs a context, and names the chip of a CUDA
 * device. `*step` names the call that failed. */
int kkt_cupti_start(const kkt_cupti *cupti, int device, char *chip, size_t size, const char **step);

/* Enables the profiler on `context` for up to `ranges` ranges a pass. Close it in any case. */
int kkt_cupti_profiler_open(const kkt_cupti *cupti, const kkt_cupti_config *config,
                            CUcontext context, size_t ranges, kkt_cupti_profiler *out);
void kkt_cupti_profiler_close(kkt_cupti_profiler *profiler);

/* The same ranges are run in every pass, until `*all` says that no pass is missing. Work launched
 * in a pass but outside of any range is not counted. */
int kkt_cupti_pass_begin(kkt_cupti_profiler *profiler);
int kkt_cupti_pass_end(kkt_cupti_profiler *profiler, bool *all);
int kkt_cupti_push(kkt_cupti_profiler *profiler, const char *range);
int kkt_cupti_pop(kkt_cupti_profiler *profiler);

/* After the last pass. */
int kkt_cupti_decode(kkt_cupti_profiler *profiler);
/* Values of the range of that name, `index` being its place in a pass: KKT_COUNTER_COUNT numbers by
 * kkt_counter_id, NaN where not counted. */
int kkt_cupti_values(kkt_cupti_profiler *profiler, const char *range, size_t index, double *values);

#endif
