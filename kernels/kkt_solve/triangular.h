/* Unit lower triangular matrices on the CPU, in double: the truth the kernels are checked with.
 * All matrices are n x n, dense, row-major. */
#ifndef KKT_KERNELS_KKT_SOLVE_TRIANGULAR_H
#define KKT_KERNELS_KKT_SOLVE_TRIANGULAR_H

/* t = (I + l)^-1 by plain row-wise forward substitution; only l's strictly lower part is read.
 * `t` must not overlap `l`. Entries above the diagonal are exactly 0, on it exactly 1. */
void kkt_triangular_inverse(const double *l, int n, double *t);

/* Estimate (from below, by power iteration) of the 2-norm condition number of I + l, given its
 * inverse t. Infinite where the inverse is not finite. */
double kkt_triangular_condition(const double *l, const double *t, int n);

#endif
