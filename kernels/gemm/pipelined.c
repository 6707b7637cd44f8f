/* The pipelined style of gemm: a ring of tiles in shared memory, sums in registers. See
 * gemm_pipelined.cu. */
#include "kernels/gemm/pipelined.h"

#include <stdio.h>

enum { STORE = KKT_GEMM_RING_PARAMS, PARAMS };

static const char *const store_names[] = {"staged", "direct"};

static const kkt_param params[PARAMS] = {
    [KKT_GEMM_BM] = {.name = "bm",
                     .macro = "KKT_BM",
                     .help = "rows of a block's tile of c",
                     .count = 4,
                     .values = {128, 256, 64, 32},
                     .fallback = 128},
    [KKT_GEMM_BN] = {.name = "bn",
                     .macro = "KKT_BN",
                     .help = "columns of a block's tile of c",
                     .count = 4,
                     .values = {128, 256, 64, 32},
                     .fallback = 128},
    [KKT_GEMM_BK] = {.name = "bk",
                     .macro = "KKT_BK",
                     .help = "terms of a step along k",
                     .count = 3,
                     .values = {64, 32, 16},
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
                          .values = {2, 4, 1},
                          .fallback = 2},
    [KKT_GEMM_WARPS_N] = {.name = "warps_n",
                          .macro = "KKT_WARPS_N",
                          .help = "warps that share a tile's columns",
                          .count = 3,
                          .values = {2, 4, 1},
                          .fallback = 2},
    [KKT_GEMM_STAGES] = {.name = "stages",
                         .macro = "KKT_STAGES",
                         .help = "slots of the ring of tiles; 1: nothing is in flight",
                         .count = 6,
                         .values = {3, 4, 2, 5, 6, 1},
                         .fallback = 3},
    [KKT_GEMM_SWIZZLE] = {.name = "swizzle",
                          .macro = "KKT_SWIZZLE",
                          .help =
                              "tiles in shared memory: units moved by exclusive-or, or each row "
                              "followed by 16 bytes of nothing",
                          .count = 2,
                          .values = {1, 0},
                          .fallback = 1},
    [KKT_GEMM_RASTER] = {.name = "raster",
                         .macro = "KKT_RASTER",
                         .help = "rows of tiles that blocks take together, column by column",
                         .count = 4,
                         .values = {8, 16, 4, 1},
                         .fallback = 8},
    [KKT_GEMM_MIN_BLOCKS] = {.name = "min_blocks",
                             .macro = "KKT_MIN_BLOCKS",
                             .help = "blocks to be resident, asked of the compiler; 0: none",
                             .count = 3,
                             .values = {0, 2, 3},
                             .fallback = 0},
    [STORE] = {.name = "store",
               .macro = "KKT_STORE",
               .help = "how c is stored: pairs from registers, or through shared memory, 16 bytes "
                       "a thread",
               .count = 2,
               .values = {KKT_GEMM_STORE_STAGED, KKT_GEMM_STORE_DIRECT},
               .names = store_names,
               .fallback = KKT_GEMM_STORE_STAGED},
};

/* Bytes of the strips that warps store c by, and of the tiles whose place they take. */
static int64_t strip_bytes(const kkt_gemm_mma *g) {
    return g->warps * 16 * (g->columns * 32 + 16);
}

static bool applicable(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                       char *reason, size_t size) {
    const kkt_gemm_mma g = kkt_gemm_mma_sizes(problem, config);
    if (!kkt_gemm_ring_applicable(problem, config, arch, reason, size))
        return false;
    const long long strips = strip_bytes(&g);
    const long long tiles = g.bm * g.bk * 2 * config->v[KKT_GEMM_STAGES];
    if (config->v[STORE] == KKT_GEMM_STORE_DIRECT || strips <= tiles)
        return true;
    kkt_reason(reason, size, "strips of c to store take %lld bytes, the ring's tiles of a %lld",
               strips, tiles);
    return false;
}

static void footprint(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                      kkt_footprint *out) {
    const kkt_gemm_mma g = kkt_gemm_mma_sizes(problem, config);
    kkt_gemm_ring_footprint(problem, config, arch, KKT_STYLE_PIPELINED, out);
    kkt_gemm_mma_store(&g, config->v[STORE] == KKT_GEMM_STORE_STAGED, out);
    if (config->v[STORE] == KKT_GEMM_STORE_DIRECT)
        return;
    kkt_footprint_buffer(out, KKT_PLACE_SHARED, "c", g.warps * 16, g.columns * 16 + KKT_GEMM_UNIT,
                         2)
        ->overlays = 1 + 1; /* the tiles of a, behind the sums */
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
    kkt_gemm_add_tensor(kkt_gemm_mma_plan(problem, &fp, "gemm_pipelined", out), KKT_GEMM_TENSOR_C);
}

static const char *const sources[] = {
    "gemm/gemm_pipelined.cu",
    "device/async_copy.cuh",
    "device/convert.cuh",
    "device/copy_groups.cuh",
    "device/fragment.cuh",
    "device/matrix_move.cuh",
    "device/mma_sync.cuh",
    "device/tile_math.cuh",
    "device/types.cuh",
    "gemm/epilogue.cuh",
    "gemm/mainloop.cuh",
    "gemm/matrix.cuh",
    "gemm/operand_tile.cuh",
    "gemm/parameters.cuh",
    "gemm/repack.cuh",
    "gemm/tile_order.cuh",
    NULL,
};

const kkt_variant kkt_gemm_pipelined = {
    .style = KKT_STYLE_PIPELINED,
    .params = {"parameter", params, PARAMS},
    .source = "gemm/gemm_pipelined.cu",
    .sources = sources,
    .applicable = applicable,
    .footprint = footprint,
    .defines = defines,
    .plan = plan,
    .tolerance = kkt_gemm_tolerance,
};
