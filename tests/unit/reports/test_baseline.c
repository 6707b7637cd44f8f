/* Calls of a library beside what was tuned: in the report and in the JSON, and nowhere among what
 * is chosen. */
#include "fixture.h"

#include <math.h>

#include "base/file.h"
#include "reports/baseline.h"
#include "schema.h"

/* A tuned result and two calls at C = 64, all calls the faster ones; one call at C = 32 alone. */
static void fill(fixture *f) {
    const kkt_variant *tuned = f->variant;
    add_measured(f, "", "chunk=64,threads=128", 99, 100, 101);
    f->variant = kkt_kernel_variant(f->kernel, KKT_STYLE_LIBRARY);
    assert_non_null(f->variant);
    add_measured(f, "", "chunk=64,routine=gemm_gate_trsm", 49, 50, 51);
    add_measured(f, "", "chunk=64,routine=trsm", 24, 25, 26);
    add_measured(f, "", "chunk=32,routine=trsm", 20, 21, 22);
    f->variant = tuned;
}

static void they_stand_beside_the_entries(void **state) {
    fixture *f = *state;
    fill(f);
    kkt_view view = make_view(f);
    assert_int_equal(view.baseline_count, 3);
    const kkt_baseline *rows = view.baselines;
    assert_int_equal(rows[0].entry.chunk, 32);
    assert_null(rows[0].tuned);
    assert_true(isnan(rows[0].ratio));
    assert_true(rows[1].ratio == 0.25 && rows[2].ratio == 0.5); /* the fastest call first */
    assert_true(rows[1].together && rows[1].tuned->time_us == 100);
    assert_string_equal(kkt_baseline_call(&rows[1].entry, f->arena), "routine=trsm");
    assert_int_equal(view.measured, 4);
}

/* What has no effect on a call is not told of it. */
static void calls_are_named_shortly(void **state) {
    fixture *f = *state;
    static const struct {
        const char *kernel, *config, *call;
    } table[] = {
        {"gemm", "choice=0,routine=gemm_ex", "routine=gemm_ex"},
        {"gemm", "choice=2,routine=lt_matmul", "choice=2, routine=lt_matmul"},
        {"no_more", "chunk=64,routine=x", "routine=x"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const kkt_entry entry = {
            .kernel = table[i].kernel, .style = "library", .config = table[i].config};
        assert_string_equal(kkt_baseline_call(&entry, f->arena), table[i].call);
    }
}

static void nothing_of_them_is_chosen(void **state) {
    fixture *f = *state;
    fill(f);
    kkt_view view = make_view(f);
    for (size_t i = 0; i < view.entry_count; i++)
        assert_string_not_equal(view.entries[i].style, "library");
    for (size_t i = 0; i < view.row_count; i++)
        assert_string_not_equal(view.rows[i].style, "library");
    const kkt_entry *entry = entry_at(f, &view, "", 64);
    assert_true(entry->best_of_problem && entry->time_us == 100);
    kkt_text header = render(f, &view, "header");
    assert_null(strstr(kkt_text_get(&header), "library"));
    kkt_text_free(&header);
}

static void the_json_has_their_ratios(void **state) {
    fixture *f = *state;
    fill(f);
    kkt_view view = make_view(f);
    kkt_text text = render(f, &view, "json");
    kkt_json *root = NULL, *schema = NULL;
    char *rules = NULL;
    size_t length = 0;
    assert_int_equal(kkt_json_parse(kkt_text_get(&text), text.length, "the export", &root, NULL),
                     KKT_OK);
    assert_int_equal(kkt_file_read(KKT_TEST_DATA "/../docs/schemas/kkttune.config-1.schema.json",
                                   1 << 20, &rules, &length, NULL),
                     KKT_OK);
    assert_int_equal(kkt_json_parse(rules, length, "the schema", &schema, NULL), KKT_OK);
    schema_check check = {.root = schema};
    schema_validate(&check, schema, root, "root");
    assert_string_equal(check.message, "");
    const kkt_json *list = kkt_json_get(root, "baselines");
    int seen = 0;
    for (const kkt_json *row = kkt_json_first(list); row != NULL; row = kkt_json_next(row)) {
        double ratio = 0.0, median = 0.0;
        bool compared = kkt_json_real(row, "ratio", &ratio);
        assert_true(kkt_json_real(kkt_json_get(row, "time_us"), "median", &median));
        assert_true(compared == (seen > 0));
        assert_true(!compared || fabs(ratio - median / 100) < 1e-9);
        assert_non_null(kkt_json_string(kkt_json_get(row, "call"), "routine"));
        seen++;
    }
    assert_int_equal(seen, 3);
    kkt_json_close(root);
    kkt_json_close(schema);
    free(rules);
    kkt_text_free(&text);
}

static void the_report_has_a_table(void **state) {
    fixture *f = *state;
    kkt_view view = make_view(f);
    kkt_text text = render(f, &view, "markdown");
    assert_null(strstr(kkt_text_get(&text), "beside a library"));
    kkt_text_free(&text);
    fill(f);
    view = make_view(f);
    text = render(f, &view, "markdown");
    const char *part = strstr(kkt_text_get(&text), "solve: beside a library");
    assert_non_null(part);
    assert_non_null(strstr(part, "routine=trsm |"));
    assert_non_null(strstr(part, "| 0.25 |"));
    assert_non_null(strstr(part, "the solution alone"));
    kkt_text_free(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(they_stand_beside_the_entries, setup, teardown),
        cmocka_unit_test_setup_teardown(calls_are_named_shortly, setup, teardown),
        cmocka_unit_test_setup_teardown(nothing_of_them_is_chosen, setup, teardown),
        cmocka_unit_test_setup_teardown(the_json_has_their_ratios, setup, teardown),
        cmocka_unit_test_setup_teardown(the_report_has_a_table, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
