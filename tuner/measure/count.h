/* Counting one candidate; the counting worker's work, without its messages. */
#ifndef KKT_TUNER_MEASURE_COUNT_H
#define KKT_TUNER_MEASURE_COUNT_H

#include "tuner/measure/bench.h"
#include "tuner/measure/cupti_range.h"

/* What stays from candidate to candidate. Zero-initialise. */
typedef struct kkt_counting {
    kkt_cupti *cupti;
    kkt_cupti_config config;
    char chip[32];
    kkt_slab drain;        /* memory whose reading empties the L2; never the flush's */
    bool drained;          /* the drain's memory could be had */
    bool started;          /* or tried to */
    char unavailable[320]; /* why nothing can be counted; "" where something can */
} kkt_counting;

/* Opens CUPTI and makes the configuration for the bench's GPU, once. What goes wrong is kept for
 * kkt_count to say. */
void kkt_counting_start(kkt_counting *counting, kkt_bench *bench);
void kkt_counting_close(kkt_counting *counting);

/* Counts a candidate whose inputs are made (kkt_bench_inputs). Bytes written include what is still
 * dirty in L2 when the candidate ends: it is counted with a launch behind it that reads more than
 * the L2 holds, and that launch's own bytes, counted alone, are taken off. bench->replace: nothing
 * more can be counted in this process. */
void kkt_count(kkt_counting *counting, kkt_bench *bench, const kkt_measure_request *request,
               kkt_counts *out);

#endif
