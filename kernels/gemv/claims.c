/* What is said of gemv's parameters, in print and here, as comparisons to be measured. Texts give
 * every parameter, so that they mean the same whatever the base of the ablation is. */
#include "kernels/gemv/space.h"

#define REST ",x=global,reduce=end,min_blocks=0"
/* A block of 256 threads has two rows, and reads 64 bytes of each a thread before it uses them. */
#define POINT "rows_per_block=2,row_threads=256,threads=256,vec=8,unroll=4,keep=stream" REST
/* A thread a row, an element at a time. */
#define NAIVE "rows_per_block=128,row_threads=1,threads=128,vec=1,unroll=1,keep=cached" REST
/* The article's: tiles of 16 rows and 256 elements in the registers of four warps, a reduction over
 * the threads of a row for every tile. */
#define TILES "rows_per_block=16,row_threads=32,threads=128,vec=8,unroll=1,keep=cached" REST
#define TILES_STEP TILES ";reduce=step"

#define SAME_WITHIN 0.02 /* what counts as the same time */

#define TO_POINT(FROM, CONDITION)                                                                  \
    { .from = (FROM), .to = POINT, .expect = KKT_EXPECT_LOWER, .condition = (CONDITION) }

static const kkt_comparison naive[] = {TO_POINT(NAIVE, "")};
static const kkt_comparison tiles[] = {TO_POINT(TILES_STEP, "")};

static const kkt_comparison side_by_side[] = {
    {.from = NAIVE ";vec=8",
     .to = NAIVE ";vec=8,row_threads=32,rows_per_block=4",
     .expect = KKT_EXPECT_LOWER},
};

/* The same bytes in flight: 32 a thread. */
static const kkt_comparison wide_loads[] = {
    {.from = POINT ";rows_per_block=1,vec=1,unroll=16",
     .to = POINT ";rows_per_block=1,unroll=2",
     .expect = KKT_EXPECT_LOWER,
     .condition = "against 2 bytes"},
    {.from = POINT ";rows_per_block=1,vec=2,unroll=8",
     .to = POINT ";rows_per_block=1,unroll=2",
     .expect = KKT_EXPECT_LOWER,
     .condition = "against 4 bytes"},
    {.from = POINT ";rows_per_block=1,vec=4,unroll=4",
     .to = POINT ";rows_per_block=1,unroll=2",
     .expect = KKT_EXPECT_LOWER,
     .condition = "against 8 bytes"},
};

static const kkt_comparison loads_in_flight[] = {
    TO_POINT(POINT ";unroll=1", "against 1"),
    TO_POINT(POINT ";unroll=2", "against 2"),
};

static const kkt_comparison reduce_once[] = {
    {.from = TILES_STEP, .to = TILES, .expect = KKT_EXPECT_LOWER},
};
static const kkt_comparison reduce_once_instructions[] = {
    {.from = TILES_STEP, .to = TILES, .expect = KKT_EXPECT_LOWER},
};

static const kkt_comparison rows_share_x[] = {
    {.from = POINT ";rows_per_block=1", .to = POINT, .expect = KKT_EXPECT_LOWER},
};
static const kkt_comparison rows_share_instructions[] = {
    {.from = POINT ";rows_per_block=1",
     .to = POINT,
     .expect = KKT_EXPECT_AS_PREDICTED,
     .within = 0.05},
};

static const kkt_comparison x_in_shared[] = {
    {.from = POINT, .to = POINT ";x=shared", .expect = KKT_EXPECT_LOWER},
};

static const kkt_comparison streaming[] = {
    TO_POINT(POINT ";keep=cached", "stream"),
    {.from = POINT ";keep=cached",
     .to = POINT ";keep=stream_wide",
     .expect = KKT_EXPECT_LOWER,
     .condition = "stream_wide"},
};

/* In the materialized style alone: the others have no split_k. */
#define SPLIT POINT ",split_k="
static const kkt_comparison more_splits[] = {
    {.from = SPLIT "2", .to = SPLIT "8", .expect = KKT_EXPECT_LOWER, .condition = "8 for 2"},
    {.from = SPLIT "8", .to = SPLIT "32", .expect = KKT_EXPECT_LOWER, .condition = "32 for 8"},
};
static const kkt_comparison split_bytes[] = {
    {.from = SPLIT "2",
     .to = SPLIT "32",
     .expect = KKT_EXPECT_AS_PREDICTED,
     .within = 0.05,
     .condition = "32 for 2"},
};

#define COMPARISONS(list) .comparisons = (list), .count = sizeof(list) / sizeof(list)[0]

const kkt_claim kkt_gemv_claims[KKT_GEMV_CLAIM_COUNT] = {
    {.name = "naive_gemv",
     .statement = "A thread a row that reads an element at a time is several times slower than "
                  "blocks that share rows.",
     .account = "Each step waits for L1 or memory, with 2 bytes a thread on their way; a warp's "
                "load touches 32 rows, a sector each.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(naive)},
    {.name = "tiles_in_fragments",
     .statement = "Tiles in registers with a row reduction for each (the article's first version, "
                  "about three times behind its library) are slower than whole rows.",
     .account = "The bytes are the same and its loads are wide; what it adds is five shuffles a "
                "row and tile, which hide behind memory.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(tiles)},
    {.name = "threads_side_by_side",
     .statement = "Threads side by side in a row beat a row a thread at the same load width.",
     .account = "A warp's load of 512 bytes in one row, or of 16 bytes in 32 rows: the same "
                "sectors in the end, but the rest of each has to wait in L1.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(side_by_side)},
    {.name = "wide_loads",
     .statement = "16 bytes a load beat narrower ones with as many bytes in flight.",
     .account = "An eighth of the load instructions and of the requests to L1; the conversions "
                "and products are the same.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(wide_loads)},
    {.name = "wide_loads_instructions",
     .statement = "Wider loads take fewer instructions.",
     .account = "One load instruction and one address for 16 bytes of a row instead of two, four "
                "or eight; conversions and products stay.",
     .figure = KKT_FIGURE_INSTRUCTIONS,
     COMPARISONS(wide_loads)},
    {.name = "loads_in_flight",
     .statement = "More loads in flight a thread bring the kernel nearer to the speed of reading.",
     .account = "An SM needs about 64 KB on their way; one load of two rows by each of 1280 "
                "threads is 40 KB.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(loads_in_flight)},
    {.name = "reduce_once",
     .statement = "Adding up over a row's threads once, at its end, beats doing so at each step.",
     .account = "Ten instructions for each of a thread's rows and steps; memory limits both.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(reduce_once)},
    {.name = "reduce_once_instructions",
     .statement = "Adding up once takes fewer instructions.",
     .account =
         "Five exchanges and five additions for each of a thread's rows, at every step or once.",
     .figure = KKT_FIGURE_INSTRUCTIONS,
     COMPARISONS(reduce_once_instructions)},
    {.name = "rows_share_x",
     .statement = "Two rows a thread, which share what is loaded and converted of x, beat one.",
     .account = "Nine instructions less for each vector of the second row, and half of x's way "
                "from L1; memory limits both.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(rows_share_x)},
    {.name = "rows_share_x_instructions",
     .statement = "What two rows save in instructions is what the model says, within 5 %.",
     .account = "Loading and converting x falls away for the second row: nine instructions for "
                "each of its vectors.",
     .figure = KKT_FIGURE_INSTRUCTIONS,
     COMPARISONS(rows_share_instructions)},
    {.name = "x_in_shared",
     .statement = "x in shared memory beats x from L1.",
     .account = "A block has to bring all of x before it begins, and each line of it serves a "
                "block's two rows only.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(x_in_shared)},
    {.name = "streaming_hints",
     .statement = "Keeping A out of L1 saves time.",
     .account = "A's lines push x out of L1, which L2 then serves: no bytes of memory differ.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(streaming)},
    {.name = "split_k",
     .statement = "More blocks a row save time.",
     .account = "Only where rows alone do not fill the GPU. Otherwise the parts' way through HBM, "
                "and a second launch, come on top.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(more_splits)},
    {.name = "split_k_bytes",
     .statement = "What the parts add in bytes is what the model says, within 5 %.",
     .account = "Eight bytes a row and part, written and read; those that L2 still holds are not "
                "counted when read.",
     .figure = KKT_FIGURE_HBM_BYTES,
     COMPARISONS(split_bytes)},
};
