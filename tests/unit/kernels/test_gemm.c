/* gemm without a GPU: reference, layouts, inputs, check problems, what a plan launches. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/gemm/gemm.h"
#include "model/predict.h"

static const kkt_kernel *family(void) {
    const kkt_kernel *kernel = NULL;
    assert_int_equal(kkt_kernel_parse("gemm", &kernel, NULL), KKT_OK);
    return kernel;
}

static kkt_values problem_of(const char *text) {
    kkt_values problem;
    kkt_error err = {0};
    kkt_params_defaults(&family()->problem, &problem);
    if (kkt_params_parse(&family()->problem, text, &problem, NULL, &err) != KKT_OK)
        fail_msg("%s", err.message);
    return problem;
}

static kkt_values config_of(const kkt_variant *variant, const char *text) {
    kkt_values config;
    kkt_error err = {0};
    kkt_params_defaults(&variant->params, &config);
    if (kkt_params_parse(&variant->params, text, &config, NULL, &err) != KKT_OK)
        fail_msg("%s", err.message);
    return config;
}

/* ---- the reference ---- */

static double value(const kkt_host_tensor *host, int64_t row, int64_t column) {
    return kkt_dtype_load(host->tensor.dtype, host->data,
                          (size_t)(row * host->tensor.dims[1] + column));
}

/* c[i,j] by its definition, from how the layout's letters say a and b are stored. */
static double defined(const kkt_values *problem, const kkt_host_tensors *inputs, int64_t i,
                      int64_t j) {
    const int64_t layout = problem->v[KKT_GEMM_LAYOUT];
    const bool a_transposed = layout == KKT_GEMM_TN || layout == KKT_GEMM_TT;
    const bool b_transposed = layout == KKT_GEMM_NT || layout == KKT_GEMM_TT;
    double sum = 0.0;
    for (int64_t t = 0; t < problem->v[KKT_GEMM_K]; t++)
        sum += (a_transposed ? value(&inputs->t[0], t, i) : value(&inputs->t[0], i, t)) *
               (b_transposed ? value(&inputs->t[1], j, t) : value(&inputs->t[1], t, j));
    return sum;
}

static void compare_with_definition(const char *text) {
    const kkt_kernel *kernel = family();
    const kkt_values problem = problem_of(text);
    kkt_host_tensors inputs;
    double out[KKT_GEMM_PART_ROWS * KKT_GEMM_PART_COLUMNS];
    assert_int_equal(kernel->make_inputs(&problem, KKT_GEMM_RANDOM, 7, &inputs, NULL), KKT_OK);
    const int64_t n = problem.v[KKT_GEMM_N], parts = kernel->part_count(&problem, NULL, &inputs);
    int64_t covered = 0;
    for (int64_t part = 0; part < parts; part++) {
        kkt_region r;
        assert_int_equal(kernel->part_regions(&problem, NULL, &inputs, part, &r), 1);
        assert_int_equal(
            kernel->reference(&problem, NULL, &inputs, part, out, sizeof out / sizeof out[0], NULL),
            KKT_OK);
        covered += r.rows * r.columns;
        for (int64_t e = 0; e < r.rows * r.columns; e++) {
            const int64_t at = kkt_region_row(&r, e / r.columns) + e % r.columns;
            const double right = defined(&problem, &inputs, at / n, at % n);
            if (!(fabs(out[e] - right) <= 1e-12 * (1 + fabs(right))))
                fail_msg("%s: c[%lld,%lld] is %.17g, not %.17g", text, (long long)(at / n),
                         (long long)(at % n), out[e], right);
        }
    }
    assert_int_equal(covered, problem.v[KKT_GEMM_M] * n);
    kkt_host_tensors_free(&inputs);
}

static void reference_is_the_definition(void **state) {
    (void)state;
    compare_with_definition("m=35,n=67,k=41,layout=nn");
    compare_with_definition("m=35,n=67,k=41,layout=nt,dtype=bf16");
    compare_with_definition("m=35,n=67,k=300,layout=tn");
    compare_with_definition("m=64,n=16,k=257,layout=tt");
    compare_with_definition("m=1,n=1,k=1");
}

/* ---- inputs ---- */

static void cases_are_what_they_say(void **state) {
    (void)state;
    const kkt_kernel *kernel = family();
    const kkt_values problem = problem_of("m=40,n=96,k=128");
    const double edge = 65504.0;
    for (int c = 0; c < KKT_GEMM_CASES; c++) {
        kkt_host_tensors inputs, again;
        assert_int_equal(kernel->make_inputs(&problem, c, 3, &inputs, NULL), KKT_OK);
        assert_int_equal(kernel->make_inputs(&problem, c, 3, &again, NULL), KKT_OK);
        int beyond = 0, whole = 0, zero = 0;
        for (int64_t e = 0; e < 40 * 96; e++) {
            const double sum = defined(&problem, &inputs, e / 96, e % 96);
            beyond += fabs(sum) > edge;
            whole += sum == floor(sum) && fabs(sum) < 256;
            zero += sum == 0.0;
        }
        for (int i = 0; i < 2; i++)
            assert_memory_equal(inputs.t[i].data, again.t[i].data,
                                (size_t)kkt_tensor_bytes(&inputs.t[i].tensor));
        assert_true(c == KKT_GEMM_LARGE ? beyond > 100 && beyond < 1000 : beyond == 0);
        assert_true(c == KKT_GEMM_INTEGERS ? whole == 40 * 96 && zero < 400 : true);
        assert_true(c == KKT_GEMM_ZEROS ? zero == 40 * 96 : zero < 400);
        assert_int_equal(kernel->check_inputs(&problem, &inputs, NULL), KKT_OK);
        kkt_host_tensors_free(&inputs);
        kkt_host_tensors_free(&again);
    }
}

/* ---- scores ---- */

/* Whether the family's score and tolerance let `given` pass for `expected`. */
static bool passes(const char *text, double expected, double given) {
    const kkt_kernel *kernel = family();
    const kkt_values problem = problem_of(text);
    const kkt_region region = {
        .tensor = KKT_GEMM_TENSOR_C, .rows = 1, .columns = 2, .row_stride = 2};
    const double right[2] = {expected, 100.0}, actual[2] = {given, 100.0};
    kkt_score score = {0};
    kernel->score(&problem, &region, right, actual, &score);
    return score.inexact == 0 && score.not_finite == 0 &&
           sqrt(score.error_sq[KKT_GEMM_TENSOR_C]) <=
               kkt_gemm_tolerance(&problem, NULL, KKT_GEMM_RANDOM) *
                   sqrt(score.reference_sq[KKT_GEMM_TENSOR_C]);
}

static void overflow_is_right_where_the_sum_overflows(void **state) {
    (void)state;
    assert_true(passes("m=1,n=2,k=64", 70000.0, INFINITY));
    assert_true(passes("m=1,n=2,k=64", -70000.0, -INFINITY));
    assert_true(passes("m=1,n=2,k=64", 65519.0, INFINITY));
    assert_true(passes("m=1,n=2,k=64", 65519.0, 65504.0));
    assert_false(passes("m=1,n=2,k=64", 65519.0, 0.0));
    assert_false(passes("m=1,n=2,k=64", 65519.0, -INFINITY));
    assert_false(passes("m=1,n=2,k=64", 70000.0, 65504.0));
    assert_false(passes("m=1,n=2,k=64", 70000.0, -INFINITY));
    assert_false(passes("m=1,n=2,k=64", 60000.0, INFINITY));
    assert_false(passes("m=1,n=2,k=64", 70000.0, NAN));
    assert_true(passes("m=1,n=2,k=64,dtype=bf16", 70000.0, 70144.0));
    assert_false(passes("m=1,n=2,k=64,dtype=bf16", 70000.0, INFINITY));
    assert_true(passes("m=1,n=2,k=64", 50.0, 50.03));
    assert_false(passes("m=1,n=2,k=64", 50.0, 50.2));
}

/* ---- problems, plans ---- */

static void workspace_is_what_the_problem_asks_for(void **state) {
    (void)state;
    kkt_tensor t[KKT_TENSORS_MAX];
    kkt_values config = {.v = {[KKT_GEMM_SPLIT_K] = 1}};
    kkt_values problem = problem_of("m=64,n=32,k=72");
    assert_int_equal(kkt_gemm_tensors(&problem, &config, t), KKT_GEMM_TENSORS);
    assert_int_equal(kkt_tensor_bytes(&t[KKT_GEMM_TENSOR_PADDED]), 0);
    assert_int_equal(kkt_tensor_bytes(&t[KKT_GEMM_TENSOR_PARTIALS]), 0);
    problem = problem_of("m=65,n=33,k=71,layout=tn"); /* a [71, 65], b [71, 33] */
    config.v[KKT_GEMM_SPLIT_K] = 3;
    kkt_gemm_tensors(&problem, &config, t);
    assert_int_equal(t[KKT_GEMM_TENSOR_A].dims[0], 71);
    assert_int_equal(t[KKT_GEMM_TENSOR_A].dims[1], 65);
    assert_int_equal(kkt_tensor_bytes(&t[KKT_GEMM_TENSOR_PADDED]), 2 * 71 * (72 + 40));
    assert_int_equal(kkt_tensor_bytes(&t[KKT_GEMM_TENSOR_PARTIALS]), 4 * 3 * 65 * 33);
    problem = problem_of("m=65,n=33,k=72"); /* rows of a are whole units, those of b are not */
    kkt_gemm_tensors(&problem, &config, t);
    assert_int_equal(kkt_tensor_bytes(&t[KKT_GEMM_TENSOR_PADDED]), 2 * 72 * 40);
}

/* Of what the compiler is given nothing may change between the problem and those it is checked on,
 * and something has to be cut short on every side. */
static void check_problems_keep_what_is_compiled_in(void **state) {
    (void)state;
    static const char *const texts[] = {"m=4096,n=4096,k=4096", "m=4097,n=4095,k=4099,layout=tt",
                                        "m=1,n=4096,k=4100,layout=nt,dtype=bf16"};
    const kkt_kernel *kernel = family();
    const kkt_arch *arch = kkt_arch_find("sm90");
    for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++) {
        const kkt_values problem = problem_of(texts[t]);
        for (size_t v = 0; v < kernel->variant_count; v++) {
            const kkt_variant *variant = kernel->variants[v];
            if (!variant->defines)
                continue;
            const kkt_values config = config_of(variant, "");
            kkt_text whole = {0};
            variant->defines(&problem, &config, arch, &whole);
            kkt_values small;
            int input_case, checks = 0;
            bool tail[3] = {false, false, false};
            for (; kernel->check_problem(&problem, &config, checks, &small, &input_case);
                 checks++) {
                kkt_text part = {0};
                char reason[200];
                assert_true(kkt_kernel_problem_valid(kernel, &small, reason, sizeof reason));
                variant->defines(&small, &config, arch, &part);
                assert_string_equal(kkt_text_get(&part), kkt_text_get(&whole));
                kkt_text_free(&part);
                for (int i = 0; i < 3; i++)
                    tail[i] = tail[i] || (small.v[KKT_GEMM_M + i] > config.v[KKT_GEMM_BM + i] &&
                                          small.v[KKT_GEMM_M + i] % config.v[KKT_GEMM_BM + i]);
            }
            assert_true(checks >= 5 && tail[0] && tail[1] && tail[2]);
            kkt_text_free(&whole);
        }
    }
}

static void rows_that_are_no_units_are_copied_first(void **state) {
    (void)state;
    const kkt_variant *variant = family()->variants[0];
    const kkt_arch *arch = kkt_arch_find("sm90");
    const kkt_values config = config_of(variant, "");
    kkt_plan plan;
    kkt_values problem = problem_of("m=256,n=256,k=64");
    variant->plan(&problem, &config, arch, &plan);
    assert_int_equal(plan.launch_count, 1);
    assert_int_equal(plan.launches[0].args[3].integer, -1);
    problem = problem_of("m=257,n=256,k=65"); /* a [257, 65]: 257 rows of 9 units */
    variant->plan(&problem, &config, arch, &plan);
    assert_int_equal(plan.launch_count, 2);
    assert_string_equal(plan.launches[0].entry, "gemm_repack");
    assert_int_equal(plan.launches[0].grid[0], (257 + 7) / 8); /* a warp each */
    assert_int_equal(plan.launches[1].grid[0], 3 * 2);
    assert_int_equal(plan.launches[1].args[3].integer, 0);
    assert_int_equal(plan.launches[1].args[4].integer, -1);
    assert_int_equal(plan.launches[1].args[8].integer, 72);
}

/* ---- the model ---- */

static kkt_prediction predict(const kkt_variant *variant, const char *problem_text,
                              const char *config_text) {
    const kkt_arch *arch = kkt_arch_find("sm90");
    const kkt_values problem = problem_of(problem_text), config = config_of(variant, config_text);
    kkt_footprint fp;
    kkt_prediction out;
    variant->footprint(&problem, &config, arch, &fp);
    kkt_predict(&fp, arch, kkt_device_first(arch), NULL, &out);
    return out;
}

/* Tiles of 128 x 128 by 128 threads: sums take 128 registers, each operand bk. */
static void tiles_in_registers_spill(void **state) {
    (void)state;
    const kkt_variant *fragment = kkt_kernel_variant(family(), KKT_STYLE_FRAGMENT);
    kkt_prediction p = predict(fragment, "", "bk=128");
    assert_float_equal(p.table_registers, 128 + 128 + 128, 1e-9);
    assert_true(p.spills);
    p = predict(fragment, "", "bk=128,a_place=shared,b_place=shared");
    assert_float_equal(p.table_registers, 128, 1e-9);
    assert_false(p.spills);
    assert_int_equal(p.smem_bytes, 2 * (128 * 128 * 2));
    p = predict(fragment, "", "bk=32,a_place=shared");
    assert_float_equal(p.table_registers, 128 + 32, 1e-9);
    assert_int_equal(p.smem_bytes, 128 * 32 * 2);
}

/* A ring of two stages takes the longer of copy and products a step, so never less than half of one
 * that has a single stage; deeper ones end at the products. */
static void stages_bring_what_overlap_can(void **state) {
    (void)state;
    const kkt_variant *pipelined = kkt_kernel_variant(family(), KKT_STYLE_PIPELINED);
    const char *const at[] = {"bm=128,bn=256,bk=64,warps_n=4,store=direct,stages=1",
                              "bm=128,bn=256,bk=64,warps_n=4,store=direct,stages=2",
                              "bm=128,bn=256,bk=64,warps_n=4,store=direct,stages=3",
                              "bm=128,bn=256,bk=64,warps_n=4,store=direct,stages=4"};
    double us[4];
    for (int i = 0; i < 4; i++)
        us[i] = predict(pipelined, "", at[i]).predicted_us;
    assert_true(us[1] < us[0] && us[1] > us[0] / 2);
    assert_true(us[2] < us[1] && us[3] > us[2] * 0.98 && us[3] <= us[2]);
    assert_int_equal(predict(pipelined, "", at[0]).limiter, KKT_LIMIT_LATENCY);
    assert_int_equal(predict(pipelined, "", at[3]).limiter, KKT_LIMIT_TENSOR);
}

/* ---- claims ---- */

/* Whether a side of a comparison can be launched in a style: parsed part by part, as ablations do.
 */
static bool launches(const kkt_variant *variant, const char *patch) {
    const kkt_arch *arch = kkt_arch_find("sm90");
    const kkt_values problem = problem_of("");
    kkt_values config = config_of(variant, "");
    kkt_footprint fp;
    kkt_prediction p;
    char reason[200], part[256];
    while (patch) {
        const size_t length = strcspn(patch, ";");
        assert_true(length < sizeof part);
        memcpy(part, patch, length);
        part[length] = '\0';
        if (kkt_params_parse(&variant->params, part, &config, NULL, NULL) != KKT_OK)
            return false;
        patch = patch[length] ? patch + length + 1 : NULL;
    }
    if (!variant->applicable(&problem, &config, arch, reason, sizeof reason))
        fail_msg("%s", reason);
    variant->footprint(&problem, &config, arch, &fp);
    kkt_predict(&fp, arch, kkt_device_first(arch), NULL, &p);
    return p.infeasible == KKT_FEASIBLE;
}

static void claims_compare_what_one_style_has(void **state) {
    (void)state;
    const kkt_kernel *kernel = family();
    for (size_t c = 0; c < kernel->claim_count; c++)
        for (size_t i = 0; i < kernel->claims[c].count; i++) {
            const kkt_comparison *x = &kernel->claims[c].comparisons[i];
            int styles = 0;
            for (size_t v = 0; v < kernel->variant_count; v++)
                styles += kernel->variants[v]->source && launches(kernel->variants[v], x->from) &&
                          launches(kernel->variants[v], x->to);
            if (styles != 1)
                fail_msg("claim %s: %s -> %s is had by %d styles", kernel->claims[c].name, x->from,
                         x->to, styles);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reference_is_the_definition),
        cmocka_unit_test(cases_are_what_they_say),
        cmocka_unit_test(overflow_is_right_where_the_sum_overflows),
        cmocka_unit_test(workspace_is_what_the_problem_asks_for),
        cmocka_unit_test(check_problems_keep_what_is_compiled_in),
        cmocka_unit_test(rows_that_are_no_units_are_copied_first),
        cmocka_unit_test(tiles_in_registers_spill),
        cmocka_unit_test(stages_bring_what_overlap_can),
        cmocka_unit_test(claims_compare_what_one_style_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
