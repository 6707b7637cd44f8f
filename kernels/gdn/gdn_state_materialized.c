/* gdn_state: a block walks the chunks of one sequence with block_dv columns of one value head's
 * state; each warp that computes keeps warp_dv of them, transposed, in its registers. */
#include "kernels/gdn/materialized.h"

#include <stdio.h>

enum { CHUNK = KKT_GDN_CHUNK, BLOCK_DV, WARP_DV, COPY_WARPS, STAGES, WRITER, PARAMS };
enum { COMPUTE_WRITES, COPY_WRITES };

static const char *const writer_names[] = {"compute", "copy"};

static const kkt_param params[PARAMS] = {
    [CHUNK] = {.name = "chunk",
               .macro = "KKT_CHUNK",
               .help = "tokens of a chunk",
               .count = 4,
               .values = {16, 32, 64, 128},
               .fallback = 64},
    [BLOCK_DV] = {.name = "block_dv",
                  .macro = "KKT_BLOCK_DV",
                  .help = "columns of the state that a block holds",
                  .count = 4,
                  .values = {16, 32, 64, 128},
                  .fallback = 64},
    [WARP_DV] = {.name = "warp_dv",
                 .macro = "KKT_WARP_DV",
                 .help = "columns of the state that a warp holds",
                 .count = 2,
                 .values = {16, 32},
                 .fallback = 16},
    [COPY_WARPS] = {.name = "copy_warps",
                    .macro = "KKT_COPY_WARPS",
                    .help = "warps that load the ring and hold no state",
                    .count = 3,
                    .values = {1, 2, 4},
                    .fallback = 4},
    [STAGES] = {.name = "stages",
                .macro = "KKT_STAGES",
                .help = "slots of the ring of w, k and u",
                .count = 3,
                .values = {2, 3, 4},
                .fallback = 2},
    [WRITER] = {.name = "writer",
                .macro = "KKT_WRITER",
                .help = "warps that write h and v_new: those that compute, each its columns, or "
                        "those that copy, a chunk later",
                .count = 2,
                .values = {COMPUTE_WRITES, COPY_WRITES},
                .names = writer_names,
                .fallback = COMPUTE_WRITES},
};

static bool applicable(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                       char *reason, size_t size) {
    const long long block_dv = config->v[BLOCK_DV], warp_dv = config->v[WARP_DV];
    if (!kkt_gdn_has_tensor_copies(arch, reason, size) ||
        !kkt_gdn_block_dv_fits(problem, block_dv, reason, size))
        return false;
    if (warp_dv > block_dv) {
        kkt_reason(reason, size, "warp_dv %lld is above block_dv %lld", warp_dv, block_dv);
        return false;
    }
    return true;
}

/* ---- registers ---- */

enum { NEVER, PERHAPS, ALWAYS };

/* What the compiler takes of 255, and whether it spills then; the same of 168, where a block has
 * more than eight warps. */
typedef struct compiled {
    short taken, spills, taken_of_168, spills_of_168;
} compiled;

/* As NVRTC 13.0 compiled 414 variants for sm_90a with dk = 128: a row a writer, a column a chunk of
 * 16, 32, 64, 128; first those of 16 columns a warp, then of 32. No count of what is live tells
 * these spills, of 4 to 60 bytes most of them: the compiler plans its loads for 128, 168 or 255
 * registers and misses by a few. Where variants of one cell differ in that, it is PERHAPS. */
static const compiled table[2][2][4] = {{{{152, PERHAPS, 166, NEVER},
                                          {186, NEVER, 168, ALWAYS},
                                          {168, ALWAYS, 168, ALWAYS},
                                          {255, ALWAYS, 168, ALWAYS}},
                                         {{150, NEVER, 166, NEVER},
                                          {168, NEVER, 168, NEVER},
                                          {248, PERHAPS, 168, ALWAYS},
                                          {255, NEVER, 168, ALWAYS}}},
                                        {{{255, NEVER, 168, ALWAYS},
                                          {254, NEVER, 168, ALWAYS},
                                          {255, ALWAYS, 168, ALWAYS},
                                          {255, ALWAYS, 168, ALWAYS}},
                                         {{255, PERHAPS, 168, ALWAYS},
                                          {255, ALWAYS, 168, ALWAYS},
                                          {255, ALWAYS, 168, ALWAYS},
                                          {255, ALWAYS, 168, ALWAYS}}}};

typedef struct expected {
    double taken;
    int spills;
} expected;

/* With dk = 128. */
static expected as_compiled(const int64_t *c, int threads) {
    const int64_t wide = c[WARP_DV] / 16 - 1, chunk = c[CHUNK] / 32 - c[CHUNK] / 128;
    const compiled *of = &table[wide][c[WRITER]][chunk];
    /* It keeps to 168, and spills, where one more block is resident then: not of 256 threads. */
    if (c[CHUNK] == 64 && !wide && c[WRITER] == COMPUTE_WRITES && threads == 256)
        return (expected){187, NEVER};
    if (threads > 256)
        return (expected){of->taken_of_168, of->spills_of_168};
    return (expected){of->taken, of->spills};
}

/* With others: by the accumulators, state and V', beside which come operands and addresses. As 40
 * variants with dk of 64, 96 and 256 have it. */
static expected by_accumulators(double live, double limit) {
    static const short knots[][2] = {{40, 88}, {48, 130}, {80, 175}, {96, 185}, {128, 248}};
    int right = 1;
    while (right < 4 && knots[right][0] < live)
        right++;
    const short *from = knots[right - 1], *to = knots[right];
    const double share = (live - from[0]) / (double)(to[0] - from[0]);
    return (expected){.taken = from[1] + share * (to[1] - from[1]),
                      .spills = live > limit * 0.7    ? ALWAYS
                                : live > limit * 0.35 ? PERHAPS
                                                      : NEVER};
}

static void registers(const int64_t *c, const kkt_attention *a, kkt_footprint *fp) {
    const double limit = fp->threads > 256 ? 168 : 255;
    const double live = (double)(c[WARP_DV] * (a->dk + c[CHUNK])) / 32;
    expected e = a->dk == 128 ? as_compiled(c, fp->threads) : by_accumulators(live, limit);
    if (!a->gated && e.spills == ALWAYS) /* without decays there are some registers more */
        e.spills = PERHAPS;
    kkt_role *role = &fp->roles[0];
    kkt_gdn_registers_taken(fp, 0, e.taken);
    role->least_registers = e.spills == ALWAYS ? limit + 1 : e.taken < limit ? e.taken : limit;
    role->enough_registers = e.spills == NEVER ? role->least_registers : limit + 1;
}

/* Of a warp that computes, a chunk, counted from the device code: products, their right operands
 * with an address each, S rounded and stored, S scaled, V' from U, V' with decays, and where it
 * writes, four for 16 bytes. */
static double warp_instructions(const int64_t *c, int64_t dk) {
    const double steps = (double)dk / 16, strips = (double)c[CHUNK] / 16;
    const double groups = (double)c[WARP_DV] / 16;
    const double written = (double)((dk + c[CHUNK]) * c[WARP_DV]) / 8 / 32;
    return strips * steps * (4 * groups + 2 * 2) + groups * steps * (7 + 8) +
           groups * strips * (22 + 22) + (c[WRITER] == COMPUTE_WRITES ? 4 * written : 0);
}

static void footprint(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                      kkt_footprint *out) {
    const int64_t *c = config->v;
    const kkt_attention a = kkt_gdn_attention(problem);
    const int64_t chunk = c[CHUNK], block_dv = c[BLOCK_DV], warp_dv = c[WARP_DV];
    const int64_t warps = block_dv / warp_dv, splits = a.dv / block_dv;
    const int64_t chunks = kkt_attention_chunks(&a, chunk);
    (void)arch;
    *out = (kkt_footprint){.style = KKT_STYLE_MATERIALIZED,
                           .chunk = (int)chunk,
                           .tokens = a.tokens,
                           .blocks = a.sequences * a.heads_v * splits,
                           .chunks_per_block = (chunks + a.sequences - 1) / a.sequences,
                           .threads = (int)(warps + c[COPY_WARPS]) * 32,
                           .cluster = 1,
                           .barriers = 2,
                           .launches = 1};
    out->hbm_read_bytes =
        (double)(a.tokens * (a.element_bytes * a.heads_k * a.dk +
                             a.heads_v * (a.element_bytes * (a.dk + a.dv) + (a.gated ? 4 : 0)))) +
        4.0 * (double)(a.dk * a.dv) * (double)(a.sequences * a.heads_v);
    out->hbm_write_bytes = (double)kkt_traffic_state_bytes(&a, chunk) - out->hbm_read_bytes;
    out->l2_read_bytes =
        (double)(a.tokens * a.heads_v) *
        (double)(a.element_bytes * (2 * a.dk * splits + a.dv) + (a.gated ? 4 : 0) * splits);

    kkt_gdn_shared_tile(out, "w", chunk, a.dk, a.element_bytes, c[STAGES]);
    kkt_gdn_shared_tile(out, "k", chunk, a.dk, a.element_bytes, c[STAGES]);
    kkt_gdn_shared_tile(out, "u", chunk, block_dv, a.element_bytes, c[STAGES]);
    if (c[WRITER] == COPY_WRITES) {
        kkt_gdn_shared_tile(out, "h", a.dk, block_dv, a.element_bytes, 2);
        kkt_gdn_shared_tile(out, "v_new", chunk, block_dv, a.element_bytes, 2);
    } else {
        kkt_gdn_shared_tile(out, "out", a.dk > chunk ? a.dk : chunk, block_dv, a.element_bytes, 1);
    }
    if (a.gated)
        kkt_gdn_shared_tile(out, "decays", 2, chunk + 4, 4, 1);
    /* One launch serves both roles: the threads that compute say how many registers each has. */
    kkt_footprint_role(out, "compute", (int)warps * 32);
    kkt_footprint_role(out, "copy", (int)c[COPY_WARPS] * 32);
    kkt_gdn_register_table(out, "state", a.dk, block_dv, 0);
    kkt_gdn_register_table(out, "v_new", chunk, block_dv, 0);
    registers(c, &a, out);

    const double items = (double)chunks * (double)(a.heads_v * splits);
    out->tensor_flop = items * 4 * (double)(chunk * a.dk * block_dv);
    out->fp32_flop = items * 2 * (double)((chunk + a.dk) * block_dv);
    /* ldmatrix of w and k by each warp, of u once; the state and v_new go through the tile. */
    const double tile = (double)(chunk * a.dk * 2) / 128;
    const double staged = (double)((chunk + a.dk) * block_dv * 2) / 128;
    out->smem_wavefronts =
        items * (2 * tile * (double)warps + 2 * staged + (double)(chunk * block_dv * 2) / 128);
    out->instructions = items * (double)warps * warp_instructions(c, a.dk) + items * staged;
    out->busy_warps = (int)warps;
    kkt_footprint_step(out, KKT_STEP_PRODUCT, 2, (double)a.dk);
    kkt_footprint_step(out, KKT_STEP_BARRIER, 1, 0);
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
    kkt_footprint fp;
    footprint(problem, config, arch, &fp);
    kkt_launch *launch = kkt_gdn_plan_begin("gdn_state", &fp, fp.blocks, out);
    for (int i = 0; i < KKT_STATE_TENSORS; i++)
        kkt_gdn_add_tensor(launch, i);
    kkt_gdn_add_i64(launch, p[KKT_GDN_TOKENS] / p[KKT_GDN_BATCH]);
    kkt_gdn_add_i32(launch, p[KKT_GDN_SEQUENCES]);
    kkt_gdn_add_i32(launch, p[KKT_GDN_HEADS_K]);
    kkt_gdn_add_i32(launch, p[KKT_GDN_HEADS_V]);
}

static const char *const sources[] = {
    "gdn/gdn_state.cu",     "device/async_copy.cuh",
    "device/convert.cuh",   "device/copy_groups.cuh",
    "device/decay.cuh",     "device/fragment.cuh",
    "device/gate.cuh",      "device/matrix_move.cuh",
    "device/mma_sync.cuh",  "device/panel_tile.cuh",
    "device/tile_math.cuh", "device/types.cuh",
    "gdn/sequences.cuh",    NULL,
};

const kkt_variant kkt_gdn_state_materialized = {
    .style = KKT_STYLE_MATERIALIZED,
    .params = {"parameter", params, PARAMS},
    .source = "gdn/gdn_state.cu",
    .sources = sources,
    .applicable = applicable,
    .footprint = footprint,
    .defines = defines,
    .plan = plan,
    .tolerance = kkt_gdn_tolerance,
};
