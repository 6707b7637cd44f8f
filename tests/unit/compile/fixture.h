/* Shared by the tests of the compiled tier. */
#ifndef KKT_TESTS_COMPILE_FIXTURE_H
#define KKT_TESTS_COMPILE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tuner/compile/compile.h"

static const char *const ARCHS[] = {"sm_80", "sm_89", "sm_90a", "sm_100", "sm_120"};
enum { ARCH_COUNT = sizeof ARCHS / sizeof *ARCHS };

/* 256 floats of static shared memory, two barriers by number, at most 128 threads. */
static const char TINY[] =
    "extern \"C\" __global__ void __launch_bounds__(128) tiny(float *x, int n) {\n"
    "    __shared__ float s[SIZE];\n"
    "    s[threadIdx.x] = x[threadIdx.x] * n;\n"
    "    __syncthreads();\n"
    "    asm volatile(\"bar.sync 3, 64;\");\n"
    "    x[threadIdx.x] = s[threadIdx.x ^ 5];\n"
    "}\n";

static inline kkt_compile_job tiny_job(const char *arch) {
    return (kkt_compile_job){
        .source_path = "tiny.cu", .nvrtc_arch = arch, .defines = "SIZE=256\n", .source_text = TINY};
}

/* A compiler, or the test is skipped with the reason. */
static inline kkt_compiler *need_compiler(void) {
    kkt_compiler *compiler = NULL;
    kkt_error err;
    if (kkt_compiler_open(&compiler, &err) != KKT_OK) {
        print_message("skipped: %s\n", err.message);
        skip();
    }
    return compiler;
}

static inline void make_folder(char out[64]) {
    snprintf(out, 64, "/tmp/kkttune-test-XXXXXX");
    assert_non_null(mkdtemp(out));
}

static inline void remove_folder(const char *folder) {
    char command[160];
    chmod(folder, 0700);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
}

/* Numbers for mutations: repeatable, nothing more is asked of them. */
static inline uint64_t next_random(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

#endif
