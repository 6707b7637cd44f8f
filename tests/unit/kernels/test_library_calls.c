/* How libraries are called, against fingerprints: whoever changes a call is told to raise the
 * revision that makes the times of the earlier calls stale. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/sha256.h"
#include "kernels/kernel.h"
#include "kernels/library.h"

/* Of the present calls, and the revision that they are. */
static const struct {
    const char *kernel;
    int revision;
    const char *problems[3]; /* whose calls, of all configurations, are fingerprinted */
    const char *fingerprint; /* the first 16 hex digits */
} plans[] = {
    {"gemm",
     0,
     {"", "dtype=bf16,layout=tn,m=96,n=64,k=32", "layout=nt,n=4095"},
     "3c0b9658960961b4"},
    {"gemv",
     0,
     {"", "dtype=bf16,layout=t,m=96,k=64", "m=4097,k=4099,lda=4104"},
     "b04f91b79392ffc9"},
    {"kkt_solve",
     0,
     {"", "tokens=8192,heads_v=32,gated=0", "dtype=fp16,dk=64"},
     "7a610af0b0cb143b"},
};

/* The same of the code that makes the calls, but for its comments and spaces. What changes that
 * code and no call (another name) gets its new fingerprint alone. */
static const struct {
    const char *library, *file;
    int revision;
    const char *fingerprint;
} sources[] = {
    {KKT_CUBLAS, "tuner/measure/library/cublas.c", 1, "096694894070825f"},
};

static void add_plan(kkt_text *out, const kkt_plan *plan) {
    for (int l = 0; l < plan->launch_count; l++) {
        const kkt_launch *launch = &plan->launches[l];
        if (launch->library == NULL)
            continue;
        kkt_text_printf(out, "%s %s", launch->library, launch->entry);
        for (int a = 0; a < launch->arg_count; a++)
            kkt_text_printf(out, " %d:%d:%" PRId64, (int)launch->args[a].kind,
                            launch->args[a].tensor, launch->args[a].integer);
        kkt_text_add(out, "\n");
    }
}

/* Moves to the next configuration; false after the last. */
static bool next(const kkt_param_table *table, size_t *at, kkt_values *config) {
    for (size_t p = 0; p < table->count; p++) {
        at[p] = (at[p] + 1) % table->params[p].count;
        config->v[p] = table->params[p].values[at[p]];
        if (at[p] > 0)
            return true;
    }
    return false;
}

/* The calls of all configurations on a problem. */
static void add_calls(const kkt_kernel *kernel, const kkt_variant *variant, const char *text,
                      kkt_text *out) {
    const kkt_arch *arch = kkt_arch_find("sm90");
    size_t at[KKT_PARAMS_MAX] = {0};
    kkt_values problem, config;
    char reason[320];
    kkt_params_defaults(&kernel->problem, &problem);
    kkt_params_defaults(&variant->params, &config);
    assert_int_equal(kkt_params_parse(&kernel->problem, text, &problem, NULL, NULL), KKT_OK);
    for (size_t p = 0; p < variant->params.count; p++)
        config.v[p] = variant->params.params[p].values[0];
    do {
        kkt_plan plan;
        if (!variant->applicable(&problem, &config, arch, reason, sizeof reason))
            continue;
        variant->plan(&problem, &config, arch, &plan);
        add_plan(out, &plan);
    } while (next(&variant->params, at, &config));
}

static void check_kernel(const kkt_kernel *kernel, const kkt_variant *variant) {
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++) {
        if (strcmp(plans[i].kernel, kernel->name) != 0)
            continue;
        char hash[65];
        kkt_text text = {0};
        for (size_t p = 0; p < 3; p++)
            add_calls(kernel, variant, plans[i].problems[p], &text);
        assert_true(text.length > 100);
        kkt_sha256_of(text.data, text.length, hash);
        kkt_text_free(&text);
        assert_int_equal(plans[i].revision, variant->calls_revision);
        if (strncmp(plans[i].fingerprint, hash, 16) != 0)
            fail_msg("what %s asks of %s has changed (%.16s): raise its calls_revision",
                     kernel->name, variant->library, hash);
        return;
    }
    fail_msg("%s calls %s: add a line", kernel->name, variant->library);
}

static void plans_ask_as_their_revision_did(void **state) {
    (void)state;
    size_t count, checked = 0;
    const kkt_kernel *const *kernels = kkt_kernels(&count);
    for (size_t k = 0; k < count; k++)
        for (size_t v = 0; v < kernels[k]->variant_count; v++)
            if (kernels[k]->variants[v]->library != NULL) {
                check_kernel(kernels[k], kernels[k]->variants[v]);
                checked++;
            }
    assert_int_equal(checked, sizeof plans / sizeof plans[0]);
}

/* Leaves out comments and white space, in place. */
static size_t bare(char *text) {
    char *out = text;
    for (const char *in = text; *in != '\0';) {
        if (in[0] == '/' && in[1] == '*') {
            const char *end = strstr(in + 2, "*/");
            assert_non_null(end);
            in = end + 2;
        } else if (isspace((unsigned char)*in)) {
            in++;
        } else {
            *out++ = *in++;
        }
    }
    return (size_t)(out - text);
}

static void libraries_are_called_as_their_revision_did(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
        char path[512], hash[65], *text = NULL;
        size_t length = 0;
        kkt_error err;
        snprintf(path, sizeof path, "%s/../%s", KKT_TEST_DATA, sources[i].file);
        if (kkt_file_read(path, 1 << 20, &text, &length, &err) != KKT_OK)
            fail_msg("%s", err.message);
        kkt_sha256_of(text, bare(text), hash);
        free(text);
        assert_int_equal(sources[i].revision, kkt_library_calls_revision(sources[i].library));
        if (strncmp(sources[i].fingerprint, hash, 16) != 0)
            fail_msg("%s has changed (%.16s): does it call %s otherwise than before?",
                     sources[i].file, hash, sources[i].library);
    }
}

/* A revision makes another hash; the first ones have none, for what was timed before there were
 * any. */
static void a_revision_is_part_of_the_hash(void **state) {
    (void)state;
    const kkt_kernel *kernel = NULL;
    assert_int_equal(kkt_kernel_parse("gemm", &kernel, NULL), KKT_OK);
    const kkt_variant *calls = kkt_kernel_variant(kernel, KKT_STYLE_LIBRARY);
    assert_non_null(calls);
    kkt_variant other = *calls;
    char first[65], second[65], third[65];
    other.calls_revision = 0;
    kkt_variant_hash(&other, first);
    other.calls_revision = 1;
    kkt_variant_hash(&other, second);
    other.calls_revision = 2;
    kkt_variant_hash(&other, third);
    assert_string_not_equal(first, second);
    assert_string_not_equal(second, third);
    assert_int_equal(kkt_library_calls_revision("none of ours"), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_ask_as_their_revision_did),
        cmocka_unit_test(libraries_are_called_as_their_revision_did),
        cmocka_unit_test(a_revision_is_part_of_the_hash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
