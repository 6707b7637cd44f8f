/* Registers that are live at the points of a chunk where most are, a thread, in the fragment and
 * pipelined styles: accumulators, rounded tables, and the operands of the products there. Counted
 * from the device code, with no compiler asked: accumulators are 8 registers a 16 x 16, operands 4.
 * Left out is what every kernel has: addresses, indices, a few factors. */
#include "kernels/gdn/mma_registers.h"

enum { BLOCK = 16, OPERAND = 4, SUMS = 8, TWO_PARTS = 2 * OPERAND };

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* What one warp has of so many strips: whole ones, and of block_dv columns in steps of 16. */
typedef struct share {
    int64_t strips, columns;
} share;

static share share_of(const kkt_gdn_mma *m, int64_t strips) {
    const int64_t row_warps = kkt_gdn_mma_row_warps(m, strips);
    return (share){strips / row_warps, m->block_dv * row_warps / m->warps / BLOCK};
}

static int64_t sums_of(share s) {
    return SUMS * s.strips * s.columns;
}

/* Scores that a warp makes at one time (chunk_scores.cuh). */
static share scores_of(const kkt_gdn_mma *m) {
    const int64_t row_warps = kkt_gdn_mma_row_warps(m, m->strips);
    const int64_t column_warps = m->warps / row_warps;
    return (share){m->strips / row_warps, (m->strips + column_warps - 1) / column_warps};
}

/* One column of the triangular system (triangle.cuh): sums of a chunk, of which those that are done
 * are operands in two parts, and two more such that they are multiplied with, where a chunk's own
 * right-hand side is solved for. Of the inverse's column the upper part is known. */
static int64_t system_of(const kkt_gdn_mma *m, bool substitute) {
    return m->chunk / 2 + TWO_PARTS * m->strips + (substitute ? 4 : 2) * TWO_PARTS;
}

/* With T given its rows are there before the tables, and their addresses. */
enum { T_ADDRESSES = 16 };

int64_t kkt_gdn_mma_rows_live(const kkt_gdn_mma *m, bool in_shared, bool substitute) {
    const share tokens = share_of(m, m->strips), scores = scores_of(m);
    const int64_t state = sums_of(share_of(m, m->dk / BLOCK));
    /* Blocks of a table that a warp keeps: what lies above the diagonal is left out where it is
     * known when compiling, that is for a warp that has all rows. */
    const int64_t table =
        tokens.strips == m->strips ? m->strips * (m->strips + 1) / 2 : tokens.strips * m->strips;
    const int64_t rounded = in_shared ? 0 : OPERAND * table;
    int64_t making;
    if (in_shared) {
        /* A strip's operands, and two steps' of the keys. */
        making = sums_of(scores) + 2 * OPERAND * m->strips + OPERAND * scores.strips;
    } else {
        /* Gamma, P and, where T is not given, A; two steps' operands, and factors of columns. */
        const int64_t left = m->given_t ? 1 : 2;
        making = SUMS * table * (1 + left) + 2 * OPERAND * (tokens.strips * left + 1) +
                 2 * m->strips + 8 + (m->given_t ? rounded + T_ADDRESSES : 0);
    }
    /* O, with two steps' operands of V', and two of the table. */
    const int64_t output = rounded + sums_of(tokens) + 2 * OPERAND * tokens.columns + 4 * OPERAND;
    const int64_t solving = m->given_t ? 0 : rounded + system_of(m, substitute);
    return state + larger(making, larger(output, solving));
}

int64_t kkt_gdn_mma_chain_live(const kkt_gdn_mma *m, int64_t stages, bool substitute) {
    const share scores = scores_of(m);
    const int64_t row_tiles = m->block_dv / BLOCK / m->warps; /* a warp's */
    const int64_t state = row_tiles * m->dk / 2, values = row_tiles * m->chunk / 2;
    /* As kQueriesEarly in transposed_chain.cuh. */
    const bool early = row_tiles * m->chunk <= 64 && scores.strips == 1 && m->dk <= 128;
    int64_t making;
    if (early) {
        /* S^T K^T, S^T Q^T and the scores, with two steps' operands of K and of Q. */
        making = 2 * values + sums_of(scores) + 4 * OPERAND * m->strips +
                 (m->given_t && stages > 1 ? OPERAND : 0);
    } else {
        /* The scores with two steps' operands; S^T K^T, which need not wait for them, with its
         * own. */
        making = values + sums_of(scores) + 2 * OPERAND * (m->strips + scores.strips) +
                 2 * OPERAND * (row_tiles + 1) + 6 * OPERAND;
    }
    /* X^T, and V'^T in two parts. */
    const int64_t solving = substitute ? (early ? values : 0) + 2 * values + 4 * OPERAND : 0;
    return state + larger(making, solving);
}
