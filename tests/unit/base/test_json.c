/* JSON: round trips, exact numbers, hostile text with the place of the fault. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"

/* A heap copy without a NUL: reading past `length` is then seen by the sanitizer. */
static char *copy_of(const char *text, size_t length) {
    char *copy = malloc(length ? length : 1);
    assert_non_null(copy);
    memcpy(copy, text, length);
    return copy;
}

static kkt_status parse(const char *text, kkt_json **out, kkt_error *err) {
    size_t length = strlen(text);
    char *copy = copy_of(text, length);
    kkt_status status = kkt_json_parse(copy, length, "t.json", out, err);
    free(copy);
    return status;
}

static void test_build_and_read(void **state) {
    (void)state;
    kkt_json *root = kkt_json_object();
    kkt_json_add_string(root, "schema", "kkttune.test/1");
    kkt_json_add_string(root, "none", NULL);
    kkt_json_add_int(root, "most", INT64_MAX);
    kkt_json_add_int(root, "least", INT64_MIN);
    kkt_json_add_real(root, "tenth", 0.1);
    kkt_json_add_real(root, "bad", NAN);
    kkt_json_add_bool(root, "yes", true);
    kkt_json *list = kkt_json_add_array(root, "list");
    kkt_json_add_int(list, NULL, 1);
    kkt_json_add_object(list, NULL);
    kkt_json *other = kkt_json_array();
    kkt_json_add_root(root, "other", other);
    char *text = kkt_json_print(root, false);
    assert_string_equal(text, "{\"schema\":\"kkttune.test/1\",\"none\":null,"
                              "\"most\":9223372036854775807,\"least\":-9223372036854775808,"
                              "\"tenth\":0.1,\"bad\":null,\"yes\":true,\"list\":[1,{}],"
                              "\"other\":[]}");
    free(text);
    int64_t integer = 0;
    double real = 0;
    bool flag = false;
    assert_true(kkt_json_int(root, "most", &integer) && integer == INT64_MAX);
    assert_true(kkt_json_real(root, "tenth", &real) && real == 0.1);
    assert_false(kkt_json_int(root, "tenth", &integer));
    assert_false(kkt_json_real(root, "bad", &real));
    assert_true(kkt_json_bool(root, "yes", &flag) && flag);
    assert_false(kkt_json_bool(root, "most", &flag));
    assert_null(kkt_json_string(root, "most"));
    assert_null(kkt_json_string(root, "SCHEMA")); /* names are case-sensitive */
    assert_int_equal(kkt_json_count(kkt_json_get(root, "list")), 2);
    assert_true(kkt_json_is_array(kkt_json_get(root, "list")));
    assert_true(kkt_json_is_object(root));
    assert_string_equal(kkt_json_key(kkt_json_next(kkt_json_first(root))), "none");
    kkt_json_close(root);
    kkt_json_close(NULL);
}

static void test_absent(void **state) {
    (void)state;
    int64_t integer = 0;
    assert_null(kkt_json_get(NULL, "x"));
    assert_null(kkt_json_string(NULL, "x"));
    assert_false(kkt_json_int(NULL, "x", &integer));
    assert_false(kkt_json_is_object(NULL));
    assert_int_equal(kkt_json_count(NULL), 0);
    assert_null(kkt_json_first(NULL));
    assert_null(kkt_json_next(NULL));
    assert_null(kkt_json_key(NULL));
}

static void test_reals_round_trip(void **state) {
    (void)state;
    const double values[] = {0.1 + 0.2, 1.0 / 3, DBL_MAX, DBL_MIN, 5e-324, -0.0, 1e21, M_PI, 1e-7};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        kkt_json *root = kkt_json_array();
        kkt_json_add_real(root, NULL, values[i]);
        char *text = kkt_json_print(root, true);
        kkt_json_close(root);
        double back = 0;
        assert_int_equal(parse(text, &root, NULL), KKT_OK);
        assert_true(kkt_json_as_real(kkt_json_first(root), &back));
        assert_memory_equal(&back, &values[i], sizeof back);
        kkt_json_close(root);
        free(text);
    }
}

static void test_integers_read(void **state) {
    (void)state;
    kkt_json *root = NULL;
    assert_int_equal(
        parse("[9007199254740991,-9007199254740991,1e3,9007199254740993,0.5,1e300]", &root, NULL),
        KKT_OK);
    const int64_t expected[] = {9007199254740991, -9007199254740991, 1000};
    const kkt_json *value = kkt_json_first(root);
    int64_t integer = 0;
    for (size_t i = 0; i < 3; i++, value = kkt_json_next(value))
        assert_true(kkt_json_as_int(value, &integer) && integer == expected[i]);
    for (; value; value = kkt_json_next(value)) /* not exact, or no integer: refused */
        assert_false(kkt_json_as_int(value, &integer));
    kkt_json_close(root);
}

static void test_strings(void **state) {
    (void)state;
    kkt_json *root = NULL;
    assert_int_equal(
        parse(" {\"a\\n\\u00e9\" : \"\\ud83d\\ude00 \\\" \\\\ \\/ \xE2\x82\xAC\"} \n", &root, NULL),
        KKT_OK);
    assert_string_equal(kkt_json_string(root, "a\n\xC3\xA9"),
                        "\xF0\x9F\x98\x80 \" \\ / \xE2\x82\xAC");
    kkt_json_close(root);
    root = kkt_json_object();
    kkt_json_add_string(root, "s", "ok\xFF\xC0\x80 \xED\xA0\x80 \x01\"\\");
    char *text = kkt_json_print(root, false);
    kkt_json_close(root);
    assert_int_equal(parse(text, &root, NULL), KKT_OK);
    const char *mark = "\xEF\xBF\xBD";
    char expected[64];
    snprintf(expected, sizeof expected, "ok%s%s%s %s%s%s \x01\"\\", mark, mark, mark, mark, mark,
             mark);
    assert_string_equal(kkt_json_string(root, "s"), expected);
    kkt_json_close(root);
    free(text);
}

typedef struct bad_text {
    const char *text, *place;
} bad_text;

static void test_malformed(void **state) {
    (void)state;
    static const bad_text bad[] = {
        {"", "t.json:1:1:"},
        {"   ", "t.json:1:4:"},
        {"{", "t.json:1:2:"},
        {"[1,]", "t.json:1:4:"},
        {"[1 2]", "t.json:1:4:"},
        {"{\"a\":1,}", "t.json:1:8:"},
        {"{\"a\"}", "t.json:1:5:"},
        {"{a:1}", "t.json:1:2:"},
        {"{'a':1}", "t.json:1:2:"},
        {"[1]]", "t.json:1:4:"},
        {"{}{}", "t.json:1:3:"},
        {"[}", "t.json:1:2:"},
        {"{\n  \"a\": tru\n}", "t.json:2:8:"},
        {"[\n\n01]", "t.json:3:3:"},
        {"[+1]", "t.json:1:2:"},
        {"[1.]", "t.json:1:4:"},
        {"[.5]", "t.json:1:2:"},
        {"[1e]", "t.json:1:4:"},
        {"[-]", "t.json:1:3:"},
        {"[0x10]", "t.json:1:3:"},
        {"[NaN]", "t.json:1:2:"},
        {"[Infinity]", "t.json:1:2:"},
        {"[1e999]", "t.json:1:2:"},
        {"[\"a\tb\"]", "t.json:1:4:"},
        {"[\"a", "t.json:1:4:"},
        {"[\"\\x41\"]", "t.json:1:3:"},
        {"[\"\\u12g4\"]", "t.json:1:3:"},
        {"[\"\\u12", "t.json:1:3:"},
        {"[\"\\", "t.json:1:3:"},
        {"[\"\\u0000\"]", "t.json:1:3:"},
        {"[\"\\ud800\"]", "t.json:1:3:"},
        {"[\"\\ud800\\u0041\"]", "t.json:1:3:"},
        {"[\"\\udc00\"]", "t.json:1:3:"},
        {"[\"\xFF\"]", "t.json:1:3:"},
        {"[\"\xC0\xAF\"]", "t.json:1:3:"},
        {"[\"\xED\xA0\x80\"]", "t.json:1:3:"},
        {"[\"\xF4\x90\x80\x80\"]", "t.json:1:3:"},
        {"[\"\xE2\x82\"]", "t.json:1:3:"},
        {"\xEF\xBB\xBF{}", "t.json:1:1:"},
        {"// note\n{}", "t.json:1:1:"},
        {"[1111111111111111111111111111111111111111111111111111111111111111]", "t.json:1:2:"},
        {"{\"a\":1,\"b\":{\"c\":[{\"x\":1,\"x\":2}]}}", "t.json: member 'x'"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        kkt_json *root = NULL;
        kkt_error err = {0};
        assert_int_equal(parse(bad[i].text, &root, &err), KKT_ERR_INPUT);
        assert_null(root);
        if (strncmp(err.message, bad[i].place, strlen(bad[i].place)) != 0)
            fail_msg("%s\nexpected place %s, got %s", bad[i].text, bad[i].place, err.message);
    }
    kkt_json *root = NULL;
    kkt_error err = {0};
    assert_int_equal(kkt_json_parse("[1,\0 2]", 7, "t.json", &root, &err), KKT_ERR_INPUT);
}

static void test_every_prefix_fails(void **state) {
    (void)state;
    const char *whole = "{\"a\":[1,-2.5e3,true,null,\"x\\u00e9\"],\"b\":{\"c\":false}}";
    for (size_t length = 0; length < strlen(whole); length++) {
        char *copy = copy_of(whole, length);
        kkt_json *root = NULL;
        assert_int_equal(kkt_json_parse(copy, length, "t", &root, NULL), KKT_ERR_INPUT);
        free(copy);
    }
    kkt_json *root = NULL;
    assert_int_equal(parse(whole, &root, NULL), KKT_OK);
    kkt_json_close(root);
}

static void test_depth_and_size(void **state) {
    (void)state;
    for (int depth = 63; depth <= 65; depth++) {
        kkt_text text = {0};
        for (int i = 0; i < depth; i++)
            kkt_text_add(&text, i % 2 ? "{\"k\":" : "[");
        kkt_text_add(&text, "1");
        for (int i = depth; i-- > 0;)
            kkt_text_add(&text, i % 2 ? "}" : "]");
        kkt_json *root = NULL;
        kkt_error err = {0};
        assert_int_equal(parse(text.data, &root, &err), depth <= 64 ? KKT_OK : KKT_ERR_INPUT);
        if (depth > 64)
            assert_non_null(strstr(err.message, "64 levels"));
        kkt_json_close(root);
        kkt_text_free(&text);
    }
    kkt_json *root = NULL;
    kkt_error err = {0};
    /* The size is refused before a byte is read. */
    assert_int_equal(kkt_json_parse("[]", ((size_t)256 << 20) + 1, "big", &root, &err), 2);
    assert_non_null(strstr(err.message, "big"));
}

/* No mutation of a text may crash, hang or leak; whatever is taken must print and parse again. */
static void test_mutations(void **state) {
    (void)state;
    const char *seed_text =
        "{\"schema\":\"kkttune.config/1\",\"n\":[1,2.5,-3e-7],\"s\":\"\\u00e9\"}";
    size_t length = strlen(seed_text);
    uint32_t random = 1;
    for (int round = 0; round < 20000; round++) {
        char *copy = copy_of(seed_text, length);
        for (int k = 0; k < 1 + round % 3; k++) {
            random = random * 1664525u + 1013904223u;
            copy[(random >> 8) % length] = (char)(random >> 24);
        }
        kkt_json *root = NULL;
        if (kkt_json_parse(copy, length, "m", &root, NULL) == KKT_OK) {
            char *text = kkt_json_print(root, true);
            kkt_json_close(root);
            assert_int_equal(parse(text, &root, NULL), KKT_OK);
            kkt_json_close(root);
            free(text);
        }
        free(copy);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_build_and_read),
        cmocka_unit_test(test_absent),
        cmocka_unit_test(test_reals_round_trip),
        cmocka_unit_test(test_integers_read),
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_malformed),
        cmocka_unit_test(test_every_prefix_fails),
        cmocka_unit_test(test_depth_and_size),
        cmocka_unit_test(test_mutations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
