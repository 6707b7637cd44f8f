#include "tuner/engine/surrogate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double FEATURE_WEIGHT = 0.5;
static const double OTHER_CONTEXT = 0.36787944117144233; /* exp(-1) */
static const double RATES[] = {0.1, 0.3, 1, 3};          /* of l_p */
static const double INTERACTIONS[] = {0.3, 1, 3};        /* of r */
static const double NOISES[] = {1e-4, 1e-3, 1e-2, 0.1};  /* of the noise variance */
enum {
    TUNE_ROUNDS = 2,
    TUNE_POINTS = 128 /* hyperparameters are chosen on as many observations at most: their
                         likelihood costs the cube of it, a hundred times over */
};

struct kkt_surrogate {
    size_t params, capacity;
    double range[KKT_PARAMS_MAX]; /* index distance that counts as 1 */
    kkt_surrogate_point points[KKT_SURROGATE_POINTS];
    double values[KKT_SURROGATE_POINTS];
    size_t observed, count; /* points: the observed ones first, then the assumed */
    bool learned;           /* since assumed values were predicted */
    double rate[KKT_PARAMS_MAX];
    double interaction, noise;
    /* Of the last fit. */
    double value_mean, value_scale, feature_mean, feature_scale;
    /* exp(-l_p d_p) for each two values of a parameter, so that a covariance takes products only.
     */
    double closeness[KKT_PARAMS_MAX][KKT_CHOICES_MAX][KKT_CHOICES_MAX];
    double *factor; /* lower Cholesky factor, row-major, KKT_SURROGATE_POINTS wide */
    double weights[KKT_SURROGATE_POINTS]; /* K^-1 y */
    double variance;                      /* scale of the process, by maximum likelihood */
};

static void set_closeness(kkt_surrogate *s, size_t p) {
    for (int i = 0; i < KKT_CHOICES_MAX; i++) {
        for (int j = 0; j < KKT_CHOICES_MAX; j++) {
            double distance = s->range[p] > 0 ? abs(i - j) / s->range[p] : i != j;
            s->closeness[p][i][j] = exp(-s->rate[p] * distance);
        }
    }
}

kkt_surrogate *kkt_surrogate_open(const kkt_param_table *table, size_t capacity) {
    kkt_surrogate *s = calloc(1, sizeof *s);
    double *factor = calloc((size_t)KKT_SURROGATE_POINTS * KKT_SURROGATE_POINTS, sizeof *factor);
    if (!s || !factor) {
        free(s);
        free(factor);
        return NULL;
    }
    s->factor = factor;
    s->params = table->count;
    s->capacity = capacity < KKT_SURROGATE_POINTS ? capacity : KKT_SURROGATE_POINTS;
    s->interaction = 1;
    s->noise = 1e-3;
    for (size_t p = 0; p < table->count; p++) {
        const kkt_param *param = &table->params[p];
        s->rate[p] = 1;
        /* Named values have no order: any two are as far apart as any other two. */
        s->range[p] = param->names || param->count < 2 ? 0 : (double)(param->count - 1);
        set_closeness(s, p);
    }
    return s;
}

void kkt_surrogate_close(kkt_surrogate *s) {
    if (s) {
        free(s->factor);
        free(s);
    }
}

static void drop(kkt_surrogate *s, size_t at) {
    memmove(s->points + at, s->points + at + 1, (s->count - at - 1) * sizeof *s->points);
    memmove(s->values + at, s->values + at + 1, (s->count - at - 1) * sizeof *s->values);
    s->count--;
    s->observed -= at < s->observed;
}

static void insert(kkt_surrogate *s, size_t at, const kkt_surrogate_point *point, double value) {
    memmove(s->points + at + 1, s->points + at, (s->count - at) * sizeof *s->points);
    memmove(s->values + at + 1, s->values + at, (s->count - at) * sizeof *s->values);
    s->points[at] = *point;
    s->values[at] = value;
    s->count++;
}

static bool same_point(const kkt_surrogate *s, const kkt_surrogate_point *a,
                       const kkt_surrogate_point *b) {
    return a->context == b->context &&
           memcmp(a->index, b->index, s->params * sizeof *a->index) == 0;
}

void kkt_surrogate_forget(kkt_surrogate *s, const kkt_surrogate_point *point) {
    for (size_t i = s->observed; i < s->count; i++) {
        if (same_point(s, &s->points[i], point)) {
            drop(s, i);
            return;
        }
    }
}

void kkt_surrogate_add(kkt_surrogate *s, const kkt_surrogate_point *point, double value) {
    kkt_surrogate_forget(s, point);
    if (!isfinite(value) || !isfinite(point->feature)) {
        return;
    }
    if (s->count == s->capacity) {
        drop(s, 0);
    }
    insert(s, s->observed++, point, value);
    s->learned = true;
}

void kkt_surrogate_assume(kkt_surrogate *s, const kkt_surrogate_point *point) {
    if (!isfinite(point->feature)) {
        return;
    }
    double value = kkt_surrogate_fit(s) ? kkt_surrogate_predict(s, point, NULL) : point->feature;
    if (s->count == s->capacity) {
        drop(s, 0);
    }
    insert(s, s->count, point, value);
}

void kkt_surrogate_settle(kkt_surrogate *s) {
    s->count = s->observed;
}

static double standard(const kkt_surrogate *s, double feature) {
    return (feature - s->feature_mean) / s->feature_scale;
}

static double covariance(const kkt_surrogate *s, const kkt_surrogate_point *a,
                         const kkt_surrogate_point *b) {
    double closeness = a->context == b->context ? s->interaction : OTHER_CONTEXT * s->interaction;
    int equal = 0;
    for (size_t p = 0; p < s->params; p++) {
        closeness *= s->closeness[p][a->index[p]][b->index[p]];
        equal += a->index[p] == b->index[p];
    }
    return FEATURE_WEIGHT * standard(s, a->feature) * standard(s, b->feature) +
           equal / (double)s->params + closeness;
}

/* In place; false where the matrix is not positive definite. */
static bool factorize(double *matrix, size_t n) {
    for (size_t i = 0; i < n; i++) {
        double *row = matrix + i * KKT_SURROGATE_POINTS;
        for (size_t j = 0; j <= i; j++) {
            const double *other = matrix + j * KKT_SURROGATE_POINTS;
            double sum = row[j];
            for (size_t k = 0; k < j; k++) {
                sum -= row[k] * other[k];
            }
            if (j < i) {
                row[j] = sum / other[j];
            } else if (sum > 1e-12) {
                row[i] = sqrt(sum);
            } else {
                return false;
            }
        }
    }
    return true;
}

static void solve_lower(const double *factor, size_t n, double *x) {
    for (size_t i = 0; i < n; i++) {
        const double *row = factor + i * KKT_SURROGATE_POINTS;
        for (size_t k = 0; k < i; k++) {
            x[i] -= row[k] * x[k];
        }
        x[i] /= row[i];
    }
}

static void solve_upper(const double *factor, size_t n, double *x) {
    for (size_t i = n; i-- > 0;) {
        for (size_t k = i + 1; k < n; k++) {
            x[i] -= factor[k * KKT_SURROGATE_POINTS + i] * x[k];
        }
        x[i] /= factor[i * KKT_SURROGATE_POINTS + i];
    }
}

/* How far an observed value is from what was expected. */
static double residual(const kkt_surrogate *s, size_t i) {
    return s->values[i] - s->points[i].feature;
}

static void standardize(kkt_surrogate *s) {
    double sums[4] = {0};
    double n = (double)s->count;
    for (size_t i = 0; i < s->count; i++) {
        sums[0] += residual(s, i) / n;
        sums[1] += s->points[i].feature / n;
    }
    for (size_t i = 0; i < s->count; i++) {
        sums[2] += (residual(s, i) - sums[0]) * (residual(s, i) - sums[0]) / n;
        sums[3] += (s->points[i].feature - sums[1]) * (s->points[i].feature - sums[1]) / n;
    }
    s->value_mean = sums[0];
    s->feature_mean = sums[1];
    s->value_scale = sums[2] > 0 ? sqrt(sums[2]) : 1;
    s->feature_scale = sums[3] > 0 ? sqrt(sums[3]) : 1;
}

/* Factorises the covariance and solves for the weights; returns the log marginal likelihood with
 * the process variance at its maximum, -INFINITY where it cannot be factorised. */
static double refit(kkt_surrogate *s) {
    size_t n = s->count;
    standardize(s);
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j <= i; j++) {
            s->factor[i * KKT_SURROGATE_POINTS + j] = covariance(s, &s->points[i], &s->points[j]);
        }
        s->factor[i * KKT_SURROGATE_POINTS + i] += s->noise;
    }
    if (!factorize(s->factor, n)) {
        return -INFINITY;
    }
    double log_determinant = 0;
    double squares = 0;
    for (size_t i = 0; i < n; i++) {
        s->weights[i] = (residual(s, i) - s->value_mean) / s->value_scale;
        log_determinant += 2 * log(s->factor[i * KKT_SURROGATE_POINTS + i]);
    }
    solve_lower(s->factor, n, s->weights);
    for (size_t i = 0; i < n; i++) {
        squares += s->weights[i] * s->weights[i];
    }
    solve_upper(s->factor, n, s->weights);
    s->variance = fmax(squares / (double)n, 1e-12);
    return -0.5 * ((double)n * log(s->variance) + log_determinant);
}

static void fit_all(kkt_surrogate *s) {
    while (!isfinite(refit(s))) {
        s->noise *= 10; /* observations that contradict each other: trust each less */
    }
}

/* What is assumed follows from what was observed. */
static void assume_anew(kkt_surrogate *s) {
    size_t count = s->count;
    s->count = s->observed;
    fit_all(s);
    for (size_t i = s->observed; i < count; i++) {
        s->values[i] = kkt_surrogate_predict(s, &s->points[i], NULL);
    }
    s->count = count;
}

bool kkt_surrogate_fit(kkt_surrogate *s) {
    if (s->observed == 0) {
        return false;
    }
    if (s->learned && s->count > s->observed) {
        assume_anew(s);
    }
    s->learned = false;
    fit_all(s);
    return true;
}

/* Sets a hyperparameter to the choice of greatest likelihood; returns that. `rate` names the
 * parameter whose l_p it is; -1: none. */
static double choose(kkt_surrogate *s, double *at, int rate, const double *choices, size_t count,
                     double best) {
    double kept = *at;
    for (size_t i = 0; i <= count; i++) {
        *at = i < count ? choices[i] : kept;
        if (rate >= 0) {
            set_closeness(s, (size_t)rate);
        }
        double likelihood = i < count ? refit(s) : -INFINITY;
        if (likelihood > best) {
            best = likelihood;
            kept = choices[i];
        }
    }
    return best;
}

/* Keeps at most TUNE_POINTS observations, evenly spread over all. */
static void thin(kkt_surrogate *s) {
    size_t count = s->observed < TUNE_POINTS ? s->observed : TUNE_POINTS;
    for (size_t i = 0; i < count; i++) {
        size_t from = i * s->observed / count;
        s->points[i] = s->points[from];
        s->values[i] = s->values[from];
    }
    s->count = s->observed = count;
}

static void tune_all(kkt_surrogate *s) {
    double best = refit(s);
    for (int round = 0; round < TUNE_ROUNDS; round++) {
        best = choose(s, &s->noise, -1, NOISES, sizeof NOISES / sizeof *NOISES, best);
        best = choose(s, &s->interaction, -1, INTERACTIONS,
                      sizeof INTERACTIONS / sizeof *INTERACTIONS, best);
        for (size_t p = 0; p < s->params; p++) {
            best = choose(s, &s->rate[p], (int)p, RATES, sizeof RATES / sizeof *RATES, best);
        }
    }
}

void kkt_surrogate_tune(kkt_surrogate *s) {
    if (s->observed < 4) {
        return;
    }
    kkt_surrogate *sample = malloc(sizeof *sample);
    if (!sample) {
        return; /* the present ones will do */
    }
    *sample = *s; /* the factor is shared: it is made anew at the next fit */
    thin(sample);
    tune_all(sample);
    s->noise = sample->noise;
    s->interaction = sample->interaction;
    memcpy(s->rate, sample->rate, sizeof s->rate);
    memcpy(s->closeness, sample->closeness, sizeof s->closeness);
    free(sample);
}

double kkt_surrogate_predict(const kkt_surrogate *s, const kkt_surrogate_point *point,
                             double *deviation) {
    double column[KKT_SURROGATE_POINTS];
    double mean = 0;
    for (size_t i = 0; i < s->count; i++) {
        column[i] = covariance(s, &s->points[i], point);
        mean += column[i] * s->weights[i];
    }
    if (deviation) {
        double left = covariance(s, point, point);
        solve_lower(s->factor, s->count, column);
        for (size_t i = 0; i < s->count; i++) {
            left -= column[i] * column[i];
        }
        *deviation = s->value_scale * sqrt(s->variance * fmax(left, 0));
    }
    return point->feature + s->value_mean + s->value_scale * mean;
}

double kkt_expected_improvement(double best, double mean, double deviation) {
    if (!isfinite(best)) {
        return exp(-mean); /* nothing to improve on: the fastest first */
    }
    if (deviation <= 0) {
        return fmax(best - mean, 0);
    }
    double z = (best - mean) / deviation;
    double density = exp(-0.5 * z * z) / sqrt(2 * acos(-1.0));
    return (best - mean) * 0.5 * erfc(-z / sqrt(2)) + deviation * density;
}
