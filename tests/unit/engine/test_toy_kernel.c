/* docs/adding-a-kernel.md cannot rot: its example is built, enumerated, predicted, run and checked
 * here, and every block of code the page shows is in the example's files. The device code itself
 * runs, one thread after the other, with CUDA's few words given a meaning for the CPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../kernels/toy_kernel/row_sum.c" // NOLINT(bugprone-suspicious-include)

#include "base/file.h"
#include "tuner/engine/gate.h"
#include "tuner/engine/space.h"

/* What the compiler would be told of a configuration, as variables. */
static long long device_threads, device_rows;
static struct { unsigned x; } blockIdx, threadIdx;

#define __global__ static
#define __launch_bounds__(threads)
#define ROW_SUM_THREADS device_threads
#define ROW_SUM_ROWS device_rows
#include "../kernels/toy_kernel/row_sum.cu"

typedef struct runner {
    const kkt_values *config;
    uint32_t blocks_left_out; /* a fault: a grid that is too small */
} runner;

static kkt_outcome run_plan(void *context, const kkt_values *problem, kkt_host_tensors *tensors_,
                            char *reason, size_t size) {
    (void)reason;
    (void)size;
    const runner *r = context;
    kkt_plan launches;
    variants[0]->plan(problem, r->config, NULL, &launches);
    const kkt_launch *launch = &launches.launches[0];
    device_threads = r->config->v[THREADS];
    device_rows = r->config->v[ROWS_PER_THREAD];
    assert_int_equal(launch->block[0], device_threads);
    for (uint32_t b = 0; b + r->blocks_left_out < launch->grid[0]; b++) {
        for (uint32_t t = 0; t < launch->block[0]; t++) {
            blockIdx.x = b;
            threadIdx.x = t;
            row_sum(tensors_->t[launch->args[0].tensor].data,
                    tensors_->t[launch->args[1].tensor].data, launch->args[2].integer,
                    launch->args[3].integer);
        }
    }
    return KKT_OUTCOME_OK;
}

static kkt_verdict judge(const kkt_values *config, uint32_t blocks_left_out) {
    kkt_values problem;
    kkt_verdict verdict;
    kkt_error err = {0};
    runner r = {config, blocks_left_out};
    kkt_params_defaults(&kkt_kernel_row_sum.problem, &problem);
    if (kkt_gate_check(&kkt_kernel_row_sum, variants[0], &problem, config, 3, run_plan, &r, NULL,
                       &verdict, &err) != KKT_OK)
        fail_msg("%s", err.message);
    return verdict;
}

static void every_configuration_passes(void **state) {
    (void)state;
    kkt_values problem;
    kkt_space *space = NULL;
    kkt_point point;
    const kkt_arch *arch = kkt_arch_find("sm90");
    int points = 0;
    kkt_params_defaults(&kkt_kernel_row_sum.problem, &problem);
    assert_int_equal(kkt_space_open(&kkt_kernel_row_sum, variants[0], &problem, arch,
                                    kkt_device_first(arch), NULL, &space, NULL),
                     KKT_OK);
    for (; kkt_space_next(space, NULL, NULL, &point); points++) {
        const kkt_verdict verdict = judge(&point.config, 0);
        if (verdict.outcome != KKT_OUTCOME_OK)
            fail_msg("%s", verdict.reason);
        assert_int_equal(point.prediction.infeasible, KKT_FEASIBLE);
        assert_true(point.prediction.lower_bound_us > 0.0);
        assert_true(point.prediction.hbm_bytes == 4.0 * 65536 * 1025);
    }
    assert_int_equal(points, 9);
    kkt_space_close(space);
}

static void a_wrong_one_does_not(void **state) {
    (void)state;
    kkt_values config;
    kkt_params_defaults(&variants[0]->params, &config);
    const kkt_verdict verdict = judge(&config, 1);
    assert_int_equal(verdict.outcome, KKT_OUTCOME_WRONG_RESULT);
    assert_non_null(strstr(verdict.reason, "never written"));
}

static void constraints_give_a_reason(void **state) {
    (void)state;
    kkt_values problem, config;
    char reason[100] = "";
    kkt_params_defaults(&kkt_kernel_row_sum.problem, &problem);
    kkt_params_defaults(&variants[0]->params, &config);
    problem.v[ROWS] = 100;
    config.v[ROWS_PER_THREAD] = 2;
    assert_false(applicable(&problem, &config, NULL, reason, sizeof reason));
    assert_string_equal(reason, "a block of 256 rows is more than there are: 100");
}

static void macros_come_from_the_table(void **state) {
    (void)state;
    kkt_values problem, config;
    kkt_text defines = {0};
    kkt_params_defaults(&kkt_kernel_row_sum.problem, &problem);
    kkt_params_defaults(&variants[0]->params, &config);
    config.v[ROWS_PER_THREAD] = 4;
    kkt_variant_defines(&kkt_kernel_row_sum, variants[0], &problem, &config, NULL, &defines);
    assert_string_equal(kkt_text_get(&defines), "ROW_SUM_THREADS=128\nROW_SUM_ROWS=4\n");
    kkt_text_free(&defines);
}

static char *read_text(const char *path) {
    char *text = NULL;
    size_t length = 0;
    char full[600];
    kkt_error err = {0};
    snprintf(full, sizeof full, "%s/%s", KKT_TEST_DATA, path);
    if (kkt_file_read(full, 1 << 20, &text, &length, &err) != KKT_OK)
        fail_msg("%s", err.message);
    return text;
}

static void the_page_shows_this_code(void **state) {
    (void)state;
    char *page = read_text("../docs/adding-a-kernel.md");
    char *host = read_text("unit/kernels/toy_kernel/row_sum.c");
    char *device = read_text("unit/kernels/toy_kernel/row_sum.cu");
    int blocks_shown = 0;
    for (char *at = page; (at = strstr(at, "\n```c")) != NULL; blocks_shown++) {
        char *begin = strchr(at + 1, '\n') + 1, *end = strstr(begin, "\n```");
        assert_non_null(end);
        *end = '\0';
        if (!strstr(host, begin) && !strstr(device, begin))
            fail_msg("the example has no such lines: %.200s", begin);
        at = end + 1;
    }
    assert_in_range(blocks_shown, 6, 30);
    free(page);
    free(host);
    free(device);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_configuration_passes), cmocka_unit_test(a_wrong_one_does_not),
        cmocka_unit_test(constraints_give_a_reason),  cmocka_unit_test(macros_come_from_the_table),
        cmocka_unit_test(the_page_shows_this_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
