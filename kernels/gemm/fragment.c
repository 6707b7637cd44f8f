/* The fragment style of gemm: the naive product, each operand's tile in registers or in shared
 * memory. See gemm_fragment.cu. */
#include "kernels/gemm/mma.h"

#include "model/predict.h"

enum { A_PLACE = KKT_GEMM_MMA_COMMON, B_PLACE, PARAMS };
enum { REGISTER, SHARED };

static const char *const place_names[] = {"register", "shared"};

static const kkt_param params[PARAMS] = {
    [KKT_GEMM_BM] = {.name = "bm",
                     .macro = "KKT_BM",
                     .help = "rows of a block's tile of c",
                     .count = 4,
                     .values = {128, 64, 32, 256},
                     .fallback = 128},
    [KKT_GEMM_BN] = {.name = "bn",
                     .macro = "KKT_BN",
                     .help = "columns of a block's tile of c",
                     .count = 4,
                     .values = {128, 64, 32, 256},
                     .fallback = 128},
    [KKT_GEMM_BK] = {.name = "bk",
                     .macro = "KKT_BK",
                     .help = "terms of a step along k",
                     .count = 4,
                     .values = {32, 16, 64, 128},
                     .fallback = 32},
    [KKT_GEMM_SPLIT_K] = {.name = "split_k",
                          .macro = "KKT_SPLIT_K",
                          .help = "sums that k is split into; here k stays whole",
                          .count = 1,
                          .values = {1},
                          .fallback = 1},
    [KKT_GEMM_WARPS_M] = {.name = "warps_m",
                          .macro = "KKT_WARPS_M",
                          .help = "warps that share a tile's rows",
                          .count = 3,
                          .values = {2, 1, 4},
                          .fallback = 2},
    [KKT_GEMM_WARPS_N] = {.name = "warps_n",
                          .macro = "KKT_WARPS_N",
                          .help = "warps that share a tile's columns",
                          .count = 3,
                          .values = {2, 1, 4},
                          .fallback = 2},
    [A_PLACE] = {.name = "a_place",
                 .macro = "KKT_A_PLACE",
                 .help = "where the tile of a lies while it is multiplied",
                 .count = 2,
                 .values = {REGISTER, SHARED},
                 .names = place_names,
                 .fallback = REGISTER},
    [B_PLACE] = {.name = "b_place",
                 .macro = "KKT_B_PLACE",
                 .help = "where the tile of b lies while it is multiplied",
                 .count = 2,
                 .values = {REGISTER, SHARED},
                 .names = place_names,
                 .fallback = REGISTER},
};

/* Words of an operand that a thread loads a step; each is an instruction, with predicate and
 * address, and passes once for each of the eight rows that it touches. */
static void add_register_loads(const kkt_gemm_mma *g, int64_t words, kkt_footprint *out) {
    const double loads = (double)(g->blocks * g->steps * g->warps * words);
    out->instructions += loads * 4;
    out->global_wavefronts += loads * 8;
}

/* Registers of operands on their way from shared memory: of 32 terms at a time where one operand
 * comes from there; where both do, what the compiler takes beyond the sums for warps of 16 x 64 to
 * 64 x 64, which is more the more it has to order. */
static double operand_registers(const kkt_gemm_mma *g, bool a_shared, bool b_shared) {
    const double blocks = (double)((a_shared ? g->strips : 0) + (b_shared ? g->columns : 0));
    if (!a_shared || !b_shared)
        return blocks * 4 * (g->depth > 1 ? 2 : 1);
    return g->depth > 1 && blocks > 5 ? 20 * blocks - 90 : 10;
}

static void footprint(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                      kkt_footprint *out) {
    const kkt_gemm_mma g = kkt_gemm_mma_sizes(problem, config);
    const bool a_shared = config->v[A_PLACE] == SHARED, b_shared = config->v[B_PLACE] == SHARED;
    const int64_t a_words = g.strips * g.depth * 4, b_words = g.columns * g.depth * 4;
    kkt_gemm_footprint(problem, config, KKT_STYLE_FRAGMENT, g.threads, out);
    kkt_gemm_mma_registers(&g, "c", g.strips * g.columns * 8, out);
    kkt_footprint_role(out, "all", (int)g.threads)->extra_registers =
        operand_registers(&g, a_shared, b_shared);
    if (a_shared) {
        kkt_gemm_mma_tile(&g, true, true, 1, out);
    } else {
        kkt_gemm_mma_registers(&g, "a", a_words, out);
        add_register_loads(&g, a_words, out);
    }
    if (b_shared) {
        kkt_gemm_mma_tile(&g, false, true, 1, out);
    } else {
        kkt_gemm_mma_registers(&g, "b", b_words, out);
        add_register_loads(&g, b_words, out);
    }
    kkt_gemm_mma_work(&g, a_shared ? KKT_GEMM_SWIZZLED : KKT_GEMM_REGISTERS,
                      b_shared ? KKT_GEMM_SWIZZLED : KKT_GEMM_REGISTERS, out);
    kkt_gemm_mma_store(&g, false, out);
    kkt_gemm_mma_chain(&g, arch, 1, out);
    kkt_gemm_reread_tiles(problem, config, arch, 1, out);
}

static void defines(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                    kkt_text *out) {
    kkt_footprint fp;
    footprint(problem, config, arch, &fp);
    kkt_gemm_defines(problem, &fp, out);
}

static void plan(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                 kkt_plan *out) {
    kkt_footprint fp;
    footprint(problem, config, arch, &fp);
    kkt_gemm_add_tensor(kkt_gemm_mma_plan(problem, &fp, "gemm_fragment", out), KKT_GEMM_TENSOR_C);
}

static const char *const sources[] = {
    "gemm/gemm_fragment.cu",  "device/async_copy.cuh",
    "device/convert.cuh",     "device/fragment.cuh",
    "device/matrix_move.cuh", "device/mma_sync.cuh",
    "device/tile_math.cuh",   "device/types.cuh",
    "gemm/epilogue.cuh",      "gemm/matrix.cuh",
    "gemm/operand_tile.cuh",  "gemm/parameters.cuh",
    "gemm/repack.cuh",        NULL,
};

const kkt_variant kkt_gemm_fragment = {
    .style = KKT_STYLE_FRAGMENT,
    .params = {"parameter", params, PARAMS},
    .source = "gemm/gemm_fragment.cu",
    .sources = sources,
    .applicable = kkt_gemm_mma_applicable,
    .footprint = footprint,
    .defines = defines,
    .plan = plan,
    .tolerance = kkt_gemm_tolerance,
};
