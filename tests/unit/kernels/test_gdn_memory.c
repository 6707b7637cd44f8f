/* Inputs by chunk where memory runs out: an answer, not the end of the process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/gdn/gdn.h"
#include "kernels/kernel.h"

enum { ANOTHER_STATUS = 100, NOT_SET_UP = 101 };

/* From here on no memory can be mapped; small tensors still fit into what the heap has. */
static bool map_no_more(void) {
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file || fscanf(file, "%ld", &pages) != 1)
        return false;
    fclose(file);
    const rlim_t bytes = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
    return setrlimit(RLIMIT_AS, &(struct rlimit){bytes, bytes}) == 0;
}

/* The exit status of a process that runs out of memory in `gdn_fwd_t`'s inputs by chunk. */
static int make_without_memory(void) {
    const kkt_kernel *kernel;
    kkt_values problem, config;
    kkt_host_tensors inputs;
    kkt_error error;
    if (kkt_kernel_parse("gdn_fwd_t", &kernel, NULL) != KKT_OK)
        return NOT_SET_UP;
    const kkt_variant *variant = kernel->variants[0];
    kkt_params_defaults(&kernel->problem, &problem);
    kkt_params_defaults(&variant->params, &config);
    if (kkt_params_parse(&kernel->problem, "tokens=64,heads_k=1,heads_v=1", &problem, NULL, NULL) !=
            KKT_OK ||
        kernel->make_inputs(&problem, KKT_CASE_RANDOM, 1, &inputs, &error) != KKT_OK ||
        !map_no_more())
        return NOT_SET_UP;
    kkt_status status =
        kernel->make_chunk_inputs(&problem, &config, KKT_CASE_RANDOM, 1, &inputs, &error);
    if (status != KKT_ERR_ENVIRONMENT || !strstr(error.message, "out of memory"))
        return ANOTHER_STATUS;
    return (int)status;
}

static void running_out_of_memory_is_an_answer(void **state) {
    (void)state;
#if defined(__SANITIZE_ADDRESS__)
    skip(); /* its allocator ends the process by itself */
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
    skip();
#endif
#endif
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        _exit(make_without_memory());
    int result = 0;
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFEXITED(result));
    assert_int_equal(WEXITSTATUS(result), KKT_ERR_ENVIRONMENT);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(running_out_of_memory_is_an_answer)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
