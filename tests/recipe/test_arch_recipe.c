/* One more architecture and device in the table, and nothing else changed: they are found, named in
 * errors, and every kernel can be predicted on them; a style that needs more says so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/kernel.h"
#include "model/predict.h"

static void test_found(void **state) {
    (void)state;
    const kkt_arch *arch;
    const kkt_device *device;
    kkt_error err = {0};
    assert_int_equal(kkt_arch_parse("16.4", &arch, &err), KKT_OK);
    assert_string_equal(arch->name, "sm164");
    assert_int_equal(kkt_device_parse("X1", arch, &device, &err), KKT_OK);
    assert_ptr_equal(kkt_device_first(arch), device);
    assert_ptr_equal(kkt_device_by_full_name("NVIDIA X1 80GB"), device);
    assert_int_equal(kkt_arch_parse("sm42", &arch, &err), KKT_ERR_INPUT);
    assert_non_null(strstr(err.message, "sm164"));
    assert_non_null(kkt_arch_find("sm90")); /* the others are still there */
}

/* False: the style needs what the new architecture has not, and the reason names it. */
static bool predict_defaults(const kkt_kernel *kernel, const kkt_variant *variant) {
    const kkt_arch *arch = kkt_arch_find("sm164");
    kkt_values problem, config;
    kkt_footprint footprint;
    kkt_prediction prediction;
    char reason[300];
    kkt_params_defaults(&kernel->problem, &problem);
    kkt_params_defaults(&variant->params, &config);
    if (!variant->applicable(&problem, &config, arch, reason, sizeof reason)) {
        if (strncmp(reason, "sm164 has no ", 13) != 0)
            fail_msg("%s: %s", kernel->name, reason);
        return false;
    }
    variant->footprint(&problem, &config, arch, &footprint);
    kkt_predict(&footprint, arch, kkt_device_first(arch), NULL, &prediction);
    assert_int_equal(prediction.infeasible, KKT_FEASIBLE);
    assert_true(prediction.occupancy.blocks_per_sm > 0 && prediction.predicted_us > 0);
    /* Its memory is what the new row says. */
    double seconds = (prediction.hbm_bytes - 50 * 1048576.0) / 10000e9;
    assert_true(prediction.lower_bound_us >= seconds * 1e6);
    kkt_prediction_reason(&footprint, arch, kkt_device_first(arch), &prediction, reason,
                          sizeof reason);
    assert_non_null(strstr(reason, "NVIDIA X1"));
    return true;
}

static void test_every_kernel_predicted(void **state) {
    (void)state;
    size_t count;
    const kkt_kernel *const *kernels = kkt_kernels(&count);
    assert_true(count > 0);
    for (size_t k = 0; k < count; ++k) {
        size_t predicted = 0;
        for (size_t v = 0; v < kernels[k]->variant_count; ++v)
            predicted += predict_defaults(kernels[k], kernels[k]->variants[v]);
        if (predicted == 0)
            fail_msg("%s: no style is for sm164", kernels[k]->name);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_found),
        cmocka_unit_test(test_every_kernel_predicted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
