/* `kkttune verify KERNEL`: correctness alone. Configurations pass the gate on the GPU, small
 * problems with hard inputs first, then the problem at hand; none is ranked. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/gpu_session.h"
#include "cli/progress.h"
#include "tuner/compile/source_folder.h"
#include "tuner/engine/space.h"

enum { DEFAULT_COUNT = 32 };

typedef struct verified {
    kkt_point point;
    kkt_outcome outcome;
    char reason[320];
    double rel_fro, tolerance;
} verified;

typedef struct job {
    const kkt_args *args;
    const kkt_kernel *kernel;
    const kkt_variant *variant;
    kkt_values problem;
    int64_t wanted; /* 0: all */
    kkt_gpu_session gpu;
    kkt_text sources; /* of --sources */
    kkt_progress progress;
    verified *rows;
    int64_t count, failed;
} job;

/* The asked style, or the first that has device code. */
static kkt_status choose_variant(job *j, kkt_error *err) {
    const kkt_kernel *kernel = j->kernel;
    const char *name = kkt_args_get(j->args, "--style");
    const kkt_style *style = name ? kkt_style_find(name) : NULL;
    if (style)
        j->variant = kkt_kernel_variant(kernel, style->id);
    for (size_t i = 0; !name && !j->variant && i < kernel->variant_count; i++)
        j->variant = kkt_variant_tuned(kernel->variants[i]) ? kernel->variants[i] : NULL;
    if (j->variant && kkt_variant_runs(j->variant) && kernel->reference)
        return KKT_OK;
    if (name)
        return kkt_fail(err, KKT_ERR_INPUT, 0, "%s has no style '%.40s' with device code",
                        kernel->name, name);
    return kkt_fail(err, KKT_ERR_INPUT, 0,
                    "kernel %s has no device code yet: the model alone knows it", kernel->name);
}

static kkt_status read_options(job *j, kkt_error *err) {
    kkt_status status = kkt_kernel_parse(kkt_args_operand(j->args, 0), &j->kernel, err);
    if (status != KKT_OK)
        return status;
    status = choose_variant(j, err);
    if (status != KKT_OK)
        return status;
    const char *problem = kkt_args_get(j->args, "--problem");
    const char *count = kkt_args_get(j->args, "--count");
    char reason[200];
    j->wanted = DEFAULT_COUNT;
    status = kkt_kernel_problem_parse(j->kernel, problem, &j->problem, err);
    if (status == KKT_OK &&
        !kkt_kernel_problem_valid(j->kernel, &j->problem, reason, sizeof reason))
        status = kkt_fail(err, KKT_ERR_INPUT, 0, "%s", reason);
    if (status == KKT_OK && count && !kkt_parse_i64(count, 0, 1 << 20, &j->wanted))
        status = kkt_fail(err, KKT_ERR_INPUT, 0, "--count '%s' is not a number from 0 to 1048576",
                          count);
    return status;
}

/* Chooses `wanted` of the space's points, evenly over its order (every parameter's values occur),
 * first and last included. */
static kkt_status choose(job *j, kkt_error *err) {
    kkt_space *space = NULL;
    kkt_point point;
    int64_t total = 0;
    kkt_status status =
        kkt_space_open(j->kernel, j->variant, &j->problem, j->gpu.arch, j->gpu.device,
                       kkt_args_get(j->args, "--config"), &space, err);
    if (status != KKT_OK)
        return status;
    while (kkt_space_next(space, NULL, NULL, &point))
        total++;
    const int64_t wanted = j->wanted == 0 || j->wanted > total ? total : j->wanted;
    if (total == 0)
        status = kkt_fail(err, KKT_ERR_MISSING, 0, "no configuration of %s fits this problem",
                          j->kernel->name);
    else if (!(j->rows = calloc((size_t)wanted, sizeof *j->rows)))
        status = kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "out of memory");
    kkt_space_rewind(space);
    for (int64_t at = 0; j->rows && kkt_space_next(space, NULL, NULL, &point); at++) {
        const int64_t next = wanted > 1 ? j->count * (total - 1) / (wanted - 1) : 0;
        if (j->count < wanted && at == next)
            j->rows[j->count++].point = point;
    }
    kkt_space_close(space);
    return status;
}

static kkt_status check_one(job *j, verified *row, const kkt_compile_result *built,
                            kkt_error *err) {
    kkt_policy policy;
    kkt_policy_defaults(&policy);
    policy.warmup_launches = 0; /* the time is not looked at */
    policy.min_samples = policy.max_samples = 1;
    policy.sample_seconds = 1e-3;
    const kkt_measure_request request = {
        .kernel = j->kernel,
        .variant = j->variant,
        .arch = j->gpu.arch,
        .device = j->gpu.device,
        .problem = &j->problem,
        .config = &row->point.config,
        .cubin = built->cubin,
        .cubin_size = built->cubin_size,
        .prediction = &row->point.prediction,
        .policy = &policy,
    };
    kkt_measure_result result;
    kkt_status status = j->gpu.type->measure(j->gpu.backend, &request, &result, err);
    if (status != KKT_OK)
        return status;
    row->outcome = result.run.outcome == KKT_OUTCOME_NOISY ? KKT_OUTCOME_OK : result.run.outcome;
    row->rel_fro = result.run.rel_fro;
    row->tolerance = result.run.tolerance;
    snprintf(row->reason, sizeof row->reason, "%s",
             row->outcome != KKT_OUTCOME_OK && result.run.reason ? result.run.reason : "");
    kkt_measure_result_free(&result);
    return KKT_OK;
}

static kkt_status note_failed_build(verified *row, const kkt_compile_result *built) {
    row->outcome = built->timed_out ? KKT_OUTCOME_TIMED_OUT : KKT_OUTCOME_BUILD_FAILED;
    row->rel_fro = row->tolerance = NAN;
    snprintf(row->reason, sizeof row->reason, "%.300s",
             built->timed_out ? "the compiler took too long"
             : built->log     ? built->log
                              : "");
    return KKT_OK;
}

/* Checks the next candidate that is compiled while the others still are. */
static kkt_status check_next(job *j, int64_t turn, kkt_error *err) {
    kkt_compile_result built = {0};
    int64_t tag = turn;
    kkt_status status = KKT_OK;
    const bool needs_code = j->gpu.type->needs_cubin && j->variant->source;
    if (needs_code)
        status = kkt_gpu_session_next(&j->gpu, &tag, &built, err);
    if (status != KKT_OK)
        return status;
    verified *row = &j->rows[tag];
    status =
        needs_code && !built.ok ? note_failed_build(row, &built) : check_one(j, row, &built, err);
    j->failed += row->outcome != KKT_OUTCOME_OK;
    kkt_compile_result_free(&built);
    return status;
}

static kkt_status check_all(job *j, kkt_error *err) {
    kkt_status status = KKT_OK;
    for (int64_t i = 0; i < j->count && status == KKT_OK; i++)
        status = kkt_gpu_session_submit(&j->gpu, j->kernel, j->variant, &j->problem,
                                        &j->rows[i].point.config, i, err);
    kkt_progress_open(&j->progress);
    for (int64_t i = 0; i < j->count && status == KKT_OK; i++) {
        status = check_next(j, i, err);
        kkt_progress_show(&j->progress, "verify", i + 1, j->count, "");
    }
    kkt_progress_close(&j->progress);
    return status;
}

static void print_json(const job *j) {
    kkt_text text = {0};
    kkt_json *root = kkt_json_object();
    kkt_json_add_string(root, "schema", "kkttune.verify/1");
    kkt_json_add_string(root, "kernel", j->kernel->name);
    kkt_json_add_string(root, "arch", j->gpu.arch->name);
    kkt_json_add_string(root, "gpu", j->gpu.type->info(j->gpu.backend)->gpu);
    kkt_params_format(&j->kernel->problem, &j->problem, &text);
    kkt_json_add_string(root, "problem", kkt_text_get(&text));
    kkt_json_add_int(root, "checked", j->count);
    kkt_json_add_int(root, "failed", j->failed);
    kkt_json *rows = kkt_json_add_array(root, "candidates");
    for (int64_t i = 0; i < j->count; i++) {
        kkt_json *row = kkt_json_add_object(rows, NULL);
        kkt_text_free(&text);
        kkt_params_format(&j->variant->params, &j->rows[i].point.config, &text);
        kkt_json_add_string(row, "config", kkt_text_get(&text));
        kkt_json_add_string(row, "outcome", kkt_outcome_name(j->rows[i].outcome));
        kkt_json_add_string(row, "reason", j->rows[i].reason[0] ? j->rows[i].reason : NULL);
        kkt_json_add_real(row, "rel_fro", j->rows[i].rel_fro);
        kkt_json_add_real(row, "tolerance", j->rows[i].tolerance);
    }
    kkt_text_free(&text);
    kkt_print_json(root);
}

static void print_text(const job *j) {
    static const char *const headings[] = {"outcome", "rel_fro", "tolerance", "configuration"};
    kkt_table *table = kkt_table_open(sizeof headings / sizeof *headings, headings);
    for (int64_t i = 0; i < j->count; i++) {
        const verified *row = &j->rows[i];
        kkt_text config = {0};
        kkt_params_format(&j->variant->params, &row->point.config, &config);
        kkt_table_cell(table, "%s", kkt_outcome_name(row->outcome));
        kkt_table_cell(table, "%.2e", row->rel_fro);
        kkt_table_cell(table, "%.1e", row->tolerance);
        kkt_table_cell(table, "%s%s%s", kkt_text_get(&config), row->reason[0] ? ": " : "",
                       row->reason);
        kkt_text_free(&config);
    }
    kkt_table_print(table, stdout);
    kkt_table_close(table);
    printf("%" PRId64 " of %" PRId64 " configurations are right\n", j->count - j->failed, j->count);
}

/* --sources: a folder whose device sources stand in for the embedded ones. */
static kkt_status read_sources(job *j, kkt_error *err) {
    const char *folder = kkt_args_get(j->args, "--sources");
    const char *backend = kkt_args_get(j->args, "--backend");
    if (!folder)
        return KKT_OK;
    if (backend && strncmp(backend, "fake", 4) == 0)
        return kkt_fail(err, KKT_ERR_INPUT, 0,
                        "--sources needs the backend cuda: fake runs no device code");
    if (!j->variant->source)
        return kkt_fail(err, KKT_ERR_INPUT, 0,
                        "--sources is for device code, and this style of %s calls %s alone",
                        j->kernel->name, j->variant->library);
    return kkt_source_folder_read(folder, j->variant->source, &j->sources, err);
}

static kkt_status run(job *j, kkt_error *err) {
    kkt_status status = read_options(j, err);
    if (status == KKT_OK)
        status = read_sources(j, err);
    if (status == KKT_OK)
        status = kkt_gpu_session_open(j->args, &j->gpu, err);
    j->gpu.source_text = j->sources.data;
    if (status == KKT_OK)
        status = choose(j, err);
    if (status == KKT_OK)
        status = check_all(j, err);
    if (status != KKT_OK)
        return status;
    if (kkt_args_has(j->args, "--json"))
        print_json(j);
    else
        print_text(j);
    if (j->failed)
        return kkt_fail(err, KKT_ERR_MISSING, 0,
                        "%" PRId64 " of %" PRId64 " configurations did not pass", j->failed,
                        j->count);
    return KKT_OK;
}

static kkt_status run_verify(const kkt_args *args, kkt_error *err) {
    job j = {.args = args};
    kkt_status status = run(&j, err);
    kkt_gpu_session_close(&j.gpu);
    kkt_text_free(&j.sources);
    free(j.rows);
    return status;
}

static const kkt_option options[] = {
    KKT_OPTION_ARCH,
    KKT_OPTION_DEVICE,
    {"--style", "NAME", "write style; default the kernel's first with device code"},
    {"--problem", "k=v,...", "the problem; keys left out have their default"},
    {"--config", "k=v,...", "parameters to hold at a value"},
    {"--count", "N", "configurations checked, spread over the space; 0: all; default 32"},
    {"--sources", "DIR", "device sources from this copy of kernels/, not those of the program"},
    {"--backend", "NAME", "cuda or fake[:seed=N,fault=KIND]"},
    KKT_GPU_OPTIONS,
    KKT_OPTION_JSON,
};

const kkt_command kkt_cmd_verify = {
    .name = "verify",
    .operands = "KERNEL",
    .summary = "check configurations on the GPU against the reference, without ranking them",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run_verify,
};
