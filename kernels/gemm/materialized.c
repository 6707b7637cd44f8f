/* The materialized style of gemm: sums along k are split, and the parts go through HBM in fp32. See
 * gemm_materialized.cu. */
#include "base/integer.h"
#include "kernels/gemm/pipelined.h"

enum { PARAMS = KKT_GEMM_RING_PARAMS, REDUCE_THREADS = 256 };

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
                          .help = "sums that k is split into",
                          .count = 5,
                          .values = {2, 4, 8, 3, 16},
                          .fallback = 2},
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
};

/* What the second launch does for each element: reads its parts, adds and rounds them. */
static void add_reduction(const kkt_values *problem, int64_t split_k, kkt_footprint *out) {
    const double elements = (double)problem->v[KKT_GEMM_M] * (double)problem->v[KKT_GEMM_N];
    out->fp32_flop += elements * (double)(split_k - 1);
    out->instructions += elements / 32 * (1.5 * (double)split_k + 2);
}

static void footprint(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                      kkt_footprint *out) {
    kkt_gemm_ring_footprint(problem, config, arch, KKT_STYLE_MATERIALIZED, out);
    const kkt_gemm_mma g = kkt_gemm_mma_sizes(problem, config);
    kkt_gemm_mma_store(&g, false, out);
    add_reduction(problem, config->v[KKT_GEMM_SPLIT_K], out);
}

static void defines(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                    kkt_text *out) {
    kkt_footprint fp;
    footprint(problem, config, arch, &fp);
    kkt_gemm_defines(problem, &fp, out);
}

static void add_reduce(const kkt_values *problem, kkt_plan *out) {
    const int64_t n = problem->v[KKT_GEMM_N], elements = problem->v[KKT_GEMM_M] * n;
    const int64_t threads = n % KKT_GEMM_UNIT == 0 ? elements / KKT_GEMM_UNIT : elements;
    kkt_launch *launch = kkt_gemm_plan_launch(
        out, "gemm_reduce", kkt_divide_up(threads, REDUCE_THREADS), REDUCE_THREADS);
    kkt_gemm_add_tensor(launch, KKT_GEMM_TENSOR_PARTIALS);
    kkt_gemm_add_tensor(launch, KKT_GEMM_TENSOR_C);
    kkt_gemm_add_i64(launch, elements);
}

static void plan(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                 kkt_plan *out) {
    kkt_footprint fp;
    footprint(problem, config, arch, &fp);
    kkt_gemm_add_tensor(kkt_gemm_mma_plan(problem, &fp, "gemm_materialized", out),
                        KKT_GEMM_TENSOR_PARTIALS);
    add_reduce(problem, out);
}

static const char *const sources[] = {
    "gemm/gemm_materialized.cu",
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

const kkt_variant kkt_gemm_materialized = {
    .style = KKT_STYLE_MATERIALIZED,
    .params = {"parameter", params, PARAMS},
    .source = "gemm/gemm_materialized.cu",
    .sources = sources,
    .applicable = kkt_gemm_ring_applicable,
    .footprint = footprint,
    .defines = defines,
    .plan = plan,
    .tolerance = kkt_gemm_tolerance,
};
