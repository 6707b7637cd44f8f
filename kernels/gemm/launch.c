/* What the variants of gemm share on the host: tiles, traffic, -D options and launches. */
#include <stdio.h>

#include "base/integer.h"
#include "kernels/gemm/gemm.h"
#include "model/predict.h"

enum { REPACK_WARPS = 8, REPACK_UNITS = 128, ELEMENT_BYTES = 2, PARTIAL_BYTES = 4 };

int64_t kkt_gemm_tile_count(const kkt_values *problem, const kkt_values *config) {
    return kkt_divide_up(problem->v[KKT_GEMM_M], config->v[KKT_GEMM_BM]) *
           kkt_divide_up(problem->v[KKT_GEMM_N], config->v[KKT_GEMM_BN]);
}

bool kkt_gemm_applicable(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                         char *reason, size_t size) {
    const long long split_k = config->v[KKT_GEMM_SPLIT_K];
    const long long steps = kkt_divide_up(problem->v[KKT_GEMM_K], config->v[KKT_GEMM_BK]);
    if (!arch->has_cp_async) {
        kkt_reason(reason, size,
                   "%s has neither cp.async nor bf16 tensor cores; sm80 or later does", arch->name);
        return false;
    }
    if (split_k > 1 && split_k > steps) {
        kkt_reason(reason, size, "split_k %lld is more than the %lld steps that k has", split_k,
                   steps);
        return false;
    }
    const long long blocks = kkt_gemm_tile_count(problem, config) * split_k;
    if (blocks > INT32_MAX) {
        kkt_reason(reason, size, "%lld blocks are above the grid's limit of 2147483647", blocks);
        return false;
    }
    return true;
}

/* ---- traffic ---- */

static double matrix_bytes(const kkt_gemm_operand *o) {
    return (double)(o->rows * o->columns) * ELEMENT_BYTES;
}

static void count_repack(const kkt_gemm_operand *o, kkt_footprint *out) {
    if (!o->padded)
        return;
    const double copy = (double)(o->rows * o->stride) * ELEMENT_BYTES;
    out->launches++;
    out->hbm_read_bytes += copy;
    out->hbm_write_bytes += copy;
    out->l2_read_bytes += matrix_bytes(o);
    out->instructions += copy / 4 / 32 * 12;
}

void kkt_gemm_footprint(const kkt_values *problem, const kkt_values *config, kkt_style_id style,
                        int64_t threads, kkt_footprint *out) {
    const int64_t *p = problem->v, *c = config->v;
    const kkt_gemm_operand a = kkt_gemm_a(problem), b = kkt_gemm_b(problem);
    const int64_t split_k = c[KKT_GEMM_SPLIT_K];
    const int64_t steps = kkt_divide_up(p[KKT_GEMM_K], c[KKT_GEMM_BK]);
    *out = (kkt_footprint){.style = style,
                           .tokens = 1,
                           .blocks = kkt_gemm_tile_count(problem, config) * split_k,
                           .chunks_per_block = kkt_divide_up(steps, split_k),
                           .threads = (int)threads,
                           .cluster = 1,
                           .barriers = 1,
                           .launches = split_k > 1 ? 2 : 1};
    const double c_elements = (double)p[KKT_GEMM_M] * (double)p[KKT_GEMM_N];
    const double tiles_down = (double)kkt_divide_up(p[KKT_GEMM_M], c[KKT_GEMM_BM]);
    const double tiles_across = (double)kkt_divide_up(p[KKT_GEMM_N], c[KKT_GEMM_BN]);
    out->hbm_read_bytes = matrix_bytes(&a) + matrix_bytes(&b);
    out->hbm_write_bytes = c_elements * ELEMENT_BYTES;
    out->l2_read_bytes = matrix_bytes(&a) * tiles_across + matrix_bytes(&b) * tiles_down;
    if (split_k > 1) {
        const double partials = c_elements * PARTIAL_BYTES * (double)split_k;
        out->hbm_read_bytes += partials;
        out->hbm_write_bytes += partials;
        out->l2_read_bytes += partials;
    }
    count_repack(&a, out);
    count_repack(&b, out);
}

/* Blocks of an SM. */
static int64_t resident(const kkt_footprint *fp, const kkt_arch *arch) {
    kkt_prediction prediction;
    kkt_predict(fp, arch, kkt_device_first(arch), NULL, &prediction);
    return prediction.occupancy.blocks_per_sm > 0 ? prediction.occupancy.blocks_per_sm : 1;
}

void kkt_gemm_reread(const kkt_gemm_waves *waves, const kkt_arch *arch, kkt_footprint *out) {
    const double once = (double)(waves->m + waves->n) * waves->line_bytes;
    const double l2_bytes = kkt_device_first(arch)->l2_bytes.value;
    out->hbm_again_bytes = kkt_gemm_wave_reads(waves, l2_bytes, ELEMENT_BYTES) - once;
    out->hbm_read_bytes += out->hbm_again_bytes;
    if (waves->parts > 1) {
        const double partials = (double)(waves->m * waves->n * waves->parts) * PARTIAL_BYTES;
        out->hbm_read_bytes -= partials * kkt_gemm_survivors(partials, l2_bytes);
    }
}

void kkt_gemm_reread_tiles(const kkt_values *problem, const kkt_values *config,
                           const kkt_arch *arch, int64_t group, kkt_footprint *out) {
    const int64_t *p = problem->v, *c = config->v;
    const int64_t sms = (int64_t)kkt_device_first(arch)->sm_count.value;
    const kkt_gemm_waves waves = {.m = p[KKT_GEMM_M],
                                  .n = p[KKT_GEMM_N],
                                  .height = c[KKT_GEMM_BM],
                                  .width = c[KKT_GEMM_BN],
                                  .group = group,
                                  .at_once = sms * resident(out, arch),
                                  .parts = c[KKT_GEMM_SPLIT_K],
                                  .line_bytes = (double)(p[KKT_GEMM_K] * ELEMENT_BYTES)};
    kkt_gemm_reread(&waves, arch, out);
}

/* ---- compiling and launching ---- */

void kkt_gemm_defines(const kkt_values *problem, const kkt_footprint *footprint, kkt_text *out) {
    const kkt_gemm_operand a = kkt_gemm_a(problem), b = kkt_gemm_b(problem);
    kkt_text_printf(out, "KKT_DTYPE=%lld\n", (long long)problem->v[KKT_GEMM_DTYPE]);
    kkt_text_printf(out, "KKT_A_ALONG_K=%d\n", a.along_k);
    kkt_text_printf(out, "KKT_B_ALONG_K=%d\n", b.along_k);
    kkt_text_printf(out, "KKT_C_UNITS=%d\n", problem->v[KKT_GEMM_N] % KKT_GEMM_UNIT == 0);
    kkt_text_printf(out, "KKT_SMEM_BYTES=%lld\n", (long long)kkt_footprint_smem_bytes(footprint));
}

kkt_launch *kkt_gemm_plan_launch(kkt_plan *plan, const char *entry, int64_t blocks,
                                 int64_t threads) {
    kkt_launch *launch = &plan->launches[plan->launch_count++];
    *launch = (kkt_launch){.entry = entry,
                           .grid = {(uint32_t)blocks, 1, 1},
                           .block = {(uint32_t)threads, 1, 1},
                           .carveout_percent = -1};
    return launch;
}

void kkt_gemm_add_tensor(kkt_launch *launch, int tensor) {
    launch->args[launch->arg_count++] = (kkt_arg){.kind = KKT_ARG_TENSOR, .tensor = tensor};
}

void kkt_gemm_add_i32(kkt_launch *launch, int64_t value) {
    launch->args[launch->arg_count++] = (kkt_arg){.kind = KKT_ARG_I32, .integer = value};
}

void kkt_gemm_add_i64(kkt_launch *launch, int64_t value) {
    launch->args[launch->arg_count++] = (kkt_arg){.kind = KKT_ARG_I64, .integer = value};
}

static void add_repack(kkt_plan *plan, const kkt_gemm_operand *o) {
    if (!o->padded)
        return;
    const int64_t units = o->stride / KKT_GEMM_UNIT;
    const int64_t warps = o->rows * kkt_divide_up(units, REPACK_UNITS);
    kkt_launch *launch = kkt_gemm_plan_launch(
        plan, "gemm_repack", kkt_divide_up(warps, REPACK_WARPS), REPACK_WARPS * 32);
    kkt_gemm_add_tensor(launch, o->tensor);
    kkt_gemm_add_tensor(launch, KKT_GEMM_TENSOR_PADDED);
    kkt_gemm_add_i64(launch, o->at);
    kkt_gemm_add_i64(launch, o->rows);
    kkt_gemm_add_i32(launch, o->columns);
    kkt_gemm_add_i32(launch, units);
}

void kkt_gemm_plan_begin(const kkt_values *problem, kkt_plan *out) {
    const kkt_gemm_operand a = kkt_gemm_a(problem), b = kkt_gemm_b(problem);
    *out = (kkt_plan){.launch_count = 0};
    add_repack(out, &a);
    add_repack(out, &b);
}

void kkt_gemm_add_operands(kkt_launch *launch, const kkt_values *problem) {
    const kkt_gemm_operand a = kkt_gemm_a(problem), b = kkt_gemm_b(problem);
    kkt_gemm_add_tensor(launch, KKT_GEMM_TENSOR_A);
    kkt_gemm_add_tensor(launch, KKT_GEMM_TENSOR_B);
    kkt_gemm_add_tensor(launch, KKT_GEMM_TENSOR_PADDED);
    kkt_gemm_add_i64(launch, a.padded ? a.at : -1);
    kkt_gemm_add_i64(launch, b.padded ? b.at : -1);
    kkt_gemm_add_i32(launch, problem->v[KKT_GEMM_M]);
    kkt_gemm_add_i32(launch, problem->v[KKT_GEMM_N]);
    kkt_gemm_add_i32(launch, problem->v[KKT_GEMM_K]);
    kkt_gemm_add_i32(launch, a.stride);
    kkt_gemm_add_i32(launch, b.stride);
}
