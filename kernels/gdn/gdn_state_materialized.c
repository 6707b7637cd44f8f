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

/* As compiled for sm_90a with dk = 128, where the compiler keeps to 168 registers if that costs a
 * few bytes of spills, unless a block has more than five warps. */
static double registers(const int64_t *c, int64_t dk, int threads) {
    const double state = (double)(c[WARP_DV] * dk) / 32;
    const bool few = threads < 192, copies = c[WRITER] == COPY_WRITES;
    if (c[CHUNK] == 16)
        return 22 + 2 * state + (c[BLOCK_DV] == 128 ? 15 : 0);
    if (c[CHUNK] == 32)
        return 40 + 2 * state + (few || copies ? 0 : 19);
    return c[CHUNK] == 64 ? 40 + 2 * state + (few ? 0 : copies ? 80 : 19) : 127 + 2 * state;
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
    kkt_gdn_registers_taken(out, 0, registers(c, a.dk, out->threads));

    const double items = (double)chunks * (double)(a.heads_v * splits);
    out->tensor_flop = items * 4 * (double)(chunk * a.dk * block_dv);
    out->fp32_flop = items * 2 * (double)((chunk + a.dk) * block_dv);
    /* ldmatrix of w and k by each warp, of u once; the state and v_new go through the tile. */
    const double tile = (double)(chunk * a.dk * 2) / 128;
    const double staged = (double)((chunk + a.dk) * block_dv * 2) / 128;
    out->smem_wavefronts =
        items * (2 * tile * (double)warps + 2 * staged + (double)(chunk * block_dv * 2) / 128);
    out->instructions = items * (4 * (double)(chunk * a.dk * block_dv) / 4096 +
                                 2 * tile * (double)warps / 4 + staged);
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
