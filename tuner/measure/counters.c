#include "tuner/measure/counters.h"

#include <string.h>

/* Names checked against the host API of CUPTI 13.0 for every chip of the architecture table. */

static const kkt_counter_override no_dram[] = {
    /* Integrated chips: their memory is the system's, and they do not count it. */
    {"GA10B", NULL},
    {"GB20B", NULL},
    {NULL, NULL},
};
static const kkt_counter_override dram_read[] = {
    {"GB202", "dram__bytes_op_read.sum"},
    {"GA10B", NULL},
    {"GB20B", NULL},
    {NULL, NULL},
};
static const kkt_counter_override dram_write[] = {
    {"GB202", "dram__bytes_op_write.sum"},
    {"GA10B", NULL},
    {"GB20B", NULL},
    {NULL, NULL},
};

#define STALL(reason) "smsp__average_warps_issue_stalled_" reason "_per_issue_active.ratio"
#define STALL_UNIT "warps/issue"

static const kkt_counter COUNTERS[KKT_COUNTER_COUNT] = {
    [KKT_COUNTER_DRAM_READ_BYTES] = {.name = "dram_read_bytes",
                                     .unit = "bytes",
                                     .help = "read from device memory, caches empty at first",
                                     .metric = "dram__bytes_read.sum",
                                     .overrides = dram_read},
    [KKT_COUNTER_DRAM_WRITE_BYTES] =
        {.name = "dram_write_bytes",
         .unit = "bytes",
         .help = "written to device memory, what L2 still held at the end included",
         .metric = "dram__bytes_write.sum",
         .overrides = dram_write},
    [KKT_COUNTER_DRAM_SHARE] = {.name = "dram_share",
                                .unit = "%",
                                .help = "device memory's throughput, of its peak",
                                .metric = "dram__throughput.avg.pct_of_peak_sustained_elapsed",
                                .overrides = no_dram},
    [KKT_COUNTER_L2_HIT_RATE] = {.name = "l2_hit_rate",
                                 .unit = "%",
                                 .help = "sectors found in L2, of those asked for",
                                 .metric = "lts__t_sector_hit_rate.pct"},
    [KKT_COUNTER_SMEM_LOAD_WAVEFRONTS] =
        {.name = "smem_load_wavefronts",
         .unit = "wavefronts",
         .help = "passes through shared memory's data banks for loads",
         .metric = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"},
    [KKT_COUNTER_SMEM_STORE_WAVEFRONTS] =
        {.name = "smem_store_wavefronts",
         .unit = "wavefronts",
         .help = "passes through shared memory's data banks for stores",
         .metric = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"},
    [KKT_COUNTER_SMEM_LOAD_CONFLICTS] =
        {.name = "smem_load_conflicts",
         .unit = "wavefronts",
         .help = "of those for loads, what bank conflicts added",
         .metric = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"},
    [KKT_COUNTER_SMEM_STORE_CONFLICTS] =
        {.name = "smem_store_conflicts",
         .unit = "wavefronts",
         .help = "of those for stores, what bank conflicts added",
         .metric = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"},
    [KKT_COUNTER_LOCAL_LOADS] = {.name = "local_loads",
                                 .unit = "instructions",
                                 .help = "loads from local memory (spills), a warp each",
                                 .metric = "smsp__inst_executed_op_local_ld.sum"},
    [KKT_COUNTER_LOCAL_STORES] = {.name = "local_stores",
                                  .unit = "instructions",
                                  .help = "stores to local memory (spills), a warp each",
                                  .metric = "smsp__inst_executed_op_local_st.sum"},
    [KKT_COUNTER_TENSOR_SHARE] =
        {.name = "tensor_share",
         .unit = "%",
         .help = "cycles the tensor pipe was busy, of those an SM was active",
         .metric = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active"},
    [KKT_COUNTER_WARPS_ACTIVE] = {.name = "warps_active",
                                  .unit = "%",
                                  .help = "warps resident on an SM, of the most it can hold",
                                  .metric = "sm__warps_active.avg.pct_of_peak_sustained_active"},
    [KKT_COUNTER_INSTRUCTIONS] = {.name = "instructions",
                                  .unit = "instructions",
                                  .help = "instructions executed, a warp each",
                                  .metric = "smsp__inst_executed.sum"},
    [KKT_COUNTER_STALL_LONG_SCOREBOARD] = {.name = "stall_long_scoreboard",
                                           .unit = STALL_UNIT,
                                           .help = "warps waiting for global or local memory",
                                           .metric = STALL("long_scoreboard")},
    [KKT_COUNTER_STALL_SHORT_SCOREBOARD] = {.name = "stall_short_scoreboard",
                                            .unit = STALL_UNIT,
                                            .help = "warps waiting for shared memory",
                                            .metric = STALL("short_scoreboard")},
    [KKT_COUNTER_STALL_BARRIER] = {.name = "stall_barrier",
                                   .unit = STALL_UNIT,
                                   .help = "warps waiting at a barrier",
                                   .metric = STALL("barrier")},
    [KKT_COUNTER_STALL_MATH_PIPE] = {.name = "stall_math_pipe",
                                     .unit = STALL_UNIT,
                                     .help = "warps waiting for a busy arithmetic pipe",
                                     .metric = STALL("math_pipe_throttle")},
    [KKT_COUNTER_STALL_MIO] = {.name = "stall_mio",
                               .unit = STALL_UNIT,
                               .help = "warps waiting to enter the shared-memory queue",
                               .metric = STALL("mio_throttle")},
    [KKT_COUNTER_STALL_LG] = {.name = "stall_lg",
                              .unit = STALL_UNIT,
                              .help = "warps waiting to enter the global-memory queue",
                              .metric = STALL("lg_throttle")},
    [KKT_COUNTER_STALL_WAIT] = {.name = "stall_wait",
                                .unit = STALL_UNIT,
                                .help = "warps in the fixed latency of their last instruction",
                                .metric = STALL("wait")},
    [KKT_COUNTER_STALL_GMMA] = {.name = "stall_gmma",
                                .unit = STALL_UNIT,
                                .help = "warps waiting for an asynchronous matrix product",
                                .metric = STALL("gmma"),
                                .only_chip = "GH100"},
};

const kkt_counter *kkt_counters(void) {
    return COUNTERS;
}

const char *kkt_counter_metric(kkt_counter_id id, const char *chip) {
    const kkt_counter *counter = &COUNTERS[id];
    if (counter->only_chip != NULL && strcmp(counter->only_chip, chip) != 0) {
        return NULL;
    }
    for (const kkt_counter_override *o = counter->overrides; o != NULL && o->chip != NULL; o++) {
        if (strcmp(o->chip, chip) == 0) {
            return o->metric;
        }
    }
    return counter->metric;
}
