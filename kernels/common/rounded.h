/* Results that are summed in fp32 and rounded once, to fp16 or bf16. */
#ifndef KKT_KERNELS_COMMON_ROUNDED_H
#define KKT_KERNELS_COMMON_ROUNDED_H

#include "kernels/kernel.h"

/* Adds a region to the score, elementwise. What is beyond the range of `dtype` must be infinite
 * with its sign, and no number of the type; within a thousandth of the edge it may be. A number
 * beyond the range comes out of a file of a wider type and is judged like any other. Errors that
 * no value of the type avoids (half the spacing of its smallest numbers) count as none. */
void kkt_rounded_score(kkt_dtype dtype, const kkt_region *region, const double *expected,
                       const double *actual, kkt_score *score);

#endif
