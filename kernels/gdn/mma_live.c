/* What is live where a chunk of the fragment and pipelined styles needs most registers, a thread,
 * as the device code has it:
 *
 *     state    accumulators that stay for the whole sequence
 *     values   X, V' and O: accumulators of a chunk
 *     scores   accumulators of the blocks of P that a warp makes at one time
 *     tables   rows of a chunk's table that a warp keeps
 *     strips   16 tokens each: operands of K and Q for the product at hand and for the next, whose
 *              loads the compiler brings forward, and gates' factors
 *
 * The counts are the code's; how much of each must be there at once is not to be read from it, for
 * the compiler can make a table later, or load an operand again. The weights are those with which
 * the fewest of 2,339 variants that were compiled for sm_90a lie between the first that spills and
 * the last that does not. The state weighs 1. Addresses, indices and factors, which every variant
 * has, are in the bounds that mma_registers.c compares with. */
#include "kernels/gdn/mma_registers.h"

enum { BLOCK = 16, SUMS = 8 };

typedef struct weights {
    double values, scores, tables, strips, substitute;
} weights;

static const weights chain = {.values = 1.5, .scores = 0.3, .strips = 16};
/* [given T]: where it is not, tables and strips are Gamma, A and P and the triangular system. */
static const weights in_registers[2] = {
    {.values = 2.2, .tables = 1, .strips = 28, .substitute = -8},
    {.values = 2.9, .scores = 1.4, .tables = 0.5, .strips = 10.8}};
static const weights in_shared[2] = {
    {.values = 0.2, .scores = 0.1, .strips = 15.6, .substitute = 4},
    {.values = 0.3, .scores = 0.3, .strips = 6.8}};

double kkt_gdn_mma_state(const kkt_gdn_mma *m) {
    return (double)(m->dk * m->block_dv) / (double)m->threads;
}

double kkt_gdn_mma_values(const kkt_gdn_mma *m) {
    return (double)(m->chunk * m->block_dv) / (double)m->threads;
}

/* Scores that a warp makes at one time (chunk_scores.cuh). */
static double scores_of(const kkt_gdn_mma *m) {
    const int64_t row_warps = kkt_gdn_mma_row_warps(m, m->strips);
    const int64_t column_warps = m->warps / row_warps;
    const int64_t columns = (m->strips + column_warps - 1) / column_warps;
    const int64_t strips = m->strips / row_warps;
    return (double)(SUMS * strips * columns);
}

/* Blocks of a table that a warp keeps: what lies above the diagonal is left out where it is known
 * when compiling, that is for a warp that has all rows. */
static double tables_of(const kkt_gdn_mma *m) {
    const int64_t strips = m->strips / kkt_gdn_mma_row_warps(m, m->strips);
    return (double)(SUMS * (strips == m->strips ? m->blocks : strips * m->strips));
}

static double weigh(const kkt_gdn_mma *m, const weights *w, bool substitute) {
    return kkt_gdn_mma_state(m) + w->values * kkt_gdn_mma_values(m) + w->scores * scores_of(m) +
           w->tables * tables_of(m) + w->strips * (double)m->strips +
           (substitute ? w->substitute : 0);
}

double kkt_gdn_mma_rows_live(const kkt_gdn_mma *m, const kkt_gdn_mma_form *f) {
    return weigh(m, &(f->in_shared ? in_shared : in_registers)[m->given_t], f->substitute);
}

double kkt_gdn_mma_chain_live(const kkt_gdn_mma *m, const kkt_gdn_mma_form *f) {
    /* The addresses of a slot, of those of a ring; and T's. */
    const double slots = f->stages > 2 ? 7 : f->stages > 1 ? 2 : 0;
    return weigh(m, &chain, f->substitute) + slots + (m->given_t ? 2 : 0);
}
