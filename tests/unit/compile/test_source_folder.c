/* Device sources from a folder: joined as the compiler would include them, and nothing else. */
#include "base/file.h"
#include "tests/unit/compile/fixture.h"
#include "tuner/compile/source_folder.h"

static void put(const char *folder, const char *name, const char *text) {
    char *path = kkt_path_join(folder, name);
    kkt_error err;
    assert_int_equal(kkt_file_write(path, text, strlen(text), &err), KKT_OK);
    free(path);
}

static void joins_each_file_once(void **state) {
    (void)state;
    char folder[64];
    kkt_text text = {0};
    kkt_error err = {0};
    make_folder(folder);
    put(folder, "main.cu", "#include \"a.cuh\"\n#include \"b.cuh\"\nint last;");
    put(folder, "a.cuh", "#pragma once\n#include \"b.cuh\"\nint a;\n");
    put(folder, "b.cuh", "#include <stdio.h>\nint b;\n");
    assert_int_equal(kkt_source_folder_read(folder, "main.cu", &text, &err), KKT_OK);
    assert_string_equal(kkt_text_get(&text), "#line 1 \"main.cu\"\n"
                                             "#line 1 \"a.cuh\"\n"
                                             "\n"
                                             "#line 1 \"b.cuh\"\n"
                                             "#include <stdio.h>\n"
                                             "int b;\n"
                                             "\n#line 3 \"a.cuh\"\n"
                                             "int a;\n"
                                             "\n#line 2 \"main.cu\"\n"
                                             "\n#line 3 \"main.cu\"\n"
                                             "int last;");
    kkt_text_free(&text);
    remove_folder(folder);
}

static void refuse(const char *folder, const char *path, const char *part) {
    kkt_text text = {0};
    kkt_error err = {0};
    assert_int_equal(kkt_source_folder_read(folder, path, &text, &err), KKT_ERR_INPUT);
    assert_non_null(strstr(err.message, part));
    kkt_text_free(&text);
}

static void refuses_what_is_no_source(void **state) {
    (void)state;
    char folder[64], many[4096] = "", line[64];
    make_folder(folder);
    refuse(folder, "absent.cu", "absent.cu");
    put(folder, "out.cu", "#include \"../../etc/passwd\"\n");
    refuse(folder, "out.cu", "leads out of");
    put(folder, "absolute.cu", "#include \"/etc/passwd\"\n");
    refuse(folder, "absolute.cu", "leads out of");
    put(folder, "missing.cu", "#include \"missing.cuh\"\n");
    refuse(folder, "missing.cu", "missing.cuh");
    put(folder, "self.cu", "#include \"self.cu\"\nint x;\n");
    kkt_text text = {0};
    kkt_error err;
    assert_int_equal(kkt_source_folder_read(folder, "self.cu", &text, &err), KKT_OK);
    kkt_text_free(&text);
    for (int i = 0; i < 70; i++) {
        snprintf(line, sizeof line, "h%d.cuh", i);
        put(folder, line, "int h;\n");
        snprintf(line, sizeof line, "#include \"h%d.cuh\"\n", i);
        strncat(many, line, sizeof many - strlen(many) - 1);
    }
    put(folder, "many.cu", many);
    refuse(folder, "many.cu", "more than 64");
    remove_folder(folder);
}

/* The project's own sources, read from their folder: the same kernel, under another key. */
static void compiles_like_the_embedded_ones(void **state) {
    (void)state;
    kkt_compiler *compiler = need_compiler();
    const kkt_kernel *kernel = NULL;
    kkt_error err = {0};
    assert_int_equal(kkt_kernel_parse("kkt_solve", &kernel, &err), KKT_OK);
    const kkt_variant *variant = kernel->variants[0];
    kkt_values problem, config;
    kkt_params_defaults(&kernel->problem, &problem);
    kkt_params_defaults(&variant->params, &config);
    assert_int_equal(
        kkt_params_parse(&variant->params, "chunk=16,inverse=row", &config, NULL, &err), KKT_OK);
    kkt_text defines = {0}, text = {0};
    kkt_compile_job job;
    kkt_compile_result embedded, read;
    char keys[2][65];
    kkt_compile_job_fill(kernel, variant, &problem, &config, kkt_arch_find("sm90"), &defines, &job);
    kkt_compile_key("nvrtc 13.0", variant, &job, keys[0]);
    assert_int_equal(kkt_compile(compiler, &job, &embedded, &err), KKT_OK);
    assert_int_equal(
        kkt_source_folder_read(KKT_TEST_DATA "/../kernels", variant->source, &text, &err), KKT_OK);
    job.source_text = kkt_text_get(&text);
    kkt_compile_key("nvrtc 13.0", variant, &job, keys[1]);
    assert_int_equal(kkt_compile(compiler, &job, &read, &err), KKT_OK);
    if (!read.ok)
        fail_msg("%s", read.log);
    assert_true(embedded.ok);
    assert_string_not_equal(keys[0], keys[1]);
    assert_int_equal(embedded.info.registers, read.info.registers);
    assert_int_equal(embedded.info.barriers, read.info.barriers);
    kkt_compile_result_free(&embedded);
    kkt_compile_result_free(&read);
    kkt_text_free(&defines);
    kkt_text_free(&text);
    kkt_compiler_close(compiler);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(joins_each_file_once),
        cmocka_unit_test(refuses_what_is_no_source),
        cmocka_unit_test(compiles_like_the_embedded_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
