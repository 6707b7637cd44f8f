/* Errors, arena, text, escapes, number parsing, tables and SHA-256. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/sha256.h"
#include "base/text.h"

static void test_fail(void **state) {
    (void)state;
    kkt_error err = {0};
    assert_int_equal(kkt_fail(&err, KKT_ERR_INPUT, 7, "no '%s'", "x\n\x1b[31m\x7f\xC2\x9By"),
                     KKT_ERR_INPUT);
    assert_int_equal(err.status, KKT_ERR_INPUT);
    assert_int_equal(err.native, 7);
    assert_string_equal(err.message, "no 'x??[31m???y'");
    kkt_fail(&err, KKT_ERR_MISSING, 0, "outer: %s", err.message); /* wrapping its own text */
    assert_string_equal(err.message, "outer: no 'x??[31m???y'");
    assert_int_equal(kkt_fail(NULL, KKT_ERR_ENVIRONMENT, 0, "unseen"), KKT_ERR_ENVIRONMENT);
    assert_int_equal(kkt_fail_errno(NULL, KKT_ERR_MISSING, ENOENT, "unseen"), KKT_ERR_MISSING);
}

static void test_fail_long(void **state) {
    (void)state;
    char name[2000];
    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    kkt_error err = {0};
    kkt_fail_errno(&err, KKT_ERR_ENVIRONMENT, ENOSPC, "cannot write '%s'", name);
    assert_int_equal(err.native, ENOSPC);
    assert_true(strlen(err.message) < sizeof err.message);
    const char *cause = ": No space left on device";
    assert_string_equal(err.message + strlen(err.message) - strlen(cause), cause);
    /* A character of two, three or four bytes that the buffer's end splits is dropped whole. */
    const char *characters[] = {"\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80"};
    for (size_t c = 0; c < 3; c++) {
        size_t size = strlen(characters[c]);
        for (size_t at = 0; at + size < sizeof name; at += size)
            memcpy(name + at, characters[c], size + 1);
        kkt_fail(&err, KKT_ERR_INPUT, 0, "%s", name);
        assert_int_equal(strlen(err.message), (sizeof err.message - 1) / size * size);
    }
    kkt_fail(&err, KKT_ERR_INPUT, 0, "a whole \xE2\x82\xAC");
    assert_string_equal(err.message, "a whole \xE2\x82\xAC");
}

static void test_arena(void **state) {
    (void)state;
    kkt_arena *arena = kkt_arena_open();
    unsigned char *previous = NULL;
    for (size_t i = 0; i < 3000; i++) {
        size_t size = i * 37 % 301;
        unsigned char *piece = kkt_arena_alloc(arena, size);
        assert_int_equal((uintptr_t)piece % _Alignof(max_align_t), 0);
        assert_ptr_not_equal(piece, previous);
        for (size_t k = 0; k < size; k++)
            assert_int_equal(piece[k], 0);
        memset(piece, 0xA5, size); /* a neighbour handed out twice would show above */
        previous = piece;
    }
    unsigned char *large = kkt_arena_array(arena, 1000, 1000);
    assert_int_equal(large[999999], 0);
    large[999999] = 1;
    assert_string_equal(kkt_arena_strdup(arena, "copy"), "copy");
    assert_null(kkt_arena_strdup(arena, NULL));
    assert_string_equal(kkt_arena_printf(arena, "%s-%d", "n", 42), "n-42");
    kkt_arena_close(arena);
    kkt_arena_close(NULL);
}

static void test_text_grows(void **state) {
    (void)state;
    kkt_text text = {0};
    assert_string_equal(kkt_text_get(&text), "");
    for (int i = 0; i < 1000; i++)
        kkt_text_printf(&text, "%03d", i);
    assert_int_equal(text.length, 3000);
    assert_memory_equal(text.data + 3 * 537, "537", 3);
    kkt_text_add_bytes(&text, "a\0b", 3);
    assert_int_equal(text.length, 3003);
    assert_int_equal(text.data[3003], '\0');
    kkt_text_free(&text);
    assert_null(text.data);
    kkt_text_add(&text, "again");
    assert_string_equal(text.data, "again");
    kkt_text_free(&text);
}

static void check_escape(void (*add)(kkt_text *, const char *), const char *raw,
                         const char *expected) {
    kkt_text text = {0};
    add(&text, raw);
    assert_string_equal(kkt_text_get(&text), expected);
    kkt_text_free(&text);
}

static void test_escapes(void **state) {
    (void)state;
    check_escape(kkt_text_add_html, "<b a=\"1\" c='2'>&\xC3\xA9",
                 "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;\xC3\xA9");
    check_escape(kkt_text_add_markdown, "a|b\\c`d*e_f<g>[h]\r\ni\nj\rk",
                 "a\\|b\\\\c\\`d\\*e\\_f&lt;g&gt;\\[h\\] i j k");
    check_escape(kkt_text_add_c_string,
                 "a\"b\\c\n\t?"
                 "?/\xC3\xA9"
                 "7\x7f",
                 "\"a\\\"b\\\\c\\012\\011\\077\\077/\\303\\2517\\177\"");
    check_escape(kkt_text_add_c_string, "", "\"\"");
}

static void test_parse_i64(void **state) {
    (void)state;
    int64_t value = 99;
    assert_true(kkt_parse_i64("-9223372036854775808", INT64_MIN, INT64_MAX, &value));
    assert_true(value == INT64_MIN);
    assert_true(kkt_parse_i64("9223372036854775807", INT64_MIN, INT64_MAX, &value));
    assert_true(value == INT64_MAX);
    assert_true(kkt_parse_i64("007", 0, 10, &value));
    assert_int_equal(value, 7);
    const char *bad[] = {"",
                         "-",
                         "+1",
                         " 1",
                         "1 ",
                         "1.0",
                         "0x10",
                         "1e3",
                         "--1",
                         "11",
                         "-1",
                         "1,2",
                         "1\n",
                         "one",
                         "٣",
                         "9223372036854775808",
                         "18446744073709551617",
                         "-9223372036854775809"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        value = 99;
        assert_false(kkt_parse_i64(bad[i], 0, 10, &value));
        assert_int_equal(value, 99);
    }
    assert_false(kkt_parse_i64("9223372036854775808", INT64_MIN, INT64_MAX, &value));
}

static void test_parse_double(void **state) {
    (void)state;
    double value = 0;
    assert_true(kkt_parse_double("-1.25e-3", &value));
    assert_true(value == -1.25e-3);
    assert_true(kkt_parse_double("64", &value) && value == 64);
    assert_true(kkt_parse_double("0.1", &value) && value == 0.1);
    const char *bad[] = {"",    "inf",   "nan", "-inf", "0x1p3", " 1",  "1 ",
                         "1,5", "1e999", "e5",  ".",    "1.2.3", "--1", "1e"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(kkt_parse_double(bad[i], &value));
}

static void test_parse_list(void **state) {
    (void)state;
    int64_t out[3] = {0};
    size_t count = 0;
    kkt_error err = {0};
    assert_int_equal(kkt_parse_i64_list("16,32,64", "--chunk", 1, 512, out, 3, &count, &err), 0);
    assert_int_equal(count, 3);
    assert_int_equal(out[2], 64);
    assert_int_equal(kkt_parse_i64_list("8", "--chunk", 1, 512, out, 3, &count, &err), 0);
    assert_int_equal(count, 1);
    const char *bad[] = {
        "",       ",",     "16,", ",16", "16,,32",
        "16 ,32", "16;32", "0",   "513", "1111111111111111111111111111111111111111111111111111"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(kkt_parse_i64_list(bad[i], "--chunk", 1, 512, out, 3, &count, &err),
                         KKT_ERR_INPUT);
        assert_non_null(strstr(err.message, "--chunk"));
    }
    assert_int_equal(kkt_parse_i64_list("16,x", "--chunk", 1, 512, out, 3, &count, &err), 2);
    assert_non_null(strstr(err.message, "'x'"));
    assert_int_equal(kkt_parse_i64_list("1,2,3,4", "--chunk", 1, 512, out, 3, &count, &err), 2);
    assert_non_null(strstr(err.message, "more than 3"));
}

static void test_table(void **state) {
    (void)state;
    const char *headings[] = {"name", "bytes", "note"};
    kkt_table *table = kkt_table_open(3, headings);
    const char *cells[] = {"q", "16384", "-", "caf\xC3\xA9", "8", "half of it", "state", "-", ""};
    for (size_t i = 0; i < 9; i++)
        kkt_table_cell(table, "%s", cells[i]);
    char *printed = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&printed, &size);
    kkt_table_print(table, out);
    fclose(out);
    kkt_table_close(table);
    kkt_table_close(NULL);
    assert_string_equal(printed, "name   bytes  note\n"
                                 "q      16384  -\n"
                                 "caf\xC3\xA9       8  half of it\n"
                                 "state      -  \n");
    free(printed);
}

static void test_sha256(void **state) {
    (void)state;
    /* FIPS 180-4's own examples. */
    char hash[65];
    kkt_sha256_of("abc", 3, hash);
    assert_string_equal(hash, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    kkt_sha256_of("", 0, hash);
    assert_string_equal(hash, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    kkt_sha256 *pieces = kkt_sha256_open();
    const char *text = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    for (size_t i = 0; i < strlen(text); i += 7)
        kkt_sha256_add(pieces, text + i, strlen(text) - i < 7 ? strlen(text) - i : 7);
    kkt_sha256_close(pieces, hash);
    assert_string_equal(hash, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fail),         cmocka_unit_test(test_fail_long),
        cmocka_unit_test(test_arena),        cmocka_unit_test(test_text_grows),
        cmocka_unit_test(test_escapes),      cmocka_unit_test(test_parse_i64),
        cmocka_unit_test(test_parse_double), cmocka_unit_test(test_parse_list),
        cmocka_unit_test(test_table),        cmocka_unit_test(test_sha256),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
