/* The fake backend: times depend on seed, candidate and sample number; faults hit and say so. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tuner/measure/backend.h"

#define CANDIDATES 200

/* A family of one parameter, for identities. */
static const kkt_param problem_params[] = {
    {.name = "n", .low = 1, .high = 1 << 20, .fallback = 1024},
};
static const kkt_param config_params[] = {
    {.name = "x", .low = 0, .high = 1 << 20, .fallback = 0},
};
static double tolerance(const kkt_values *problem, const kkt_values *config, int input_case) {
    (void)problem;
    (void)config;
    (void)input_case;
    return 4e-3;
}
static const kkt_input_case cases[] = {{"random", "", true}};
static const kkt_variant variant = {
    .style = 0,
    .params = {"parameter", config_params, 1},
    .tolerance = tolerance,
};
static const kkt_variant *const variants[] = {&variant};
static const kkt_kernel kernel = {
    .name = "toy",
    .problem = {"problem key", problem_params, 1},
    .variants = variants,
    .variant_count = 1,
    .cases = cases,
    .case_count = 1,
};

typedef struct candidate {
    kkt_values problem, config;
    kkt_prediction prediction;
    kkt_policy policy;
    kkt_measure_request request;
} candidate;

static void make(candidate *c, int64_t x) {
    memset(c, 0, sizeof *c);
    kkt_policy_defaults(&c->policy);
    c->problem.v[0] = 1024;
    c->config.v[0] = x;
    c->prediction.predicted_us = 100.0 + (double)x;
    c->prediction.lower_bound_us = 50.0;
    const kkt_arch *arch = kkt_arch_find("sm90");
    c->request = (kkt_measure_request){
        .kernel = &kernel,
        .variant = &variant,
        .arch = arch,
        .device = kkt_device_first(arch),
        .problem = &c->problem,
        .config = &c->config,
        .prediction = &c->prediction,
        .policy = &c->policy,
    };
}

static kkt_backend *open_fake(const char *options) {
    kkt_error err = {0};
    kkt_backend *backend = NULL;
    kkt_backend_options o = {.gpu = -1, .fake = options};
    const kkt_backend_type *fake = kkt_backend_find("fake");
    assert_non_null(fake);
    assert_int_equal(fake->open(&o, &backend, &err), KKT_OK);
    return backend;
}

static void measure(kkt_backend *backend, int64_t x, kkt_measure_result *out) {
    candidate c;
    kkt_error err = {0};
    make(&c, x);
    assert_int_equal(kkt_backend_find("fake")->measure(backend, &c.request, out, &err), KKT_OK);
}

static void times_do_not_depend_on_order(void **state) {
    (void)state;
    kkt_backend *forward = open_fake("seed=7");
    kkt_backend *backward = open_fake("seed=7");
    double time[CANDIDATES];
    for (int i = 0; i < CANDIDATES; i++) {
        kkt_measure_result r;
        measure(forward, i, &r);
        assert_int_equal(r.run.outcome, KKT_OUTCOME_OK);
        assert_string_equal(r.run.date, "1970-01-01T00:00:00Z");
        time[i] = r.run.time_us;
        kkt_measure_result_free(&r);
    }
    for (int i = CANDIDATES - 1; i >= 0; i--) {
        kkt_measure_result r;
        measure(backward, i, &r);
        assert_true(r.run.time_us == time[i]);
        kkt_measure_result_free(&r);
    }
    kkt_backend_find("fake")->close(forward);
    kkt_backend_find("fake")->close(backward);
}

static void times_follow_the_model_within_the_bias(void **state) {
    (void)state;
    kkt_backend *backend = open_fake("seed=1");
    kkt_backend *other = open_fake("seed=2");
    double lowest = INFINITY, highest = 0.0;
    int same = 0;
    for (int i = 0; i < CANDIDATES; i++) {
        kkt_measure_result a, b;
        measure(backend, i, &a);
        measure(other, i, &b);
        double ratio = a.run.time_us / (100.0 + i);
        lowest = fmin(lowest, ratio);
        highest = fmax(highest, ratio);
        same += a.run.time_us == b.run.time_us;
        assert_true(a.run.sample_count >= 20 && a.run.samples_us == a.samples);
        assert_true(a.run.time_low_us <= a.run.time_us && a.run.time_us <= a.run.time_high_us);
        assert_true(a.run.time_high_us - a.run.time_low_us < 0.01 * a.run.time_us);
        assert_true(a.run.rel_fro < a.run.tolerance);
        kkt_measure_result_free(&a);
        kkt_measure_result_free(&b);
    }
    assert_true(lowest > 0.85 && lowest < 0.90);
    assert_true(highest < 1.162 && highest > 1.10);
    assert_int_equal(same, 0); /* another seed, other times */
    kkt_backend_find("fake")->close(backend);
    kkt_backend_find("fake")->close(other);
}

static void nothing_beats_the_lower_bound(void **state) {
    (void)state;
    kkt_backend *backend = open_fake(NULL);
    for (int i = 0; i < CANDIDATES; i++) {
        candidate c;
        kkt_measure_result r;
        kkt_error err = {0};
        make(&c, i);
        c.prediction.lower_bound_us = c.prediction.predicted_us;
        assert_int_equal(kkt_backend_find("fake")->measure(backend, &c.request, &r, &err), KKT_OK);
        assert_true(r.run.time_low_us >= (1.0 - 1e-6) * c.prediction.lower_bound_us);
        kkt_measure_result_free(&r);
    }
    kkt_backend_find("fake")->close(backend);
}

static const struct {
    const char *fault;
    kkt_outcome outcome;
} mapping[] = {
    {"illegal_address", KKT_OUTCOME_LAUNCH_FAILED},
    {"hang", KKT_OUTCOME_TIMED_OUT},
    {"abort", KKT_OUTCOME_CRASHED},
    {"wrong", KKT_OUTCOME_WRONG_RESULT},
    {"race", KKT_OUTCOME_RACY},
    {"too_much_smem", KKT_OUTCOME_REJECTED},
};
#define FAULTS (sizeof mapping / sizeof mapping[0])

static void each_fault_has_its_outcome(void **state) {
    (void)state;
    for (size_t f = 0; f < FAULTS; f++) {
        char options[64];
        snprintf(options, sizeof options, "seed=3,fault=%s", mapping[f].fault);
        kkt_backend *backend = open_fake(options);
        int hit = 0;
        for (int i = 0; i < CANDIDATES; i++) {
            kkt_measure_result r;
            measure(backend, i, &r);
            if (r.run.outcome != KKT_OUTCOME_OK) {
                hit++;
                assert_int_equal(r.run.outcome, mapping[f].outcome);
                assert_non_null(r.run.reason);
                assert_true(isnan(r.run.time_us) && r.run.sample_count == 0);
            }
            assert_true(i > 0 || hit == 1); /* the first asked is hit: at least one always */
            kkt_measure_result_free(&r);
        }
        assert_in_range(hit, CANDIDATES / 20, CANDIDATES / 5);
        kkt_backend_find("fake")->close(backend);
    }
}

static void all_faults_in_a_small_run(void **state) {
    (void)state;
    kkt_backend *backend = open_fake("fault=all");
    unsigned seen = 0;
    for (int i = 0; i < (int)FAULTS; i++) {
        kkt_measure_result first, again;
        measure(backend, i, &first);
        measure(backend, i, &again);
        assert_int_equal(first.run.outcome, again.run.outcome);
        seen |= 1u << first.run.outcome;
        kkt_measure_result_free(&first);
        kkt_measure_result_free(&again);
    }
    for (size_t f = 0; f < FAULTS; f++) {
        assert_true(seen & (1u << mapping[f].outcome));
    }
    kkt_backend_find("fake")->close(backend);
    backend = open_fake("fault=hang+wrong");
    kkt_measure_result r;
    measure(backend, 0, &r);
    assert_int_equal(r.run.outcome, KKT_OUTCOME_TIMED_OUT);
    kkt_measure_result_free(&r);
    measure(backend, 1, &r);
    assert_int_equal(r.run.outcome, KKT_OUTCOME_WRONG_RESULT);
    assert_true(r.run.rel_fro > r.run.tolerance);
    kkt_measure_result_free(&r);
    kkt_backend_find("fake")->close(backend);
}

static void a_fault_leaves_other_times_alone(void **state) {
    (void)state;
    kkt_backend *plain = open_fake("seed=5");
    kkt_backend *faulty = open_fake("seed=5,fault=race");
    for (int i = 0; i < CANDIDATES; i++) {
        kkt_measure_result a, b;
        measure(plain, i, &a);
        measure(faulty, i, &b);
        assert_true(b.run.outcome == KKT_OUTCOME_RACY || a.run.time_us == b.run.time_us);
        kkt_measure_result_free(&a);
        kkt_measure_result_free(&b);
    }
    kkt_backend_find("fake")->close(plain);
    kkt_backend_find("fake")->close(faulty);
}

static void retiming_agrees(void **state) {
    (void)state;
    kkt_backend *backend = open_fake("seed=9");
    candidate c[3];
    kkt_measure_request requests[3];
    kkt_measure_result again[3];
    kkt_error err = {0};
    for (int i = 0; i < 3; i++) {
        make(&c[i], 10 * i);
        requests[i] = c[i].request;
    }
    assert_int_equal(kkt_backend_find("fake")->retime(backend, requests, 3, again, &err), KKT_OK);
    for (int i = 0; i < 3; i++) {
        kkt_measure_result r;
        measure(backend, 10 * i, &r);
        assert_true(r.run.time_us == again[i].run.time_us);
        kkt_measure_result_free(&r);
        kkt_measure_result_free(&again[i]);
    }
    kkt_backend_find("fake")->close(backend);
}

static void bad_options_are_named(void **state) {
    static const struct {
        const char *text, *names;
    } bad[] = {
        {"seed=x", "'x'"},
        {"seed=-1", "'-1'"},
        {"seed=99999999999999999999", "99999999999999999999"},
        {"seed", "'seed'"},
        {"seed=1,seed=2", "twice"},
        {"sed=1", "'sed'"},
        {"fault=explode", "illegal_address"},
        {"fault=hang+", "unknown fault ''"},
        {"seed=1,,fault=hang", "''"},
        {"fault=all+all+all", "more than"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        kkt_error err = {0};
        kkt_backend *backend = NULL;
        kkt_backend_options o = {.gpu = -1, .fake = bad[i].text};
        assert_int_equal(kkt_backend_find("fake")->open(&o, &backend, &err), KKT_ERR_INPUT);
        assert_null(backend);
        assert_non_null(strstr(err.message, bad[i].names));
    }
}

static void policy_text_is_canonical(void **state) {
    (void)state;
    kkt_policy policy;
    kkt_text text = {0};
    kkt_policy_defaults(&policy);
    kkt_policy_format(&policy, &text);
    assert_string_equal(kkt_text_get(&text),
                        "candidate_seconds=10,energy_each=0,energy_seconds=0.5,flush_bytes="
                        "536870912,gate=2,interval_share=0.01,"
                        "large_parts=64,max_samples=200,min_samples=20,sample_seconds=1,seed=1,"
                        "warmup_launches=5");
    assert_int_equal(kkt_policy_gate(kkt_text_get(&text)), KKT_GATE_REVISION);
    assert_int_equal(kkt_policy_gate("flush_bytes=0,gate=13,seed=1,finalist"), 13);
    assert_int_equal(kkt_policy_gate("flush_bytes=0,seed=1"), 1);
    assert_int_equal(kkt_policy_gate(NULL), 1);
    kkt_text_free(&text);
    assert_null(kkt_backend_find("replay"));
    size_t count = 0;
    const kkt_backend_type *const *all = kkt_backends(&count);
    assert_int_equal(count, 2);
    for (size_t i = 0; i < count; i++) {
        assert_ptr_equal(kkt_backend_find(all[i]->name), all[i]);
    }
}

/* Of finalists, and of every candidate where the policy asks for it. */
static void energy_on_request(void **state) {
    (void)state;
    const kkt_backend_type *fake = kkt_backend_find("fake");
    kkt_backend *backend = open_fake("seed=3");
    kkt_measure_result r;
    kkt_error err = {0};
    candidate c;
    make(&c, 5);
    assert_int_equal(fake->measure(backend, &c.request, &r, &err), KKT_OK);
    assert_true(isnan(r.run.energy_mj));
    assert_null(r.run.disturbed);
    kkt_measure_result_free(&r);
    assert_int_equal(fake->retime(backend, &c.request, 1, &r, &err), KKT_OK);
    double energy = r.run.energy_mj;
    assert_true(energy > 0.25 * r.run.time_us && energy < 0.65 * r.run.time_us);
    kkt_measure_result_free(&r);
    c.policy.energy_each = true;
    assert_int_equal(fake->measure(backend, &c.request, &r, &err), KKT_OK);
    assert_true(r.run.energy_mj == energy);
    kkt_measure_result_free(&r);
    c.policy.energy_seconds = 0.0;
    assert_int_equal(fake->retime(backend, &c.request, 1, &r, &err), KKT_OK);
    assert_true(isnan(r.run.energy_mj));
    kkt_measure_result_free(&r);
    fake->close(backend);
}

static void a_crowd_is_noted(void **state) {
    (void)state;
    kkt_backend *backend = open_fake("seed=3,crowd=1");
    kkt_measure_result r;
    measure(backend, 5, &r);
    assert_int_equal(r.run.outcome, KKT_OUTCOME_OK);
    assert_non_null(strstr(r.run.disturbed, "other process"));
    kkt_measure_result_free(&r);
    kkt_backend_find("fake")->close(backend);
}

static void time_chain(kkt_backend *backend, kkt_launch_order order, kkt_measure_result *out) {
    static candidate members[2], whole;
    kkt_error err = {0};
    make(&whole, 0);
    make(&members[0], 10);
    make(&members[1], 20);
    kkt_measure_request requests[2] = {members[0].request, members[1].request};
    kkt_chain_request chain = {
        .whole = whole.request, .members = requests, .count = 2, .order = order};
    assert_int_equal(kkt_backend_find("fake")->chain(backend, &chain, out, &err), KKT_OK);
}

/* In order costs a little beside the members' own times, overlapped saves a little. */
static void a_pipeline_takes_about_its_members_sum(void **state) {
    (void)state;
    kkt_backend *backend = open_fake("seed=3");
    kkt_measure_result first, second, ordered, again, overlapped;
    measure(backend, 10, &first);
    measure(backend, 20, &second);
    double sum = first.run.time_us + second.run.time_us;
    time_chain(backend, KKT_IN_ORDER, &ordered);
    time_chain(backend, KKT_IN_ORDER, &again);
    time_chain(backend, KKT_OVERLAPPED, &overlapped);
    assert_int_equal(ordered.run.outcome, KKT_OUTCOME_OK);
    assert_true(ordered.run.time_us > 0.99 * sum && ordered.run.time_us < 1.03 * sum);
    assert_true(ordered.run.time_us == again.run.time_us);
    assert_true(overlapped.run.time_us < ordered.run.time_us);
    assert_true(overlapped.run.time_us > 0.94 * sum);
    assert_true(ordered.run.tolerance == 8e-3 && ordered.run.rel_fro < 8e-3);
    kkt_measure_result *const all[] = {&first, &second, &ordered, &again, &overlapped};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        kkt_measure_result_free(all[i]);
    }
    kkt_backend_find("fake")->close(backend);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_do_not_depend_on_order),
        cmocka_unit_test(times_follow_the_model_within_the_bias),
        cmocka_unit_test(nothing_beats_the_lower_bound),
        cmocka_unit_test(each_fault_has_its_outcome),
        cmocka_unit_test(all_faults_in_a_small_run),
        cmocka_unit_test(a_fault_leaves_other_times_alone),
        cmocka_unit_test(retiming_agrees),
        cmocka_unit_test(energy_on_request),
        cmocka_unit_test(a_crowd_is_noted),
        cmocka_unit_test(a_pipeline_takes_about_its_members_sum),
        cmocka_unit_test(bad_options_are_named),
        cmocka_unit_test(policy_text_is_canonical),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
