/* A Gaussian process over configurations: what the measured ones say of the others.
 *
 * A point is its value indices and one real feature, what is expected of it beforehand (the
 * logarithm of a predicted time; 0 where nothing is). The process describes how far observed values
 * are from it; the covariance of two points is
 *
 *     1/2 z z' + 1/P sum_p [x_p = x'_p] + r exp(-sum_p l_p d_p(x_p, x'_p))
 *
 * (z: the feature, standardised): how far expectations are off in scale, main effects of
 * parameters, and whatever does not add up but is alike for neighbours. d_p is 0 or 1 for named
 * values and the distance of the indices over their range for numbers. r, the noise and the l_p
 * maximise the marginal likelihood (Rasmussen and Williams 2006, sections 2.2, 2.7 and 5.4). */
#ifndef KKT_TUNER_SURROGATE_H
#define KKT_TUNER_SURROGATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/params.h"

/* The most that one can hold. */
#define KKT_SURROGATE_POINTS 384

typedef struct kkt_surrogate kkt_surrogate;

typedef struct kkt_surrogate_point {
    uint8_t index[KKT_PARAMS_MAX]; /* of each parameter's value */
    uint8_t context; /* what else it was observed under: points of equal context are closer */
    double feature;
} kkt_surrogate_point;

/* NULL: out of memory. `table` gives the number of parameters, their value counts and kinds. Beyond
 * `capacity` points (at most KKT_SURROGATE_POINTS) the oldest observations are dropped: a
 * factorisation costs the cube of it. */
kkt_surrogate *kkt_surrogate_open(const kkt_param_table *table, size_t capacity);
void kkt_surrogate_close(kkt_surrogate *surrogate);

/* An observed value (a logarithm of time). The point is no longer assumed. A value or feature that
 * is not finite is no observation, here and below: it could not be fitted. */
void kkt_surrogate_add(kkt_surrogate *surrogate, const kkt_surrogate_point *point, double value);
/* A point that is being measured: until it is added, or kkt_surrogate_settle, it counts as
 * observed at what is predicted for it, so that the next proposals go elsewhere. */
void kkt_surrogate_assume(kkt_surrogate *surrogate, const kkt_surrogate_point *point);
/* Drops one assumed point: it showed no value. */
void kkt_surrogate_forget(kkt_surrogate *surrogate, const kkt_surrogate_point *point);
/* Drops every assumed point. */
void kkt_surrogate_settle(kkt_surrogate *surrogate);
/* Chooses the hyperparameters anew from the observations. */
void kkt_surrogate_tune(kkt_surrogate *surrogate);
/* Brings the factorisation up to date; to be called before predictions. False where nothing was
 * observed. */
bool kkt_surrogate_fit(kkt_surrogate *surrogate);

/* Mean and standard deviation at a point; `deviation` may be NULL (the mean alone is cheaper). */
double kkt_surrogate_predict(const kkt_surrogate *surrogate, const kkt_surrogate_point *point,
                             double *deviation);

/* By how much a normally distributed value is expected to lie below `best` (Jones, Schonlau, Welch
 * 1998). Where `best` is infinite, a figure that is the greater the smaller the mean. */
double kkt_expected_improvement(double best, double mean, double deviation);

#endif
