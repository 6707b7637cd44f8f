#include "kernels/gdn/mma.h"

#include <math.h>
#include <stdio.h>

enum { WARP = 32, BLOCK = 16, PAD = 8, OPERAND_BYTES = 512, PARTS = 2, REGISTERS = 256 };

kkt_gdn_mma kkt_gdn_mma_sizes(const kkt_values *problem, int64_t chunk, int64_t block_dv,
                              int64_t threads, int64_t min_blocks, bool given_t) {
    const int64_t strips = chunk / BLOCK;
    return (kkt_gdn_mma){.chunk = chunk,
                         .dk = problem->v[KKT_GDN_DK],
                         .block_dv = block_dv,
                         .threads = threads,
                         .min_blocks = min_blocks,
                         .warps = threads / WARP,
                         .strips = strips,
                         .blocks = strips * (strips + 1) / 2,
                         .given_t = given_t};
}

bool kkt_gdn_mma_applicable(const kkt_values *problem, const kkt_gdn_mma *m, const kkt_arch *arch,
                            char *reason, size_t size) {
    if (!kkt_gdn_has_tensor_copies(arch, reason, size) ||
        !kkt_gdn_block_dv_fits(problem, m->block_dv, reason, size))
        return false;
    const int64_t blocks = problem->v[KKT_GDN_BATCH] * problem->v[KKT_GDN_SEQUENCES] *
                           problem->v[KKT_GDN_HEADS_V] * (problem->v[KKT_GDN_DV] / m->block_dv);
    if (blocks > INT32_MAX) {
        snprintf(reason, size, "%lld blocks are above the grid's limit of 2147483647",
                 (long long)blocks);
        return false;
    }
    if (m->min_blocks == 0)
        return true;
    const long long left = arch->registers_per_sm / (m->min_blocks * m->threads) / 8 * 8;
    if (left >= 96 && left < 255)
        return true;
    snprintf(reason, size, "min_blocks %lld of %lld threads leave %lld registers a thread: %s",
             (long long)m->min_blocks, (long long)m->threads, left,
             left < 96 ? "fragments take more" : "that is no limit");
    return false;
}

bool kkt_gdn_mma_chain_fits(const kkt_gdn_mma *m, char *reason, size_t size) {
    const long long rows = m->block_dv / m->warps, state = rows * m->dk / WARP;
    if (rows % BLOCK != 0) {
        snprintf(reason, size, "block_dv %lld has no 16 columns for each of %lld warps",
                 (long long)m->block_dv, (long long)m->warps);
        return false;
    }
    if (state < REGISTERS)
        return true;
    snprintf(reason, size,
             "the state of %lld columns takes %lld registers a thread in %lld warps, above 255",
             (long long)m->block_dv, state, (long long)m->warps);
    return false;
}

static int64_t common_divisor(int64_t a, int64_t b) {
    return b == 0 ? a : common_divisor(b, a % b);
}

/* Warps that share a strip of `strips`, in the fragment style. */
static int64_t column_warps(const kkt_gdn_mma *m, int64_t strips) {
    return m->warps / common_divisor(strips, m->warps);
}

bool kkt_gdn_mma_rows_fit(const kkt_gdn_mma *m, char *reason, size_t size) {
    const int64_t strips[] = {m->strips, m->dk / BLOCK};
    for (int i = 0; i < 2; i++) {
        const int64_t warps = column_warps(m, strips[i]);
        if (m->block_dv % (BLOCK * warps) == 0)
            continue;
        snprintf(reason, size, "block_dv %lld has no 16 columns for each of %lld warps of a strip",
                 (long long)m->block_dv, (long long)warps);
        return false;
    }
    const long long state = m->dk * m->block_dv / m->threads;
    const long long table = m->chunk * m->chunk / m->threads * column_warps(m, m->strips);
    if (state < REGISTERS && table < REGISTERS)
        return true;
    snprintf(reason, size, "%s takes %lld registers a thread, above 255",
             state < REGISTERS ? "one table of the chunk" : "the state",
             state < REGISTERS ? table : state);
    return false;
}

/* Bytes of T that a sequence of `length` tokens reads for one value head: a row as far as its
 * strip's diagonal block goes. */
static int64_t t_bytes(int64_t length, int64_t chunk) {
    int64_t elements = 0;
    for (int64_t strip = 0; strip < chunk / BLOCK; strip++) {
        const int64_t whole = length / chunk * BLOCK, rest = length % chunk - strip * BLOCK;
        elements += (whole + (rest < 0 ? 0 : rest < BLOCK ? rest : BLOCK)) * (strip + 1) * BLOCK;
    }
    return 2 * elements;
}

void kkt_gdn_mma_footprint(const kkt_values *problem, const kkt_gdn_mma *m, kkt_style_id style,
                           kkt_footprint *out) {
    const kkt_attention a = kkt_gdn_attention(problem);
    const kkt_gdn_style common = {.style = style,
                                  .given_t = m->given_t,
                                  .block_dv = m->block_dv,
                                  .threads = m->threads,
                                  .products = m->given_t ? 5 : 6};
    kkt_gdn_fused_footprint(problem, m->chunk, &common, out);
    kkt_footprint_role(out, "all", (int)m->threads);
    out->min_blocks = (int)m->min_blocks;
    if (!m->given_t)
        return;
    const int64_t read = a.sequences * a.heads_v * t_bytes(a.tokens / a.sequences, m->chunk);
    const int64_t whole = a.tokens * a.heads_v * 2 * m->chunk;
    out->hbm_read_bytes -= (double)(whole - read);
    out->l2_read_bytes -= (double)((whole - read) * (a.dv / m->block_dv));
}

void kkt_gdn_mma_tile(kkt_footprint *fp, const char *name, int64_t rows, int64_t columns,
                      int64_t stages) {
    kkt_gdn_shared_tile(fp, name, rows, columns + PAD, 2, stages);
}

void kkt_gdn_mma_blocks(kkt_footprint *fp, const kkt_gdn_mma *m, const char *name, int64_t stages) {
    kkt_gdn_shared_tile(fp, name, m->blocks, OPERAND_BYTES, 1, stages);
}

void kkt_gdn_mma_gates(kkt_footprint *fp, const kkt_gdn_mma *m, int64_t copies) {
    const int64_t floats = (7 * m->chunk + m->strips * m->strips + 1 + 3) / 4 * 4;
    kkt_gdn_shared_tile(fp, "gates", 1, floats, 4, copies);
}

void kkt_gdn_mma_triangle(kkt_footprint *fp, const kkt_gdn_mma *m) {
    if (m->blocks > m->strips)
        kkt_gdn_shared_tile(fp, "lower", m->blocks - m->strips, PARTS * OPERAND_BYTES, 1, 1);
    kkt_gdn_shared_tile(fp, "inverses", m->strips, PARTS * OPERAND_BYTES, 1, 1);
    /* 8 x 8 blocks of fp32, padded, and their inverses; over them where a warp reads all first. */
    const int64_t diagonals = (m->strips + m->warps - 1) / m->warps, blocks = 2 * diagonals;
    const int64_t words = blocks * 72 * 4, matrices = PARTS * blocks * 128;
    const int64_t scratch = diagonals > 4 ? words + matrices : words > matrices ? words : matrices;
    kkt_gdn_shared_tile(fp, "scratch", m->warps, (scratch + 15) / 16 * 16, 1, 1);
}

void kkt_gdn_mma_row_tiles(kkt_footprint *fp, const kkt_gdn_mma *m) {
    kkt_gdn_mma_tile(fp, "k", m->chunk, m->dk, 1);
    kkt_gdn_mma_tile(fp, "q", m->chunk, m->dk, 1);
    kkt_gdn_mma_tile(fp, "v", m->chunk, m->block_dv, 1);
    kkt_gdn_mma_tile(fp, "values", m->chunk, m->block_dv, 1);
    kkt_gdn_mma_tile(fp, "ends", m->chunk, m->block_dv, 1);
    kkt_gdn_mma_tile(fp, "state", m->dk, m->block_dv, 1);
    kkt_gdn_mma_gates(fp, m, 1);
}

void kkt_gdn_mma_chain_registers(kkt_footprint *fp, const kkt_gdn_mma *m, bool substitute) {
    (void)substitute;
    kkt_gdn_register_table(fp, "state", m->dk, m->block_dv, 0);
    kkt_gdn_register_table(fp, "values", m->chunk, m->block_dv, 0);
}

void kkt_gdn_mma_row_registers(kkt_footprint *fp, const kkt_gdn_mma *m, bool in_shared,
                               bool substitute) {
    (void)substitute;
    kkt_gdn_register_table(fp, "state", m->dk, m->block_dv, 0);
    if (!in_shared)
        kkt_gdn_register_table(fp, "gamma", m->chunk, m->chunk, 0);
}

void kkt_gdn_mma_defines(const kkt_values *problem, const kkt_footprint *fp, bool given_t,
                         kkt_text *out) {
    kkt_gdn_defines(problem, fp, out);
    if (given_t)
        kkt_text_printf(out, "KKT_T_FORM=%lld\n", (long long)problem->v[KKT_GDN_T_FORM]);
}

void kkt_gdn_mma_plan(const kkt_values *problem, const kkt_footprint *fp, bool given_t,
                      kkt_plan *out) {
    const int64_t *p = problem->v;
    const int count = given_t ? KKT_FWD_T_TENSORS : KKT_FWD_TENSORS;
    *out = (kkt_plan){.launch_count = 1};
    kkt_launch *launch = &out->launches[0];
    *launch = (kkt_launch){.entry = given_t ? "gdn_fwd_t" : "gdn_fwd",
                           .grid = {(uint32_t)fp->blocks, 1, 1},
                           .block = {(uint32_t)fp->threads, 1, 1},
                           .dynamic_smem_bytes = kkt_footprint_smem_bytes(fp),
                           .carveout_percent = -1};
    for (int i = 0; i < count; i++)
        kkt_gdn_add_tensor(launch, i);
    kkt_gdn_add_i64(launch, p[KKT_GDN_TOKENS] / p[KKT_GDN_BATCH]);
    kkt_gdn_add_i32(launch, p[KKT_GDN_HEADS_K]);
    kkt_gdn_add_i32(launch, p[KKT_GDN_HEADS_V]);
    launch->args[launch->arg_count++] =
        (kkt_arg){.kind = KKT_ARG_F32, .real = 1.0 / sqrt((double)p[KKT_GDN_DK])};
}
