/* Steps that call a library: cuBLAS and a driver that run on the CPU. This program is its own
 * worker. */
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

#include "product.h"
#include "tuner/compile/pool.h"
#include "tuner/measure/backends.h"
#include "tuner/measure/cuda_worker.h"

typedef struct candidate {
    kkt_values problem, config;
    kkt_policy policy;
    kkt_measure_request request;
} candidate;

static void make(candidate *c, int64_t routine, int64_t choice, int64_t around) {
    memset(c, 0, sizeof *c);
    kkt_policy_defaults(&c->policy);
    c->policy.flush_bytes = 1 << 20;
    c->policy.sample_seconds = 0.2;
    c->problem.v[0] = 12;
    c->config.v[PRODUCT_ROUTINE] = routine;
    c->config.v[PRODUCT_CHOICE] = choice;
    c->config.v[PRODUCT_AROUND] = around;
    const kkt_arch *arch = kkt_arch_find("sm90");
    c->request = (kkt_measure_request){
        .kernel = &product_kernel,
        .variant = product_kernel.variants[0],
        .arch = arch,
        .device = kkt_device_first(arch),
        .problem = &c->problem,
        .config = &c->config,
        .policy = &c->policy,
    };
}

/* A backend whose worker has a library that misbehaves like this; NULL: it does not. */
static kkt_backend *open_with(const char *how) {
    kkt_error err = {0};
    kkt_backend *backend = NULL;
    kkt_backend_options options = {.gpu = -1};
    if (how != NULL) {
        setenv("KKT_STUB_BLAS", how, 1);
    } else {
        unsetenv("KKT_STUB_BLAS");
    }
    if (kkt_backend_cuda.open(&options, &backend, &err) != KKT_OK) {
        fail_msg("%s", err.message);
    }
    return backend;
}

static void measure(kkt_backend *backend, const candidate *c, kkt_measure_result *out) {
    kkt_error err = {0};
    if (kkt_backend_cuda.measure(backend, &c->request, out, &err) != KKT_OK) {
        fail_msg("%s", err.message);
    }
}

static void expect(kkt_backend *backend, const candidate *c, kkt_outcome outcome,
                   const char *reason) {
    kkt_measure_result r;
    measure(backend, c, &r);
    if (r.run.outcome != outcome || strstr(r.reason, reason) == NULL) {
        fail_msg("got %s (%s)", kkt_outcome_name(r.run.outcome), r.reason);
    }
    kkt_measure_result_free(&r);
}

static void its_version_is_told(void **state) {
    (void)state;
    char version[KKT_LIBRARY_VERSION_BYTES];
    kkt_error err = {0};
    kkt_backend *backend = open_with(NULL);
    const kkt_arch *arch = kkt_arch_find("sm90");
    assert_int_equal(kkt_backend_cuda.library(backend, arch, "cublas", version, &err), KKT_OK);
    assert_string_equal(version, "13.7.2");
    assert_int_equal(kkt_backend_cuda.library(backend, arch, "dreamed", version, &err),
                     KKT_ERR_MISSING);
    assert_non_null(strstr(err.message, "knows no library 'dreamed'"));
    assert_int_equal(kkt_backend_cuda.library(backend, arch, "cublas", version, &err), KKT_OK);
    kkt_backend_cuda.close(backend);
}

/* A cuBLASLt of a newer release that has no cuBLAS beside it is passed by. */
static void releases_are_not_mixed(void **state) {
    (void)state;
    static const char *const links[][2] = {{"lib/libcuda.so.1", "libcublasLt.so.13"},
                                           {"blas/lib/libcublasLt.so.13", "libcublasLt.so.12"},
                                           {"blas/lib/libcublas.so.13", "libcublas.so.12"}};
    char folder[] = "/tmp/kkt_library_XXXXXX", version[KKT_LIBRARY_VERSION_BYTES];
    char stubs[512], from[600], to[128];
    kkt_error err = {0};
    snprintf(stubs, sizeof stubs, "%s", getenv("KKTTUNE_CUDA"));
    assert_non_null(mkdtemp(folder));
    for (size_t i = 0; i < sizeof links / sizeof links[0]; i++) {
        snprintf(from, sizeof from, "%s/../%s", stubs, links[i][0]);
        snprintf(to, sizeof to, "%s/%s", folder, links[i][1]);
        assert_int_equal(symlink(from, to), 0);
    }
    setenv("KKTTUNE_CUDA", folder, 1);
    kkt_backend *backend = open_with(NULL);
    if (kkt_backend_cuda.library(backend, kkt_arch_find("sm90"), "cublas", version, &err) !=
        KKT_OK) {
        fail_msg("%s", err.message);
    }
    assert_string_equal(version, "13.7.2"); /* the stub's, which is what it is in either name */
    kkt_backend_cuda.close(backend);
    setenv("KKTTUNE_CUDA", stubs, 1);
    for (size_t i = 0; i < sizeof links / sizeof links[0]; i++) {
        snprintf(to, sizeof to, "%s/%s", folder, links[i][1]);
        assert_int_equal(unlink(to), 0);
    }
    assert_int_equal(rmdir(folder), 0);
}

/* Checked and timed without any code of the project's own; what is around the timed step costs no
 * time, and what is behind it is in the result. */
static void calls_are_checked_and_timed(void **state) {
    (void)state;
    kkt_backend *backend = open_with(NULL);
    for (int64_t routine = PRODUCT_GEMM; routine <= PRODUCT_LT; routine++) {
        for (int64_t around = 0; around < 2; around++) {
            candidate c;
            kkt_measure_result r;
            make(&c, routine, 0, around);
            measure(backend, &c, &r);
            if (r.run.outcome != KKT_OUTCOME_OK) {
                fail_msg("%s", r.reason);
            }
            assert_true(r.run.time_us > 5.0 && r.run.time_us < 5.1); /* one call of three */
            assert_true(r.run.rel_fro <= r.run.tolerance && r.run.sample_count >= 20);
            kkt_measure_result_free(&r);
        }
    }
    kkt_backend_cuda.close(backend);
}

static void finalists_take_turns(void **state) {
    (void)state;
    candidate c[2];
    kkt_measure_request requests[2];
    kkt_measure_result results[2];
    kkt_error err = {0};
    kkt_backend *backend = open_with(NULL);
    memset(results, 0, sizeof results);
    for (int i = 0; i < 2; i++) {
        make(&c[i], i == 0 ? PRODUCT_GEMM : PRODUCT_LT, 0, i);
        requests[i] = c[i].request;
    }
    assert_int_equal(kkt_backend_cuda.retime(backend, requests, 2, results, &err), KKT_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(results[i].run.outcome, KKT_OUTCOME_OK);
        assert_true(results[i].run.time_us > 5.0 && results[i].run.time_us < 5.1);
        kkt_measure_result_free(&results[i]);
    }
    kkt_backend_cuda.close(backend);
}

static void bad_calls_are_results(void **state) {
    (void)state;
    candidate c;
    kkt_backend *backend = open_with(NULL);
    make(&c, PRODUCT_LT, 1, 0); /* the second answer is wrong */
    expect(backend, &c, KKT_OUTCOME_WRONG_RESULT, "relative error");
    make(&c, PRODUCT_LT, 2, 0); /* there is no third one: the last stands for it */
    expect(backend, &c, KKT_OUTCOME_WRONG_RESULT, "relative error");
    make(&c, PRODUCT_UNKNOWN, 0, 0);
    expect(backend, &c, KKT_OUTCOME_LAUNCH_FAILED, "knows no cublasDreamed of cublas");
    make(&c, PRODUCT_GEMM, 0, 0); /* nothing outlives its candidate */
    expect(backend, &c, KKT_OUTCOME_OK, "");
    kkt_backend_cuda.close(backend);
    backend = open_with("refuse");
    expect(backend, &c, KKT_OUTCOME_LAUNCH_FAILED, "cublasGemmEx: CUBLAS_STATUS_OF_THE_STUB");
    kkt_backend_cuda.close(backend);
}

/* A library that does not start, and one that takes its process with it: told in one line, and a
 * call of it fails. The worker is another one afterwards. */
static void without_a_library(void **state) {
    (void)state;
    static const struct {
        const char *how, *told;
        kkt_outcome outcome;
        const char *reason;
    } table[] = {
        {"unable", "cuBLAS does not start: CUBLAS_STATUS_NOT_INITIALIZED",
         KKT_OUTCOME_LAUNCH_FAILED, "cuBLAS does not start"},
        {"abort", "while opening a library", KKT_OUTCOME_CRASHED, "signal 6"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        candidate c;
        char version[KKT_LIBRARY_VERSION_BYTES];
        kkt_error err = {0};
        kkt_backend *backend = open_with(table[i].how);
        make(&c, PRODUCT_GEMM, 0, 0);
        assert_int_equal(kkt_backend_cuda.library(backend, c.request.arch, "cublas", version, &err),
                         KKT_ERR_MISSING);
        if (strstr(err.message, table[i].told) == NULL) {
            fail_msg("%s", err.message);
        }
        expect(backend, &c, table[i].outcome, table[i].reason);
        kkt_backend_cuda.close(backend);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_version_is_told),         cmocka_unit_test(releases_are_not_mixed),
        cmocka_unit_test(calls_are_checked_and_timed), cmocka_unit_test(finalists_take_turns),
        cmocka_unit_test(bad_calls_are_results),       cmocka_unit_test(without_a_library),
    };
    if (argc == 3 && strcmp(argv[1], "--worker") == 0) {
        return strcmp(argv[2], "compile") == 0 ? kkt_compile_worker_main()
                                               : kkt_cuda_worker_serve(product_lookup);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
