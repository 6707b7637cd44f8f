/* The warp-specialized style of gemm: TMA, mbarriers and wgmma. gemm_warp_specialized.cu draws the
 * roles, ws_layout.cuh the shared memory, whose buffers are listed here in the same order. */
#include <stdio.h>

#include "kernels/gemm/gemm.h"

enum {
    STAGES = KKT_GEMM_COMMON,
    CLUSTER_M,
    CLUSTER_N,
    CLUSTER_K,
    CONSUMERS,
    SKEW,
    STORE_PANELS,
    RASTER,
    PERSISTENT,
    REGISTERS,
    PARAMS
};

enum { COOPERATIVE, PING_PONG };

enum {
    WARPGROUP = 128,
    GROUPS = 2, /* warpgroups that multiply; one more loads */
    THREADS = WARPGROUP * (GROUPS + 1),
    LAUNCH_REGISTERS = 65536 / THREADS / 8 * 8,
    PANEL = 64,            /* columns of 2 bytes in a swizzled row of 128 bytes; wgmma's rows */
    CLUSTER_MAX = 8,       /* blocks of a cluster on every device */
    ACCUMULATOR_MAX = 128, /* registers of a thread that are sums; operands and addresses need the
                              rest of its 240 */
    REDUCE_THREADS = 256,
    REDUCED_UNIT = 4 /* elements a thread adds up where rows of C are whole units */
};

static const char *const consumer_names[] = {"cooperative", "ping_pong"};

static const kkt_param params[PARAMS] = {
    [KKT_GEMM_BM] = {.name = "bm",
                     .macro = "KKT_BM",
                     .help = "rows of C of a block's tile",
                     .count = 3,
                     .values = {128, 256, 64},
                     .fallback = 128},
    [KKT_GEMM_BN] = {.name = "bn",
                     .macro = "KKT_BN",
                     .help = "columns of C of a block's tile",
                     .count = 3,
                     .values = {256, 128, 64},
                     .fallback = 256},
    [KKT_GEMM_BK] = {.name = "bk",
                     .macro = "KKT_BK",
                     .help = "terms of a step along k",
                     .count = 2,
                     .values = {64, 128},
                     .fallback = 64},
    [KKT_GEMM_SPLIT_K] = {.name = "split_k",
                          .macro = "KKT_SPLIT_K",
                          .help = "parts of k whose sums go through memory",
                          .count = 4,
                          .values = {1, 2, 4, 8},
                          .fallback = 1},
    [STAGES] = {.name = "stages",
                .macro = "KKT_STAGES",
                .help = "steps along k in flight",
                .count = 6,
                .values = {4, 3, 2, 5, 6, 8},
                .fallback = 4},
    [CLUSTER_M] = {.name = "cluster_m",
                   .macro = "KKT_CLUSTER_M",
                   .help = "tiles below one another in a cluster, which share loads of b",
                   .count = 3,
                   .values = {2, 1, 4},
                   .fallback = 2},
    [CLUSTER_N] = {.name = "cluster_n",
                   .macro = "KKT_CLUSTER_N",
                   .help = "tiles side by side in a cluster, which share loads of a",
                   .count = 3,
                   .values = {1, 2, 4},
                   .fallback = 1},
    [CLUSTER_K] = {.name = "cluster_k",
                   .macro = "KKT_CLUSTER_K",
                   .help = "blocks of a cluster that share k and add up through shared memory",
                   .count = 3,
                   .values = {1, 2, 4},
                   .fallback = 1},
    [CONSUMERS] = {.name = "consumers",
                   .macro = "KKT_PING_PONG",
                   .help =
                       "the two warpgroups that multiply: a tile together, or one each in turns",
                   .count = 2,
                   .values = {COOPERATIVE, PING_PONG},
                   .names = consumer_names,
                   .fallback = COOPERATIVE},
    [SKEW] = {.name = "skew",
              .macro = "KKT_SKEW",
              .help =
                  "steps along k by which the second of two cooperating warpgroups begins later",
              .count = 3,
              .values = {0, 1, 2},
              .fallback = 0},
    [STORE_PANELS] = {.name = "store_panels",
                      .macro = "KKT_STORE_PANELS",
                      .help = "64 x 64 of c that a warpgroup stages at a time",
                      .count = 3,
                      .values = {2, 4, 1},
                      .fallback = 2},
    [RASTER] = {.name = "raster",
                .macro = "KKT_RASTER",
                .help = "rows of clusters' tiles that are gone down before the next column",
                .count = 4,
                .values = {8, 16, 4, 1},
                .fallback = 8},
    [PERSISTENT] = {.name = "persistent",
                    .help = "1: a block an SM, which takes tile after tile; 0: a block a tile",
                    .count = 2,
                    .values = {1, 0},
                    .fallback = 1},
    [REGISTERS] = {.name = "consumer_registers",
                   .macro = "KKT_CONSUMER_REGISTERS",
                   .help = "of a thread that multiplies; the warpgroup that loads has what is left",
                   .count = 3,
                   .values = {240, 232, 208},
                   .fallback = 240},
};

/* A configuration's derived sizes. */
typedef struct sizes {
    int64_t bm, bn, bk, stages, store_panels, registers, skew;
    int64_t split_k, cluster_m, cluster_n, cluster_k, cluster;
    bool ping_pong, a_along_k, b_along_k;
    int64_t group_rows;    /* of the tile, a warpgroup's */
    int64_t rows, columns; /* of tiles of a cluster */
    int64_t tiles;         /* of a block, in the whole grid, part after part of split_k */
    int64_t grid;          /* blocks */
    int64_t steps;         /* along k, of a block */
} sizes;

static int64_t divide_up(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

/* Blocks that the device holds at a time: one an SM, in whole clusters. The device is the
 * architecture's first; on one with fewer SMs the rest waits, on one with more some are idle. */
static int64_t resident_blocks(const kkt_arch *arch, int64_t cluster) {
    const int64_t sms = (int64_t)kkt_device_first(arch)->sm_count.value;
    return sms / cluster * cluster;
}

static sizes sizes_of(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch) {
    const int64_t *p = problem->v, *c = config->v;
    sizes s = {.bm = c[KKT_GEMM_BM],
               .bn = c[KKT_GEMM_BN],
               .bk = c[KKT_GEMM_BK],
               .stages = c[STAGES],
               .store_panels = c[STORE_PANELS],
               .registers = c[REGISTERS],
               .skew = c[SKEW],
               .split_k = c[KKT_GEMM_SPLIT_K],
               .cluster_m = c[CLUSTER_M],
               .cluster_n = c[CLUSTER_N],
               .cluster_k = c[CLUSTER_K],
               .cluster = c[CLUSTER_M] * c[CLUSTER_N] * c[CLUSTER_K],
               .ping_pong = c[CONSUMERS] == PING_PONG,
               .a_along_k = kkt_gemm_a(problem).along_k,
               .b_along_k = kkt_gemm_b(problem).along_k};
    s.group_rows = s.ping_pong ? s.bm : s.bm / GROUPS;
    s.rows = divide_up(p[KKT_GEMM_M], s.bm * s.cluster_m);
    s.columns = divide_up(p[KKT_GEMM_N], s.bn * s.cluster_n);
    s.tiles = s.rows * s.columns * s.cluster * s.split_k;
    s.grid = s.tiles;
    if (c[PERSISTENT] != 0 && s.grid > resident_blocks(arch, s.cluster))
        s.grid = resident_blocks(arch, s.cluster);
    s.steps = divide_up(divide_up(p[KKT_GEMM_K], s.bk), s.cluster_k * s.split_k);
    return s;
}

/* ---- constraints ---- */

static bool tile_fits(const sizes *s, char *reason, size_t size) {
    if (s->group_rows % PANEL != 0) {
        snprintf(reason, size, "bm %lld: a warpgroup multiplies 64 rows at a time, and has %lld",
                 (long long)s->bm, (long long)s->group_rows);
        return false;
    }
    if (s->group_rows * s->bn / WARPGROUP > ACCUMULATOR_MAX) {
        snprintf(reason, size,
                 "bm %lld, bn %lld: %lld sums a thread, above the %d that leave room for the rest",
                 (long long)s->bm, (long long)s->bn, (long long)(s->group_rows * s->bn / WARPGROUP),
                 ACCUMULATOR_MAX);
        return false;
    }
    if (s->group_rows * s->bn / WARPGROUP + 48 > s->registers) {
        snprintf(reason, size,
                 "consumer_registers %lld do not hold %lld sums and what is beside them",
                 (long long)s->registers, (long long)(s->group_rows * s->bn / WARPGROUP));
        return false;
    }
    return true;
}

/* What a block loads for the others: whole panels, or rows within a panel. */
static bool share_fits(int64_t extent, int64_t shares, bool along_k, const char *what,
                       const char *key, char *reason, size_t size) {
    const int64_t unit = along_k ? 8 : PANEL;
    if (extent % (shares * unit) == 0)
        return true;
    snprintf(reason, size, "%s %lld: a share of %s is no multiple of %lld", key, (long long)shares,
             what, (long long)unit);
    return false;
}

static bool cluster_fits(const sizes *s, char *reason, size_t size) {
    if (s->cluster > CLUSTER_MAX) {
        snprintf(reason, size, "a cluster of %lld blocks is above the %d that every device has",
                 (long long)s->cluster, CLUSTER_MAX);
        return false;
    }
    return share_fits(s->bm, s->cluster_n, s->a_along_k, "bm", "cluster_n", reason, size) &&
           share_fits(s->bn, s->cluster_m, s->b_along_k, "bn", "cluster_m", reason, size);
}

static bool split_fits(const sizes *s, char *reason, size_t size) {
    const long long parts = s->cluster_k;
    if (parts == 1)
        return true;
    if (s->ping_pong || s->grid < s->tiles) {
        snprintf(reason, size, "cluster_k %lld needs %s: sums are exchanged where operands were",
                 parts, s->ping_pong ? "both warpgroups at one tile" : "persistent=0");
        return false;
    }
    if (s->bn % (parts * PANEL) != 0) {
        snprintf(reason, size, "cluster_k %lld leaves a block no whole 64 of bn %lld columns",
                 parts, (long long)s->bn);
        return false;
    }
    if ((parts - 1) * s->bm * s->bn / parts * 4 > s->stages * (s->bm + s->bn) * s->bk * 2) {
        snprintf(reason, size, "cluster_k %lld: partial sums do not fit where %lld stages were",
                 parts, (long long)s->stages);
        return false;
    }
    return true;
}

/* Every part of k has something to sum up. */
static bool parts_fit(const kkt_values *problem, const sizes *s, char *reason, size_t size) {
    const long long steps = divide_up(problem->v[KKT_GEMM_K], s->bk);
    const long long parts = s->cluster_k * s->split_k;
    if (parts == 1 || parts <= steps)
        return true;
    snprintf(reason, size, "k has %lld steps, fewer than the %lld parts of cluster_k and split_k",
             steps, parts);
    return false;
}

static bool skew_fits(const sizes *s, char *reason, size_t size) {
    if (s->skew == 0 || (!s->ping_pong && s->skew < s->stages))
        return true;
    snprintf(reason, size, "skew %lld %s", (long long)s->skew,
             s->ping_pong ? "is for warpgroups that share a tile"
                          : "needs more stages: the first warpgroup waits for the second's");
    return false;
}

static bool store_fits(const sizes *s, char *reason, size_t size) {
    const int64_t panels = s->bn / PANEL;
    if (s->split_k * s->cluster_k > 1 && s->store_panels > 1) {
        snprintf(reason, size, "store_panels %lld: sums of parts of k are staged one by one or not",
                 (long long)s->store_panels);
        return false;
    }
    if (s->store_panels <= panels)
        return true;
    snprintf(reason, size, "store_panels %lld is more than the %lld that a row of the tile has",
             (long long)s->store_panels, (long long)panels);
    return false;
}

static bool applicable(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                       char *reason, size_t size) {
    if (!arch->has_wgmma || !arch->has_tma) {
        snprintf(reason, size, "%s has no wgmma; this style is written for sm_90a", arch->name);
        return false;
    }
    const sizes s = sizes_of(problem, config, arch);
    if (config->v[PERSISTENT] == 0 && s.tiles <= resident_blocks(arch, s.cluster)) {
        snprintf(reason, size, "persistent=0 changes nothing: there are %lld tiles, one a block",
                 (long long)s.tiles);
        return false;
    }
    return kkt_gemm_applicable(problem, config, arch, reason, size) &&
           tile_fits(&s, reason, size) && cluster_fits(&s, reason, size) &&
           parts_fit(problem, &s, reason, size) && split_fits(&s, reason, size) &&
           skew_fits(&s, reason, size) && store_fits(&s, reason, size);
}

/* ---- footprint ---- */

static void shared_tile(kkt_footprint *fp, const char *name, int64_t rows, int64_t columns,
                        int element_bytes, int64_t stages) {
    kkt_footprint_buffer(fp, KKT_PLACE_SHARED, name, rows, columns, element_bytes)->stages =
        (int)stages;
}

static void shared_memory(const sizes *s, kkt_footprint *fp) {
    shared_tile(fp, "a", s->bm, s->bk, 2, s->stages);
    shared_tile(fp, "b", s->bn, s->bk, 2, s->stages);
    shared_tile(fp, "c", GROUPS * PANEL, PANEL * s->store_panels, 2, 1);
    shared_tile(fp, "full", 1, 1, 8, s->stages);
    shared_tile(fp, "empty", 1, 1, 8, s->stages);
}

static void roles(const sizes *s, kkt_footprint *fp) {
    const int64_t left = 3 * LAUNCH_REGISTERS - GROUPS * s->registers;
    kkt_footprint_role(fp, "multiply", GROUPS * WARPGROUP)->declared_registers = (int)s->registers;
    kkt_footprint_role(fp, "load", WARPGROUP)->declared_registers = (int)left;
    kkt_footprint_buffer(fp, KKT_PLACE_REGISTER, "c", GROUPS * s->group_rows, s->bn, 4)->role = 0;
}

/* 128-byte passes through shared memory of one block's step along k: TMA writes both tiles; for
 * every 64 rows wgmma reads these of A and all of B. */
static double step_passes(const sizes *s) {
    const double row = (double)s->bk * 2 / 128;
    const double blocks = (double)s->bm / PANEL;
    return row * (double)(s->bm + s->bn) + row * blocks * (double)(PANEL + s->bn);
}

/* Of a tile's end: C is staged and read, and partial sums go to and come from other blocks. */
static double tile_passes(const sizes *s) {
    const double elements = (double)(s->bm * s->bn);
    const double exchanged = (double)(s->cluster_k - 1) / (double)s->cluster_k;
    return elements / (double)s->cluster_k * 2 * 2 / 128 + elements * exchanged * 4 * 2 / 128;
}

/* Warp instructions as compiled for sm_90a: a step's loop, and the end's conversions, stores and
 * exchange, eight elements at a time. */
static double step_instructions(const sizes *s) {
    const double products = (double)(s->bk * s->group_rows) / (16 * PANEL);
    const double groups = s->ping_pong ? 1 : GROUPS;
    return 4 * groups * (30 + 5 * products) + 40;
}

static double tile_instructions(const sizes *s) {
    const double fragments = (double)(s->bm * s->bn) / (16 * 64); /* of 16 x 64, a warp's */
    const double exchanged = s->cluster_k > 1 ? 40 * fragments : 0;
    return 60 * fragments + exchanged + 400;
}

/* Bytes that a block need not ask of L2 since another one of its cluster does. */
static double shared_loads(const kkt_values *problem, const sizes *s) {
    const int64_t *p = problem->v;
    const double element = 2.0 * (double)p[KKT_GEMM_K];
    const double a = (double)(p[KKT_GEMM_M] * divide_up(p[KKT_GEMM_N], s->bn)) * element;
    const double b = (double)(p[KKT_GEMM_N] * divide_up(p[KKT_GEMM_M], s->bm)) * element;
    return a * (double)(s->cluster_n - 1) / (double)s->cluster_n +
           b * (double)(s->cluster_m - 1) / (double)s->cluster_m;
}

static void footprint(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                      kkt_footprint *out) {
    const sizes s = sizes_of(problem, config, arch);
    kkt_gemm_footprint(problem, config, KKT_STYLE_WARP_SPECIALIZED, THREADS, out);
    const double parts = (double)(s.cluster_k * s.split_k);
    const double tiles = (double)s.tiles;
    const double steps = tiles * (double)divide_up(problem->v[KKT_GEMM_K], s.bk) / parts;
    out->blocks = s.grid;
    out->chunks_per_block = divide_up(s.tiles, s.grid) * s.steps;
    out->cluster = (int)s.cluster;
    out->barriers = s.ping_pong || s.skew > 0 ? 4 : 2;
    out->min_blocks = 1;
    roles(&s, out);
    shared_memory(&s, out);
    kkt_footprint_step(out, KKT_STEP_GLOBAL_LOAD, 1, 0);
    kkt_footprint_step(out, KKT_STEP_PRODUCT, 1, 0);
    out->l2_read_bytes -= shared_loads(problem, &s);
    out->smem_wavefronts = steps * step_passes(&s) + tiles * tile_passes(&s);
    out->tensor_flop = steps * 2 * (double)(s.bm * s.bn * s.bk);
    out->instructions += steps * step_instructions(&s) + tiles * tile_instructions(&s);
}

/* ---- compiling and launching ---- */

static void defines(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                    kkt_text *out) {
    kkt_footprint fp;
    footprint(problem, config, arch, &fp);
    kkt_gemm_defines(problem, &fp, out);
    kkt_text_printf(out, "KKT_PRODUCER_REGISTERS=%d\n", fp.roles[1].declared_registers);
}

/* An operand where it is read, in boxes of a panel's columns. `share`: rows of the tile that a
 * block loads, where rows run along k. */
static void add_operand_map(kkt_launch *launch, const kkt_gemm_operand *o, int64_t share,
                            int64_t bk) {
    const int64_t rows = o->along_k ? share : bk;
    launch->args[launch->arg_count++] =
        (kkt_arg){.kind = KKT_ARG_TENSOR_MAP,
                  .tensor = o->padded ? KKT_GEMM_TENSOR_PADDED : o->tensor,
                  .map = {.rank = 2,
                          .first = o->padded ? o->at : 0,
                          .dims = {o->columns, o->rows},
                          .strides_bytes = {0, o->stride * 2},
                          .box = {PANEL, (int)rows},
                          .swizzle_bytes = 128,
                          .promotion_bytes = 256}};
}

/* C in boxes of 64 x 64. Where its rows are no whole units there is no such map; the kernel does
 * not look at the one of A that stands in its place. */
static void add_output_map(kkt_launch *launch, const kkt_values *problem) {
    const int64_t *p = problem->v;
    if (p[KKT_GEMM_N] % KKT_GEMM_UNIT != 0) {
        launch->args[launch->arg_count] = launch->args[0];
        launch->arg_count++;
        return;
    }
    launch->args[launch->arg_count++] = (kkt_arg){.kind = KKT_ARG_TENSOR_MAP,
                                                  .tensor = KKT_GEMM_TENSOR_C,
                                                  .map = {.rank = 2,
                                                          .dims = {p[KKT_GEMM_N], p[KKT_GEMM_M]},
                                                          .strides_bytes = {0, p[KKT_GEMM_N] * 2},
                                                          .box = {PANEL, PANEL},
                                                          .swizzle_bytes = 128}};
}

static void add_reduction(const kkt_values *problem, kkt_plan *out) {
    const int64_t elements = problem->v[KKT_GEMM_M] * problem->v[KKT_GEMM_N];
    const int64_t each = problem->v[KKT_GEMM_N] % KKT_GEMM_UNIT == 0 ? REDUCED_UNIT : 1;
    kkt_launch *launch =
        kkt_gemm_plan_launch(out, "gemm_reduce_parts",
                             divide_up(divide_up(elements, each), REDUCE_THREADS), REDUCE_THREADS);
    kkt_gemm_add_tensor(launch, KKT_GEMM_TENSOR_PARTIALS);
    kkt_gemm_add_tensor(launch, KKT_GEMM_TENSOR_C);
    kkt_gemm_add_i64(launch, elements);
}

static void plan(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                 kkt_plan *out) {
    const sizes s = sizes_of(problem, config, arch);
    const kkt_gemm_operand a = kkt_gemm_a(problem), b = kkt_gemm_b(problem);
    kkt_footprint fp;
    footprint(problem, config, arch, &fp);
    kkt_gemm_plan_begin(problem, out);
    kkt_launch *launch = kkt_gemm_plan_launch(out, "gemm_warp_specialized", s.grid, THREADS);
    launch->dynamic_smem_bytes = kkt_footprint_smem_bytes(&fp);
    if (s.cluster > 1) {
        launch->cluster[0] = (uint32_t)s.cluster;
        launch->cluster[1] = launch->cluster[2] = 1;
    }
    add_operand_map(launch, &a, s.bm / s.cluster_n, s.bk);
    add_operand_map(launch, &b, s.bn / s.cluster_m, s.bk);
    add_output_map(launch, problem);
    kkt_gemm_add_tensor(launch, KKT_GEMM_TENSOR_C);
    kkt_gemm_add_tensor(launch, KKT_GEMM_TENSOR_PARTIALS);
    kkt_gemm_add_i32(launch, problem->v[KKT_GEMM_M]);
    kkt_gemm_add_i32(launch, problem->v[KKT_GEMM_N]);
    kkt_gemm_add_i32(launch, problem->v[KKT_GEMM_K]);
    if (s.split_k > 1)
        add_reduction(problem, out);
}

static const char *const sources[] = {"gemm/gemm_warp_specialized.cu",
                                      "device/convert.cuh",
                                      "device/mbarrier.cuh",
                                      "device/tensor_map.cuh",
                                      "device/types.cuh",
                                      "device/warp_roles.cuh",
                                      "gemm/repack.cuh",
                                      "gemm/ws_cluster.cuh",
                                      "gemm/ws_layout.cuh",
                                      "gemm/ws_output.cuh",
                                      "gemm/ws_parameters.cuh",
                                      "gemm/ws_partials.cuh",
                                      "gemm/ws_producer.cuh",
                                      "gemm/ws_products.cuh",
                                      "gemm/ws_reduce.cuh",
                                      "gemm/ws_schedule.cuh",
                                      "gemm/ws_wgmma.cuh",
                                      NULL};

const kkt_variant kkt_gemm_warp_specialized = {
    .style = KKT_STYLE_WARP_SPECIALIZED,
    .params = {"parameter", params, PARAMS},
    .source = "gemm/gemm_warp_specialized.cu",
    .sources = sources,
    .applicable = applicable,
    .footprint = footprint,
    .defines = defines,
    .plan = plan,
    .tolerance = kkt_gemm_tolerance,
};
