/* gemv in one launch: a row's sum stays in the registers of one block. */
#include "kernels/gemv/space.h"

static void footprint(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                      kkt_footprint *out) {
    (void)arch;
    kkt_gemv_footprint(KKT_STYLE_FRAGMENT, problem, config, 1, problem->v[KKT_GEMV_K], 2, out);
}

static void plan(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                 kkt_plan *out) {
    kkt_footprint fp;
    footprint(problem, config, arch, &fp);
    *out = (kkt_plan){.launch_count = 1};
    out->launches[0] = kkt_gemv_launch("gemv", problem, config, &fp, 1, KKT_GEMV_Y);
}

const kkt_variant kkt_gemv_fragment = {
    .style = KKT_STYLE_FRAGMENT,
    .params = {"parameter", kkt_gemv_params, KKT_GEMV_PARAMS},
    .source = "gemv/gemv.cu",
    .sources = kkt_gemv_sources,
    .applicable = kkt_gemv_applicable,
    .footprint = footprint,
    .defines = kkt_gemv_defines,
    .plan = plan,
    .tolerance = kkt_gemv_tolerance,
};
