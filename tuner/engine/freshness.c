#include "tuner/engine/freshness.h"

#include <string.h>

#include "kernels/kernel.h"
#include "tuner/compile/compile.h"

/* Rows come sorted by kernel and style, so remembering the last variant's hash is a full cache. */
typedef struct present_context {
    const kkt_variant *variant;
    char hash[65];
    char options_copy[4096];
} present_context;

static const kkt_variant *variant_of(const kkt_identity *id, const kkt_kernel **kernel) {
    const kkt_style *style = kkt_style_find(id->style);
    if (!style || kkt_kernel_parse(id->kernel, kernel, NULL) != KKT_OK) {
        return NULL;
    }
    const kkt_variant *variant = kkt_kernel_variant(*kernel, style->id);
    return variant && kkt_variant_runs(variant) ? variant : NULL;
}

/* A row that an older parameter table wrote may have keys or values that there are no more. */
static bool parse_row(const kkt_kernel *kernel, const kkt_variant *variant, const kkt_identity *id,
                      kkt_values *problem, kkt_values *config) {
    kkt_params_defaults(&variant->params, config);
    return kkt_kernel_problem_parse(kernel, id->problem, problem, NULL) == KKT_OK &&
           kkt_params_parse(&variant->params, id->config, config, NULL, NULL) == KKT_OK;
}

static bool readable(void *opaque, const kkt_identity *id) {
    (void)opaque;
    const kkt_kernel *kernel = NULL;
    const kkt_variant *variant = variant_of(id, &kernel);
    kkt_values problem;
    kkt_values config;
    return variant && parse_row(kernel, variant, id, &problem, &config);
}

static bool present(void *opaque, const kkt_identity *id, const char **kernel_hash,
                    const char **options) {
    present_context *context = opaque;
    const kkt_kernel *kernel = NULL;
    const kkt_variant *variant = variant_of(id, &kernel);
    *kernel_hash = NULL;
    *options = NULL;
    if (!variant) {
        return false;
    }
    if (context->variant != variant) {
        kkt_variant_hash(variant, context->hash);
        context->variant = variant;
    }
    *kernel_hash = context->hash;

    const kkt_arch *arch = kkt_arch_find(id->arch);
    kkt_values problem;
    kkt_values config;
    if (!variant->source || !arch || !parse_row(kernel, variant, id, &problem, &config)) {
        return true; /* without options to compare: `readable` has the last word */
    }
    kkt_text defines = {0};
    kkt_text text = {0};
    kkt_compile_job job;
    kkt_compile_job_fill(kernel, variant, &problem, &config, arch, &defines, &job);
    kkt_compile_options(&job, &text);
    if (text.length < sizeof context->options_copy) {
        memcpy(context->options_copy, kkt_text_get(&text), text.length + 1);
        *options = context->options_copy;
    }
    kkt_text_free(&text);
    kkt_text_free(&defines);
    return true;
}

const kkt_freshness *kkt_freshness_make(kkt_arena *arena, const char *compiler) {
    kkt_freshness *freshness = kkt_arena_alloc(arena, sizeof *freshness);
    freshness->compiler = kkt_arena_strdup(arena, compiler);
    freshness->present = present;
    freshness->readable = readable;
    freshness->context = kkt_arena_alloc(arena, sizeof(present_context));
    return freshness;
}
