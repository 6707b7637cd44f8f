/* What is said of inputs that make a result ill-conditioned. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "kernels/kkt_solve/kkt_solve.h"

/* The advice on inputs of a case, with element `at` of beta set to `value`. */
static void advice_on(enum kkt_case input_case, size_t at, double value, char out[320]) {
    kkt_values problem;
    kkt_host_tensors inputs = {0};
    kkt_error err = {0};
    kkt_params_defaults(&kkt_solve_problem_table, &problem);
    problem.v[KKT_SOLVE_TOKENS] = 40;
    problem.v[KKT_SOLVE_HEADS_K] = 2;
    problem.v[KKT_SOLVE_HEADS_V] = 4;
    problem.v[KKT_SOLVE_DK] = 16;
    assert_int_equal(kkt_solve_make_inputs(&problem, (int)input_case, 7, &inputs, &err), KKT_OK);
    kkt_host_tensor *beta = &inputs.t[KKT_SOLVE_TENSOR_BETA];
    kkt_dtype_store(beta->tensor.dtype, beta->data, at, value);
    kkt_kernel_kkt_solve.advice(&problem, &inputs, out, 320);
    kkt_host_tensors_free(&inputs);
}

static void names_the_strongest_element(void **state) {
    (void)state;
    char text[320];
    advice_on(KKT_CASE_RANDOM, 13, 3.0, text); /* token 3, head 1 */
    assert_non_null(strstr(text, "beta = 3 at beta[0,3,1])"));
    assert_non_null(strstr(text, "normalise the keys to |k| = 1, or lower beta"));
    advice_on(KKT_CASE_LONG_KEYS, 13, 1.25, text);
    assert_non_null(strstr(text, "(|k| = 2, beta = 1.25 at beta[0,3,1])"));
}

static void says_when_it_is_not_the_length(void **state) {
    (void)state;
    char text[320];
    advice_on(KKT_CASE_CORRELATED, 13, 1.5, text);
    assert_non_null(
        strstr(text, "beta = 1.5 at beta[0,3,1]), so it is keys that are almost alike"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_the_strongest_element),
        cmocka_unit_test(says_when_it_is_not_the_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
