/* gdn_output: a block computes block_dv columns of o for one chunk of one value head. */
#include "kernels/gdn/materialized.h"

#include <math.h>
#include <stdio.h>

enum { CHUNK = KKT_GDN_CHUNK, BLOCK_DV, THREADS, STAGES, PARAMS };

static const kkt_param params[PARAMS] = {
    [CHUNK] = {.name = "chunk",
               .macro = "KKT_CHUNK",
               .help = "tokens of a chunk",
               .count = 4,
               .values = {16, 32, 64, 128},
               .fallback = 64},
    [BLOCK_DV] = {.name = "block_dv",
                  .macro = "KKT_BLOCK_DV",
                  .help = "columns of o that a block computes",
                  .count = 4,
                  .values = {32, 64, 128, 256},
                  .fallback = 64},
    [THREADS] = {.name = "threads",
                 .macro = "KKT_THREADS",
                 .help = "threads of a block",
                 .count = 3,
                 .values = {64, 128, 256},
                 .fallback = 128},
    [STAGES] = {.name = "stages",
                .macro = "KKT_STAGES",
                .help = "1: a block waits for all of q, k, h and v_new; 2: for q and k, then for h "
                        "and v_new",
                .count = 2,
                .values = {1, 2},
                .fallback = 2},
};

static bool applicable(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                       char *reason, size_t size) {
    const long long chunk = config->v[CHUNK], block_dv = config->v[BLOCK_DV];
    const long long strips = chunk / 16, warps = config->v[THREADS] / 32;
    if (!kkt_gdn_has_tensor_copies(arch, reason, size) ||
        !kkt_gdn_block_dv_fits(problem, block_dv, reason, size))
        return false;
    if (warps < strips) {
        kkt_reason(reason, size, "%lld warps are fewer than the %lld strips of 16 rows", warps,
                   strips);
        return false;
    }
    if (block_dv % (16 * (warps / strips)) != 0) {
        kkt_reason(reason, size,
                   "%lld warps leave less than 16 columns of %lld each for chunk %lld", warps,
                   block_dv, chunk);
        return false;
    }
    return true;
}

/* ---- registers ---- */

enum { SHARES = 5, FIRST_SHARE = 8 };

/* What the compiler takes beside the operands of a warp's rows of Q, which are dk / 4 registers: o,
 * P's operands, those of K, h and V' in flight, and addresses. A row a chunk of 16, 32, 64, 128; a
 * column 8, 16, 32, 64, 128 registers of o. As NVRTC 13.0 compiled 200 variants for sm_90a. */
static const short beside_q[KKT_GDN_CHUNKS][SHARES] = {
    {32, 44, 72, 104, 220}, {40, 48, 84, 131, 255}, {48, 61, 92, 141, 255}, {56, 85, 93, 178, 255}};

/* More or fewer by the head: a long one's operands of K and h come in more steps ahead, but for one
 * strip, which has too few products to hide them behind; a short one keeps to 80 or 96 registers,
 * with which another block is resident. */
static int64_t of_head(int64_t dk, int row, int column) {
    if (dk > 128)
        return row == 0 ? -12 : 7;
    const bool step_near = (row == 1 && column >= 2) || (row == 2 && column == 2);
    return dk <= 64 && step_near ? -15 : 0;
}

static void set_registers(kkt_footprint *fp, const int64_t *c, int64_t dk, int64_t o) {
    const int row = kkt_gdn_chunk_index(c[CHUNK]);
    int column = 0;
    while (column < SHARES - 1 && o > FIRST_SHARE << column)
        column++;
    const int64_t q = dk / 4;
    kkt_gdn_registers_taken(fp, 0, (double)(q + beside_q[row][column] + of_head(dk, row, column)));
    /* 128 registers of o spill, beside two strips' P or more. With a chunk of one strip the
     * compiler tries for 56 or 64 registers in all, where that makes room for another warp. */
    const bool spills = column == SHARES - 1 && row > 0;
    const bool may = row == 0 && column == 0 && c[STAGES] == 1 && dk >= 128;
    fp->roles[0].least_registers = spills ? KKT_GDN_NEVER_ENOUGH : KKT_GDN_ALWAYS_ENOUGH;
    fp->roles[0].enough_registers = spills || may ? KKT_GDN_NEVER_ENOUGH : KKT_GDN_ALWAYS_ENOUGH;
}

/* ---- instructions ---- */

/* Of 32 units of 16 bytes that threads copy or write, and of a 16 x 16 block of P with its decays.
 * No counters of this family are recorded: fitted to its times, 32 configurations. */
#define UNIT_INSTRUCTIONS 20.0
#define SCORE_INSTRUCTIONS 70.0

/* A warp's: what it copies and writes, its rows of Q, and, of `scores` blocks of P and all of h,
 * an operand and two products for each 16 columns. */
static double warp_instructions(const int64_t *c, double dk, double columns, double scores) {
    const double chunk = (double)c[CHUNK], block_dv = (double)c[BLOCK_DV], steps = dk / 16;
    const double units = (2 * chunk * dk + (dk + 2 * chunk) * block_dv) / 8 / (double)c[THREADS];
    return UNIT_INSTRUCTIONS * units + KKT_GDN_CHUNK_INSTRUCTIONS + steps +
           scores * (3 * steps + SCORE_INSTRUCTIONS) + (steps + scores) * columns / 16 * 3;
}

/* All warps wait for those of the last strip, with the most blocks of P. */
static void count_instructions(const int64_t *c, double dk, double columns, double items,
                               kkt_footprint *out) {
    const double strips = (double)c[CHUNK] / 16, warps = (double)c[THREADS] / 32;
    out->instructions = items * warps * warp_instructions(c, dk, columns, (strips + 1) / 2);
    out->block_instructions = warps * warp_instructions(c, dk, columns, strips);
    out->instruction_cycles = kkt_gdn_meeting_cycles(c[THREADS] / 32);
}

static void footprint(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                      kkt_footprint *out) {
    const int64_t *c = config->v;
    const kkt_attention a = kkt_gdn_attention(problem);
    const int64_t chunk = c[CHUNK], block_dv = c[BLOCK_DV], threads = c[THREADS];
    const int64_t strips = chunk / 16, sharing = threads / 32 / strips, splits = a.dv / block_dv;
    (void)arch;
    *out = (kkt_footprint){.style = KKT_STYLE_MATERIALIZED,
                           .chunk = (int)chunk,
                           .tokens = a.tokens,
                           .blocks = kkt_gdn_slots(problem, chunk) * a.heads_v * splits,
                           .chunks_per_block = 1,
                           .threads = (int)threads,
                           .cluster = 1,
                           .barriers = 1,
                           .launches = 1};
    out->hbm_write_bytes = (double)(a.tokens * a.heads_v * a.dv * a.element_bytes);
    out->hbm_read_bytes = (double)kkt_traffic_output_bytes(&a, chunk) - out->hbm_write_bytes;
    const double items = (double)kkt_attention_chunks(&a, chunk) * (double)(a.heads_v * splits);
    out->l2_read_bytes =
        items * (double)((2 * chunk * a.dk + (a.dk + chunk) * block_dv) * a.element_bytes +
                         (a.gated ? 4 : 0) * chunk);

    kkt_gdn_shared_tile(out, "q", chunk, a.dk, a.element_bytes, 1);
    kkt_gdn_shared_tile(out, "k", chunk, a.dk, a.element_bytes, 1);
    kkt_gdn_shared_tile(out, "h", a.dk, block_dv, a.element_bytes, 1);
    kkt_gdn_shared_tile(out, "v_new", chunk, block_dv, a.element_bytes, 1);
    if (a.gated)
        kkt_gdn_shared_tile(out, "factors", 2, chunk, 4, 1);
    const int64_t o = block_dv / sharing / 2; /* registers a thread */
    kkt_gdn_register_table(out, "q", threads, a.dk / 4, 0);
    kkt_gdn_register_table(out, "p", threads, chunk / 4, 0);
    kkt_gdn_register_table(out, "o", threads, o, 0);
    kkt_footprint_role(out, "all", (int)threads);
    set_registers(out, c, a.dk, o);

    /* Strips of 16 rows of p meet those before them alone. */
    const double tiles = (double)(strips * (strips + 1)) / 2;
    const double q_h = (double)(chunk * a.dk * block_dv);
    const double products = tiles * 256 * (double)(a.dk * sharing + block_dv) + q_h;
    out->mma_sync_flop = items * 2 * products;
    out->fp32_flop = items * tiles * 256 * 2 * (double)sharing;
    /* ldmatrix of 512 bytes serves 16 x 16 of a B operand; q by each warp of its strip. */
    const double passes = products / (16 * 256) * 4 + (double)(chunk * a.dk * 2 * sharing) / 128;
    const double staged = (double)(chunk * block_dv * 2) / 128;
    out->smem_wavefronts = items * (passes + 2 * staged);
    const int64_t columns = block_dv / sharing;
    count_instructions(c, (double)a.dk, (double)columns, items, out);
    kkt_footprint_step(out, KKT_STEP_GLOBAL_LOAD, 1, 0);
    kkt_footprint_step(out, KKT_STEP_BARRIER, 2, 0);
    kkt_footprint_step(out, KKT_STEP_PRODUCT, 2, (double)a.dk);
    kkt_footprint_step(out, KKT_STEP_STORE, 1, 0);
}

static void defines(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                    kkt_text *out) {
    kkt_footprint fp;
    footprint(problem, config, arch, &fp);
    kkt_gdn_defines(problem, &fp, out);
}

static void plan(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                 kkt_plan *out) {
    const int64_t *p = problem->v;
    const int64_t splits = p[KKT_GDN_DV] / config->v[BLOCK_DV];
    kkt_footprint fp;
    footprint(problem, config, arch, &fp);
    kkt_launch *launch = kkt_gdn_plan_begin("gdn_output", &fp, p[KKT_GDN_HEADS_V] * splits, out);
    for (int i = 0; i < KKT_OUTPUT_TENSORS; i++)
        kkt_gdn_add_tensor(launch, i);
    kkt_gdn_add_i64(launch, p[KKT_GDN_TOKENS] / p[KKT_GDN_BATCH]);
    kkt_gdn_add_i32(launch, p[KKT_GDN_SEQUENCES]);
    kkt_gdn_add_i32(launch, p[KKT_GDN_HEADS_K]);
    kkt_gdn_add_i32(launch, p[KKT_GDN_HEADS_V]);
    kkt_gdn_add_i32(launch, kkt_gdn_slots(problem, config->v[CHUNK]));
    kkt_gdn_add_f32(launch, 1.0 / sqrt((double)p[KKT_GDN_DK]));
}

static const char *const sources[] = {
    "gdn/gdn_output.cu",    "device/async_copy.cuh",
    "device/convert.cuh",   "device/copy_groups.cuh",
    "device/decay.cuh",     "device/fragment.cuh",
    "device/gate.cuh",      "device/matrix_move.cuh",
    "device/mma_sync.cuh",  "device/panel_tile.cuh",
    "device/tile_math.cuh", "device/types.cuh",
    "gdn/sequences.cuh",    NULL,
};

const kkt_variant kkt_gdn_output_materialized = {
    .style = KKT_STYLE_MATERIALIZED,
    .params = {"parameter", params, PARAMS},
    .source = "gdn/gdn_output.cu",
    .sources = sources,
    .applicable = applicable,
    .footprint = footprint,
    .defines = defines,
    .plan = plan,
    .tolerance = kkt_gdn_tolerance,
};
