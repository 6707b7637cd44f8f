/* The cuda backend with a driver that runs on the CPU: every outcome a candidate can have, and a
 * worker process that dies, hangs or talks nonsense. This program is its own worker. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "toy.h"
#include "tuner/compile/pool.h"
#include "tuner/measure/backends.h"
#include "tuner/measure/cuda_worker.h"

#define CUBIN_BYTES 16

typedef struct candidate {
    kkt_values problem, config;
    kkt_prediction prediction;
    kkt_policy policy;
    char cubin[CUBIN_BYTES];
    kkt_measure_request request;
} candidate;

static void make(candidate *c, const char *word, int64_t tag) {
    memset(c, 0, sizeof *c);
    kkt_policy_defaults(&c->policy);
    c->policy.flush_bytes = 1 << 20;
    c->policy.candidate_seconds = strncmp(word, "hang", 4) == 0 ? 0.5 : 5.0;
    c->policy.sample_seconds = 0.2;
    c->problem.v[0] = 5000;
    c->config.v[1] = tag;
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

static void measure(kkt_backend *backend, const char *word, kkt_measure_result *out) {
    candidate c;
    kkt_error err = {0};
    make(&c, word, 0);
    if (kkt_backend_cuda.measure(backend, &c.request, out, &err) != KKT_OK) {
        fail_msg("%s: %s", word, err.message);
    }
}

static void expect(kkt_backend *backend, const char *word, kkt_outcome outcome,
                   const char *reason) {
    kkt_measure_result result;
    measure(backend, word, &result);
    if (result.run.outcome != outcome ||
        (reason != NULL && strstr(result.reason, reason) == NULL)) {
        fail_msg("%s: got %s (%s)", word, kkt_outcome_name(result.run.outcome), result.reason);
    }
    assert_true(outcome == KKT_OUTCOME_OK || isnan(result.run.time_us) ||
                outcome == KKT_OUTCOME_NOISY);
    kkt_measure_result_free(&result);
}

static void the_device_is_described(void **state) {
    (void)state;
    setenv("KKT_STUB_PROCESSES", "2", 1);
    kkt_backend *backend = open_cuda();
    unsetenv("KKT_STUB_PROCESSES");
    const kkt_backend_info *info = kkt_backend_cuda.info(backend);
    assert_string_equal(info->gpu, "Stub GPU 0");
    assert_string_equal(info->driver, "580.99");
    assert_int_equal(info->major, 9);
    assert_int_equal(info->minor, 0);
    assert_non_null(strstr(info->note, "2 other processes use GPU 0"));
    kkt_backend_cuda.close(backend);
}

static void a_good_candidate_is_timed(void **state) {
    (void)state;
    kkt_backend *backend = open_cuda();
    kkt_measure_result r;
    measure(backend, "good", &r);
    if (r.run.outcome != KKT_OUTCOME_OK) {
        fail_msg("%s", r.reason);
    }
    assert_null(r.run.reason);
    /* Two launches of 5 us; the 100 us of the flush are outside. */
    assert_true(r.run.time_us > 10.0 && r.run.time_us < 10.1);
    assert_true(r.run.time_low_us <= r.run.time_us && r.run.time_us <= r.run.time_high_us);
    assert_true(r.run.sample_count >= 20 && r.run.samples_us != NULL);
    assert_true(r.run.rel_fro <= r.run.tolerance && r.run.tolerance == 1e-6);
    assert_true(r.run.sm_clock_mhz == 1980.0 && r.run.memory_clock_mhz == 3201.0);
    assert_true(r.run.power_w == 612.5 && r.run.temperature_c == 41.0);
    assert_string_equal(r.run.throttle, "");
    assert_string_equal(r.run.gpu, "Stub GPU 0");
    assert_int_equal(strlen(r.run.date), 20);
    assert_non_null(strstr(r.run.policy, "flush_bytes=1048576"));
    kkt_measure_result_free(&r);
    kkt_backend_cuda.close(backend);
}

static void each_misbehaviour_has_its_outcome(void **state) {
    static const struct {
        const char *word;
        kkt_outcome outcome;
        const char *reason;
    } table[] = {
        {"wrong", KKT_OUTCOME_WRONG_RESULT, "relative error"},
        {"wronglarge", KKT_OUTCOME_WRONG_RESULT, "full problem"},
        {"race", KKT_OUTCOME_RACY, "differ"},
        {"racelarge", KKT_OUTCOME_RACY, "full problem"},
        {"unwritten", KKT_OUTCOME_WRONG_RESULT, "never written"},
        {"unwrittenlarge", KKT_OUTCOME_WRONG_RESULT, "1 elements of y were never written"},
        {"overrun", KKT_OUTCOME_WRONG_RESULT, "memory beside y"},
        {"underrun", KKT_OUTCOME_WRONG_RESULT, "memory beside y"},
        {"illegal", KKT_OUTCOME_LAUNCH_FAILED, "CUDA_ERROR_ILLEGAL_ADDRESS"},
        {"badimage", KKT_OUTCOME_LAUNCH_FAILED, "CUDA_ERROR_INVALID_IMAGE"},
        {"hang", KKT_OUTCOME_TIMED_OUT, "no answer within"},
        {"segv", KKT_OUTCOME_CRASHED, "signal 11"},
        {"wild", KKT_OUTCOME_NOISY, "is something else using the GPU"},
    };
    (void)state;
    kkt_backend *backend = open_cuda();
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        expect(backend, table[i].word, table[i].outcome, table[i].reason);
        expect(backend, "good", KKT_OUTCOME_OK, NULL); /* nothing outlives its candidate */
    }
    kkt_backend_cuda.close(backend);
}

static kkt_outcome measure_parts(kkt_backend *backend, const char *word, int parts, char *reason) {
    candidate c;
    kkt_measure_result r;
    kkt_error err = {0};
    make(&c, word, 0);
    c.policy.large_parts = parts;
    assert_int_equal(kkt_backend_cuda.measure(backend, &c.request, &r, &err), KKT_OK);
    snprintf(reason, 320, "%s", r.reason);
    const kkt_outcome outcome = r.run.outcome;
    kkt_measure_result_free(&r);
    return outcome;
}

/* A fault in a part that no reference is computed for: found by comparison with a candidate before,
 * right or wrong itself; the reference decides which of the two is at fault. */
static void what_no_sample_meets_is_found_by_comparison(void **state) {
    (void)state;
    char reason[320];
    kkt_backend *backend = open_cuda();
    assert_int_equal(measure_parts(backend, "good", 2, reason), KKT_OUTCOME_OK);
    assert_int_equal(measure_parts(backend, "wrongmiddle", 2, reason), KKT_OUTCOME_WRONG_RESULT);
    assert_non_null(strstr(reason, "full problem, part 4 of 10: relative error"));
    assert_int_equal(measure_parts(backend, "good", 2, reason), KKT_OUTCOME_OK);
    kkt_backend_cuda.close(backend);

    backend = open_cuda();
    assert_int_equal(measure_parts(backend, "wrongmiddle", 2, reason), KKT_OUTCOME_OK);
    assert_int_equal(measure_parts(backend, "good", 2, reason), KKT_OUTCOME_OK);
    assert_int_equal(measure_parts(backend, "wrongmiddle", 2, reason), KKT_OUTCOME_WRONG_RESULT);
    kkt_backend_cuda.close(backend);
}

static void too_much_shared_memory_fails_at_launch(void **state) {
    (void)state;
    kkt_backend *backend = open_cuda();
    static const struct {
        int64_t smem;
        kkt_outcome outcome;
    } table[] = {
        {40000, KKT_OUTCOME_OK}, {200000, KKT_OUTCOME_OK}, {300000, KKT_OUTCOME_LAUNCH_FAILED}};
    for (size_t i = 0; i < 3; i++) {
        candidate c;
        kkt_measure_result r;
        kkt_error err = {0};
        make(&c, "good", 0);
        c.config.v[0] = table[i].smem;
        assert_int_equal(kkt_backend_cuda.measure(backend, &c.request, &r, &err), KKT_OK);
        assert_int_equal(r.run.outcome, table[i].outcome);
        assert_true(i < 2 || strstr(r.reason, "dynamic shared memory of toy_low: "
                                              "CUDA_ERROR_INVALID_VALUE") != NULL);
        kkt_measure_result_free(&r);
    }
    kkt_backend_cuda.close(backend);
}

static void throttled_samples_are_repeated(void **state) {
    (void)state;
    setenv("KKT_STUB_THROTTLED", "2", 1);
    kkt_backend *backend = open_cuda();
    kkt_measure_result r;
    measure(backend, "good", &r);
    assert_int_equal(r.run.outcome, KKT_OUTCOME_OK);
    assert_string_equal(r.run.throttle, ""); /* the two batches were dropped */
    kkt_measure_result_free(&r);
    kkt_backend_cuda.close(backend);
    setenv("KKT_STUB_THROTTLED", "100000", 1);
    backend = open_cuda();
    unsetenv("KKT_STUB_THROTTLED");
    measure(backend, "good", &r);
    assert_int_equal(r.run.outcome, KKT_OUTCOME_OK);
    assert_string_equal(r.run.throttle, "sw_power_cap"); /* it never ends: kept, and said */
    assert_int_equal(r.run.throttled, r.run.sample_count);
    kkt_measure_result_free(&r);
    kkt_backend_cuda.close(backend);
}

static void a_crowded_gpu_is_noted(void **state) {
    (void)state;
    setenv("KKT_STUB_PROCESSES", "1", 1);
    kkt_backend *backend = open_cuda();
    unsetenv("KKT_STUB_PROCESSES");
    kkt_measure_result r;
    measure(backend, "good", &r);
    assert_int_equal(r.run.outcome, KKT_OUTCOME_OK);
    assert_string_equal(r.run.disturbed, "1 other process uses the GPU");
    kkt_measure_result_free(&r);
    kkt_backend_cuda.close(backend);
    setenv("KKT_STUB_FAMILY", "1", 1); /* the tuner's own processes are no others */
    backend = open_cuda();
    unsetenv("KKT_STUB_FAMILY");
    assert_string_equal(kkt_backend_cuda.info(backend)->note, "");
    measure(backend, "good", &r);
    assert_null(r.run.disturbed);
    kkt_measure_result_free(&r);
    kkt_backend_cuda.close(backend);
}

static void a_lost_gpu_ends_the_run(void **state) {
    (void)state;
    kkt_backend *backend = open_cuda();
    candidate c;
    kkt_measure_result r;
    kkt_error err = {0};
    make(&c, "lost", 0);
    assert_int_equal(kkt_backend_cuda.measure(backend, &c.request, &r, &err), KKT_ERR_ENVIRONMENT);
    assert_non_null(strstr(err.message, "CUDA_ERROR_DEVICE_UNAVAILABLE"));
    assert_non_null(strstr(err.message, "nvidia-smi"));
    kkt_measure_result_free(&r);
    kkt_backend_cuda.close(backend);
}

static void opening_fails_in_one_line(void **state) {
    static const struct {
        const char *name, *value;
        int gpu;
        const char *says;
    } table[] = {
        {"KKT_STUB_DEVICES", "0", -1, "CUDA_VISIBLE_DEVICES"},
        {"KKT_STUB_DEVICES", "2", 2, "there is no GPU 2; 2 visible"},
        {"KKT_STUB_VERSION", "12040", -1, "CUDA 12.4 only; install a driver of 580"},
        {"KKT_TEST_WORKER", "quit", -1, "exit code 7"},
        {"KKT_TEST_WORKER", "garbage", -1, "makes no sense"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        kkt_error err = {0};
        kkt_backend *backend = NULL;
        kkt_backend_options options = {.gpu = table[i].gpu};
        setenv(table[i].name, table[i].value, 1);
        kkt_status status = kkt_backend_cuda.open(&options, &backend, &err);
        unsetenv(table[i].name);
        assert_int_equal(status, KKT_ERR_ENVIRONMENT);
        assert_null(backend);
        if (strstr(err.message, table[i].says) == NULL) {
            fail_msg("%s", err.message);
        }
    }
}

static void the_second_gpu_can_be_chosen(void **state) {
    (void)state;
    kkt_error err = {0};
    kkt_backend *backend = NULL;
    kkt_backend_options options = {.gpu = 1};
    setenv("KKT_STUB_DEVICES", "2", 1);
    assert_int_equal(kkt_backend_cuda.open(&options, &backend, &err), KKT_OK);
    unsetenv("KKT_STUB_DEVICES");
    assert_string_equal(kkt_backend_cuda.info(backend)->gpu, "Stub GPU 1");
    assert_string_equal(kkt_backend_cuda.info(backend)->driver, "CUDA 13.0"); /* no NVML there */
    kkt_measure_result r;
    measure(backend, "good", &r);
    assert_int_equal(r.run.outcome, KKT_OUTCOME_OK);
    assert_true(isnan(r.run.sm_clock_mhz));
    kkt_measure_result_free(&r);
    kkt_backend_cuda.close(backend);
}

static void retime(const char *const *words, size_t count, kkt_measure_result *results) {
    candidate c[8];
    kkt_measure_request requests[8];
    kkt_error err = {0};
    setenv("KKT_STUB_RETIME", "1", 1);
    kkt_backend *backend = open_cuda();
    for (size_t i = 0; i < count; i++) {
        make(&c[i], words[i], (int64_t)i);
        c[i].problem.v[0] += i == 3 ? 1000 : 0; /* one of another problem */
        requests[i] = c[i].request;
    }
    if (kkt_backend_cuda.retime(backend, requests, count, results, &err) != KKT_OK) {
        fail_msg("%s", err.message);
    }
    unsetenv("KKT_STUB_RETIME");
    kkt_backend_cuda.close(backend);
}

static void finalists_are_timed_in_turn(void **state) {
    static const char *const words[] = {"good", "good", "wronglarge", "good"};
    (void)state;
    kkt_measure_result r[4];
    retime(words, 4, r);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(r[i].run.outcome, i == 2 ? KKT_OUTCOME_WRONG_RESULT : KKT_OUTCOME_OK);
        if (i != 2) {
            assert_true(r[i].run.time_us > 10.0 && r[i].run.time_us < 10.1);
            assert_true(r[i].run.sample_count >= 20 && r[i].run.rel_fro <= 1e-6);
        }
        kkt_measure_result_free(&r[i]);
    }
}

/* A finalist whose interval is narrow ends, but on a GPU that is slowed down it goes on for as long
 * as the others do: else some would be timed at its first clocks and some at its later ones. */
static void a_slow_gpu_is_slow_for_all_finalists(void **state) {
    static const char *const words[] = {"good", "wild"};
    (void)state;
    for (int slow = 0; slow < 2; slow++) {
        kkt_measure_result r[2];
        if (slow) {
            setenv("KKT_STUB_THROTTLED", "1000000", 1);
        }
        retime(words, 2, r);
        unsetenv("KKT_STUB_THROTTLED");
        assert_int_equal(r[0].run.outcome, KKT_OUTCOME_OK);
        assert_int_equal(r[1].run.outcome, KKT_OUTCOME_NOISY);
        assert_true((r[0].run.sample_count == r[1].run.sample_count) == (slow == 1));
        for (size_t i = 0; i < 2; i++) {
            kkt_measure_result_free(&r[i]);
        }
    }
}

/* 500 W for about 10 us. */
static void finalists_have_an_energy(void **state) {
    static const char *const words[] = {"good", "wronglarge"};
    (void)state;
    kkt_measure_result r[2];
    setenv("KKT_STUB_WATTS", "500", 1);
    retime(words, 2, r);
    unsetenv("KKT_STUB_WATTS");
    assert_int_equal(r[0].run.outcome, KKT_OUTCOME_OK);
    assert_true(fabs(r[0].run.energy_mj - 5.0) < 0.5);
    assert_true(isnan(r[1].run.energy_mj));
    for (size_t i = 0; i < 2; i++) {
        kkt_measure_result_free(&r[i]);
    }
    retime(words, 1, r); /* a device without the counter */
    assert_int_equal(r[0].run.outcome, KKT_OUTCOME_OK);
    assert_true(isnan(r[0].run.energy_mj));
    kkt_measure_result_free(&r[0]);
}

static void one_bad_finalist_spoils_no_other(void **state) {
    static const char *const illegal[] = {"good", "illegalretime", "good"};
    static const char *const hang[] = {"hang", "hangretime"};
    (void)state;
    kkt_measure_result r[3];
    retime(illegal, 3, r);
    assert_int_equal(r[0].run.outcome, KKT_OUTCOME_OK);
    assert_int_equal(r[1].run.outcome, KKT_OUTCOME_LAUNCH_FAILED);
    assert_int_equal(r[2].run.outcome, KKT_OUTCOME_OK);
    for (size_t i = 0; i < 3; i++) {
        kkt_measure_result_free(&r[i]);
    }
    retime(hang, 2, r);
    assert_int_equal(r[0].run.outcome, KKT_OUTCOME_TIMED_OUT);
    assert_int_equal(r[1].run.outcome, KKT_OUTCOME_TIMED_OUT);
    for (size_t i = 0; i < 2; i++) {
        kkt_measure_result_free(&r[i]);
    }
}

static void the_callers_data_come_back(void **state) {
    (void)state;
    kkt_backend *backend = open_cuda();
    candidate c;
    kkt_error err = {0};
    kkt_host_tensors tensors = {0};
    make(&c, "good", 0);
    c.problem.v[0] = 10;
    tensors.count = 1;
    tensors.t[0].tensor = (kkt_tensor){"x", KKT_TENSOR_INPUT, KKT_FP32, 1, {10}, false};
    float *x = malloc(10 * sizeof *x);
    assert_non_null(x);
    for (int i = 0; i < 10; i++) {
        x[i] = (float)i * 1.25F;
    }
    tensors.t[0].data = x;
    if (kkt_backend_cuda.run(backend, &c.request, &tensors, &err) != KKT_OK) {
        fail_msg("%s", err.message);
    }
    kkt_host_tensor *y = kkt_host_tensor_find(&tensors, "y");
    assert_non_null(y);
    for (int i = 0; i < 10; i++) {
        assert_true(kkt_dtype_load(KKT_FP32, y->data, (size_t)i) == 2.5 * i);
    }
    make(&c, "illegal", 0);
    c.problem.v[0] = 10;
    assert_int_equal(kkt_backend_cuda.run(backend, &c.request, &tensors, &err), KKT_ERR_MISSING);
    assert_non_null(strstr(err.message, "launch_failed"));
    assert_non_null(strstr(err.message, "CUDA_ERROR_ILLEGAL_ADDRESS"));
    kkt_host_tensors_free(&tensors);
    kkt_backend_cuda.close(backend);
}

/* What a worker answers to one message; the frame is freed. */
static void expect_error(kkt_child *child, uint32_t kind, const void *bytes, size_t size,
                         const char *says) {
    kkt_error err = {0};
    kkt_error told = {0};
    kkt_frame frame;
    assert_int_equal(kkt_child_send(child, kind, bytes, size, 10.0, &err), KKT_OK);
    assert_int_equal(kkt_child_receive(child, 10.0, &frame), KKT_CHILD_FRAME);
    assert_int_equal(frame.kind, KKT_WIRE_ERROR);
    kkt_unpacker in = {.data = frame.payload, .size = frame.size};
    assert_true(kkt_wire_unpack_error(&in, &told));
    if (strstr(told.message, says) == NULL) {
        fail_msg("%s", told.message);
    }
    kkt_frame_free(&frame);
}

static void hostile_messages_are_refused(void **state) {
    (void)state;
    kkt_child *child = NULL;
    kkt_error err = {0};
    kkt_frame frame;
    const int64_t words[] = {-1, INT64_MAX, 7};
    assert_int_equal(kkt_child_open(NULL, KKT_CUDA_ROLE, &child, &err), KKT_OK);
    expect_error(child, KKT_WIRE_MEASURE, "", 0, "early");
    expect_error(child, KKT_WIRE_HELLO, words, 3, "hello");
    expect_error(child, KKT_WIRE_HELLO, &words[1], sizeof words[1], "hello");
    expect_error(child, KKT_WIRE_SETUP, words, sizeof words, "setup"); /* before hello */
    assert_int_equal(kkt_child_send(child, KKT_WIRE_HELLO, words, sizeof words[0], 10.0, &err),
                     KKT_OK);
    assert_int_equal(kkt_child_receive(child, 10.0, &frame), KKT_CHILD_FRAME);
    assert_int_equal(frame.kind, KKT_WIRE_INFO);
    kkt_frame_free(&frame);
    expect_error(child, KKT_WIRE_HELLO, words, sizeof words[0], "hello"); /* twice */
    expect_error(child, KKT_WIRE_SETUP, &words[1], sizeof words[1], "setup");
    expect_error(child, KKT_WIRE_RUN, words, sizeof words, "early");
    kkt_packer setup = {0};
    kkt_pack_blob(&setup, "helpers of the stub", 20);
    assert_int_equal(kkt_child_send(child, KKT_WIRE_SETUP, setup.data, setup.size, 10.0, &err),
                     KKT_OK);
    kkt_packer_free(&setup);
    assert_int_equal(kkt_child_receive(child, 10.0, &frame), KKT_CHILD_FRAME);
    assert_int_equal(frame.kind, KKT_WIRE_READY);
    kkt_frame_free(&frame);
    expect_error(child, KKT_WIRE_MEASURE, words, sizeof words, "unknown kernel");
    expect_error(child, KKT_WIRE_RETIME, &words[1], sizeof words[1], "retime");
    expect_error(child, KKT_WIRE_RETIME, &words[2], sizeof words[2], "unknown kernel");
    expect_error(child, 4711, words, sizeof words, "unknown");
    kkt_child_close(child);
}

/* ---- the worker's side ---- */

/* Workers that do not keep to the rules. */
static int misbehave(const char *how) {
    kkt_worker *worker = NULL;
    kkt_error err = {0};
    kkt_frame frame;
    if (strcmp(how, "quit") == 0) {
        return 7;
    }
    if (kkt_worker_open(&worker, &err) != KKT_OK || !kkt_worker_receive(worker, &frame)) {
        return 3;
    }
    kkt_frame_free(&frame);
    kkt_worker_send(worker, 4711, "?", 1);
    pause();
    return 0;
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_device_is_described),
        cmocka_unit_test(opening_fails_in_one_line),
        cmocka_unit_test(a_good_candidate_is_timed),
        cmocka_unit_test(each_misbehaviour_has_its_outcome),
        cmocka_unit_test(what_no_sample_meets_is_found_by_comparison),
        cmocka_unit_test(too_much_shared_memory_fails_at_launch),
        cmocka_unit_test(throttled_samples_are_repeated),
        cmocka_unit_test(a_crowded_gpu_is_noted),
        cmocka_unit_test(a_lost_gpu_ends_the_run),
        cmocka_unit_test(the_second_gpu_can_be_chosen),
        cmocka_unit_test(finalists_are_timed_in_turn),
        cmocka_unit_test(a_slow_gpu_is_slow_for_all_finalists),
        cmocka_unit_test(finalists_have_an_energy),
        cmocka_unit_test(one_bad_finalist_spoils_no_other),
        cmocka_unit_test(the_callers_data_come_back),
        cmocka_unit_test(hostile_messages_are_refused),
    };
    if (argc == 3 && strcmp(argv[1], "--worker") == 0) {
        if (strcmp(argv[2], "compile") == 0) {
            return kkt_compile_worker_main();
        }
        const char *how = getenv("KKT_TEST_WORKER");
        return how != NULL ? misbehave(how) : kkt_cuda_worker_serve(toy_lookup);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
