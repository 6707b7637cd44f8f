/* The counting worker with a driver and a profiler that run on the CPU: what is counted, and what
 * becomes of a run whose counters are denied, busy, absent or whose worker dies. This program is
 * its own worker. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "toy.h"
#include "tuner/compile/pool.h"
#include "tuner/measure/backends.h"
#include "tuner/measure/cuda_worker.h"

#define PLAN_READ 10000.0 /* bytes of the toy's two launches, as the stub has them */
#define PLAN_WRITTEN 2000.0
#define PLAN_DIRTY 300.0

typedef struct candidate {
    kkt_values problem, config;
    kkt_prediction prediction;
    kkt_policy policy;
    char cubin[16];
    kkt_measure_request request;
} candidate;

static void make(candidate *c, const char *word) {
    memset(c, 0, sizeof *c);
    kkt_policy_defaults(&c->policy);
    c->policy.flush_bytes = 1 << 20;
    c->policy.candidate_seconds = 5.0;
    c->problem.v[0] = 5000;
    c->prediction.predicted_us = 10.0;
    snprintf(c->cubin, sizeof c->cubin, "%s", word);
    const kkt_arch *arch = kkt_arch_find("sm90");
    c->request = (kkt_measure_request){
        .kernel = &toy_kernel,
        .variant = toy_kernel.variants[0],
        .arch = arch,
        .device = kkt_device_first(arch),
        .problem = &c->problem,
        .config = &c->config,
        .cubin = c->cubin,
        .cubin_size = sizeof c->cubin,
        .prediction = &c->prediction,
        .policy = &c->policy,
    };
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

static void count(kkt_backend *backend, const char *word, kkt_counts *out) {
    candidate c;
    kkt_error err = {0};
    make(&c, word);
    assert_int_equal(kkt_backend_cuda.count(backend, &c.request, out, &err), KKT_OK);
}

static void assert_counted(const kkt_counts *counts) {
    if (counts->state != KKT_COUNT_DONE) {
        fail_msg("%s", counts->note);
    }
    assert_string_equal(counts->note, "");
    assert_string_equal(counts->chip, "GH100");
    assert_int_equal(counts->passes, 2);
    assert_true(counts->values[KKT_COUNTER_DRAM_READ_BYTES] == PLAN_READ);
    assert_true(counts->values[KKT_COUNTER_DRAM_WRITE_BYTES] == PLAN_WRITTEN);
    assert_true(kkt_counts_hbm_bytes(counts) == PLAN_READ + PLAN_WRITTEN);
    assert_true(counts->values[KKT_COUNTER_INSTRUCTIONS] == 22.0); /* the drain's are not in it */
}

static void the_residue_is_drained(void **state) {
    (void)state;
    kkt_counts counts;
    kkt_backend *backend = open_cuda();
    count(backend, "good", &counts);
    assert_counted(&counts);
    count(backend, "good", &counts); /* by the same worker */
    assert_counted(&counts);
    kkt_backend_cuda.close(backend);
}

static void without_a_drain_the_residue_is_modelled(void **state) {
    (void)state;
    kkt_counts counts;
    kkt_backend *backend = open_cuda();
    candidate c;
    kkt_error err = {0};
    make(&c, "good");
    c.policy.flush_bytes = 16; /* less than the stub's L2 of 132 bytes */
    assert_int_equal(kkt_backend_cuda.count(backend, &c.request, &counts, &err), KKT_OK);
    assert_int_equal(counts.state, KKT_COUNT_DONE);
    assert_non_null(strstr(counts.note, "taken to be left in L2"));
    double written = counts.values[KKT_COUNTER_DRAM_WRITE_BYTES];
    assert_true(fabs(written - (PLAN_WRITTEN - PLAN_DIRTY + 0.4 * 132)) < 1e-9);
    kkt_backend_cuda.close(backend);
}

static void timing_and_counting_take_turns(void **state) {
    (void)state;
    candidate c;
    kkt_counts counts;
    kkt_measure_result result;
    kkt_error err = {0};
    kkt_backend *backend = open_cuda();
    make(&c, "good");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(kkt_backend_cuda.measure(backend, &c.request, &result, &err), KKT_OK);
        assert_int_equal(result.run.outcome, KKT_OUTCOME_OK);
        kkt_measure_result_free(&result);
        count(backend, "good", &counts);
        assert_counted(&counts);
    }
    kkt_backend_cuda.close(backend);
}

static void what_is_wrong_is_said(void **state) {
    static const struct {
        const char *how;
        kkt_count_state state;
        const char *says;
    } table[] = {
        {"denied", KKT_COUNT_UNAVAILABLE, "CAP_SYS_ADMIN"},
        {"busy", KKT_COUNT_UNAVAILABLE, "dcgmi"},
        {"wsl", KKT_COUNT_UNAVAILABLE, "WSL"},
        {"newer", KKT_COUNT_UNAVAILABLE, "GX100"},
        {"pop", KKT_COUNT_FAILED, "cuptiRangeProfilerPopRange failed"},
        {"dropped", KKT_COUNT_FAILED, "dropped a range"},
        {"endless", KKT_COUNT_FAILED, "more passes than it announced"},
        {"abort", KKT_COUNT_FAILED, "signal 6"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        kkt_counts counts;
        kkt_backend *backend = open_cuda();
        setenv("KKT_STUB_CUPTI", table[i].how, 1);
        count(backend, "good", &counts);
        unsetenv("KKT_STUB_CUPTI");
        if (counts.state != table[i].state || strstr(counts.note, table[i].says) == NULL) {
            fail_msg("%s: state %d: %s", table[i].how, (int)counts.state, counts.note);
        }
        assert_true(isnan(kkt_counts_hbm_bytes(&counts)));
        if (table[i].state == KKT_COUNT_FAILED) {
            count(backend, "good", &counts); /* a new worker counts the next one */
            assert_counted(&counts);
        }
        kkt_backend_cuda.close(backend);
    }
}

static void a_faulty_candidate_costs_itself_alone(void **state) {
    static const struct {
        const char *word, *says;
    } table[] = {
        {"illegal", "CUDA_ERROR_ILLEGAL_ADDRESS"},
        {"segv", "signal 11"},
        {"badimage", "loading the cubin"},
    };
    (void)state;
    kkt_counts counts;
    kkt_backend *backend = open_cuda();
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        count(backend, table[i].word, &counts);
        if (counts.state != KKT_COUNT_FAILED || strstr(counts.note, table[i].says) == NULL) {
            fail_msg("%s: state %d: %s", table[i].word, (int)counts.state, counts.note);
        }
        count(backend, "good", &counts);
        assert_counted(&counts);
    }
    kkt_backend_cuda.close(backend);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_residue_is_drained),
        cmocka_unit_test(without_a_drain_the_residue_is_modelled),
        cmocka_unit_test(timing_and_counting_take_turns),
        cmocka_unit_test(what_is_wrong_is_said),
        cmocka_unit_test(a_faulty_candidate_costs_itself_alone),
    };
    if (argc == 3 && strcmp(argv[1], "--worker") == 0) {
        if (strcmp(argv[2], "compile") == 0) {
            return kkt_compile_worker_main();
        }
        return strcmp(argv[2], "count") == 0 ? kkt_count_worker_serve(toy_lookup)
                                             : kkt_cuda_worker_serve(toy_lookup);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
