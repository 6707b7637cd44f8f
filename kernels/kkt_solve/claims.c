/* What is said of the solver's parameters, in print and here, as comparisons to be measured. Chain
 * lengths and work: docs/model.md, section 1; wavefronts: section 9. The first ones are about
 * couplings through shared memory, the others about couplings in registers (what those compare is
 * in claims_registers.h), whatever the base of the ablation is.
 *
 * A parameter that a way or the row-wise inverse leaves without effect must have its default there,
 * hence the long texts. Sides in registers take four heads a block, which problems with four value
 * heads a key head have. */
#include "kernels/kkt_solve/claims_registers.h"

/* What only couplings in registers have, and what they need otherwise. */
#define SHARED                                                                                     \
    ",mma=mma_sync,store=staged,share=key_head,warps_per_head=1,chunks_per_block=1,min_blocks=0,"  \
    "carveout=0,persistent=0,kload=cp_async"
#define BLOCKS(BASE, COUPLE) "inverse=recursive,base=" #BASE ",couple=" COUPLE SHARED
#define BLOCKED BLOCKS(16, "tf32")
#define FLAT "inverse=flat,base=16,couple=tf32" SHARED
#define ROW                                                                                        \
    "inverse=row,base=16,couple=tf32,block_pad=1,transpose=0,negate_early=1,"                      \
    "assemble_fused=1" SHARED
#define FP32 BLOCKS(16, "fp32")
#define ONE_HEAD ";heads_per_block=1,threads=128" /* for what does not fit with more at C = 128 */

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
    {.chunk = 128, .from = ROW ONE_HEAD, .to = BLOCKED ONE_HEAD, .expect = KKT_EXPECT_LOWER},
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
    {.chunk = 32,
     .from = BLOCKED ",assemble_fused=0",
     .to = BLOCKED ",assemble_fused=1",
     .expect = KKT_EXPECT_LOWER},
    {.chunk = 64,
     .from = BLOCKED ",assemble_fused=0",
     .to = BLOCKED ",assemble_fused=1",
     .expect = KKT_EXPECT_LOWER},
    {.chunk = 128,
     .from = BLOCKED ",assemble_fused=0" ONE_HEAD,
     .to = BLOCKED ",assemble_fused=1" ONE_HEAD,
     .expect = KKT_EXPECT_LOWER},
};

static const kkt_comparison heads_share[] = {
    {.chunk = 64,
     .from = REGISTERS ";heads_per_block=1,threads=32",
     .to = REGISTERS ";heads_per_block=2,threads=64",
     .expect = KKT_EXPECT_LOWER,
     .condition = "2 heads"},
    {.chunk = 64,
     .from = REGISTERS ";heads_per_block=1,threads=32",
     .to = REGISTERS,
     .expect = KKT_EXPECT_LOWER,
     .condition = "4 heads"},
};

static const kkt_comparison couple_tf32[] = {
    {.from = FP32 ",transpose=0", .to = BLOCKED ",transpose=0", .expect = KKT_EXPECT_LOWER},
};

static const kkt_comparison kload_async[] = {
    {.from = BLOCKED ";kload=ldg", .to = BLOCKED, .expect = KKT_EXPECT_LOWER, .condition = "tf32"},
    {.chunk = 64,
     .from = REGISTERS ";kload=ldg",
     .to = REGISTERS,
     .expect = KKT_EXPECT_LOWER,
     .condition = "fp16"},
};

static const kkt_comparison in_registers[] = {
    {.chunk = 32, .from = BLOCKED ",row_stride=20", .to = REGISTERS, .expect = KKT_EXPECT_LOWER},
    {.chunk = 64, .from = BLOCKED ",row_stride=20", .to = REGISTERS, .expect = KKT_EXPECT_LOWER},
    {.chunk = 128, .from = BLOCKED ",row_stride=20", .to = REGISTERS, .expect = KKT_EXPECT_LOWER},
};

#define COMPARISONS(list) .comparisons = (list), .count = sizeof(list) / sizeof(list)[0]

const kkt_claim kkt_solve_claims[KKT_SOLVE_CLAIM_COUNT] = {
    {.name = "recursive_beats_row",
     .statement = "The recursion's shorter chain (31 to 17 steps at C = 32, 63 to 19 at 64, 127 "
                  "to 21 at 128) is worth about twice the arithmetic of row-wise substitution.",
     .account = "63 dependent rows at C = 64 instead of 19 steps, and four times the passes, for a "
                "row is broadcast to every column.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(recursive_row)},
    {.name = "recursive_beats_flat",
     .statement = "From C = 64 on the recursion (19 steps against 21, at 128 21 against 29) beats "
                  "the flat block form, which has less arithmetic.",
     .account = "19 steps against 21 and the same passes: nothing that limits differs.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(recursive_flat)},
    {.name = "recursive_is_flat",
     .statement = "At C = 32 with blocks of 16 the recursive and the flat form are the same work.",
     .account = "One coupling between two blocks is all there is at C = 32: the same products, "
                "passes and steps.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(recursive_is_flat)},
    {.name = "base_16",
     .statement = "Diagonal blocks of 16 rows are the best base of the recursion.",
     .account = "Blocks of 8 take about two thirds of the passes of blocks of 16, and a coupling "
                "more; blocks of 32 half as many again and more, and twice the dependent rows.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(base_16)},
    {.name = "block_pad_conflicts",
     .statement = "A row of padding after each block removes the two-way bank conflict between "
                  "the blocks that a warp substitutes side by side.",
     .account =
         "One to three last words of a row are broadcast to two blocks at once, which without "
         "padding have the same banks: 64 passes a head at C = 64. Rows of 17 words lose their "
         "alignment to 16 bytes with it, and with that 112 passes' worth of wide loads.",
     .figure = KKT_FIGURE_WAVEFRONTS,
     COMPARISONS(block_pad_conflicts)},
    {.name = "block_pad_time",
     .statement = "The padding after each block saves time.",
     .account = "The conflicts it removes are 1 to 5 % of the passes; with rows of 17 words it "
                "takes more than it saves, by the alignment that wide loads lose.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(block_pad_conflicts)},
    {.name = "block_pad_modelled",
     .statement = "block_pad changes the wavefronts by what the model says, within 5 %.",
     .account = "Passes are counted access by access from the banks of its addresses: fewer "
                "conflicts between blocks, fewer wide loads of rows of 17 words.",
     .figure = KKT_FIGURE_WAVEFRONTS,
     COMPARISONS(block_pad_modelled)},
    {.name = "row_stride_17",
     .statement = "A row stride of 17 words removes conflicts of accesses that go along columns.",
     .account = "Rows of 17 words cannot be accessed two or four words at a time; of 20 words they "
                "can, and eight rows cover all banks.",
     .figure = KKT_FIGURE_WAVEFRONTS,
     COMPARISONS(row_stride_17)},
    {.name = "row_stride_modelled",
     .statement = "row_stride changes the wavefronts by what the model says, within 5 %.",
     .account = "Passes are counted access by access from the banks of its addresses, as wide as "
                "the alignment of a row allows.",
     .figure = KKT_FIGURE_WAVEFRONTS,
     COMPARISONS(row_stride_modelled)},
    {.name = "transpose_with_padding",
     .statement = "Storing the coupling's intermediate transposed saves time, and only together "
                  "with the padding.",
     .account = "A quarter of the passes at C = 32 and a third at C = 64, with the padding and "
                "without; with rows of 17 words none.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(transpose_pays)},
    {.name = "transpose_conflicts",
     .statement = "Storing the coupling's intermediate transposed takes fewer wavefronts.",
     .account = "As a right operand of fp32 products a sub-block of the intermediate takes 64 "
                "passes by columns and 16 by rows; with rows of 17 words 16 either way.",
     .figure = KKT_FIGURE_WAVEFRONTS,
     COMPARISONS(transpose_conflicts)},
    {.name = "transpose_modelled",
     .statement = "transpose changes the wavefronts by what the model says, within 5 %.",
     .account = "The right operand's passes, 64 by columns and 16 by rows for each sub-block, and "
                "nothing else.",
     .figure = KKT_FIGURE_WAVEFRONTS,
     COMPARISONS(transpose_modelled)},
    {.name = "negate_early",
     .statement = "Negating the blocks below the diagonal where they are stored saves a pass.",
     .account =
         "The sign goes with a factor that is multiplied anyway: no pass and no barrier is saved.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(negate_early)},
    {.name = "assemble_fused",
     .statement = "Putting the result together in one pass saves three barriers and their time.",
     .account = "Through a dense tile T is written and read once more; what counts is the tile: 36 "
                "KiB a block of four heads, and fewer blocks an SM.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(assemble_fused)},
    {.name = "heads_share",
     .statement = "Value heads of one key head that share K K^T in a block save time.",
     .account = "K is loaded and K K^T formed once for two or four heads: a tenth and a fifth of "
                "all passes at C = 64, and fewer instructions.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(heads_share)},
    {.name = "couple_tf32",
     .statement = "Couplings on tensor cores are faster than on the CUDA cores.",
     .account = "Half the instructions and passes.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(couple_tf32)},
    {.name = "kload_async",
     .statement = "Loading K asynchronously is faster than through registers.",
     .account =
         "The same bytes; through registers four more passes a 512 bytes, and loads in flight "
         "take registers.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(kload_async)},
    {.name = "couplings_in_registers",
     .statement = "Couplings in registers are faster than couplings through shared memory.",
     .account = "Two fifths of the passes and a third of the instructions at C = 64: shared memory "
                "limits the one, HBM the other.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(in_registers)},
    {.name = "store_tma_halves",
     .statement = "T leaves fastest by TMA, each half as soon as it is inverted.",
     .account =
         "Directly each lane writes 4 bytes, 16 a row and sector of 32: as many bytes, twice "
         "the sectors. Staged, each block of 512 bytes is read back (4 passes, 7 "
         "instructions). One tile needs no more of either, but waits for the last coupling.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(store_halves)},
    {.name = "neumann",
     .statement = "Doubling powers on tensor cores beats substitution in blocks of 16.",
     .account = "Fewer passes (no scratch), but six dependent products of each block instead of 15 "
                "fused multiply-adds, in more instructions; where HBM limits, neither counts. The "
                "powers' rounding has to pass the correctness gate.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(neumann)},
    {.name = "five_blocks",
     .statement = "Asking for five blocks an SM saves time.",
     .account = "Shared memory lets four in (48 KiB of 228 each), so the registers that are given "
                "up buy nothing.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(five_blocks)},
    {.name = "five_blocks_resident",
     .statement = "Asking for five blocks an SM brings a fifth.",
     .account = "Shared memory is the smaller limit.",
     .figure = KKT_FIGURE_BLOCKS,
     COMPARISONS(five_resident)},
    {.name = "persistent",
     .statement = "Persistent blocks, which load the next chunk's K while they invert one, save "
                  "time.",
     .account = "HBM limits both, and other blocks hide a first load as well as the next chunk "
                "does. But shares are fixed: 8192 units on 528 blocks are 15.5 turns and take 16, "
                "where blocks launched as others leave even out. Launches of a few turns gain: "
                "there no one else hides the first load.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(persistent)},
    {.name = "persistent_resident",
     .statement = "Persistent blocks leave as many resident.",
     .account = "K's tile is no one else's: 61 KiB a block instead of 45, three instead of four, "
                "unless halves of T take turns in one place.",
     .figure = KKT_FIGURE_BLOCKS,
     COMPARISONS(persistent_resident)},
    {.name = "base_8_time",
     .statement =
         "In registers, blocks of 8 rows with a first coupling on tensor cores beat blocks "
         "of 16.",
     .account = "7 dependent steps and two products instead of 15 steps; a quarter of the "
                "substitution's passes.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(base_8)},
    {.name = "base_8_wavefronts",
     .statement = "In registers, blocks of 8 rows take fewer wavefronts than blocks of 16.",
     .account = "A warp substitutes four blocks at a time, in 16 passes instead of 64, twice as "
                "often; and half the operands' matrices.",
     .figure = KKT_FIGURE_WAVEFRONTS,
     COMPARISONS(base_8)},
    {.name = "bf16x3_is_free",
     .statement = "Precise couplings (bf16x3) take no more time than fp16's.",
     .account = "Three products for one and twice the operands' registers: free only as long as "
                "HBM limits and as many blocks are resident.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(precise)},
    {.name = "kload_tma",
     .statement = "TMA loads of K beat cp.async.",
     .account = "Fewer instructions (one thread asks), the same bytes and passes; HBM limits both.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(kload_tma)},
    {.name = "wgmma",
     .statement = "K K^T by wgmma beats mma.sync.",
     .account = "wgmma reads K from shared memory itself: no ldmatrix, a third of the passes of "
                "that step, and it multiplies above the diagonal too; HBM limits both.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(wgmma)},
    {.name = "wgmma_wavefronts",
     .statement = "K K^T by wgmma takes fewer wavefronts than by mma.sync.",
     .account = "384 passes of ldmatrix a block against about half of its operands' 256 lines.",
     .figure = KKT_FIGURE_WAVEFRONTS,
     COMPARISONS(wgmma)},
    {.name = "carveout_100",
     .statement = "Asking for all of an SM's shared memory saves time.",
     .account = "The driver's choice lets the same blocks in, and leaves L1 more.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(carveout)},
    {.name = "share_key_head",
     .statement = "Forming K K^T once for four value heads beats once for each.",
     .account = "A quarter of the products and of K's way from L2; a block that forms four has "
                "four times the tile, so fewer blocks are resident.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(share_key_head)},
    {.name = "two_warps_a_head",
     .statement = "Two warps that take a half each of a head's chunk beat one.",
     .account = "Half the operands' registers a thread: at C = 128 one warp's do not fit 255. Each "
                "hands its operands over in shared memory, and there are barriers between.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(two_warps)},
    {.name = "several_chunks_a_block",
     .statement = "Several small chunks a block beat one.",
     .account = "A block's start (its first load's latency, its scan) is paid once for all.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(several_chunks)},
    {.name = "registers_modelled",
     .statement = "In registers, too, wavefronts change by what the model says, within 5 %.",
     .account = "What each parameter changes of the accesses, with the fitted share of passes that "
                "lines of K and T cost others.",
     .figure = KKT_FIGURE_WAVEFRONTS,
     COMPARISONS(registers_modelled)},
};
