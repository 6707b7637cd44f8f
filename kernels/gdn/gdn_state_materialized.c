/* gdn_state: a block walks the chunks of one sequence with block_dv columns of one value head's
 * state; each warp that computes keeps warp_dv of them, transposed, in its registers. */
#include "kernels/gdn/materialized.h"

#include <math.h>
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
enum { HEADS = 4, CHUNKS = KKT_GDN_CHUNKS, LIMIT_ABOVE_256 = 168 };

/* What the compiler takes of 255, and whether it spills then; the same of 168, where a block has
 * more than eight warps. */
typedef struct compiled {
    short taken, spills, taken_of_168, spills_of_168;
} compiled;

/* As NVRTC 13.0 compiled 1,497 variants for sm_90a: heads of 64, 96, 128, 256; 16 or 32 columns a
 * warp; a row a writer, a column a chunk of 16, 32, 64, 128. No count of what is live tells these
 * spills, of 4 to 60 bytes most of them: the compiler plans its loads for 80, 96, 128, 168 or 255
 * registers, with which one more warp is resident, and misses by a few. Where variants of one cell
 * differ in that, it is PERHAPS. No more than eight warps have 32 columns. */
static const compiled table[HEADS][2][2][CHUNKS] = {
    {{{{88, PERHAPS, 91, PERHAPS},
       {104, NEVER, 129, PERHAPS},
       {134, PERHAPS, 168, ALWAYS},
       {176, PERHAPS, 168, PERHAPS}},
      {{88, NEVER, 90, PERHAPS},
       {125, NEVER, 122, NEVER},
       {135, NEVER, 141, NEVER},
       {249, NEVER, 168, PERHAPS}}},
     {{{187, NEVER, 0, 0}, {183, PERHAPS, 0, 0}, {247, NEVER, 0, 0}, {255, ALWAYS, 0, 0}},
      {{131, NEVER, 0, 0}, {168, PERHAPS, 0, 0}, {246, NEVER, 0, 0}, {255, PERHAPS, 0, 0}}}},
    {{{{124, NEVER, 143, NEVER},
       {145, PERHAPS, 168, PERHAPS},
       {168, PERHAPS, 168, PERHAPS},
       {255, ALWAYS, 168, ALWAYS}},
      {{126, NEVER, 130, NEVER},
       {128, NEVER, 160, PERHAPS},
       {168, NEVER, 168, PERHAPS},
       {255, PERHAPS, 168, ALWAYS}}},
     {{{184, PERHAPS, 0, 0}, {241, NEVER, 0, 0}, {254, NEVER, 0, 0}, {255, ALWAYS, 0, 0}},
      {{230, NEVER, 0, 0}, {253, NEVER, 0, 0}, {255, PERHAPS, 0, 0}, {168, ALWAYS, 0, 0}}}},
    {{{{154, PERHAPS, 165, NEVER},
       {186, NEVER, 168, ALWAYS},
       {168, ALWAYS, 168, ALWAYS},
       {255, ALWAYS, 168, ALWAYS}},
      {{151, NEVER, 158, NEVER},
       {168, NEVER, 167, NEVER},
       {248, NEVER, 168, ALWAYS},
       {255, NEVER, 168, ALWAYS}}},
     {{{255, PERHAPS, 0, 0}, {254, NEVER, 0, 0}, {255, ALWAYS, 0, 0}, {255, ALWAYS, 0, 0}},
      {{255, PERHAPS, 0, 0}, {255, ALWAYS, 0, 0}, {255, ALWAYS, 0, 0}, {168, ALWAYS, 0, 0}}}},
    {{{{255, PERHAPS, 168, ALWAYS},
       {255, ALWAYS, 168, ALWAYS},
       {255, ALWAYS, 168, ALWAYS},
       {255, ALWAYS, 168, ALWAYS}},
      {{254, ALWAYS, 168, ALWAYS},
       {254, ALWAYS, 168, ALWAYS},
       {255, PERHAPS, 168, ALWAYS},
       {255, ALWAYS, 168, ALWAYS}}},
     {{{255, ALWAYS, 0, 0}, {168, ALWAYS, 0, 0}, {168, ALWAYS, 0, 0}, {255, ALWAYS, 0, 0}},
      {{255, ALWAYS, 0, 0}, {168, ALWAYS, 0, 0}, {168, ALWAYS, 0, 0}, {255, ALWAYS, 0, 0}}}}};

/* Where the number of a block's warps or the ring's slots decide (0: any); the first that fits. */
static const struct {
    short dk, warp_dv, writer, chunk, warps, stages, taken, spills;
} special[] = {
    {64, 16, COMPUTE_WRITES, 16, 8, 0, 120, NEVER},
    {64, 16, COMPUTE_WRITES, 32, 8, 0, 140, NEVER},
    {64, 16, COMPUTE_WRITES, 32, 0, 3, 137, NEVER},
    {64, 16, COMPUTE_WRITES, 64, 6, 0, 181, PERHAPS},
    {64, 16, COMPUTE_WRITES, 128, 8, 0, 183, NEVER},
    {64, 16, COPY_WRITES, 32, 2, 0, 96, NEVER},
    {64, 16, COPY_WRITES, 32, 4, 0, 96, NEVER},
    {64, 32, COPY_WRITES, 16, 6, 0, 166, NEVER},
    {64, 32, COPY_WRITES, 16, 0, 3, 162, NEVER},
    {96, 16, COMPUTE_WRITES, 16, 4, 0, 147, NEVER},
    {96, 16, COMPUTE_WRITES, 16, 6, 0, 144, NEVER},
    {96, 16, COMPUTE_WRITES, 32, 6, 0, 168, PERHAPS},
    {96, 16, COPY_WRITES, 32, 6, 0, 158, NEVER},
    {96, 32, COMPUTE_WRITES, 16, 8, 0, 187, NEVER},
    {96, 32, COMPUTE_WRITES, 16, 0, 2, 168, PERHAPS},
    {128, 16, COMPUTE_WRITES, 16, 5, 0, 152, NEVER},
    {128, 16, COMPUTE_WRITES, 16, 8, 0, 152, NEVER},
    {128, 16, COMPUTE_WRITES, 16, 6, 0, 168, PERHAPS},
    {128, 16, COMPUTE_WRITES, 64, 8, 0, 188, NEVER},
    {128, 16, COPY_WRITES, 16, 6, 0, 168, NEVER},
    {128, 16, COPY_WRITES, 16, 5, 0, 150, PERHAPS},
    {128, 16, COPY_WRITES, 64, 5, 0, 248, PERHAPS},
    {128, 32, COMPUTE_WRITES, 32, 6, 3, 254, PERHAPS},
};

typedef struct expected {
    double taken;
    int spills;
} expected;

/* The same for heads of 128 up to sm_89, and from sm_100 on; as 100 variants have it. Few were
 * compiled, so that all may spill but those that take little. */
static const short elsewhere[2][2][2][CHUNKS] = {
    {{{150, 154, 186, 255}, {167, 168, 254, 255}}, {{255, 254, 255, 255}, {254, 255, 255, 255}}},
    {{{147, 186, 172, 255}, {126, 131, 171, 254}}, {{244, 240, 255, 255}, {217, 255, 255, 255}}}};
enum { LITTLE = 160 };

static expected as_compiled(const int64_t *c, int64_t dk, int threads) {
    const int chunk = kkt_gdn_chunk_index(c[CHUNK]);
    const int head = dk <= 64 ? 0 : dk <= 96 ? 1 : dk <= 128 ? 2 : 3;
    const compiled *of = &table[head][c[WARP_DV] / 16 - 1][c[WRITER]][chunk];
    if (threads > 256)
        return (expected){of->taken_of_168, of->spills_of_168};
    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
        if (special[i].dk == dk && special[i].warp_dv == c[WARP_DV] &&
            special[i].writer == c[WRITER] && special[i].chunk == c[CHUNK] &&
            (special[i].warps == 0 || special[i].warps * 32 == threads) &&
            (special[i].stages == 0 || special[i].stages == c[STAGES]))
            return (expected){special[i].taken, special[i].spills};
    /* It spills by the hundred bytes to come down to 168 registers where that doubles the blocks
     * that are resident: not of 2, 4 and 8 warps. */
    const bool doubles = threads % 96 == 0 || threads == 160;
    const bool much = c[WARP_DV] * (dk + c[CHUNK]) / 32 >= 224; /* state and V' */
    return (expected){much && !doubles ? 255 : of->taken, of->spills};
}

static expected as_expected(const int64_t *c, const kkt_attention *a, const kkt_arch *arch,
                            int threads) {
    /* State and V'. Without decays there are some registers more; these may take more than that. */
    const int64_t accumulators = c[WARP_DV] * (a->dk + c[CHUNK]) / 32;
    const int64_t many = threads > 256 ? 130 : c[WRITER] == COPY_WRITES ? 192 : 224;
    expected e = as_compiled(c, a->dk, threads);
    if (!a->gated && e.spills == ALWAYS && accumulators < many)
        e.spills = PERHAPS;
    if (arch->major == 9)
        return e;
    if (a->dk == 128) {
        const int chunk = kkt_gdn_chunk_index(c[CHUNK]);
        const int64_t wide = c[WARP_DV] / 16 - 1;
        const double limit = threads > 256 ? LIMIT_ABOVE_256 : 255;
        e.taken = fmin(elsewhere[arch->major > 9][wide][c[WRITER]][chunk], limit);
    }
    if (accumulators < many)
        e.spills = e.taken < LITTLE ? NEVER : PERHAPS;
    return e;
}

static void registers(const int64_t *c, const kkt_attention *a, const kkt_arch *arch,
                      kkt_footprint *fp) {
    const double limit = fp->threads > 256 ? LIMIT_ABOVE_256 : 255;
    const expected e = as_expected(c, a, arch, fp->threads);
    kkt_role *role = &fp->roles[0];
    kkt_gdn_registers_taken(fp, 0, e.taken);
    role->least_registers = e.spills == ALWAYS ? limit + 1 : e.taken < limit ? e.taken : limit;
    role->enough_registers = e.spills == NEVER ? role->least_registers : limit + 1;
}

/* ---- instructions ---- */

/* Of 32 units of 16 bytes that a warp copies in or writes, of a warp that copies each chunk, and of
 * a register that does not fit. A unit that a computing warp writes waits for the one before. No
 * counters of this family are recorded: fitted to its times, 50 configurations, like the cycles
 * from one instruction to the next and the share of a chunk's latency that is seen. */
#define UNIT_IN_INSTRUCTIONS 9.5
#define UNIT_OUT_INSTRUCTIONS 4.0
#define OWN_UNIT_INSTRUCTIONS 9.0
#define COPY_INSTRUCTIONS 250.0
#define SPILL_INSTRUCTIONS 32.0
#define STATE_INSTRUCTION_CYCLES 3.8
#define SEEN_LATENCY_CYCLES 350.0

/* Two groups of 16 columns are independent of each other: the second one's instructions come in
 * part where the first one's would wait. */
#define TWO_GROUPS 0.8

/* Registers of the accumulators and, about, of what is beside them. */
enum { BESIDE_ACCUMULATORS = 60 };

static double spilled(const int64_t *c, const kkt_attention *a, const kkt_arch *arch, int threads) {
    const double limit = threads > 256 || as_expected(c, a, arch, threads).taken == LIMIT_ABOVE_256
                             ? LIMIT_ABOVE_256
                             : 255;
    return fmax(0, (double)(c[WARP_DV] * (a->dk + c[CHUNK])) / 32 + BESIDE_ACCUMULATORS - limit);
}

/* 32 units of h and v_new, `columns` of them. */
static double units_out(const int64_t *c, int64_t dk, int64_t columns) {
    return (double)((dk + c[CHUNK]) * columns) / 8 / 32;
}

/* Of a warp that computes, a chunk, counted from the device code: products, their right operands
 * with an address each, S rounded and stored, S scaled, V' from U, V' with decays. */
static double compute_instructions(const int64_t *c, int64_t dk) {
    const double steps = (double)dk / 16, strips = (double)c[CHUNK] / 16;
    const double groups = (double)c[WARP_DV] / 16;
    return strips * steps * (4 * groups + 2 * 2) + groups * steps * (7 + 8) +
           groups * strips * (22 + 22);
}

/* Of a warp that copies, a chunk. */
static double copy_instructions(const int64_t *c, int64_t dk) {
    const double in = (double)(c[CHUNK] * (2 * dk + c[BLOCK_DV])) / 8 / 32;
    const double out = c[WRITER] == COPY_WRITES ? units_out(c, dk, c[BLOCK_DV]) : 0;
    return COPY_INSTRUCTIONS +
           (UNIT_IN_INSTRUCTIONS * in + UNIT_OUT_INSTRUCTIONS * out) / (double)c[COPY_WARPS];
}

/* Both roles meet once a chunk: the one whose warps have more to issue makes the other wait, and
 * where they are alike each of them is now and then the slower one. */
static void count_instructions(const int64_t *c, const kkt_attention *a, const kkt_arch *arch,
                               double items, kkt_footprint *out) {
    const int64_t computing = c[BLOCK_DV] / c[WARP_DV];
    const double warps = (double)computing;
    const double products = compute_instructions(c, a->dk);
    const double own =
        c[WRITER] == COMPUTE_WRITES ? OWN_UNIT_INSTRUCTIONS * units_out(c, a->dk, c[WARP_DV]) : 0;
    const double copies = copy_instructions(c, a->dk);
    const double computes = products * (c[WARP_DV] > 16 ? TWO_GROUPS : 1) + own +
                            SPILL_INSTRUCTIONS * spilled(c, a, arch, out->threads);
    const double longest = sqrt(sqrt(pow(copies, 4) + pow(computes, 4)));
    out->instructions = items * (warps * (products + own) + (double)c[COPY_WARPS] * copies);
    out->block_instructions = (double)out->chunks_per_block * warps * longest;
    out->busy_warps = (int)computing;
    out->instruction_cycles = STATE_INSTRUCTION_CYCLES;
    out->wait_cycles = SEEN_LATENCY_CYCLES / (double)(c[STAGES] - 1);
}

static void footprint(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                      kkt_footprint *out) {
    const int64_t *c = config->v;
    const kkt_attention a = kkt_gdn_attention(problem);
    const int64_t chunk = c[CHUNK], block_dv = c[BLOCK_DV], warp_dv = c[WARP_DV];
    const int64_t warps = block_dv / warp_dv, splits = a.dv / block_dv;
    const int64_t chunks = kkt_attention_chunks(&a, chunk);
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
    registers(c, &a, arch, out);

    const double items = (double)chunks * (double)(a.heads_v * splits);
    out->mma_sync_flop = items * 4 * (double)(chunk * a.dk * block_dv);
    out->fp32_flop = items * 2 * (double)((chunk + a.dk) * block_dv);
    /* ldmatrix of w and k by each warp, of u once; the state and v_new go through the tile. */
    const double tile = (double)(chunk * a.dk * 2) / 128;
    const double staged = (double)((chunk + a.dk) * block_dv * 2) / 128;
    out->smem_wavefronts =
        items * (2 * tile * (double)warps + 2 * staged + (double)(chunk * block_dv * 2) / 128);
    count_instructions(c, &a, arch, items, out);
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
