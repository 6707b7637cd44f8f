/* Which write style a look-up gives for a problem that was not timed. */
#include "fixture.h"

#include <math.h>

#include "reports/lookup.h"

static kkt_lookup find(fixture *f, const kkt_view *view, const char *problem, int64_t chunk) {
    kkt_values values;
    kkt_lookup found = {.tier = KKT_LOOKUP_DEFAULT};
    kkt_params_defaults(&f->kernel->problem, &values);
    if (kkt_params_parse(&f->kernel->problem, problem, &values, NULL, &f->error) != KKT_OK ||
        kkt_lookup_find(view, view == NULL ? 0 : 1, f->kernel, &values, chunk, f->arch, f->device,
                        f->arena, &found, &f->error) != KKT_OK)
        fail_msg("%s", f->error.message);
    return found;
}

/* What is added from now on is of another kernel and style; all have one made-up hash. */
static void turn_to(fixture *f, const char *kernel, kkt_style_id style) {
    assert_int_equal(kkt_kernel_parse(kernel, &f->kernel, &f->error), KKT_OK);
    f->variant = kkt_kernel_variant(f->kernel, style);
    assert_non_null(f->variant);
}

static void assert_found(const kkt_lookup *found, const char *style, double time_us,
                         const char *passed) {
    assert_int_equal(found->tier, KKT_LOOKUP_NEAREST);
    assert_string_equal(found->entry.style, style);
    assert_int_equal(lround(found->entry.time_us), lround(time_us));
    if (passed == NULL)
        assert_null(found->passed);
    else
        assert_string_equal(found->passed->style, passed);
}

/* The nearest problem was tuned in the slower style alone: the faster one is known from another. */
static void test_faster_style_is_farther(void **state) {
    fixture *f = *state;
    turn_to(f, "gemm", KKT_STYLE_FRAGMENT);
    add_measured(f, "m=4095", "", 359, 360, 361);
    turn_to(f, "gemm", KKT_STYLE_WARP_SPECIALIZED);
    add_measured(f, "m=2048", "store=tma", 99, 100, 101);
    kkt_view view = make_view(f);
    kkt_lookup found = find(f, &view, "m=4094", 0); /* nobody knows which is faster */
    assert_found(&found, "fragment", 360, NULL);

    add_measured(f, "m=8192", "store=tma", 400, 401, 402); /* the nearest with both */
    add_measured(f, "m=512", "store=tma", 60, 61, 62);     /* too small for this style */
    turn_to(f, "gemm", KKT_STYLE_FRAGMENT);
    add_measured(f, "m=8192", "", 720, 721, 722);
    add_measured(f, "m=512", "", 40, 41, 42);
    view = make_view(f);
    found = find(f, &view, "m=4094", 0);
    assert_found(&found, "warp_specialized", 100, "fragment");
    assert_true(found.passed_distance > 0 && found.passed_distance < found.distance);
    assert_int_equal(lround(found.slower->time_us), 721);
    assert_int_equal(lround(found.faster->time_us), 401);
    assert_int_equal(find(f, &view, "m=4095", 0).tier, KKT_LOOKUP_EXACT);
    found = find(f, &view, "m=600", 0);
    assert_found(&found, "fragment", 41, NULL);
}

static void add_stale(fixture *f, const char *problem, const char *config, double median) {
    kkt_identity id = identity(f, problem, config);
    add_run(f, &id, OLD_HASH, KKT_MEASURED, KKT_OUTCOME_OK, NULL, median - 1, median, median + 1);
}

/* A stale time and a fresh one do not say which style is faster, whichever of them is less. */
static void test_stale_is_not_slower(void **state) {
    fixture *f = *state;
    turn_to(f, "gemm", KKT_STYLE_FRAGMENT);
    add_measured(f, "m=4095", "", 359, 360, 361);
    add_stale(f, "m=8192", "", 721);
    turn_to(f, "gemm", KKT_STYLE_WARP_SPECIALIZED);
    add_measured(f, "m=2048", "store=tma", 99, 100, 101);
    add_measured(f, "m=8192", "store=tma", 800, 801, 802);
    kkt_view view = make_view(f);
    kkt_lookup found = find(f, &view, "m=4094", 0);
    assert_found(&found, "fragment", 360, NULL);

    /* A problem that is farther off has two fresh times, and they decide. */
    add_measured(f, "m=16384", "store=tma", 790, 800, 810);
    turn_to(f, "gemm", KKT_STYLE_FRAGMENT);
    add_measured(f, "m=16384", "", 1490, 1500, 1510);
    view = make_view(f);
    found = find(f, &view, "m=4094", 0);
    assert_found(&found, "warp_specialized", 100, "fragment");
    assert_int_equal(lround(found.slower->time_us), 1500);
    assert_int_equal(lround(found.faster->time_us), 800);
}

/* Where the best configuration of the nearest problem does not apply, its next best may. */
static void test_next_best(void **state) {
    fixture *f = *state;
    turn_to(f, "gemm", KKT_STYLE_PIPELINED);
    add_measured(f, "", "", 295, 296, 297);
    turn_to(f, "gemm", KKT_STYLE_WARP_SPECIALIZED);
    add_measured(f, "", "store=tma", 185, 186, 187);
    add_measured(f, "", "store=warps,stages=3", 194, 195, 196);
    add_measured(f, "", "store=warps,stages=2", 301, 302, 303);
    kkt_view view = make_view(f);
    kkt_lookup found = find(f, &view, "n=4095", 0); /* rows of c that TMA cannot store */
    assert_found(&found, "warp_specialized", 195, NULL);
    found = find(f, &view, "n=4160", 0);
    assert_found(&found, "warp_specialized", 186, NULL);
}

/* A next best that is far behind is no guide: better the other style. */
static void test_poor_next_best(void **state) {
    fixture *f = *state;
    turn_to(f, "gemm", KKT_STYLE_PIPELINED);
    add_measured(f, "", "", 209, 210, 211);
    turn_to(f, "gemm", KKT_STYLE_WARP_SPECIALIZED);
    add_measured(f, "", "store=tma", 185, 186, 187);
    add_measured(f, "", "store=warps,stages=2", 290, 291, 292);
    kkt_view view = make_view(f);
    kkt_lookup found = find(f, &view, "n=4095", 0);
    assert_found(&found, "pipelined", 210, NULL);
}

/* A sequence cut in segments is fast where heads leave SMs idle, and slow where they fill them:
 * what was measured on the one problem says nothing of the other, and the model does. */
static void test_style_of_another_problem(void **state) {
    static const char ws[] = "block_dv=16,outputs=2,narrow=0,stages=2";
    fixture *f = *state;
    turn_to(f, "gdn_fwd_t", KKT_STYLE_CONTEXT_PARALLEL);
    add_measured(f, "heads_k=2,heads_v=8,t_form=t_beta", "", 173, 174, 175);
    turn_to(f, "gdn_fwd_t", KKT_STYLE_WARP_SPECIALIZED);
    add_measured(f, "heads_k=2,heads_v=8,t_form=t_beta", ws, 435, 436, 437);
    kkt_view view = make_view(f);
    kkt_lookup found = find(f, &view, "heads_k=2,heads_v=8,t_form=t_beta,tokens=30000", 64);
    assert_found(&found, "context_parallel", 174, NULL); /* the farther problem is alike */
    found = find(f, &view, "heads_k=2,heads_v=8,t_form=t_beta,batch=16", 64);
    assert_int_equal(found.tier, KKT_LOOKUP_MODEL); /* 16 columns a block are no guide, either */
    assert_string_equal(found.entry.style, "warp_specialized");
    assert_string_equal(found.passed->style, "context_parallel");
    assert_null(found.slower);
    assert_true(found.passed_us > 2 * found.entry.predicted_us);
}

/* A measured configuration that the model would take is better than the model's own. */
static void test_measured_in_place_of_passed(void **state) {
    fixture *f = *state;
    turn_to(f, "gdn_fwd_t", KKT_STYLE_CONTEXT_PARALLEL);
    add_measured(f, "heads_k=2,heads_v=8,t_form=t_beta", "", 173, 174, 175);
    turn_to(f, "gdn_fwd_t", KKT_STYLE_WARP_SPECIALIZED);
    add_measured(f, "tokens=8192,t_form=t_beta", "", 164, 165, 166);
    kkt_view view = make_view(f);
    kkt_lookup found = find(f, &view, "heads_k=2,heads_v=8,t_form=t_beta,batch=16", 64);
    assert_found(&found, "warp_specialized", 165, "context_parallel");
}

/* Faster where both were measured is not faster everywhere: the nearer style is passed over only
 * where the model carries the difference to the problem asked. */
static void test_faster_style_there_alone(void **state) {
    fixture *f = *state;
    turn_to(f, "gdn_fwd_t", KKT_STYLE_CONTEXT_PARALLEL);
    add_measured(f, "heads_k=8,heads_v=32,t_form=t_beta", "segments=3", 443, 444, 445);
    turn_to(f, "gdn_fwd_t", KKT_STYLE_WARP_SPECIALIZED);
    add_measured(f, "heads_k=8,heads_v=32,t_form=t_beta", "", 524, 525, 526);
    add_measured(f, "t_form=t_beta", "", 657, 658, 659);
    kkt_view view = make_view(f);
    kkt_lookup found = find(f, &view, "heads_v=48,t_form=t_beta", 64);
    assert_found(&found, "warp_specialized", 658, NULL);
}

/* The model alone does not make a style a winner that is slower on every problem that was timed. */
static void test_always_slower(void **state) {
    fixture *f = *state;
    turn_to(f, "gemm", KKT_STYLE_MATERIALIZED);
    add_measured(f, "", "", 372, 373, 374);
    turn_to(f, "gemm", KKT_STYLE_WARP_SPECIALIZED);
    add_measured(f, "", "", 183, 184, 185);
    kkt_view view = make_view(f);
    kkt_lookup found = find(f, &view, "k=8192,m=128,n=8192", 0);
    assert_found(&found, "warp_specialized", 184, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_faster_style_is_farther, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stale_is_not_slower, setup, teardown),
        cmocka_unit_test_setup_teardown(test_next_best, setup, teardown),
        cmocka_unit_test_setup_teardown(test_poor_next_best, setup, teardown),
        cmocka_unit_test_setup_teardown(test_style_of_another_problem, setup, teardown),
        cmocka_unit_test_setup_teardown(test_measured_in_place_of_passed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_faster_style_there_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(test_always_slower, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
