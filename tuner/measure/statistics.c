#include "tuner/measure/statistics.h"

#include <math.h>
#include <stdlib.h>

#define TAIL 0.025 /* on each side: a 95 % interval */
#define FEWEST 6   /* below six samples no pair of order statistics covers 95 % */

#define OUTLIER_DEVIATIONS 5.0
#define MAD_SCALE 1.4826
#define EVENT_STEPS_US 1.0

static int compare_floats(const void *a, const void *b) {
    float x = *(const float *)a;
    float y = *(const float *)b;
    return (x > y) - (x < y);
}

/* The largest rank k for which the k-th smallest and k-th largest sample enclose the median with
 * at least 95 %: P(Binomial(n, 1/2) <= k - 1) <= 0.025 (David and Nagaraja, Order Statistics,
 * section 7.1). Ties only widen what is covered. Summed in logarithms, for 2^-n underflows. */
static size_t interval_rank(size_t count) {
    double n = (double)count;
    double log_term = -n * log(2.0);
    double below = 0.0;
    size_t rank = 0;
    for (size_t i = 0; i < count / 2; i++) {
        below += exp(log_term);
        if (below > TAIL) {
            break;
        }
        rank = i + 1;
        log_term += log((n - (double)i) / ((double)i + 1.0));
    }
    return rank;
}

void kkt_median_of(const float *samples, size_t count, kkt_median *out) {
    *out = (kkt_median){.median = NAN, .low = NAN, .high = NAN};
    float *sorted = count > 0 ? malloc(count * sizeof *sorted) : NULL;
    if (sorted == NULL) {
        return;
    }
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        if (isfinite(samples[i])) {
            sorted[n++] = samples[i];
        }
    }
    if (n > 0) {
        qsort(sorted, n, sizeof *sorted, compare_floats);
        out->median = ((double)sorted[(n - 1) / 2] + (double)sorted[n / 2]) / 2.0;
        out->low = out->median;
        out->high = out->median;
        size_t rank = n >= FEWEST ? interval_rank(n) : 0;
        if (rank > 0) {
            out->low = (double)sorted[rank - 1];
            out->high = (double)sorted[n - rank];
        }
    }
    free(sorted);
}

size_t kkt_outliers_of(const float *samples, size_t count) {
    kkt_median median;
    kkt_median spread;
    size_t outliers = 0;
    float *distances = count > 0 ? malloc(count * sizeof *distances) : NULL;
    if (distances == NULL) {
        return 0;
    }
    kkt_median_of(samples, count, &median);
    for (size_t i = 0; i < count; i++) {
        distances[i] = (float)fabs((double)samples[i] - median.median);
    }
    kkt_median_of(distances, count, &spread);
    double limit = fmax(OUTLIER_DEVIATIONS * MAD_SCALE * spread.median, EVENT_STEPS_US);
    for (size_t i = 0; i < count; i++) {
        outliers += (double)distances[i] > limit;
    }
    free(distances);
    return outliers;
}

int kkt_median_tie(const kkt_median *a, const kkt_median *b) {
    return a->low <= b->high && b->low <= a->high;
}
