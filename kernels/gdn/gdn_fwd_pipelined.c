/* The pipelined style of gdn_fwd: operands in a ring in shared memory, one C x C table and the
 * accumulators in registers.
 *
 * Model-only: parameters and footprint, no device code yet. */
#include "kernels/gdn/fused.h"

#include <stdio.h>

enum { CHUNK = KKT_GDN_CHUNK, BLOCK_DV, THREADS, STAGES };

static const kkt_param params[] = {
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
                 .count = 2,
                 .values = {128, 256},
                 .fallback = 128},
    [STAGES] = {.name = "stages",
                .macro = "KKT_STAGES",
                .help = "slots of the ring of q, k and v",
                .count = 3,
                .values = {2, 3, 4},
                .fallback = 2},
};

static bool applicable(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                       char *reason, size_t size) {
    if (!arch->has_cp_async) {
        snprintf(reason, size, "%s has no asynchronous copy for the producer warps", arch->name);
        return false;
    }
    return kkt_gdn_block_dv_fits(problem, config->v[BLOCK_DV], reason, size);
}

static void footprint(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                      kkt_footprint *out) {
    const int64_t c = config->v[CHUNK], dk = problem->v[KKT_GDN_DK], block_dv = config->v[BLOCK_DV];
    const int64_t stages = config->v[STAGES];
    const int element = (int)kkt_dtype_bytes((kkt_dtype)problem->v[KKT_GDN_DTYPE]);
    (void)arch;
    const kkt_gdn_style style = {.style = KKT_STYLE_PIPELINED,
                                 .given_t = false,
                                 .block_dv = block_dv,
                                 .threads = config->v[THREADS],
                                 .products = 6};
    kkt_gdn_fused_footprint(problem, c, &style, out);
    kkt_footprint_role(out, "all", out->threads);
    kkt_gdn_register_table(out, "a", c, c, 0);
    kkt_gdn_register_table(out, "state", dk, block_dv, 0);
    kkt_gdn_register_table(out, "o", c, block_dv, 0);
    kkt_gdn_shared_tile(out, "q", c, dk, element, stages);
    kkt_gdn_shared_tile(out, "k", c, dk, element, stages);
    kkt_gdn_shared_tile(out, "v", c, block_dv, element, stages);
    kkt_gdn_shared_tile(out, "x", c, block_dv, element, 1);
    kkt_gdn_shared_tile(out, "t", c, c, element, 1);
    kkt_gdn_shared_tile(out, "p", c, c, element, 1);
    kkt_gdn_shared_tile(out, "gates", 2, c, 4, stages);
    kkt_gdn_estimate_instructions(out, false);
}

const kkt_variant kkt_gdn_fwd_pipelined = {
    .style = KKT_STYLE_PIPELINED,
    .params = {"parameter", params, sizeof params / sizeof params[0]},
    .applicable = applicable,
    .footprint = footprint,
};
