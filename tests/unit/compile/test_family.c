/* Every kernel family with device code, compiled for every architecture: each value of each
 * parameter once, then a seeded spread over the whole space. The device code compares its own
 * shared-memory layout with the host's when it compiles; here the launch is compared with both.
 * KKT_TEST_VARIANTS=N compiles N random configurations an architecture instead of a few. */
#include "model/predict.h"
#include "tests/unit/compile/fixture.h"
#include "tuner/compile/pool.h"

enum { JOBS_MAX = 4096, SPREAD = 1, TRIES = 200 };

typedef struct variant_job {
    const kkt_kernel *kernel;
    const kkt_variant *variant;
    const kkt_arch *arch;
    kkt_values problem, config;
    kkt_prediction prediction;
} variant_job;

typedef struct family {
    kkt_compile_pool *pool;
    variant_job *jobs;
    size_t count;
} family;

static const char *const FAMILY_ARCHS[] = {"sm80", "sm89", "sm90", "sm100", "sm120"};

/* Queues a configuration; false where it is not applicable or cannot launch. */
static bool queue(family *f, const variant_job *job) {
    kkt_footprint footprint;
    char reason[256];
    if (!job->variant->applicable(&job->problem, &job->config, job->arch, reason, sizeof reason))
        return false;
    variant_job *at = &f->jobs[f->count];
    *at = *job;
    memset(&footprint, 0, sizeof footprint);
    job->variant->footprint(&job->problem, &job->config, job->arch, &footprint);
    kkt_predict(&footprint, job->arch, kkt_device_first(job->arch), NULL, &at->prediction);
    if (at->prediction.infeasible != KKT_FEASIBLE)
        return false;
    kkt_text defines = {0};
    kkt_compile_job compile;
    kkt_error err = {0};
    kkt_compile_job_fill(job->kernel, job->variant, &job->problem, &job->config, job->arch,
                         &defines, &compile);
    if (kkt_compile_pool_submit(f->pool, job->variant, &compile, (int64_t)f->count, &err) != KKT_OK)
        fail_msg("%s", err.message);
    kkt_text_free(&defines);
    f->count++;
    return true;
}

/* Whether a configuration is left out of the short run: unrolled over a large chunk the compiler
 * takes many seconds. */
static bool too_long(const variant_job *job) {
    const kkt_param_table *table = &job->variant->params;
    return getenv("KKT_TEST_VARIANTS") == NULL && kkt_params_find(table, "chunk") >= 0 &&
           kkt_params_get(table, &job->config, "chunk") > 32;
}

/* The defaults, at a chunk that compiles quickly. */
static void start(const kkt_param_table *table, kkt_values *out) {
    kkt_params_defaults(table, out);
    int chunk = kkt_params_find(table, "chunk");
    if (chunk >= 0 && getenv("KKT_TEST_VARIANTS") == NULL)
        out->v[chunk] = 32;
}

/* Gives the parameter that `param` depends on a value under which it has an effect. */
static void give_effect(const kkt_param_table *table, const kkt_param *param, kkt_values *config) {
    if (param->depends_on == 0)
        return;
    const kkt_param *other = &table->params[param->depends_on - 1];
    int64_t *value = &config->v[param->depends_on - 1];
    for (size_t v = 0; v < other->count && !((param->depends_values >> *value) & 1); v++)
        *value = other->values[v];
}

/* Gives every parameter without effect its fallback. */
static void drop_without_effect(const kkt_param_table *table, kkt_values *config) {
    for (size_t p = 0; p < table->count; p++) {
        const kkt_param *param = &table->params[p];
        if (param->depends_on > 0 &&
            !((param->depends_values >> config->v[param->depends_on - 1]) & 1))
            config->v[p] = param->fallback;
    }
}

static void queue_each_value(family *f, variant_job job) {
    const kkt_param_table *table = &job.variant->params;
    for (size_t p = 0; p < table->count; p++)
        for (size_t v = 0; v < table->params[p].count && f->count < JOBS_MAX; v++) {
            start(table, &job.config);
            if ((p > 0 || v > 0) && table->params[p].values[v] == job.config.v[p])
                continue;
            give_effect(table, &table->params[p], &job.config);
            job.config.v[p] = table->params[p].values[v];
            if (!too_long(&job))
                queue(f, &job);
        }
}

static void queue_spread(family *f, variant_job job, size_t wanted, uint64_t *random) {
    const kkt_param_table *table = &job.variant->params;
    size_t end = f->count + wanted;
    for (size_t tries = 0; tries < TRIES * wanted && f->count < end && f->count < JOBS_MAX;
         tries++) {
        for (size_t p = 0; p < table->count; p++)
            job.config.v[p] = table->params[p].values[next_random(random) % table->params[p].count];
        drop_without_effect(table, &job.config);
        if (!too_long(&job))
            queue(f, &job);
    }
}

static size_t asked_spread(void) {
    const char *text = getenv("KKT_TEST_VARIANTS");
    int64_t asked = 0;
    return text != NULL && kkt_parse_i64(text, 1, 500, &asked) ? (size_t)asked : SPREAD;
}

static void queue_all(family *f) {
    uint64_t random = 42;
    size_t kernels;
    const kkt_kernel *const *list = kkt_kernels(&kernels);
    for (size_t k = 0; k < kernels; k++)
        for (size_t v = 0; v < list[k]->variant_count; v++) {
            variant_job job = {.kernel = list[k], .variant = list[k]->variants[v]};
            if (job.variant->source == NULL)
                continue;
            kkt_params_defaults(&job.kernel->problem, &job.problem);
            job.arch = kkt_arch_find("sm90");
            queue_each_value(f, job);
            for (size_t a = 0; a < sizeof FAMILY_ARCHS / sizeof *FAMILY_ARCHS; a++) {
                job.arch = kkt_arch_find(FAMILY_ARCHS[a]);
                assert_non_null(job.arch);
                queue_spread(f, job, asked_spread(), &random);
            }
        }
}

static void check_one(const variant_job *job, const kkt_compile_result *result) {
    kkt_text config = {0};
    kkt_params_format(&job->variant->params, &job->config, &config);
    if (!result->ok)
        fail_msg("%s %s %s: %s", job->kernel->name, job->arch->name, kkt_text_get(&config),
                 result->log);
    if (job->variant->library != NULL) { /* of a baseline's kernels the model says nothing */
        kkt_text_free(&config);
        return;
    }
    kkt_plan plan;
    job->variant->plan(&job->problem, &job->config, job->arch, &plan);
    int64_t dynamic = plan.launches[0].dynamic_smem_bytes;
    if (dynamic + result->info.static_smem_bytes != job->prediction.smem_bytes)
        fail_msg("%s %s %s: %lld dynamic and %lld static bytes of shared memory, %lld predicted",
                 job->kernel->name, job->arch->name, kkt_text_get(&config), (long long)dynamic,
                 (long long)result->info.static_smem_bytes, (long long)job->prediction.smem_bytes);
    uint32_t threads =
        plan.launches[0].block[0] * plan.launches[0].block[1] * plan.launches[0].block[2];
    assert_true(result->info.max_threads == 0 || (uint32_t)result->info.max_threads >= threads);
    assert_in_range(result->info.registers, 16, 255);
    if (getenv("KKT_TEST_VARIANTS") != NULL)
        print_message("%s %s %5.0f ms, registers %d (predicted %d), spilled %lld: %s\n",
                      job->kernel->name, job->arch->name, result->compile_ms,
                      result->info.registers, job->prediction.registers,
                      (long long)result->info.spill_store_bytes, kkt_text_get(&config));
    kkt_text_free(&config);
}

static int compare_int(const void *a, const void *b) {
    return *(const int *)a - *(const int *)b;
}

static void every_variant_compiles_and_uses_the_memory_predicted(void **state) {
    (void)state;
    char folder[64];
    make_folder(folder);
    kkt_compile_pool_options options = {.cache = folder, .job_seconds = 120};
    family f = {.jobs = calloc(JOBS_MAX + 1, sizeof *f.jobs)};
    assert_int_equal(kkt_compile_pool_open(&options, &f.pool, NULL), KKT_OK);
    if (kkt_compile_pool_unavailable(f.pool) != NULL) {
        print_message("skipped: %s\n", kkt_compile_pool_unavailable(f.pool));
        kkt_compile_pool_close(f.pool);
        free(f.jobs);
        remove_folder(folder);
        skip();
        return; /* skip does not come back, which the analyser cannot know */
    }
    queue_all(&f);
    assert_true(f.count >= 20);
    int *errors = calloc(f.count, sizeof *errors);
    for (size_t i = 0; i < f.count; i++) {
        kkt_compile_result result;
        bool got = false;
        int64_t tag = 0;
        kkt_error err = {0};
        if (kkt_compile_pool_next(f.pool, 150, &got, &tag, &result, &err) != KKT_OK)
            fail_msg("%s", err.message);
        assert_true(got);
        check_one(&f.jobs[tag], &result);
        errors[i] = f.jobs[tag].prediction.registers - result.info.registers;
        kkt_compile_result_free(&result);
    }
    qsort(errors, f.count, sizeof *errors, compare_int);
    print_message("%zu variants; registers predicted minus compiled: least %d, 10 %% %d, median "
                  "%d, 90 %% %d, most %d\n",
                  f.count, errors[0], errors[f.count / 10], errors[f.count / 2],
                  errors[f.count * 9 / 10], errors[f.count - 1]);
    free(errors);
    kkt_compile_pool_close(f.pool);
    free(f.jobs);
    remove_folder(folder);
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "--worker") == 0)
        return kkt_compile_worker_main();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_variant_compiles_and_uses_the_memory_predicted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
