/* How results of the Gated DeltaNet families are judged. */
#include <math.h>

#include "kernels/gdn/gdn.h"

/* Relative Frobenius error allowed on each output.
 *
 * A kernel rounds the operands of its tensor-core products to the dtype: S, V', P and what T is
 * multiplied with, each to half a unit in the last place at most (2^-9 of the value in bf16,
 * 2^-12 in fp16; 1.7e-3 and 2.1e-4 root mean square), and its inputs T, W, U, h are that rounded
 * already. Accumulation is in fp32. Four to six such roundings add up as independent errors to
 * 3.5e-3 to 4.2e-3 in bf16; correlated keys amplify them, since T K and U - W S are then small
 * against their terms. Public kernels reach 3.4e-3 on random and 5.1e-3 on correlated inputs
 * (bf16, o against double precision). */
double kkt_gdn_tolerance(const kkt_values *problem, const kkt_values *config, int input_case) {
    const bool half = problem->v[KKT_GDN_DTYPE] == KKT_FP16;
    (void)config;
    switch (input_case) {
    case KKT_CASE_CORRELATED:
    case KKT_CASE_DUPLICATES:
    case KKT_CASE_GROWTH:
    case KKT_CASE_LONG_KEYS:
        return half ? 2e-3 : 1e-2;
    default:
        return half ? 1e-3 : 6e-3;
    }
}

/* Elementwise; what the reference makes exactly 0 (states that no chunk needs) must be 0. An error
 * that no value of the dtype avoids (half the spacing of its smallest numbers) counts as none. */
void kkt_gdn_score(const kkt_values *problem, const kkt_region *region, const double *expected,
                   const double *actual, kkt_score *score) {
    const double unavoidable = problem->v[KKT_GDN_DTYPE] == KKT_FP16 ? 0x1p-25 : 0x1p-126;
    for (int64_t i = 0; i < region->rows * region->columns; i++) {
        const double right = expected[i], given = actual[i], error = fabs(given - right);
        const kkt_misfit misfit =
            kkt_region_misfit(region, i / region->columns, i % region->columns, given, right);
        score->elements++;
        score->growth = fmax(score->growth, isfinite(right) ? fabs(right) : INFINITY);
        if (!isfinite(given)) {
            if (isfinite(right) && score->not_finite++ == 0)
                score->first_not_finite = misfit;
            continue;
        }
        if (!isfinite(right))
            continue;
        if (right == 0.0 && given != 0.0 && score->inexact++ == 0)
            score->first_inexact = misfit;
        if (error > score->max_abs)
            score->worst = misfit;
        score->max_abs = fmax(score->max_abs, error);
        score->reference_sq[region->tensor] += right * right;
        if (error > unavoidable)
            score->error_sq[region->tensor] += error * error;
    }
}
