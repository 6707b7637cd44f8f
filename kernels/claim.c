#include "kernels/claim.h"

const char *kkt_figure_name(kkt_figure figure) {
    static const char *const names[KKT_FIGURE_COUNT] = {
        [KKT_FIGURE_TIME] = "time",
        [KKT_FIGURE_WAVEFRONTS] = "wavefronts",
        [KKT_FIGURE_INSTRUCTIONS] = "instructions",
        [KKT_FIGURE_HBM_BYTES] = "hbm_bytes",
        [KKT_FIGURE_REGISTERS] = "registers",
        [KKT_FIGURE_SPILLS] = "spills",
        [KKT_FIGURE_SMEM] = "smem",
        [KKT_FIGURE_BLOCKS] = "blocks_per_sm",
    };
    return names[figure];
}

const char *kkt_expectation_name(kkt_expectation expectation) {
    static const char *const names[] = {
        [KKT_EXPECT_LOWER] = "lower",
        [KKT_EXPECT_HIGHER] = "higher",
        [KKT_EXPECT_SAME] = "same",
        [KKT_EXPECT_AS_PREDICTED] = "as_predicted",
    };
    return names[expectation];
}
