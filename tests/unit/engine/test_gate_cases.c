/* What the gate's cases are worth: on each of them, at any head count, a path that does no more
 * than round passes, and a result with an error in it does not. Behind a steep gate little is left
 * of a result; that must neither fail the one nor let the other through. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../kernels/emulate_runner.h"

static const struct {
    int heads_k, heads_v;
} head_counts[] = {{1, 1}, {32, 32}, {16, 48}, {16, 64}};

enum { HEAD_COUNTS = sizeof head_counts / sizeof head_counts[0] };

static void setup(int heads, const char *dtype, int chunk, kkt_values *problem,
                  kkt_values *config) {
    char text[100];
    snprintf(text, sizeof text, "heads_k=%d,heads_v=%d,dk=64,dtype=%s,gated=1",
             head_counts[heads].heads_k, head_counts[heads].heads_v, dtype);
    kkt_params_defaults(&kkt_solve_problem_table, problem);
    kkt_params_defaults(&kkt_solve_param_table, config);
    assert_int_equal(kkt_params_parse(&kkt_solve_problem_table, text, problem, NULL, NULL), KKT_OK);
    snprintf(text, sizeof text, "chunk=%d,couple=fp16,inverse=recursive", chunk);
    assert_int_equal(kkt_params_parse(&kkt_solve_param_table, text, config, NULL, NULL), KKT_OK);
}

/* The draw decides how much is left; several seeds. */
static void fp16_couplings_pass(void **state) {
    (void)state;
    const kkt_kernel *kernel = &kkt_kernel_kkt_solve;
    double most = 0.0;
    for (int heads = 0; heads < HEAD_COUNTS; heads++)
        for (uint64_t seed = 1; seed <= 3; seed++) {
            emulate e = {
                .inverse = KKT_INVERSE_RECURSIVE, .base = 16, .single = true, .half = true};
            kkt_values problem, config;
            kkt_verdict verdict;
            setup(heads, seed % 2 ? "bf16" : "fp16", 32, &problem, &config);
            assert_int_equal(kkt_gate_check(kernel, kernel->variants[0], &problem, &config, seed,
                                            emulate_run, &e, NULL, &verdict, NULL),
                             KKT_OK);
            if (verdict.outcome != KKT_OUTCOME_OK)
                fail_msg("%d of %d heads, seed %d: %s", head_counts[heads].heads_k,
                         head_counts[heads].heads_v, (int)seed, verdict.reason);
            most = fmax(most, verdict.rel_fro / verdict.tolerance);
        }
    print_message("fp16 couplings take %.2f of the tolerance at most\n", most);
    assert_true(most > 0.3 && most < 0.8);
}

/* ---- errors ---- */

typedef enum mutation {
    UNTOUCHED,
    WRONG_SIGN,    /* of what is below the diagonal */
    NOTHING_BELOW, /* the identity */
    NO_GATE,
    ZEROED_BLOCK,     /* rows and columns 0 to 7 of every chunk, below the diagonal */
    TRANSPOSED_BLOCK, /* the first eight rows, about the other diagonal */
    NAN_ELEMENT,
    STRAY_ELEMENT, /* 1e-6 in the last row's first column */
    MUTATIONS
} mutation;

/* Whether a case shows it: there is nothing below the diagonal, or no decay, in some. */
static bool shows(int input_case, mutation m) {
    const bool gate = input_case == KKT_CASE_RANDOM || input_case == KKT_CASE_UNEVEN ||
                      input_case == KKT_CASE_STRONG_GATE || input_case == KKT_CASE_STEEP_GATE;
    if (input_case == KKT_CASE_ZERO_BETA)
        return m == NAN_ELEMENT || m == STRAY_ELEMENT;
    if (m == STRAY_ELEMENT)
        return false;
    if (input_case == KKT_CASE_SUB_DIAGONAL) /* the diagonal blocks are empty */
        return m != NO_GATE && m != ZEROED_BLOCK && m != TRANSPOSED_BLOCK;
    if (input_case == KKT_CASE_DUPLICATES && m == TRANSPOSED_BLOCK)
        return false; /* equal along each diagonal, so that there is nothing to see */
    return m != NO_GATE || gate;
}

typedef struct check_problem {
    kkt_values problem, config;
    int input_case;
    kkt_host_tensors tensors;
    double *right, *ungated; /* all parts, one after the other */
} check_problem;

static int64_t part_rows(const check_problem *p, kkt_host_tensors *inputs, int64_t part) {
    kkt_chunk_part at;
    return kkt_solve_part_at(&p->problem, p->config.v[KKT_SOLVE_CHUNK], inputs, part, &at) ? at.rows
                                                                                           : 0;
}

static double *references(check_problem *p, kkt_host_tensors *inputs) {
    const int64_t chunk = p->config.v[KKT_SOLVE_CHUNK];
    const int64_t parts = kkt_kernel_kkt_solve.part_count(&p->problem, &p->config, inputs);
    double *all = calloc((size_t)(parts * chunk * chunk), sizeof *all), *at = all;
    for (int64_t part = 0; part < parts; part++, at += chunk * chunk)
        assert_int_equal(kkt_kernel_kkt_solve.reference(&p->problem, &p->config, inputs, part, at,
                                                        (size_t)(chunk * chunk), NULL),
                         KKT_OK);
    return all;
}

static bool open_check(int heads, int index, check_problem *p) {
    kkt_values full;
    kkt_error err = {0};
    setup(heads, "bf16", 32, &full, &p->config);
    if (!kkt_solve_check_problem(&full, &p->config, index, &p->problem, &p->input_case))
        return false;
    assert_int_equal(
        kkt_solve_make_inputs(&p->problem, p->input_case, 1 + (uint64_t)index, &p->tensors, &err),
        KKT_OK);
    p->right = references(p, &p->tensors);
    kkt_host_tensor *g = &p->tensors.t[KKT_SOLVE_TENSOR_G];
    const size_t bytes = (size_t)kkt_tensor_bytes(&g->tensor);
    void *kept = g->data;
    g->data = calloc(1, bytes);
    p->ungated = references(p, &p->tensors);
    free(g->data);
    g->data = kept;
    return true;
}

static void close_check(check_problem *p) {
    free(p->right);
    free(p->ungated);
    kkt_host_tensors_free(&p->tensors);
}

/* Values of a part as a kernel would write them, with the error. */
static void mutate(mutation m, const double *right, const double *ungated, int64_t rows,
                   int64_t columns, double *out) {
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            const bool below = j < i, block = below && i < 8;
            double value = right[i * columns + j];
            if (m == WRONG_SIGN && below)
                value = -value;
            if ((m == NOTHING_BELOW && below) || (m == ZEROED_BLOCK && block))
                value = 0.0;
            if (m == NO_GATE)
                value = ungated[i * columns + j];
            if (m == TRANSPOSED_BLOCK && block)
                value = right[(7 - j) * columns + 7 - i];
            if (m == NAN_ELEMENT && i == rows - 1 && j == 0)
                value = NAN;
            if (m == STRAY_ELEMENT && below && i == rows - 1 && j == 0)
                value += 1e-6;
            out[i * columns + j] = kkt_bf16_to_double(kkt_bf16_from_double(value));
        }
}

static bool passes(check_problem *p, mutation m, char *finding, size_t size) {
    const kkt_kernel *kernel = &kkt_kernel_kkt_solve;
    const int64_t chunk = p->config.v[KKT_SOLVE_CHUNK];
    const int64_t parts = kernel->part_count(&p->problem, &p->config, &p->tensors);
    double given[EMULATE_MAX * EMULATE_MAX];
    kkt_score score = {0};
    for (int64_t part = 0; part < parts; part++) {
        kkt_region region = {0};
        const double *right = p->right + part * chunk * chunk;
        assert_int_equal(kernel->part_regions(&p->problem, &p->config, &p->tensors, part, &region),
                         1);
        assert_int_equal(region.rows, part_rows(p, &p->tensors, part));
        mutate(m, right, p->ungated + part * chunk * chunk, region.rows, region.columns, given);
        kernel->score(&p->problem, &region, right, given, &score);
    }
    const double tolerance = kernel->variants[0]->tolerance(&p->problem, &p->config, p->input_case);
    return kkt_score_right(&score, tolerance, finding, size);
}

static void errors_show_on_every_case(void **state) {
    (void)state;
    int seen[KKT_CASE_COUNT] = {0}, found = 0;
    for (int heads = 0; heads < HEAD_COUNTS; heads++) {
        check_problem p = {0};
        for (int index = 0; open_check(heads, index, &p); index++) {
            char finding[160];
            for (mutation m = UNTOUCHED; m < MUTATIONS; m++) {
                if (m != UNTOUCHED && !shows(p.input_case, m))
                    continue;
                if (passes(&p, m, finding, sizeof finding) != (m == UNTOUCHED))
                    fail_msg("%d of %d heads, %s inputs, mutation %d: %s",
                             head_counts[heads].heads_k, head_counts[heads].heads_v,
                             kkt_kernel_kkt_solve.cases[p.input_case].name, m,
                             m == UNTOUCHED ? finding : "passed");
                found += m != UNTOUCHED;
            }
            seen[p.input_case]++;
            close_check(&p);
        }
    }
    assert_true(seen[KKT_CASE_STEEP_GATE] == HEAD_COUNTS && seen[KKT_CASE_ZERO_BETA] > 0);
    assert_int_equal(found, 240); /* docs/robustness.md says so */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fp16_couplings_pass),
        cmocka_unit_test(errors_show_on_every_case),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
