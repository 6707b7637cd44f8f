/* How results of gemm are judged. */
#include <math.h>

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
 * deviations of 512 terms do. */
double kkt_gemm_tolerance(const kkt_values *problem, const kkt_values *config, int input_case) {
    const double rounding = problem->v[KKT_GEMM_DTYPE] == KKT_FP16 ? 0x1p-11 : 0x1p-8;
    const double steps = (double)problem->v[KKT_GEMM_K] / 16 + 32;
    (void)config;
    if (input_case == KKT_GEMM_INTEGERS && problem->v[KKT_GEMM_K] <= 512)
        return 1e-12;
    return rounding + steps * 0x1p-23;
}

/* Half a unit beyond the largest number: what rounds to infinity. */
static double overflow_of(const kkt_values *problem) {
    return problem->v[KKT_GEMM_DTYPE] == KKT_FP16 ? 65520.0 : 0x1.ffp127;
}

/* Elementwise. What is beyond the type's range must be infinite, and nothing else; within a
 * thousandth of the edge either will do. Errors that no value of the type avoids (half the spacing
 * of its smallest numbers) count as none. */
void kkt_gemm_score(const kkt_values *problem, const kkt_region *region, const double *expected,
                    const double *actual, kkt_score *score) {
    const double unavoidable = problem->v[KKT_GEMM_DTYPE] == KKT_FP16 ? 0x1p-25 : 0x1p-134;
    const double edge = overflow_of(problem);
    for (int64_t i = 0; i < region->rows * region->columns; i++) {
        const double right = expected[i], given = actual[i], size = fabs(right);
        const kkt_misfit misfit =
            kkt_region_misfit(region, i / region->columns, i % region->columns, given, right);
        score->elements++;
        score->growth = fmax(score->growth, size);
        if (isnan(given) || (isinf(given) && size < edge * 0.999)) {
            if (score->not_finite++ == 0)
                score->first_not_finite = misfit;
            continue;
        }
        if (size > edge * 0.999) {
            const bool infinite = isinf(given) && (given > 0) == (right > 0);
            if (!infinite && size > edge * 1.001 && score->inexact++ == 0)
                score->first_inexact = misfit;
            continue;
        }
        const double error = fabs(given - right);
        if (error > score->max_abs)
            score->worst = misfit;
        score->max_abs = fmax(score->max_abs, error);
        score->reference_sq[region->tensor] += right * right;
        if (error > unavoidable)
            score->error_sq[region->tensor] += error * error;
    }
}
