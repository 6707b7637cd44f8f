/* Where the parts of a result lie: a part is one chunk of one sequence and one value head. */
#ifndef KKT_KERNELS_KKT_SOLVE_PARTS_H
#define KKT_KERNELS_KKT_SOLVE_PARTS_H

#include "kernels/kkt_solve/kkt_solve.h"

/* Chunks of all sequences and batch entries; empty sequences have none. */
int64_t kkt_solve_chunk_count(const kkt_values *problem, int64_t chunk, kkt_host_tensors *inputs);
/* Part `index` of chunk_count x heads_v, the head running fastest. False past the end. */
bool kkt_solve_part_at(const kkt_values *problem, int64_t chunk, kkt_host_tensors *inputs,
                       int64_t index, kkt_chunk_part *out);
/* The rows x rows matrix L of a part, dense, in double from the exact input values; entries on
 * and above the diagonal are 0. KKT_ERR_ENVIRONMENT when memory runs out. */
kkt_status kkt_solve_lower(const kkt_values *problem, kkt_host_tensors *inputs,
                           const kkt_chunk_part *part, double *l, kkt_error *err);

#endif
