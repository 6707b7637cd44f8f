/* The table of counters, and what the fake backend counts. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tuner/measure/backend.h"

static void table_is_sane(void **state) {
    (void)state;
    size_t archs = 0;
    const kkt_arch *arch = kkt_archs(&archs);
    for (int i = 0; i < KKT_COUNTER_COUNT; i++) {
        const kkt_counter *counter = &kkt_counters()[i];
        assert_non_null(counter->name);
        assert_true(counter->name[0] != '\0' && counter->unit[0] != '\0');
        assert_true(strlen(counter->help) > 10);
        assert_non_null(strstr(counter->metric, "__"));
        for (int j = 0; j < i; j++) {
            assert_string_not_equal(counter->name, kkt_counters()[j].name);
            assert_string_not_equal(counter->metric, kkt_counters()[j].metric);
        }
        for (const kkt_counter_override *o = counter->overrides; o && o->chip; o++) {
            size_t known = 0;
            for (size_t a = 0; a < archs; a++) {
                known += strcmp(arch[a].cupti_chip, o->chip) == 0;
            }
            assert_int_equal(known, 1);
            assert_true(kkt_counter_metric((kkt_counter_id)i, o->chip) == o->metric);
        }
    }
}

static void metrics_differ_by_chip(void **state) {
    (void)state;
    assert_string_equal(kkt_counter_metric(KKT_COUNTER_DRAM_READ_BYTES, "GH100"),
                        "dram__bytes_read.sum");
    assert_string_equal(kkt_counter_metric(KKT_COUNTER_DRAM_READ_BYTES, "GB202"),
                        "dram__bytes_op_read.sum");
    assert_null(kkt_counter_metric(KKT_COUNTER_DRAM_WRITE_BYTES, "GB20B"));
    assert_null(kkt_counter_metric(KKT_COUNTER_DRAM_SHARE, "GA10B"));
    assert_non_null(kkt_counter_metric(KKT_COUNTER_STALL_GMMA, "GH100"));
    assert_null(kkt_counter_metric(KKT_COUNTER_STALL_GMMA, "GA100"));
}

static void bytes_are_known_only_together(void **state) {
    (void)state;
    kkt_counts counts;
    kkt_counts_set(&counts, KKT_COUNT_FAILED, "the worker %s", "hangs");
    assert_string_equal(counts.note, "the worker hangs");
    assert_true(isnan(kkt_counts_hbm_bytes(&counts)));
    counts.values[KKT_COUNTER_DRAM_READ_BYTES] = 3;
    assert_true(isnan(kkt_counts_hbm_bytes(&counts)));
    counts.values[KKT_COUNTER_DRAM_WRITE_BYTES] = 4;
    assert_true(kkt_counts_hbm_bytes(&counts) == 7);
}

static void count(const char *options, const char *arch_name, kkt_counts *out) {
    kkt_error err = {0};
    kkt_backend *backend = NULL;
    const kkt_kernel *kernel = NULL;
    const kkt_backend_type *fake = kkt_backend_find("fake");
    kkt_backend_options o = {.gpu = -1, .fake = options};
    assert_int_equal(fake->open(&o, &backend, &err), KKT_OK);
    assert_int_equal(kkt_kernel_parse("kkt_solve", &kernel, NULL), KKT_OK);
    const kkt_arch *arch = kkt_arch_find(arch_name);
    kkt_values problem, config;
    kkt_policy policy;
    kkt_policy_defaults(&policy);
    kkt_params_defaults(&kernel->problem, &problem);
    kkt_params_defaults(&kernel->variants[0]->params, &config);
    kkt_prediction prediction = {.predicted_us = 100, .hbm_bytes = 4e8};
    const kkt_measure_request request = {
        .kernel = kernel,
        .variant = kernel->variants[0],
        .arch = arch,
        .device = kkt_device_first(arch),
        .problem = &problem,
        .config = &config,
        .prediction = &prediction,
        .policy = &policy,
    };
    assert_int_equal(fake->count(backend, &request, out, &err), KKT_OK);
    fake->close(backend);
}

static void fake_counts_follow_the_prediction(void **state) {
    (void)state;
    kkt_counts a, b, other;
    count("seed=3", "sm90", &a);
    count("seed=3", "sm90", &b);
    count("seed=4", "sm90", &other);
    assert_int_equal(a.state, KKT_COUNT_DONE);
    assert_string_equal(a.chip, "GH100");
    assert_string_equal(a.note, "");
    int same = 0;
    for (int i = 0; i < KKT_COUNTER_COUNT; i++) {
        assert_true(isfinite(a.values[i]));
        assert_true(a.values[i] == b.values[i]);
        same += a.values[i] == other.values[i];
    }
    assert_true(same < KKT_COUNTER_COUNT / 2);
    assert_true(fabs(kkt_counts_hbm_bytes(&a) - 4e8) <= 0.02 * 4e8);
    count("", "sm80", &a);
    assert_true(isnan(a.values[KKT_COUNTER_STALL_GMMA]));
}

static void fake_troubles(void **state) {
    (void)state;
    kkt_counts counts;
    count("counters=denied", "sm90", &counts);
    assert_int_equal(counts.state, KKT_COUNT_UNAVAILABLE);
    assert_non_null(strstr(counts.note, "CAP_SYS_ADMIN"));
    assert_true(isnan(kkt_counts_hbm_bytes(&counts)));
    count("seed=1,counters=failed", "sm90", &counts);
    assert_int_equal(counts.state, KKT_COUNT_FAILED);
    kkt_error err = {0};
    kkt_backend *backend = NULL;
    kkt_backend_options o = {.gpu = -1, .fake = "counters=none"};
    assert_int_equal(kkt_backend_find("fake")->open(&o, &backend, &err), KKT_ERR_INPUT);
    assert_non_null(strstr(err.message, "denied, busy, absent, failed"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_is_sane),
        cmocka_unit_test(metrics_differ_by_chip),
        cmocka_unit_test(bytes_are_known_only_together),
        cmocka_unit_test(fake_counts_follow_the_prediction),
        cmocka_unit_test(fake_troubles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
