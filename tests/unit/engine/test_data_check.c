/* Judging results on a user's own data. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

#include "kernels/kkt_solve/kkt_solve.h"
#include "tuner/engine/data_check.h"
#include "tuner/engine/gate.h"

static double rounding_of(const char *config) {
    const kkt_variant *variant = kkt_kernel_kkt_solve.variants[0];
    kkt_values values;
    uint64_t given = 0;
    kkt_params_defaults(&variant->params, &values);
    assert_int_equal(kkt_params_parse(&variant->params, config, &values, &given, NULL), KKT_OK);
    return kkt_path_rounding(variant, &values, given);
}

/* The default is bf16x3, but who names no path is held to the most exact one. */
static void rounding_of_what_is_named(void **state) {
    (void)state;
    assert_true(rounding_of("") == 0x1p-24);
    assert_true(rounding_of("chunk=128") == 0x1p-24);
    assert_true(rounding_of("couple=fp32") == 0x1p-24);
    assert_true(rounding_of("couple=tf32") == 0x1p-11);
    const kkt_variant *variant = kkt_kernel_kkt_solve.variants[0];
    kkt_variant plain = *variant;
    kkt_values values;
    plain.rounding = NULL;
    kkt_params_defaults(&variant->params, &values);
    assert_true(kkt_path_rounding(variant, &values, ~UINT64_C(0)) == 0x1p-16);
    assert_true(kkt_path_rounding(&plain, &values, ~UINT64_C(0)) == 0x1p-24);
}

static const char *verdict(double rel_fro, double cond, double excess, bool compared,
                           double rounding) {
    kkt_data_check check = {.score = {.error_sq = {rel_fro * rel_fro}, .reference_sq = {1.0}},
                            .cond_estimate = cond,
                            .excess = excess,
                            .compared = compared};
    kkt_data_check_judge(&check, 1e-3, 1e-2, rounding);
    assert_true(check.rounding == rounding);
    return check.verdict;
}

static void conditioning_explains_errors(void **state) {
    (void)state;
    assert_string_equal(verdict(9e-4, 10, 0, true, 0x1p-24), "ok");
    assert_string_equal(verdict(2e-3, 10, 0, true, 0x1p-24), "wrong_result");
    assert_string_equal(verdict(2e-3, 10, 0, true, 0x1p-11), "ok"); /* 10 x 2^-11 = 4.9e-3 */
    assert_string_equal(verdict(2e-3, 1e6, 0, true, 0x1p-11), "ok");
    assert_string_equal(verdict(2e-2, 1e6, 0, true, 0x1p-11), "ill_conditioned");
    assert_string_equal(verdict(0, 1e6, 0, false, 0x1p-11), "ill_conditioned");
    assert_string_equal(verdict(0, NAN, 0, false, 0x1p-11), "ok");
    assert_string_equal(verdict(0, 1, 1.1, true, 0x1p-24), "ill_conditioned");
}

static void findings_name_the_figure(void **state) {
    (void)state;
    char finding[160];
    kkt_score score = {.error_sq = {4e-6}, .reference_sq = {1.0}, .elements = 50};
    assert_true(kkt_score_right(&score, 3e-3, finding, sizeof finding));
    assert_false(kkt_score_right(&score, 1e-3, finding, sizeof finding));
    assert_string_equal(finding, "relative error 2.00e-03 is above the tolerance 1.0e-03");
    score.inexact = 3;
    assert_false(kkt_score_right(&score, 1, finding, sizeof finding));
    assert_string_equal(finding, "3 of 50 elements that must be exact are not");
    score.not_finite = 2;
    assert_false(kkt_score_right(&score, INFINITY, finding, sizeof finding));
    assert_string_equal(finding, "2 of 50 elements are not finite or were never written");
    assert_false(kkt_score_right(&score, 1, NULL, 0));
}

static void parts_are_spread_evenly(void **state) {
    (void)state;
    const int64_t parts = INT64_C(1) << 52;
    for (int64_t i = 0, last = -1; i < 64; i++) {
        const int64_t part = kkt_gate_part(i, 64, parts);
        assert_true(part > last && part < parts);
        last = part;
    }
    assert_int_equal(kkt_gate_part(0, 64, parts), 0);
    assert_true(kkt_gate_part(63, 64, parts) == parts - 1);
    assert_int_equal(kkt_gate_part(4, 5, 5), 4);
    assert_int_equal(kkt_gate_part(0, 1, 5), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounding_of_what_is_named),
        cmocka_unit_test(conditioning_explains_errors),
        cmocka_unit_test(findings_name_the_figure),
        cmocka_unit_test(parts_are_spread_evenly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
