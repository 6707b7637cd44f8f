/* Registers and spills as the model predicts them for the Gated DeltaNet kernels, beside what
 * NVRTC 13.0 compiled for sm_90a. The error distribution is printed; docs/model.md tells it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/gdn/fused.h"
#include "model/predict.h"
#include "model/style.h"

/* A row of the file: kernel, style, registers, bytes of spill stores, what the problem has beyond
 * tokens=8192,heads_k=16,heads_v=64 ("-": nothing), configuration. */
typedef struct compiled {
    char kernel[32], style[32], problem[80], config[160];
    int registers;
    long long spilled;
} compiled;

typedef struct tally {
    int rows, within[6]; /* registers off by 0, to 4, to 8, to 16, to 32, more */
    int spills_right;
    long long missed; /* most bytes of a spill that was not predicted */
} tally;

static int near_enough(const tally *t) {
    return t->within[0] + t->within[1] + t->within[2];
}

static kkt_prediction predict(const compiled *row) {
    const kkt_arch *arch = kkt_arch_find("sm90");
    const kkt_kernel *kernel;
    kkt_values problem, config;
    kkt_footprint footprint;
    kkt_prediction prediction;
    kkt_error err = {0};
    char text[160];
    assert_int_equal(kkt_kernel_parse(row->kernel, &kernel, &err), KKT_OK);
    const kkt_variant *variant = kkt_kernel_variant(kernel, kkt_style_find(row->style)->id);
    kkt_params_defaults(&kernel->problem, &problem);
    kkt_params_defaults(&variant->params, &config);
    snprintf(text, sizeof text, "tokens=8192,heads_k=16,heads_v=64%s%s",
             strcmp(row->problem, "-") == 0 ? "" : ",",
             strcmp(row->problem, "-") == 0 ? "" : row->problem);
    if (kkt_params_parse(&kernel->problem, text, &problem, NULL, &err) != KKT_OK ||
        kkt_params_parse(&variant->params, row->config, &config, NULL, &err) != KKT_OK)
        fail_msg("%s", err.message);
    variant->footprint(&problem, &config, arch, &footprint);
    kkt_predict(&footprint, arch, kkt_device_first(arch), NULL, &prediction);
    return prediction;
}

static void count(const compiled *row, tally *t) {
    const kkt_prediction prediction = predict(row);
    const int error = abs(prediction.registers - row->registers);
    assert_int_equal(prediction.infeasible, KKT_FEASIBLE); /* it was compiled to launch */
    t->rows++;
    t->within[error == 0    ? 0
              : error <= 4  ? 1
              : error <= 8  ? 2
              : error <= 16 ? 3
              : error <= 32 ? 4
                            : 5]++;
    t->spills_right += prediction.spills == (row->spilled > 0);
    if (!prediction.spills && row->spilled > t->missed)
        t->missed = row->spilled;
}

static tally tally_of(const char *kernel, const char *style) {
    tally t = {0};
    compiled row;
    FILE *file = fopen(KKT_TEST_DATA "/golden/gdn_registers_sm90.txt", "r");
    assert_non_null(file);
    while (fscanf(file, "%31s %31s %d %lld %79s %159s", row.kernel, row.style, &row.registers,
                  &row.spilled, row.problem, row.config) == 6)
        if (strcmp(row.kernel, kernel) == 0 && strcmp(row.style, style) == 0)
            count(&row, &t);
    assert_int_equal(fclose(file), 0);
    print_message(
        "%-10s %-16s %3d variants; registers off by 0: %d, to 4: %d, to 8: %d, to 16: %d, "
        "to 32: %d, more: %d; spills right for %d, missed up to %lld bytes\n",
        kernel, style, t.rows, t.within[0], t.within[1], t.within[2], t.within[3], t.within[4],
        t.within[5], t.spills_right, t.missed);
    return t;
}

/* Roles declare their registers, so that these are exact. */
static void warp_specialized_ones_are_exact(void **state) {
    (void)state;
    const char *const kernels[] = {"gdn_fwd", "gdn_fwd_t"};
    for (int i = 0; i < 2; i++) {
        const tally t = tally_of(kernels[i], "warp_specialized");
        assert_true(t.rows >= 60);
        assert_int_equal(t.within[0], t.rows);
        assert_int_equal(t.spills_right, t.rows);
    }
}

static void tables_in_fragments_are_near(void **state) {
    (void)state;
    const char *const kernels[] = {"gdn_fwd", "gdn_fwd_t"}, *const styles[] = {"fragment",
                                                                               "pipelined"};
    int rows = 0, near = 0, right = 0;
    for (int i = 0; i < 4; i++) {
        const tally t = tally_of(kernels[i % 2], styles[i / 2]);
        rows += t.rows;
        near += near_enough(&t);
        right += t.spills_right;
        assert_true(t.missed <= 64);
    }
    assert_true(rows >= 500);
    assert_true(near * 100 >= rows * 95);
    assert_true(right * 100 >= rows * 97);
}

static void steps_through_hbm_are_near(void **state) {
    (void)state;
    const char *const kernels[] = {"gdn_wu", "gdn_state", "gdn_output"};
    for (int i = 0; i < 3; i++) {
        const tally t = tally_of(kernels[i], "materialized");
        assert_true(t.rows >= 30);
        assert_true(near_enough(&t) * 100 >= t.rows * 85);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(warp_specialized_ones_are_exact),
        cmocka_unit_test(tables_in_fragments_are_near),
        cmocka_unit_test(steps_through_hbm_are_near),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
