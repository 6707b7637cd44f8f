#include "kernels/gemm/mma.h"

#include <stdio.h>

#include "base/integer.h"

enum { WARP = 32, BLOCK = 16, LEAST_OPERANDS = 24, PRODUCT_FLOP = 2 * 16 * 8 * 16 };

kkt_gemm_mma kkt_gemm_mma_sizes(const kkt_values *problem, const kkt_values *config) {
    const int64_t *c = config->v;
    const int64_t warps_m = c[KKT_GEMM_WARPS_M], warps_n = c[KKT_GEMM_WARPS_N];
    const int64_t steps = kkt_divide_up(problem->v[KKT_GEMM_K], c[KKT_GEMM_BK]);
    const int64_t split_k = c[KKT_GEMM_SPLIT_K];
    return (kkt_gemm_mma){.bm = c[KKT_GEMM_BM],
                          .bn = c[KKT_GEMM_BN],
                          .bk = c[KKT_GEMM_BK],
                          .warps = warps_m * warps_n,
                          .threads = warps_m * warps_n * WARP,
                          .strips = c[KKT_GEMM_BM] / warps_m / BLOCK,
                          .columns = c[KKT_GEMM_BN] / warps_n / BLOCK,
                          .depth = c[KKT_GEMM_BK] / BLOCK,
                          .steps = kkt_divide_up(steps, split_k),
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
        kkt_reason(reason, size, "a warp's %lld x %lld of a tile are no whole 16 x 16", warp_m,
                   warp_n);
        return false;
    }
    const kkt_gemm_mma g = kkt_gemm_mma_sizes(problem, config);
    const long long sums = warp_m * warp_n / WARP;
    const long long share = arch->registers_per_sm / g.threads;
    const long long most =
        share < arch->max_registers_per_thread ? share : arch->max_registers_per_thread;
    if (sums + LEAST_OPERANDS <= most)
        return true;
    kkt_reason(
        reason, size,
        "the sums of %lld x %lld take %lld registers a thread and operands %d; there are %lld",
        warp_m, warp_n, sums, LEAST_OPERANDS, most);
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

/* Bytes of the tiles of one step. */
static double step_bytes(const kkt_gemm_mma *g) {
    return (double)((g->bm + g->bn) * g->bk) * 2;
}

/* Passes in which a step's tile is written: one for each 128 bytes, and one more for each row of a
 * padded tile, which none of them begins with. */
static double copy_passes(int64_t lines, bool along_k, const kkt_gemm_mma *g, kkt_gemm_way way) {
    const double rows = (double)(along_k ? lines : g->bk);
    const double passes = (double)(lines * g->bk) * 2 / 128;
    return way == KKT_GEMM_REGISTERS ? 0 : way == KKT_GEMM_PADDED ? passes + rows : passes;
}

void kkt_gemm_mma_work(const kkt_gemm_mma *g, kkt_gemm_way a, kkt_gemm_way b, kkt_footprint *out) {
    const double block_steps = (double)(g->blocks * g->steps), warps = (double)g->warps;
    const double depth = (double)g->depth;
    const bool a_shared = a != KKT_GEMM_REGISTERS, b_shared = b != KKT_GEMM_REGISTERS;
    const double products = (double)(g->strips * g->columns) * 2 * depth;
    const double loads = (double)((a_shared ? g->strips : 0) + (b_shared ? g->columns : 0)) * depth;
    /* 16 bytes a thread, 3 instructions */
    const double copied =
        (double)((a_shared ? g->bm : 0) + (b_shared ? g->bn : 0)) * (double)g->bk * 2;
    const double written =
        copy_passes(g->bm, g->a_along_k, g, a) + copy_passes(g->bn, g->b_along_k, g, b);
    out->mma_sync_flop = block_steps * warps * products * PRODUCT_FLOP;
    out->smem_wavefronts += block_steps * warps * loads * 4;
    out->global_wavefronts += block_steps * written;
    out->instructions += block_steps * (warps * (products + loads + 12) + copied / 16 / WARP * 3);
}

void kkt_gemm_mma_store(const kkt_gemm_mma *g, bool staged, kkt_footprint *out) {
    const double blocks = (double)(g->blocks * g->warps * g->strips * g->columns);
    /* Rounding, address and predicate of each pair. */
    out->instructions += blocks * 4 * 6;
    /* Of a 16 x 16: stmatrix and 16 bytes a lane, or four stores of which each meets eight rows. */
    if (staged)
        out->smem_wavefronts += blocks * 8;
    else
        out->global_wavefronts += blocks * 4 * 8;
}

/* In the time model's units: its load's latency and its FMA, in cycles, and the share of a load
 * that it lets be seen in styles that copy ahead. */
#define LOAD_CYCLES 700.0
#define FMA_CYCLES 2.0
#define SEEN_SHARE 0.2

#define PORT_BYTES 64.0 /* of an SM from L2, a cycle */
/* Loads of that latency from asking for a tile until its products begin, beside its bytes, on an
 * H200 with one block an SM: 1,790 cycles with nothing else in flight (steps of 32 and 64 terms),
 * 1,575 with two stages (steps of 16 and 32). */
#define SERIAL_LOADS 2.4
#define AHEAD_LOADS 2.25

void kkt_gemm_mma_chain(const kkt_gemm_mma *g, const kkt_arch *arch, int64_t stages,
                        kkt_footprint *out) {
    const kkt_device *device = kkt_device_first(arch);
    const double rate = kkt_device_mma_sync_rate(device, arch).value;
    const double flop = (double)(g->warps * g->strips * g->columns * 2 * g->depth) * PRODUCT_FLOP;
    const double products = flop / rate; /* cycles of a block that has the SM to itself */
    const double copy = step_bytes(g) / PORT_BYTES / LOAD_CYCLES;
    const double ahead = (double)(stages > 1 ? stages - 1 : 1);
    const double left = (AHEAD_LOADS + copy) / ahead - products / LOAD_CYCLES;
    /* The model takes off what the style hides. */
    const double share = 1 - kkt_style_get(out->style)->latency_overlap;
    const double seen = (left > 0 ? left : 0) / share + 1 / (double)g->steps;
    kkt_footprint_step(out, KKT_STEP_GLOBAL_LOAD, stages > 1 ? seen : SERIAL_LOADS + copy, 0);
    kkt_footprint_step(out, KKT_STEP_BARRIER, stages > 1 ? 1 : 2, 0);
    kkt_footprint_step(out, KKT_STEP_PRODUCT, 1, products / FMA_CYCLES);
}

kkt_launch *kkt_gemm_mma_plan(const kkt_values *problem, const kkt_footprint *footprint,
                              const char *entry, kkt_plan *out) {
    kkt_gemm_plan_begin(problem, out);
    kkt_launch *launch = kkt_gemm_plan_launch(out, entry, footprint->blocks, footprint->threads);
    launch->dynamic_smem_bytes = kkt_footprint_smem_bytes(footprint);
    kkt_gemm_add_operands(launch, problem);
    return launch;
}
