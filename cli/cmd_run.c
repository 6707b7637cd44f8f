/* `kkttune run KERNEL`: one configuration on the GPU over a user's own inputs, judged against the
 * double-precision reference. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/check_output.h"
#include "cli/config_choice.h"
#include "cli/data_options.h"
#include "cli/gpu_session.h"
#include "cli/tensor_print.h"
#include "cli/tensors.h"
#include "model/predict.h"

enum { DEFAULT_PARTS = 512 }; /* of the result are compared: seconds at most on one core */

typedef struct job {
    const kkt_args *args;
    kkt_data_options with;
    int64_t parts;
    kkt_values problem;
    kkt_host_tensors tensors;
    kkt_gpu_session gpu;
    kkt_data_check check;
} job;

static kkt_status read_options(job *j, kkt_error *err) {
    kkt_status status = kkt_data_options_read(j->args, true, &j->with, err);
    const char *parts = kkt_args_get(j->args, "--parts");
    j->parts = DEFAULT_PARTS;
    if (status == KKT_OK && parts && !kkt_parse_i64(parts, 0, INT64_MAX, &j->parts))
        status = kkt_fail(err, KKT_ERR_INPUT, 0, "--parts '%s' is not a number from 0 up", parts);
    return status;
}

static kkt_status read_inputs(job *j, kkt_error *err) {
    const kkt_tensor_request request = {
        .kernel = j->with.kernel,
        .config = &j->with.config,
        .folder = j->with.in,
        .problem = kkt_args_get(j->args, "--problem"),
        .dtype = kkt_args_get(j->args, "--dtype"),
    };
    kkt_status status = kkt_tensors_read(&request, &j->problem, &j->tensors, err);
    if (status == KKT_OK)
        status = j->with.kernel->check_inputs(&j->problem, &j->tensors, err);
    for (int i = 0; i < j->tensors.count && status == KKT_OK; i++)
        if (j->tensors.t[i].tensor.role == KKT_TENSOR_OUTPUT)
            status =
                kkt_tensors_check_out(j->with.in, j->with.out, j->tensors.t[i].tensor.name, err);
    if (status == KKT_OK)
        kkt_tensors_note_unknown(j->with.in, j->with.kernel, &j->tensors);
    return status;
}

/* Where --config names nothing: a configuration that applies to the problem, and says which. */
static kkt_status choose_config(job *j, kkt_error *err) {
    kkt_config_choice choice;
    if (j->with.config_given != 0)
        return KKT_OK;
    kkt_status status =
        kkt_config_choose(j->with.kernel, j->with.variant, kkt_args_has(j->args, "--style"),
                          j->gpu.arch, j->gpu.device, &j->problem, &choice, err);
    if (status != KKT_OK || choice.note[0] == '\0')
        return status;
    kkt_text config = {0};
    kkt_params_format(&choice.variant->params, &choice.config, &config);
    fprintf(stderr, "%s %s: %s\n", kkt_style_get(choice.variant->style)->name,
            kkt_text_get(&config), choice.note);
    kkt_text_free(&config);
    const char *chunk = j->with.kernel->chunk_param;
    const bool other_chunk =
        chunk != NULL && kkt_params_get(&j->with.variant->params, &j->with.config, chunk) !=
                             kkt_params_get(&choice.variant->params, &choice.config, chunk);
    j->with.variant = choice.variant;
    j->with.config = choice.config;
    if (!other_chunk)
        return KKT_OK;
    kkt_host_tensors_free(&j->tensors); /* shapes depend on it */
    return read_inputs(j, err);
}

/* Refuses what the constraints or the model say cannot run, then compiles and runs it once. */
static kkt_status run_on_gpu(job *j, kkt_error *err) {
    char reason[320] = "";
    kkt_footprint footprint = {0};
    kkt_prediction prediction;
    kkt_policy policy;
    if (!j->with.variant->applicable(&j->problem, &j->with.config, j->gpu.arch, reason,
                                     sizeof reason))
        return kkt_fail(err, KKT_ERR_INPUT, 0, "this configuration does not fit the problem: %s",
                        reason);
    j->with.variant->footprint(&j->problem, &j->with.config, j->gpu.arch, &footprint);
    kkt_predict(&footprint, j->gpu.arch, j->gpu.device, NULL, &prediction);
    if (prediction.infeasible != KKT_FEASIBLE) {
        kkt_prediction_reason(&footprint, j->gpu.arch, j->gpu.device, &prediction, reason,
                              sizeof reason);
        return kkt_fail(err, KKT_ERR_INPUT, 0, "this configuration cannot launch: %s", reason);
    }
    kkt_compile_result built = {0};
    int64_t tag;
    kkt_status status = kkt_gpu_session_submit(&j->gpu, j->with.kernel, j->with.variant,
                                               &j->problem, &j->with.config, 0, err);
    const bool compiled = j->with.variant->source != NULL;
    if (status == KKT_OK && compiled)
        status = kkt_gpu_session_next(&j->gpu, &tag, &built, err);
    if (status == KKT_OK && compiled && !built.ok)
        status = kkt_fail(err, KKT_ERR_MISSING, 0, "%s does not compile: %.300s",
                          j->with.variant->source,
                          built.timed_out ? "it took too long"
                          : built.log     ? built.log
                                          : "");
    kkt_policy_defaults(&policy);
    const kkt_measure_request request = {
        .kernel = j->with.kernel,
        .variant = j->with.variant,
        .arch = j->gpu.arch,
        .device = j->gpu.device,
        .problem = &j->problem,
        .config = &j->with.config,
        .cubin = built.cubin,
        .cubin_size = built.cubin_size,
        .prediction = &prediction,
        .policy = &policy,
    };
    if (status == KKT_OK)
        status = j->gpu.type->run(j->gpu.backend, &request, &j->tensors, err);
    kkt_compile_result_free(&built);
    return status;
}

static kkt_status judge(job *j, kkt_error *err) {
    const kkt_data_check_request check = {
        .kernel = j->with.kernel,
        .variant = j->with.variant,
        .problem = &j->problem,
        .config = &j->with.config,
        .config_given = ~UINT64_C(0), /* it is what ran, named or not */
        .inputs = &j->tensors,
        .actual = &j->tensors,
        .max_parts = j->parts,
    };
    return kkt_check_run(&check, &j->check, err);
}

static kkt_status write_outputs(const job *j, kkt_error *err) {
    kkt_status status = KKT_OK;
    for (int i = 0; i < j->tensors.count && status == KKT_OK; i++)
        if (j->tensors.t[i].tensor.role == KKT_TENSOR_OUTPUT && j->tensors.t[i].data)
            status = kkt_tensor_write(j->with.out, &j->tensors.t[i], err);
    return status;
}

static void report(const job *j) {
    kkt_text problem = {0}, config = {0};
    kkt_params_format(&j->with.kernel->problem, &j->problem, &problem);
    if (!kkt_args_has(j->args, "--json")) {
        printf("gpu            %s\n", j->gpu.type->info(j->gpu.backend)->gpu);
        kkt_tensors_print(kkt_text_get(&problem), j->with.in, j->with.out, &j->tensors,
                          &j->tensors);
        kkt_check_print(&j->check, "");
        kkt_text_free(&problem);
        return;
    }
    kkt_params_format(&j->with.variant->params, &j->with.config, &config);
    kkt_json *root = kkt_check_json(&j->check, j->with.kernel->name, kkt_text_get(&problem),
                                    kkt_text_get(&config));
    kkt_json_add_string(root, "gpu", j->gpu.type->info(j->gpu.backend)->gpu);
    kkt_json_add_string(root, "arch", j->gpu.arch->name);
    kkt_print_json(root);
    kkt_text_free(&problem);
    kkt_text_free(&config);
}

static kkt_status run(job *j, kkt_error *err) {
    kkt_status status = read_options(j, err);
    if (status == KKT_OK)
        status = kkt_gpu_session_open(j->args, &j->gpu, err);
    if (status == KKT_OK)
        status = read_inputs(j, err);
    if (status == KKT_OK)
        status = choose_config(j, err);
    if (status == KKT_OK)
        status = run_on_gpu(j, err);
    if (status == KKT_OK)
        status = write_outputs(j, err);
    if (status == KKT_OK)
        status = judge(j, err);
    if (status != KKT_OK)
        return status;
    report(j);
    return kkt_check_status(&j->check, &j->tensors, "the result", err);
}

static kkt_status run_run(const kkt_args *args, kkt_error *err) {
    job *j = calloc(1, sizeof *j);
    if (!j)
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "out of memory");
    j->args = args;
    kkt_status status = run(j, err);
    kkt_gpu_session_close(&j->gpu);
    kkt_host_tensors_free(&j->tensors);
    free(j);
    return status;
}

static const kkt_option options[] = {
    {"--style", "NAME", "write style; default the kernel's first with device code"},
    {"--config", "k=v,...",
     "the configuration; parameters left out have their default; without it, where the defaults do "
     "not apply to the problem, the model's best"},
    {"--problem", "k=v,...", "problem keys; those left out follow from the files' shapes"},
    {"--in", "DIR", "folder of the inputs, NAME.npy each"},
    {"--out", "DIR", "folder the result is written to, in the problem's type"},
    {"--dtype", "T", "type the kernel works in, and what u2 files hold: bf16, fp16"},
    {"--parts", "N",
     "chunks and heads compared with the reference, spread over all; 0: every one; "
     "default 512"},
    {"--arch", "ARCH", "refuse a GPU of another architecture"},
    KKT_GPU_OPTIONS,
    KKT_OPTION_JSON,
};

const kkt_command kkt_cmd_run = {
    .name = "run",
    .operands = "KERNEL",
    .summary = "run one configuration on the GPU over your own inputs and check the result",
    .details = "Inputs are rounded to the kernel's types; the reference uses the rounded values.",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run_run,
};
