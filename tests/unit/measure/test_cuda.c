/* The cuda backend where there is no GPU to be had: one line with the remedy. This program is its
 * own worker. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tuner/measure/backend.h"

static void no_gpu_is_an_environment_error(void **state) {
    (void)state;
    kkt_error err = {0};
    kkt_backend *backend = NULL;
    kkt_backend_options options = {.gpu = -1};
    const kkt_backend_type *cuda = kkt_backend_find("cuda");
    assert_non_null(cuda);
    setenv("CUDA_VISIBLE_DEVICES", "", 1); /* nothing visible, where there is a GPU */
    assert_int_equal(cuda->open(&options, &backend, &err), KKT_ERR_ENVIRONMENT);
    assert_null(backend);
    /* verify and run have no other way: who has one tells of it. */
    assert_null(strstr(err.message, "without a GPU"));
    assert_true(strstr(err.message, "install a driver") != NULL ||
                strstr(err.message, "check nvidia-smi") != NULL);
    assert_null(strchr(err.message, '\n'));
}

static void a_program_that_is_not_there_is_named(void **state) {
    (void)state;
    kkt_error err = {0};
    kkt_backend *backend = NULL;
    kkt_backend_options options = {.gpu = -1, .program = "/nonexistent/kkttune"};
    assert_int_equal(kkt_backend_find("cuda")->open(&options, &backend, &err), KKT_ERR_ENVIRONMENT);
    assert_null(backend);
    assert_non_null(strstr(err.message, "/nonexistent/kkttune"));
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_gpu_is_an_environment_error),
        cmocka_unit_test(a_program_that_is_not_there_is_named),
    };
    if (argc == 3 && strcmp(argv[1], "--worker") == 0) {
        return kkt_cuda_worker_main();
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
