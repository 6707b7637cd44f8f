/* Hardware counters by the project's own names, and which metric of the profiler stands for each on
 * which chip. The table is data: nothing here needs a GPU or the profiler. */
#ifndef KKT_TUNER_MEASURE_COUNTERS_H
#define KKT_TUNER_MEASURE_COUNTERS_H

#include <stddef.h>

/* In the order of the table. */
typedef enum kkt_counter_id {
    KKT_COUNTER_DRAM_READ_BYTES,
    KKT_COUNTER_DRAM_WRITE_BYTES,
    KKT_COUNTER_DRAM_SHARE,
    KKT_COUNTER_L2_HIT_RATE,
    KKT_COUNTER_SMEM_LOAD_WAVEFRONTS,
    KKT_COUNTER_SMEM_STORE_WAVEFRONTS,
    KKT_COUNTER_SMEM_LOAD_CONFLICTS,
    KKT_COUNTER_SMEM_STORE_CONFLICTS,
    KKT_COUNTER_LOCAL_LOADS,
    KKT_COUNTER_LOCAL_STORES,
    KKT_COUNTER_TENSOR_SHARE,
    KKT_COUNTER_WARPS_ACTIVE,
    KKT_COUNTER_INSTRUCTIONS,
    KKT_COUNTER_STALL_LONG_SCOREBOARD,
    KKT_COUNTER_STALL_SHORT_SCOREBOARD,
    KKT_COUNTER_STALL_BARRIER,
    KKT_COUNTER_STALL_MATH_PIPE,
    KKT_COUNTER_STALL_MIO,
    KKT_COUNTER_STALL_LG,
    KKT_COUNTER_STALL_WAIT,
    KKT_COUNTER_STALL_GMMA,
    KKT_COUNTER_COUNT
} kkt_counter_id;

/* A chip that calls the metric something else, or (`metric` NULL) has none. */
typedef struct kkt_counter_override {
    const char *chip; /* "GB202" */
    const char *metric;
} kkt_counter_override;

typedef struct kkt_counter {
    const char *name; /* "dram_read_bytes" */
    const char *unit; /* "bytes" */
    const char *help; /* one line */
    const char *metric;
    const kkt_counter_override *overrides; /* ended by a NULL chip; may be NULL */
    const char *only_chip; /* the one chip that has it; NULL: all but the overrides */
} kkt_counter;

/* KKT_COUNTER_COUNT rows. */
const kkt_counter *kkt_counters(void);
/* The profiler's name on that chip; NULL where the chip has no such counter. */
const char *kkt_counter_metric(kkt_counter_id id, const char *chip);

#endif
