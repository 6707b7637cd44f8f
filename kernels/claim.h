/* What is claimed of a family's parameters, as data: configurations to compare, the figure that
 * decides, and what it should do. An ablation holds each against measurement. */
#ifndef KKT_KERNELS_CLAIM_H
#define KKT_KERNELS_CLAIM_H

#include <stddef.h>
#include <stdint.h>

/* A figure of a configuration, with where it comes from. A prediction decides nothing. */
typedef enum kkt_figure {
    KKT_FIGURE_TIME,         /* us; predicted, timed */
    KKT_FIGURE_WAVEFRONTS,   /* of shared memory, the whole launch; predicted, counted */
    KKT_FIGURE_INSTRUCTIONS, /* of warps, the whole launch; predicted, counted */
    KKT_FIGURE_HBM_BYTES,    /* read and written; predicted, counted */
    KKT_FIGURE_REGISTERS,    /* per thread; predicted, compiled */
    KKT_FIGURE_SPILLS,       /* bytes stored; compiled */
    KKT_FIGURE_SMEM,         /* bytes of a block, static and dynamic; predicted, compiled */
    KKT_FIGURE_BLOCKS,       /* resident on an SM; predicted, compiled (from its registers) */
    KKT_FIGURE_COUNT
} kkt_figure;
const char *kkt_figure_name(kkt_figure figure); /* "time", "wavefronts", ... */

/* What the figure does from the first configuration to the second. */
typedef enum kkt_expectation {
    KKT_EXPECT_LOWER,
    KKT_EXPECT_HIGHER,
    KKT_EXPECT_SAME,        /* within the share `within` */
    KKT_EXPECT_AS_PREDICTED /* its change is the predicted change, within the share `within` */
} kkt_expectation;
const char *kkt_expectation_name(kkt_expectation expectation); /* "lower", ... "as_predicted" */

/* Two configurations, each "k=v,..." on top of the base, and after a ';' on top of that; "" is the
 * base itself. Not the chunk: what an ablation of one chunk size measured would be a base of
 * another's. */
typedef struct kkt_comparison {
    int64_t chunk; /* the base's chunk that it is for; 0: any */
    const char *from, *to;
    kkt_expectation expect;
    double within;         /* SAME, AS_PREDICTED */
    const char *condition; /* what sets it apart from the claim's others: "block_pad 1" */
} kkt_comparison;

/* A claim holds where all its comparisons come out as expected, and only under conditions where
 * some do. */
typedef struct kkt_claim {
    const char *name;      /* "block_pad" */
    const char *statement; /* one sentence */
    const char *account;   /* what the model says of it: the resource that decides, with figures */
    kkt_figure figure;
    const kkt_comparison *comparisons;
    size_t count;
} kkt_claim;

#endif
