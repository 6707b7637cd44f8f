/* The median and its interval against a binomial that is summed the plain way. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tuner/measure/statistics.h"

#define MOST 200

/* P(Binomial(n, 1/2) <= k) from Pascal's triangle in long double. */
static long double below(int n, int k) {
    static long double row[MOST + 1];
    row[0] = 1.0L;
    for (int i = 1; i <= n; i++) {
        row[i] = 0.0L;
        for (int j = i; j > 0; j--) {
            row[j] = (row[j] + row[j - 1]) / 2.0L;
        }
        row[0] /= 2.0L;
    }
    long double sum = 0.0L;
    for (int i = 0; i <= k; i++) {
        sum += row[i];
    }
    return sum;
}

/* Samples 1..n in a scrambled order: the interval's ends are then the ranks themselves. */
static void ranks(int n, kkt_median *out) {
    float samples[MOST];
    for (int i = 0; i < n; i++) {
        samples[i] = (float)((i * 7919) % n + 1);
    }
    kkt_median_of(samples, (size_t)n, out);
}

static void interval_is_the_narrowest_of_95_percent(void **state) {
    (void)state;
    for (int n = 6; n <= MOST; n++) {
        kkt_median m;
        ranks(n, &m);
        int low = (int)m.low;
        assert_int_equal((int)m.high, n + 1 - low);
        assert_true(1.0L - 2.0L * below(n, low - 1) >= 0.95L);
        assert_true(1.0L - 2.0L * below(n, low) < 0.95L); /* one rank further in is too narrow */
        assert_true(m.median == (n + 1) / 2.0);
    }
}

static void published_ranks(void **state) {
    /* Conover, Practical Nonparametric Statistics, and every table since: n, rank. */
    static const int table[][2] = {{6, 1},  {9, 2},  {12, 3},  {15, 4},
                                   {20, 6}, {25, 8}, {50, 18}, {100, 40}};
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        kkt_median m;
        ranks(table[i][0], &m);
        assert_int_equal((int)m.low, table[i][1]);
    }
}

static void few_samples_have_no_interval(void **state) {
    (void)state;
    const float five[] = {5.0F, 1.0F, 4.0F, 2.0F, 3.0F};
    for (size_t n = 1; n <= 5; n++) {
        kkt_median m;
        kkt_median_of(five, n, &m);
        assert_true(m.low == m.median && m.high == m.median);
    }
    kkt_median m;
    kkt_median_of(five, 4, &m);
    assert_true(m.median == 3.0);
    kkt_median_of(five, 0, &m);
    assert_true(isnan(m.median) && isnan(m.low) && isnan(m.high));
}

static void nan_samples_are_left_out(void **state) {
    (void)state;
    const float samples[] = {2.0F, (float)NAN, 1.0F, (float)INFINITY, 3.0F};
    kkt_median m;
    kkt_median_of(samples, 5, &m);
    assert_true(m.median == 2.0);
}

static void many_samples_do_not_underflow(void **state) {
    (void)state;
    const size_t n = 20001;
    float *samples = malloc(n * sizeof *samples);
    assert_non_null(samples);
    for (size_t i = 0; i < n; i++) {
        samples[i] = (float)(i + 1);
    }
    kkt_median m;
    kkt_median_of(samples, n, &m);
    free(samples);
    /* Normal approximation: n/2 -+ 1.96 sqrt(n)/2. */
    assert_true(m.median == 10001.0);
    assert_true(fabs(m.low - (10001.0 - 138.6)) < 2.0);
    assert_true(fabs(m.high - (10001.0 + 138.6)) < 2.0);
}

static void overlapping_intervals_tie(void **state) {
    (void)state;
    kkt_median a = {10.0, 9.0, 11.0};
    kkt_median b = {11.5, 11.0, 12.0};
    kkt_median c = {13.0, 12.5, 13.5};
    kkt_median none = {NAN, NAN, NAN};
    assert_true(kkt_median_tie(&a, &b) && kkt_median_tie(&b, &a));
    assert_false(kkt_median_tie(&a, &c) || kkt_median_tie(&c, &a));
    assert_false(kkt_median_tie(&b, &c));
    assert_false(kkt_median_tie(&a, &none));
}

static void outliers_are_far_from_the_median(void **state) {
    (void)state;
    /* Median 100; distances 0 1 1 2 2 2 3 30 60: MAD 2, limit 5 x 1.4826 x 2 = 14.8. */
    const float samples[] = {100, 99, 101, 98, 102, 98, 103, 130, 160};
    assert_int_equal(kkt_outliers_of(samples, 9), 2);
    /* Samples of one step of the event clock and less are none, however alike the others are. */
    const float steps[] = {10, 10, 10, 10, 10, 10, 10, 10.5F, 10.9F, 11.2F};
    assert_int_equal(kkt_outliers_of(steps, 10), 1);
    assert_int_equal(kkt_outliers_of(samples, 0), 0);
    assert_int_equal(kkt_outliers_of(samples, 1), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(interval_is_the_narrowest_of_95_percent),
        cmocka_unit_test(published_ranks),
        cmocka_unit_test(few_samples_have_no_interval),
        cmocka_unit_test(nan_samples_are_left_out),
        cmocka_unit_test(many_samples_do_not_underflow),
        cmocka_unit_test(overlapping_intervals_tie),
        cmocka_unit_test(outliers_are_far_from_the_median),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
