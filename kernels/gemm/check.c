/* How results of gemm are judged. */
#include "kernels/common/rounded.h"
#include "kernels/gemm/gemm.h"

/* Relative Frobenius error allowed.
 *
 * The output's rounding is at most half a unit in the last place of each element: 2^-11 of it in
 * fp16, 2^-8 in bf16. Products are exact in fp32; tensor cores align the terms of a sum and cut
 * off, an error of at most a unit, 2^-23, of the sum so far for each step of 16 terms, and no sum
 * of independent terms is larger on the way than at its end by more than chance. The 32 steps more
 * are for short sums, and for the few additions of partial sums.
 *
 * Sums of -1, 0 and 1 are small integers and exact as long as they stay below 256, which nine
 * deviations of 1024 terms do. */
double kkt_gemm_tolerance(const kkt_values *problem, const kkt_values *config, int input_case) {
    const double rounding = problem->v[KKT_GEMM_DTYPE] == KKT_FP16 ? 0x1p-11 : 0x1p-8;
    const double steps = (double)problem->v[KKT_GEMM_K] / 16 + 32;
    (void)config;
    if (input_case == KKT_GEMM_INTEGERS && problem->v[KKT_GEMM_K] <= 1024)
        return 1e-12;
    return rounding + steps * 0x1p-23;
}

void kkt_gemm_score(const kkt_values *problem, const kkt_region *region, const double *expected,
                    const double *actual, kkt_score *score) {
    kkt_rounded_score((kkt_dtype)problem->v[KKT_GEMM_DTYPE], region, expected, actual, score);
}
