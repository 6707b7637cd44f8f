/* The pipelined style of gdn_fwd_t: q, k, v and T in a ring in shared memory, the state and all
 * that depends on it in registers. See gdn_fwd_t_pipelined.cu. */
#include "kernels/gdn/mma.h"

enum { CHUNK = KKT_GDN_CHUNK, BLOCK_DV, THREADS, MIN_BLOCKS, STAGES, PARAMS };

static const kkt_param params[PARAMS] = {
    [CHUNK] = {.name = "chunk",
               .macro = "KKT_CHUNK",
               .help = "tokens of a chunk",
               .count = 4,
               .values = {16, 32, 64, 128},
               .fallback = 64},
    [BLOCK_DV] = {.name = "block_dv",
                  .macro = "KKT_BLOCK_DV",
                  .help = "columns of the state a block holds",
                  .count = 3,
                  .values = {32, 64, 128},
                  .fallback = 64},
    [THREADS] = {.name = "threads",
                 .macro = "KKT_THREADS",
                 .help = "threads a block; each copies and computes",
                 .count = 3,
                 .values = {64, 128, 256},
                 .fallback = 128},
    [MIN_BLOCKS] = {.name = "min_blocks",
                    .macro = "KKT_MIN_BLOCKS",
                    .help = "blocks to be resident, asked of the compiler; 0: none",
                    .count = 5,
                    .values = {0, 2, 3, 4, 6},
                    .fallback = 0},
    [STAGES] = {.name = "stages",
                .macro = "KKT_STAGES",
                .help = "slots of the ring of a chunk's inputs; 1: nothing is in flight",
                .count = 4,
                .values = {1, 2, 3, 4},
                .fallback = 2},
};

static kkt_gdn_mma sizes(const kkt_values *problem, const kkt_values *config) {
    return kkt_gdn_mma_sizes(problem, config->v[CHUNK], config->v[BLOCK_DV], config->v[THREADS],
                             config->v[MIN_BLOCKS], true);
}

static bool applicable(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                       char *reason, size_t size) {
    const kkt_gdn_mma m = sizes(problem, config);
    return kkt_gdn_mma_applicable(problem, &m, arch, reason, size) &&
           kkt_gdn_mma_chain_fits(&m, reason, size);
}

static void footprint(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                      kkt_footprint *out) {
    const kkt_gdn_mma m = sizes(problem, config);
    const int64_t stages = config->v[STAGES];
    (void)arch;
    kkt_gdn_mma_footprint(problem, &m, KKT_STYLE_PIPELINED, out);
    kkt_gdn_mma_tile(out, "k", m.chunk, m.dk, stages);
    kkt_gdn_mma_tile(out, "q", m.chunk, m.dk, stages);
    kkt_gdn_mma_tile(out, "v", m.chunk, m.block_dv, stages);
    kkt_gdn_mma_blocks(out, &m, "t", stages);
    kkt_gdn_mma_blocks(out, &m, "scores", 1);
    kkt_gdn_mma_gates(out, &m, 2);
    kkt_gdn_mma_chain_registers(out, &m, stages, false);
}

static void defines(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                    kkt_text *out) {
    kkt_footprint fp;
    footprint(problem, config, arch, &fp);
    kkt_gdn_mma_defines(problem, &fp, true, out);
}

static void plan(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                 kkt_plan *out) {
    kkt_footprint fp;
    footprint(problem, config, arch, &fp);
    kkt_gdn_mma_plan(problem, &fp, true, out);
}

static const char *const sources[] = {
    "gdn/gdn_fwd_t_pipelined.cu",
    "device/async_copy.cuh",
    "device/convert.cuh",
    "device/copy_groups.cuh",
    "device/copy_ring.cuh",
    "device/fragment.cuh",
    "device/gate.cuh",
    "device/matrix_move.cuh",
    "device/mma_sync.cuh",
    "device/padded_tile.cuh",
    "device/register_blocks.cuh",
    "device/right_operand.cuh",
    "device/swizzle.cuh",
    "device/types.cuh",
    "gdn/chunk_gates.cuh",
    "gdn/chunk_ring.cuh",
    "gdn/chunk_scores.cuh",
    "gdn/chunk_tiles.cuh",
    "gdn/mma_parameters.cuh",
    "gdn/mma_work.cuh",
    "gdn/sequence.cuh",
    "gdn/transposed_chain.cuh",
    "gdn/transposed_rows.cuh",
    NULL,
};

const kkt_variant kkt_gdn_fwd_t_pipelined = {
    .style = KKT_STYLE_PIPELINED,
    .params = {"parameter", params, PARAMS},
    .source = "gdn/gdn_fwd_t_pipelined.cu",
    .sources = sources,
    .applicable = applicable,
    .footprint = footprint,
    .defines = defines,
    .plan = plan,
    .tolerance = kkt_gdn_tolerance,
};
