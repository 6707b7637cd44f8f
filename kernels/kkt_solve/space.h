/* What kkt_solve.c, constraints.c and the footprints share about one configuration: arrays are
 * kkt_values.v in the order of kkt_solve.h. */
#ifndef KKT_KERNELS_KKT_SOLVE_SPACE_H
#define KKT_KERNELS_KKT_SOLVE_SPACE_H

#include "kernels/kkt_solve/kkt_solve.h"

/* 16 x 16 tiles on and below the diagonal of a chunk, and the most that one warp keeps. */
int64_t kkt_solve_tiles(const int64_t *config);
int64_t kkt_solve_tiles_per_warp(const int64_t *config);

extern const kkt_param kkt_solve_params[KKT_SOLVE_PARAMS];

/* Rows that a block takes. */
static inline int64_t kkt_solve_span(const int64_t *config) {
    return config[KKT_SOLVE_CHUNK] * config[KKT_SOLVE_CHUNKS_PER_BLOCK];
}

/* Warps that share a K K^T. */
static inline int64_t kkt_solve_area_warps(const int64_t *config) {
    return config[KKT_SOLVE_SHARE] == KKT_SHARE_VALUE_HEAD ? 1 : config[KKT_SOLVE_THREADS] / 32;
}

static inline bool kkt_solve_uses_tensor_maps(const int64_t *config) {
    return config[KKT_SOLVE_KLOAD] == KKT_KLOAD_TMA || config[KKT_SOLVE_STORE] >= KKT_STORE_TMA;
}

/* Span slots of the grid. One sequence: its spans. Several: tokens / span + sequences, which is
 * enough whatever their lengths; blocks of surplus slots leave at once. */
int64_t kkt_solve_slots(const int64_t *problem, const int64_t *config);
/* Units of work: a slot times the groups of value heads. A block takes one, or, persistent, its
 * share of them. */
int64_t kkt_solve_units(const int64_t *problem, const int64_t *config);
/* Blocks of the grid. Persistent ones: min_blocks on each SM of the architecture's first device. */
int64_t kkt_solve_blocks(const int64_t *problem, const int64_t *config, const kkt_arch *arch);

bool kkt_solve_applicable(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                          char *reason, size_t size);

/* Fills what is common to both ways and asks the way's own file for the rest. */
void kkt_solve_footprint(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                         kkt_footprint *out);
/* footprint_registers.c: shared memory, registers, work and steps of couplings in registers. */
void kkt_solve_footprint_registers(const int64_t *problem, const int64_t *config,
                                   kkt_footprint *out);

#endif
