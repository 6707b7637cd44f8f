/* What kkt_solve.c and footprint.c share about one configuration: arrays are kkt_values.v in the
 * order of kkt_solve.h. */
#ifndef KKT_KERNELS_KKT_SOLVE_SPACE_H
#define KKT_KERNELS_KKT_SOLVE_SPACE_H

#include "kernels/kkt_solve/kkt_solve.h"

/* 16 x 16 tiles on and below the diagonal of a chunk, and the most that one warp keeps. */
int64_t kkt_solve_tiles(const int64_t *config);
int64_t kkt_solve_tiles_per_warp(const int64_t *config);

/* Chunk slots of the grid. One sequence: its chunks. Several: tokens / chunk + sequences, which is
 * enough whatever their lengths; blocks of surplus slots leave at once. */
int64_t kkt_solve_slots(const int64_t *problem, const int64_t *config);
/* Blocks of the grid: a slot times the groups of value heads. */
int64_t kkt_solve_blocks(const int64_t *problem, const int64_t *config);

void kkt_solve_footprint(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                         kkt_footprint *out);

#endif
