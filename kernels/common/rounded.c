#include "kernels/common/rounded.h"

#include <math.h>

void kkt_rounded_score(kkt_dtype dtype, const kkt_region *region, const double *expected,
                       const double *actual, kkt_score *score) {
    const double unavoidable = dtype == KKT_FP16 ? 0x1p-25 : 0x1p-134;
    /* Half a unit beyond the largest number: what rounds to infinity. */
    const double edge = dtype == KKT_FP16 ? 65520.0 : 0x1.ffp127;
    for (int64_t i = 0; i < region->rows * region->columns; i++) {
        const double right = expected[i], given = actual[i], size = fabs(right);
        const kkt_misfit misfit =
            kkt_region_misfit(region, i / region->columns, i % region->columns, given, right);
        score->elements++;
        score->growth = fmax(score->growth, size);
        const bool rightly = size >= edge * 0.999 && (given > 0) == (right > 0);
        if (isnan(given) || (isinf(given) && !rightly)) {
            if (score->not_finite++ == 0)
                score->first_not_finite = misfit;
            continue;
        }
        if (isinf(given))
            continue;
        if (size > edge * 1.001 && fabs(given) < edge) {
            if (score->inexact++ == 0)
                score->first_inexact = misfit;
            continue;
        }
        kkt_score_error(score, &misfit, size, unavoidable);
    }
}
