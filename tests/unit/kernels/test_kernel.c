/* The list of families, their device sources as embedded, hashes, macros, tensor helpers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/sha256.h"
#include "kernels/kernel.h"
#include "kernels/library.h"

static void families_are_complete(void **state) {
    (void)state;
    size_t count = 0;
    const kkt_kernel *const *kernels = kkt_kernels(&count);
    assert_true(count >= 2);
    for (size_t i = 0; i < count; i++) {
        const kkt_kernel *kernel = kernels[i], *found = NULL;
        assert_int_equal(kkt_kernel_parse(kernel->name, &found, NULL), KKT_OK);
        assert_ptr_equal(found, kernel);
        assert_non_null(kernel->default_problems[0]);
        for (size_t p = 0; p < kernel->problem.count; p++) /* the exported header's own names */
            assert_true(strncmp(kernel->problem.params[p].name, "kkt_", 4) != 0);
        for (const char *const *text = kernel->default_problems; *text; text++) {
            kkt_values problem;
            kkt_error err = {0};
            char reason[200] = "";
            kkt_params_defaults(&kernel->problem, &problem);
            if (kkt_params_parse(&kernel->problem, *text, &problem, NULL, &err) != KKT_OK)
                fail_msg("%s: %s", kernel->name, err.message);
            if (kernel->problem_valid && !kernel->problem_valid(&problem, reason, sizeof reason))
                fail_msg("%s: %s: %s", kernel->name, *text, reason);
        }
        for (size_t v = 0; v < kernel->variant_count; v++) {
            const kkt_variant *variant = kernel->variants[v];
            assert_ptr_equal(kkt_kernel_variant(kernel, variant->style), variant);
            if (!variant->source)
                continue; /* the model alone knows it */
            assert_non_null(kernel->reference);
            assert_non_null(kernel->check_problem);
            size_t timing = 0;
            for (size_t c = 0; c < kernel->case_count; c++)
                timing += kernel->cases[c].timing;
            assert_int_equal(timing, 1);
        }
    }
}

static void assert_sentence(const kkt_claim *claim, const char *text) {
    if (text == NULL || strlen(text) < 10 || text[strlen(text) - 1] != '.')
        fail_msg("%s: '%s' is no sentence", claim->name, text == NULL ? "" : text);
}

/* A claim says what is claimed, and what the model says of it. */
static void claims_have_their_sentences(void **state) {
    (void)state;
    size_t count, seen = 0;
    const kkt_kernel *const *kernels = kkt_kernels(&count);
    for (size_t k = 0; k < count; k++)
        for (size_t c = 0; c < kernels[k]->claim_count; c++, seen++) {
            assert_sentence(&kernels[k]->claims[c], kernels[k]->claims[c].statement);
            assert_sentence(&kernels[k]->claims[c], kernels[k]->claims[c].account);
        }
    assert_true(seen > 50);
}

static void unknown_family_lists_what_exists(void **state) {
    (void)state;
    const kkt_kernel *found = NULL;
    kkt_error err = {0};
    assert_int_equal(kkt_kernel_parse("kkt_sovle", &found, &err), KKT_ERR_INPUT);
    assert_non_null(strstr(err.message, "unknown kernel 'kkt_sovle'"));
    assert_non_null(strstr(err.message, "kkt_solve"));
    assert_non_null(strstr(err.message, "gdn_fwd"));
    assert_null(found);
    assert_null(kkt_kernel_variant(kkt_kernels(&(size_t){0})[0], KKT_STYLE_COUNT));
}

static bool listed(const char *const *sources, const char *path, size_t length) {
    for (; *sources; sources++)
        if (strlen(*sources) == length && strncmp(*sources, path, length) == 0)
            return true;
    return false;
}

/* Every project header that a source includes must be hashed, or an edit of it would go unseen. */
static void assert_includes_listed(const kkt_variant *variant, const char *text) {
    for (const char *at = strstr(text, "#include \""); at; at = strstr(at + 1, "#include \"")) {
        const char *path = at + strlen("#include \"");
        const size_t length = strcspn(path, "\"");
        if (!listed(variant->sources, path, length))
            fail_msg("%s includes %.*s, which `sources` does not list", variant->source,
                     (int)length, path);
    }
}

static void sources_are_embedded_whole(void **state) {
    (void)state;
    size_t count = 0, checked = 0;
    const kkt_kernel *const *kernels = kkt_kernels(&count);
    for (size_t i = 0; i < count; i++) {
        for (size_t v = 0; v < kernels[i]->variant_count; v++) {
            const kkt_variant *variant = kernels[i]->variants[v];
            if (!variant->source)
                continue;
            assert_true(listed(variant->sources, variant->source, strlen(variant->source)));
            kkt_sha256 *all = kkt_sha256_open();
            for (const char *const *path = variant->sources; *path; path++, checked++) {
                char file[600], *text = NULL;
                size_t length = 0, embedded_length = 0;
                kkt_error err = {0};
                snprintf(file, sizeof file, "%s/../kernels/%s", KKT_TEST_DATA, *path);
                if (kkt_file_read(file, 1 << 24, &text, &length, &err) != KKT_OK)
                    fail_msg("%s", err.message);
                const char *embedded = kkt_device_source(*path, &embedded_length);
                assert_non_null(embedded);
                assert_int_equal(embedded_length, length);
                assert_memory_equal(embedded, text, length + 1); /* the NUL too */
                assert_includes_listed(variant, embedded);
                kkt_sha256_add(all, text, length);
                free(text);
            }
            if (variant->library)
                kkt_sha256_add(all, variant->library, strlen(variant->library) + 1);
            for (const char *const *name = variant->routines; name && *name; name++)
                kkt_sha256_add(all, *name, strlen(*name) + 1);
            char expected[65], hash[65];
            kkt_sha256_close(all, expected);
            kkt_variant_hash(variant, hash);
            /* test_library_calls.c is about later revisions of calls. */
            if (variant->calls_revision == 0 &&
                (!variant->library || kkt_library_calls_revision(variant->library) == 1))
                assert_string_equal(hash, expected);
        }
    }
    assert_true(checked > 0);
    assert_null(kkt_device_source("kkt_solve/nothing.cu", NULL));
    assert_null(kkt_device_source("", NULL));
}

static void macros_hold_each_parameter_once(void **state) {
    (void)state;
    const kkt_kernel *kernel = NULL;
    assert_int_equal(kkt_kernel_parse("kkt_solve", &kernel, NULL), KKT_OK);
    const kkt_variant *variant = kernel->variants[0];
    kkt_values problem, config;
    kkt_text text = {0};
    kkt_params_defaults(&kernel->problem, &problem);
    kkt_params_defaults(&variant->params, &config);
    kkt_variant_defines(kernel, variant, &problem, &config, kkt_arch_find("sm90"), &text);
    for (size_t p = 0; p < variant->params.count; p++) {
        char line[100];
        if (!variant->params.params[p].macro)
            continue;
        snprintf(line, sizeof line, "%s=%lld\n", variant->params.params[p].macro,
                 (long long)config.v[p]);
        const char *found = strstr(kkt_text_get(&text), line);
        assert_non_null(found);
        assert_null(strstr(found + 1, line));
    }
    kkt_text_free(&text);
}

/* The gate is 4 bytes a token, value head and split of dv: that much less is read without it. */
static void gdn_reads_a_gate_only_where_there_is_one(void **state) {
    (void)state;
    const kkt_kernel *kernel = NULL;
    kkt_error err;
    assert_int_equal(kkt_kernel_parse("gdn_fwd", &kernel, &err), KKT_OK);
    for (size_t v = 0; v < kernel->variant_count; v++) {
        const kkt_variant *variant = kernel->variants[v];
        double l2[2], hbm[2];
        kkt_values config;
        kkt_footprint footprint;
        kkt_params_defaults(&variant->params, &config);
        for (int gated = 0; gated < 2; gated++) {
            kkt_values problem;
            kkt_params_defaults(&kernel->problem, &problem);
            problem.v[kkt_params_find(&kernel->problem, "gated")] = gated;
            variant->footprint(&problem, &config, kkt_arch_find("sm90"), &footprint);
            l2[gated] = footprint.l2_read_bytes;
            hbm[gated] = footprint.hbm_read_bytes;
        }
        kkt_values problem;
        kkt_params_defaults(&kernel->problem, &problem);
        const double gates = 4.0 * (double)kkt_params_get(&kernel->problem, &problem, "tokens") *
                             (double)kkt_params_get(&kernel->problem, &problem, "heads_v");
        const int64_t splits = kkt_params_get(&kernel->problem, &problem, "dv") /
                               kkt_params_get(&variant->params, &config, "block_dv");
        assert_true(hbm[1] - hbm[0] == gates);
        assert_true(l2[1] - l2[0] == gates * (double)splits);
    }
}

static void tensor_helpers(void **state) {
    (void)state;
    const kkt_tensor tensor = {.name = "a", .dtype = KKT_BF16, .rank = 3, .dims = {3, 5, 7}};
    assert_int_equal(kkt_tensor_elements(&tensor), 105);
    assert_int_equal(kkt_tensor_bytes(&tensor), 210);
    const kkt_tensor large = {.dtype = KKT_FP32, .rank = 4, .dims = {1, 1 << 20, 64, 128}};
    assert_true(kkt_tensor_bytes(&large) == INT64_C(4) << 33);
    const kkt_tensor empty = {.dtype = KKT_FP32, .rank = 2, .dims = {0, 9}};
    assert_int_equal(kkt_tensor_bytes(&empty), 0);
    kkt_host_tensors list = {.count = 2, .t = {{.tensor = tensor}, {.tensor = tensor}}};
    list.t[1].tensor.name = "b";
    list.t[1].data = malloc(4);
    assert_ptr_equal(kkt_host_tensor_find(&list, "b"), &list.t[1]);
    assert_null(kkt_host_tensor_find(&list, "c"));
    kkt_host_tensors_free(&list);
    assert_int_equal(list.count, 0);
    assert_null(list.t[1].data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(families_are_complete),
        cmocka_unit_test(claims_have_their_sentences),
        cmocka_unit_test(unknown_family_lists_what_exists),
        cmocka_unit_test(sources_are_embedded_whole),
        cmocka_unit_test(macros_hold_each_parameter_once),
        cmocka_unit_test(gdn_reads_a_gate_only_where_there_is_one),
        cmocka_unit_test(tensor_helpers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
