/* Which entry wins, what is a tie, what is stale, and what fills the gaps. */
#include "fixture.h"

#include <math.h>

#include "model/predict.h"
#include "reports/canonical.h"
#include "reports/ledger_share.h"
#include "reports/modelled.h"

static void assert_config_has(const kkt_entry *entry, const char *key, const char *value) {
    if (!kkt_pair_is(entry->config, key, value))
        fail_msg("%s=%s is not in %s", key, value, entry->config);
}

static void test_nothing_stored(void **state) {
    fixture *f = *state;
    kkt_view view = make_view(f);
    static const int64_t chunks[] = {16, 32, 64, 128};
    int problems = 0;
    for (; f->kernel->default_problems[problems] != NULL; problems++)
        for (size_t c = 0; c < 4; c++) {
            const kkt_entry *entry =
                entry_at(f, &view, f->kernel->default_problems[problems], chunks[c]);
            assert_int_equal(entry->provenance, KKT_PREDICTED);
            assert_false(kkt_entry_measured(entry));
            assert_true(isfinite(entry->predicted_us) && entry->predicted_us > 0);
            assert_true(entry->threads >= 32 && entry->registers >= 1);
            assert_string_equal(entry->kernel_hash, f->hash);
        }
    assert_int_equal(problems, 5);
    assert_int_equal(view.candidates, 0);
}

static void test_smallest_median_wins_and_ties(void **state) {
    fixture *f = *state;
    add_measured(f, "", "chunk=64,threads=128,inverse=recursive", 99, 100, 101);
    add_measured(f, "", "chunk=64,threads=256,inverse=recursive", 100.5, 102, 104);
    add_measured(f, "", "chunk=64,threads=64,inverse=recursive", 120, 121, 122);
    add_measured(f, "", "chunk=32,threads=128,inverse=recursive", 70, 71, 72);
    kkt_view view = make_view(f);
    const kkt_entry *entry = entry_at(f, &view, "", 64);
    assert_int_equal(lround(entry->time_us), 100);
    assert_config_has(entry, "threads", "128");
    assert_int_equal(entry->tie_count, 1);
    assert_true(kkt_pair_is(entry->ties[0], "threads", "256"));
    assert_false(entry->best_of_problem);
    assert_true(entry_at(f, &view, "", 32)->best_of_problem);
    assert_int_equal(entry->registers, 96);
    assert_int_equal(entry->registers_predicted, 90);
    assert_int_equal(entry->smem_bytes, 33792);
    assert_int_equal(view.measured, 4);
    /* The header's macros and a look-up stand on C = 64, not on the fastest C. */
    assert_ptr_equal(kkt_view_standing(&view, "kkt_solve", entry->problem, 0), entry);
}

/* That one chunk size was compiled and another not makes it none the faster; within a chunk size
 * what was compiled stands, and of two that take the same time. */
static void test_untimed_chunks_are_compared_by_time(void **state) {
    fixture *f = *state;
    kkt_identity id = identity(f, "", "chunk=16,threads=128,inverse=recursive");
    add_build(f, &id, f->hash);
    kkt_view view = make_view(f);
    kkt_entry compiled = *entry_at(f, &view, "", 16), predicted = *entry_at(f, &view, "", 64);
    assert_int_equal(kkt_entry_rank(&compiled), KKT_RANK_COMPILED);
    assert_int_equal(kkt_entry_rank(&predicted), KKT_RANK_PREDICTED);
    compiled.predicted_us = 150;
    predicted.predicted_us = 100;
    assert_true(kkt_entry_compare(&compiled, &predicted) < 0);
    assert_true(kkt_entry_compare_chunks(&predicted, &compiled) < 0);
    predicted.predicted_us = 200;
    assert_true(kkt_entry_compare_chunks(&compiled, &predicted) < 0);
    predicted.predicted_us = 150;
    assert_true(kkt_entry_compare_chunks(&compiled, &predicted) < 0);
    predicted.predicted_us = 100;
    compiled.spill_bytes = 8;
    assert_true(kkt_entry_compare_chunks(&predicted, &compiled) < 0);
    compiled.time_us = 170; /* a time is worth more than what is expected */
    assert_true(kkt_entry_compare_chunks(&compiled, &predicted) < 0);
}

/* Over a whole view: no row without a time is expected to be slower than another chunk size's. */
static void test_best_of_problem_is_the_fastest_chunk(void **state) {
    fixture *f = *state;
    kkt_identity compiled = identity(f, "", "chunk=16,threads=128,inverse=recursive");
    add_build(f, &compiled, f->hash);
    kkt_view view = make_view(f);
    const kkt_entry *best = NULL;
    double least = 1e9;
    for (size_t i = 0; i < view.entry_count; i++) {
        const kkt_entry *entry = &view.entries[i];
        bool own = strcmp(entry->kernel, "kkt_solve") == 0 && entry->problem_rank == 0;
        if (own && entry->predicted_us < least)
            least = entry->predicted_us;
        if (own && entry->best_of_problem) {
            assert_null(best);
            best = entry;
        }
    }
    assert_non_null(best);
    assert_true(best->predicted_us <= least);
    assert_true(best->chunk != 16);
    assert_int_equal(kkt_entry_rank(best), KKT_RANK_PREDICTED);
}

/* The fake backend's times stand where there are no others, and nowhere else. */
/* What the model would take, but is known to be wrong, gives way to the next it likes. */
static void test_failures_are_passed_over(void **state) {
    fixture *f = *state;
    kkt_view view = make_view(f);
    const kkt_entry *liked = entry_at(f, &view, "", 64);
    assert_int_equal(liked->provenance, KKT_PREDICTED);
    const kkt_identity id = identity(f, "", liked->config);
    assert_string_equal(id.config, liked->config);
    add_run(f, &id, f->hash, KKT_MEASURED, KKT_OUTCOME_WRONG_RESULT, "wrong", 1, 2, 3);
    view = make_view(f);
    const kkt_entry *other = entry_at(f, &view, "", 64);
    assert_int_equal(other->provenance, KKT_PREDICTED);
    assert_string_not_equal(other->config, liked->config);
    assert_true(other->predicted_us >= liked->predicted_us);
    f->hash[0] = f->hash[0] == '0' ? '1' : '0'; /* the source has changed since */
    view = make_view(f);
    assert_string_equal(entry_at(f, &view, "", 64)->config, liked->config);
}

static void test_made_up_times_leave_no_trace(void **state) {
    fixture *f = *state;
    kkt_identity id = identity(f, "", "chunk=64,threads=256,inverse=recursive");
    kkt_run_record made_up = {.provenance = KKT_MEASURED,
                              .outcome = KKT_OUTCOME_OK,
                              .gpu = "fake",
                              .date = "2026-07-02T10:00:00Z",
                              .policy = "seed=1",
                              .time_us = 2,
                              .time_low_us = 1,
                              .time_high_us = 3};
    kkt_build_record none = {
        .kernel_hash = f->hash, .options = "", .outcome = KKT_OUTCOME_COMPILED, .registers = 7};
    int64_t candidate, build, run;
    assert_int_equal(kkt_db_candidate(f->db, &id, &candidate, &f->error), KKT_OK);
    assert_int_equal(kkt_db_put_build(f->db, candidate, &none, &build, &f->error), KKT_OK);
    assert_int_equal(kkt_db_put_run(f->db, build, &made_up, &run, &f->error), KKT_OK);
    kkt_view view = make_view(f);
    assert_int_equal(lround(entry_at(f, &view, "", 64)->time_us), 2);
    assert_int_equal(view.measured, 1);
    assert_int_equal(view.compiled, 0); /* each candidate is counted once */
    assert_true(view.made_up);
    assert_string_equal(kkt_entry_shown(entry_at(f, &view, "", 64)), "fake");
    assert_string_equal(kkt_entry_provenance(entry_at(f, &view, "", 64)), "measured");
    const struct {
        const char *type, *says;
    } shown[] = {{"header", "#define KKTTUNE_SM90_KKT_SOLVE_PROVENANCE \"fake\"\n"},
                 {"header", "\n/* Times are fake"},
                 {"markdown", "1 with a fake time"},
                 {"markdown", "| fake |"},
                 {"json", "\"measured\""}}; /* its words are fixed */
    for (size_t i = 0; i < sizeof shown / sizeof shown[0]; i++) {
        kkt_text text = render(f, &view, shown[i].type);
        assert_non_null(strstr(text.data, shown[i].says));
        kkt_text_free(&text);
    }

    add_measured(f, "", "chunk=64,threads=128,inverse=recursive", 99, 100, 101);
    view = make_view(f);
    assert_false(view.made_up);
    assert_string_equal(kkt_entry_shown(entry_at(f, &view, "", 64)), "measured");
    assert_int_equal(lround(entry_at(f, &view, "", 64)->time_us), 100);
    assert_int_equal(view.measured, 1);
    for (size_t i = 0; i < view.entry_count; i++)
        assert_true(view.entries[i].gpu == NULL || strcmp(view.entries[i].gpu, "fake") != 0);
}

static void test_equal_times_break_by_text(void **state) {
    fixture *f = *state;
    add_measured(f, "", "chunk=64,threads=64", 99, 100, 101);
    add_measured(f, "", "chunk=64,threads=128", 99, 100, 101);
    kkt_view view = make_view(f);
    assert_config_has(entry_at(f, &view, "", 64), "threads", "128");
}

/* However fast it was: no consumer of an export could use it. */
static void test_what_no_longer_parses_stands_for_nothing(void **state) {
    fixture *f = *state;
    kkt_identity id = identity(f, "", "chunk=64");
    id.config = "chunk=64,bygone=1";
    add_run(f, &id, f->hash, KKT_MEASURED, KKT_OUTCOME_OK, NULL, 1, 2, 3);
    kkt_view view = make_view(f);
    const kkt_entry *entry = entry_at(f, &view, "", 64);
    assert_int_equal(entry->provenance, KKT_PREDICTED);
    assert_false(kkt_pair_is(entry->config, "bygone", "1"));
    assert_int_equal(view.candidates, 1);
    kkt_text json = render(f, &view, "json");
    assert_null(strstr(json.data, "bygone"));
    kkt_text_free(&json);
}

static void test_stale_is_kept_and_marked(void **state) {
    fixture *f = *state;
    kkt_identity fast = identity(f, "", "chunk=64,threads=128");
    kkt_identity slow = identity(f, "", "chunk=64,threads=256");
    add_run(f, &fast, OLD_HASH, KKT_REPLAYED, KKT_OUTCOME_OK, NULL, 79, 80, 81);
    kkt_view view = make_view(f);
    const kkt_entry *entry = entry_at(f, &view, "", 64);
    assert_string_equal(kkt_entry_provenance(entry), "stale");
    assert_non_null(entry->stale_reason);
    assert_string_equal(entry->kernel_hash, OLD_HASH);
    assert_int_equal(lround(entry->time_us), 80);
    assert_int_equal(view.stale, 1);

    kkt_text json = render(f, &view, "json");
    assert_non_null(strstr(json.data, "\"provenance\":\t\"stale\""));
    assert_non_null(strstr(json.data, "\"stale_reason\":"));
    kkt_text_free(&json);

    /* A compiled build does not push the old measurement out; a fresh measurement does, slower or
     * not. */
    add_build(f, &slow, f->hash);
    view = make_view(f);
    assert_string_equal(kkt_entry_provenance(entry_at(f, &view, "", 64)), "stale");
    add_run(f, &slow, f->hash, KKT_MEASURED, KKT_OUTCOME_OK, NULL, 89, 90, 91);
    view = make_view(f);
    entry = entry_at(f, &view, "", 64);
    assert_string_equal(kkt_entry_provenance(entry), "measured");
    assert_int_equal(lround(entry->time_us), 90);
    assert_int_equal(entry->tie_count, 0);
}

static void test_compiled_before_predicted(void **state) {
    fixture *f = *state;
    kkt_identity id = identity(f, "tokens=4096", "chunk=64,threads=64");
    add_build(f, &id, f->hash);
    kkt_view view = make_view(f);
    const kkt_entry *entry = entry_at(f, &view, "tokens=4096", 64);
    assert_string_equal(kkt_entry_provenance(entry), "compiled");
    assert_int_equal(entry->registers, 96);
    assert_false(kkt_entry_measured(entry));
    /* A problem that is no default one has its other chunks from the model. */
    assert_string_equal(kkt_entry_provenance(entry_at(f, &view, "tokens=4096", 16)), "predicted");
}

/* Nothing timed and the same prediction: the one that says least, whatever its text. */
static void test_equal_predictions_prefer_the_defaults(void **state) {
    fixture *f = *state;
    static const char *const configs[] = {"chunk=64,assemble_fused=0", "chunk=64",
                                          "chunk=64,assemble_fused=0,negate_early=0"};
    for (size_t i = 0; i < sizeof configs / sizeof configs[0]; i++) {
        kkt_identity id = identity(f, "tokens=4096", configs[i]);
        add_build(f, &id, f->hash);
    }
    kkt_view view = make_view(f);
    const kkt_entry *entry = entry_at(f, &view, "tokens=4096", 64);
    assert_string_equal(kkt_entry_provenance(entry), "compiled");
    assert_string_equal(entry->config, canonical(f, &f->variant->params, "chunk=64"));
    assert_int_equal(entry->departures, 2); /* couple and threads */
}

static double predicted(const kkt_variant *variant, const kkt_values *problem,
                        const kkt_values *config, const kkt_arch *arch) {
    char reason[320];
    kkt_footprint footprint;
    kkt_prediction prediction;
    if (!variant->applicable(problem, config, arch, reason, sizeof reason))
        return (double)INFINITY;
    memset(&footprint, 0, sizeof footprint);
    variant->footprint(problem, config, arch, &footprint);
    kkt_predict(&footprint, arch, kkt_device_first(arch), NULL, &prediction);
    return prediction.infeasible == KKT_FEASIBLE && !prediction.spills ? prediction.predicted_us
                                                                       : (double)INFINITY;
}

/* What the model likes best leaves a default only where that gains something. */
static void test_the_model_departs_for_a_reason(void **state) {
    fixture *f = *state;
    static const char *const archs[] = {"sm80", "sm89", "sm90", "sm120"};
    static const int64_t chunks[] = {16, 32, 64, 128};
    int departed = 0;
    for (size_t a = 0; a < sizeof archs / sizeof archs[0]; a++)
        for (size_t c = 0; c < sizeof chunks / sizeof chunks[0]; c++) {
            const kkt_arch *arch = kkt_arch_find(archs[a]);
            kkt_values problem, config;
            kkt_params_defaults(&f->kernel->problem, &problem);
            assert_true(kkt_modelled_best(f->kernel, f->variant, arch, kkt_device_first(arch),
                                          &problem, chunks[c], &config));
            double best = predicted(f->variant, &problem, &config, arch);
            for (size_t p = 0; p < f->variant->params.count; p++) {
                const kkt_param *param = &f->variant->params.params[p];
                kkt_values other = config;
                other.v[p] = param->fallback;
                if (other.v[p] == config.v[p] || strcmp(param->name, "chunk") == 0)
                    continue;
                departed++;
                if (predicted(f->variant, &problem, &other, arch) <= best)
                    fail_msg("%s, chunk %lld: %s gains nothing", archs[a], (long long)chunks[c],
                             param->name);
            }
        }
    assert_true(departed > 0);
}

static void test_failures_never_win(void **state) {
    fixture *f = *state;
    kkt_identity wrong = identity(f, "", "chunk=64,threads=64");
    kkt_identity noisy = identity(f, "", "chunk=64,threads=256");
    add_run(f, &wrong, f->hash, KKT_MEASURED, KKT_OUTCOME_WRONG_RESULT,
            "rel_fro 0.31 above 0.004 on case tail", 1, 1, 1);
    add_run(f, &noisy, f->hash, KKT_MEASURED, KKT_OUTCOME_NOISY, "interval 12 %", 40, 50, 60);
    kkt_view view = make_view(f);
    const kkt_entry *entry = entry_at(f, &view, "", 64);
    assert_true(entry->noisy);
    assert_int_equal(lround(entry->time_us), 50);
    assert_int_equal(view.reject_count, 2);
    add_measured(f, "", "chunk=64,threads=128", 99, 100, 101);
    view = make_view(f);
    entry = entry_at(f, &view, "", 64);
    assert_false(entry->noisy);
    assert_int_equal(lround(entry->time_us), 100);
}

/* A row that was stored before a problem's texts became one is a result of that one problem. */
static void test_texts_of_one_problem(void **state) {
    fixture *f = *state;
    assert_int_equal(kkt_kernel_parse("gemv", &f->kernel, &f->error), KKT_OK);
    f->variant = f->kernel->variants[0];
    add_measured(f, "m=64,k=256,lda=256", "", 9, 10, 11);
    add_measured(f, "m=64,k=256", "", 12, 13, 14);
    kkt_view view = make_view(f);
    int timed = 0;
    for (size_t i = 0; i < view.entry_count; i++)
        timed += kkt_entry_measured(&view.entries[i]);
    assert_int_equal(timed, 1);
    assert_int_equal(lround(entry_at(f, &view, "m=64,k=256", 0)->time_us), 10);
}

static void test_rejects_are_grouped_by_wording(void **state) {
    fixture *f = *state;
    static const char *const configs[] = {"threads=32", "threads=64", "threads=128"};
    for (int i = 0; i < 3; i++) {
        kkt_identity id = identity(f, "", configs[i]);
        int64_t candidate;
        char reason[64];
        snprintf(reason, sizeof reason, "needs %d bytes, %s", 1000 + i,
                 i < 2 ? "too many" : "not aligned");
        assert_int_equal(kkt_db_candidate(f->db, &id, &candidate, &f->error), KKT_OK);
        assert_int_equal(
            kkt_db_set_outcome(f->db, candidate, KKT_OUTCOME_REJECTED, reason, &f->error), KKT_OK);
    }
    /* A row may stand for many, and a failure comes before all that was only turned down. */
    kkt_identity many = identity(f, "tokens=8192", "threads=32");
    kkt_identity wrong = identity(f, "tokens=8192", "threads=64");
    int64_t candidate;
    assert_int_equal(kkt_db_candidate(f->db, &many, &candidate, &f->error), KKT_OK);
    assert_int_equal(kkt_db_set_outcome(f->db, candidate, KKT_OUTCOME_REJECTED,
                                        "needs 9 bytes, too many (720 configurations)", &f->error),
                     KKT_OK);
    kkt_view view = make_view(f);
    assert_int_equal(view.reject_count, 2);
    assert_int_equal(view.rejects[0].count, 722);
    add_run(f, &wrong, f->hash, KKT_MEASURED, KKT_OUTCOME_WRONG_RESULT, "off (by far)", 1, 1, 1);
    kkt_view again = make_view(f);
    assert_int_equal(again.reject_count, 3);
    assert_string_equal(again.rejects[0].outcome, "wrong_result");
    assert_string_equal(again.rejects[0].reason, "off (by far)");
    assert_string_equal(view.rejects[0].outcome, "rejected");
    assert_non_null(strstr(view.rejects[0].reason, "too many"));
    assert_int_equal(view.rejects[1].count, 1);
}

static void test_share_of_the_inverse(void **state) {
    (void)state;
    /* 1315 multiply-adds a token of the recursion to base 16 against 81920 of the rest. */
    double share = kkt_ledger_share("base=16,chunk=64,inverse=recursive", "dk=128");
    assert_true(fabs(share - 1315.0 / (1315.0 + 81920.0)) < 1e-12);
    share = kkt_ledger_share("base=16,chunk=64,inverse=flat", "dk=128");
    assert_true(fabs(share - (67776.0 / 64) / (67776.0 / 64 + 81920.0)) < 1e-12);
    assert_true(isnan(kkt_ledger_share("chunk=64", "dk=128")));
}

/* The best time is only that of the style that was timed, where another one is expected to be
 * faster. */
static void test_untimed_style(void **state) {
    fixture *f = *state;
    assert_int_equal(kkt_kernel_parse("gemm", &f->kernel, &f->error), KKT_OK);
    f->variant = kkt_kernel_variant(f->kernel, KKT_STYLE_FRAGMENT);
    add_measured(f, "", "", 400, 401, 402);
    add_measured(f, "m=512", "", 9, 10, 11); /* faster than any style is predicted to be */
    kkt_view view = make_view(f);
    const kkt_entry *best =
        kkt_view_standing(&view, "gemm", canonical(f, &f->kernel->problem, ""), 0);
    assert_int_equal(lround(best->time_us), 401);
    const kkt_entry *untimed = kkt_view_untimed(&view, best);
    assert_non_null(untimed);
    assert_string_equal(untimed->style, "warp_specialized");
    assert_false(kkt_entry_measured(untimed));
    kkt_text text = render(f, &view, "markdown");
    assert_non_null(strstr(kkt_text_get(&text), "but nothing of style warp"));
    kkt_text_free(&text);
    best = kkt_view_standing(&view, "gemm", canonical(f, &f->kernel->problem, "m=512"), 0);
    assert_null(kkt_view_untimed(&view, best));

    f->variant = kkt_kernel_variant(f->kernel, KKT_STYLE_WARP_SPECIALIZED);
    add_measured(f, "", "", 410, 411, 412); /* timed, and no better than the other */
    view = make_view(f);
    best = kkt_view_standing(&view, "gemm", canonical(f, &f->kernel->problem, ""), 0);
    untimed = kkt_view_untimed(&view, best);
    assert_true(untimed == NULL || strcmp(untimed->style, "warp_specialized") != 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_nothing_stored, setup, teardown),
        cmocka_unit_test_setup_teardown(test_smallest_median_wins_and_ties, setup, teardown),
        cmocka_unit_test_setup_teardown(test_untimed_chunks_are_compared_by_time, setup, teardown),
        cmocka_unit_test_setup_teardown(test_best_of_problem_is_the_fastest_chunk, setup, teardown),
        cmocka_unit_test_setup_teardown(test_failures_are_passed_over, setup, teardown),
        cmocka_unit_test_setup_teardown(test_made_up_times_leave_no_trace, setup, teardown),
        cmocka_unit_test_setup_teardown(test_equal_times_break_by_text, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stale_is_kept_and_marked, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_no_longer_parses_stands_for_nothing, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_compiled_before_predicted, setup, teardown),
        cmocka_unit_test_setup_teardown(test_equal_predictions_prefer_the_defaults, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_the_model_departs_for_a_reason, setup, teardown),
        cmocka_unit_test_setup_teardown(test_failures_never_win, setup, teardown),
        cmocka_unit_test_setup_teardown(test_texts_of_one_problem, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rejects_are_grouped_by_wording, setup, teardown),
        cmocka_unit_test(test_share_of_the_inverse),
        cmocka_unit_test_setup_teardown(test_untimed_style, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
