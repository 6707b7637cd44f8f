/* Inverses of unit lower triangular matrices in double: the published error table and condition
 * numbers, matrices known in closed form, and an ill-conditioned one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "emulate.h"
#include "kernels/kkt_solve/triangular.h"

enum { DRAWS = 200 };

/* ---- helpers ---- */

static uint64_t next_bits(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static double uniform(uint64_t *state) {
    return ((double)(next_bits(state) >> 11) + 0.5) * 0x1p-53;
}

static double normal(uint64_t *state) {
    const double radius = sqrt(-2.0 * log(uniform(state)));
    return radius * cos(6.283185307179586 * uniform(state));
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values) {
    qsort(values, DRAWS, sizeof *values, compare);
    return values[DRAWS / 2];
}

static void draw_general(uint64_t *state, int n, matrix *a) {
    a->n = n;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            a->v[i][j] = i == j ? 1.0 : j < i ? 0.5 * normal(state) : 0.0;
}

/* Unit keys of 128 components, beta uniform in (0, 1). */
static void draw_attention(uint64_t *state, int n, matrix *a) {
    static double keys[EMULATE_MAX][128];
    a->n = n;
    for (int i = 0; i < n; i++) {
        double sum = 0.0;
        for (int d = 0; d < 128; d++) {
            keys[i][d] = normal(state);
            sum += keys[i][d] * keys[i][d];
        }
        for (int d = 0; d < 128; d++)
            keys[i][d] /= sqrt(sum);
    }
    for (int i = 0; i < n; i++) {
        const double beta = uniform(state);
        for (int j = 0; j < n; j++) {
            double dot = 0.0;
            for (int d = 0; d < 128; d++)
                dot += keys[i][d] * keys[j][d];
            a->v[i][j] = i == j ? 1.0 : j < i ? beta * dot : 0.0;
        }
    }
}

static void invert(const matrix *a, matrix *t) {
    const size_t n = (size_t)a->n;
    double *l = calloc(2 * n * n, sizeof *l);
    for (size_t i = 0; i < n; i++)
        memcpy(l + i * n, a->v[i], n * sizeof *l);
    kkt_triangular_inverse(l, a->n, l + n * n);
    t->n = a->n;
    for (size_t i = 0; i < n; i++)
        memcpy(t->v[i], l + n * n + i * n, n * sizeof *l);
    free(l);
}

/* General inverse: LU with partial pivoting, then n solves, which is what numpy.linalg.inv does
 * and what the article compared with. */
static void invert_general(const matrix *a, matrix *t) {
    static matrix lu;
    int order[EMULATE_MAX];
    const int n = a->n;
    lu = *a;
    t->n = n;
    for (int i = 0; i < n; i++)
        order[i] = i;
    for (int k = 0; k < n; k++) {
        int pivot = k;
        for (int i = k + 1; i < n; i++)
            if (fabs(lu.v[i][k]) > fabs(lu.v[pivot][k]))
                pivot = i;
        for (int j = 0; j < n; j++) {
            const double swap = lu.v[k][j];
            lu.v[k][j] = lu.v[pivot][j];
            lu.v[pivot][j] = swap;
        }
        const int swap = order[k];
        order[k] = order[pivot];
        order[pivot] = swap;
        for (int i = k + 1; i < n; i++) {
            lu.v[i][k] /= lu.v[k][k];
            for (int j = k + 1; j < n; j++)
                lu.v[i][j] -= lu.v[i][k] * lu.v[k][j];
        }
    }
    for (int c = 0; c < n; c++) {
        double y[EMULATE_MAX];
        for (int i = 0; i < n; i++) {
            y[i] = order[i] == c ? 1.0 : 0.0;
            for (int j = 0; j < i; j++)
                y[i] -= lu.v[i][j] * y[j];
        }
        for (int i = n - 1; i >= 0; i--) {
            for (int j = i + 1; j < n; j++)
                y[i] -= lu.v[i][j] * y[j];
            y[i] /= lu.v[i][i];
            t->v[i][c] = y[i];
        }
    }
}

static double difference(const matrix *a, const matrix *b) {
    double largest = 0.0;
    for (int i = 0; i < a->n; i++)
        for (int j = 0; j < a->n; j++)
            largest = fmax(largest, fabs(a->v[i][j] - b->v[i][j]));
    return largest;
}

static void assert_within(double actual, double published, double factor) {
    if (!(actual <= published * factor && actual >= published / factor))
        fail_msg("%.3e is not within a factor %.2f of %.3e", actual, factor, published);
}

/* ---- published figures ---- */

static matrix given, truth, result;

static void article_error_table(void **state) {
    (void)state;
    uint64_t seed = 20240607;
    double row[DRAWS], blocked[DRAWS], real[DRAWS], stored[DRAWS];
    const emulate recursive = {.inverse = KKT_INVERSE_RECURSIVE, .base = 16};
    for (int i = 0; i < DRAWS; i++) {
        draw_general(&seed, 16, &given);
        invert(&given, &result);
        invert_general(&given, &truth);
        row[i] = difference(&result, &truth);
        draw_general(&seed, 32, &given);
        invert_general(&given, &truth);
        result = given;
        emulate_invert(&recursive, &result);
        blocked[i] = difference(&result, &truth);
        draw_attention(&seed, 64, &given);
        invert(&given, &truth);
        result = given;
        emulate_invert(&recursive, &result);
        real[i] = difference(&result, &truth);
        draw_attention(&seed, 32, &given);
        invert(&given, &truth);
        result = truth;
        for (int r = 0; r < result.n; r++)
            for (int c = 0; c < result.n; c++)
                result.v[r][c] = emulate_half(truth.v[r][c]);
        stored[i] = difference(&result, &truth);
    }
    assert_within(median(row), 2.22e-15, 2.0);
    assert_within(median(blocked), 4.44e-14, 2.0);
    assert_within(median(real), 1.39e-16, 2.0);
    assert_within(median(stored), 5.72e-5, 2.0);
}

/* Sampled maxima of the condition number of I + L: 2.04, 2.59 and 3.63 for 32, 64 and 128. */
static void article_conditions(void **state) {
    (void)state;
    static const struct {
        int chunk;
        double published;
    } rows[] = {{32, 2.04}, {64, 2.59}, {128, 3.63}};
    static double l[2][EMULATE_MAX * EMULATE_MAX];
    for (size_t r = 0; r < 3; r++) {
        uint64_t seed = 11;
        double largest = 0.0;
        const int n = rows[r].chunk;
        for (int draw = 0; draw < (n < 128 ? DRAWS : 60); draw++) {
            draw_attention(&seed, n, &given);
            for (int i = 0; i < n; i++)
                memcpy(l[0] + i * n, given.v[i], sizeof(double) * (size_t)n);
            kkt_triangular_inverse(l[0], n, l[1]);
            largest = fmax(largest, kkt_triangular_condition(l[0], l[1], n));
        }
        assert_within(largest, rows[r].published, 1.08);
    }
}

static void condition_of_known_matrices(void **state) {
    (void)state;
    /* [1 0; x 1]: singular values s and 1/s with s - 1/s = x, so the condition is s^2. */
    const double l[4] = {0.0, 0.0, 3.0, 0.0};
    double t[4];
    kkt_triangular_inverse(l, 2, t);
    assert_true(t[0] == 1.0 && t[1] == 0.0 && t[2] == -3.0 && t[3] == 1.0);
    const double s = (3.0 + sqrt(13.0)) / 2.0;
    assert_true(fabs(kkt_triangular_condition(l, t, 2) - (s * s)) < 1e-9);
    const double zero[4] = {0};
    kkt_triangular_inverse(zero, 2, t);
    assert_true(fabs(kkt_triangular_condition(zero, t, 2) - (1.0)) < 1e-12);
    t[2] = INFINITY;
    assert_true(isinf(kkt_triangular_condition(zero, t, 2)));
}

/* The lower triangle of a normal 64 x 64 matrix: right to its conditioning, and seen as bad. */
static void tril_randn(void **state) {
    (void)state;
    enum { N = 64 };
    static double l[N * N], t[N * N];
    uint64_t seed = 5;
    double growth = 0.0, residual = 0.0;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            l[i * N + j] = j < i ? normal(&seed) : 0.0;
    kkt_triangular_inverse(l, N, t);
    for (int i = 0; i < N; i++) {
        for (int j = 0; j <= i; j++) {
            long double sum = t[i * N + j];
            double scale = fabs(t[i * N + j]);
            for (int k = j; k < i; k++) {
                sum += (long double)l[i * N + k] * t[k * N + j];
                scale += fabs(l[i * N + k] * t[k * N + j]);
            }
            growth = fmax(growth, fabs(t[i * N + j]));
            residual = fmax(residual, fabs((double)sum - (i == j)) / fmax(scale, 1.0));
        }
    }
    assert_true(growth > 1e5 && growth < 1e10);
    assert_true(residual < 64 * 0x1p-53); /* backward stable: n roundings of the row's terms */
    assert_true(kkt_triangular_condition(l, t, N) > 1e6);
}

/* Only the block below the diagonal is nonzero: the lower left is exactly -L10. */
static void degenerate_sub_diagonal(void **state) {
    (void)state;
    uint64_t seed = 9;
    const emulate ways[] = {{.inverse = KKT_INVERSE_ROW, .base = 16},
                            {.inverse = KKT_INVERSE_RECURSIVE, .base = 16},
                            {.inverse = KKT_INVERSE_FLAT, .base = 16}};
    memset(&given, 0, sizeof given);
    given.n = 32;
    for (int i = 0; i < 32; i++) {
        given.v[i][i] = 1.0;
        for (int j = 0; i >= 16 && j < 16; j++)
            given.v[i][j] = normal(&seed);
    }
    invert(&given, &truth);
    for (int i = 0; i < 32; i++)
        for (int j = 0; j < 32; j++)
            assert_true(truth.v[i][j] == (i == j ? 1.0 : -given.v[i][j]));
    for (size_t w = 0; w < 3; w++) {
        result = given;
        emulate_invert(&ways[w], &result);
        assert_true(difference(&result, &truth) == 0.0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(article_error_table),         cmocka_unit_test(article_conditions),
        cmocka_unit_test(condition_of_known_matrices), cmocka_unit_test(tril_randn),
        cmocka_unit_test(degenerate_sub_diagonal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
