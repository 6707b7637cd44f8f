/* The warp-specialized style of gdn_fwd_t: tiles in shared memory, double-buffered, and four
 * warpgroups by role; T is read.
 *
 * Model-only: parameters and footprint, no device code yet. */
#include "kernels/gdn/fused.h"

#include <stdio.h>

#define WARPGROUP 128

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
                 .help = "384: a copying and two computing warpgroups; 512: three computing",
                 .count = 2,
                 .values = {384, 512},
                 .fallback = 512},
    [STAGES] = {.name = "stages",
                .macro = "KKT_STAGES",
                .help = "copies of q, k, v and T in flight",
                .count = 3,
                .values = {1, 2, 3},
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
    const bool output_role = config->v[THREADS] == 4 * WARPGROUP;
    const kkt_gdn_style style = {.style = KKT_STYLE_WARP_SPECIALIZED,
                                 .given_t = true,
                                 .block_dv = block_dv,
                                 .threads = config->v[THREADS],
                                 .products = output_role ? 3 : 5};
    kkt_gdn_fused_footprint(problem, c, &style, out);
    /* Named barriers: one a full and an empty slot of each stream, and one for the block. */
    out->barriers = 8;
    kkt_footprint_role(out, "state", WARPGROUP)->declared_registers = 160;
    kkt_footprint_role(out, "value", WARPGROUP)->declared_registers = 128;
    if (output_role)
        kkt_footprint_role(out, "output", WARPGROUP)->declared_registers = 128;
    kkt_footprint_role(out, "producer", WARPGROUP)->declared_registers = 32;
    kkt_gdn_register_table(out, "state", dk, block_dv, 0);
    kkt_gdn_register_table(out, "x", c, block_dv, 1);
    kkt_gdn_register_table(out, "o", c, block_dv, output_role ? 2 : 1);
    /* The tile list of the article's layout; q, k, v and the T tile a are streamed. */
    kkt_gdn_shared_tile(out, "q", c, dk, element, stages);
    kkt_gdn_shared_tile(out, "k", c, dk, element, stages);
    kkt_gdn_shared_tile(out, "v", c, block_dv, element, stages);
    kkt_gdn_shared_tile(out, "o_tile", c, block_dv, element, 1);
    kkt_gdn_shared_tile(out, "h", c, block_dv, element, 1);
    kkt_gdn_shared_tile(out, "vd", c, block_dv, element, 1);
    kkt_gdn_shared_tile(out, "vn", c, block_dv, element, 1);
    kkt_gdn_shared_tile(out, "a", c, c, element, stages);
    kkt_gdn_shared_tile(out, "p", c, c, element, 1);
    kkt_gdn_shared_tile(out, "gates_and_barriers", 1, 1024, 1, 1);
    kkt_gdn_estimate_instructions(out, arch->has_wgmma != 0);
}

const kkt_variant kkt_gdn_fwd_t_warp_specialized = {
    .style = KKT_STYLE_WARP_SPECIALIZED,
    .params = {"parameter", params, sizeof params / sizeof params[0]},
    .applicable = applicable,
    .footprint = footprint,
};
