#include "reports/failures.h"

#include <string.h>

#include "reports/modelled.h"

static kkt_build_tally *tally_of(const kkt_failures *f, const kkt_variant *variant) {
    for (size_t i = 0; i < f->build_count; i++)
        if (f->builds[i].variant == variant)
            return &f->builds[i];
    return NULL;
}

static void count_build(kkt_failures *f, kkt_arena *arena, const kkt_kernel *kernel,
                        const kkt_variant *variant, const kkt_result *result) {
    kkt_build_tally *tally = tally_of(f, variant);
    if (tally == NULL) {
        f->builds =
            kkt_arena_grow(arena, f->builds, f->build_count, &f->build_capacity, sizeof *f->builds);
        tally = &f->builds[f->build_count++];
        *tally = (kkt_build_tally){.kernel = kernel, .variant = variant};
    }
    const bool timed_out = result->outcome == KKT_OUTCOME_TIMED_OUT && !result->has_run;
    if (result->outcome != KKT_OUTCOME_BUILD_FAILED && !timed_out) {
        tally->good = true;
    } else if (!tally->failed) {
        const char *message = result->reason != NULL ? result->reason : result->build.log;
        tally->failed = true;
        tally->message = kkt_arena_strdup(arena, message != NULL ? message : "the build failed");
    }
}

static void keep(kkt_failures *f, kkt_arena *arena, const kkt_kernel *kernel,
                 const kkt_variant *variant, const kkt_identity *id) {
    kkt_failure one = {.variant = variant};
    kkt_params_defaults(&variant->params, &one.config);
    if (kkt_kernel_problem_parse(kernel, id->problem, &one.problem, NULL) != KKT_OK ||
        kkt_params_parse(&variant->params, id->config, &one.config, NULL, NULL) != KKT_OK)
        return;
    f->all = kkt_arena_grow(arena, f->all, f->count, &f->capacity, sizeof *f->all);
    f->all[f->count++] = one;
}

void kkt_failures_add(kkt_failures *failures, kkt_arena *arena, const kkt_result *result) {
    const kkt_kernel *kernel;
    const kkt_variant *variant;
    if (result->stale_reason != NULL ||
        !kkt_modelled_find(result->id.kernel, result->id.style, &kernel, &variant))
        return;
    const bool failed = kkt_outcome_failed(result->outcome);
    const bool built = result->outcome == KKT_OUTCOME_COMPILED ||
                       result->outcome == KKT_OUTCOME_OK || result->outcome == KKT_OUTCOME_NOISY;
    if (failed || built)
        count_build(failures, arena, kernel, variant, result);
    if (failed)
        keep(failures, arena, kernel, variant, &result->id);
}

/* A style that was not tried has nothing for it where no other one of the kernel could be built: a
 * compiler that does not know the architecture builds none. */
static bool hopeless(const kkt_failures *failures, const kkt_kernel *kernel,
                     const kkt_variant *variant) {
    bool failed = false, good = false;
    for (size_t i = 0; failures != NULL && i < failures->build_count; i++) {
        const kkt_build_tally *tally = &failures->builds[i];
        if (tally->variant == variant && tally->failed && !tally->good)
            return true;
        failed = failed || (tally->kernel == kernel && tally->failed);
        good = good || (tally->kernel == kernel && tally->good);
    }
    return failed && !good;
}

bool kkt_failures_hopeless(const kkt_failures *failures, const char *kernel_name,
                           const char *style) {
    const kkt_kernel *kernel;
    const kkt_variant *variant;
    return kkt_modelled_find(kernel_name, style, &kernel, &variant) &&
           hopeless(failures, kernel, variant);
}

typedef struct exclusion {
    const kkt_failures *failures;
    const kkt_kernel *kernel;
    const kkt_variant *variant;
    const kkt_values *problem;
} exclusion;

static bool same(const kkt_values *a, const kkt_values *b, size_t count) {
    return memcmp(a->v, b->v, count * sizeof a->v[0]) == 0;
}

static bool is_excluded(const void *context, const kkt_values *config) {
    const exclusion *e = context;
    for (size_t i = 0; i < e->failures->count; i++) {
        const kkt_failure *one = &e->failures->all[i];
        if (one->variant == e->variant && same(&one->config, config, e->variant->params.count) &&
            same(&one->problem, e->problem, e->kernel->problem.count))
            return true;
    }
    return false;
}

bool kkt_failures_modelled(const kkt_failures *failures, const kkt_kernel *kernel,
                           const kkt_variant *variant, const kkt_arch *arch,
                           const kkt_device *device, const kkt_values *problem, int64_t chunk,
                           kkt_arena *arena, kkt_entry *entry) {
    const exclusion without = {failures, kernel, variant, problem};
    const bool any = failures != NULL && failures->count > 0;
    return !hopeless(failures, kernel, variant) &&
           kkt_modelled_entry(kernel, variant, arch, device, problem, chunk,
                              any ? is_excluded : NULL, &without, arena, entry);
}

size_t kkt_failures_drop(const kkt_failures *failures, kkt_entry *rows, size_t count) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (rows[i].provenance != KKT_PREDICTED ||
            !kkt_failures_hopeless(failures, rows[i].kernel, rows[i].style))
            rows[kept++] = rows[i];
    return kept;
}

const char *kkt_view_unbuildable(const kkt_view *view, const char *kernel) {
    for (size_t i = 0; i < view->entry_count; i++)
        if (!view->entries[i].model_only && strcmp(view->entries[i].kernel, kernel) == 0)
            return NULL;
    for (size_t i = 0; view->failures != NULL && i < view->failures->build_count; i++) {
        const kkt_build_tally *tally = &view->failures->builds[i];
        if (tally->failed && !tally->good && strcmp(tally->kernel->name, kernel) == 0)
            return tally->message;
    }
    return NULL;
}
