/* What is said of the product's parameters, in print and here, as comparisons to be measured. The
 * first group is about the naive product, where every operand's tile has a place; the second about
 * the ring of tiles; the third about parts of k that go through memory; the last about TMA and
 * wgmma. A comparison is made for the style that has its parameters. */
#include "kernels/gemm/gemm.h"

/* The naive product with tiles of 128 x 128 by four warps. */
#define NAIVE(BK) ",bm=128,bn=128,split_k=1,warps_m=2,warps_n=2,bk=" #BK
#define REGISTERS "a_place=register,b_place=register"
#define A_SHARED "a_place=shared,b_place=register"
#define B_SHARED "a_place=register,b_place=shared"
#define SHARED "a_place=shared,b_place=shared"

/* One block an SM, so that no other block's products hide a copy. */
#define RING(BK)                                                                                   \
    "bm=128,bn=256,split_k=1,warps_m=2,warps_n=4,swizzle=1,raster=8,min_blocks=0,store=direct,"    \
    "bk=" #BK
#define STAGED                                                                                     \
    "bm=128,bn=256,split_k=1,warps_m=2,warps_n=4,raster=8,min_blocks=0,store=staged,stages=3,bk="  \
    "64"

/* Parts of k; the other styles have no such value or no such parameter. */
#define PARTS "bm=128,bn=128,bk=64,warps_m=2,warps_n=2,stages=3,swizzle=1,raster=8,min_blocks=0"

#define TIME_WITHIN 0.02
#define MODEL_WITHIN 0.15
#define COUNT_WITHIN 0.05

#define AT_STEP(BK, FROM, TO, EXPECT)                                                              \
    { .from = "" FROM NAIVE(BK), .to = "" TO NAIVE(BK), .expect = (EXPECT), .condition = "bk " #BK }
#define STAGES(BK, FROM, TO, EXPECT, WITHIN)                                                       \
    {                                                                                              \
        .from = RING(BK) ",stages=" #FROM, .to = RING(BK) ",stages=" #TO, .expect = (EXPECT),      \
        .within = (WITHIN), .condition = "bk " #BK ", stages " #FROM " to " #TO                    \
    }

static const kkt_comparison spilled[] = {
    AT_STEP(64, SHARED, REGISTERS, KKT_EXPECT_HIGHER),
    AT_STEP(128, SHARED, REGISTERS, KKT_EXPECT_HIGHER),
};

static const kkt_comparison all_in_registers[] = {
    AT_STEP(16, SHARED, REGISTERS, KKT_EXPECT_HIGHER),
    AT_STEP(32, SHARED, REGISTERS, KKT_EXPECT_HIGHER),
    AT_STEP(64, SHARED, REGISTERS, KKT_EXPECT_HIGHER),
    AT_STEP(128, SHARED, REGISTERS, KKT_EXPECT_HIGHER),
};

static const kkt_comparison b_to_shared[] = {
    AT_STEP(32, REGISTERS, B_SHARED, KKT_EXPECT_LOWER),
    AT_STEP(64, REGISTERS, B_SHARED, KKT_EXPECT_LOWER),
    AT_STEP(128, REGISTERS, B_SHARED, KKT_EXPECT_LOWER),
};

static const kkt_comparison a_to_shared[] = {
    AT_STEP(32, B_SHARED, SHARED, KKT_EXPECT_LOWER),
    AT_STEP(64, B_SHARED, SHARED, KKT_EXPECT_LOWER),
    AT_STEP(128, B_SHARED, SHARED, KKT_EXPECT_LOWER),
};

static const kkt_comparison a_alone_to_shared[] = {
    AT_STEP(32, REGISTERS, A_SHARED, KKT_EXPECT_LOWER),
    AT_STEP(64, REGISTERS, A_SHARED, KKT_EXPECT_LOWER),
    AT_STEP(128, REGISTERS, A_SHARED, KKT_EXPECT_LOWER),
};

static const kkt_comparison second_stage[] = {
    STAGES(64, 1, 2, KKT_EXPECT_LOWER, 0),
    STAGES(32, 1, 2, KKT_EXPECT_LOWER, 0),
};

static const kkt_comparison more_stages[] = {
    STAGES(32, 2, 3, KKT_EXPECT_LOWER, 0),
    STAGES(32, 3, 4, KKT_EXPECT_LOWER, 0),
    STAGES(32, 4, 5, KKT_EXPECT_LOWER, 0),
    STAGES(32, 5, 6, KKT_EXPECT_LOWER, 0),
};

/* Smaller tiles by as many threads: more operands for each product. */
static const kkt_comparison wavefronts_modelled[] = {
    {.from = STAGED ",swizzle=1",
     .to = STAGED ",swizzle=1;bn=128",
     .expect = KKT_EXPECT_AS_PREDICTED,
     .within = COUNT_WITHIN,
     .condition = "bn 256 to 128"},
    {.from = STAGED ",swizzle=1",
     .to = STAGED ",swizzle=1;warps_m=4",
     .expect = KKT_EXPECT_AS_PREDICTED,
     .within = COUNT_WITHIN,
     .condition = "warps_m 2 to 4"},
};

static const kkt_comparison overlap_bound[] = {
    STAGES(64, 1, 2, KKT_EXPECT_AS_PREDICTED, MODEL_WITHIN),
    STAGES(32, 1, 2, KKT_EXPECT_AS_PREDICTED, MODEL_WITHIN),
    STAGES(64, 1, 4, KKT_EXPECT_AS_PREDICTED, MODEL_WITHIN),
    STAGES(32, 1, 6, KKT_EXPECT_AS_PREDICTED, MODEL_WITHIN),
};

static const kkt_comparison swizzled[] = {
    {.from = STAGED ",swizzle=0", .to = STAGED ",swizzle=1", .expect = KKT_EXPECT_LOWER},
};

static const kkt_comparison swizzle_conflicts[] = {
    {.from = STAGED ",swizzle=0",
     .to = STAGED ",swizzle=1",
     .expect = KKT_EXPECT_SAME,
     .within = COUNT_WITHIN},
};

static const kkt_comparison staged_store[] = {
    {.from = STAGED ",swizzle=1;store=direct",
     .to = STAGED ",swizzle=1",
     .expect = KKT_EXPECT_LOWER},
};

static const kkt_comparison grouped_tiles[] = {
    {.from = STAGED ",swizzle=1;raster=1",
     .to = STAGED ",swizzle=1;raster=8",
     .expect = KKT_EXPECT_LOWER},
};

static const kkt_comparison more_parts[] = {
    {.from = PARTS ",split_k=2",
     .to = PARTS ",split_k=4",
     .expect = KKT_EXPECT_LOWER,
     .condition = "2 to 4"},
    {.from = PARTS ",split_k=4",
     .to = PARTS ",split_k=8",
     .expect = KKT_EXPECT_LOWER,
     .condition = "4 to 8"},
};

static const kkt_comparison parts_modelled[] = {
    {.from = PARTS ",split_k=2",
     .to = PARTS ",split_k=4",
     .expect = KKT_EXPECT_AS_PREDICTED,
     .within = COUNT_WITHIN,
     .condition = "2 to 4"},
    {.from = PARTS ",split_k=4",
     .to = PARTS ",split_k=8",
     .expect = KKT_EXPECT_AS_PREDICTED,
     .within = COUNT_WITHIN,
     .condition = "4 to 8"},
};

/* TMA and wgmma: a tile of 128 x 256 for both warpgroups, blocks in pairs that share b. */
#define SPECIALIZED(REST)                                                                          \
    "bm=128,bn=256,bk=64,split_k=1,cluster_m=2,cluster_n=1,cluster_k=1,consumers=cooperative,"     \
    "stages=3,store=tma,store_panels=4,raster=8,promotion=128,persistent=1,"                       \
    "consumer_registers=232" REST
#define SMALL_TILES SPECIALIZED(";bn=128,stages=6,store_panels=2")

static const kkt_comparison multicast[] = {
    {.from = SPECIALIZED(";cluster_m=1"), .to = SPECIALIZED(""), .expect = KKT_EXPECT_LOWER},
};

static const kkt_comparison larger_cluster[] = {
    {.from = SPECIALIZED(""), .to = SPECIALIZED(";cluster_n=2"), .expect = KKT_EXPECT_LOWER},
};

static const kkt_comparison persistent[] = {
    {.from = SPECIALIZED(";persistent=0"),
     .to = SPECIALIZED(""),
     .expect = KKT_EXPECT_LOWER,
     .condition = "a tile together"},
    {.from = SMALL_TILES ",consumers=ping_pong,persistent=0",
     .to = SMALL_TILES ",consumers=ping_pong",
     .expect = KKT_EXPECT_LOWER,
     .condition = "in turns"},
};

static const kkt_comparison in_turns[] = {
    {.from = SMALL_TILES, .to = SMALL_TILES ",consumers=ping_pong", .expect = KKT_EXPECT_LOWER},
};

static const kkt_comparison raster_bytes[] = {
    {.from = SPECIALIZED(";raster=1"), .to = SPECIALIZED(""), .expect = KKT_EXPECT_LOWER},
};

static const kkt_comparison third_stage[] = {
    {.from = SPECIALIZED(";stages=2"),
     .to = SPECIALIZED(""),
     .expect = KKT_EXPECT_LOWER,
     .condition = "stages 2 to 3"},
    {.from = SPECIALIZED(";store_panels=2"),
     .to = SPECIALIZED(";store_panels=2,stages=4"),
     .expect = KKT_EXPECT_LOWER,
     .condition = "stages 3 to 4"},
};

static const kkt_comparison tma_store[] = {
    {.from = SPECIALIZED(";store=warps"), .to = SPECIALIZED(""), .expect = KKT_EXPECT_LOWER},
};

#define COMPARISONS(list) .comparisons = (list), .count = sizeof(list) / sizeof *(list)

const kkt_claim kkt_gemm_claims[KKT_GEMM_CLAIM_COUNT] = {
    {.name = "tiles_in_registers_spill",
     .statement = "With both operands' tiles in registers beside the sums, registers spill.",
     .account = "Tiles of 128 x 128 by 128 threads: the sums take 128 registers and each operand "
                "bk, and addresses some 30 more, of 255.",
     .figure = KKT_FIGURE_SPILLS,
     COMPARISONS(spilled)},
    {.name = "tiles_in_registers_are_slow",
     .statement = "All tiles in registers is slower than both operands in shared memory.",
     .account =
         "Spilled or not: each warp loads its own lines, 4 bytes a lane from eight rows, and "
         "each such load passes the shared-memory pipe eight times.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(all_in_registers)},
    {.name = "b_to_shared",
     .statement = "From all tiles in registers, moving B's to shared memory saves time.",
     .account = "Half the loads of words, and half the operands' registers.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(b_to_shared)},
    {.name = "a_to_shared",
     .statement = "With B's tile in shared memory, moving A's there too saves time.",
     .account = "The other half; then copies of 16 bytes a lane, once a block.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(a_to_shared)},
    {.name = "a_alone_to_shared",
     .statement = "From all tiles in registers, moving A's alone to shared memory saves time.",
     .account = "As B's, of as many lines; what is left in registers is stored across k and is "
                "transposed among the lanes.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(a_alone_to_shared)},
    {.name = "second_stage",
     .statement = "A second stage saves time.",
     .account = "A copy is hidden by the products of one step.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(second_stage)},
    {.name = "more_stages",
     .statement = "Each further stage saves time.",
     .account = "Only until the products of the steps in flight are as long as a copy, some 1,600 "
                "cycles and its bytes: two or three stages.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(more_stages)},
    {.name = "overlap_is_bounded",
     .statement = "What stages bring is what overlap can, (copy + compute) / max(copy, compute), "
                  "and no factor of their number.",
     .account = "A step takes copy and products together where nothing is in flight, the longer of "
                "them with two stages. A deeper ring lets copies overlap each other as well: of a "
                "copy its bytes alone then count.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(overlap_bound)},
    {.name = "padding_has_no_conflicts",
     .statement =
         "Operands are read in as many wavefronts from padded tiles as from swizzled ones.",
     .account = "Eight rows' units of an 8 x 8 matrix cover all banks in either.",
     .figure = KKT_FIGURE_WAVEFRONTS,
     COMPARISONS(swizzle_conflicts)},
    {.name = "wavefronts_modelled",
     .statement = "Tiles and warps change the wavefronts by what the model says, within 5 %.",
     .account = "Four for each 16 x 16 operand that a warp reads.",
     .figure = KKT_FIGURE_WAVEFRONTS,
     COMPARISONS(wavefronts_modelled)},
    {.name = "swizzle_time",
     .statement = "Swizzled tiles save time against padded ones.",
     .account = "A padded row does not begin with a line of banks, so that what cp.async writes to "
                "it passes once more; counters of shared memory leave that out.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(swizzled)},
    {.name = "staged_store",
     .statement = "Storing C through shared memory, 16 bytes a lane, saves time.",
     .account = "A lane's pairs fill half of each 32-byte sector that they touch.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(staged_store)},
    {.name = "grouped_tiles",
     .statement = "Taking tiles in groups of rows saves time against row by row of tiles.",
     .account = "Blocks that run together then ask for fewer lines of A and B; nothing is won "
                "where both fit in L2.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(grouped_tiles)},
    {.name = "more_parts",
     .statement = "More parts of k save time.",
     .account =
         "Only where C has fewer tiles than the device has SMs; 8 bytes through HBM for each "
         "element and part.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(more_parts)},
    {.name = "parts_modelled",
     .statement = "Parts of k change the bytes of HBM by what the model says, within 5 %.",
     .account = "What L2 still holds when it is read back is not counted: small parts differ.",
     .figure = KKT_FIGURE_HBM_BYTES,
     COMPARISONS(parts_modelled)},
    {.name = "multicast",
     .statement = "Pairs of blocks that share their loads of b save time.",
     .account = "Each asks L2 for 32 KB a step in place of 48; power is what limits the product.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(multicast)},
    {.name = "larger_clusters",
     .statement = "Clusters of four, which share loads of a as well, save time.",
     .account = "24 KB a step; but the SMs of a GPC that make no whole cluster are idle: of an "
                "H200's 132 SMs, 12.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(larger_cluster)},
    {.name = "persistent",
     .statement = "Blocks that take tile after tile save time against a block a tile.",
     .account = "The next tile's loads are on their way while C is written.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(persistent)},
    {.name = "in_turns",
     .statement = "Two warpgroups that take turns with a tile each save time against both at one "
                  "tile.",
     .account = "One writes C while the other multiplies.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(in_turns)},
    {.name = "grouped_tiles_bytes",
     .statement = "Tiles in groups of rows save bytes of HBM against row by row.",
     .account = "What runs at one time then needs about as many rows of a as columns of b.",
     .figure = KKT_FIGURE_HBM_BYTES,
     COMPARISONS(raster_bytes)},
    {.name = "refill",
     .statement = "Each further stage of tiles for wgmma saves time.",
     .account = "Until the products of the stages in flight are as long as a refill, some 1,900 "
                "cycles: three stages of 1,024.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(third_stage)},
    {.name = "tma_store",
     .statement = "Leaving the store of C to TMA saves time against its warps.",
     .account = "The warps go on with the next tile.",
     .figure = KKT_FIGURE_TIME,
     COMPARISONS(tma_store)},
};
