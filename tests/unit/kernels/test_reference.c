/* The double-precision reference of kkt_solve: against the definition, and on the inputs that
 * public bug reports are about. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "emulate.h"
#include "kernels/kkt_solve/parts.h"
#include "kernels/kkt_solve/triangular.h"

typedef struct fixture {
    kkt_values problem, config;
    kkt_host_tensors tensors;
} fixture;

static void open_fixture(fixture *f, const char *problem, int chunk, int input_case,
                         uint64_t seed) {
    kkt_error err = {0};
    kkt_params_defaults(&kkt_solve_problem_table, &f->problem);
    kkt_params_defaults(&kkt_solve_param_table, &f->config);
    if (kkt_params_parse(&kkt_solve_problem_table, problem, &f->problem, NULL, &err) != KKT_OK)
        fail_msg("%s", err.message);
    f->config.v[KKT_SOLVE_CHUNK] = chunk;
    assert_int_equal(kkt_solve_make_inputs(&f->problem, input_case, seed, &f->tensors, &err),
                     KKT_OK);
    assert_int_equal(kkt_solve_check_inputs(&f->problem, &f->tensors, &err), KKT_OK);
}

/* All of T, rows x heads x chunk doubles a batch entry, NaN where no part wrote. */
static double *all_parts(fixture *f) {
    kkt_tensor shapes[KKT_SOLVE_TENSORS];
    kkt_solve_tensors(&f->problem, &f->config, shapes);
    const size_t size = (size_t)kkt_tensor_elements(&shapes[KKT_SOLVE_TENSOR_T]);
    double *t = malloc(size * sizeof *t);
    double part[EMULATE_MAX * EMULATE_MAX];
    for (size_t i = 0; i < size; i++)
        t[i] = NAN;
    const int64_t parts = kkt_solve_part_count(&f->problem, &f->config, &f->tensors);
    for (int64_t p = 0; p < parts; p++) {
        kkt_region at;
        assert_int_equal(kkt_solve_part_regions(&f->problem, &f->config, &f->tensors, p, &at), 1);
        assert_int_equal(kkt_solve_reference(&f->problem, &f->config, &f->tensors, p, part,
                                             sizeof part / sizeof *part, NULL),
                         KKT_OK);
        for (int64_t i = 0; i < at.rows; i++)
            memcpy(t + at.offset + i * at.row_stride, part + i * at.columns,
                   sizeof *t * (size_t)at.columns);
    }
    kkt_region none;
    assert_int_equal(kkt_solve_part_regions(&f->problem, &f->config, &f->tensors, parts, &none), 0);
    return t;
}

static double key_product(const fixture *f, int64_t a, int64_t b, int64_t head) {
    const kkt_host_tensor *k = &f->tensors.t[KKT_SOLVE_TENSOR_K];
    const int64_t dk = k->tensor.dims[3], heads = k->tensor.dims[2];
    double sum = 0.0;
    for (int64_t d = 0; d < dk; d++)
        sum += kkt_dtype_load(k->tensor.dtype, k->data, (size_t)((a * heads + head) * dk + d)) *
               kkt_dtype_load(k->tensor.dtype, k->data, (size_t)((b * heads + head) * dk + d));
    return sum;
}

/* (I + L) T = I for every row of every sequence, L written down from the definition anew. */
static void assert_definition(fixture *f, const int64_t *begins, int sequences) {
    double *t = all_parts(f);
    const int64_t heads = f->problem.v[KKT_SOLVE_HEADS_V], chunk = f->config.v[KKT_SOLVE_CHUNK];
    const int64_t ratio = heads / f->problem.v[KKT_SOLVE_HEADS_K];
    const float *beta = f->tensors.t[KKT_SOLVE_TENSOR_BETA].data;
    const float *g = f->tensors.t[KKT_SOLVE_TENSOR_G].data;
    for (int s = 0; s < sequences; s++)
        for (int64_t row = begins[s]; row < begins[s + 1]; row++)
            for (int64_t h = 0; h < heads; h++) {
                const int64_t start = row - (row - begins[s]) % chunk;
                double sum[EMULATE_MAX];
                for (int64_t c = 0; c < chunk; c++)
                    sum[c] = t[(row * heads + h) * chunk + c];
                double decay = g ? (double)g[row * heads + h] : 0.0;
                for (int64_t j = row - 1; j >= start; j--) {
                    const double l = (double)beta[row * heads + h] *
                                     key_product(f, row, j, h / ratio) * exp(decay);
                    for (int64_t c = 0; c < chunk; c++)
                        sum[c] += l * t[(j * heads + h) * chunk + c];
                    decay += g ? (double)g[j * heads + h] : 0.0;
                }
                for (int64_t c = 0; c < chunk; c++)
                    assert_true(fabs(sum[c] - (c == row - start)) < 1e-12);
            }
    free(t);
}

static void matches_the_definition(void **state) {
    (void)state;
    fixture f;
    open_fixture(&f, "batch=2,tokens=82,heads_k=2,heads_v=6,dk=64,dtype=bf16,gated=1", 16,
                 KKT_CASE_RANDOM, 1);
    assert_definition(&f, (const int64_t[]){0, 41, 82}, 2);
    kkt_host_tensors_free(&f.tensors);
    open_fixture(&f, "sequences=4,tokens=100,heads_k=1,heads_v=2,dk=64,dtype=fp16,gated=0", 32,
                 KKT_CASE_CORRELATED, 2);
    const int32_t *cu = f.tensors.t[KKT_SOLVE_TENSOR_CU_SEQLENS].data;
    assert_int_equal(cu[1], cu[2]); /* the empty sequence */
    assert_definition(&f, (const int64_t[]){0, cu[1], cu[2], cu[3], 100}, 4);
    kkt_host_tensors_free(&f.tensors);
}

/* Every part in order, then some from the end back, after the boundaries themselves; one search a
 * part over all sequences would take minutes. Another chunk begins anew. */
static void parts_of_many_sequences(void **state) {
    (void)state;
    fixture f;
    open_fixture(&f, "sequences=200000,tokens=1000000,heads_k=1,heads_v=2,dk=16,gated=0", 16,
                 KKT_CASE_ZERO_BETA, 3);
    const int32_t *cu = f.tensors.t[KKT_SOLVE_TENSOR_CU_SEQLENS].data;
    kkt_chunk_part part;
    for (int chunk = 16; chunk <= 32; chunk *= 2) {
        int64_t index = 0;
        for (int s = 0; s < 200000; s++) {
            for (int32_t token = cu[s]; token < cu[s + 1]; token += chunk)
                for (int64_t head = 0; head < 2; head++, index++) {
                    const int32_t left = cu[s + 1] - token;
                    assert_true(kkt_solve_part_at(&f.problem, chunk, &f.tensors, index, &part));
                    assert_true(part.token == token && part.head == head && part.batch == 0);
                    assert_true(part.rows == (left < chunk ? left : chunk));
                }
        }
        assert_int_equal(kkt_solve_chunk_count(&f.problem, chunk, &f.tensors) * 2, index);
        assert_false(kkt_solve_part_at(&f.problem, chunk, &f.tensors, index, &part));
        assert_true(kkt_solve_part_at(&f.problem, chunk, &f.tensors, index - 1, &part));
        assert_int_equal(part.token + part.rows, 1000000);
        assert_true(kkt_solve_part_at(&f.problem, chunk, &f.tensors, 0, &part));
        assert_int_equal(part.token, 0);
    }
    kkt_host_tensors_free(&f.tensors);
}

static void zero_beta_gives_the_identity(void **state) {
    (void)state;
    fixture f;
    open_fixture(&f, "tokens=70,heads_k=1,heads_v=2,dk=64", 64, KKT_CASE_ZERO_BETA, 1);
    double *t = all_parts(&f);
    for (int64_t row = 0; row < 140; row++)
        for (int64_t c = 0; c < 64; c++)
            assert_true(t[row * 64 + c] == (c == row / 2 % 64 ? 1.0 : 0.0));
    free(t);
    kkt_host_tensors_free(&f.tensors);
}

static void sub_diagonal_negates_the_lower_part(void **state) {
    (void)state;
    for (int chunk = 16; chunk <= 128; chunk *= 2) {
        fixture f;
        open_fixture(&f, "tokens=256,heads_k=1,heads_v=1,dk=64", chunk, KKT_CASE_SUB_DIAGONAL, 3);
        double *t = all_parts(&f), *l = malloc(sizeof *l * (size_t)(chunk * chunk));
        const kkt_chunk_part part = {.token = 128, .rows = chunk};
        assert_int_equal(kkt_solve_lower(&f.problem, &f.tensors, &part, l, NULL), KKT_OK);
        double sum = 0.0;
        for (int i = 0; i < chunk; i++)
            for (int j = 0; j < i; j++) {
                assert_true(t[(128 + i) * chunk + j] == -l[i * chunk + j]);
                sum += fabs(l[i * chunk + j]);
            }
        assert_true(sum > 1.0); /* and it is not the identity */
        free(l);
        free(t);
        kkt_host_tensors_free(&f.tensors);
    }
}

static void zero_gate_equals_no_gate(void **state) {
    (void)state;
    fixture gated, plain;
    open_fixture(&gated, "tokens=90,heads_k=2,heads_v=2,dk=64,gated=1", 32, KKT_CASE_ZERO_GATE, 4);
    open_fixture(&plain, "tokens=90,heads_k=2,heads_v=2,dk=64,gated=0", 32, KKT_CASE_ZERO_GATE, 4);
    double *a = all_parts(&gated), *b = all_parts(&plain);
    assert_memory_equal(a, b, sizeof *a * 90 * 2 * 32);
    free(a);
    free(b);
    kkt_host_tensors_free(&gated.tensors);
    kkt_host_tensors_free(&plain.tensors);
}

/* Steep gates on tails: exp is never taken of what the mask leaves out, so nothing is NaN. */
static void tail_nan(void **state) {
    (void)state;
    fixture f;
    open_fixture(&f, "batch=2,tokens=150,heads_k=4,heads_v=4,dk=64,dtype=fp16,gated=1", 64,
                 KKT_CASE_STEEP_GATE, 5);
    const float *g = f.tensors.t[KKT_SOLVE_TENSOR_G].data;
    double steepest = 0.0;
    for (int i = 0; i < 2 * 75 * 4; i++)
        steepest = fmin(steepest, (double)g[i]);
    assert_true(steepest < -250.0);
    double *t = all_parts(&f);
    for (int i = 0; i < 2 * 75 * 4 * 64; i++)
        assert_true(isfinite(t[i]));
    free(t);
    kkt_host_tensors_free(&f.tensors);
}

/* Row sums near 37 at chunk 128: finite, but products of fp16 powers of L overflow. */
static void trained_growth(void **state) {
    (void)state;
    fixture f;
    open_fixture(&f, "tokens=512,heads_k=1,heads_v=2,dk=128,gated=1", 128, KKT_CASE_GROWTH, 6);
    const kkt_chunk_part part = {.token = 256, .rows = 128, .head = 1};
    static double l[128 * 128], t[128 * 128];
    assert_int_equal(kkt_solve_lower(&f.problem, &f.tensors, &part, l, NULL), KKT_OK);
    static matrix given;
    double largest = 0.0;
    given.n = 128;
    for (int i = 0; i < 128; i++) {
        double sum = 0.0;
        for (int j = 0; j < 128; j++) {
            sum += fabs(l[i * 128 + j]);
            given.v[i][j] = i == j ? 1.0 : l[i * 128 + j];
        }
        largest = fmax(largest, sum);
    }
    assert_true(largest > 33.0 && largest < 41.0);
    kkt_triangular_inverse(l, 128, t);
    for (int i = 0; i < 128 * 128; i++)
        assert_true(fabs(t[i]) <= 1.0);
    const emulate doubling = {.fault = FAULT_DOUBLING_FP16};
    emulate_invert(&doubling, &given);
    kkt_region region = {.rows = 128, .columns = 128};
    kkt_score score = {0};
    double *actual = malloc(sizeof t);
    for (int i = 0; i < 128 * 128; i++)
        actual[i] = given.v[i / 128][i % 128];
    kkt_solve_score(&f.problem, &region, t, actual, &score);
    free(actual);
    assert_true(score.not_finite > 0 || score.error_sq[0] > 1e-2 * score.reference_sq[0]);
    kkt_host_tensors_free(&f.tensors);
}

static void growth_and_bounds(void **state) {
    (void)state;
    static const struct {
        enum kkt_case input_case;
        bool bounded;
    } rows[] = {
        {KKT_CASE_RANDOM, true}, {KKT_CASE_CORRELATED, true}, {KKT_CASE_DUPLICATES, true},
        {KKT_CASE_GROWTH, true}, {KKT_CASE_LONG_KEYS, false},
    };
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        fixture f;
        open_fixture(&f, "tokens=64,heads_k=1,heads_v=1,dk=128,dtype=fp16,gated=1", 64,
                     (int)rows[r].input_case, 8);
        double *t = all_parts(&f), condition = 0.0, bound = 0.0, growth = 0.0;
        for (int i = 0; i < 64 * 64; i++)
            growth = fmax(growth, fabs(t[i]));
        kkt_solve_condition(&f.problem, &f.config, &f.tensors, 0, t, &condition, &bound);
        assert_int_equal(isfinite(bound), rows[r].bounded);
        assert_true(growth <= bound * (1 + 1e-9) && condition >= 1.0);
        assert_true(bound < 2.1 || !rows[r].bounded);
        if (!rows[r].bounded) { /* 4 x 3^62 for |k|^2 = 4 exactly */
            assert_true(growth > 1.1e30 && growth < 2e30);
            assert_true(condition > 1e30);
        }
        free(t);
        kkt_host_tensors_free(&f.tensors);
    }
}

static void inputs_repeat_by_seed(void **state) {
    (void)state;
    fixture a, b, c;
    const char *problem = "sequences=5,tokens=300,heads_k=2,heads_v=4,dk=64";
    open_fixture(&a, problem, 64, KKT_CASE_UNEVEN, 1);
    open_fixture(&b, problem, 64, KKT_CASE_UNEVEN, 1);
    open_fixture(&c, problem, 64, KKT_CASE_UNEVEN, 2);
    for (int i = 0; i < KKT_SOLVE_TENSOR_T; i++) {
        const size_t bytes = (size_t)kkt_tensor_bytes(&a.tensors.t[i].tensor);
        assert_memory_equal(a.tensors.t[i].data, b.tensors.t[i].data, bytes);
        assert_memory_not_equal(a.tensors.t[i].data, c.tensors.t[i].data, bytes);
    }
    kkt_host_tensors_free(&a.tensors);
    kkt_host_tensors_free(&b.tensors);
    kkt_host_tensors_free(&c.tensors);
}

static void check_problems_keep_what_matters(void **state) {
    (void)state;
    kkt_values problem, config, small;
    kkt_params_defaults(&kkt_solve_problem_table, &problem);
    kkt_params_defaults(&kkt_solve_param_table, &config);
    assert_int_equal(kkt_params_parse(&kkt_solve_problem_table,
                                      "heads_k=2,heads_v=8,dk=64,dtype=fp16,gated=1", &problem,
                                      NULL, NULL),
                     KKT_OK);
    config.v[KKT_SOLVE_CHUNK] = 128;
    unsigned cases = 0;
    int input_case, index = 0, tails = 0, batches = 0, variable = 0;
    char reason[200];
    for (; kkt_solve_check_problem(&problem, &config, index, &small, &input_case); index++) {
        assert_true(kkt_solve_problem_valid(&small, reason, sizeof reason));
        assert_int_equal(small.v[KKT_SOLVE_HEADS_V] / small.v[KKT_SOLVE_HEADS_K], 4);
        assert_int_equal(small.v[KKT_SOLVE_DK], 64);
        assert_int_equal(small.v[KKT_SOLVE_DTYPE], KKT_FP16);
        assert_int_equal(small.v[KKT_SOLVE_GATED], 1);
        assert_true(small.v[KKT_SOLVE_TOKENS] <= 4 * 128);
        cases |= 1u << input_case;
        tails += small.v[KKT_SOLVE_TOKENS] % 128 != 0;
        batches += small.v[KKT_SOLVE_BATCH] > 1;
        variable += small.v[KKT_SOLVE_SEQUENCES] > 2;
    }
    assert_int_equal(cases, ((1u << KKT_CASE_COUNT) - 1) & ~(1u << KKT_CASE_LONG_KEYS));
    assert_true(tails && batches && variable);
    problem.v[KKT_SOLVE_GATED] = 0;
    int ungated = 0;
    while (kkt_solve_check_problem(&problem, &config, ungated, &small, &input_case))
        ungated++;
    assert_true(ungated > 0 && ungated < index);
}

static void assert_rejected(fixture *f, const char *words) {
    kkt_error err = {0};
    assert_int_equal(kkt_solve_check_inputs(&f->problem, &f->tensors, &err), KKT_ERR_INPUT);
    if (!strstr(err.message, words))
        fail_msg("'%s' does not say '%s'", err.message, words);
}

static void bad_inputs_are_named(void **state) {
    (void)state;
    fixture f;
    open_fixture(&f, "sequences=3,tokens=40,heads_k=1,heads_v=2,dk=64,gated=1", 16, KKT_CASE_RANDOM,
                 1);
    float *g = f.tensors.t[KKT_SOLVE_TENSOR_G].data;
    const float kept = g[7];
    g[7] = 0.98f; /* token 3, head 1: a decay factor where its logarithm belongs */
    assert_rejected(&f, "g[0,3,1] is 0.98");
    assert_rejected(&f, "pass log g, not alpha");
    g[7] = NAN;
    assert_rejected(&f, "g[0,3,1] is nan");
    g[7] = kept;
    uint16_t *k = f.tensors.t[KKT_SOLVE_TENSOR_K].data;
    const uint16_t kept_key = k[65];
    k[65] = kkt_bf16_from_double(INFINITY);
    assert_rejected(&f, "k[0,1,0,1] is inf");
    k[65] = kept_key;
    int32_t *cu = f.tensors.t[KKT_SOLVE_TENSOR_CU_SEQLENS].data;
    cu[3] = 41;
    assert_rejected(&f, "ends at 41, but there are 40 tokens");
    cu[3] = 40;
    cu[0] = 1;
    assert_rejected(&f, "cu_seqlens[0] is 1");
    cu[0] = 0;
    cu[1] = 30;
    cu[2] = 20;
    assert_rejected(&f, "cu_seqlens[2] is 20, below the 30 before it");
    cu[1] = cu[2];
    float *beta = f.tensors.t[KKT_SOLVE_TENSOR_BETA].data;
    beta[0] = 2.5f; /* strange, but the mathematics allows it */
    assert_int_equal(kkt_solve_check_inputs(&f.problem, &f.tensors, NULL), KKT_OK);
    kkt_host_tensors_free(&f.tensors);
}

static void exact_elements_are_counted(void **state) {
    (void)state;
    kkt_values problem;
    kkt_params_defaults(&kkt_solve_problem_table, &problem);
    const kkt_region region = {.rows = 2, .columns = 4};
    const double right[8] = {1, 0, 0, 0, -0.5, 1, 0, 0};
    double given_t[8] = {1, 0, 0, 0, -0.5, 1, 0, 0};
    kkt_score score = {0};
    kkt_solve_score(&problem, &region, right, given_t, &score);
    assert_true(score.inexact == 0 && score.error_sq[0] == 0.0 && score.elements == 8);
    assert_true(score.reference_sq[0] == 0.25 && score.growth == 1.0);
    given_t[5] = 1.0078125; /* the diagonal */
    given_t[3] = 1e-20;     /* above it */
    given_t[7] = -0.0;      /* a zero all the same */
    given_t[4] = -0.75;
    kkt_solve_score(&problem, &region, right, given_t, &score);
    assert_int_equal(score.inexact, 2);
    assert_true(fabs(score.error_sq[0] - (0.0625)) < 1e-15);
    given_t[4] = NAN;
    score = (kkt_score){0};
    kkt_solve_score(&problem, &region, right, given_t, &score);
    assert_int_equal(score.not_finite, 1);
}

static void impossible_problems(void **state) {
    (void)state;
    kkt_values problem;
    char reason[200] = "";
    kkt_params_defaults(&kkt_solve_problem_table, &problem);
    assert_true(kkt_solve_problem_valid(&problem, reason, sizeof reason));
    problem.v[KKT_SOLVE_HEADS_K] = 4;
    problem.v[KKT_SOLVE_HEADS_V] = 6;
    assert_false(kkt_solve_problem_valid(&problem, reason, sizeof reason));
    assert_string_equal(reason, "heads_v 6 is no multiple of heads_k 4");
    problem.v[KKT_SOLVE_HEADS_V] = 8;
    problem.v[KKT_SOLVE_BATCH] = 2;
    problem.v[KKT_SOLVE_SEQUENCES] = 3;
    assert_false(kkt_solve_problem_valid(&problem, reason, sizeof reason));
    kkt_params_defaults(&kkt_solve_problem_table, &problem);
    for (int64_t dk = 16; dk <= 256; dk++) {
        problem.v[KKT_SOLVE_DK] = dk;
        assert_int_equal(kkt_solve_problem_valid(&problem, reason, sizeof reason), dk % 16 == 0);
    }
    assert_string_equal(reason, "dk 255 is no multiple of 16");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matches_the_definition),
        cmocka_unit_test(parts_of_many_sequences),
        cmocka_unit_test(zero_beta_gives_the_identity),
        cmocka_unit_test(sub_diagonal_negates_the_lower_part),
        cmocka_unit_test(zero_gate_equals_no_gate),
        cmocka_unit_test(tail_nan),
        cmocka_unit_test(trained_growth),
        cmocka_unit_test(growth_and_bounds),
        cmocka_unit_test(inputs_repeat_by_seed),
        cmocka_unit_test(check_problems_keep_what_matters),
        cmocka_unit_test(bad_inputs_are_named),
        cmocka_unit_test(exact_elements_are_counted),
        cmocka_unit_test(impossible_problems),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
