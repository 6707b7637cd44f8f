/* The warp-specialized style of gemm: TMA, mbarriers and wgmma. What a block holds and does, and
 * how it is launched. */
#include "kernels/gemm/warp_specialized.h"
#include "base/integer.h"

enum {
    REDUCE_THREADS = 256,
    REDUCED_UNIT = 4 /* elements a thread adds up where rows of c are whole units */
};

/* ---- footprint ---- */

static void shared_tile(kkt_footprint *fp, const char *name, int64_t rows, int64_t columns,
                        int element_bytes, int64_t stages) {
    kkt_footprint_buffer(fp, KKT_PLACE_SHARED, name, rows, columns, element_bytes)->stages =
        (int)stages;
}

/* As in ws_layout.cuh. */
static void shared_memory(const kkt_gemm_ws *s, kkt_footprint *fp) {
    shared_tile(fp, "a", s->bm, s->bk, 2, s->stages);
    shared_tile(fp, "b", s->bn, s->bk, 2, s->stages);
    shared_tile(fp, "c", KKT_GEMM_WS_GROUPS * KKT_GEMM_PANEL, KKT_GEMM_PANEL * s->store_panels, 2,
                1);
    if (s->cluster_k > 1)
        shared_tile(fp, "sums", s->bm, s->bn / s->cluster_k, 4, s->cluster_k - 1);
    shared_tile(fp, "full", 1, 1, 8, s->stages);
    shared_tile(fp, "empty", 1, 1, 8, s->stages);
    shared_tile(fp, "received", 1, 2, 8, 1);
}

static void roles(const kkt_gemm_ws *s, kkt_footprint *fp) {
    const int threads = KKT_GEMM_WS_GROUPS * KKT_GEMM_WARPGROUP;
    kkt_footprint_role(fp, "multiply", threads)->declared_registers = (int)s->registers;
    kkt_footprint_role(fp, "load", KKT_GEMM_WARPGROUP)->declared_registers = (int)s->load_registers;
    kkt_footprint_buffer(fp, KKT_PLACE_REGISTER, "sums", KKT_GEMM_WS_GROUPS * s->group_rows, s->bn,
                         4);
}

/* 128-byte passes of a step along k: for every 64 rows of the tile wgmma reads these of a and all
 * of b. What TMA writes takes another way (l1tex__data_pipe_lsu_wavefronts is 54 % where these
 * passes are 53 % of the cycles, and 70 % where they are 68 %). */
static double step_passes(const kkt_gemm_ws *s) {
    const double row = (double)s->bk * 2 / 128, blocks = (double)s->bm / KKT_GEMM_PANEL;
    return row * blocks * (double)(KKT_GEMM_PANEL + s->bn);
}

/* Of a tile's end: c is staged and read, and partial sums go to and come from other blocks. */
static double tile_passes(const kkt_gemm_ws *s) {
    const double elements = (double)(s->bm * s->bn), parts = (double)s->cluster_k;
    const double staged = s->split_k > 1 ? 0 : elements / parts * 2 * 2 / 128;
    return staged + elements * (parts - 1) / parts * 4 * 2 / 128;
}

/* Warp instructions as compiled for sm_90a: a step's loop, and the end's conversions, stores and
 * exchange. */
static double step_instructions(const kkt_gemm_ws *s) {
    const double products = (double)(s->bk * s->group_rows) / (16 * KKT_GEMM_PANEL);
    const double groups = s->ping_pong ? 1 : KKT_GEMM_WS_GROUPS;
    return 4 * groups * (30 + 5 * products) + 40;
}

static double tile_instructions(const kkt_gemm_ws *s) {
    const double fragments = (double)(s->bm * s->bn) / (16 * 64); /* of 16 x 64, a warp's */
    const double exchanged = s->cluster_k > 1 ? 40 * fragments : 0;
    return 60 * fragments + exchanged + 400;
}

/* In the time model's units: its FMA and its step of storing, in cycles. */
#define FMA_CYCLES 2.0
#define STORE_CYCLES 300.0
/* From handing back a stage until its next tiles are there, when all SMs load: what a deeper ring
 * saved at 4096 x 4096 x 4096 on an H200 with tiles of 128 x 128, by steps of 64 and of 128. */
#define REFILL_CYCLES 1000.0
#define REFILL_BYTES 37.0 /* a cycle and SM */
/* A tile's end when nothing hides it, for a sum of a thread: conversion, staging, stores, the next
 * tile's first products (some 3,600 cycles for the 128 sums of 128 x 256 on an H200), and less
 * where TMA takes all of them at once. In turns it is hidden. */
#define END_CYCLES 28.0
#define END_AT_ONCE_CYCLES 24.0
/* Start of a block whose SM did not run one before: barriers, first loads. */
#define FILL_CYCLES 3000.0

/* How many blocks get a tile of a, and of b, for one read of L2: those of a cluster, and without
 * clusters the two SMs side by side, whose blocks have tiles below one another (or beside, where
 * there is one row). Their requests come at one time and are answered together: at
 * 4096 x 4096 x 4096 with tiles of 128 x 256 an H200 counted 0.86 GB of reads (lts__t_sectors) for
 * 1.61 GB that reached the SMs (l1tex__m_xbar2l1tex), and 1.04 GB with clusters of two. */
typedef struct sharing {
    double a, b;
} sharing;

static sharing blocks_a_read(const kkt_gemm_ws *s) {
    sharing out = {(double)s->cluster_n, (double)s->cluster_m};
    if (s->cluster == 1 && s->rows > 1 && (s->raster > 1 || s->columns == 1))
        out.b = 2;
    else if (s->cluster == 1 && s->columns > 1)
        out.a = 2;
    return out;
}

/* The steps of a block that follow one another, for each step along k. */
static void chain(const kkt_gemm_ws *s, const kkt_arch *arch, kkt_footprint *out) {
    const double rate = kkt_device_tensor_rate(kkt_device_first(arch), arch).value;
    const double products = 2.0 * (double)(s->bm * s->bn * s->bk) / rate;
    const sharing blocks = blocks_a_read(s);
    const double bytes = ((double)s->bm / blocks.a + (double)s->bn / blocks.b) * (double)s->bk * 2;
    const double refill = (REFILL_CYCLES + bytes / REFILL_BYTES) / (double)(s->stages - 1);
    const double sums = (double)(s->group_rows * s->bn) / KKT_GEMM_WARPGROUP;
    const bool hidden = s->ping_pong && s->tiles > s->grid;
    const bool at_once = s->bulk_store && s->store_panels * KKT_GEMM_PANEL == s->bn;
    const double end = (hidden ? 0 : sums * (at_once ? END_AT_ONCE_CYCLES : END_CYCLES)) +
                       (s->persistent ? 0 : FILL_CYCLES);
    kkt_footprint_step(out, KKT_STEP_GLOBAL_LOAD, 1, 0);
    kkt_footprint_step(out, KKT_STEP_PRODUCT, 1,
                       (products > refill ? products : refill) / FMA_CYCLES);
    kkt_footprint_step(out, KKT_STEP_STORE, end / STORE_CYCLES / (double)s->steps, 0);
}

/* Bytes that L2 need not read for a block since it does for another one. */
static double shared_loads(const kkt_values *problem, const kkt_gemm_ws *s) {
    const int64_t *p = problem->v;
    const double element = 2.0 * (double)p[KKT_GEMM_K];
    const double a = (double)(p[KKT_GEMM_M] * kkt_divide_up(p[KKT_GEMM_N], s->bn)) * element;
    const double b = (double)(p[KKT_GEMM_N] * kkt_divide_up(p[KKT_GEMM_M], s->bm)) * element;
    const sharing blocks = blocks_a_read(s);
    return a * (blocks.a - 1) / blocks.a + b * (blocks.b - 1) / blocks.b;
}

/* What runs at one time: a tile of each cluster that is resident. */
static kkt_gemm_waves waves_of(const kkt_values *problem, const kkt_gemm_ws *s) {
    return (kkt_gemm_waves){.m = problem->v[KKT_GEMM_M],
                            .n = problem->v[KKT_GEMM_N],
                            .height = s->bm * s->cluster_m,
                            .width = s->bn * s->cluster_n,
                            .group = s->raster,
                            .at_once = s->resident / s->cluster,
                            .parts = s->split_k,
                            .line_bytes = 2.0 * (double)problem->v[KKT_GEMM_K]};
}

static void footprint(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                      kkt_footprint *out) {
    const kkt_gemm_ws s = kkt_gemm_ws_sizes(problem, config, arch);
    kkt_gemm_footprint(problem, config, KKT_STYLE_WARP_SPECIALIZED, KKT_GEMM_WS_THREADS, out);
    const double tiles = (double)s.tiles;
    const double steps = tiles * (double)s.k_steps / (double)(s.cluster_k * s.split_k);
    const kkt_gemm_waves waves = waves_of(problem, &s);
    out->blocks = s.grid;
    out->chunks_per_block = kkt_divide_up(s.tiles, s.grid) * s.steps;
    out->all_chunks = s.persistent ? (double)(s.tiles * s.steps) : 0; /* blocks come whole */
    out->cluster = (int)s.cluster;
    out->barriers = s.ping_pong ? 6 : 4;
    out->min_blocks = 1;
    roles(&s, out);
    shared_memory(&s, out);
    chain(&s, arch, out);
    out->l2_read_bytes -= shared_loads(problem, &s);
    kkt_gemm_reread(&waves, arch, out);
    out->wgmma_wavefronts = steps * step_passes(&s);
    out->smem_wavefronts = tiles * tile_passes(&s);
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
                            const kkt_gemm_ws *s) {
    launch->args[launch->arg_count++] =
        (kkt_arg){.kind = KKT_ARG_TENSOR_MAP,
                  .tensor = o->padded ? KKT_GEMM_TENSOR_PADDED : o->tensor,
                  .map = {.rank = 2,
                          .first = o->padded ? o->at : 0,
                          .dims = {o->columns, o->rows},
                          .strides_bytes = {0, o->stride * 2},
                          .box = {KKT_GEMM_PANEL, (int)(o->along_k ? share : s->bk)},
                          .swizzle_bytes = 128,
                          .promotion_bytes = (int)s->promotion}};
}

/* c in boxes of 64 x 64. Where its rows are no whole units there is no such map; the kernel does
 * not look at the one of a that stands in its place. */
static void add_output_map(kkt_launch *launch, const kkt_values *problem) {
    const int64_t *p = problem->v;
    const kkt_arg map = {.kind = KKT_ARG_TENSOR_MAP,
                         .tensor = KKT_GEMM_TENSOR_C,
                         .map = {.rank = 2,
                                 .dims = {p[KKT_GEMM_N], p[KKT_GEMM_M]},
                                 .strides_bytes = {0, p[KKT_GEMM_N] * 2},
                                 .box = {KKT_GEMM_PANEL, KKT_GEMM_PANEL},
                                 .swizzle_bytes = 128}};
    launch->args[launch->arg_count] = p[KKT_GEMM_N] % KKT_GEMM_UNIT == 0 ? map : launch->args[0];
    launch->arg_count++;
}

static void add_reduction(const kkt_values *problem, kkt_plan *out) {
    const int64_t elements = problem->v[KKT_GEMM_M] * problem->v[KKT_GEMM_N];
    const int64_t each = problem->v[KKT_GEMM_N] % KKT_GEMM_UNIT == 0 ? REDUCED_UNIT : 1;
    kkt_launch *launch = kkt_gemm_plan_launch(
        out, "gemm_reduce_parts", kkt_divide_up(kkt_divide_up(elements, each), REDUCE_THREADS),
        REDUCE_THREADS);
    kkt_gemm_add_tensor(launch, KKT_GEMM_TENSOR_PARTIALS);
    kkt_gemm_add_tensor(launch, KKT_GEMM_TENSOR_C);
    kkt_gemm_add_i64(launch, elements);
}

static void plan(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                 kkt_plan *out) {
    const kkt_gemm_ws s = kkt_gemm_ws_sizes(problem, config, arch);
    const kkt_gemm_operand a = kkt_gemm_a(problem), b = kkt_gemm_b(problem);
    kkt_footprint fp;
    footprint(problem, config, arch, &fp);
    kkt_gemm_plan_begin(problem, out);
    kkt_launch *launch =
        kkt_gemm_plan_launch(out, "gemm_warp_specialized", s.grid, KKT_GEMM_WS_THREADS);
    launch->dynamic_smem_bytes = kkt_footprint_smem_bytes(&fp);
    if (s.cluster > 1) {
        launch->cluster[0] = (uint32_t)s.cluster;
        launch->cluster[1] = launch->cluster[2] = 1;
    }
    add_operand_map(launch, &a, s.bm / s.cluster_n, &s);
    add_operand_map(launch, &b, s.bn / s.cluster_m, &s);
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
                                      "device/named_barrier.cuh",
                                      "device/tensor_map.cuh",
                                      "device/types.cuh",
                                      "device/uniform.cuh",
                                      "device/warp_roles.cuh",
                                      "gemm/repack.cuh",
                                      "gemm/ws_barrier.cuh",
                                      "gemm/ws_cluster.cuh",
                                      "gemm/ws_layout.cuh",
                                      "gemm/ws_output.cuh",
                                      "gemm/ws_parameters.cuh",
                                      "gemm/ws_partials.cuh",
                                      "gemm/ws_producer.cuh",
                                      "gemm/ws_products.cuh",
                                      "gemm/ws_reduce.cuh",
                                      "gemm/ws_schedule.cuh",
                                      "gemm/ws_thread.cuh",
                                      "gemm/ws_wgmma.cuh",
                                      NULL};

const kkt_variant kkt_gemm_warp_specialized = {
    .style = KKT_STYLE_WARP_SPECIALIZED,
    .params = {"parameter", kkt_gemm_ws_params, KKT_GEMM_WS_PARAMS},
    .source = "gemm/gemm_warp_specialized.cu",
    .sources = sources,
    .applicable = kkt_gemm_ws_applicable,
    .footprint = footprint,
    .defines = defines,
    .plan = plan,
    .tolerance = kkt_gemm_tolerance,
};
