/* How figures are written: digits, intervals, kernels without chunks. */
#include "fixture.h"

#include "reports/content.h"

static void intervals_keep_their_ends_apart(void **state) {
    (void)state;
    static const struct {
        double low, high;
        const char *text;
    } cases[] = {
        {382.912, 383.104, "382.9 to 383.1"},
        {12.3, 14.5, "12.3 to 14.5"},
        {382.91, 382.94, "382.91 to 382.94"},
        {1234.25, 1234.5, "1234.2 to 1234.5"},
        {383, 383, "383"},
        {45678.1, 45678.2, "45678.1 to 45678.2"},
        {1234, 1240, "1234 to 1240"},
        {KKT_UNKNOWN_REAL, 3, "-"},
    };
    char text[80];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(kkt_content_interval(cases[i].low, cases[i].high, text), cases[i].text);
}

static void reals_have_three_digits_and_no_exponent(void **state) {
    (void)state;
    char text[32];
    assert_string_equal(kkt_content_real(12.34, text), "12.3");
    assert_string_equal(kkt_content_real(999.4, text), "999");
    assert_string_equal(kkt_content_real(999.6, text), "1000"); /* not 1e+03 */
    assert_string_equal(kkt_content_real(1234.4, text), "1234");
    assert_string_equal(kkt_content_real(KKT_UNKNOWN_REAL, text), "-");
}

/* Times are medians of 32-bit floats: 97.344 is stored as 97.34400177001953. */
static void digits_that_no_sample_has_are_left_out(void **state) {
    fixture *f = *state;
    add_measured(f, "", "chunk=64", (double)97.312F, (double)97.344F, (double)97.376F);
    kkt_view view = make_view(f);
    kkt_text json = render(f, &view, "json");
    assert_non_null(strstr(json.data, "\"median\":\t97.344,"));
    assert_non_null(strstr(json.data, "\"low\":\t97.312,"));
    assert_null(strstr(json.data, "97.344001"));
    kkt_text_free(&json);
}

/* Names are words in every table, and what is common to nothing is not mentioned. */
static void names_are_words(void **state) {
    fixture *f = *state;
    add_measured(f, "", "chunk=64,threads=128", 99, 100, 101);
    add_measured(f, "tokens=8192", "chunk=32,threads=64", 29, 30, 31);
    kkt_view view = make_view(f);
    kkt_text page = render(f, &view, "markdown");
    assert_null(strstr(kkt_text_get(&page), "shared\\_bandwidth |"));
    assert_non_null(strstr(kkt_text_get(&page), "shared bandwidth |"));
    assert_non_null(strstr(kkt_text_get(&page), "Common to all problems below: "));
    assert_null(strstr(kkt_text_get(&page), "configurations below: nothing"));
    kkt_text_free(&page);
    assert_string_equal(kkt_content_words(NULL, f->arena), "-");
}

/* A kernel that the program does not know, without a chunk size. */
static void kernels_without_chunks_are_told_without(void **state) {
    fixture *f = *state;
    kkt_identity id = identity(f, "", "chunk=64");
    id.kernel = "scan";
    id.config = "threads=128";
    add_run(f, &id, f->hash, KKT_REPLAYED, KKT_OUTCOME_OK, NULL, 382.912, 383, 383.104);
    id.config = "threads=256";
    add_run(f, &id, f->hash, KKT_REPLAYED, KKT_OUTCOME_OK, NULL, 382.912, 383.01, 383.104);
    kkt_view view = make_view(f);
    kkt_text page = render(f, &view, "markdown");
    assert_non_null(strstr(page.data, "scan: resources and time"));
    assert_null(strstr(page.data, "scan: the chunk-size trade-off"));
    assert_non_null(strstr(page.data, "kkt\\_solve: the chunk-size trade-off"));
    assert_non_null(strstr(page.data, "the only problem"));
    assert_non_null(strstr(page.data, "382.9 to 383.1"));
    assert_non_null(strstr(page.data, "over the 1 entry with a time"));
    assert_non_null(strstr(page.data, "All 2 configurations with a time: scan"));
    assert_null(strstr(page.data, "| 0 | 2 |"));
    assert_null(strstr(page.data, "C = 0"));
    assert_non_null(strstr(page.data, "| Problem | Threads |")); /* a row a problem, no tokens */
    assert_non_null(strstr(page.data, "| HBM B | Blocks per SM | Lower bound, us |"));
    assert_null(strstr(page.data, "(none)"));
    kkt_text_free(&page);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(intervals_keep_their_ends_apart),
        cmocka_unit_test(reals_have_three_digits_and_no_exponent),
        cmocka_unit_test_setup_teardown(digits_that_no_sample_has_are_left_out, setup, teardown),
        cmocka_unit_test_setup_teardown(names_are_words, setup, teardown),
        cmocka_unit_test_setup_teardown(kernels_without_chunks_are_told_without, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
