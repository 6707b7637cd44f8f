#include "kernels/kkt_solve/triangular.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void kkt_triangular_inverse(const double *l, int n, double *t) {
    memset(t, 0, sizeof *t * (size_t)n * (size_t)n);
    for (int k = 0; k < n; k++) {
        double *row = t + (size_t)k * (size_t)n;
        for (int j = 0; j < k; j++) {
            const double factor = l[(size_t)k * (size_t)n + (size_t)j];
            const double *above = t + (size_t)j * (size_t)n;
            for (int c = 0; c <= j; c++)
                row[c] -= factor * above[c];
        }
        row[k] = 1.0;
    }
}

/* y = M x with the strictly lower part of `m` and a unit diagonal. */
static void multiply(const double *m, int n, const double *x, double *y) {
    for (int i = 0; i < n; i++) {
        double sum = x[i];
        for (int j = 0; j < i; j++)
            sum += m[(size_t)i * (size_t)n + (size_t)j] * x[j];
        y[i] = sum;
    }
}

static void multiply_transposed(const double *m, int n, const double *x, double *y) {
    memcpy(y, x, sizeof *y * (size_t)n);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++)
            y[j] += m[(size_t)i * (size_t)n + (size_t)j] * x[i];
}

static double norm(const double *x, int n) {
    double largest = 0.0;
    for (int i = 0; i < n; i++)
        largest = fmax(largest, fabs(x[i]));
    if (largest == 0.0 || !isfinite(largest))
        return largest;
    double sum = 0.0;
    for (int i = 0; i < n; i++)
        sum += (x[i] / largest) * (x[i] / largest);
    return largest * sqrt(sum);
}

/* The largest singular value of the unit lower triangular `m`. 60 rounds leave an error below
 * one percent on everything tried; the answer is shown with two digits. */
static double norm2(const double *m, int n, double *x, double *y) {
    enum { ROUNDS = 60 };
    double sigma = 1.0;
    for (int i = 0; i < n; i++) /* no symmetry, so not orthogonal to the leading vector */
        x[i] = 1.0 + 0.37 * sin(1.0 + 2.3 * i);
    for (int round = 0; round < ROUNDS; round++) {
        const double length = norm(x, n);
        if (!isfinite(length) || length == 0.0)
            return INFINITY;
        for (int i = 0; i < n; i++)
            x[i] /= length;
        multiply(m, n, x, y);
        sigma = norm(y, n);
        if (!isfinite(sigma) || sigma == 0.0)
            return INFINITY;
        for (int i = 0; i < n; i++)
            y[i] /= sigma;
        multiply_transposed(m, n, y, x);
    }
    return sigma;
}

double kkt_triangular_condition(const double *l, const double *t, int n) {
    double *x = calloc((size_t)n * 2, sizeof *x);
    if (!x)
        return NAN;
    const double condition = norm2(l, n, x, x + n) * norm2(t, n, x, x + n);
    free(x);
    return isfinite(condition) ? condition : INFINITY;
}
