#include "kernels/gemm/mma.h"

#include <stdio.h>

enum { WARP = 32, BLOCK = 16, REGISTERS = 255 };

kkt_gemm_mma kkt_gemm_mma_sizes(const kkt_values *problem, const kkt_values *config) {
    const int64_t *c = config->v;
    const int64_t warps_m = c[KKT_GEMM_WARPS_M], warps_n = c[KKT_GEMM_WARPS_N];
    const int64_t steps = (problem->v[KKT_GEMM_K] + c[KKT_GEMM_BK] - 1) / c[KKT_GEMM_BK];
    const int64_t split_k = c[KKT_GEMM_SPLIT_K];
    return (kkt_gemm_mma){.bm = c[KKT_GEMM_BM],
                          .bn = c[KKT_GEMM_BN],
                          .bk = c[KKT_GEMM_BK],
                          .warps = warps_m * warps_n,
                          .threads = warps_m * warps_n * WARP,
                          .strips = c[KKT_GEMM_BM] / warps_m / BLOCK,
                          .columns = c[KKT_GEMM_BN] / warps_n / BLOCK,
                          .depth = c[KKT_GEMM_BK] / BLOCK,
                          .steps = (steps + split_k - 1) / split_k,
                          .blocks = kkt_gemm_tile_count(problem, config) * split_k,
                          .a_along_k = kkt_gemm_a(problem).along_k,
                          .b_along_k = kkt_gemm_b(problem).along_k};
}

bool kkt_gemm_mma_applicable(const kkt_values *problem, const kkt_values *config,
                             const kkt_arch *arch, char *reason, size_t size) {
    const int64_t *c = config->v;
    if (!kkt_gemm_applicable(problem, config, arch, reason, size))
        return false;
    const long long warp_m = c[KKT_GEMM_BM] / c[KKT_GEMM_WARPS_M];
    const long long warp_n = c[KKT_GEMM_BN] / c[KKT_GEMM_WARPS_N];
    if (warp_m < BLOCK || warp_n < BLOCK) {
        snprintf(reason, size, "a warp's %lld x %lld of a tile are no whole 16 x 16", warp_m,
                 warp_n);
        return false;
    }
    const long long sums = warp_m * warp_n / WARP;
    if (sums < REGISTERS)
        return true;
    snprintf(reason, size, "the sums of %lld x %lld take %lld registers a thread, above 255",
             warp_m, warp_n, sums);
    return false;
}

void kkt_gemm_mma_registers(const kkt_gemm_mma *g, const char *name, int64_t registers,
                            kkt_footprint *out) {
    kkt_footprint_buffer(out, KKT_PLACE_REGISTER, name, g->threads, registers, 4);
}

void kkt_gemm_mma_tile(const kkt_gemm_mma *g, bool is_a, bool swizzled, int64_t stages,
                       kkt_footprint *out) {
    const int64_t lines = is_a ? g->bm : g->bn;
    const bool along_k = is_a ? g->a_along_k : g->b_along_k;
    const int64_t rows = along_k ? lines : g->bk, columns = along_k ? g->bk : lines;
    kkt_footprint_buffer(out, KKT_PLACE_SHARED, is_a ? "a" : "b", rows,
                         columns + (swizzled ? 0 : KKT_GEMM_UNIT), 2)
        ->stages = (int)stages;
}

void kkt_gemm_mma_work(const kkt_gemm_mma *g, bool a_shared, bool b_shared, kkt_footprint *out) {
    const double block_steps = (double)(g->blocks * g->steps), warps = (double)g->warps;
    const double depth = (double)g->depth;
    const double products = (double)(g->strips * g->columns) * 2 * depth;
    const double loads = (double)((a_shared ? g->strips : 0) + (b_shared ? g->columns : 0)) * depth;
    /* 16 bytes a thread: its own passes, and 3 instructions */
    const double copied =
        (double)((a_shared ? g->bm : 0) + (b_shared ? g->bn : 0)) * (double)g->bk * 2;
    out->tensor_flop = block_steps * warps * products * 16 * 8 * 16 * 2;
    out->smem_wavefronts += block_steps * (warps * loads * 4 + copied / 128);
    out->instructions += block_steps * (warps * (products + loads + 12) + copied / 16 / WARP * 3);
    /* the store: rounding, address and predicate of each pair */
    out->instructions += (double)(g->blocks * g->warps * g->strips * g->columns) * 4 * 6;
}
