/* The tolerances of the Gated DeltaNet families against an emulation of what a kernel rounds: the
 * chunk formulas in double precision, with the operands of every product rounded to the dtype. What
 * rounding alone costs must pass, and no tolerance may be far above it. And W behind a gate that
 * leaves little of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/gdn/chunk.h"

enum { DK = 128, DV = 16, ROWS = KKT_GDN_ROWS, TOKENS = 512 };

static double emulate_fp16(double x) {
    return kkt_half_to_double(kkt_half_from_double(x));
}

typedef struct emulation {
    kkt_values problem, config;
    kkt_shape shape;
    kkt_host_tensors inputs;
    double k[ROWS * DK], q[ROWS * DK], v[ROWS * DV], beta[ROWS], decay[ROWS], t[ROWS * ROWS];
    double state[DK * DV], rounded_state[DK * DV], v_new[ROWS * DV];
    double o[TOKENS * DV];
} emulation;

static void round_all(const emulation *e, double *values, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        unsigned char bytes[8];
        kkt_dtype_store(e->shape.dtype, bytes, 0, values[i]);
        values[i] = kkt_dtype_load(e->shape.dtype, bytes, 0);
    }
}

static void load_chunk(emulation *e, int64_t token, int64_t rows) {
    static double gram[ROWS * ROWS], transposed[DK * ROWS];
    const kkt_chunk_part part = {.token = token, .rows = rows};
    kkt_gdn_load_rows(&e->shape, &e->inputs.t[KKT_FWD_Q], &part, 1, 0, DK, e->q);
    kkt_gdn_load_rows(&e->shape, &e->inputs.t[KKT_FWD_K], &part, 1, 0, DK, e->k);
    kkt_gdn_load_rows(&e->shape, &e->inputs.t[KKT_FWD_V], &part, 1, 0, DV, e->v);
    kkt_gdn_load_rows(&e->shape, &e->inputs.t[KKT_FWD_BETA], &part, 1, 0, 1, e->beta);
    kkt_gdn_decay(&e->shape, &e->inputs.t[KKT_FWD_G], &part, e->decay);
    kkt_gdn_gram(e->k, rows, DK, transposed, gram);
    kkt_gdn_inverse(gram, e->beta, e->decay, rows, e->t);
    round_all(e, e->t, rows * rows);
    memcpy(e->rounded_state, e->state, sizeof e->state);
    round_all(e, e->rounded_state, DK * DV);
}

static void values_from_t(emulation *e, int64_t rows) {
    static double x[ROWS * DV];
    memset(x, 0, sizeof x);
    memset(e->v_new, 0, sizeof e->v_new);
    kkt_multiply_add(e->k, DK, e->rounded_state, x, rows, DK, DV);
    for (int64_t i = 0; i < rows * DV; i++)
        x[i] = e->beta[i / DV] * (e->v[i] - exp(e->decay[i / DV]) * x[i]);
    round_all(e, x, rows * DV);
    kkt_multiply_add(e->t, rows, x, e->v_new, rows, rows, DV);
}

static void values_from_wu(emulation *e, int64_t rows) {
    static double scaled[ROWS * ROWS], w[ROWS * DK];
    memset(w, 0, sizeof w);
    memset(e->v_new, 0, sizeof e->v_new);
    for (int64_t i = 0; i < rows * rows; i++)
        scaled[i] = e->t[i] * e->beta[i % rows];
    round_all(e, scaled, rows * rows);
    kkt_multiply_add(scaled, rows, e->v, e->v_new, rows, rows, DV); /* U */
    round_all(e, e->v_new, rows * DV);
    for (int64_t i = 0; i < rows * rows; i++)
        scaled[i] = -e->t[i] * e->beta[i % rows] * exp(e->decay[i % rows]);
    round_all(e, scaled, rows * rows);
    kkt_multiply_add(scaled, rows, e->k, w, rows, rows, DK);
    round_all(e, w, rows * DK);
    kkt_multiply_add(w, DK, e->rounded_state, e->v_new, rows, DK, DV);
}

static void outputs(emulation *e, int64_t rows, double *o) {
    static double p[ROWS * ROWS], transposed[DK * ROWS], values[ROWS * DV];
    memset(p, 0, sizeof p);
    memset(o, 0, sizeof *o * (size_t)(rows * DV));
    for (int64_t i = 0; i < rows; i++)
        for (int64_t d = 0; d < DK; d++)
            transposed[d * ROWS + i] = e->k[i * DK + d];
    kkt_multiply_add(e->q, DK, transposed, p, rows, DK, ROWS);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < ROWS; j++)
            p[i * ROWS + j] = j <= i ? p[i * ROWS + j] * exp(e->decay[i] - e->decay[j]) : 0.0;
    round_all(e, p, rows * ROWS);
    memcpy(values, e->v_new, sizeof values);
    round_all(e, values, rows * DV);
    kkt_multiply_add(e->q, DK, e->rounded_state, o, rows, DK, DV);
    for (int64_t i = 0; i < rows * DV; i++)
        o[i] *= exp(e->decay[i / DV]);
    kkt_multiply_add(p, ROWS, values, o, rows, rows, DV);
    for (int64_t i = 0; i < rows * DV; i++)
        o[i] /= sqrt(DK);
    round_all(e, o, rows * DV);
}

static void update(emulation *e, int64_t rows) {
    static double transposed[DK * ROWS], decayed[ROWS * DV];
    for (int64_t i = 0; i < rows * DV; i++)
        decayed[i] = exp(e->decay[rows - 1] - e->decay[i / DV]) * e->v_new[i];
    round_all(e, decayed, rows * DV);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t d = 0; d < DK; d++)
            transposed[d * rows + i] = e->k[i * DK + d];
    for (int64_t i = 0; i < DK * DV; i++)
        e->state[i] *= exp(e->decay[rows - 1]);
    kkt_multiply_add(transposed, rows, decayed, e->state, DK, rows, DV);
}

static double distance(const double *given, const double *right, int64_t count) {
    double error = 0.0, size = 0.0;
    for (int64_t i = 0; i < count; i++) {
        error += (given[i] - right[i]) * (given[i] - right[i]);
        size += right[i] * right[i];
    }
    return sqrt(error / size);
}

/* The larger of the relative errors of o and ht. `with_wu`: V' = U - W S, W and U rounded; else
 * V' = T diag(beta) (V - e^G K S). */
static double emulated_error(const kkt_kernel *kernel, bool fp16, int64_t chunk, int input_case,
                             bool with_wu) {
    emulation *e = calloc(1, sizeof *e);
    char text[100];
    snprintf(text, sizeof text, "tokens=%d,heads_k=1,heads_v=1,dk=%d,dv=%d,dtype=%s", TOKENS, DK,
             DV, fp16 ? "fp16" : "bf16");
    kkt_params_defaults(&kernel->problem, &e->problem);
    assert_int_equal(kkt_params_parse(&kernel->problem, text, &e->problem, NULL, NULL), KKT_OK);
    assert_int_equal(kernel->make_inputs(&e->problem, input_case, 3, &e->inputs, NULL), KKT_OK);
    e->shape = kkt_gdn_shape(&e->problem);
    const float *h0 = e->inputs.t[KKT_FWD_H0].data;
    for (int i = 0; h0 && i < DK * DV; i++)
        e->state[i] = (double)h0[i];
    for (int64_t token = 0; token < TOKENS; token += chunk) {
        load_chunk(e, token, chunk);
        if (with_wu)
            values_from_wu(e, chunk);
        else
            values_from_t(e, chunk);
        outputs(e, chunk, e->o + token * DV);
        update(e, chunk);
    }
    static double right[(TOKENS + DK) * DV];
    assert_int_equal(kernel->reference(&e->problem, &e->config, &e->inputs, 0, right,
                                       sizeof right / sizeof right[0], NULL),
                     KKT_OK);
    const double error =
        fmax(distance(e->o, right, TOKENS * DV), distance(e->state, right + TOKENS * DV, DK * DV));
    kkt_host_tensors_free(&e->inputs);
    free(e);
    return error;
}

static void rounding_passes_with_little_to_spare(void **state) {
    (void)state;
    static const struct {
        int64_t chunk;
        int cases[3];
    } classes[] = {
        {32, {KKT_CASE_RANDOM, KKT_CASE_ZERO_GATE, KKT_CASE_STRONG_GATE}},
        {64, {KKT_CASE_CORRELATED, KKT_CASE_DUPLICATES, KKT_CASE_GROWTH}},
        {128, {KKT_CASE_CORRELATED, KKT_CASE_DUPLICATES, KKT_CASE_GROWTH}},
    };
    const kkt_kernel *kernel = NULL;
    assert_int_equal(kkt_kernel_parse("gdn_fwd", &kernel, NULL), KKT_OK);
    for (int fp16 = 0; fp16 < 2; fp16++)
        for (size_t c = 0; c < sizeof classes / sizeof classes[0]; c++) {
            double worst = 0.0, tolerance = 0.0;
            for (int i = 0; i < 3; i++) {
                kkt_values problem, config = {{classes[c].chunk}};
                kkt_params_defaults(&kernel->problem, &problem);
                problem.v[KKT_GDN_DTYPE] = fp16 ? KKT_FP16 : KKT_BF16;
                tolerance = kkt_gdn_tolerance(&problem, &config, classes[c].cases[i]);
                for (int with_wu = 0; with_wu < 2; with_wu++)
                    worst = fmax(worst, emulated_error(kernel, fp16, classes[c].chunk,
                                                       classes[c].cases[i], with_wu));
            }
            print_message("%s, chunk %d: error %.1e, tolerance %.1e\n", fp16 ? "fp16" : "bf16",
                          (int)classes[c].chunk, worst, tolerance);
            assert_true(worst < 0.8 * tolerance);
            assert_true(worst > 0.3 * tolerance);
        }
}

/* ---- w behind a steep gate ---- */

typedef struct w_check {
    kkt_values problem, config;
    kkt_host_tensors made, inputs;
    kkt_shape shape;
    kkt_score right, zeroed; /* of w rounded as a kernel does, and of zeros in its place */
    double largest;          /* element of w */
} w_check;

static void open_w(const kkt_kernel *kernel, uint64_t seed, w_check *c) {
    kkt_tensor list[KKT_TENSORS_MAX];
    memset(c, 0, sizeof *c);
    kkt_params_defaults(&kernel->problem, &c->problem);
    kkt_params_defaults(&kernel->variants[0]->params, &c->config);
    assert_int_equal(
        kkt_params_parse(&kernel->problem,
                         "batch=2,tokens=86,heads_k=1,heads_v=1,dk=96,dv=64,dtype=fp16",
                         &c->problem, NULL, NULL),
        KKT_OK);
    c->config.v[KKT_GDN_CHUNK] = 32;
    assert_int_equal(kernel->make_inputs(&c->problem, KKT_CASE_STEEP_GATE, seed, &c->made, NULL),
                     KKT_OK);
    c->inputs.count = kernel->tensors(&c->problem, &c->config, list);
    for (int i = 0; i < c->inputs.count; i++) {
        kkt_host_tensor *from = kkt_host_tensor_find(&c->made, list[i].name);
        c->inputs.t[i].tensor = list[i];
        if (from && list[i].role == KKT_TENSOR_INPUT) {
            c->inputs.t[i].data = from->data;
            from->data = NULL;
        }
    }
    assert_int_equal(kernel->make_chunk_inputs(&c->problem, &c->config, KKT_CASE_STEEP_GATE, seed,
                                               &c->inputs, NULL),
                     KKT_OK);
    c->shape = kkt_gdn_shape(&c->problem);
}

/* T diag(beta e^G), an operand, and W are rounded to fp16. */
static void w_as_rounded(w_check *c, const kkt_chunk_part *at, double *w) {
    static double t[ROWS * ROWS], k[ROWS * ROWS];
    double beta[ROWS], decay[ROWS];
    const int64_t chunk = c->config.v[KKT_GDN_CHUNK], dk = c->shape.dk;
    kkt_gdn_load_rows(&c->shape, &c->inputs.t[KKT_WU_T], at, 1, 0, chunk, t);
    kkt_gdn_load_rows(&c->shape, &c->inputs.t[KKT_WU_K], at, 1, 0, dk, k);
    kkt_gdn_load_rows(&c->shape, &c->inputs.t[KKT_WU_BETA], at, 1, 0, 1, beta);
    kkt_gdn_decay(&c->shape, &c->inputs.t[KKT_WU_G], at, decay);
    for (int64_t i = 0; i < at->rows * chunk; i++)
        t[i] = emulate_fp16(i % chunk < at->rows ? t[i] * beta[i % chunk] * exp(decay[i % chunk])
                                                 : 0.0);
    memset(w, 0, sizeof *w * (size_t)(at->rows * dk));
    kkt_multiply_add(t, chunk, k, w, at->rows, at->rows, dk);
    for (int64_t i = 0; i < at->rows * dk; i++)
        w[i] = emulate_fp16(w[i]);
}

static void score_w(const kkt_kernel *kernel, w_check *c) {
    static double right[ROWS * 2 * DK], given[ROWS * DK], zeros[ROWS * DK];
    const int64_t parts = kernel->part_count(&c->problem, &c->config, &c->inputs);
    for (int64_t part = 0; part < parts; part++) {
        kkt_region regions[KKT_REGIONS_MAX];
        kkt_chunk_part at;
        assert_int_equal(kernel->part_regions(&c->problem, &c->config, &c->inputs, part, regions),
                         2);
        assert_true(kkt_chunk_at(&c->shape, c->config.v[KKT_GDN_CHUNK], &c->inputs, part, &at));
        assert_int_equal(kernel->reference(&c->problem, &c->config, &c->inputs, part, right,
                                           sizeof right / sizeof right[0], NULL),
                         KKT_OK);
        w_as_rounded(c, &at, given);
        kernel->score(&c->problem, &regions[0], right, given, &c->right);
        kernel->score(&c->problem, &regions[0], right, zeros, &c->zeroed);
    }
    c->largest = c->right.growth;
}

/* All of W may be subnormal: what fp16 keeps of it passes. Zeros in its place do not, down to
 * elements of a few times fp16's smallest number. */
static void small_w_is_judged_by_what_fp16_has(void **state) {
    (void)state;
    const kkt_kernel *kernel = NULL;
    assert_int_equal(kkt_kernel_parse("gdn_wu", &kernel, NULL), KKT_OK);
    int subnormal = 0, found = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        w_check c;
        open_w(kernel, seed, &c);
        score_w(kernel, &c);
        const double tolerance =
            kernel->variants[0]->tolerance(&c.problem, &c.config, KKT_CASE_STEEP_GATE);
        const double error = sqrt(c.right.error_sq[KKT_WU_W] / c.right.reference_sq[KKT_WU_W]);
        const double zeroed = sqrt(c.zeroed.error_sq[KKT_WU_W] / c.zeroed.reference_sq[KKT_WU_W]);
        assert_true(c.right.not_finite == 0 && c.right.inexact == 0);
        if (!(error < 0.8 * tolerance))
            fail_msg("seed %d: error %.2e", (int)seed, error);
        if (c.largest > 4e-7) {
            assert_true(zeroed > tolerance);
            found++;
            subnormal += c.largest < 0x1p-14;
        }
        kkt_host_tensors_free(&c.made);
        kkt_host_tensors_free(&c.inputs);
    }
    assert_true(subnormal > 0 && found > 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounding_passes_with_little_to_spare),
        cmocka_unit_test(small_w_is_judged_by_what_fp16_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
