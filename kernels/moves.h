/* The configurations of an ablation: a base, every value of every parameter in turn, and the pairs
 * that the family's claims compare. Pure arithmetic over tables: whoever compiles and times them
 * and whoever reports on them list the same moves in the same order. */
#ifndef KKT_KERNELS_MOVES_H
#define KKT_KERNELS_MOVES_H

#include "base/arena.h"
#include "kernels/kernel.h"
#include "model/predict.h"

/* A configuration; each is listed once however many moves lead to it. */
typedef struct kkt_move_point {
    kkt_values config;
    const char *reason; /* why it cannot be had: a constraint, or it cannot launch; NULL: it can */
    kkt_footprint footprint;   /* where `known` */
    kkt_prediction prediction; /* where `known` */
    bool known;                /* no constraint excludes it */
} kkt_move_point;

typedef struct kkt_move {
    size_t from, to;                  /* points */
    const char *label;                /* "block_pad 1 -> 0"; a claim's: its condition, or "" */
    const kkt_claim *claim;           /* NULL: one parameter moved away from the base */
    const kkt_comparison *comparison; /* of the claim */
    const kkt_param *param;           /* of a single move; else NULL */
} kkt_move;

typedef struct kkt_move_set {
    size_t point_count;
    kkt_move_point *points; /* the base first */
    size_t move_count;
    kkt_move *moves; /* single ones in the order of parameters and values, then the claims' */
} kkt_move_set;

/* Everything lives in `arena`. The parameter that is the chunk stays where it is. A claim that
 * names parameters which the variant does not have is left out. KKT_ERR_INPUT: the base itself
 * cannot be had; the message says why. */
kkt_status kkt_moves_make(const kkt_kernel *kernel, const kkt_variant *variant,
                          const kkt_values *problem, const kkt_values *base, const kkt_arch *arch,
                          const kkt_device *device, kkt_arena *arena, kkt_move_set *out,
                          kkt_error *err);

#endif
