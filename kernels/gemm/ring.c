#include <stdio.h>

#include "kernels/gemm/pipelined.h"

enum { ADDRESSES = 20 };

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
    kkt_reason(reason, size, "min_blocks %lld of %lld threads leave %lld registers a thread: %s",
               min_blocks, (long long)g.threads, left,
               left < 255 ? "sums and operands take more" : "that is no limit");
    return false;
}

void kkt_gemm_ring_footprint(const kkt_values *problem, const kkt_values *config,
                             const kkt_arch *arch, kkt_style_id style, kkt_footprint *out) {
    const kkt_gemm_mma g = kkt_gemm_mma_sizes(problem, config);
    const int64_t stages = config->v[KKT_GEMM_STAGES];
    const bool swizzled = config->v[KKT_GEMM_SWIZZLE] != 0;
    const int64_t operands = (g.strips + g.columns) * 4; /* registers of 16 terms */
    const int64_t ahead = stages > 1 ? 2 : 1;            /* so many of them at a time */
    kkt_gemm_footprint(problem, config, style, g.threads, out);
    out->min_blocks = (int)config->v[KKT_GEMM_MIN_BLOCKS];
    kkt_gemm_mma_registers(&g, "sums", g.strips * g.columns * 8, out);
    kkt_gemm_mma_tile(&g, true, swizzled, stages, out);
    kkt_gemm_mma_tile(&g, false, swizzled, stages, out);
    kkt_role *all = kkt_footprint_role(out, "all", (int)g.threads);
    all->extra_registers = (double)(ahead * operands);
    all->least_registers = (double)(g.strips * g.columns * 8 + operands + ADDRESSES);
    const kkt_gemm_way way = swizzled ? KKT_GEMM_SWIZZLED : KKT_GEMM_PADDED;
    kkt_gemm_mma_work(&g, way, way, out);
    if (stages > 1) /* operands of the step behind the last */
        out->smem_wavefronts += (double)(g.blocks * g.warps * (g.strips + g.columns) * 4);
    kkt_gemm_mma_chain(&g, arch, stages, out);
    kkt_gemm_reread_tiles(problem, config, arch, config->v[KKT_GEMM_RASTER], out);
}
