/* Wavefronts of shared memory that one block of kkt_solve takes, phase by phase. Each phase is the
 * accesses that its device code makes: how many a warp makes of a kind, and which words its lanes
 * touch. model/banks.h turns a kind into passes; nothing is fitted but what T adds on its way out
 * (KKT_PHASE_LINES) and wgmma by reading its operands. docs/model.md, section 9, holds
 * both against counters. */
#ifndef KKT_KERNELS_KKT_SOLVE_WAVEFRONTS_H
#define KKT_KERNELS_KKT_SOLVE_WAVEFRONTS_H

#include "kernels/kkt_solve/space.h"

typedef enum kkt_solve_phase {
    KKT_PHASE_LOAD,     /* K into its tile (cp.async and TMA are not counted), the gates */
    KKT_PHASE_SCAN,     /* the gates' sums and factors */
    KKT_PHASE_PRODUCT,  /* K to operands, and K K^T to shared memory where it goes there */
    KKT_PHASE_LOWER,    /* L from K K^T and the gates */
    KKT_PHASE_DIAGONAL, /* substitution in the diagonal blocks, and their way to operands */
    KKT_PHASE_COUPLING, /* couplings through shared memory */
    KKT_PHASE_OUTPUT,   /* T into a tile and out of it */
    KKT_PHASE_LINES, /* passes that others repeat because lines of K come and of T leave meanwhile
                      */
    KKT_SOLVE_PHASES
} kkt_solve_phase;
const char *kkt_solve_phase_name(kkt_solve_phase phase);

/* Of one block, all its heads. */
typedef struct kkt_solve_wavefronts {
    double loads[KKT_SOLVE_PHASES], stores[KKT_SOLVE_PHASES];
} kkt_solve_wavefronts;

/* `problem` and `config` are kkt_values.v of an applicable configuration. */
void kkt_solve_count_wavefronts(const int64_t *problem, const int64_t *config,
                                kkt_solve_wavefronts *out);
double kkt_solve_total_wavefronts(const kkt_solve_wavefronts *wavefronts);

/* The two ways; kkt_solve_count_wavefronts chooses. */
void kkt_solve_shared_wavefronts(const int64_t *problem, const int64_t *config,
                                 kkt_solve_wavefronts *out);
void kkt_solve_register_wavefronts(const int64_t *problem, const int64_t *config,
                                   kkt_solve_wavefronts *out);

/* Passes of the accesses to L by its rows' stride, all of a warp:
 * - store_rows: two neighbouring words a lane, row l / 4, columns 2 (l % 4) and the next
 * - store_columns: the same with rows and columns exchanged, in two accesses
 * - by_rows, by_columns: a word a lane, element (l / 4, l % 4), and (l % 4, l / 4)
 * - left_quad: four neighbouring words of row l / 4
 * - right_quad: of row 2 (l % 4)
 * - rows_quad: eight lanes, four words of a row each (0 where rows are odd)
 * Where rows have an odd number of words, neighbouring words are accessed one by one. */
typedef struct kkt_stride_passes {
    uint8_t store_rows, store_columns, by_rows, by_columns, left_quad, right_quad, rows_quad;
} kkt_stride_passes;
/* Of rows of `row_words` words; all 0 for a stride that no configuration has. */
const kkt_stride_passes *kkt_solve_stride_passes(int64_t row_words);

#endif
