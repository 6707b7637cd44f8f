#include "model/style.h"

#include <string.h>

/* register_overhead: addresses, loop indices and temporaries that a compiled variant takes beyond
 * its register tables; starting values from compiled kernels of the same shape, to be replaced by
 * a fit over the compiled tier. latency_overlap: how much of a load's latency the style hides
 * while a block works on the chunk before. */
static const kkt_style styles[] = {
    {
        .id = KKT_STYLE_FRAGMENT,
        .name = "fragment",
        .summary = "one warpgroup, intermediates resident in register fragments",
        .first_limit = "255 registers a thread: a C x C fp32 table costs C^2/threads",
        .secondary = "parallelism of the serial substitution",
        .register_overhead = 30,
        .latency_overlap = 0,
    },
    {
        .id = KKT_STYLE_PIPELINED,
        .name = "pipelined",
        .summary = "every warp copies and computes; operands in a multi-stage shared ring",
        .first_limit = "shared memory per SM, times the stages",
        .secondary = "registers of the accumulators",
        .register_overhead = 34,
        .latency_overlap = 0.8,
    },
    {
        .id = KKT_STYLE_WARP_SPECIALIZED,
        .name = "warp_specialized",
        .summary = "producer and consumer warps, double-buffered through shared memory",
        .first_limit = "shared memory per SM, and registers x threads",
        .secondary = "ratio of producer to consumer warps",
        .register_overhead = 24,
        .latency_overlap = 1,
    },
    {
        .id = KKT_STYLE_MATERIALIZED,
        .name = "materialized",
        .summary = "an intermediate is written to HBM and read back",
        .first_limit = "HBM bandwidth of the intermediate: 2C bytes a token for T",
        .secondary = "the inverse's O(C^2) arithmetic a token",
        .register_overhead = 32,
        .latency_overlap = 0,
    },
    {
        .id = KKT_STYLE_CONTEXT_PARALLEL,
        .name = "context_parallel",
        .summary = "segments of a sequence side by side, behind the first one and what they start "
                   "from; for sequences and heads too few to fill the GPU",
        .first_limit = "SMs: the first launch is wider than the recurrence itself",
        .secondary = "shared memory per SM, and registers x threads",
        .register_overhead = 24,
        .latency_overlap = 1,
    },
    {
        .id = KKT_STYLE_LIBRARY,
        .name = "library",
        .summary = "a vendor library's function, called by the host",
        .first_limit = "the library's choice",
        .secondary = "the library's choice",
        .register_overhead = 0,
        .latency_overlap = 1,
    },
};

const kkt_style *kkt_styles(size_t *count) {
    *count = sizeof styles / sizeof styles[0];
    return styles;
}

const kkt_style *kkt_style_get(kkt_style_id id) {
    for (size_t i = 0; i < sizeof styles / sizeof styles[0]; ++i)
        if (styles[i].id == id)
            return &styles[i];
    return NULL;
}

const kkt_style *kkt_style_find(const char *name) {
    for (size_t i = 0; name && i < sizeof styles / sizeof styles[0]; ++i)
        if (strcmp(styles[i].name, name) == 0)
            return &styles[i];
    return NULL;
}
