/* CUPTI, opened with dlopen: which metrics a chip has and how many passes they take (needs no GPU),
 * and counting them over ranges of launches on one. Loaded by `list counters` and by the counting
 * worker alone: a profiler in the process would disturb timings. */
#ifndef KKT_TUNER_MEASURE_CUPTI_H
#define KKT_TUNER_MEASURE_CUPTI_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "tuner/measure/counters.h"

typedef struct kkt_cupti kkt_cupti;

/* Looks for libcupti of CUDA 13.0 or later where NVRTC is looked for (KKTTUNE_CUDA, CUDA_HOME,
 * CUDA_PATH, /usr/local/cuda, the loader's path). KKT_ERR_ENVIRONMENT says where it looked. */
kkt_status kkt_cupti_open(kkt_cupti **out, kkt_error *err);
void kkt_cupti_close(kkt_cupti *cupti); /* NULL is a no-op */

/* One configuration for all the counters that a chip has. */
typedef struct kkt_cupti_config {
    void *host;   /* CUPTI's host object, which also reads the results */
    size_t count; /* counters in it */
    kkt_counter_id ids[KKT_COUNTER_COUNT];
    const char *metrics[KKT_COUNTER_COUNT];
    size_t refused_count; /* counters that the table has for the chip and this CUPTI refuses */
    kkt_counter_id refused[KKT_COUNTER_COUNT];
    unsigned char *image;
    size_t image_size;
    size_t passes;
} kkt_cupti_config;

/* Names are first tried on host objects that are thrown away, since a refused name spoils the
 * object. A chip that CUPTI does not know, or one with no counter left: KKT_ERR_MISSING. */
kkt_status kkt_cupti_config_open(const kkt_cupti *cupti, const char *chip, kkt_cupti_config *out,
                                 kkt_error *err);
void kkt_cupti_config_close(const kkt_cupti *cupti, kkt_cupti_config *config);

/* What a CUPTI result means to a person: one sentence with the remedy where one is known (denied,
 * busy, MIG, WSL, ...). `*everywhere`: it will be the same for every candidate. */
void kkt_cupti_explain(const kkt_cupti *cupti, int result, const char *what, char *out, size_t size,
                       bool *everywhere);

#endif
