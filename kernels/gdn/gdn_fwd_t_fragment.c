/* The fragment style of gdn_fwd_t: the tables that are multiplied with Gamma live in registers, and
 * so does the state; T is read.
 *
 * Model-only: parameters and footprint, no device code yet. */
#include "kernels/gdn/fused.h"

enum { CHUNK = KKT_GDN_CHUNK, BLOCK_DV, THREADS };

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
                 .help = "threads a block; they share the register tables",
                 .count = 2,
                 .values = {128, 256},
                 .fallback = 128},
};

static bool applicable(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                       char *reason, size_t size) {
    (void)arch;
    return kkt_gdn_block_dv_fits(problem, config->v[BLOCK_DV], reason, size);
}

static void footprint(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                      kkt_footprint *out) {
    const int64_t c = config->v[CHUNK], dk = problem->v[KKT_GDN_DK], block_dv = config->v[BLOCK_DV];
    const int element = (int)kkt_dtype_bytes((kkt_dtype)problem->v[KKT_GDN_DTYPE]);
    (void)arch;
    const kkt_gdn_style style = {.style = KKT_STYLE_FRAGMENT,
                                 .given_t = true,
                                 .block_dv = block_dv,
                                 .threads = config->v[THREADS],
                                 .products = 5};
    kkt_gdn_fused_footprint(problem, c, &style, out);
    kkt_footprint_role(out, "all", out->threads);
    kkt_gdn_register_table(out, "gamma", c, c, 0);
    kkt_gdn_register_table(out, "state", dk, block_dv, 0);
    kkt_gdn_register_table(out, "o", c, block_dv, 0);
    kkt_gdn_shared_tile(out, "q", c, dk, element, 1);
    kkt_gdn_shared_tile(out, "k", c, dk, element, 1);
    kkt_gdn_shared_tile(out, "v", c, block_dv, element, 1);
    kkt_gdn_shared_tile(out, "x", c, block_dv, element, 1); /* operand of T X, then of the update */
    kkt_gdn_shared_tile(out, "t", c, c, element, 1);
    kkt_gdn_shared_tile(out, "gates", 2, c, 4, 1);
    kkt_gdn_estimate_instructions(out, false);
}

const kkt_variant kkt_gdn_fwd_t_fragment = {
    .style = KKT_STYLE_FRAGMENT,
    .params = {"parameter", params, sizeof params / sizeof params[0]},
    .applicable = applicable,
    .footprint = footprint,
};
