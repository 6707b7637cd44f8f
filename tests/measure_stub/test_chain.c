/* Pipelines on the cuda backend, with a driver that runs on the CPU: two kernels timed as one, in
 * order and overlapped, and what is wrong with a member. This program is its own worker. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "toy.h"
#include "tuner/compile/pool.h"
#include "tuner/measure/backends.h"
#include "tuner/measure/cuda_worker.h"

#define CUBIN_BYTES 16

typedef struct pipeline {
    kkt_values problem, config;
    kkt_prediction prediction;
    kkt_policy policy;
    char cubins[2][CUBIN_BYTES];
    kkt_measure_request members[2];
    kkt_chain_request request;
} pipeline;

static void make(pipeline *p, const char *first, const kkt_kernel *consumer, const char *second) {
    const kkt_arch *arch = kkt_arch_find("sm90");
    memset(p, 0, sizeof *p);
    kkt_policy_defaults(&p->policy);
    p->policy.flush_bytes = 1 << 20;
    p->policy.candidate_seconds = strcmp(second, "hang") == 0 ? 0.5 : 5.0;
    p->policy.sample_seconds = 0.2;
    p->problem.v[0] = 5000;
    p->prediction.predicted_us = 10.0;
    snprintf(p->cubins[0], CUBIN_BYTES, "%s", first);
    snprintf(p->cubins[1], CUBIN_BYTES, "%s", second);
    kkt_measure_request request = {.kernel = &toy_whole,
                                   .variant = toy_whole.variants[0],
                                   .arch = arch,
                                   .device = kkt_device_first(arch),
                                   .problem = &p->problem,
                                   .config = &p->config,
                                   .prediction = &p->prediction,
                                   .policy = &p->policy};
    p->request = (kkt_chain_request){.whole = request, .members = p->members, .count = 2};
    const kkt_kernel *kernels[] = {&toy_kernel, consumer};
    for (int i = 0; i < 2; i++) {
        p->members[i] = request;
        p->members[i].kernel = kernels[i];
        p->members[i].variant = kernels[i]->variants[0];
        p->members[i].cubin = p->cubins[i];
        p->members[i].cubin_size = CUBIN_BYTES;
    }
}

static kkt_backend *open_cuda(void) {
    kkt_error err = {0};
    kkt_backend *backend = NULL;
    kkt_backend_options options = {.gpu = -1};
    if (kkt_backend_cuda.open(&options, &backend, &err) != KKT_OK) {
        fail_msg("%s", err.message);
    }
    return backend;
}

static void run(kkt_backend *backend, const pipeline *p, kkt_measure_result *out) {
    kkt_error err = {0};
    if (kkt_backend_cuda.chain(backend, &p->request, out, &err) != KKT_OK) {
        fail_msg("%s", err.message);
    }
}

static void expect(kkt_backend *backend, const pipeline *p, kkt_outcome outcome,
                   const char *reason) {
    kkt_measure_result result;
    run(backend, p, &result);
    if (result.run.outcome != outcome || (reason && !strstr(result.reason, reason))) {
        fail_msg("%s, %s: got %s (%s)", p->cubins[0], p->cubins[1],
                 kkt_outcome_name(result.run.outcome), result.reason);
    }
    kkt_measure_result_free(&result);
}

static void the_launches_are_timed_together(void **state) {
    (void)state;
    kkt_backend *backend = open_cuda();
    static pipeline p;
    kkt_measure_result r;
    make(&p, "good", &toy_next, "good");
    run(backend, &p, &r);
    if (r.run.outcome != KKT_OUTCOME_OK) {
        fail_msg("%s", r.reason);
    }
    /* Four launches of 5 us; the 100 us of the flush are outside. */
    assert_true(r.run.time_us > 20.0 && r.run.time_us < 20.2);
    assert_true(r.run.sample_count >= 20 && r.run.samples_us != NULL);
    assert_true(r.run.rel_fro <= r.run.tolerance && r.run.tolerance == 2e-6); /* both members' */
    assert_string_equal(r.run.gpu, "Stub GPU 0");
    assert_int_equal(strlen(r.run.date), 20);
    kkt_measure_result_free(&r);
    p.request.order = KKT_OVERLAPPED; /* those of the second kernel wait by themselves */
    run(backend, &p, &r);
    assert_int_equal(r.run.outcome, KKT_OUTCOME_OK);
    assert_true(r.run.time_us > 15.0 && r.run.time_us < 15.2);
    kkt_measure_result_free(&r);
    kkt_backend_cuda.close(backend);
}

static void a_member_that_misbehaves_is_found(void **state) {
    static const struct {
        const char *first, *second;
        kkt_outcome outcome;
        const char *reason;
    } table[] = {
        {"good", "wronglarge", KKT_OUTCOME_WRONG_RESULT, "full problem"},
        {"wronglarge", "good", KKT_OUTCOME_WRONG_RESULT, "full problem"},
        {"good", "racelarge", KKT_OUTCOME_RACY, "different z"},
        {"overrun", "good", KKT_OUTCOME_WRONG_RESULT, "memory beside y"},
        {"good", "unwrittenlarge", KKT_OUTCOME_WRONG_RESULT, "elements of z were never written"},
        {"badimage", "good", KKT_OUTCOME_LAUNCH_FAILED, "loading the cubin"},
        {"good", "badimage", KKT_OUTCOME_LAUNCH_FAILED, "loading the cubin"},
        {"good", "illegal", KKT_OUTCOME_LAUNCH_FAILED, "CUDA_ERROR_ILLEGAL_ADDRESS"},
        {"good", "hang", KKT_OUTCOME_TIMED_OUT, "no answer within"},
        {"segv", "good", KKT_OUTCOME_CRASHED, "signal 11"},
    };
    (void)state;
    kkt_backend *backend = open_cuda();
    static pipeline p, good;
    make(&good, "good", &toy_next, "good");
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        make(&p, table[i].first, &toy_next, table[i].second);
        expect(backend, &p, table[i].outcome, table[i].reason);
        expect(backend, &good, KKT_OUTCOME_OK, NULL); /* nothing outlives its pipeline */
    }
    kkt_backend_cuda.close(backend);
}

static void members_that_do_not_fit_are_told(void **state) {
    (void)state;
    kkt_backend *backend = open_cuda();
    static pipeline p;
    make(&p, "good", &toy_astray, "good");
    expect(backend, &p, KKT_OUTCOME_REJECTED, "toy_astray reads u, which no kernel before it");
    make(&p, "good", &toy_next, "good");
    kkt_values longer = {{6000}};
    p.members[1].problem = &longer;
    expect(backend, &p, KKT_OUTCOME_REJECTED, "y of toy_next has 24000 bytes of fp32; elsewhere");
    make(&p, "good", &toy_next, "good");
    kkt_measure_request four[4];
    for (int i = 0; i < 4; i++) {
        four[i] = p.members[1];
    }
    four[0] = p.members[0];
    p.request.members = four;
    p.request.count = 4; /* z is not read again: eight launches, one workspace each */
    expect(backend, &p, KKT_OUTCOME_OK, NULL);
    kkt_backend_cuda.close(backend);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_launches_are_timed_together),
        cmocka_unit_test(a_member_that_misbehaves_is_found),
        cmocka_unit_test(members_that_do_not_fit_are_told),
    };
    if (argc == 3 && strcmp(argv[1], "--worker") == 0) {
        return strcmp(argv[2], "compile") == 0 ? kkt_compile_worker_main()
                                               : kkt_cuda_worker_serve(toy_lookup);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
