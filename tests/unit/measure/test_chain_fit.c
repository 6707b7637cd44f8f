/* Which members of a pipeline fit together, from their descriptors alone, and that the fake backend
 * refuses what does not as the GPU's would. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tuner/measure/chain_fit.h"

/* A tensor of 8 elements. */
static kkt_tensor vector(const char *name, kkt_tensor_role role, kkt_dtype dtype) {
    return (kkt_tensor){.name = name, .role = role, .dtype = dtype, .rank = 1, .dims = {8}};
}

static int whole_tensors(const kkt_values *problem, const kkt_values *config, kkt_tensor *out) {
    (void)problem, (void)config;
    out[0] = vector("x", KKT_TENSOR_INPUT, KKT_FP32);
    out[1] = vector("y", KKT_TENSOR_OUTPUT, KKT_FP32);
    out[2] = vector("counter", KKT_TENSOR_WORKSPACE, KKT_I32);
    return 3;
}

static int first_tensors(const kkt_values *problem, const kkt_values *config, kkt_tensor *out) {
    (void)problem, (void)config;
    out[0] = vector("t", KKT_TENSOR_OUTPUT, KKT_FP16);
    out[1] = vector("x", KKT_TENSOR_INPUT, KKT_FP32);
    out[2] = vector("scratch", KKT_TENSOR_WORKSPACE, KKT_FP32);
    return 3;
}

static int second_tensors(const kkt_values *problem, const kkt_values *config, kkt_tensor *out) {
    (void)problem, (void)config;
    out[0] = vector("t", KKT_TENSOR_INPUT, KKT_FP16);
    out[1] = vector("scratch", KKT_TENSOR_WORKSPACE, KKT_FP32);
    out[2] = vector("mask", KKT_TENSOR_INPUT, KKT_FP32);
    out[2].optional = true;
    out[3] = vector("y", KKT_TENSOR_OUTPUT, KKT_FP32);
    return 4;
}

static int renamed_tensors(const kkt_values *problem, const kkt_values *config, kkt_tensor *out) {
    int count = second_tensors(problem, config, out);
    out[0].name = "t_inverse";
    return count;
}

static int wider_tensors(const kkt_values *problem, const kkt_values *config, kkt_tensor *out) {
    int count = second_tensors(problem, config, out);
    out[0].dtype = KKT_FP32;
    return count;
}

static int retyped_tensors(const kkt_values *problem, const kkt_values *config, kkt_tensor *out) {
    int count = second_tensors(problem, config, out);
    out[0].dtype = KKT_BF16; /* as many bytes */
    return count;
}

static int result_tensors(const kkt_values *problem, const kkt_values *config, kkt_tensor *out) {
    (void)problem, (void)config;
    out[0] = vector("y", KKT_TENSOR_INPUT, KKT_FP32);
    return 1;
}

static const kkt_kernel whole = {.name = "whole", .tensors = whole_tensors};
static const kkt_kernel first = {.name = "first", .tensors = first_tensors};
static const kkt_kernel second = {.name = "second", .tensors = second_tensors};
static const kkt_kernel renamed = {.name = "renamed", .tensors = renamed_tensors};
static const kkt_kernel wider = {.name = "wider", .tensors = wider_tensors};
static const kkt_kernel retyped = {.name = "retyped", .tensors = retyped_tensors};
static const kkt_kernel reads_result = {.name = "reads_result", .tensors = result_tensors};

static const kkt_variant variant = {.style = KKT_STYLE_PIPELINED};
static const kkt_values none;
static kkt_policy policy;
static const kkt_prediction prediction = {.predicted_us = 10.0, .lower_bound_us = 1.0};

static kkt_measure_request request_of(const kkt_kernel *kernel) {
    kkt_policy_defaults(&policy);
    return (kkt_measure_request){.kernel = kernel,
                                 .variant = &variant,
                                 .arch = kkt_arch_find("sm90"),
                                 .device = kkt_device_first(kkt_arch_find("sm90")),
                                 .problem = &none,
                                 .config = &none,
                                 .prediction = &prediction,
                                 .policy = &policy};
}

static bool fits(const kkt_kernel *a, const kkt_kernel *b, kkt_chain_fit *fit, char reason[200]) {
    const kkt_measure_request members[] = {request_of(a), request_of(b)};
    const kkt_chain_request request = {.whole = request_of(&whole), .members = members, .count = 2};
    reason[0] = '\0';
    return kkt_chain_fit_make(&request, fit, reason, 200);
}

static void members_meet_by_name(void **state) {
    (void)state;
    kkt_chain_fit fit;
    char reason[200];
    assert_true(fits(&first, &second, &fit, reason));
    /* x, y, counter; t, scratch of first; scratch of second, mask. */
    assert_int_equal(fit.count, 7);
    const int of_first[] = {3, 0, 4}, of_second[] = {3, 5, 6, 1};
    assert_memory_equal(fit.places[0], of_first, sizeof of_first);
    assert_memory_equal(fit.places[1], of_second, sizeof of_second);
    assert_int_equal(fit.bytes[2], 0);
    assert_int_equal(fit.bytes[3], 16);
    assert_int_equal(fit.tensors[3].role, KKT_TENSOR_WORKSPACE);
    assert_int_equal(fit.tensors[1].role, KKT_TENSOR_OUTPUT);
}

static void what_does_not_fit_is_named(void **state) {
    (void)state;
    kkt_chain_fit fit;
    char reason[200];
    assert_false(fits(&first, &renamed, &fit, reason));
    assert_string_equal(reason, "renamed reads t_inverse, which no kernel before it writes");
    assert_false(fits(&second, &first, &fit, reason)); /* in the wrong order */
    assert_string_equal(reason, "second reads t, which no kernel before it writes");
    assert_false(fits(&reads_result, &second, &fit, reason)); /* no one has written it yet */
    assert_string_equal(reason, "reads_result reads y, which no kernel before it writes");
    assert_false(fits(&first, &wider, &fit, reason));
    assert_non_null(strstr(reason, "t of wider has 32 bytes of fp32; elsewhere"));
    assert_false(fits(&first, &retyped, &fit, reason));
    assert_non_null(strstr(reason, "t of retyped has 16 bytes of bf16; elsewhere"));
}

static void the_fake_backend_rejects_it(void **state) {
    (void)state;
    const kkt_backend_type *type = kkt_backend_find("fake");
    const kkt_backend_options options = {.fake = "seed=1"};
    const kkt_kernel *const seconds[] = {&second, &renamed};
    kkt_backend *backend = NULL;
    assert_int_equal(type->open(&options, &backend, NULL), KKT_OK);
    for (int i = 0; i < 2; i++) {
        const kkt_measure_request members[] = {request_of(&first), request_of(seconds[i])};
        const kkt_chain_request request = {
            .whole = request_of(&whole), .members = members, .count = 2};
        kkt_measure_result result;
        memset(&result, 0, sizeof result);
        assert_int_equal(type->chain(backend, &request, &result, NULL), KKT_OK);
        assert_int_equal(result.run.outcome, i == 0 ? KKT_OUTCOME_OK : KKT_OUTCOME_REJECTED);
        assert_true(i == 0 || strstr(result.run.reason, "t_inverse") != NULL);
        kkt_measure_result_free(&result);
    }
    type->close(backend);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_meet_by_name),
        cmocka_unit_test(what_does_not_fit_is_named),
        cmocka_unit_test(the_fake_backend_rejects_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
