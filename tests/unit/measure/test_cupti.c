/* CUPTI's host side, which needs no GPU: every name of the table on every chip of the architecture
 * table, and how many passes they take together. Skipped where there is no CUPTI. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/arch.h"
#include "tuner/measure/cupti.h"

static kkt_cupti *open_or_skip(void) {
    kkt_error err = {0};
    kkt_cupti *cupti = NULL;
    if (kkt_cupti_open(&cupti, &err) != KKT_OK) {
        print_message("skipped: %s\n", err.message);
        skip();
    }
    return cupti;
}

static void names_and_passes_of_every_chip(void **state) {
    (void)state;
    kkt_cupti *cupti = open_or_skip();
    size_t count = 0;
    const kkt_arch *archs = kkt_archs(&count);
    for (size_t a = 0; a < count; a++) {
        kkt_error err = {0};
        kkt_cupti_config config;
        const char *chip = archs[a].cupti_chip;
        if (kkt_cupti_config_open(cupti, chip, &config, &err) != KKT_OK) {
            fail_msg("%s: %s", chip, err.message);
        }
        for (size_t i = 0; i < config.refused_count; i++) {
            print_error("%s refuses %s\n", chip, kkt_counters()[config.refused[i]].name);
        }
        assert_int_equal(config.refused_count, 0);
        size_t expected = 0;
        for (int i = 0; i < KKT_COUNTER_COUNT; i++) {
            expected += kkt_counter_metric((kkt_counter_id)i, chip) != NULL;
        }
        assert_int_equal(config.count, expected);
        assert_true(config.image_size > 0);
        assert_in_range(config.passes, 1, 5);
        if (strcmp(chip, "GH100") == 0) {
            assert_int_equal(config.count, KKT_COUNTER_COUNT);
            assert_in_range(config.passes, 1, 4);
        }
        kkt_cupti_config_close(cupti, &config);
    }
    kkt_cupti_close(cupti);
}

static void unknown_chip(void **state) {
    (void)state;
    kkt_error err = {0};
    kkt_cupti_config config;
    kkt_cupti *cupti = open_or_skip();
    assert_int_equal(kkt_cupti_config_open(cupti, "GX999", &config, &err), KKT_ERR_MISSING);
    assert_non_null(strstr(err.message, "GX999"));
    kkt_cupti_close(cupti);
}

/* Names that a chip refuses are left out, and the rest still makes a configuration. */
static void refused_names_are_left_out(void **state) {
    (void)state;
    kkt_error err = {0};
    kkt_cupti_config config;
    kkt_cupti *cupti = open_or_skip();
    /* GB205 is in no row of the table, and its memory metrics are called as on GB202. */
    assert_int_equal(kkt_cupti_config_open(cupti, "GB205", &config, &err), KKT_OK);
    assert_true(config.refused_count > 0);
    assert_int_equal(config.refused[0], KKT_COUNTER_DRAM_READ_BYTES);
    assert_true(config.count + config.refused_count < KKT_COUNTER_COUNT + 1U);
    assert_true(config.count > 10 && config.passes > 0);
    kkt_cupti_config_close(cupti, &config);
    kkt_cupti_close(cupti);
}

static void no_library(void **state) {
    (void)state;
    char text[400];
    bool everywhere = false;
    kkt_cupti_explain(NULL, 35, "enabling", text, sizeof text, &everywhere);
    assert_true(everywhere);
    assert_non_null(strstr(text, "CAP_SYS_ADMIN"));
    assert_non_null(strstr(text, "NVreg_RestrictProfilingToAdminUsers=0"));
    kkt_cupti_explain(NULL, 43, "enabling", text, sizeof text, &everywhere);
    assert_non_null(strstr(text, "MIG"));
    kkt_cupti_explain(NULL, 45, "enabling", text, sizeof text, &everywhere);
    assert_non_null(strstr(text, "WSL"));
    kkt_cupti_explain(NULL, 26, "enabling", text, sizeof text, &everywhere);
    assert_non_null(strstr(text, "dcgmi"));
    kkt_cupti_explain(NULL, 999, "decoding", text, sizeof text, &everywhere);
    assert_false(everywhere);
    assert_non_null(strstr(text, "decoding"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_passes_of_every_chip),
        cmocka_unit_test(unknown_chip),
        cmocka_unit_test(refused_names_are_left_out),
        cmocka_unit_test(no_library),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
