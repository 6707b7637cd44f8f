/* The gate lets right candidates pass and turns each kind of wrong one down, without a GPU: the
 * candidate is the emulation of the algorithm, whole or with one fault. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../kernels/emulate_runner.h"

static void setup(const char *problem_text, const char *config_text, kkt_values *problem,
                  kkt_values *config) {
    kkt_error err = {0};
    kkt_params_defaults(&kkt_solve_problem_table, problem);
    kkt_params_defaults(&kkt_solve_param_table, config);
    assert_int_equal(kkt_params_parse(&kkt_solve_problem_table, problem_text, problem, NULL, &err),
                     KKT_OK);
    if (kkt_params_parse(&kkt_solve_param_table, config_text, config, NULL, &err) != KKT_OK)
        fail_msg("%s", err.message);
}

static kkt_verdict judge(const char *problem_text, int chunk, emulate e,
                         kkt_reference_cache *cache) {
    kkt_values problem, config;
    char config_text[64];
    snprintf(config_text, sizeof config_text, "chunk=%d,couple=%s", chunk,
             e.tf32 ? "tf32" : "fp32");
    setup(problem_text, config_text, &problem, &config);
    const kkt_kernel *kernel = &kkt_kernel_kkt_solve;
    kkt_verdict verdict;
    kkt_error err = {0};
    if (kkt_gate_check(kernel, kernel->variants[0], &problem, &config, 7, emulate_run, &e, cache,
                       &verdict, &err) != KKT_OK)
        fail_msg("%s", err.message);
    return verdict;
}

#define BF16 "heads_k=1,heads_v=2,dk=64,dtype=bf16,gated=1"
#define FP16 "heads_k=2,heads_v=2,dk=64,dtype=fp16,gated=1"

static void right_candidates_pass(void **state) {
    (void)state;
    static const struct {
        const char *problem;
        int chunk;
        emulate e;
    } right[] = {
        {BF16, 16, {.inverse = KKT_INVERSE_ROW, .base = 16, .single = true}},
        {BF16, 64, {.inverse = KKT_INVERSE_RECURSIVE, .base = 16, .single = true}},
        {BF16, 64, {.inverse = KKT_INVERSE_RECURSIVE, .base = 8, .single = true, .tf32 = true}},
        {BF16, 64, {.inverse = KKT_INVERSE_FLAT, .base = 16, .single = true, .tf32 = true}},
        {FP16, 32, {.inverse = KKT_INVERSE_FLAT, .base = 8, .single = true}},
        {FP16, 64, {.inverse = KKT_INVERSE_RECURSIVE, .base = 16, .single = true, .tf32 = true}},
        {FP16, 128, {.inverse = KKT_INVERSE_RECURSIVE, .base = 32, .single = true, .tf32 = true}},
        {"heads_k=1,heads_v=1,dk=64,dtype=fp16,gated=0",
         64,
         {.inverse = KKT_INVERSE_RECURSIVE, .base = 16, .single = true}},
    };
    kkt_reference_cache *cache = kkt_reference_cache_open();
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        kkt_verdict verdict = judge(right[i].problem, right[i].chunk, right[i].e, cache);
        if (verdict.outcome != KKT_OUTCOME_OK)
            fail_msg("row %zu: %s", i, verdict.reason);
        assert_true(verdict.tolerance > 0.0);
        assert_true(verdict.rel_fro > 0.0 && verdict.rel_fro < verdict.tolerance);
        assert_true(verdict.growth >= 1.0);
    }
    kkt_reference_cache_close(cache);
}

static void faults_are_caught(void **state) {
    (void)state;
    static const struct {
        emulate_fault fault;
        kkt_outcome outcome;
        const char *reason; /* part of the verdict's sentence */
    } faults[] = {
        {FAULT_NO_NEGATION, KKT_OUTCOME_WRONG_RESULT, "relative error"},
        {FAULT_NO_ROW_BACKUP, KKT_OUTCOME_WRONG_RESULT, "relative error"},
        {FAULT_DIAGONAL_KEPT, KKT_OUTCOME_WRONG_RESULT, "must be exact"},
        {FAULT_UPPER_NOT_CLEARED, KKT_OUTCOME_WRONG_RESULT, "must be exact"},
        {FAULT_RACE, KKT_OUTCOME_RACY, "two runs differ"},
        {FAULT_UNGATED, KKT_OUTCOME_WRONG_RESULT, "relative error"},
        {FAULT_NO_TRANSPOSE, KKT_OUTCOME_WRONG_RESULT, "relative error"},
        {FAULT_ONE_TILE_SIZE, KKT_OUTCOME_WRONG_RESULT, "relative error"},
        {FAULT_NOT_WRITTEN, KKT_OUTCOME_WRONG_RESULT, "never written"},
        {FAULT_GUARD_DAMAGED, KKT_OUTCOME_WRONG_RESULT, "outside t"},
        {FAULT_DOUBLING_FP16, KKT_OUTCOME_WRONG_RESULT, "not finite"},
    };
    kkt_reference_cache *cache = kkt_reference_cache_open();
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        emulate e = {.inverse = KKT_INVERSE_RECURSIVE, .base = 16, .fault = faults[i].fault};
        const int chunk = faults[i].fault == FAULT_DOUBLING_FP16 ? 128 : 64;
        kkt_verdict verdict = judge(BF16, chunk, e, cache);
        if (verdict.outcome != faults[i].outcome || !strstr(verdict.reason, faults[i].reason))
            fail_msg("fault %d: outcome %d, %s", faults[i].fault, verdict.outcome, verdict.reason);
    }
    kkt_reference_cache_close(cache);
}

/* A fault at one tile size must not throw suspicion on the others. */
static void one_tile_size_is_wrong_alone(void **state) {
    (void)state;
    emulate e = {.inverse = KKT_INVERSE_RECURSIVE, .base = 16, .fault = FAULT_ONE_TILE_SIZE};
    assert_int_equal(judge(BF16, 32, e, NULL).outcome, KKT_OUTCOME_OK);
    assert_int_equal(judge(BF16, 64, e, NULL).outcome, KKT_OUTCOME_WRONG_RESULT);
}

static kkt_outcome refuse(void *context, const kkt_values *problem, kkt_host_tensors *tensors,
                          char *reason, size_t size) {
    (void)problem;
    (void)tensors;
    snprintf(reason, size, "too much of something");
    return *(kkt_outcome *)context;
}

static void what_the_runner_says_stands(void **state) {
    (void)state;
    kkt_values problem, config;
    setup(BF16, "chunk=32", &problem, &config);
    const kkt_kernel *kernel = &kkt_kernel_kkt_solve;
    kkt_outcome said[] = {KKT_OUTCOME_LAUNCH_FAILED, KKT_OUTCOME_TIMED_OUT, KKT_OUTCOME_CRASHED};
    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) {
        kkt_verdict verdict;
        assert_int_equal(kkt_gate_check(kernel, kernel->variants[0], &problem, &config, 1, refuse,
                                        &said[i], NULL, &verdict, NULL),
                         KKT_OK);
        assert_int_equal(verdict.outcome, said[i]);
        assert_non_null(strstr(verdict.reason, "too much of something"));
        assert_non_null(strstr(verdict.reason, "random inputs"));
    }
}

/* kkt_gate_score reads caller's tensors: a spread of parts must hold the first and the last. */
static void score_spreads_over_parts(void **state) {
    (void)state;
    kkt_values problem, config;
    setup("heads_k=1,heads_v=2,dk=64,tokens=200,dtype=fp16,gated=1", "chunk=32", &problem, &config);
    kkt_host_tensors tensors;
    kkt_error err = {0};
    assert_int_equal(kkt_solve_make_inputs(&problem, KKT_CASE_RANDOM, 3, &tensors, &err), KKT_OK);
    kkt_tensor shapes[KKT_SOLVE_TENSORS];
    kkt_solve_tensors(&problem, &config, shapes);
    kkt_score score;
    tensors.t[KKT_SOLVE_TENSOR_T].tensor = shapes[KKT_SOLVE_TENSOR_T];
    assert_int_equal(
        kkt_gate_score(&kkt_kernel_kkt_solve, &problem, &config, &tensors, 0, &score, &err),
        KKT_ERR_INPUT); /* no t */
    assert_non_null(strstr(err.message, "t"));
    tensors.t[KKT_SOLVE_TENSOR_T].data = calloc(1, (size_t)kkt_tensor_bytes(&shapes[4]));
    char reason[100];
    emulate e = {.inverse = KKT_INVERSE_ROW, .base = 16, .single = true};
    assert_int_equal(emulate_run(&e, &problem, &tensors, reason, sizeof reason), KKT_OUTCOME_OK);
    assert_int_equal(
        kkt_gate_score(&kkt_kernel_kkt_solve, &problem, &config, &tensors, 0, &score, &err),
        KKT_OK);
    assert_int_equal(score.elements, 200 * 2 * 32);
    assert_true(kkt_score_rel_fro(&score) < 5e-4);
    /* Damage the last row of the last head: the last of 14 parts. */
    uint16_t *t = tensors.t[KKT_SOLVE_TENSOR_T].data;
    t[200 * 2 * 32 - 31] = kkt_half_from_double(NAN);
    for (int64_t parts = 2; parts <= 14; parts += 3) {
        assert_int_equal(
            kkt_gate_score(&kkt_kernel_kkt_solve, &problem, &config, &tensors, parts, &score, &err),
            KKT_OK);
        assert_int_equal(score.not_finite, 1);
    }
    assert_int_equal(
        kkt_gate_score(&kkt_kernel_kkt_solve, &problem, &config, &tensors, 1, &score, &err),
        KKT_OK);
    assert_int_equal(score.not_finite, 0);
    assert_int_equal(score.elements, 32 * 32);
    kkt_host_tensors_free(&tensors);
}

static void relative_error_of_nothing(void **state) {
    (void)state;
    kkt_score score = {0};
    assert_true(kkt_score_rel_fro(&score) == 0.0);
    score.error_sq[0] = 1e-30; /* an error where the reference is zero is infinitely large */
    assert_true(isinf(kkt_score_rel_fro(&score)));
    score.reference_sq[0] = 1e-26;
    score.not_finite = 1; /* a NaN is not left out of the figure */
    assert_true(isinf(kkt_score_rel_fro(&score)));
    score.not_finite = 0;
    assert_true(fabs(kkt_score_rel_fro(&score) - (1e-2)) < 1e-12);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_candidates_pass),
        cmocka_unit_test(faults_are_caught),
        cmocka_unit_test(one_tile_size_is_wrong_alone),
        cmocka_unit_test(what_the_runner_says_stands),
        cmocka_unit_test(score_spreads_over_parts),
        cmocka_unit_test(relative_error_of_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
