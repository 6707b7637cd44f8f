/* gemv: its reference against the definition, inputs whose result is exact, constraints, launch
 * plans and footprints by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/gemv/space.h"
#include "kernels/moves.h"
#include "model/predict.h"

static const kkt_kernel *family(void) {
    const kkt_kernel *kernel = NULL;
    assert_int_equal(kkt_kernel_parse("gemv", &kernel, NULL), KKT_OK);
    return kernel;
}

static kkt_values parsed(const kkt_param_table *table, const char *text) {
    kkt_values values;
    kkt_error err = {0};
    kkt_params_defaults(table, &values);
    if (kkt_params_parse(table, text, &values, NULL, &err) != KKT_OK)
        fail_msg("%s", err.message);
    return values;
}

static kkt_values problem_of(const char *text) {
    return parsed(&family()->problem, text);
}

static kkt_values config_of(const kkt_variant *variant, const char *text) {
    return parsed(&variant->params, text);
}

static kkt_footprint footprint_of(const kkt_variant *variant, const char *problem,
                                  const char *config) {
    const kkt_values p = problem_of(problem), c = config_of(variant, config);
    kkt_footprint footprint;
    variant->footprint(&p, &c, kkt_arch_find("sm90"), &footprint);
    return footprint;
}

static kkt_plan plan_of(const kkt_variant *variant, const char *problem, const char *config) {
    const kkt_values p = problem_of(problem), c = config_of(variant, config);
    kkt_plan plan;
    variant->plan(&p, &c, kkt_arch_find("sm90"), &plan);
    return plan;
}

/* y_i by the definition; false where a value outside of the matrix's columns comes into it. */
static double defined(const kkt_values *p, const kkt_host_tensors *in, int64_t i) {
    const kkt_host_tensor *a = &in->t[KKT_GEMV_A], *x = &in->t[KKT_GEMV_X];
    double sum = 0;
    for (int64_t j = p->v[KKT_GEMV_K] - 1; j >= 0; j--) {
        const int64_t row = p->v[KKT_GEMV_LAYOUT] == KKT_GEMV_T ? j : i;
        const int64_t column = p->v[KKT_GEMV_LAYOUT] == KKT_GEMV_T ? i : j;
        sum +=
            kkt_dtype_load(a->tensor.dtype, a->data, (size_t)(row * a->tensor.dims[1] + column)) *
            kkt_dtype_load(x->tensor.dtype, x->data, (size_t)j);
    }
    return sum;
}

/* Checks every part, and hands each y_i to `look`. */
static void each_result(const char *text, int input_case, void (*look)(double y)) {
    const kkt_values p = problem_of(text);
    kkt_host_tensors in;
    kkt_error err = {0};
    char reason[200] = "";
    if (!kkt_kernel_problem_valid(family(), &p, reason, sizeof reason))
        fail_msg("%s: %s", text, reason);
    assert_int_equal(family()->make_inputs(&p, input_case, 5, &in, &err), KKT_OK);
    assert_int_equal(family()->check_inputs(&p, &in, &err), KKT_OK);
    const int64_t parts = family()->part_count(&p, NULL, &in);
    int64_t seen = 0;
    for (int64_t part = 0; part < parts; part++) {
        kkt_region region;
        double y[64];
        assert_int_equal(family()->part_regions(&p, NULL, &in, part, &region), 1);
        assert_in_range(region.columns, 1, 64);
        assert_int_equal(region.offset, seen);
        assert_int_equal(family()->reference(&p, NULL, &in, part, y, (size_t)region.columns, &err),
                         KKT_OK);
        for (int64_t i = 0; i < region.columns; i++, seen++) {
            const double right = defined(&p, &in, seen);
            if (!(fabs(y[i] - right) <= 1e-9 * (1 + fabs(right))))
                fail_msg("%s: y[%lld] is %g, by the definition %g", text, (long long)seen, y[i],
                         right);
            if (look)
                look(y[i]);
        }
    }
    assert_int_equal(seen, p.v[KKT_GEMV_M]);
    kkt_host_tensors_free(&in);
}

static const char *const layouts[] = {
    "m=19,k=37",          "m=19,k=37,lda=48",
    "m=19,k=37,layout=t", "m=19,k=37,layout=t,lda=24,dtype=bf16",
    "m=1,k=1,dtype=bf16",
};

static void the_reference_is_the_definition(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++)
        for (int input_case = 0; input_case < KKT_GEMV_CASES; input_case++)
            each_result(layouts[i], input_case, NULL);
}

/* A number that both dtypes hold exactly. */
static void small_integer(double y) {
    assert_true(y == rint(y) && fabs(y) <= 256);
}

static void exact_cases_are_exact(void **state) {
    static const char *const dtypes[] = {"dtype=fp16", "dtype=bf16"};
    (void)state;
    for (int d = 0; d < 2; d++) {
        const kkt_values problem = problem_of(dtypes[d]);
        kkt_values small;
        int input_case = 0, exact = 0;
        for (int i = 0; family()->check_problem(&problem, NULL, i, &small, &input_case); i++) {
            if (input_case == KKT_GEMV_RANDOM)
                continue;
            kkt_text text = {0};
            kkt_params_format(&family()->problem, &small, &text);
            each_result(kkt_text_get(&text), input_case, small_integer);
            kkt_text_free(&text);
            exact++;
        }
        assert_true(exact >= 3);
    }
}

/* The large terms are beyond fp16 after the third one; none goes beyond what fp32 counts in. */
static void cancelling_terms_are_large(void **state) {
    (void)state;
    const kkt_values p = problem_of("m=3,k=101");
    kkt_host_tensors in;
    assert_int_equal(family()->make_inputs(&p, KKT_GEMV_CANCEL, 1, &in, NULL), KKT_OK);
    double positive = 0;
    for (size_t j = 0; j < 100; j++) {
        const double term = kkt_dtype_load(KKT_FP16, in.t[KKT_GEMV_A].data, j) *
                            kkt_dtype_load(KKT_FP16, in.t[KKT_GEMV_X].data, j);
        assert_true(fabs(term) == 30000);
        positive += term > 0 ? term : 0;
    }
    assert_true(positive == 50 * 30000.0 && 10 * positive < 0x1p24);
    kkt_host_tensors_free(&in);
}

/* Small problems must run the binary of the problem at hand: rows begin alike. */
static void check_problems_are_aligned_alike(void **state) {
    static const char *const problems[] = {"m=4096,k=4096", "m=4097,k=4099", "m=64,k=4098,lda=4100",
                                           "m=4098,k=9,layout=t", "m=9,k=9,lda=15,layout=t"};
    (void)state;
    for (size_t n = 0; n < sizeof problems / sizeof problems[0]; n++) {
        const kkt_values problem = problem_of(problems[n]);
        const kkt_values config = config_of(&kkt_gemv_fragment, "");
        kkt_values small;
        kkt_text here = {0}, there = {0};
        int input_case, count = 0;
        kkt_gemv_defines(&problem, &config, NULL, &here);
        for (; family()->check_problem(&problem, &config, count, &small, &input_case); count++) {
            char reason[200] = "";
            if (!kkt_kernel_problem_valid(family(), &small, reason, sizeof reason))
                fail_msg("%s", reason);
            assert_int_equal(kkt_gemv_lda(&small) % 8, kkt_gemv_lda(&problem) % 8);
            there.length = 0;
            kkt_gemv_defines(&small, &config, NULL, &there);
            assert_string_equal(kkt_text_get(&here), kkt_text_get(&there));
        }
        assert_true(count >= 5);
        kkt_text_free(&here);
        kkt_text_free(&there);
    }
}

static void says_why_a_configuration_is_refused(void **state) {
    static const struct {
        const char *problem, *config, *part;
    } rows[] = {
        {"", "row_threads=256,threads=128", "row_threads 256 is above threads 128"},
        {"", "row_threads=32,threads=128,rows_per_block=2", "2 rows leave some of 128 threads"},
        {"", "rows_per_block=16", "16 rows of a thread at once"},
        {"", "rows_per_block=4,unroll=8", "32 loads of a thread"},
        {"layout=t", "", "layout t: a thread has 2 rows, but vec is 8"},
        {"layout=t", "rows_per_block=8", "layout t: 8 columns of a block are less"},
        {"layout=t,m=4098", "rows_per_block=128,row_threads=8,threads=128",
         "layout t: vec 8 does not divide lda 4098"},
        {"", "reduce=step", "reduce=step is for rows of 2 to 32 threads"},
        {"", "rows_per_block=4,row_threads=512,threads=512,min_blocks=8", "min_blocks 8 of 512"},
    };
    (void)state;
    const kkt_arch *arch = kkt_arch_find("sm90");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const kkt_values p = problem_of(rows[i].problem);
        const kkt_values c = config_of(&kkt_gemv_fragment, rows[i].config);
        char reason[200] = "";
        assert_false(kkt_gemv_fragment.applicable(&p, &c, arch, reason, sizeof reason));
        if (!strstr(reason, rows[i].part))
            fail_msg("'%s' instead of '%s'", reason, rows[i].part);
    }
    const kkt_values p = problem_of("k=100"), c = config_of(&kkt_gemv_materialized, "split_k=64");
    char reason[200] = "";
    assert_false(kkt_gemv_materialized.applicable(&p, &c, arch, reason, sizeof reason));
    assert_non_null(strstr(reason, "split_k 64 leaves some of its blocks nothing of k = 100"));
    const kkt_values d = config_of(&kkt_gemv_fragment, "");
    assert_true(kkt_gemv_fragment.applicable(&p, &d, arch, reason, sizeof reason));
    assert_false(
        kkt_gemv_fragment.applicable(&p, &d, kkt_arch_find("sm75"), reason, sizeof reason));
    assert_non_null(strstr(reason, "sm75 does not convert pairs"));
    /* An SM of sm90 takes four blocks of 512 threads, one of sm89 three. */
    const kkt_values four =
        config_of(&kkt_gemv_fragment, "row_threads=512,threads=512,min_blocks=4");
    assert_true(kkt_gemv_fragment.applicable(&p, &four, arch, reason, sizeof reason));
    assert_false(
        kkt_gemv_fragment.applicable(&p, &four, kkt_arch_find("sm89"), reason, sizeof reason));
    assert_non_null(strstr(reason, "an SM of sm89 takes, 1536"));
}

static void problems_that_cannot_be_are_refused(void **state) {
    (void)state;
    char reason[200] = "";
    kkt_values p = problem_of("k=100,lda=99");
    assert_false(kkt_kernel_problem_valid(family(), &p, reason, sizeof reason));
    assert_string_equal(reason,
                        "lda 99 is below the 100 elements of a stored row; 0 is no padding");
    p = problem_of("m=268435456,k=268435456");
    assert_false(kkt_kernel_problem_valid(family(), &p, reason, sizeof reason));
    p = problem_of("m=100,k=200,lda=100,layout=t");
    assert_true(kkt_kernel_problem_valid(family(), &p, reason, sizeof reason));
}

/* Rows of 4099 elements begin at one of 8 places of a vector; blocks have rows 8 apart, and all of
 * them together have every row. Rows of 4100 begin at one of 2. */
/* The lda of rows without padding is the 0 that stands for it. */
static void no_padding_is_one_problem(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t lda;
    } cases[] = {
        {"", 0},
        {"m=96,k=64,lda=64", 0},
        {"m=96,k=64,lda=72", 72},
        {"m=96,k=64,lda=96", 96}, /* the other layout's */
        {"m=96,k=64,lda=96,layout=t", 0},
        {"lda=5", 5}, /* impossible, and left as it is */
    };
    kkt_values problem;
    kkt_error err;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(kkt_kernel_problem_parse(family(), cases[i].text, &problem, &err), KKT_OK);
        assert_int_equal(problem.v[KKT_GEMV_LDA], cases[i].lda);
    }
    assert_int_equal(kkt_kernel_problem_parse(family(), NULL, &problem, &err), KKT_OK);
    assert_int_equal(kkt_kernel_problem_parse(family(), "lda=x", &problem, &err), KKT_ERR_INPUT);
}

static void blocks_cover_the_rows(void **state) {
    static const struct {
        const char *problem, *config;
        int64_t blocks;
    } rows[] = {
        {"m=4096,k=4096", "", 2048},
        {"m=4097,k=4096", "", 2049},
        {"m=4097,k=4099", "", 2056}, /* 257 times 8 blocks of 2 */
        {"m=4097,k=4100", "", 2050},
        {"m=4097,k=4100", "vec=4", 2049},
        {"m=4096,k=99,layout=t", "rows_per_block=128,row_threads=8", 32},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const kkt_plan plan = plan_of(&kkt_gemv_fragment, rows[i].problem, rows[i].config);
        assert_int_equal(plan.launch_count, 1);
        assert_int_equal(plan.launches[0].grid[0], rows[i].blocks);
        assert_int_equal(plan.launches[0].block[0], 128);
        assert_int_equal(plan.launches[0].args[5].integer,
                         problem_of(rows[i].problem)
                             .v[strstr(rows[i].problem, "layout") ? KKT_GEMV_M : KKT_GEMV_K]);
    }
}

static void stretches_cover_k(void **state) {
    (void)state;
    const kkt_plan plan =
        plan_of(&kkt_gemv_materialized, "m=1000,k=4099", "split_k=8,rows_per_block=1");
    assert_int_equal(plan.launch_count, 2);
    const kkt_launch *parts = &plan.launches[0], *sum = &plan.launches[1];
    const int64_t span = parts->args[parts->arg_count - 1].integer;
    assert_int_equal(parts->grid[1], 8);
    assert_int_equal(span % 8, 0);
    assert_true(8 * span >= 4099 && 7 * span < 4099);
    assert_int_equal(parts->args[2].tensor, KKT_GEMV_PARTIALS);
    assert_int_equal(sum->args[0].tensor, KKT_GEMV_PARTIALS);
    assert_int_equal(sum->args[1].tensor, KKT_GEMV_Y);
    assert_true(sum->grid[0] * sum->block[0] >= 1000);

    kkt_tensor tensors[KKT_TENSORS_MAX];
    const kkt_values p = problem_of("m=1000,k=4099");
    const kkt_values split = config_of(&kkt_gemv_materialized, "split_k=8");
    const kkt_values whole = config_of(&kkt_gemv_fragment, "");
    assert_int_equal(family()->tensors(&p, &whole, tensors), 3);
    assert_int_equal(family()->tensors(&p, &split, tensors), 4);
    assert_int_equal(tensors[3].role, KKT_TENSOR_WORKSPACE);
    assert_int_equal(kkt_tensor_bytes(&tensors[3]), 4 * 8 * 1000);
}

static void bytes_by_hand(void **state) {
    (void)state;
    const kkt_footprint one = footprint_of(&kkt_gemv_fragment, "m=1000,k=4099", "");
    assert_true(one.hbm_read_bytes == 2 * (1000 * 4099 + 4099));
    assert_true(one.hbm_write_bytes == 2 * 1000);
    const kkt_footprint split = footprint_of(&kkt_gemv_materialized, "m=1000,k=4099", "split_k=8");
    assert_true(split.hbm_read_bytes == one.hbm_read_bytes + 4 * 8 * 1000);
    assert_true(split.hbm_write_bytes == 2 * 1000 + 4 * 8 * 1000);
    /* 4 warps of 2 rows each; x; layout t: 16 threads share each of 64 columns. */
    assert_int_equal(kkt_footprint_smem_bytes(&one), 4 * 2 * 4);
    const kkt_footprint shared = footprint_of(&kkt_gemv_fragment, "m=1000,k=4099", "x=shared");
    assert_int_equal(kkt_footprint_smem_bytes(&shared), 4 * 2 * 4 + 8208);
    const kkt_footprint columns = footprint_of(&kkt_gemv_fragment, "m=1000,k=4099,layout=t",
                                               "row_threads=32,threads=256,rows_per_block=64");
    assert_int_equal(kkt_footprint_smem_bytes(&columns), 32 * 64 * 4);
}

/* A wide one is held up by memory; a thread a row of single elements waits for each. */
static void the_limiter_is_memory(void **state) {
    (void)state;
    const kkt_arch *arch = kkt_arch_find("sm90");
    const kkt_device *device = kkt_device_first(arch);
    kkt_prediction wide, naive;
    kkt_footprint fp = footprint_of(&kkt_gemv_fragment, "m=16384,k=16384", "");
    kkt_predict(&fp, arch, device, NULL, &wide);
    assert_string_equal(kkt_limiter_name(wide.limiter), "hbm");
    fp = footprint_of(&kkt_gemv_fragment, "m=16384,k=16384",
                      "rows_per_block=128,row_threads=1,vec=1,unroll=1,keep=cached");
    kkt_predict(&fp, arch, device, NULL, &naive);
    assert_string_equal(kkt_limiter_name(naive.limiter), "latency");
    assert_true(naive.predicted_us > 2 * wide.predicted_us);
}

/* Every comparison can be made in one of the styles, on the default problem. */
static void claims_can_be_decided(void **state) {
    (void)state;
    const kkt_arch *arch = kkt_arch_find("sm90");
    const kkt_values p = problem_of("");
    bool made[KKT_GEMV_CLAIM_COUNT][8] = {{false}};
    for (size_t v = 0; v < family()->variant_count; v++) {
        const kkt_variant *variant = family()->variants[v];
        if (!variant->source)
            continue; /* a library's */
        const kkt_values base =
            config_of(variant, "rows_per_block=1,row_threads=256,threads=256,unroll=4");
        kkt_arena *arena = kkt_arena_open();
        kkt_move_set set;
        assert_int_equal(kkt_moves_make(family(), variant, &p, &base, arch, kkt_device_first(arch),
                                        arena, &set, NULL),
                         KKT_OK);
        for (size_t i = 0; i < set.move_count; i++) {
            const kkt_move *move = &set.moves[i];
            if (!move->claim)
                continue;
            const char *from = set.points[move->from].reason, *to = set.points[move->to].reason;
            if (from || to)
                fail_msg("%s %s: %s", move->claim->name, move->label, from ? from : to);
            assert_true(move->from != move->to);
            made[move->claim - kkt_gemv_claims][move->comparison - move->claim->comparisons] = true;
        }
        kkt_arena_close(arena);
    }
    for (size_t i = 0; i < KKT_GEMV_CLAIM_COUNT; i++)
        for (size_t c = 0; c < kkt_gemv_claims[i].count; c++)
            if (!made[i][c])
                fail_msg("%s cannot be decided", kkt_gemv_claims[i].name);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_reference_is_the_definition),
        cmocka_unit_test(exact_cases_are_exact),
        cmocka_unit_test(cancelling_terms_are_large),
        cmocka_unit_test(check_problems_are_aligned_alike),
        cmocka_unit_test(says_why_a_configuration_is_refused),
        cmocka_unit_test(problems_that_cannot_be_are_refused),
        cmocka_unit_test(no_padding_is_one_problem),
        cmocka_unit_test(blocks_cover_the_rows),
        cmocka_unit_test(stretches_cover_k),
        cmocka_unit_test(bytes_by_hand),
        cmocka_unit_test(the_limiter_is_memory),
        cmocka_unit_test(claims_can_be_decided),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
