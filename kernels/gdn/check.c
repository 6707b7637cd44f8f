/* How results of the Gated DeltaNet families are judged. */
#include <math.h>

#include "kernels/gdn/gdn.h"

/* Relative Frobenius error allowed on each output.
 *
 * A kernel rounds the operands of its tensor-core products to the dtype: S, V', P and what T is
 * multiplied with, each to half a unit in the last place at most (2^-9 of the value in bf16, 2^-12
 * in fp16), and T, W, U and h are that rounded already; sums are in fp32. Emulated in double
 * precision with just these roundings (dk = 128, 512 tokens, chunks 16 to 128, with W and U and
 * without), o and ht are off by at most
 *
 *                                bf16      fp16
 *     uncorrelated keys          4.4e-3    5.4e-4
 *     correlated, chunk to 64    5.4e-3    9.3e-4     T K and U - W S are small against their terms
 *     correlated, chunk 128      1.0e-2    1.8e-3
 *
 * Public kernels reach 3.4e-3 on random and 5.1e-3 on correlated inputs (bf16, o). */
enum tolerance_class { PLAIN, CORRELATED, CORRELATED_128, CLASSES };

static const double tolerances[2][CLASSES] = {
    {6e-3, 1e-2, 1.8e-2},
    {1e-3, 2e-3, 3.5e-3},
};

double kkt_gdn_tolerance(const kkt_values *problem, const kkt_values *config, int input_case) {
    const int half = problem->v[KKT_GDN_DTYPE] == KKT_FP16;
    switch (input_case) {
    case KKT_CASE_CORRELATED:
    case KKT_CASE_DUPLICATES:
    case KKT_CASE_GROWTH:
    case KKT_CASE_LONG_KEYS:
        return tolerances[half][config->v[KKT_GDN_CHUNK] > 64 ? CORRELATED_128 : CORRELATED];
    default:
        return tolerances[half][PLAIN];
    }
}

/* Elementwise; what the reference makes exactly 0 (states that no chunk needs) must be 0. An error
 * that no value of the dtype avoids (half the spacing of its smallest numbers) counts as none, and
 * none is measured against less than the dtype resolves: behind a steep gate all of W may be so
 * small that fp16 has few digits for it, and T diag(beta e^G), its operand, fewer still. */
void kkt_gdn_score(const kkt_values *problem, const kkt_region *region, const double *expected,
                   const double *actual, kkt_score *score) {
    const kkt_dtype dtype = (kkt_dtype)problem->v[KKT_GDN_DTYPE];
    const double unavoidable = dtype == KKT_FP16 ? 0x1p-25 : 0x1p-126;
    for (int64_t i = 0; i < region->rows * region->columns; i++) {
        const double right = expected[i], given = actual[i];
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
        kkt_score_error(score, &misfit, kkt_resolved_size(dtype, right), unavoidable);
    }
}
