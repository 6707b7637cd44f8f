/* The warp-specialized style of gdn_fwd_t: T is read. */
#include "kernels/gdn/warp_specialized.h"

const kkt_gdn_ws_tensors kkt_gdn_fwd_t_ws_tensors = {.entry = "gdn_fwd_t",
                                                     .q = KKT_FWD_T_Q,
                                                     .k = KKT_FWD_T_K,
                                                     .v = KKT_FWD_T_V,
                                                     .beta = KKT_FWD_T_BETA,
                                                     .g = KKT_FWD_T_G,
                                                     .h0 = KKT_FWD_T_H0,
                                                     .cu_seqlens = KKT_FWD_T_CU_SEQLENS,
                                                     .o = KKT_FWD_T_O,
                                                     .ht = KKT_FWD_T_HT,
                                                     .t = KKT_FWD_T_T};

static bool applicable(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                       char *reason, size_t size) {
    return kkt_gdn_ws_applicable(problem, config, arch, false, reason, size);
}

static void footprint(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                      kkt_footprint *out) {
    (void)arch;
    kkt_gdn_ws_footprint(problem, config, false, out);
}

static void defines(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                    kkt_text *out) {
    (void)arch;
    kkt_gdn_ws_defines(problem, config, false, out);
}

static void plan(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                 kkt_plan *out) {
    (void)arch;
    kkt_gdn_ws_plan(problem, config, &kkt_gdn_fwd_t_ws_tensors, out);
}

static const char *const sources[] = {"gdn/gdn_fwd_t_warp_specialized.cu", KKT_GDN_WS_HEADERS,
                                      NULL};

const kkt_variant kkt_gdn_fwd_t_warp_specialized = {
    .style = KKT_STYLE_WARP_SPECIALIZED,
    .params = {"parameter", kkt_gdn_ws_params, KKT_GDN_WS_PARAMS - 1},
    .source = "gdn/gdn_fwd_t_warp_specialized.cu",
    .sources = sources,
    .applicable = applicable,
    .row_needs = kkt_gdn_ws_row_needs,
    .footprint = footprint,
    .defines = defines,
    .plan = plan,
    .tolerance = kkt_gdn_tolerance,
};
