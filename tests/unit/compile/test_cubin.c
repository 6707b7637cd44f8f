/* The cubin reader against what ptxas says, and on damaged files. */
#include "tests/unit/compile/fixture.h"
#include "tuner/compile/log.h"

static void compile_tiny(kkt_compiler *compiler, const char *arch, kkt_compile_result *out) {
    kkt_compile_job job = tiny_job(arch);
    kkt_error err = {0};
    assert_int_equal(kkt_compile(compiler, &job, out, &err), KKT_OK);
    if (!out->ok)
        print_error("%s\n", out->log);
    assert_true(out->ok);
}

static void agrees_with_the_compilers_log(void **state) {
    (void)state;
    kkt_compiler *compiler = need_compiler();
    for (size_t i = 0; i < ARCH_COUNT; i++) {
        kkt_compile_result result;
        compile_tiny(compiler, ARCHS[i], &result);
        assert_int_equal(result.info.registers, kkt_log_number(result.log, "registers"));
        assert_int_equal(result.info.barriers, kkt_log_number(result.log, "barriers"));
        assert_int_equal(result.info.static_smem_bytes, kkt_log_number(result.log, "bytes smem"));
        assert_int_equal(result.info.static_smem_bytes, 1024);
        assert_int_equal(result.info.stack_bytes, kkt_log_number(result.log, "bytes stack frame"));
        assert_int_equal(result.info.barriers, 4);
        assert_int_equal(result.info.max_threads, 128);
        assert_int_equal(result.info.spill_store_bytes, 0);
        assert_int_equal(result.info.cubin_bytes, result.cubin_size);
        assert_true(result.compile_ms > 0);
        kkt_compile_result_free(&result);
    }
    kkt_compiler_close(compiler);
}

/* Forced into 24 registers, so that stack and spills are there to be read. */
static void tells_spills_and_kernels_without_bounds(void **state) {
    (void)state;
    static const char heavy[] = "extern \"C\" __global__ void heavy(float *x) {\n"
                                "    float y[64];\n"
                                "    for (int i = 0; i < 64; i++) y[i] = x[i * 32 + threadIdx.x];\n"
                                "    __syncthreads();\n"
                                "    for (int r = 0; r < 4; r++)\n"
                                "        for (int i = 0; i < 64; i++) y[i] = y[i] * y[(i * 7 + 3) "
                                "& 63] + y[(i + r) & 63];\n"
                                "    for (int i = 0; i < 64; i++) x[i * 32 + threadIdx.x] = y[i];\n"
                                "}\n";
    kkt_compiler *compiler = need_compiler();
    kkt_compile_job job = {
        .source_path = "heavy.cu", .nvrtc_arch = "sm_90a", .defines = "", .source_text = heavy};
    kkt_compile_result result;
    assert_int_equal(kkt_compile(compiler, &job, &result, NULL), KKT_OK);
    assert_true(result.ok);
    assert_int_equal(result.info.max_threads, 0);
    assert_int_equal(result.info.static_smem_bytes, 0);
    assert_true(result.info.registers > 60);
    kkt_compile_result_free(&result);

    /* Beside a light one it is still the one that is told of, whichever comes first. */
    static const char light[] =
        "extern \"C\" __global__ void %s(float *x) { x[threadIdx.x] = 1; }\n";
    const char *const names[] = {"a_light_one", "light"};
    for (int i = 0; i < 2; i++) {
        char both[sizeof heavy + 2 * sizeof light];
        const int at = snprintf(both, sizeof both, light, names[i]);
        snprintf(both + at, sizeof both - (size_t)at, "%s", heavy);
        job.source_text = both;
        assert_int_equal(kkt_compile(compiler, &job, &result, NULL), KKT_OK);
        assert_true(result.ok);
        assert_true(result.info.registers > 60);
        kkt_compile_result_free(&result);
    }

    char bounded[sizeof heavy + 64];
    snprintf(bounded, sizeof bounded, "extern \"C\" __global__ void __launch_bounds__(1024, 2) %s",
             strstr(heavy, "heavy("));
    job.source_text = bounded;
    assert_int_equal(kkt_compile(compiler, &job, &result, NULL), KKT_OK);
    assert_true(result.ok);
    assert_true(result.info.registers <= 32);
    assert_true(result.info.stack_bytes > 0);
    assert_int_equal(result.info.spill_store_bytes,
                     kkt_log_number(result.log, "bytes spill stores"));
    assert_true(result.info.spill_store_bytes > 0);
    assert_true(result.info.spill_load_bytes > 0);
    const kkt_cubin_info alone = result.info;
    kkt_compile_result_free(&result);

    /* Of two, the one's registers and the other's spills; a copy of that one adds nothing. */
    const char *const name = strstr(heavy, "heavy(");
    char three[3 * sizeof bounded];
    snprintf(three, sizeof three,
             "%s extern \"C\" __global__ void __launch_bounds__(1024, 2) again_%s"
             " extern \"C\" __global__ void free_%s",
             bounded, name, name);
    job.source_text = three;
    assert_int_equal(kkt_compile(compiler, &job, &result, NULL), KKT_OK);
    assert_true(result.ok);
    assert_true(result.info.registers > 60);
    assert_int_equal(result.info.spill_store_bytes, alone.spill_store_bytes);
    assert_int_equal(result.info.spill_load_bytes, alone.spill_load_bytes);
    assert_int_equal(result.info.stack_bytes, alone.stack_bytes);
    assert_int_equal(result.info.static_smem_bytes, 0);
    kkt_compile_result_free(&result);
    kkt_compiler_close(compiler);
}

static void a_source_that_does_not_compile_is_a_result(void **state) {
    (void)state;
    kkt_compiler *compiler = need_compiler();
    kkt_compile_job job = tiny_job("sm_90a");
    job.source_text = "__global__ void f() { undeclared = 1; }\n";
    kkt_compile_result result;
    assert_int_equal(kkt_compile(compiler, &job, &result, NULL), KKT_OK);
    assert_false(result.ok);
    assert_null(result.cubin);
    assert_non_null(strstr(result.log, "undeclared"));
    kkt_compile_result_free(&result);

    job = tiny_job("sm_1");
    assert_int_equal(kkt_compile(compiler, &job, &result, NULL), KKT_OK);
    assert_false(result.ok);
    assert_true(strlen(result.log) > 0);
    kkt_compile_result_free(&result);

    kkt_error err;
    job = tiny_job("sm_90a");
    job.source_text = "__device__ int no_kernel;\n";
    assert_int_equal(kkt_compile(compiler, &job, &result, &err), KKT_OK);
    assert_false(result.ok);
    assert_null(result.cubin);
    assert_non_null(strstr(result.log, "tiny.cu: the compiler's cubin cannot be read: "));
    kkt_compile_result_free(&result);

    job.source_text = NULL;
    job.source_path = "no/such.cu";
    assert_int_equal(kkt_compile(compiler, &job, &result, &err), KKT_ERR_INPUT);
    assert_non_null(strstr(err.message, "no/such.cu"));
    kkt_compiler_close(compiler);
}

static void options_and_key_depend_on_what_matters(void **state) {
    (void)state;
    kkt_compile_job job = tiny_job("sm_90a");
    job.defines = "A=1\nB=2\n";
    kkt_text options = {0};
    kkt_compile_options(&job, &options);
    assert_string_equal(kkt_text_get(&options),
                        "--gpu-architecture=sm_90a --std=c++17 -DA=1 -DB=2");
    kkt_text_free(&options);
    char base[65], same[65], other[65];
    kkt_compile_key("nvrtc 13.0", NULL, &job, base);
    kkt_compile_key("nvrtc 13.0", NULL, &job, same);
    assert_string_equal(base, same);
    kkt_compile_key("nvrtc 13.1", NULL, &job, other);
    assert_string_not_equal(base, other);
    job.defines = "A=1\nB=3\n";
    kkt_compile_key("nvrtc 13.0", NULL, &job, other);
    assert_string_not_equal(base, other);
    job.defines = "A=1\nB=2\n";
    job.nvrtc_arch = "sm_80";
    kkt_compile_key("nvrtc 13.0", NULL, &job, other);
    assert_string_not_equal(base, other);
    job.nvrtc_arch = "sm_90a";
    job.source_text = "x";
    kkt_compile_key("nvrtc 13.0", NULL, &job, other);
    assert_string_not_equal(base, other);
}

/* A copy of exactly `size` bytes, so that the address sanitizer sees any step over the end. */
static kkt_status read_copy(const unsigned char *bytes, size_t size, kkt_error *err) {
    unsigned char *copy = malloc(size > 0 ? size : 1);
    kkt_cubin_info info;
    memcpy(copy, bytes, size);
    kkt_status status = kkt_cubin_read(copy, size, &info, err);
    free(copy);
    assert_true(status == KKT_OK || status == KKT_ERR_INPUT);
    if (status == KKT_OK) {
        assert_in_range(info.registers, 1, 255);
        assert_in_range(info.max_threads, 0, 1024);
        assert_true(info.static_smem_bytes >= 0);
    }
    return status;
}

static void damaged_cubins_are_refused_or_read_within_bounds(void **state) {
    (void)state;
    kkt_compiler *compiler = need_compiler();
    uint64_t random = 7;
    for (size_t i = 0; i < ARCH_COUNT; i += 2) {
        kkt_compile_result result;
        compile_tiny(compiler, ARCHS[i], &result);
        size_t size = result.cubin_size, refused = 0;
        for (size_t cut = 0; cut < size; cut += 1 + cut / 64)
            refused += read_copy(result.cubin, cut, NULL) != KKT_OK;
        assert_true(refused > 50);
        static const unsigned char edges[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
        for (int round = 0; round < 4000; round++) {
            unsigned char *copy = malloc(size + 1);
            memcpy(copy, result.cubin, size);
            size_t count = 1 + next_random(&random) % 4;
            for (size_t k = 0; k < count; k++) {
                /* half of them into the ELF header and the section table at the end */
                size_t at = next_random(&random) % size;
                if (next_random(&random) % 4 == 0)
                    at %= 64;
                copy[at] = edges[next_random(&random) % sizeof edges];
            }
            read_copy(copy, size, NULL); /* copies once more, exactly */
            free(copy);
        }
        kkt_compile_result_free(&result);
    }
    kkt_compiler_close(compiler);
}

static const char *entry_of_plan;

static void tiny_plan(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                      kkt_plan *out) {
    (void)problem, (void)config, (void)arch;
    *out = (kkt_plan){.launch_count = 2, .launches = {{.entry = "tiny"}, {.entry = entry_of_plan}}};
}

static void a_plan_without_its_entry_is_a_failed_build(void **state) {
    (void)state;
    static const kkt_variant variant = {.plan = tiny_plan};
    static const kkt_values none;
    static const char *const entries[] = {"tiny", "tin", "tiny_", "text"};
    kkt_compiler *compiler = need_compiler();
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        kkt_compile_result result;
        compile_tiny(compiler, "sm_90a", &result);
        entry_of_plan = entries[i];
        kkt_compile_check_entries(&variant, &none, &none, kkt_arch_find("sm90"), &result);
        assert_int_equal(result.ok, i == 0);
        if (i > 0) {
            char expected[64];
            snprintf(expected, sizeof expected, "the cubin has no entry %s: ", entries[i]);
            assert_memory_equal(result.log, expected, strlen(expected));
            assert_null(result.cubin);
        }
        kkt_compile_result_free(&result);
    }
    kkt_compiler_close(compiler);
}

static void what_is_no_cubin_gets_a_sentence(void **state) {
    (void)state;
    kkt_error err;
    kkt_cubin_info info;
    assert_int_equal(kkt_cubin_read("", 0, &info, &err), KKT_ERR_INPUT);
    assert_int_equal(kkt_cubin_read(TINY, sizeof TINY, &info, &err), KKT_ERR_INPUT);
    assert_non_null(strstr(err.message, "no 64-bit CUDA ELF file"));
}

static void a_folder_without_nvrtc_is_passed_over(void **state) {
    (void)state;
    kkt_compiler *compiler = need_compiler();
    kkt_compiler_close(compiler);
    setenv("KKTTUNE_CUDA", "/nonexistent", 1);
    assert_int_equal(kkt_compiler_open(&compiler, NULL), KKT_OK);
    assert_memory_equal(kkt_compiler_version(compiler), "nvrtc 1", 7);
    kkt_compiler_close(compiler);
    unsetenv("KKTTUNE_CUDA");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_the_compilers_log),
        cmocka_unit_test(tells_spills_and_kernels_without_bounds),
        cmocka_unit_test(a_source_that_does_not_compile_is_a_result),
        cmocka_unit_test(options_and_key_depend_on_what_matters),
        cmocka_unit_test(damaged_cubins_are_refused_or_read_within_bounds),
        cmocka_unit_test(a_plan_without_its_entry_is_a_failed_build),
        cmocka_unit_test(what_is_no_cubin_gets_a_sentence),
        cmocka_unit_test(a_folder_without_nvrtc_is_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
