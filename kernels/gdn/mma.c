#include "kernels/gdn/mma.h"

#include <math.h>
#include <stdio.h>

#include "kernels/gdn/mma_registers.h"

enum { WARP = 32, BLOCK = 16, PAD = 8, OPERAND_BYTES = 512, PARTS = 2, REGISTERS = 256 };

kkt_gdn_mma kkt_gdn_mma_sizes(const kkt_values *problem, int64_t chunk, int64_t block_dv,
                              int64_t threads, int64_t min_blocks, bool given_t) {
    const int64_t strips = chunk / BLOCK;
    return (kkt_gdn_mma){.chunk = chunk,
                         .dk = problem->v[KKT_GDN_DK],
                         .dv = problem->v[KKT_GDN_DV],
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
        kkt_reason(reason, size, "%lld blocks are above the grid's limit of 2147483647",
                   (long long)blocks);
        return false;
    }
    if (m->min_blocks == 0)
        return true;
    const long long left = arch->registers_per_sm / (m->min_blocks * m->threads) / 8 * 8;
    if (left >= 96 && left < 255)
        return true;
    kkt_reason(reason, size, "min_blocks %lld of %lld threads leave %lld registers a thread: %s",
               (long long)m->min_blocks, (long long)m->threads, left,
               left < 96 ? "fragments take more" : "that is no limit");
    return false;
}

bool kkt_gdn_mma_chain_fits(const kkt_gdn_mma *m, char *reason, size_t size) {
    const long long rows = m->block_dv / m->warps, state = rows * m->dk / WARP;
    if (rows % BLOCK != 0) {
        kkt_reason(reason, size, "block_dv %lld has no 16 columns for each of %lld warps",
                   (long long)m->block_dv, (long long)m->warps);
        return false;
    }
    if (state < REGISTERS)
        return true;
    kkt_reason(reason, size,
               "the state of %lld columns takes %lld registers a thread in %lld warps, above 255",
               (long long)m->block_dv, state, (long long)m->warps);
    return false;
}

static int64_t common_divisor(int64_t a, int64_t b) {
    return b == 0 ? a : common_divisor(b, a % b);
}

int64_t kkt_gdn_mma_row_warps(const kkt_gdn_mma *m, int64_t strips) {
    return common_divisor(strips, m->warps);
}

/* Warps that share a strip of `strips`. */
static int64_t column_warps(const kkt_gdn_mma *m, int64_t strips) {
    return m->warps / kkt_gdn_mma_row_warps(m, strips);
}

bool kkt_gdn_mma_rows_fit(const kkt_gdn_mma *m, char *reason, size_t size) {
    const int64_t strips[] = {m->strips, m->dk / BLOCK};
    for (int i = 0; i < 2; i++) {
        const int64_t rows = kkt_gdn_mma_row_warps(m, strips[i]);
        if (m->block_dv * rows % (BLOCK * m->warps) == 0)
            continue;
        kkt_reason(reason, size,
                   "block_dv %lld has no 16 columns for each of %lld warps of a strip",
                   (long long)m->block_dv, (long long)column_warps(m, strips[i]));
        return false;
    }
    const long long state = m->dk * m->block_dv / m->threads;
    const long long table = m->chunk * m->chunk / m->threads * column_warps(m, m->strips);
    if (state < REGISTERS && table < REGISTERS)
        return true;
    kkt_reason(reason, size, "%s takes %lld registers a thread, above 255",
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
    out->mma_sync_flop = out->tensor_flop;
    out->tensor_flop = 0;
    kkt_footprint_role(out, "all", (int)m->threads);
    out->min_blocks = (int)m->min_blocks;
    if (!m->given_t)
        return;
    const int64_t read = a.sequences * a.heads_v * t_bytes(a.tokens / a.sequences, m->chunk);
    const int64_t whole = a.tokens * a.heads_v * 2 * m->chunk;
    out->hbm_read_bytes -= (double)(whole - read);
    const int64_t splits = a.dv / m->block_dv;
    out->l2_read_bytes -= (double)((whole - read) * splits);
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

/* ---- instructions and passes of the shared-memory pipe ---- */

/* Of one warp and chunk. */
typedef struct counts {
    double products; /* m16n8k16 */
    double loads;    /* ldmatrix of four, or as much: 4 passes each */
    double others;   /* instructions */
    double uneven;   /* instructions that the busiest warp has beyond the others' mean */
} counts;

/* What all threads copy of a chunk, in and out, 16 bytes at a time. A copy of 32 units passes once
 * for each line of 128 bytes that it has, and again where padding shifts a line: 10.5 passes on an
 * H200. */
static void count_copies(const kkt_gdn_mma *m, double each, double *instructions, double *passes) {
    const double t = m->given_t ? (double)m->blocks * 32 : 0;
    const double in = (double)(m->chunk * (2 * m->dk + m->block_dv)) / 8 + t;
    const double out = (double)(m->chunk * m->block_dv) / 8;
    *instructions = (in + out) / WARP * each;
    *passes = in / WARP * 10.5 + out / WARP * 4;
}

/* `each`: instructions of a copy of 32 units, with its addresses. */
static void add_counts(const kkt_gdn_mma *m, const counts *n, double each, kkt_footprint *fp) {
    double copies, passes;
    count_copies(m, each, &copies, &passes);
    const double chunks = (double)fp->blocks * (double)fp->chunks_per_block;
    const double warps = (double)m->warps;
    const double all = copies + warps * (n->products + n->loads + n->others);
    fp->instructions = chunks * all;
    fp->block_instructions = (double)fp->chunks_per_block * (all + warps * n->uneven);
    fp->smem_wavefronts = chunks * (passes + warps * n->loads * 4);
}

/* The triangular system of a chunk, a warp's share; then strips one after the other, for `rows`
 * right-hand sides of 16 columns (or the inverse's own). */
static void add_system(const kkt_gdn_mma *m, double rows, bool substitute, counts *n) {
    const double share = 1.0 / (double)m->warps;
    const double strips = (double)m->strips, blocks = (double)m->blocks;
    const double steps = (double)m->dk / BLOCK;
    n->products += share * blocks * steps * 2;
    n->loads += share * blocks * steps * 2;
    n->others += share * (blocks * 100 + strips * 250);
    /* blocks below the diagonal eliminate, diagonal ones finish: three products of parts each. Of
     * T's columns, which are dealt out to the warps, the first has all blocks. */
    const double solves = substitute ? rows * blocks : share * blocks * (strips + 1) / 3;
    const double most = substitute ? solves : fmax(solves, blocks);
    n->uneven = (most - solves) * (6 + 2 + 16);
    n->products += solves * 6 + (substitute ? 0 : rows * blocks * 2);
    n->loads += solves * 2 + (substitute ? 0 : rows * blocks);
    n->others += solves * 16;
}

/* Cycles from one instruction of a warp to its next, and those of a chunk in which it waits for
 * global loads that nothing hides. Fitted to the times of gdn_fwd and gdn_fwd_t, 67 configurations
 * of the pipelined style and 71 of the fragment style. */
#define CHAIN_INSTRUCTION_CYCLES 5.05
#define CHAIN_LOAD_CYCLES 1700.0
#define ROW_INSTRUCTION_CYCLES 4.95
#define ROW_LOAD_CYCLES 780.0

/* A ring's copies are spread over its products, their addresses kept from chunk to chunk. */
#define RING_COPY_INSTRUCTIONS 7.0
#define TILE_COPY_INSTRUCTIONS 30.0

/* Of a ring's slot, whose address is no mere parity with more than two: 0 to 140 a stage, by pairs
 * of configurations that differ in their stages alone. */
#define SLOT_INSTRUCTIONS 30.0

/* Checked with an H200's counters at chunk 64, dk 128 and 8 warps: 1,186 instructions and 640
 * passes a warp and chunk are 1,176 and 667 here. With one stage the chunk's own copies are waited
 * for at once. */
static void count_chain(const kkt_gdn_mma *m, bool substitute, int64_t stages, kkt_footprint *fp) {
    const double steps = (double)m->dk / BLOCK, strips = (double)m->strips;
    const double blocks = (double)m->blocks;
    const int64_t row_tiles = m->block_dv / BLOCK / m->warps;
    const double rows = (double)row_tiles;
    counts n = {.products = 6 * rows * strips * steps + 4 * rows * blocks +
                            2 * blocks * steps / (double)m->warps,
                .loads = 3 * strips * steps + steps + rows * strips + 2 * blocks,
                .others =
                    rows * steps * 12 + rows * strips * 56 + blocks * 100 / (double)m->warps + 230};
    if (!m->given_t) {
        n.products -= 2 * rows * blocks;
        n.loads -= blocks;
        add_system(m, rows, substitute, &n);
    }
    n.others += SLOT_INSTRUCTIONS * (double)(stages > 2 ? stages - 2 : 0);
    add_counts(m, &n, RING_COPY_INSTRUCTIONS, fp);
    fp->instruction_cycles = CHAIN_INSTRUCTION_CYCLES;
    fp->wait_cycles = stages > 1 ? 0 : CHAIN_LOAD_CYCLES;
}

/* The coefficients of `others`, of the system's and of a copy are fitted to an H200's counters of
 * 27 configurations, chunks 16 to 128: within 18 %, two thirds of them within 6 %. Between its
 * barriers the warps of a block have unequal work: the more there are, the longer the slowest
 * takes. */
static void count_rows(const kkt_gdn_mma *m, bool in_shared, bool substitute, kkt_footprint *fp) {
    const double warps = (double)m->warps, steps = (double)m->dk / BLOCK;
    const double strips = (double)m->strips, blocks = (double)m->blocks;
    const double columns = (double)m->block_dv / BLOCK;
    const double row_parts = (double)column_warps(m, m->strips); /* warps of a strip */
    const double table_parts = in_shared ? 1 : row_parts;
    counts n = {.products = (6 * columns * strips * steps + 4 * columns * blocks +
                             2 * blocks * steps * table_parts) /
                            warps,
                /* K S, Q S: left rows, and S by each warp; K^T X; the tables; tiles in and out */
                .loads = (2 * strips * steps * row_parts + steps * strips +
                          blocks * steps * table_parts * 1.5 + 2 * blocks * columns / 2 +
                          6 * columns * strips + steps * columns) /
                             warps +
                         2 * steps * columns / row_parts + strips * columns,
                .others = (columns * strips * 140 + blocks * table_parts * 8) / warps + 112};
    if (!m->given_t)
        add_system(m, columns / warps, substitute, &n);
    add_counts(m, &n, TILE_COPY_INSTRUCTIONS, fp);
    fp->instruction_cycles = ROW_INSTRUCTION_CYCLES * cbrt(fmax(1, warps / 4));
    fp->wait_cycles = ROW_LOAD_CYCLES;
}

/* ---- registers ---- */

void kkt_gdn_mma_chain_registers(kkt_footprint *fp, const kkt_gdn_mma *m, const kkt_arch *arch,
                                 int64_t stages, bool substitute) {
    const kkt_gdn_mma_form form = {
        .isa = kkt_gdn_isa_of(arch), .stages = stages, .substitute = substitute};
    kkt_gdn_register_table(fp, "state", m->dk, m->block_dv, 0);
    kkt_gdn_register_table(fp, "values", m->chunk, m->block_dv, 0);
    kkt_gdn_mma_chain_demand(fp, m, &form);
    count_chain(m, substitute, stages, fp);
}

void kkt_gdn_mma_row_registers(kkt_footprint *fp, const kkt_gdn_mma *m, const kkt_arch *arch,
                               bool in_shared, bool substitute) {
    const kkt_gdn_mma_form form = {
        .isa = kkt_gdn_isa_of(arch), .in_shared = in_shared, .substitute = substitute};
    const int64_t rows = m->chunk * column_warps(m, m->strips);
    kkt_gdn_register_table(fp, "state", m->dk, m->block_dv, 0);
    if (!in_shared) {
        kkt_gdn_register_table(fp, "gamma", rows, m->chunk, 0);
        kkt_gdn_register_table(fp, "p", rows, m->chunk, 0);
        if (!m->given_t)
            kkt_gdn_register_table(fp, "a", rows, m->chunk, 0);
    }
    kkt_gdn_mma_rows_demand(fp, m, &form);
    count_rows(m, in_shared, substitute, fp);
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
