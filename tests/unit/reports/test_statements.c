/* Verdicts on an article's statements follow the data: the same statement is undecided, confirmed,
 * refuted or conditional as rows are added. */
#include "fixture.h"
#include "reports/content.h"
#include "reports/statements.h"

#define FIRST "tokens=32768,heads_k=16,heads_v=64"
#define SECOND "tokens=8192,heads_k=16,heads_v=64"

/* Rows of all kernels are fresh. */
static bool all_present(void *context, const kkt_identity *id, const char **hash,
                        const char **options) {
    (void)id;
    *hash = ((fixture *)context)->hash;
    *options = NULL;
    return true;
}

static void use_kernel(fixture *f, const char *name, kkt_style_id style) {
    f->freshness.present = all_present;
    if (kkt_kernel_parse(name, &f->kernel, &f->error) != KKT_OK)
        fail_msg("%s", f->error.message);
    f->variant = kkt_kernel_variant(f->kernel, style);
    assert_non_null(f->variant);
}

static void add_time(fixture *f, const char *problem, int chunk, double us) {
    char config[32];
    snprintf(config, sizeof config, "chunk=%d", chunk);
    add_measured(f, problem, config, us - 0.1, us, us + 0.1);
}

/* The first statement whose text begins so. */
static kkt_statement statement(fixture *f, const char *begins) {
    size_t count;
    kkt_view view = make_view(f);
    const kkt_statement *all = kkt_statements_make(&view, f->arena, &count);
    for (size_t i = 0; i < count; i++)
        if (strncmp(all[i].text, begins, strlen(begins)) == 0)
            return all[i];
    fail_msg("no statement begins with '%s'", begins);
    return all[0];
}

static void assert_verdict(fixture *f, const char *begins, kkt_statement_verdict expected,
                           const char *figure) {
    kkt_statement found = statement(f, begins);
    if (found.verdict != expected || strstr(found.figures, figure) == NULL)
        fail_msg("%s: %s by %s: %s", found.text, kkt_statement_verdict_name(found.verdict),
                 found.decided_by, found.figures);
}

static void the_model_alone_decides_some(void **state) {
    fixture *f = *state;
    assert_verdict(f, "The inverse takes", KKT_STATEMENT_CONDITIONAL,
                   "C = 64: 2.6 % as counted there, 1.6 %");
    assert_verdict(f, "That layout runs", KKT_STATEMENT_CONDITIONAL,
                   "sm90: 3 and 1 by shared memory, 1 and 1 with");
    assert_verdict(f, "From C = 32 to 64", KKT_STATEMENT_CONDITIONAL, "gdn_fused: +0 B");
    /* Styles on mma.sync read no more of T than its lower triangle of blocks. */
    assert_verdict(f, "A T that goes through HBM", KKT_STATEMENT_CONDITIONAL,
                   "from C = 32 to 64: +128 B");
    assert_verdict(f, "Kernels that fuse", KKT_STATEMENT_UNDECIDED, "gdn_fused is not measured");
    assert_verdict(f, "The solver that writes T is stopped", KKT_STATEMENT_UNDECIDED,
                   "the model's limiter");
}

static void choices_confirm_and_refute(void **state) {
    fixture *f = *state;
    use_kernel(f, "gdn_fwd", KKT_STYLE_PIPELINED);
    add_time(f, FIRST, 32, 1200);
    add_time(f, FIRST, 64, 1000);
    assert_verdict(f, "Kernels that fuse", KKT_STATEMENT_CONFIRMED,
                   "gdn_fused end to end: C = 64 on 1 of 1 problems");
    add_time(f, SECOND, 32, 300);
    add_time(f, SECOND, 64, 310);
    assert_verdict(f, "Kernels that fuse", KKT_STATEMENT_CONDITIONAL,
                   "C = 64 on 1 of 2 problems, else 32");
    add_time(f, FIRST, 16, 900); /* another C: faster than all */
    assert_verdict(f, "Kernels that fuse", KKT_STATEMENT_REFUTED,
                   "C = 64 on 0 of 2 problems, else 16, 32");
    assert_string_equal(statement(f, "Kernels that fuse").decided_by, "measured");
}

static void chunk_sizes_are_compared_where_most_were_measured(void **state) {
    fixture *f = *state;
    use_kernel(f, "gdn_fwd", KKT_STYLE_PIPELINED);
    add_time(f, FIRST, 128, 100);
    add_time(f, SECOND, 16, 300);
    add_time(f, SECOND, 64, 250);
    assert_verdict(f, "The best C of all three styles", KKT_STATEMENT_CONFIRMED,
                   "gdn_fwd pipelined: C = 64 (250 us)");
}

static void the_solver_is_judged_by_its_share_of_a_copy(void **state) {
    fixture *f = *state;
    add_time(f, FIRST, 64, 105); /* 420 MB: 93 % of a copy at 4.28 TB/s */
    assert_verdict(f, "The solver that writes T is stopped", KKT_STATEMENT_CONFIRMED,
                   "C = 64: 105 us, 93 %");
    assert_verdict(f, "The solver that writes T is best", KKT_STATEMENT_UNDECIDED, "");
    add_time(f, FIRST, 128, 1000);
    assert_verdict(f, "The solver that writes T is stopped", KKT_STATEMENT_CONDITIONAL,
                   "1000 us, 10 %");
    assert_verdict(f, "The solver that writes T is best", KKT_STATEMENT_REFUTED,
                   "kkt_solve alone: C = 32 on 0 of 1 problems, else 64");
    add_time(f, FIRST, 32, 60);
    assert_verdict(f, "The solver that writes T is best", KKT_STATEMENT_CONFIRMED,
                   "kkt_solve alone: C = 32 on 1 of 1 problems");
}

/* A compiled row of the fragment style with these spills. */
static void add_compiled(fixture *f, int chunk, int threads, int64_t spills) {
    char config[64];
    int64_t candidate, build;
    snprintf(config, sizeof config, "chunk=%d,threads=%d", chunk, threads);
    kkt_identity id = identity(f, FIRST, config);
    const kkt_build_record record = {.kernel_hash = f->hash,
                                     .options = "-arch=sm_90a",
                                     .compiler = "nvrtc 13.0",
                                     .outcome = KKT_OUTCOME_COMPILED,
                                     .registers = 255,
                                     .dynamic_smem_bytes = 65536,
                                     .spill_store_bytes = spills,
                                     .spill_load_bytes = spills};
    assert_int_equal(kkt_db_candidate(f->db, &id, &candidate, &f->error), KKT_OK);
    assert_int_equal(kkt_db_put_build(f->db, candidate, &record, &build, &f->error), KKT_OK);
}

static void spills_decide_the_register_cap(void **state) {
    fixture *f = *state;
    use_kernel(f, "gdn_fwd", KKT_STYLE_FRAGMENT);
    assert_verdict(f, "One warpgroup", KKT_STATEMENT_UNDECIDED, "three tables take 384 registers");
    add_compiled(f, 64, 128, 0);
    add_compiled(f, 128, 128, 96);
    assert_verdict(f, "One warpgroup", KKT_STATEMENT_CONFIRMED, "gdn_fwd spills 192 B at least");
    add_compiled(f, 128, 256, 0); /* twice the threads: it fits */
    assert_verdict(f, "One warpgroup", KKT_STATEMENT_CONDITIONAL,
                   "C = 128, 256 threads: three tables take 192 registers; gdn_fwd spills 0 B");
    assert_string_equal(statement(f, "One warpgroup").decided_by, "compiled");
}

static void the_report_has_the_page(void **state) {
    fixture *f = *state;
    use_kernel(f, "gdn_fwd", KKT_STYLE_PIPELINED);
    add_time(f, FIRST, 32, 1200);
    add_time(f, FIRST, 64, 1000);
    kkt_view view = make_view(f);
    kkt_text text = render(f, &view, "markdown"), html = render(f, &view, "html");
    static const char *const expected[] = {
        "## The chunk size, end to end",
        "gdn\\_fused: every chunk size with the best of each kernel",
        "gdn\\_fused takes 1000 us at C = 64 against 1200 us at C = 32, the next best",
        "### What a chunk size costs each write style",
        "| 2.4 | Kernels that fuse the forward are fastest at C = 64 | confirmed | measured |",
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        if (strstr(text.data, expected[i]) == NULL)
            fail_msg("the report lacks: %s", expected[i]);
    assert_non_null(strstr(html.data, "Time of the whole pipeline by chunk size: gdn_fused"));
    kkt_text_free(&text);
    kkt_text_free(&html);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_model_alone_decides_some, setup, teardown),
        cmocka_unit_test_setup_teardown(choices_confirm_and_refute, setup, teardown),
        cmocka_unit_test_setup_teardown(chunk_sizes_are_compared_where_most_were_measured, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(the_solver_is_judged_by_its_share_of_a_copy, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(spills_decide_the_register_cap, setup, teardown),
        cmocka_unit_test_setup_teardown(the_report_has_the_page, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
