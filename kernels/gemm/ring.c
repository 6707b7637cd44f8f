#include <stdio.h>

#include "kernels/gemm/pipelined.h"

bool kkt_gemm_ring_applicable(const kkt_values *problem, const kkt_values *config,
                              const kkt_arch *arch, char *reason, size_t size) {
    const kkt_gemm_mma g = kkt_gemm_mma_sizes(problem, config);
    const long long min_blocks = config->v[KKT_GEMM_MIN_BLOCKS];
    if (!kkt_gemm_mma_applicable(problem, config, arch, reason, size))
        return false;
    if (min_blocks == 0)
        return true;
    const long long sums = g.strips * g.columns * 8;
    const long long left = arch->registers_per_sm / (min_blocks * g.threads) / 8 * 8;
    if (left > sums + 32 && left < 255)
        return true;
    snprintf(reason, size, "min_blocks %lld of %lld threads leave %lld registers a thread: %s",
             min_blocks, (long long)g.threads, left,
             left < 255 ? "sums and operands take more" : "that is no limit");
    return false;
}

void kkt_gemm_ring_footprint(const kkt_values *problem, const kkt_values *config,
                             kkt_style_id style, kkt_footprint *out) {
    const kkt_gemm_mma g = kkt_gemm_mma_sizes(problem, config);
    const int64_t stages = config->v[KKT_GEMM_STAGES];
    const bool swizzled = config->v[KKT_GEMM_SWIZZLE] != 0;
    const int64_t ahead = stages > 1 ? 2 : 1; /* operands of so many times 16 terms */
    kkt_gemm_footprint(problem, config, style, g.threads, out);
    out->min_blocks = (int)config->v[KKT_GEMM_MIN_BLOCKS];
    kkt_gemm_mma_registers(&g, "sums", g.strips * g.columns * 8, out);
    kkt_gemm_mma_tile(&g, true, swizzled, stages, out);
    kkt_gemm_mma_tile(&g, false, swizzled, stages, out);
    kkt_footprint_role(out, "all", (int)g.threads)->extra_registers =
        (double)(ahead * (g.strips + g.columns) * 4);
    kkt_gemm_mma_work(&g, true, true, out);
    kkt_footprint_step(out, KKT_STEP_GLOBAL_LOAD, 1, 0);
    kkt_footprint_step(out, KKT_STEP_BARRIER, stages > 1 ? 1 : 2, 0);
    kkt_footprint_step(out, KKT_STEP_PRODUCT, (double)g.depth, 0);
}
