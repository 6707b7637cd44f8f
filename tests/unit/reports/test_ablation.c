/* Ablations from a database of made-up rows: findings, their reasons, JSON and Markdown. */
#include <math.h>

#include "fixture.h"
#include "reports/ablation.h"

/* ---- findings on synthetic numbers ---- */

typedef struct finding_case {
    const char *what;
    kkt_expectation expect;
    double within;
    bool noisy;
    kkt_reading from, to;
    double model_from, model_to;
    kkt_finding expected;
} finding_case;

#define UNKNOWN                                                                                    \
    { (double)NAN, (double)NAN, (double)NAN }

static const finding_case cases[] = {
    {"falls", KKT_EXPECT_LOWER, 0, true, {99, 100, 101}, {89, 90, 91}, 0, 0, KKT_FINDING_CONFIRMED},
    {"rises",
     KKT_EXPECT_LOWER,
     0,
     true,
     {99, 100, 101},
     {109, 110, 111},
     0,
     0,
     KKT_FINDING_REFUTED},
    {"overlaps",
     KKT_EXPECT_LOWER,
     0,
     true,
     {99, 100, 101},
     {98, 98.5, 99.5},
     0,
     0,
     KKT_FINDING_WITHIN_NOISE},
    {"touches",
     KKT_EXPECT_LOWER,
     0,
     true,
     {99, 100, 101},
     {97, 98, 99},
     0,
     0,
     KKT_FINDING_WITHIN_NOISE},
    {"exact and still",
     KKT_EXPECT_LOWER,
     0,
     false,
     {64, 64, 64},
     {64, 64, 64},
     0,
     0,
     KKT_FINDING_REFUTED},
    {"exact and falls",
     KKT_EXPECT_LOWER,
     0,
     false,
     {64, 64, 64},
     {63, 63, 63},
     0,
     0,
     KKT_FINDING_CONFIRMED},
    {"higher as said",
     KKT_EXPECT_HIGHER,
     0,
     true,
     {9, 10, 11},
     {19, 20, 21},
     0,
     0,
     KKT_FINDING_CONFIRMED},
    {"higher, but falls",
     KKT_EXPECT_HIGHER,
     0,
     true,
     {19, 20, 21},
     {9, 10, 11},
     0,
     0,
     KKT_FINDING_REFUTED},
    {"same within",
     KKT_EXPECT_SAME,
     0.02,
     true,
     {99.9, 100, 100.1},
     {101.4, 101.5, 101.6},
     0,
     0,
     KKT_FINDING_CONFIRMED},
    {"same by overlap",
     KKT_EXPECT_SAME,
     0.0,
     true,
     {90, 100, 110},
     {95, 105, 115},
     0,
     0,
     KKT_FINDING_CONFIRMED},
    {"not the same",
     KKT_EXPECT_SAME,
     0.02,
     true,
     {99, 100, 101},
     {109, 110, 111},
     0,
     0,
     KKT_FINDING_REFUTED},
    {"as predicted",
     KKT_EXPECT_AS_PREDICTED,
     0.05,
     false,
     {1000, 1000, 1000},
     {800, 800, 800},
     900,
     709,
     KKT_FINDING_CONFIRMED},
    {"more than predicted",
     KKT_EXPECT_AS_PREDICTED,
     0.05,
     false,
     {1000, 1000, 1000},
     {800, 800, 800},
     900,
     711,
     KKT_FINDING_REFUTED},
    {"no change, none predicted",
     KKT_EXPECT_AS_PREDICTED,
     0.05,
     false,
     {1000, 1000, 1000},
     {1001, 1001, 1001},
     900,
     900,
     KKT_FINDING_CONFIRMED},
    {"no change, but predicted",
     KKT_EXPECT_AS_PREDICTED,
     0.05,
     false,
     {1000, 1000, 1000},
     {1001, 1001, 1001},
     900,
     800,
     KKT_FINDING_REFUTED},
    {"a small change, missed by less than counts vary",
     KKT_EXPECT_AS_PREDICTED,
     0.05,
     false,
     {1000, 1000, 1000},
     {1020, 1020, 1020},
     1000,
     1016,
     KKT_FINDING_CONFIRMED},
    {"a small change, missed by more",
     KKT_EXPECT_AS_PREDICTED,
     0.05,
     false,
     {1000, 1000, 1000},
     {1020, 1020, 1020},
     1000,
     1014,
     KKT_FINDING_REFUTED},
    {"the other way",
     KKT_EXPECT_AS_PREDICTED,
     0.05,
     false,
     {1000, 1000, 1000},
     {800, 800, 800},
     900,
     1100,
     KKT_FINDING_REFUTED},
    {"no prediction",
     KKT_EXPECT_AS_PREDICTED,
     0.05,
     false,
     {1000, 1000, 1000},
     {800, 800, 800},
     (double)NAN,
     700,
     KKT_FINDING_UNDECIDED},
    {"not measured",
     KKT_EXPECT_LOWER,
     0,
     true,
     {99, 100, 101},
     UNKNOWN,
     200,
     100,
     KKT_FINDING_UNDECIDED},
    {"base not measured",
     KKT_EXPECT_SAME,
     1,
     true,
     UNKNOWN,
     {99, 100, 101},
     200,
     100,
     KKT_FINDING_UNDECIDED},
};

static void finds(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const finding_case *c = &cases[i];
        kkt_finding got = kkt_finding_of(c->expect, c->within, c->noisy, &c->from, &c->to,
                                         c->model_from, c->model_to);
        if (got != c->expected)
            fail_msg("%s: %s, not %s", c->what, kkt_finding_name(got),
                     kkt_finding_name(c->expected));
    }
}

#define C KKT_FINDING_CONFIRMED
#define R KKT_FINDING_REFUTED
#define N KKT_FINDING_WITHIN_NOISE
#define U KKT_FINDING_UNDECIDED
#define X KKT_FINDING_CONDITIONAL

static void joins(void **state) {
    (void)state;
    static const struct {
        kkt_finding in[3];
        size_t count;
        kkt_finding expected;
    } rows[] = {
        {{C, C, U}, 3, C}, {{C, R}, 2, X}, {{C, N}, 2, X}, {{R, N, U}, 3, R}, {{R}, 1, R},
        {{N, N}, 2, N},    {{N, U}, 2, N}, {{U, U}, 2, U}, {{U}, 0, U},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(kkt_finding_join(rows[i].in, rows[i].count), rows[i].expected);
}

/* ---- from a database ---- */

static void assert_close(double value, double expected, double within) {
    if (!(fabs(value - expected) <= within))
        fail_msg("%.17g, not %.17g", value, expected);
}

#define PROBLEM "tokens=8192"
#define BASE "chunk=64"

static int64_t add_timed(fixture *f, const char *config, double us, const char *hash,
                         const char *policy) {
    kkt_identity id = identity(f, PROBLEM, config);
    int64_t run;
    kkt_run_record record = {.provenance = KKT_MEASURED,
                             .outcome = KKT_OUTCOME_OK,
                             .gpu = "NVIDIA H200",
                             .driver = "580.1",
                             .date = "2026-01-01T00:00:00Z",
                             .policy = policy,
                             .time_us = us,
                             .time_low_us = us * 0.999,
                             .time_high_us = us * 1.001,
                             .sample_count = 20,
                             .hbm_bytes_counted = KKT_UNKNOWN_REAL};
    assert_int_equal(kkt_db_put_run(f->db, add_build(f, &id, hash), &record, &run, &f->error),
                     KKT_OK);
    return run;
}

static int64_t add_time(fixture *f, const char *config, double us, const char *hash) {
    return add_timed(f, config, us, hash, "x=1,ablation=move");
}

static void add_wavefronts(fixture *f, int64_t run, double loads, double stores) {
    kkt_counter_record rows[] = {{"smem_load_wavefronts", loads, "wavefronts", "GH100"},
                                 {"smem_store_wavefronts", stores, "wavefronts", "GH100"}};
    assert_int_equal(kkt_db_put_counters(f->db, run, rows, 2, KKT_UNKNOWN_REAL, NULL, &f->error),
                     KKT_OK);
}

static kkt_ablation_set read_set(fixture *f) {
    kkt_values base;
    kkt_ablation_set set = {.kernel = f->kernel,
                            .variant = f->variant,
                            .arch = f->arch,
                            .device = f->device,
                            .count = 1,
                            .ablations = kkt_arena_alloc(f->arena, sizeof(kkt_ablation))};
    kkt_params_defaults(&f->kernel->problem, &set.problem);
    assert_int_equal(kkt_params_parse(&f->kernel->problem, PROBLEM, &set.problem, NULL, NULL),
                     KKT_OK);
    kkt_params_defaults(&f->variant->params, &base);
    assert_int_equal(
        kkt_params_parse(&f->variant->params, "couple=tf32,threads=128," BASE, &base, NULL, NULL),
        KKT_OK);
    assert_int_equal(kkt_ablation_make(&set, f->db, &f->freshness, &base, "given", f->arena,
                                       &set.ablations[0], &f->error),
                     KKT_OK);
    return set;
}

static const kkt_ablation_row *row_of(const kkt_ablation_set *set, const char *label) {
    const kkt_ablation *a = &set->ablations[0];
    for (size_t i = 0; i < a->row_count; i++)
        if (a->rows[i].move->claim == NULL && strcmp(a->rows[i].move->label, label) == 0)
            return &a->rows[i];
    fail_msg("no move %s", label);
    return NULL;
}

static kkt_claim_summary claim_of(fixture *f, const kkt_ablation_set *set, const char *name) {
    size_t count;
    kkt_claim_summary *claims = kkt_ablation_claims(set, f->arena, &count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(claims[i].claim->name, name) == 0)
            return claims[i];
    fail_msg("no claim %s", name);
    return (kkt_claim_summary){0};
}

static void shows_changes_side_by_side(void **state) {
    fixture *f = *state;
    add_wavefronts(f, add_time(f, BASE, 100, f->hash), 3000, 1000);
    add_wavefronts(f, add_time(f, BASE ",block_pad=0", 110, f->hash), 4000, 1000);
    add_time(f, BASE ",kload=ldg", 100.05, f->hash);
    add_time(f, BASE ",negate_early=0", 90, f->hash);
    kkt_ablation_set set = read_set(f);
    assert_string_equal(set.ablations[0].tier, "measured");
    const kkt_ablation_row *pad = row_of(&set, "block_pad 1 -> 0");
    kkt_reading time = kkt_ablation_change(pad, KKT_EVIDENCE_TIMED, KKT_FIGURE_TIME);
    assert_close(time.value, 0.1, 1e-9);
    assert_close(time.low, 109.89 / 100.1 - 1, 1e-9);
    assert_close(time.high, 110.11 / 99.9 - 1, 1e-9);
    kkt_reading counted = kkt_ablation_change(pad, KKT_EVIDENCE_COUNTED, KKT_FIGURE_WAVEFRONTS);
    assert_close(counted.value, 0.25, 1e-9);
    kkt_reading predicted = kkt_ablation_change(pad, KKT_EVIDENCE_PREDICTED, KKT_FIGURE_WAVEFRONTS);
    assert_true(predicted.value > 0);
    assert_close(pad->to->figures[KKT_EVIDENCE_COMPILED][KKT_FIGURE_REGISTERS].value, 96, 0);
    assert_close(pad->to->figures[KKT_EVIDENCE_COMPILED][KKT_FIGURE_SMEM].value, 33792, 0);
    assert_string_equal(kkt_ablation_effect(pad), "slower");
    assert_string_equal(kkt_ablation_effect(row_of(&set, "kload cp_async -> ldg")), "within noise");
    assert_string_equal(kkt_ablation_effect(row_of(&set, "negate_early 1 -> 0")), "faster");
    assert_string_equal(kkt_ablation_effect(row_of(&set, "heads_per_block 1 -> 2")), "not timed");
    const kkt_ablation_row *three = row_of(&set, "heads_per_block 1 -> 3");
    assert_string_equal(kkt_ablation_effect(three), "rejected");
    assert_non_null(strstr(three->reason, "does not divide"));
}

static void judges_claims(void **state) {
    fixture *f = *state;
    add_wavefronts(f, add_time(f, BASE, 100, f->hash), 3000, 1000);
    add_wavefronts(f, add_time(f, BASE ",block_pad=0", 110, f->hash), 4000, 1000);
    add_time(f, BASE ",row_stride=17", 120, f->hash);
    add_time(f, BASE ",block_pad=0,row_stride=17", 110, f->hash);
    add_time(f, BASE ",kload=ldg", 100.05, f->hash);
    add_time(f, BASE ",negate_early=0", 90, f->hash);
    kkt_ablation_set set = read_set(f);
    assert_int_equal(claim_of(f, &set, "negate_early").finding, KKT_FINDING_REFUTED);
    assert_int_equal(claim_of(f, &set, "kload_async").finding, KKT_FINDING_WITHIN_NOISE);
    assert_int_equal(claim_of(f, &set, "heads_share").finding, KKT_FINDING_UNDECIDED);
    assert_int_equal(claim_of(f, &set, "block_pad_conflicts").finding, KKT_FINDING_CONFIRMED);
    kkt_claim_summary time = claim_of(f, &set, "block_pad_time");
    assert_int_equal(time.finding, KKT_FINDING_CONDITIONAL);
    assert_int_equal(time.confirmed, 1);
    assert_int_equal(time.refuted, 1);
    assert_int_equal(time.undecided, 1);
    assert_string_equal(time.where, "confirmed at C = 64 (row_stride 16); refuted at C = 64 "
                                    "(row_stride 17); not decidable here at C = 64 (row_stride "
                                    "20)");
}

static void compares_no_old_row_with_a_new_one(void **state) {
    fixture *f = *state;
    add_time(f, BASE, 100, f->hash);
    add_time(f, BASE ",negate_early=0", 90, OLD_HASH);
    kkt_ablation_set set = read_set(f);
    const kkt_ablation_row *row = row_of(&set, "negate_early 1 -> 0");
    assert_int_equal(row->finding, KKT_FINDING_UNDECIDED);
    assert_non_null(strstr(row->reason, "stale"));
    assert_string_equal(set.ablations[0].tier, "measured");
}

/* Times of different rounds are believed to within a hundredth. */
static void allows_for_drift(void **state) {
    fixture *f = *state;
    add_time(f, BASE, 100, f->hash);
    add_time(f, BASE ",negate_early=0", 98.5, f->hash);
    add_timed(f, BASE ",kload=ldg", 99.2, f->hash, "x=1");
    add_timed(f, BASE ",block_pad=0", 90, f->hash, "x=1");
    kkt_ablation_set set = read_set(f);
    assert_string_equal(kkt_ablation_effect(row_of(&set, "negate_early 1 -> 0")), "faster");
    assert_null(row_of(&set, "negate_early 1 -> 0")->reason);
    const kkt_ablation_row *apart = row_of(&set, "kload cp_async -> ldg");
    assert_string_equal(kkt_ablation_effect(apart), "within noise");
    assert_non_null(strstr(apart->reason, "apart"));
    assert_string_equal(kkt_ablation_effect(row_of(&set, "block_pad 1 -> 0")), "faster");
}

static void tells_of_failures_and_of_nothing(void **state) {
    fixture *f = *state;
    kkt_identity id = identity(f, PROBLEM, BASE ",negate_early=0");
    int64_t run;
    kkt_run_record record = {.provenance = KKT_MEASURED,
                             .outcome = KKT_OUTCOME_WRONG_RESULT,
                             .reason = "the error is above the tolerance",
                             .gpu = "NVIDIA H200",
                             .date = "2026-01-01T00:00:00Z",
                             .time_us = KKT_UNKNOWN_REAL,
                             .time_low_us = KKT_UNKNOWN_REAL,
                             .time_high_us = KKT_UNKNOWN_REAL,
                             .hbm_bytes_counted = KKT_UNKNOWN_REAL};
    assert_int_equal(kkt_db_put_run(f->db, add_build(f, &id, f->hash), &record, &run, &f->error),
                     KKT_OK);
    kkt_ablation_set set = read_set(f);
    assert_string_equal(set.ablations[0].tier, "predicted");
    const kkt_ablation_row *wrong = row_of(&set, "negate_early 1 -> 0");
    assert_string_equal(kkt_ablation_effect(wrong), "wrong_result");
    assert_non_null(strstr(wrong->reason, "above the tolerance"));
    const kkt_ablation_row *none = row_of(&set, "kload cp_async -> ldg");
    assert_string_equal(none->reason, "not timed here");
    size_t count;
    kkt_claim_summary *claims = kkt_ablation_claims(&set, f->arena, &count);
    assert_true(count > 10);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(claims[i].finding, KKT_FINDING_UNDECIDED);
}

static void writes_json_and_markdown(void **state) {
    fixture *f = *state;
    add_time(f, BASE, 100, f->hash);
    add_time(f, BASE ",negate_early=0", 90, f->hash);
    kkt_ablation_set set = read_set(f);
    kkt_json *root = kkt_json_object();
    kkt_ablation_json(&set, root);
    assert_string_equal(kkt_json_string(root, "schema"), "kkttune.ablate/1");
    static const char *const keys[] = {"arch", "device", "kernel", "style", "problem"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        assert_non_null(kkt_json_string(root, keys[i]));
    const kkt_json *ablation = kkt_json_first(kkt_json_get(root, "ablations"));
    const kkt_json *base = kkt_json_get(ablation, "base");
    assert_string_equal(kkt_json_string(base, "outcome"), "ok");
    const kkt_json *timed = kkt_json_get(kkt_json_get(base, "figures"), "timed");
    double value;
    assert_true(kkt_json_real(kkt_json_get(timed, "time"), "value", &value));
    assert_close(value, 100, 0);
    assert_int_equal(kkt_json_count(kkt_json_get(ablation, "moves")), 39);
    const kkt_json *claim = kkt_json_first(kkt_json_get(root, "claims"));
    assert_string_equal(kkt_json_string(claim, "verdict"), "undecided");
    assert_non_null(kkt_json_string(claim, "where"));
    assert_true(kkt_json_count(kkt_json_get(claim, "comparisons")) > 0);
    assert_string_equal(kkt_json_string(claim, "account"), f->kernel->claims[0].account);
    const kkt_json *comparison = kkt_json_first(kkt_json_get(claim, "comparisons"));
    assert_non_null(kkt_json_string(kkt_json_get(comparison, "to"), "limiter"));
    kkt_json_close(root);

    kkt_text first = {0};
    kkt_text second = {0};
    set.command = "kkttune ablate <script>|";
    kkt_ablation_markdown(&set, &first);
    kkt_ablation_set again = read_set(f);
    again.command = set.command;
    kkt_ablation_markdown(&again, &second);
    assert_string_equal(kkt_text_get(&first), kkt_text_get(&second));
    assert_null(strstr(kkt_text_get(&first), "<script>"));
    assert_non_null(strstr(kkt_text_get(&first), "negate\\_early 1 -"));
    assert_non_null(strstr(kkt_text_get(&first), "| what the model says |"));
    assert_non_null(strstr(kkt_text_get(&first), "| limited by |"));
    kkt_text_free(&first);
    kkt_text_free(&second);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds),
        cmocka_unit_test(joins),
        cmocka_unit_test_setup_teardown(shows_changes_side_by_side, setup, teardown),
        cmocka_unit_test_setup_teardown(judges_claims, setup, teardown),
        cmocka_unit_test_setup_teardown(compares_no_old_row_with_a_new_one, setup, teardown),
        cmocka_unit_test_setup_teardown(allows_for_drift, setup, teardown),
        cmocka_unit_test_setup_teardown(tells_of_failures_and_of_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(writes_json_and_markdown, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
