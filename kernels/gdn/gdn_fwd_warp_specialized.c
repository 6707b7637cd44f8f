/* The warp-specialized style of gdn_fwd: a warpgroup of its own solves for T. */
#include "kernels/gdn/warp_specialized.h"

static bool applicable(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                       char *reason, size_t size) {
    return kkt_gdn_ws_applicable(problem, config, arch, true, reason, size);
}

static void footprint(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                      kkt_footprint *out) {
    (void)arch;
    kkt_gdn_ws_footprint(problem, config, true, out);
}

static void defines(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                    kkt_text *out) {
    (void)arch;
    kkt_gdn_ws_defines(problem, config, true, out);
}

static void plan(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                 kkt_plan *out) {
    static const kkt_gdn_ws_tensors tensors = {.entry = "gdn_fwd",
                                               .q = KKT_FWD_Q,
                                               .k = KKT_FWD_K,
                                               .v = KKT_FWD_V,
                                               .beta = KKT_FWD_BETA,
                                               .g = KKT_FWD_G,
                                               .h0 = KKT_FWD_H0,
                                               .cu_seqlens = KKT_FWD_CU_SEQLENS,
                                               .o = KKT_FWD_O,
                                               .ht = KKT_FWD_HT,
                                               .t = -1};
    (void)arch;
    kkt_gdn_ws_plan(problem, config, &tensors, out);
}

static const char *const sources[] = {"gdn/gdn_fwd_warp_specialized.cu", "gdn/ws_solver.cuh",
                                      KKT_GDN_WS_HEADERS, NULL};

const kkt_variant kkt_gdn_fwd_warp_specialized = {
    .style = KKT_STYLE_WARP_SPECIALIZED,
    .params = {"parameter", kkt_gdn_ws_params, KKT_GDN_WS_PARAMS},
    .source = "gdn/gdn_fwd_warp_specialized.cu",
    .sources = sources,
    .applicable = applicable,
    .row_needs = kkt_gdn_ws_row_needs,
    .footprint = footprint,
    .defines = defines,
    .plan = plan,
    .tolerance = kkt_gdn_tolerance,
};
