/* Messages between the parent and the GPU worker: there and back, and hostile bytes. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tuner/measure/backends.h"
#include "tuner/measure/wire.h"

static const char CUBIN[] = "not really a cubin";

typedef struct sample {
    kkt_values problem, config;
    kkt_policy policy;
    kkt_prediction prediction;
    kkt_measure_request request;
} sample;

static void make(sample *s) {
    kkt_error err = {0};
    memset(s, 0, sizeof *s);
    const kkt_kernel *kernel = NULL;
    assert_int_equal(kkt_kernel_parse("kkt_solve", &kernel, &err), KKT_OK);
    const kkt_arch *arch = kkt_arch_find("sm90");
    kkt_params_defaults(&kernel->problem, &s->problem);
    kkt_params_defaults(&kernel->variants[0]->params, &s->config);
    assert_int_equal(
        kkt_params_parse(&kernel->problem, "tokens=777,heads_v=32", &s->problem, NULL, &err),
        KKT_OK);
    kkt_policy_defaults(&s->policy);
    s->policy.seed = UINT64_MAX;
    s->policy.sample_seconds = 0.25;
    s->prediction.predicted_us = 12.5;
    s->prediction.lower_bound_us = 3.25;
    s->request = (kkt_measure_request){
        .kernel = kernel,
        .variant = kernel->variants[0],
        .arch = arch,
        .device = kkt_device_first(arch),
        .problem = &s->problem,
        .config = &s->config,
        .cubin = CUBIN,
        .cubin_size = sizeof CUBIN,
        .prediction = &s->prediction,
        .policy = &s->policy,
    };
}

static kkt_status decode(const unsigned char *bytes, size_t size, kkt_wire_request *out,
                         kkt_error *err) {
    kkt_unpacker in = {.data = bytes, .size = size};
    kkt_status status = kkt_wire_unpack_request(&in, kkt_kernel_parse, out, err);
    return status == KKT_OK && !kkt_unpack_done(&in) ? KKT_ERR_INPUT : status;
}

static void a_request_travels(void **state) {
    (void)state;
    sample s;
    kkt_packer out = {0};
    kkt_error err = {0};
    make(&s);
    kkt_wire_pack_request(&out, &s.request);
    static kkt_wire_request got;
    assert_int_equal(decode(out.data, out.size, &got, &err), KKT_OK);
    assert_ptr_equal(got.request.kernel, s.request.kernel);
    assert_ptr_equal(got.request.variant, s.request.variant);
    assert_ptr_equal(got.request.arch, s.request.arch);
    assert_ptr_equal(got.request.device, s.request.device);
    assert_true(kkt_values_equal(&s.request.kernel->problem, got.request.problem, &s.problem));
    assert_true(kkt_values_equal(&s.request.variant->params, got.request.config, &s.config));
    assert_int_equal(got.request.cubin_size, sizeof CUBIN);
    assert_memory_equal(got.request.cubin, CUBIN, sizeof CUBIN);
    assert_true(got.policy.seed == UINT64_MAX && got.policy.sample_seconds == 0.25);
    assert_int_equal(got.policy.flush_bytes, s.policy.flush_bytes);
    assert_true(got.prediction.predicted_us == 12.5);
    kkt_packer_free(&out);
}

static void a_truncated_request_is_refused(void **state) {
    (void)state;
    sample s;
    kkt_packer out = {0};
    static kkt_wire_request got;
    make(&s);
    kkt_wire_pack_request(&out, &s.request);
    for (size_t size = 0; size < out.size; size++) {
        kkt_error err = {0};
        unsigned char *copy = malloc(size + 1); /* exact, so that a sanitizer sees over-reads */
        assert_non_null(copy);
        memcpy(copy, out.data, size);
        assert_int_not_equal(decode(copy, size, &got, &err), KKT_OK);
        free(copy);
    }
    kkt_packer_free(&out);
}

static void flipped_bytes_do_no_harm(void **state) {
    (void)state;
    sample s;
    kkt_packer out = {0};
    static kkt_wire_request got;
    make(&s);
    kkt_wire_pack_request(&out, &s.request);
    for (size_t at = 0; at < out.size; at++) {
        for (int bit = 0; bit < 8; bit++) {
            kkt_error err = {0};
            out.data[at] ^= (unsigned char)(1 << bit);
            if (decode(out.data, out.size, &got, &err) == KKT_OK) {
                /* What is let through is within range. */
                assert_in_range(got.policy.max_samples, 1, 1000000);
                assert_true(got.policy.interval_share >= 0.0);
                assert_true(got.request.cubin_size <= out.size);
            } else {
                assert_true(err.message[0] != '\0' || err.status == KKT_OK);
            }
            out.data[at] ^= (unsigned char)(1 << bit);
        }
    }
    kkt_packer_free(&out);
}

static kkt_policy some_policy(void) {
    kkt_policy policy;
    kkt_policy_defaults(&policy);
    return policy;
}

static void a_result_travels(void **state) {
    (void)state;
    const kkt_policy policy = some_policy();
    kkt_measure_result sent, got;
    kkt_packer out = {0};
    kkt_measure_result_init(&sent, &policy);
    kkt_measure_result_init(&got, &policy);
    kkt_measure_result_set(&sent, KKT_OUTCOME_NOISY, "wide by %d us", 7);
    snprintf(sent.throttle, sizeof sent.throttle, "sw_power_cap");
    snprintf(sent.date, sizeof sent.date, "2026-01-02T03:04:05Z");
    sent.samples = malloc(3 * sizeof(float));
    assert_non_null(sent.samples);
    for (int i = 0; i < 3; i++) {
        sent.samples[i] = (float)i + 0.5F;
    }
    sent.run.sample_count = 3;
    sent.run.time_us = 1.5;
    sent.run.rel_fro = 1e-3;
    sent.run.power_w = 650.0;
    sent.run.energy_mj = 0.75;
    sent.run.outliers = 1;
    sent.run.throttled = 2;
    snprintf(sent.disturbed, sizeof sent.disturbed, "1 other process uses the GPU");
    kkt_wire_pack_result(&out, &sent, true);
    kkt_unpacker in = {.data = out.data, .size = out.size};
    bool replace = false;
    assert_true(kkt_wire_unpack_result(&in, &got, &replace));
    assert_true(replace);
    assert_int_equal(got.run.outcome, KKT_OUTCOME_NOISY);
    assert_string_equal(got.run.reason, "wide by 7 us");
    assert_string_equal(got.run.throttle, "sw_power_cap");
    assert_string_equal(got.run.date, "2026-01-02T03:04:05Z");
    assert_int_equal(got.run.sample_count, 3);
    assert_memory_equal(got.run.samples_us, sent.samples, 3 * sizeof(float));
    assert_true(got.run.time_us == 1.5 && got.run.rel_fro == 1e-3 && got.run.power_w == 650.0);
    assert_true(got.run.energy_mj == 0.75);
    assert_int_equal(got.run.outliers, 1);
    assert_int_equal(got.run.throttled, 2);
    assert_string_equal(got.run.disturbed, "1 other process uses the GPU");
    assert_true(isnan(got.run.sm_clock_mhz) && isnan(got.run.time_low_us));
    kkt_measure_result_free(&got);
    for (size_t size = 0; size < out.size; size++) {
        kkt_measure_result_init(&got, &policy);
        in = (kkt_unpacker){.data = out.data, .size = size};
        assert_false(kkt_wire_unpack_result(&in, &got, &replace));
        assert_null(got.samples);
        assert_int_equal(got.run.sample_count, 0);
    }
    kkt_measure_result_free(&sent);
    kkt_packer_free(&out);
}

static void a_bad_outcome_is_refused(void **state) {
    (void)state;
    const kkt_policy policy = some_policy();
    kkt_measure_result result;
    kkt_packer out = {0};
    bool replace = false;
    kkt_measure_result_init(&result, &policy);
    kkt_wire_pack_result(&out, &result, false);
    int64_t outcome = KKT_OUTCOME_COUNT;
    memcpy(out.data, &outcome, sizeof outcome);
    kkt_unpacker in = {.data = out.data, .size = out.size};
    assert_false(kkt_wire_unpack_result(&in, &result, &replace));
    kkt_packer_free(&out);
}

/* Times that cannot be any are not stored as if they were. */
static void impossible_times_are_refused(void **state) {
    (void)state;
    const kkt_policy policy = some_policy();
    static const struct {
        double time, low, high;
        float sample;
        bool good;
    } rows[] = {
        {2.0, 1.0, 3.0, 2.0F, true},       {2.0, 1.0, 3.0, NAN, false},
        {2.0, 1.0, 3.0, -1.0F, false},     {2.0, 2.5, 3.0, 2.0F, false},
        {2.0, 1.0, 1.5, 2.0F, false},      {(double)NAN, 1.0, 3.0, 2.0F, false},
        {INFINITY, 1.0, 3.0, 2.0F, false}, {0.0, 0.0, 3.0, 2.0F, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kkt_measure_result sent;
        kkt_measure_result got;
        kkt_packer out = {0};
        bool replace = false;
        kkt_measure_result_init(&sent, &policy);
        kkt_measure_result_init(&got, &policy);
        sent.samples = malloc(sizeof *sent.samples);
        assert_non_null(sent.samples);
        sent.samples[0] = rows[i].sample;
        sent.run.sample_count = 1;
        sent.run.outcome = KKT_OUTCOME_OK;
        sent.run.time_us = rows[i].time;
        sent.run.time_low_us = rows[i].low;
        sent.run.time_high_us = rows[i].high;
        kkt_wire_pack_result(&out, &sent, false);
        kkt_unpacker in = {.data = out.data, .size = out.size};
        assert_int_equal(kkt_wire_unpack_result(&in, &got, &replace), rows[i].good);
        kkt_measure_result_free(&got);
        kkt_measure_result_free(&sent);
        kkt_packer_free(&out);
    }
}

static void info_and_error_travel(void **state) {
    (void)state;
    kkt_packer out = {0};
    kkt_backend_info info = {.gpu = "NVIDIA H200", .driver = "580.159", .major = 9, .index = 3};
    kkt_backend_info got = {0};
    kkt_wire_pack_info(&out, &info);
    kkt_unpacker in = {.data = out.data, .size = out.size};
    assert_true(kkt_wire_unpack_info(&in, &got));
    assert_string_equal(got.gpu, "NVIDIA H200");
    assert_int_equal(got.major, 9);
    assert_int_equal(got.index, 3);
    kkt_packer_free(&out);

    kkt_error error = {.status = KKT_ERR_ENVIRONMENT, .native = 100, .message = "no\nGPU"};
    kkt_error told = {0};
    kkt_wire_pack_error(&out, &error);
    in = (kkt_unpacker){.data = out.data, .size = out.size};
    assert_true(kkt_wire_unpack_error(&in, &told));
    assert_int_equal(told.status, KKT_ERR_ENVIRONMENT);
    assert_int_equal(told.native, 100);
    assert_string_equal(told.message, "no?GPU"); /* one line, whatever comes */
    kkt_packer_free(&out);

    error.status = KKT_OK; /* no error at all */
    kkt_wire_pack_error(&out, &error);
    in = (kkt_unpacker){.data = out.data, .size = out.size};
    assert_false(kkt_wire_unpack_error(&in, &told));
    kkt_packer_free(&out);
}

static void tensors_must_fit_their_shape(void **state) {
    (void)state;
    float values[6] = {1, 2, 3, 4, 5, 6};
    kkt_host_tensor x = {{.name = "x", .dtype = KKT_FP32, .rank = 2, .dims = {2, 3}}, values};
    kkt_host_tensors list = {.count = 2};
    list.t[0].tensor = x.tensor;
    list.t[1].tensor =
        (kkt_tensor){.name = "h0", .dtype = KKT_FP32, .rank = 1, .dims = {4}, .optional = true};
    kkt_packer out = {0};
    kkt_wire_pack_tensor(&out, &x);
    kkt_unpacker in = {.data = out.data, .size = out.size};
    assert_true(kkt_wire_unpack_tensor(&in, &list));
    assert_memory_equal(list.t[0].data, values, sizeof values);
    list.t[0].tensor.dims[1] = 4; /* another shape than what comes */
    in = (kkt_unpacker){.data = out.data, .size = out.size};
    assert_false(kkt_wire_unpack_tensor(&in, &list));
    kkt_packer_free(&out);

    x.tensor.name = "y"; /* unknown */
    kkt_wire_pack_tensor(&out, &x);
    in = (kkt_unpacker){.data = out.data, .size = out.size};
    assert_false(kkt_wire_unpack_tensor(&in, &list));
    kkt_packer_free(&out);

    kkt_wire_pack_tensor(&out, &list.t[1]); /* optional and absent */
    in = (kkt_unpacker){.data = out.data, .size = out.size};
    assert_true(kkt_wire_unpack_tensor(&in, &list));
    assert_null(list.t[1].data);
    list.t[1].tensor.optional = false;
    in = (kkt_unpacker){.data = out.data, .size = out.size};
    assert_false(kkt_wire_unpack_tensor(&in, &list));
    kkt_packer_free(&out);
    kkt_host_tensors_free(&list);
}

/* Two members and the whole; the second one's code is cut off. */
static void a_pipeline_travels(void **state) {
    (void)state;
    sample s;
    kkt_packer out = {0};
    kkt_error err = {0};
    static kkt_wire_chain got;
    make(&s);
    kkt_measure_request members[2] = {s.request, s.request};
    kkt_chain_request sent = {.whole = s.request, .members = members, .count = 2};
    sent.whole.cubin_size = 0;
    sent.order = KKT_OVERLAPPED;
    kkt_wire_pack_chain(&out, &sent);
    kkt_unpacker in = {.data = out.data, .size = out.size};
    assert_int_equal(kkt_wire_unpack_chain(&in, kkt_kernel_parse, &got, &err), KKT_OK);
    assert_int_equal(got.request.order, KKT_OVERLAPPED);
    assert_int_equal(got.request.count, 2);
    assert_int_equal(got.request.whole.cubin_size, 0);
    assert_memory_equal(got.request.members[1].cubin, CUBIN, sizeof CUBIN);
    assert_true(
        kkt_values_equal(&s.request.kernel->problem, got.request.members[1].problem, &s.problem));
    for (size_t size = 0; size < out.size; size++) {
        unsigned char *copy = malloc(size + 1);
        assert_non_null(copy);
        memcpy(copy, out.data, size);
        in = (kkt_unpacker){.data = copy, .size = size};
        assert_int_not_equal(kkt_wire_unpack_chain(&in, kkt_kernel_parse, &got, &err), KKT_OK);
        free(copy);
    }
    kkt_packer_free(&out);
    members[1].cubin_size = 0;
    kkt_wire_pack_chain(&out, &sent);
    in = (kkt_unpacker){.data = out.data, .size = out.size};
    assert_int_equal(kkt_wire_unpack_chain(&in, kkt_kernel_parse, &got, &err), KKT_ERR_INPUT);
    kkt_packer_free(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_travels),
        cmocka_unit_test(a_truncated_request_is_refused),
        cmocka_unit_test(flipped_bytes_do_no_harm),
        cmocka_unit_test(a_result_travels),
        cmocka_unit_test(a_bad_outcome_is_refused),
        cmocka_unit_test(impossible_times_are_refused),
        cmocka_unit_test(info_and_error_travel),
        cmocka_unit_test(tensors_must_fit_their_shape),
        cmocka_unit_test(a_pipeline_travels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
