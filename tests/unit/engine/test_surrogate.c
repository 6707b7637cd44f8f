/* The Gaussian process: interpolation, uncertainty, learning of effects, assumed points. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tuner/engine/surrogate.h"

static const char *const names[] = {"a", "b", "c"};
static const kkt_param params[] = {
    {.name = "threads", .count = 6, .values = {1, 2, 4, 8, 16, 32}},
    {.name = "kind", .count = 3, .values = {0, 1, 2}, .names = names},
    {.name = "idle", .count = 4, .values = {0, 1, 2, 3}},
};
static const kkt_param_table table = {"parameter", params, 3};

static kkt_surrogate_point point_of(int threads, int kind, int idle) {
    kkt_surrogate_point point = {.feature = 1.0 + 0.1 * threads};
    point.index[0] = (uint8_t)threads;
    point.index[1] = (uint8_t)kind;
    point.index[2] = (uint8_t)idle;
    return point;
}

/* Additive but for one pair, and independent of `idle`. */
static double value_of(int threads, int kind) {
    return 3 + 0.2 * fabs(threads - 3.0) + 0.3 * kind + (threads == 5 && kind == 0 ? 0.5 : 0);
}

static kkt_surrogate *learned(void) {
    kkt_surrogate *s = kkt_surrogate_open(&table, KKT_SURROGATE_POINTS);
    assert_non_null(s);
    for (int t = 0; t < 6; t++) {
        for (int k = 0; k < 3; k++) {
            if ((t + k) % 4 != 3) { /* a quarter is held back */
                kkt_surrogate_point point = point_of(t, k, (t * 7 + k * 3) % 4);
                kkt_surrogate_add(s, &point, value_of(t, k));
            }
        }
    }
    kkt_surrogate_tune(s);
    assert_true(kkt_surrogate_fit(s));
    return s;
}

static void nothing_observed(void **state) {
    (void)state;
    kkt_surrogate *s = kkt_surrogate_open(&table, KKT_SURROGATE_POINTS);
    assert_false(kkt_surrogate_fit(s));
    kkt_surrogate_close(s);
}

static void interpolates_and_generalises(void **state) {
    (void)state;
    kkt_surrogate *s = learned();
    for (int t = 0; t < 6; t++) {
        for (int k = 0; k < 3; k++) {
            bool held_back = (t + k) % 4 == 3;
            kkt_surrogate_point point = point_of(t, k, (t * 7 + k * 3) % 4);
            double deviation;
            double mean = kkt_surrogate_predict(s, &point, &deviation);
            assert_true(deviation >= 0);
            assert_true(fabs(mean - value_of(t, k)) < (held_back ? 0.25 : 0.05));
        }
    }
    kkt_surrogate_close(s);
}

static void what_is_not_finite_is_no_observation(void **state) {
    (void)state;
    kkt_surrogate *s = learned();
    kkt_surrogate_point point = point_of(2, 1, 0);
    double before = kkt_surrogate_predict(s, &point, NULL);
    kkt_surrogate_add(s, &point, (double)NAN);
    kkt_surrogate_add(s, &point, (double)-INFINITY);
    point.feature = (double)INFINITY;
    kkt_surrogate_add(s, &point, 3);
    kkt_surrogate_assume(s, &point);
    assert_true(kkt_surrogate_fit(s)); /* would never end */
    point.feature = 1.2;
    assert_true(kkt_surrogate_predict(s, &point, NULL) == before);
    kkt_surrogate_close(s);
}

static void uncertain_far_away(void **state) {
    (void)state;
    kkt_surrogate *s = kkt_surrogate_open(&table, KKT_SURROGATE_POINTS);
    kkt_surrogate_point near = point_of(0, 0, 0);
    kkt_surrogate_point other = point_of(1, 0, 0);
    kkt_surrogate_point far = point_of(5, 2, 3);
    kkt_surrogate_add(s, &near, 1);
    kkt_surrogate_add(s, &other, 1.2);
    assert_true(kkt_surrogate_fit(s));
    double at_near;
    double at_far;
    kkt_surrogate_predict(s, &near, &at_near);
    kkt_surrogate_predict(s, &far, &at_far);
    assert_true(at_far > 5 * at_near);
    kkt_surrogate_close(s);
}

/* An assumed point lowers the uncertainty there and leaves no trace once settled. */
static void assumed_points(void **state) {
    (void)state;
    kkt_surrogate *s = learned();
    kkt_surrogate_point point = point_of(3, 0, 2);
    double before;
    double during;
    double after;
    double mean = kkt_surrogate_predict(s, &point, &before);
    kkt_surrogate_assume(s, &point);
    assert_true(kkt_surrogate_fit(s));
    assert_true(fabs(kkt_surrogate_predict(s, &point, &during) - mean) < 0.05);
    assert_true(during < before);
    kkt_surrogate_settle(s);
    assert_true(kkt_surrogate_fit(s));
    kkt_surrogate_predict(s, &point, &after);
    assert_true(fabs(after - before) < 1e-9);
    kkt_surrogate_close(s);
}

/* The same point observed with different values, and more points than are kept. */
static void contradictions_and_overflow(void **state) {
    (void)state;
    kkt_surrogate *s = kkt_surrogate_open(&table, KKT_SURROGATE_POINTS);
    for (int i = 0; i < KKT_SURROGATE_POINTS + 40; i++) {
        kkt_surrogate_point point = point_of(i % 6, i % 3, i % 4);
        kkt_surrogate_add(s, &point, value_of(i % 6, i % 3) + 0.01 * (i % 5));
    }
    assert_true(kkt_surrogate_fit(s));
    kkt_surrogate_point point = point_of(3, 0, 3);
    double mean = kkt_surrogate_predict(s, &point, NULL);
    assert_true(fabs(mean - value_of(3, 0)) < 0.1);
    kkt_surrogate_close(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_observed),
        cmocka_unit_test(interpolates_and_generalises),
        cmocka_unit_test(what_is_not_finite_is_no_observation),
        cmocka_unit_test(uncertain_far_away),
        cmocka_unit_test(assumed_points),
        cmocka_unit_test(contradictions_and_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
