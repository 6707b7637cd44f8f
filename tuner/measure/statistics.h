/* Order statistics of samples. */
#ifndef KKT_TUNER_STATISTICS_H
#define KKT_TUNER_STATISTICS_H

#include <stddef.h>

typedef struct kkt_median {
    double median, low, high; /* distribution-free 95 % interval of the median from order
                                 statistics (binomial); low = high = median below 6 samples */
} kkt_median;

void kkt_median_of(const float *samples, size_t count, kkt_median *out);
/* How many samples are outliers: farther from the median than 5 scaled median absolute deviations
 * (1.4826 x MAD, the standard deviation of normal samples; Rousseeuw and Croux 1993) and than two
 * steps of the event clock (1 us). They stay samples: the median does not move with them. */
size_t kkt_outliers_of(const float *samples, size_t count);
/* True where two intervals overlap. */
int kkt_median_tie(const kkt_median *a, const kkt_median *b);

#endif
