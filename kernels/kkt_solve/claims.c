/* What is said of the solver's parameters, in print and here, as comparisons to be measured. Chain
 * lengths and work: docs/model.md, section 1. All but the last few are about couplings through
 * shared memory, whatever the base of the ablation is.
 *
 * A parameter that the row-wise inverse leaves without effect must have its default there, hence
 * the long texts of its side. */
#include "kernels/kkt_solve/kkt_solve.h"

/* What only couplings in registers have, and what they need otherwise. */
#define SHARED                                                                                     \
    ",mma=mma_sync,store=staged,chunks_per_block=1,min_blocks=0,carveout=0,kload=cp_async"
#define BLOCKS(BASE, COUPLE) "inverse=recursive,base=" #BASE ",couple=" COUPLE SHARED
#define BLOCKED BLOCKS(16, "tf32")
#define FLAT "inverse=flat,base=16,couple=tf32" SHARED
#define ROW                                                                                        \
    "inverse=row,base=16,couple=tf32,block_pad=1,transpose=0,negate_early=1,"                      \
    "assemble_fused=1" SHARED
#define FP32 BLOCKS(16, "fp32")

#define WAVEFRONTS_WITHIN 0.05 /* predicted against counted */
#define TIME_WITHIN 0.02       /* what counts as the same time */

/* LOWER, at each row stride: the padding is a matter of both strides. */
#define BLOCK_PAD(STRIDE, EXPECT, WITHIN)                                                          \
    {                                                                                              \
        .from = BLOCKED ",row_stride=" #STRIDE ",block_pad=0",                                     \
        .to = BLOCKED ",row_stride=" #STRIDE ",block_pad=1", .expect = (EXPECT),                   \
        .within = (WITHIN), .condition = "row_stride " #STRIDE                                     \
    }
#define TRANSPOSE(PAD, STRIDE, EXPECT, WITHIN)                                                     \
    {                                                                                              \
        .from = FP32 ",block_pad=" #PAD ",row_stride=" #STRIDE ",transpose=0",                     \
        .to = FP32 ",block_pad=" #PAD ",row_stride=" #STRIDE ",transpose=1", .expect = (EXPECT),   \
        .within = (WITHIN), .condition = "block_pad " #PAD ", row_stride " #STRIDE                 \
    }

static const kkt_comparison recursive_row[] = {
    {.chunk = 32, .from = ROW, .to = BLOCKED, .expect = KKT_EXPECT_LOWER},
    {.chunk = 64, .from = ROW, .to = BLOCKED, .expect = KKT_EXPECT_LOWER},
    {.chunk = 128, .from = ROW, .to = BLOCKED, .expect = KKT_EXPECT_LOWER},
};

static const kkt_comparison recursive_flat[] = {
    {.chunk = 64, .from = FLAT, .to = BLOCKED, .expect = KKT_EXPECT_LOWER},
    {.chunk = 128, .from = FLAT, .to = BLOCKED, .expect = KKT_EXPECT_LOWER},
};

static const kkt_comparison recursive_is_flat[] = {
    {.chunk = 32, .from = FLAT, .to = BLOCKED, .expect = KKT_EXPECT_SAME, .within = TIME_WITHIN},
};

static const kkt_comparison base_16[] = {
    {.from = BLOCKS(8, "tf32"),
     .to = BLOCKED,
     .expect = KKT_EXPECT_LOWER,
     .condition = "against 8"},
    {.from = BLOCKS(32, "tf32"),
     .to = BLOCKED,
     .expect = KKT_EXPECT_LOWER,
     .condition = "against 32"},
};

static const kkt_comparison block_pad_conflicts[] = {
    BLOCK_PAD(16, KKT_EXPECT_LOWER, 0),
    BLOCK_PAD(17, KKT_EXPECT_LOWER, 0),
    BLOCK_PAD(20, KKT_EXPECT_LOWER, 0),
};

static const kkt_comparison block_pad_modelled[] = {
    BLOCK_PAD(16, KKT_EXPECT_AS_PREDICTED, WAVEFRONTS_WITHIN),
    BLOCK_PAD(17, KKT_EXPECT_AS_PREDICTED, WAVEFRONTS_WITHIN),
    BLOCK_PAD(20, KKT_EXPECT_AS_PREDICTED, WAVEFRONTS_WITHIN),
};

static const kkt_comparison transpose_pays[] = {
    TRANSPOSE(1, 16, KKT_EXPECT_LOWER, 0),
    TRANSPOSE(1, 17, KKT_EXPECT_LOWER, 0),
    TRANSPOSE(0, 16, KKT_EXPECT_SAME, TIME_WITHIN),
};

static const kkt_comparison transpose_conflicts[] = {
    TRANSPOSE(1, 16, KKT_EXPECT_LOWER, 0),
    TRANSPOSE(1, 17, KKT_EXPECT_LOWER, 0),
    TRANSPOSE(0, 16, KKT_EXPECT_LOWER, 0),
    TRANSPOSE(0, 17, KKT_EXPECT_LOWER, 0),
};

static const kkt_comparison transpose_modelled[] = {
    TRANSPOSE(1, 16, KKT_EXPECT_AS_PREDICTED, WAVEFRONTS_WITHIN),
    TRANSPOSE(1, 17, KKT_EXPECT_AS_PREDICTED, WAVEFRONTS_WITHIN),
    TRANSPOSE(0, 16, KKT_EXPECT_AS_PREDICTED, WAVEFRONTS_WITHIN),
    TRANSPOSE(0, 17, KKT_EXPECT_AS_PREDICTED, WAVEFRONTS_WITHIN),
};

static const kkt_comparison row_stride_modelled[] = {
    {.from = BLOCKED ",row_stride=16",
     .to = BLOCKED ",row_stride=17",
     .expect = KKT_EXPECT_AS_PREDICTED,
     .within = WAVEFRONTS_WITHIN,
     .condition = "16 to 17"},
    {.from = BLOCKED ",row_stride=16",
     .to = BLOCKED ",row_stride=20",
     .expect = KKT_EXPECT_AS_PREDICTED,
     .within = WAVEFRONTS_WITHIN,
     .condition = "16 to 20"},
};

static const kkt_comparison row_stride_17[] = {
    {.from = FP32 ",transpose=1,row_stride=16",
     .to = FP32 ",transpose=1,row_stride=17",
     .expect = KKT_EXPECT_LOWER,
     .condition = "transpose 1"},
    {.from = FP32 ",transpose=0,row_stride=16",
     .to = FP32 ",transpose=0,row_stride=17",
     .expect = KKT_EXPECT_LOWER,
     .condition = "transpose 0"},
};

static const kkt_comparison negate_early[] = {
    {.from = BLOCKED ",negate_early=0",
     .to = BLOCKED ",negate_early=1",
     .expect = KKT_EXPECT_LOWER},
};

static const kkt_comparison assemble_fused[] = {
    {.from = BLOCKED ",assemble_fused=0",
     .to = BLOCKED ",assemble_fused=1",
     .expect = KKT_EXPECT_LOWER},
};

static const kkt_comparison heads_share[] = {
    {.from = "heads_per_block=1",
     .to = "heads_per_block=2",
     .expect = KKT_EXPECT_LOWER,
     .condition = "2 heads"},
    {.from = "heads_per_block=1",
     .to = "heads_per_block=4",
     .expect = KKT_EXPECT_LOWER,
     .condition = "4 heads"},
};

static const kkt_comparison couple_tf32[] = {
    {.from = FP32 ",transpose=0", .to = BLOCKED ",transpose=0", .expect = KKT_EXPECT_LOWER},
};

static const kkt_comparison kload_async[] = {
    {.from = "kload=ldg", .to = "kload=cp_async", .expect = KKT_EXPECT_LOWER},
};

#define COMPARISONS(list) .comparisons = (list), .count = sizeof(list) / sizeof(list)[0]

const kkt_claim kkt_solve_claims[KKT_SOLVE_CLAIM_COUNT] = {
    {.name = "recursive_beats_row",
     .statement = "The recursion's shorter chain (31 to 17 steps at C = 32, 63 to 19 at 64, 127 "
                  "to 21 at 128) is worth about twice the arithmetic of row-wise substitution.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(recursive_row)},
    {.name = "recursive_beats_flat",
     .statement = "From C = 64 on the recursion (19 steps against 21, at 128 21 against 29) beats "
                  "the flat block form, which has less arithmetic.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(recursive_flat)},
    {.name = "recursive_is_flat",
     .statement = "At C = 32 with blocks of 16 the recursive and the flat form are the same work.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(recursive_is_flat)},
    {.name = "base_16",
     .statement = "Diagonal blocks of 16 rows are the best base of the recursion.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(base_16)},
    {.name = "block_pad_conflicts",
     .statement = "A row of padding after each block removes the two-way bank conflict between "
                  "the blocks that a warp substitutes side by side.",
     .figure = KKT_FIGURE_WAVEFRONTS,
     COMPARISONS(block_pad_conflicts)},
    {.name = "block_pad_time",
     .statement = "The padding after each block saves time.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(block_pad_conflicts)},
    {.name = "block_pad_modelled",
     .statement = "block_pad changes the wavefronts by what the model says, within 5 %.",
     .figure = KKT_FIGURE_WAVEFRONTS,
     COMPARISONS(block_pad_modelled)},
    {.name = "row_stride_17",
     .statement = "A row stride of 17 words removes conflicts of accesses that go along columns.",
     .figure = KKT_FIGURE_WAVEFRONTS,
     COMPARISONS(row_stride_17)},
    {.name = "row_stride_modelled",
     .statement = "row_stride changes the wavefronts by what the model says, within 5 %.",
     .figure = KKT_FIGURE_WAVEFRONTS,
     COMPARISONS(row_stride_modelled)},
    {.name = "transpose_with_padding",
     .statement = "Storing the coupling's intermediate transposed saves time, and only together "
                  "with the padding.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(transpose_pays)},
    {.name = "transpose_conflicts",
     .statement = "Storing the coupling's intermediate transposed takes fewer wavefronts.",
     .figure = KKT_FIGURE_WAVEFRONTS,
     COMPARISONS(transpose_conflicts)},
    {.name = "transpose_modelled",
     .statement = "transpose changes the wavefronts by what the model says, within 5 %.",
     .figure = KKT_FIGURE_WAVEFRONTS,
     COMPARISONS(transpose_modelled)},
    {.name = "negate_early",
     .statement = "Negating the blocks below the diagonal where they are stored saves a pass.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(negate_early)},
    {.name = "assemble_fused",
     .statement = "Putting the result together in one pass saves three barriers and their time.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(assemble_fused)},
    {.name = "heads_share",
     .statement = "Value heads of one key head that share K K^T in a block save time.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(heads_share)},
    {.name = "couple_tf32",
     .statement = "Couplings on tensor cores are faster than on the CUDA cores.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(couple_tf32)},
    {.name = "kload_async",
     .statement = "Loading K asynchronously is faster than through registers.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(kload_async)},
};
