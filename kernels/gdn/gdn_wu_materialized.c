/* gdn_wu: a block multiplies T of one value head with block_d columns of K or of V, for one chunk
 * after the other where it has several. */
#include "kernels/gdn/materialized.h"

#include <stdio.h>

enum { CHUNK = KKT_GDN_CHUNK, BLOCK_D, THREADS, CHUNKS_PER_BLOCK, STAGES, PARAMS };

static const kkt_param params[PARAMS] = {
    [CHUNK] = {.name = "chunk",
               .macro = "KKT_CHUNK",
               .help = "tokens of a chunk",
               .count = 4,
               .values = {16, 32, 64, 128},
               .fallback = 64},
    [BLOCK_D] = {.name = "block_d",
                 .macro = "KKT_BLOCK_D",
                 .help = "columns of W or U that a block computes",
                 .count = 4,
                 .values = {32, 64, 128, 256},
                 .fallback = 64},
    [THREADS] = {.name = "threads",
                 .macro = "KKT_THREADS",
                 .help = "threads of a block",
                 .count = 3,
                 .values = {64, 128, 256},
                 .fallback = 128},
    [CHUNKS_PER_BLOCK] = {.name = "chunks_per_block",
                          .macro = "KKT_CHUNKS_PER_BLOCK",
                          .help = "neighbouring chunks that a block takes one after the other",
                          .count = 3,
                          .values = {1, 2, 4},
                          .fallback = 1},
    [STAGES] = {.name = "stages",
                .macro = "KKT_STAGES",
                .help = "chunks of a block that are loaded ahead",
                .count = 2,
                .values = {1, 2},
                .fallback = 1},
};

static bool applicable(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                       char *reason, size_t size) {
    const long long dk = problem->v[KKT_GDN_DK], dv = problem->v[KKT_GDN_DV];
    const long long chunk = config->v[CHUNK], block_d = config->v[BLOCK_D];
    const long long strips = chunk / 16, warps = config->v[THREADS] / 32;
    if (!kkt_gdn_has_tensor_copies(arch, reason, size))
        return false;
    if (dk % block_d != 0 || dv % block_d != 0) {
        kkt_reason(reason, size, "block_d %lld does not divide dk = %lld and dv = %lld", block_d,
                   dk, dv);
        return false;
    }
    if (warps > strips && block_d % (16 * (warps / strips)) != 0) {
        kkt_reason(reason, size,
                   "%lld warps leave less than 16 columns of %lld each for chunk %lld", warps,
                   block_d, chunk);
        return false;
    }
    if (config->v[STAGES] > config->v[CHUNKS_PER_BLOCK]) {
        kkt_reason(reason, size, "stages %lld is above chunks_per_block %lld",
                   (long long)config->v[STAGES], (long long)config->v[CHUNKS_PER_BLOCK]);
        return false;
    }
    return true;
}

/* ---- registers ---- */

/* Chunks of a block: one; several, one loaded at a time; several, the next loaded meanwhile. */
enum { ALONE, IN_TURN, AHEAD, ORDERS };
enum { PRODUCTS = 6, FIRST_PRODUCT = 8, PRODUCT_THAT_SPILLS = 256 };

/* What the compiler takes, by the registers of a thread's share of the product: 8, 16, 32 and so
 * on. Beside it there are T's operands and X's, one step's and the next one's, and addresses. With
 * one strip of 16 rows there is one step. As NVRTC 13.0 compiled 310 variants for sm_90a. */
static const short one_strip[PRODUCTS][ORDERS] = {{32, 32, 40}, {37, 38, 42},    {43, 62, 56},
                                                  {76, 76, 80}, {140, 140, 140}, {255, 255, 255}};
static const short strips[PRODUCTS][ORDERS] = {{40, 40, 51},    {51, 48, 57},    {71, 72, 74},
                                               {125, 127, 127}, {218, 222, 232}, {255, 255, 255}};

/* A warp's share of a block's product. */
typedef struct share {
    int64_t row_warps, column_warps, strips;
    int64_t product; /* registers a thread */
} share;

/* Warps share the strips of 16 rows, and the columns where there are more warps than strips. */
static share share_of(const int64_t *c) {
    const int64_t all = c[CHUNK] / 16, warps = c[THREADS] / 32;
    const int64_t row_warps = warps < all ? warps : all;
    const share s = {row_warps, warps / row_warps, all / row_warps, 0};
    return (share){s.row_warps, s.column_warps, s.strips,
                   s.strips * c[BLOCK_D] / s.column_warps / 2};
}

/* `scaled`: T has both beta and a gate to be multiplied with. */
static double registers(const int64_t *c, const share *s, bool scaled) {
    const int64_t all = c[CHUNK] / 16;
    const int order = c[CHUNKS_PER_BLOCK] == 1 ? ALONE : c[STAGES] == 1 ? IN_TURN : AHEAD;
    int row = 0;
    while (row < PRODUCTS - 1 && s->product > FIRST_PRODUCT << row)
        row++;
    double taken = all == 1 ? one_strip[row][order] : strips[row][order];
    /* The next chunk's addresses are computed while X is multiplied where that takes few steps. */
    if (order == AHEAD && !scaled && all > 1)
        taken -= 5;
    else if (order == AHEAD && s->product == 32 && s->strips == 1 && all > 1 &&
             (all == 2 || s->column_warps > 1))
        taken += 16;
    /* Four strips have fewer columns, and fewer of X's operands. */
    if (s->product == 128 && s->strips == 4)
        taken -= 15;
    return taken;
}

/* ---- instructions ---- */

/* Of a step, 16 of T's columns: the loop's own, and the factors with which T is multiplied. */
#define STEP_INSTRUCTIONS 41.0

/* A warp's, for a chunk: copies and results; `steps` with as many of T's blocks as it has strips
 * and X's operands each; `blocks` of T with two products each for 16 columns. */
static double warp_instructions(const int64_t *c, const share *s, double steps, double blocks) {
    const double columns = (double)c[BLOCK_D] / (double)s->column_warps / 16;
    const double units =
        (double)(c[CHUNK] * (c[CHUNK] + 2 * c[BLOCK_D])) / (double)(8 * c[THREADS]);
    return KKT_GDN_UNIT_INSTRUCTIONS * units + KKT_GDN_CHUNK_INSTRUCTIONS +
           steps * (STEP_INSTRUCTIONS + (double)s->strips + columns) + blocks * columns * 2;
}

/* Within 8 % of an H200's counters of 11 configurations. All warps wait for the one with the last
 * strip, which has the most steps and blocks. */
static void count_instructions(const int64_t *c, const share *s, double items, kkt_footprint *out) {
    const double all = (double)c[CHUNK] / 16, warps = (double)c[THREADS] / 32;
    const double rows = (double)s->row_warps, own = (double)s->strips;
    const double steps = rows * (own - 1) + (rows + 1) / 2; /* a warp, on the average */
    const double blocks = all * (all + 1) / 2 / rows;
    out->instructions = items * warps * warp_instructions(c, s, steps, blocks);
    out->block_instructions = (double)c[CHUNKS_PER_BLOCK] * warps *
                              warp_instructions(c, s, all, rows * own * (own + 1) / 2);
    out->instruction_cycles = kkt_gdn_meeting_cycles(c[THREADS] / 32);
}

static void footprint(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                      kkt_footprint *out) {
    const int64_t *c = config->v;
    const kkt_attention a = kkt_gdn_attention(problem);
    const int64_t chunk = c[CHUNK], block_d = c[BLOCK_D], threads = c[THREADS];
    const int64_t splits = (a.dk + a.dv) / block_d;
    const bool t_beta = problem->v[KKT_GDN_T_FORM] == KKT_GDN_T_BETA;
    (void)arch;
    *out = (kkt_footprint){.style = KKT_STYLE_MATERIALIZED,
                           .chunk = (int)chunk,
                           .tokens = a.tokens,
                           .blocks = (kkt_gdn_slots(problem, chunk) + c[CHUNKS_PER_BLOCK] - 1) /
                                     c[CHUNKS_PER_BLOCK] * a.heads_v * splits,
                           .chunks_per_block = c[CHUNKS_PER_BLOCK],
                           .threads = (int)threads,
                           .cluster = 1,
                           .barriers = 1,
                           .launches = 1};
    out->hbm_write_bytes = (double)(a.tokens * a.heads_v * (a.dk + a.dv) * a.element_bytes);
    out->hbm_read_bytes = (double)kkt_traffic_wu_bytes(&a, chunk, t_beta) - out->hbm_write_bytes;
    const int64_t scalars = (t_beta ? 0 : 4) + (a.gated ? 4 : 0);
    out->l2_read_bytes = (double)(a.tokens * a.heads_v) *
                         (double)(a.element_bytes * (a.dk + a.dv) + /* k is read by each head */
                                  splits * (a.element_bytes * chunk + scalars));

    kkt_gdn_shared_tile(out, "t", chunk, chunk, a.element_bytes, c[STAGES]);
    kkt_gdn_shared_tile(out, "x", chunk, block_d, a.element_bytes, c[STAGES]);
    kkt_gdn_shared_tile(out, "factors", 1, chunk, 4, 1);
    const share s = share_of(c);
    kkt_gdn_register_table(out, "product", threads, s.product, 0);
    kkt_footprint_role(out, "all", (int)threads);
    kkt_gdn_registers_taken(out, 0, registers(c, &s, a.gated && !t_beta));
    out->roles[0].least_registers =
        s.product >= PRODUCT_THAT_SPILLS ? KKT_GDN_NEVER_ENOUGH : KKT_GDN_ALWAYS_ENOUGH;

    /* Strips of 16 rows meet those before them alone. */
    const int64_t all = chunk / 16;
    const double tiles = (double)(all * (all + 1)) / 2;
    const double items = (double)kkt_attention_chunks(&a, chunk) * (double)(a.heads_v * splits);
    out->mma_sync_flop = items * tiles * 2 * 256 * (double)block_d;
    out->fp32_flop = items * tiles * 256;
    /* ldmatrix of T's blocks and, for all strips of a warp at once, of X; the result goes through
     * the tile once more. */
    const double rows =
        (double)(s.row_warps * (2 * s.row_warps * (s.strips - 1) + s.row_warps + 1)) / 2;
    const double t_passes = rows * 4 * (double)(s.strips * s.column_warps);
    const double x_passes = rows * (double)block_d / 16 * 4;
    const double staged = (double)(chunk * block_d * 2) / 128;
    out->smem_wavefronts = items * (t_passes + x_passes + 2 * staged);
    count_instructions(c, &s, items, out);
    kkt_footprint_step(out, KKT_STEP_GLOBAL_LOAD, 1, 0);
    kkt_footprint_step(out, KKT_STEP_BARRIER, 2, 0);
    kkt_footprint_step(out, KKT_STEP_PRODUCT, 1, (double)chunk);
    kkt_footprint_step(out, KKT_STEP_STORE, 1, 0);
}

static void defines(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                    kkt_text *out) {
    kkt_footprint fp;
    footprint(problem, config, arch, &fp);
    kkt_gdn_defines(problem, &fp, out);
    kkt_text_printf(out, "KKT_T_FORM=%lld\n", (long long)problem->v[KKT_GDN_T_FORM]);
}

static void plan(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                 kkt_plan *out) {
    const int64_t *p = problem->v;
    const int64_t splits = (p[KKT_GDN_DK] + p[KKT_GDN_DV]) / config->v[BLOCK_D];
    kkt_footprint fp;
    footprint(problem, config, arch, &fp);
    kkt_launch *launch = kkt_gdn_plan_begin("gdn_wu", &fp, p[KKT_GDN_HEADS_V] * splits, out);
    for (int i = 0; i < KKT_WU_TENSORS; i++)
        kkt_gdn_add_tensor(launch, i);
    kkt_gdn_add_i64(launch, p[KKT_GDN_TOKENS] / p[KKT_GDN_BATCH]);
    kkt_gdn_add_i32(launch, p[KKT_GDN_SEQUENCES]);
    kkt_gdn_add_i32(launch, p[KKT_GDN_HEADS_K]);
    kkt_gdn_add_i32(launch, p[KKT_GDN_HEADS_V]);
    kkt_gdn_add_i32(launch, kkt_gdn_slots(problem, config->v[CHUNK]));
}

static const char *const sources[] = {
    "gdn/gdn_wu.cu",        "device/async_copy.cuh",
    "device/convert.cuh",   "device/copy_groups.cuh",
    "device/decay.cuh",     "device/fragment.cuh",
    "device/gate.cuh",      "device/matrix_move.cuh",
    "device/mma_sync.cuh",  "device/panel_tile.cuh",
    "device/tile_math.cuh", "device/types.cuh",
    "gdn/sequences.cuh",    NULL,
};

const kkt_variant kkt_gdn_wu_materialized = {
    .style = KKT_STYLE_MATERIALIZED,
    .params = {"parameter", params, PARAMS},
    .source = "gdn/gdn_wu.cu",
    .sources = sources,
    .applicable = applicable,
    .footprint = footprint,
    .defines = defines,
    .plan = plan,
    .tolerance = kkt_gdn_tolerance,
};
