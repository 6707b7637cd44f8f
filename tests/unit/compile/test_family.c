/* Every kernel family with device code, compiled for every architecture: each value of each
 * parameter at least once, as many in one compile as go together, then a seeded spread over the
 * whole space. The device code compares its own shared-memory layout with the host's when it
 * compiles; here the launch is compared with both.
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
    int launch; /* that the footprint describes */
} variant_job;

typedef struct family {
    kkt_compile_pool *pool;
    variant_job *jobs;
    size_t count;
} family;

/* Beside sm90, which sees every value. */
static const char *const FAMILY_ARCHS[] = {"sm80", "sm89", "sm100", "sm120"};

/* Whether a configuration is applicable and can launch, as far as the model says; what it predicts
 * goes to `out`, and which launch that is of. */
static bool launchable(const variant_job *job, kkt_prediction *out, int *launch) {
    kkt_footprint footprint;
    char reason[256];
    if (!job->variant->applicable(&job->problem, &job->config, job->arch, reason, sizeof reason))
        return false;
    memset(&footprint, 0, sizeof footprint);
    job->variant->footprint(&job->problem, &job->config, job->arch, &footprint);
    kkt_predict(&footprint, job->arch, kkt_device_first(job->arch), NULL, out);
    *launch = footprint.launch;
    return out->infeasible == KKT_FEASIBLE;
}

/* Queues a configuration; false where it cannot launch. */
static bool queue(family *f, const variant_job *job) {
    variant_job *at = &f->jobs[f->count];
    *at = *job;
    if (!launchable(job, &at->prediction, &at->launch))
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

/* The defaults; in the short run at a given chunk, where the variant has chunks. */
static void start(const kkt_param_table *table, int64_t chunk, kkt_values *out) {
    kkt_params_defaults(table, out);
    int at = kkt_params_find(table, "chunk");
    if (at >= 0 && getenv("KKT_TEST_VARIANTS") == NULL)
        out->v[at] = chunk;
}

/* The default problem; in the short run with heads of 64, where there are heads: what is unrolled
 * over them compiles in a third of the time. */
static void small_heads(const kkt_param_table *table, kkt_values *out) {
    static const char *const dims[] = {"dk", "dv"};
    kkt_params_defaults(table, out);
    for (size_t d = 0; d < sizeof dims / sizeof *dims && getenv("KKT_TEST_VARIANTS") == NULL; d++) {
        int at = kkt_params_find(table, dims[d]);
        if (at >= 0)
            out->v[at] = 64;
    }
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

static bool has_effect(const kkt_param_table *table, size_t p, const kkt_values *config) {
    const kkt_param *param = &table->params[p];
    return param->depends_on == 0 ||
           ((param->depends_values >> config->v[param->depends_on - 1]) & 1);
}

/* Gives every parameter without effect its fallback. */
static void drop_without_effect(const kkt_param_table *table, kkt_values *config) {
    for (size_t p = 0; p < table->count; p++)
        if (!has_effect(table, p, config))
            config->v[p] = table->params[p].fallback;
}

/* Gives parameter `p` its value `v` where it and the parameters of `fixed` then have an effect,
 * these as they are, and the configuration launches; else changes nothing and returns false. */
static bool take(variant_job *job, size_t p, size_t v, uint64_t fixed) {
    const kkt_param_table *table = &job->variant->params;
    const kkt_values before = job->config;
    kkt_prediction prediction;
    int launch;
    give_effect(table, &table->params[p], &job->config);
    job->config.v[p] = table->params[p].values[v];
    drop_without_effect(table, &job->config);
    bool good = has_effect(table, p, &job->config);
    for (size_t q = 0; q < table->count; q++)
        if ((fixed >> q) & 1)
            good = good && has_effect(table, q, &job->config) && job->config.v[q] == before.v[q];
    good = good && !too_long(job) && launchable(job, &prediction, &launch);
    if (!good)
        job->config = before;
    return good;
}

typedef bool values_shown[KKT_PARAMS_MAX][KKT_CHOICES_MAX];

static void show(const variant_job *job, values_shown shown) {
    const kkt_param_table *table = &job->variant->params;
    for (size_t p = 0; p < table->count; p++)
        for (size_t v = 0; v < table->params[p].count && has_effect(table, p, &job->config); v++)
            shown[p][v] = shown[p][v] || table->params[p].values[v] == job->config.v[p];
}

/* Each value of each parameter that goes beside defaults and a chunk, once: a value that is not
 * shown yet takes along one of every other parameter's, as far as they go together. */
static void queue_each_value(family *f, variant_job job, int64_t chunk, values_shown shown) {
    const kkt_param_table *table = &job.variant->params;
    for (size_t first = 0; first < table->count; first++)
        for (size_t value = 0; value < table->params[first].count && f->count < JOBS_MAX; value++) {
            start(table, chunk, &job.config);
            if (shown[first][value] || !take(&job, first, value, 0))
                continue;
            uint64_t fixed = UINT64_C(1) << first;
            for (size_t p = 0; p < table->count; p++)
                for (size_t v = 0; v < table->params[p].count && !((fixed >> p) & 1); v++)
                    if (!shown[p][v] && take(&job, p, v, fixed))
                        fixed |= UINT64_C(1) << p;
            assert_true(queue(f, &job));
            show(&job, shown);
        }
}

static void draw(const kkt_param_table *table, uint64_t *random, kkt_values *out) {
    for (size_t p = 0; p < table->count; p++)
        out->v[p] = table->params[p].values[next_random(random) % table->params[p].count];
}

/* What goes beside no defaults: drawn until a configuration with it launches. */
static void queue_rest(family *f, variant_job job, values_shown shown, uint64_t *random) {
    const kkt_param_table *table = &job.variant->params;
    for (size_t p = 0; p < table->count; p++)
        for (size_t v = 0; v < table->params[p].count; v++)
            for (size_t tries = 0; tries < TRIES && !shown[p][v] && f->count < JOBS_MAX; tries++) {
                draw(table, random, &job.config);
                if (take(&job, p, v, 0) && queue(f, &job))
                    show(&job, shown);
            }
}

static void queue_spread(family *f, variant_job job, size_t wanted, uint64_t *random) {
    const kkt_param_table *table = &job.variant->params;
    size_t end = f->count + wanted;
    for (size_t tries = 0; tries < TRIES * wanted && f->count < end && f->count < JOBS_MAX;
         tries++) {
        draw(table, random, &job.config);
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
            values_shown shown = {0};
            job.arch = kkt_arch_find("sm90");
            small_heads(&job.kernel->problem, &job.problem);
            queue_each_value(f, job, 16, shown); /* compiled soonest */
            queue_rest(f, job, shown, &random);
            kkt_params_defaults(&job.kernel->problem, &job.problem);
            queue_each_value(f, job, 32, shown);
            queue_rest(f, job, shown, &random);
            small_heads(&job.kernel->problem, &job.problem);
            for (size_t a = 0; a < sizeof FAMILY_ARCHS / sizeof *FAMILY_ARCHS; a++) {
                job.arch = kkt_arch_find(FAMILY_ARCHS[a]);
                assert_non_null(job.arch);
                queue_spread(f, job, asked_spread(), &random);
            }
        }
}

/* Of the launches of a plan: what is compiled tells one kernel's bounds, not of which. */
static uint32_t least_threads(const kkt_plan *plan) {
    uint32_t least = UINT32_MAX;
    for (size_t i = 0; i < (size_t)plan->launch_count; i++) {
        const uint32_t *block = plan->launches[i].block;
        const uint32_t threads = block[0] * block[1] * block[2];
        least = threads < least ? threads : least;
    }
    return least;
}

/* That the launch that the footprint describes has the predicted shared memory, and that none has
 * more than the model allows for. */
static void check_memory(const variant_job *job, const char *config, const kkt_plan *plan,
                         int64_t fixed) {
    const kkt_prediction *p = &job->prediction;
    assert_in_range(job->launch, 0, plan->launch_count - 1);
    const int64_t dynamic = plan->launches[job->launch].dynamic_smem_bytes;
    if (dynamic + fixed != p->smem_bytes)
        fail_msg("%s %s %s: %lld dynamic and %lld static bytes of shared memory, %lld predicted",
                 job->kernel->name, job->arch->name, config, (long long)dynamic, (long long)fixed,
                 (long long)p->smem_bytes);
    for (int i = 0; i < plan->launch_count; i++)
        if (plan->launches[i].dynamic_smem_bytes + fixed > p->most_smem_bytes)
            fail_msg(
                "%s %s %s: launch %d takes %lld dynamic bytes of shared memory, %lld in all are "
                "predicted at the most",
                job->kernel->name, job->arch->name, config, i,
                (long long)plan->launches[i].dynamic_smem_bytes, (long long)p->most_smem_bytes);
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
    check_memory(job, kkt_text_get(&config), &plan, result->info.static_smem_bytes);
    uint32_t threads = least_threads(&plan);
    if (result->info.max_threads > 0 && (uint32_t)result->info.max_threads < threads)
        fail_msg("%s %s %s: compiled for %d threads, launched with %u", job->kernel->name,
                 job->arch->name, kkt_text_get(&config), (int)result->info.max_threads,
                 (unsigned)threads);
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
