/* Moves from the best of a group: one parameter set to another value, and no more changed with it
 * than makes that valid. */
#ifndef KKT_TUNER_MOVES_H
#define KKT_TUNER_MOVES_H

#include "tuner/engine/outlook.h"

typedef struct kkt_moves kkt_moves;

/* All of them are borrowed. NULL: out of memory. */
kkt_moves *kkt_moves_open(const kkt_param_table *table, const kkt_pointset *set,
                          const kkt_outlook *outlook, const kkt_surrogate *surrogate);
void kkt_moves_close(kkt_moves *moves);

/* The unproposed move from mark `best` of a group, or from the fastest that ties with it (within
 * 2 %), that is worth most; -1: none is left. Parameters that no proposed move changes come first,
 * then the greatest expected improvement over `best_log` (a logarithm of time). The surrogate must
 * be fitted. */
int64_t kkt_moves_pick(kkt_moves *moves, int group, uint32_t best, double best_log);

#endif
