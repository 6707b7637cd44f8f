/* What a parameter is worth comes from pairs that differ in it alone. */
#include "fixture.h"

#include <math.h>

#include "reports/contrast.h"

static kkt_contrasts find(fixture *f, const kkt_view *view, const char *param, const char *with,
                          const char *without) {
    const kkt_contrast_query query = {.kernel = f->kernel->name,
                                      .style = kkt_style_get(f->variant->style)->name,
                                      .chunk = 64,
                                      .param = param,
                                      .with = with,
                                      .without = without};
    kkt_contrasts contrasts;
    kkt_contrasts_find(view, &query, f->arena, &contrasts);
    return contrasts;
}

static bool near(double a, double b) {
    return fabs(a - b) < 1e-9;
}

static void assert_says(fixture *f, const kkt_view *view, const char *text, bool said) {
    kkt_text page = render(f, view, "markdown");
    if ((strstr(page.data, text) != NULL) != said)
        fail_msg("'%s' is %s: %s", text, said ? "missing" : "said", page.data);
    kkt_text_free(&page);
}

/* The best of one value and the best of the other differ in two parameters: nothing follows. */
static void confounded_results_are_no_pair(void **state) {
    fixture *f = *state;
    add_measured(f, "", "chunk=64,threads=128,block_pad=0", 99, 100, 101);
    add_measured(f, "", "chunk=64,threads=64,block_pad=1", 132, 133, 134);
    add_measured(f, "tokens=8192", "chunk=64,threads=128,block_pad=1", 50, 51, 52);
    add_measured(f, "", "chunk=32,threads=128,block_pad=1", 50, 51, 52);
    kkt_view view = make_view(f);
    kkt_contrasts contrasts = find(f, &view, "block_pad", "1", "0");
    assert_int_equal(contrasts.count, 0);
    assert_true(isnan(kkt_contrasts_median(&contrasts)));
    assert_says(f, &view, "open: no measured pair differs in this alone", true);
    assert_says(f, &view, "does not hold", false);
    assert_says(f, &view, "33.0 %", false);
}

static void pairs_decide(void **state) {
    fixture *f = *state;
    /* A far better result with 0 that has no partner must not matter. */
    add_measured(f, "", "chunk=64,threads=256,block_pad=0", 9, 10, 11);
    add_measured(f, "", "chunk=64,threads=128,block_pad=1", 99.9, 100, 100.1);
    add_measured(f, "", "chunk=64,threads=128,block_pad=0", 107.9, 108, 108.1);
    add_measured(f, "tokens=8192", "chunk=64,threads=64,block_pad=1", 49.9, 50, 50.1);
    add_measured(f, "tokens=8192", "chunk=64,threads=64,block_pad=0", 51.9, 52, 52.1);
    kkt_view view = make_view(f);
    kkt_contrasts contrasts = find(f, &view, "block_pad", "1", "0");
    assert_int_equal(contrasts.count, 2);
    assert_true(near(contrasts.pairs[0].gain, 0.08) && near(contrasts.pairs[1].gain, 0.04));
    assert_true(near(kkt_contrasts_median(&contrasts), 0.06));
    assert_string_equal(kkt_contrasts_finding(&contrasts, f->arena), "faster");
    assert_says(f, &view, "+4.0 to +8.0 %", true);
    assert_says(f, &view, "holds: faster", true);
    contrasts = find(f, &view, "block_pad", "0", "1");
    assert_string_equal(kkt_contrasts_finding(&contrasts, f->arena), "slower");
    assert_true(near(contrasts.pairs[0].gain, 50.0 / 52.0 - 1));
}

static void what_differs_in_origin_is_no_pair(void **state) {
    fixture *f = *state;
    kkt_identity old = identity(f, "", "chunk=64,threads=128,block_pad=1");
    kkt_identity noisy = identity(f, "", "chunk=64,threads=64,block_pad=1");
    add_run(f, &old, OLD_HASH, KKT_REPLAYED, KKT_OUTCOME_OK, NULL, 79, 80, 81);
    add_run(f, &noisy, f->hash, KKT_MEASURED, KKT_OUTCOME_NOISY, "interval 12 %", 40, 50, 60);
    add_measured(f, "", "chunk=64,threads=128,block_pad=0", 99, 100, 101);
    add_measured(f, "", "chunk=64,threads=64,block_pad=0", 99, 100, 101);
    kkt_view view = make_view(f);
    assert_int_equal(find(f, &view, "block_pad", "1", "0").count, 0);
}

/* Timed apart, 1.5 % is within what clocks drift. */
static void small_gains_are_noise(void **state) {
    fixture *f = *state;
    add_measured(f, "", "chunk=64,threads=128,block_pad=1", 99.9, 100, 100.1);
    add_measured(f, "", "chunk=64,threads=128,block_pad=0", 101.4, 101.5, 101.6);
    add_measured(f, "", "chunk=64,threads=64,block_pad=1", 99.9, 100, 100.1);
    add_measured(f, "", "chunk=64,threads=64,block_pad=0", 94.9, 95, 95.1);
    add_measured(f, "", "chunk=64,threads=256,block_pad=1", 99.9, 100, 100.1);
    add_measured(f, "", "chunk=64,threads=256,block_pad=0", 104.9, 105, 105.1);
    kkt_view view = make_view(f);
    kkt_contrasts contrasts = find(f, &view, "block_pad", "1", "0");
    assert_string_equal(kkt_contrasts_finding(&contrasts, f->arena),
                        "faster in 1, slower in 1, within noise in 1");
    assert_says(f, &view, "only under conditions: faster in 1", true);
}

/* The table of one kernel's parameters compares with the winner's values. */
static void parameters_are_told_from_the_winner(void **state) {
    fixture *f = *state;
    add_measured(f, "", "chunk=64,threads=128,block_pad=1", 99.9, 100, 100.1);
    add_measured(f, "", "chunk=64,threads=128,block_pad=0", 109.9, 110, 110.1);
    add_measured(f, "", "chunk=64,threads=64,block_pad=0", 119.9, 120, 120.1);
    add_measured(f, "", "chunk=64,threads=256,kload=ldg", 119.9, 120, 120.1);
    kkt_view view = make_view(f);
    assert_says(f, &view,
                "| 64 | block\\_pad | 0 | 1 | 1 | +10.0 % | +10.0 % | +10.0 % | +10.0 % | slower |",
                true);
    /* A pair away from the winner tells nothing of the winner itself. */
    assert_says(f, &view, "| 64 | threads | 64 | 128 | 1 | +9.1 % | +9.1 % | +9.1 % | - | slower |",
                true);
    assert_says(f, &view,
                "| 64 | kload | ldg | cp\\_async | 0 | - | - | - | - | open: no measured pair",
                true);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(confounded_results_are_no_pair, setup, teardown),
        cmocka_unit_test_setup_teardown(pairs_decide, setup, teardown),
        cmocka_unit_test_setup_teardown(what_differs_in_origin_is_no_pair, setup, teardown),
        cmocka_unit_test_setup_teardown(small_gains_are_noise, setup, teardown),
        cmocka_unit_test_setup_teardown(parameters_are_told_from_the_winner, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
