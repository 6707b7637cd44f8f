/* The pipelined style of gdn_fwd: q, k and v in a ring in shared memory, the state and all that
 * depends on it in registers. See gdn_fwd_pipelined.cu. */
#include "kernels/gdn/mma.h"

static bool applicable(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                       char *reason, size_t size) {
    return kkt_gdn_pipelined_applicable(problem, config, arch, false, reason, size);
}

static void footprint(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                      kkt_footprint *out) {
    kkt_gdn_pipelined_footprint(problem, config, arch, false, out);
}

static void defines(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                    kkt_text *out) {
    kkt_footprint fp;
    footprint(problem, config, arch, &fp);
    kkt_gdn_mma_defines(problem, &fp, false, out);
}

static void plan(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                 kkt_plan *out) {
    kkt_footprint fp;
    footprint(problem, config, arch, &fp);
    kkt_gdn_mma_plan(problem, &fp, false, out);
}

static const char *const sources[] = {
    "gdn/gdn_fwd_pipelined.cu", "device/async_copy.cuh",  "device/block_inverse.cuh",
    "device/convert.cuh",       "device/copy_groups.cuh", "device/copy_ring.cuh",
    "device/fragment.cuh",      "device/gate.cuh",        "device/matrix_move.cuh",
    "device/mma_sync.cuh",      "device/padded_tile.cuh", "device/register_blocks.cuh",
    "device/right_operand.cuh", "device/swizzle.cuh",     "device/types.cuh",
    "gdn/chunk_gates.cuh",      "gdn/chunk_ring.cuh",     "gdn/chunk_scores.cuh",
    "gdn/chunk_tiles.cuh",      "gdn/mma_parameters.cuh", "gdn/mma_work.cuh",
    "gdn/pipelined_block.cuh",  "gdn/sequence.cuh",       "gdn/transposed_chain.cuh",
    "gdn/transposed_rows.cuh",  "gdn/triangle.cuh",       NULL,
};

const kkt_variant kkt_gdn_fwd_pipelined = {
    .style = KKT_STYLE_PIPELINED,
    .params = {"parameter", kkt_gdn_pipelined_params, KKT_GDN_MMA_PARAMS},
    .source = "gdn/gdn_fwd_pipelined.cu",
    .sources = sources,
    .applicable = applicable,
    .footprint = footprint,
    .defines = defines,
    .plan = plan,
    .tolerance = kkt_gdn_tolerance,
};
