/* The files: valid against their schema, the same bytes again, nothing from outside unescaped. */
#include "fixture.h"

#include <math.h>

#include "db/recording.h"
#include "reports/header_rows.h"
#include "reports/html_files.h"
#include "schema.h"

static const char *const type_names[] = {"json", "header", "dispatch", "html", "markdown"};
#define TYPES (sizeof type_names / sizeof type_names[0])

static void add_some(fixture *f) {
    kkt_identity failed = identity(f, "", "chunk=64,threads=32,inverse=row");
    add_measured(f, "", "chunk=64,threads=128,inverse=recursive", 99, 100, 101);
    add_measured(f, "", "chunk=64,threads=256,inverse=recursive", 100.5, 102, 104);
    add_measured(f, "", "chunk=32,threads=128,inverse=recursive", 70, 71, 72);
    add_measured(f, "tokens=8192", "chunk=64,threads=64,inverse=flat", 30, 31, 32);
    add_run(f, &failed, f->hash, KKT_MEASURED, KKT_OUTCOME_RACY, "two runs differ", 1, 1, 1);
}

static kkt_json *parse(const kkt_text *text) {
    kkt_json *root = NULL;
    kkt_error error;
    if (kkt_json_parse(text->data, text->length, "export", &root, &error) != KKT_OK)
        fail_msg("%s", error.message);
    return root;
}

static kkt_json *read_schema(const char *name) {
    char path[512];
    kkt_text text = {0};
    kkt_error error;
    snprintf(path, sizeof path, "%s/../docs/schemas/%s", KKT_TEST_DATA, name);
    if (kkt_file_read(path, 1 << 20, &text.data, &text.length, &error) != KKT_OK)
        fail_msg("%s", error.message);
    kkt_json *root = parse(&text);
    free(text.data);
    return root;
}

static void validate(const kkt_text *json, const char *expected) {
    kkt_json *schema = read_schema("kkttune.config-1.schema.json"), *root = parse(json);
    schema_check check = {.root = schema};
    schema_validate(&check, schema, root, "root");
    if (strstr(check.message, expected) == NULL ||
        (expected[0] == '\0') != (check.message[0] == '\0'))
        fail_msg("expected '%s', got '%s'", expected, check.message);
    kkt_json_close(root);
    kkt_json_close(schema);
}

static void test_json_fits_schema(void **state) {
    fixture *f = *state;
    kkt_view view = make_view(f);
    kkt_text text = render(f, &view, "json");
    validate(&text, "");
    kkt_text_free(&text);
    add_some(f);
    view = make_view(f);
    text = render(f, &view, "json");
    validate(&text, "");

    /* The validator itself must be able to say no. */
    char *at = strstr(text.data, "\"measured\"");
    assert_non_null(at);
    at[1] = 'M'; /* "Measured" */
    validate(&text, "enumerated");
    kkt_text_free(&text);
}

static void test_json_members(void **state) {
    fixture *f = *state;
    add_some(f);
    kkt_view view = make_view(f);
    kkt_text text = render(f, &view, "json");
    kkt_json *root = parse(&text);
    const kkt_json *measured = NULL;
    for (const kkt_json *entry = kkt_json_first(kkt_json_get(root, "entries")); entry != NULL;
         entry = kkt_json_next(entry)) {
        int64_t chunk = 0;
        bool timed = strcmp(kkt_json_string(entry, "provenance"), "measured") == 0;
        assert_int_equal(kkt_json_get(entry, "time_us") != NULL, timed);
        assert_int_equal(kkt_json_get(entry, "measured_on") != NULL, timed);
        assert_true(!timed || strcmp(kkt_json_string(entry, "kernel"), "kkt_solve") == 0);
        const kkt_kernel *kernel = NULL;
        assert_int_equal(kkt_kernel_parse(kkt_json_string(entry, "kernel"), &kernel, NULL), 0);
        assert_true(kkt_json_int(kkt_json_get(entry, "config"), "chunk", &chunk) ==
                    (kernel->chunk_param != NULL));
        if (timed && chunk == 64 && measured == NULL)
            measured = entry;
    }
    const kkt_json *on = kkt_json_get(measured, "measured_on");
    assert_non_null(on);
    assert_string_equal(kkt_json_string(on, "gpu"), "NVIDIA H200");
    assert_string_equal(kkt_json_string(on, "driver"), "580.159");
    assert_string_equal(kkt_json_string(on, "date"), "2026-07-01");
    double median = 0, error = 0;
    assert_non_null(measured);
    assert_true(kkt_json_real(kkt_json_get(measured, "time_us"), "median", &median));
    assert_true(kkt_json_real(kkt_json_get(measured, "error"), "rel_fro", &error));
    assert_true(fabs(median - 100) < 1e-12 && fabs(error - 1.7e-3) < 1e-15);
    assert_int_equal(kkt_json_count(kkt_json_get(measured, "ties")), 1);
    assert_string_equal(kkt_json_string(kkt_json_get(measured, "problem"), "dtype"), "bf16");
    assert_string_equal(kkt_json_string(measured, "kernel_hash"), f->hash);

    const kkt_json *choice = kkt_json_first(kkt_json_get(root, "chunk_choice"));
    int64_t best = 0;
    while (strcmp(kkt_json_string(choice, "pipeline"), "kkt_solve") != 0)
        choice = kkt_json_next(choice);
    assert_true(kkt_json_int(choice, "best", &best));
    assert_int_equal(best, 64);
    assert_int_equal(kkt_json_count(kkt_json_get(choice, "curve")), 4);
    assert_non_null(strstr(kkt_json_string(choice, "why"), "fastest at C = 32 (71 us, measured)"));
    assert_non_null(strstr(kkt_json_string(choice, "why"), "pipeline is timed at several C;"));
    kkt_json_close(root);
    kkt_text_free(&text);
}

static void test_same_bytes_again_and_after_reimport(void **state) {
    fixture *f = *state;
    char recording[128];
    int64_t rows;
    add_some(f);
    kkt_view view = make_view(f);
    for (size_t i = 0; i < TYPES; i++) {
        kkt_view again = make_view(f);
        kkt_text first = render(f, &view, type_names[i]), second = render(f, &again, type_names[i]);
        assert_int_equal(first.length, second.length);
        assert_memory_equal(first.data, second.data, first.length);
        kkt_text_free(&first);
        kkt_text_free(&second);
    }

    /* Two databases filled from the same recording give the same bytes, too. */
    snprintf(recording, sizeof recording, "%s/r.jsonl", f->folder);
    assert_int_equal(kkt_recording_export(f->db, NULL, recording, &rows, &f->error), KKT_OK);
    kkt_text files[2];
    kkt_db *own = f->db;
    for (int i = 0; i < 2; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/again%d.db", f->folder, i);
        assert_int_equal(kkt_db_open(path, KKT_DB_WRITE, &f->db, &f->error), KKT_OK);
        for (int times = 0; times <= i; times++)
            assert_int_equal(kkt_recording_import(f->db, recording, &rows, &f->error), KKT_OK);
        view = make_view(f);
        assert_true(view.replayed >= 4 && view.measured == 0);
        files[i] = render(f, &view, "json");
        kkt_db_close(f->db);
    }
    f->db = own;
    assert_string_equal(files[0].data, files[1].data);
    kkt_text_free(&files[0]);
    kkt_text_free(&files[1]);
}

static size_t count_of(const char *text, const char *piece) {
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, piece)) != NULL; at++)
        count++;
    return count;
}

static const kkt_embedded_file *page_file(const char *name) {
    const kkt_embedded_file *file = kkt_html_files;
    while (file->path != NULL && strcmp(file->path, name) != 0)
        file++;
    assert_non_null(file->path);
    return file;
}

/* Takes the scripts that the build embeds out of a page: each must be there once. What is left of
 * elements named script are the data and two empty ones. */
static void take_scripts(kkt_text *page) {
    static const char *const names[] = {"chart.js", "plots.js"};
    assert_int_equal(count_of(page->data, "<script"), 3);
    assert_int_equal(count_of(page->data, "</script"), 3);
    for (size_t i = 0; i < 2; i++) {
        const char *bytes = (const char *)page_file(names[i])->bytes;
        size_t length = page_file(names[i])->length;
        char *at = strstr(page->data, bytes);
        assert_true(length > 1000 && at != NULL);
        memmove(at, at + length, strlen(at + length) + 1);
        page->length -= length;
        assert_null(strstr(page->data, bytes));
    }
    assert_int_equal(count_of(page->data, "<script>\n</script>"), 2);
}

static kkt_json *plot_data(const kkt_text *page) {
    static const char open[] = "<script type=\"application/json\" id=\"plot-data\">";
    const char *begin = strstr(page->data, open);
    assert_non_null(begin);
    begin += sizeof open - 1;
    const char *end = strstr(begin, "</script>");
    assert_non_null(end);
    kkt_json *root;
    kkt_error error;
    if (kkt_json_parse(begin, (size_t)(end - begin), "plots", &root, &error) != KKT_OK)
        fail_msg("%s", error.message);
    return root;
}

/* The n-th plot of a kind. */
static const kkt_json *plot_of(const kkt_json *root, const char *kind, int n) {
    for (const kkt_json *plot = kkt_json_first(root); plot != NULL; plot = kkt_json_next(plot))
        if (strcmp(kkt_json_string(plot, "kind"), kind) == 0 && n-- == 0)
            return plot;
    fail_msg("no plot %s", kind);
    return NULL;
}

/* The first plot whose title begins so. */
static const kkt_json *plot_titled(const kkt_json *root, const kkt_text *page, const char *title) {
    char label[160];
    snprintf(label, sizeof label, "aria-label=\"%s", title);
    const char *at = strstr(page->data, label);
    assert_non_null(at);
    while (strncmp(at, "plot-", 5) != 0)
        at--;
    long number = strtol(at + 5, NULL, 10);
    const kkt_json *plot = kkt_json_first(root);
    while (number-- > 0)
        plot = kkt_json_next(plot);
    return plot;
}

static void test_plots_hold_the_numbers(void **state) {
    fixture *f = *state;
    add_some(f);
    kkt_view view = make_view(f);
    kkt_text page = render(f, &view, "html");
    kkt_json *root = plot_data(&page);
    assert_int_equal(kkt_json_count(root), count_of(page.data, "<canvas"));

    /* The first curve is the default problem's: 16 is predicted alone, 32 and 64 are measured. */
    static const char *const keys[] = {"low", "measured", "high"};
    static const double at_64[] = {99, 100, 101};
    const kkt_json *curve = plot_titled(root, &page, "Time by chunk size: kkt_solve");
    for (size_t k = 0; k < 3; k++) {
        const kkt_json *value = kkt_json_first(kkt_json_get(curve, keys[k]));
        double real;
        assert_false(kkt_json_as_real(value, &real)); /* null */
        value = kkt_json_next(kkt_json_next(value));
        assert_true(kkt_json_as_real(value, &real) && fabs(real - at_64[k]) < 1e-12);
    }

    /* All measured configurations of that problem, the fastest of a chunk size first. */
    static const double measured[] = {71, 100, 102};
    static const char *const threads[] = {"threads=128", "threads=128", "threads=256"};
    const kkt_json *series = kkt_json_first(kkt_json_get(plot_of(root, "scatter", 0), "series"));
    size_t seen = 0;
    for (; series != NULL; series = kkt_json_next(series))
        for (const kkt_json *point = kkt_json_first(kkt_json_get(series, "points")); point != NULL;
             point = kkt_json_next(point), seen++) {
            double x = 0, y = 0;
            int64_t chunk = 0;
            assert_in_range(seen, 0, 2);
            assert_true(kkt_json_real(point, "x", &x) && fabs(x - measured[seen]) < 1e-12);
            assert_true(kkt_json_real(point, "y", &y) && fabs(y - 150) < 1e-12);
            assert_true(kkt_json_int(series, "chunk", &chunk) && chunk == (seen == 0 ? 32 : 64));
            assert_non_null(strstr(kkt_json_string(point, "config"), threads[seen]));
            assert_null(strstr(kkt_json_string(point, "config"), "inverse")); /* all agree */
        }
    assert_int_equal(seen, 3);
    kkt_json_close(root);
    kkt_text_free(&page);

    /* Its summary: equal predictions, so that the text of the configuration chooses. */
    kkt_text markdown = render(f, &view, "markdown");
    assert_non_null(strstr(markdown.data, "All 3 configurations with a time"));
    assert_non_null(strstr(markdown.data, "| 2 | 100 | 102 | 102 | 1.50 | 1.47 to 1.50 | 0.0 % |"));
    kkt_text_free(&markdown);
}

static void test_hostile_names_are_escaped(void **state) {
    fixture *f = *state;
    static const char evil[] = "<script>alert(1)</script>*/ \" # | `x`";
    kkt_identity id = identity(f, "", "chunk=64");
    id.kernel = evil;
    add_run(f, &id, f->hash, KKT_MEASURED, KKT_OUTCOME_OK, NULL, 1, 2, 3);
    id.config = "chunk=32,<b>=1";
    add_run(f, &id, f->hash, KKT_MEASURED, KKT_OUTCOME_CRASHED, "<img src=x onerror=y>\n# x", 1, 1,
            1);
    static const char breakout[] = "</script><!--<script>alert(2)&amp;";
    char config[64];
    snprintf(config, sizeof config, "chunk=64,x=%s", breakout);
    id.config = config;
    add_run(f, &id, f->hash, KKT_MEASURED, KKT_OUTCOME_OK, NULL, 2, 3, 4);
    kkt_view view = make_view(f);
    kkt_text text = render(f, &view, "html");
    kkt_json *data = plot_data(&text);
    const kkt_json *series = kkt_json_first(kkt_json_get(plot_of(data, "scatter", 0), "series"));
    const kkt_json *point = kkt_json_next(kkt_json_first(kkt_json_get(series, "points")));
    assert_string_equal(kkt_json_string(point, "config") + strlen("x="), breakout);
    kkt_json_close(data);
    take_scripts(&text);
    assert_null(strstr(text.data, "<script>alert"));
    assert_null(strstr(text.data, "<!--"));
    assert_null(strstr(text.data, "<img"));
    assert_null(strstr(text.data, "<b>"));
    assert_non_null(strstr(text.data, "&lt;script&gt;"));
    assert_non_null(strstr(text.data, "\\u003c/script\\u003e\\u003c!--"));
    kkt_text_free(&text);
    text = render(f, &view, "markdown");
    assert_null(strstr(text.data, "<script"));
    assert_null(strstr(text.data, "<img"));
    assert_null(strstr(text.data, "\n# x"));
    kkt_text_free(&text);
    /* A kernel that this program does not have is no identifier of the header. */
    text = render(f, &view, "header");
    assert_null(strstr(text.data, "alert"));
    kkt_text_free(&text);
    text = render(f, &view, "json");
    validate(&text, "");
    kkt_text_free(&text);
}

static void turn_to(fixture *f, kkt_style_id style) {
    assert_int_equal(kkt_kernel_parse("gemm", &f->kernel, &f->error), KKT_OK);
    f->variant = kkt_kernel_variant(f->kernel, style);
}

/* A row of the header says that another style is faster only by times that compare. */
static void test_fastest_style_of_a_row(void **state) {
    fixture *f = *state;
    turn_to(f, KKT_STYLE_FRAGMENT);
    add_measured(f, "", "", 499, 500, 501); /* the header's style */
    add_measured(f, "m=2048", "", 399, 400, 401);
    kkt_identity stale = identity(f, "m=8192", "");
    add_run(f, &stale, OLD_HASH, KKT_MEASURED, KKT_OUTCOME_OK, NULL, 720, 721, 722);
    kkt_identity noisy = identity(f, "m=1024", "");
    add_run(f, &noisy, f->hash, KKT_MEASURED, KKT_OUTCOME_NOISY, "interval 12 %", 90, 100, 110);
    turn_to(f, KKT_STYLE_WARP_SPECIALIZED);
    add_measured(f, "", "", 599, 600, 601);
    add_measured(f, "m=2048", "", 359, 360, 361);
    add_measured(f, "m=8192", "", 800, 801, 802);
    add_measured(f, "m=1024", "", 119, 120, 121);
    add_measured(f, "m=4000,n=4000", "", 1.4, 1.5, 1.6); /* far below any prediction */
    add_measured(f, "m=4000,n=4096", "", 9998, 9999, 10000);
    kkt_view view = make_view(f);
    kkt_text text = render(f, &view, "header");
    assert_non_null(strstr(text.data, "0, 500.000000, 1},"));
    assert_non_null(strstr(text.data, "0, 400.000000, 0},"));
    assert_non_null(strstr(text.data, "1, 721.000000, 1},")); /* 801 is fresh, not faster */
    assert_non_null(strstr(text.data, "0, 100.000000, 1},"));
    int faster = 0, count = 0;
    for (const char *row = text.data; (row = strstr(row, ", 0.000000, ")) != NULL; row++, count++)
        faster += row[12] == '0'; /* rows without a time of their own */
    assert_true(faster >= 1 && faster < count);
    kkt_text_free(&text);

    /* What the header leaves out is told with the same rule. */
    assert_string_equal(kkt_header_standing(&view, "gemm")->style, "fragment");
    size_t left_out = kkt_header_left_out(&view, "gemm", "warp_specialized");
    assert_true(left_out >= 2); /* m=2048 and m=4000,n=4000 */
    assert_int_equal(kkt_header_left_out(&view, "gemm", "fragment"), 0);
}

static void test_html_is_self_contained(void **state) {
    fixture *f = *state;
    add_some(f);
    kkt_view view = make_view(f);
    kkt_text text = render(f, &view, "html");
    static const char *const forbidden[] = {"http:", "https:", "src=", "href=", "@import", "url("};
    take_scripts(&text);
    for (size_t i = 0; i < sizeof forbidden / sizeof forbidden[0]; i++)
        if (strstr(text.data, forbidden[i]) != NULL)
            fail_msg("the page holds '%s'", forbidden[i]);
    assert_non_null(strstr(text.data, "default-src 'none'"));
    assert_non_null(strstr(text.data, "<noscript><p>"));
    assert_non_null(strstr(text.data, "<canvas id=\"plot-0\" role=\"img\" aria-label=\"Time"));
    kkt_text_free(&text);
    const char *library = (const char *)page_file("chart.js")->bytes;
    assert_null(strstr(library, "<!--")); /* the page may hold it as it is */
    assert_non_null(strstr(library, "Released under the MIT License"));
}

/* Everything the page says in a table cell is in the Markdown, too. */
static void test_html_and_markdown_agree(void **state) {
    fixture *f = *state;
    add_some(f);
    kkt_view view = make_view(f);
    kkt_text html = render(f, &view, "html"), markdown = render(f, &view, "markdown");
    const char *said = kkt_text_get(&markdown);
    take_scripts(&html);
    size_t html_rows = count_of(html.data, "<tr"), markdown_rows = 0;
    for (const char *at = said; (at = strstr(at, "\n|")) != NULL; at++)
        markdown_rows += at[2] != '-';
    assert_int_equal(html_rows, markdown_rows);
    assert_non_null(strstr(said, "two runs differ"));
    /* The made-up bound of 75 us is above the 71 us at C = 32: the report owns up to it. */
    assert_non_null(strstr(said, "At C = 32 the lower bound (75 us) is above the measured "
                                 "time (71 us)"));
    assert_non_null(strstr(said, "over the 3 entries with a time"));
    assert_non_null(strstr(said, "Ties of"));
    assert_non_null(strstr(said, ", style materialized, C = ")); /* whose ties */
    assert_non_null(strstr(said, "| Problem | C | Style | Configuration |"));
    kkt_text_free(&html);
    kkt_text_free(&markdown);
}

/* Entries without device code, made up: every other of a kernel's, then all of them. */
static void test_a_kernel_has_one_part(void **state) {
    fixture *f = *state;
    add_some(f);
    kkt_view view = make_view(f);
    for (int all = 0; all < 2; all++) {
        size_t changed = 0;
        for (size_t i = 0; i < view.entry_count; i++) {
            kkt_entry *entry = &view.entries[i];
            if (strcmp(entry->kernel, "kkt_solve") == 0)
                entry->model_only = changed++ % 2 == 0 || all;
        }
        assert_true(changed > 2);
        kkt_text markdown = render(f, &view, "markdown");
        assert_int_equal(count_of(markdown.data, "\n## kkt\\_solve\n"), 1);
        assert_int_equal(count_of(markdown.data, "no device code yet"), all);
        kkt_text_free(&markdown);
    }
}

static void test_written_files(void **state) {
    fixture *f = *state;
    static const char *const names[] = {"kkttune_sm90_h200.json", "kkttune_sm90_h200.h",
                                        "kkttune_dispatch.h", "report_sm90_h200.html",
                                        "report_sm90_h200.md"};
    char folder[128], path[256];
    kkt_view view = make_view(f);
    snprintf(folder, sizeof folder, "%s/out/deep", f->folder);
    assert_int_equal(kkt_report_write(&view, folder, "sm90_h200", NULL, NULL, NULL, &f->error),
                     KKT_OK);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        assert_true(kkt_file_exists(path));
    }
    const kkt_report_type *type;
    assert_int_equal(kkt_report_parse("pdf", &type, &f->error), KKT_ERR_INPUT);
    assert_non_null(strstr(f->error.message, "markdown"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_json_fits_schema, setup, teardown),
        cmocka_unit_test_setup_teardown(test_json_members, setup, teardown),
        cmocka_unit_test_setup_teardown(test_same_bytes_again_and_after_reimport, setup, teardown),
        cmocka_unit_test_setup_teardown(test_plots_hold_the_numbers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_hostile_names_are_escaped, setup, teardown),
        cmocka_unit_test_setup_teardown(test_fastest_style_of_a_row, setup, teardown),
        cmocka_unit_test_setup_teardown(test_html_is_self_contained, setup, teardown),
        cmocka_unit_test_setup_teardown(test_html_and_markdown_agree, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_kernel_has_one_part, setup, teardown),
        cmocka_unit_test_setup_teardown(test_written_files, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
