/* Parameter tables: parsing, canonical text, and errors that list what exists. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/params.h"

static const char *const INVERSES[] = {"row", "recursive", "flat"};
static const kkt_param PARAMS[] = {
    {.name = "threads", .count = 3, .values = {64, 128, 256}, .fallback = 128},
    {.name = "inverse", .count = 3, .values = {0, 1, 2}, .names = INVERSES, .fallback = 1},
    {.name = "dk", .low = 1, .high = 1024, .fallback = 128},
    {.name = "Zed", .low = -5, .high = 5, .fallback = -1},
    {.name = "chunk", .count = 2, .values = {32, 64}, .fallback = 64},
};
static const kkt_param_table TABLE = {"parameter", PARAMS, 5};

static void check_text(const kkt_values *values, const char *expected) {
    kkt_text text = {0};
    kkt_params_format(&TABLE, values, &text);
    assert_string_equal(kkt_text_get(&text), expected);
    kkt_text_free(&text);
}

static void test_defaults_and_format(void **state) {
    (void)state;
    kkt_values values;
    kkt_params_defaults(&TABLE, &values);
    check_text(&values, "Zed=-1,chunk=64,dk=128,inverse=recursive,threads=128");
    assert_int_equal(kkt_params_get(&TABLE, &values, "dk"), 128);
    assert_int_equal(kkt_params_find(&TABLE, "chunk"), 4);
    assert_int_equal(kkt_params_find(&TABLE, "Chunk"), -1);
}

static void test_parse(void **state) {
    (void)state;
    kkt_values values;
    uint64_t given = 0;
    kkt_params_defaults(&TABLE, &values);
    assert_int_equal(
        kkt_params_parse(&TABLE, "chunk=32,inverse=flat,Zed=-5", &values, &given, NULL), KKT_OK);
    assert_true(given == (1u << 4 | 1u << 1 | 1u << 3));
    check_text(&values, "Zed=-5,chunk=32,dk=128,inverse=flat,threads=128");
    assert_int_equal(kkt_params_parse(&TABLE, "", &values, &given, NULL), KKT_OK);
    assert_true(given == 0);
    /* The canonical text reads back to the same values. */
    kkt_text text = {0};
    kkt_values back;
    kkt_params_format(&TABLE, &values, &text);
    kkt_params_defaults(&TABLE, &back);
    assert_false(kkt_values_equal(&TABLE, &values, &back));
    assert_int_equal(kkt_params_parse(&TABLE, text.data, &back, NULL, NULL), KKT_OK);
    assert_true(kkt_values_equal(&TABLE, &values, &back));
    kkt_text_free(&text);
}

typedef struct bad_text {
    const char *text, *names, *lists;
} bad_text;

static void test_errors(void **state) {
    (void)state;
    static const bad_text bad[] = {
        {"tile=64", "unknown parameter 'tile'", "threads, inverse, dk, Zed, chunk"},
        {"chunk=48", "'chunk' cannot be '48'", "32, 64"},
        {"chunk=064x", "'chunk' cannot be '064x'", "32, 64"},
        {"inverse=1", "'inverse' cannot be '1'", "row, recursive, flat"},
        {"inverse=Row", "'inverse' cannot be 'Row'", "row, recursive, flat"},
        {"dk=0", "'dk' cannot be '0'", "from 1 to 1024"},
        {"dk=99999999999999999999", "'dk'", "from 1 to 1024"},
        {"dk=", "'dk' cannot be ''", "from 1 to 1024"},
        {"dk", "'dk' has no value", "name=value"},
        {"bananas", "'bananas'; known: ", "dk, "},
        {"dk=64,dk=64", "'dk' is given twice", ""},
        {"dk=64,", "''", "name=value"},
        {",dk=64", "''", "name=value"},
        {"d k=64", "unknown parameter 'd k'", ""},
        {"dk=6 4", "'dk' cannot be '6 4'", ""},
        {"dk=64, ", "''", "name=value"},
        {"5", "unknown parameter '5'; known: ", "dk, "},
        {"=", "unknown parameter ''", ""},
        {"threads=64,chunk=1", "'chunk'", "32, 64"},
    };
    kkt_values before;
    kkt_params_defaults(&TABLE, &before);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        kkt_values values = before;
        uint64_t given = 77;
        kkt_error err = {0};
        assert_int_equal(kkt_params_parse(&TABLE, bad[i].text, &values, &given, &err),
                         KKT_ERR_INPUT);
        if (!strstr(err.message, bad[i].names) || !strstr(err.message, bad[i].lists))
            fail_msg("'%s' gives: %s", bad[i].text, err.message);
        assert_true(kkt_values_equal(&TABLE, &values, &before));
        assert_true(given == 77);
    }
}

static void blanks_around_names_and_values_are_dropped(void **state) {
    (void)state;
    kkt_values values, plain;
    kkt_params_defaults(&TABLE, &values);
    plain = values;
    assert_int_equal(kkt_params_parse(&TABLE, " chunk = 32,\tdk=64 ", &values, NULL, NULL), KKT_OK);
    assert_int_equal(kkt_params_parse(&TABLE, "chunk=32,dk=64", &plain, NULL, NULL), KKT_OK);
    assert_true(kkt_values_equal(&TABLE, &values, &plain));
    assert_int_equal(kkt_params_parse(&TABLE, "  ", &values, NULL, NULL), KKT_OK);
    assert_true(kkt_values_equal(&TABLE, &values, &plain));
}

static void test_value_text(void **state) {
    (void)state;
    char buffer[24];
    assert_string_equal(kkt_param_value_text(&PARAMS[1], 2, buffer), "flat");
    assert_string_equal(kkt_param_value_text(&PARAMS[1], 9, buffer), "9");
    assert_string_equal(kkt_param_value_text(&PARAMS[2], INT64_MIN, buffer),
                        "-9223372036854775808");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults_and_format),
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(blanks_around_names_and_values_are_dropped),
        cmocka_unit_test(test_value_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
