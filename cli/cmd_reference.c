/* `kkttune reference KERNEL`: the double-precision result of a user's own inputs, on the CPU. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cli/check_output.h"
#include "cli/command.h"
#include "cli/data_options.h"
#include "cli/tensor_print.h"
#include "cli/tensors.h"
#include "tuner/engine/gate.h"

typedef struct job {
    const kkt_args *args;
    kkt_data_options with;
    kkt_dtype written; /* of the result's file */
    kkt_values problem;
    kkt_host_tensors inputs; /* all tensors, outputs without data */
    kkt_host_tensors result; /* outputs: the reference as it is written */
    kkt_host_tensors given;  /* outputs: the user's own, where there are any */
    kkt_data_check check;
} job;

/* ---- options ---- */

static kkt_status read_options(job *j, kkt_error *err) {
    const char *dtype = kkt_args_get(j->args, "--dtype");
    j->written = KKT_FP64;
    kkt_status status = kkt_data_options_read(j->args, false, &j->with, err);
    return status == KKT_OK && dtype ? kkt_dtype_parse(dtype, &j->written, err) : status;
}

/* ---- results ---- */

/* The user's own result for one output: --compare FILE for the kernel's only one, --compare DIR, or
 * NAME.npy of the input folder where it is there. */
static kkt_status read_given(job *j, const kkt_tensor *shape, kkt_host_tensor *out,
                             kkt_error *err) {
    const char *compare = kkt_args_get(j->args, "--compare");
    const size_t length = compare ? strlen(compare) : 0;
    const bool is_file = length > 4 && strcmp(compare + length - 4, ".npy") == 0;
    char *path =
        is_file ? strdup(compare) : kkt_tensor_path(compare ? compare : j->with.in, shape->name);
    bool found = false;
    kkt_status status = kkt_tensor_read(path, shape, out, &found, err);
    if (status == KKT_OK && compare && !found)
        status = kkt_fail(err, KKT_ERR_INPUT, 0, "--compare: there is no %s", path);
    free(path);
    return status;
}

static bool has_given(const job *j) {
    bool any = false, all = true;
    for (int i = 0; i < j->given.count; i++)
        if (j->given.t[i].tensor.role == KKT_TENSOR_OUTPUT) {
            any = any || j->given.t[i].data;
            all = all && j->given.t[i].data;
        }
    return any && all;
}

/* Room for the reference of every output, and what the user brought to compare with it. */
static kkt_status open_outputs(job *j, kkt_error *err) {
    j->result = j->given = (kkt_host_tensors){.count = j->inputs.count};
    kkt_status status = KKT_OK;
    for (int i = 0; i < j->inputs.count && status == KKT_OK; i++) {
        const kkt_tensor *shape = &j->inputs.t[i].tensor;
        j->result.t[i].tensor = j->given.t[i].tensor = *shape;
        if (shape->role != KKT_TENSOR_OUTPUT)
            continue;
        j->result.t[i].tensor.dtype = j->written;
        j->result.t[i].data = calloc((size_t)kkt_tensor_bytes(&j->result.t[i].tensor) + 1, 1);
        if (!j->result.t[i].data)
            status =
                kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "out of memory for tensor %s", shape->name);
        if (status == KKT_OK && j->with.out)
            status = kkt_tensors_check_out(j->with.in, j->with.out, shape->name, err);
        if (status == KKT_OK)
            status = read_given(j, shape, &j->given.t[i], err);
    }
    if (status == KKT_OK && !j->with.out && !has_given(j))
        return kkt_fail(err, KKT_ERR_INPUT, 0,
                        "option --out DIR is needed: the result's folder; without it a result to "
                        "judge, among the inputs or by --compare");
    return status;
}

/* The element type a given result is judged as: its own, where the problem's could be it. */
static void judge_as_given(job *j) {
    const int key = kkt_params_find(&j->with.kernel->problem, "dtype");
    for (int i = 0; i < j->given.count && key >= 0; i++) {
        const kkt_host_tensor *host = &j->given.t[i];
        if (host->data && (host->tensor.dtype == KKT_FP16 || host->tensor.dtype == KKT_BF16))
            j->problem.v[key] = host->tensor.dtype;
    }
}

static kkt_status write_outputs(const job *j, kkt_error *err) {
    kkt_status status = KKT_OK;
    for (int i = 0; i < j->result.count && status == KKT_OK && j->with.out; i++)
        if (j->result.t[i].data)
            status = kkt_tensor_write(j->with.out, &j->result.t[i], err);
    return status;
}

/* What the result and its judgement rest on: the chunk, where there is one, and what was named. The
 * others' defaults had no part in it. */
static void format_config(const job *j, bool chunk, kkt_text *out) {
    const kkt_param_table *all = &j->with.variant->params;
    kkt_param params[KKT_PARAMS_MAX];
    kkt_param_table named = {.what = all->what, .params = params};
    kkt_values values = {{0}};
    for (size_t p = 0; p < all->count; p++) {
        const bool is_chunk = chunk && j->with.kernel->chunk_param &&
                              strcmp(all->params[p].name, j->with.kernel->chunk_param) == 0;
        if (!is_chunk && !(j->with.config_given >> p & 1))
            continue;
        params[named.count] = all->params[p];
        values.v[named.count++] = j->with.config.v[p];
    }
    kkt_params_format(&named, &values, out);
}

static const char *first_output(const kkt_host_tensors *tensors) {
    for (int i = 0; i < tensors->count; i++)
        if (tensors->t[i].tensor.role == KKT_TENSOR_OUTPUT)
            return tensors->t[i].tensor.name;
    return "";
}

static void print_lower(const job *j) {
    char *path = kkt_tensor_path(j->with.in, j->with.kernel->from_lower->tensor);
    printf("%-14s %s\n", "read", path);
    free(path);
}

static kkt_status report(const job *j, const char *problem, kkt_error *err) {
    if (kkt_args_has(j->args, "--json")) {
        kkt_text config = {0};
        format_config(j, problem != NULL, &config);
        kkt_json *root =
            kkt_check_json(&j->check, j->with.kernel->name, problem, kkt_text_get(&config));
        kkt_print_json(root);
        kkt_text_free(&config);
    } else {
        if (!problem) /* the matrices themselves: no list of the kernel's */
            print_lower(j);
        kkt_tensors_print(problem, j->with.in, j->with.out, &j->inputs, &j->result);
        kkt_check_print(&j->check, first_output(&j->result));
    }
    return kkt_check_status(&j->check, &j->given, "the given result", err);
}

/* ---- from the kernel's own inputs ---- */

static kkt_status run_inputs(job *j, kkt_error *err) {
    const kkt_tensor_request request = {
        .kernel = j->with.kernel,
        .config = &j->with.config,
        .folder = j->with.in,
        .problem = kkt_args_get(j->args, "--problem"),
        .dtype = kkt_args_get(j->args, "--dtype"),
        .exact = true,
    };
    kkt_status status = kkt_tensors_read(&request, &j->problem, &j->inputs, err);
    if (status == KKT_OK)
        status = j->with.kernel->check_inputs(&j->problem, &j->inputs, err);
    if (status == KKT_OK)
        status = open_outputs(j, err);
    if (status != KKT_OK)
        return status;
    kkt_tensors_note_unknown(j->with.in, j->with.kernel, &j->inputs);
    kkt_text problem = {0};
    kkt_params_format(&j->with.kernel->problem, &j->problem, &problem);
    const bool compared = has_given(j);
    if (compared)
        judge_as_given(j);
    const kkt_data_check_request check = {
        .kernel = j->with.kernel,
        .variant = j->with.variant,
        .problem = &j->problem,
        .config = &j->with.config,
        .config_given = j->with.config_given,
        .inputs = &j->inputs,
        .actual = compared ? &j->given : &j->result,
        .store = &j->result,
    };
    status = kkt_check_run(&check, &j->check, err);
    if (status == KKT_OK)
        status = write_outputs(j, err);
    if (status == KKT_OK)
        status = report(j, kkt_text_get(&problem), err);
    kkt_text_free(&problem);
    return status;
}

/* ---- from the strictly lower matrices themselves ---- */

enum { LOWER_MAX = 1024 }; /* rows; the work grows with the cube */

static kkt_status check_lower(const char *name, const kkt_host_tensor *l, int64_t n,
                              kkt_error *err) {
    const int64_t count = kkt_tensor_elements(&l->tensor);
    for (int64_t at = 0; at < count; at++) {
        const double value = kkt_dtype_load(l->tensor.dtype, l->data, (size_t)at);
        const int64_t row = at / n % n, column = at % n;
        if (!isfinite(value))
            return kkt_fail(err, KKT_ERR_INPUT, 0,
                            "%s[...,%" PRId64 ",%" PRId64 "] is %g: inputs must be finite", name,
                            row, column, value);
        if (column >= row && value != 0.0)
            return kkt_fail(err, KKT_ERR_INPUT, 0,
                            "%s[...,%" PRId64 ",%" PRId64 "] is %g, but %s must be strictly "
                            "lower: pass L, not I + L",
                            name, row, column, value, name);
    }
    return KKT_OK;
}

/* The path of the file of such matrices; malloc'ed. NULL where the family has no such form. */
static char *lower_path(const job *j) {
    const kkt_from_lower *form = j->with.kernel->from_lower;
    char name[40];
    if (!form)
        return NULL;
    snprintf(name, sizeof name, "%s.npy", form->tensor);
    return kkt_path_join(j->with.in, name);
}

/* Reads the file, of shape [C,C] with at most two dimensions before. */
static kkt_status read_lower(job *j, int64_t *n, kkt_npy *file, kkt_error *err) {
    const char *name = j->with.kernel->from_lower->tensor;
    char *path = lower_path(j);
    kkt_status status = kkt_npy_read(path, file, err);
    if (status == KKT_OK) {
        const int rank = file->rank;
        *n = rank >= 2 && rank <= KKT_TENSOR_DIMS ? file->dims[rank - 1] : 0;
        if (*n < 1 || *n > LOWER_MAX || file->dims[rank - 2] != *n)
            status = kkt_fail(err, KKT_ERR_INPUT, 0,
                              "tensor %s: expected shape [...,C,C] with C from 1 to %d in %s", name,
                              LOWER_MAX, path);
        else if (file->type == KKT_NPY_I4 || file->type == KKT_NPY_I8)
            status = kkt_fail(
                err, KKT_ERR_INPUT, 0,
                "tensor %s: %s holds integers, but f2, f4, f8 or bf16 as u2 is needed", name, path);
    }
    free(path);
    return status;
}

static kkt_status invert_all(job *j, const kkt_host_tensor *l, kkt_host_tensor *t,
                             const kkt_host_tensors *actual, int64_t n, kkt_error *err) {
    const int64_t size = n * n;
    const kkt_from_lower *form = j->with.kernel->from_lower;
    double *lower = calloc((size_t)size * 2, sizeof *lower);
    if (!lower)
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "out of memory for a matrix");
    double *inverse = lower + size;
    kkt_status status = KKT_OK;
    const int64_t matrices = kkt_tensor_elements(&l->tensor) / size;
    for (int64_t m = 0; m < matrices && status == KKT_OK; m++) {
        for (int64_t i = 0; i < size; i++)
            lower[i] = kkt_dtype_load(l->tensor.dtype, l->data, (size_t)(m * size + i));
        form->solve(lower, (int)n, inverse);
        for (int64_t i = 0; i < size; i++)
            kkt_dtype_store(t->tensor.dtype, t->data, (size_t)(m * size + i), inverse[i]);
        const kkt_region region = {.offset = m * size, .rows = n, .columns = n, .row_stride = n};
        status = kkt_gate_score_part(j->with.kernel, &j->problem, actual, &region, 1, inverse,
                                     &j->check.score, err);
        const double cond = form->condition(lower, inverse, (int)n);
        if (!(cond <= j->check.cond_estimate))
            j->check.cond_estimate = cond;
    }
    free(lower);
    return status;
}

static kkt_status run_lower(job *j, kkt_error *err) {
    const kkt_from_lower *form = j->with.kernel->from_lower;
    kkt_npy file = {0};
    int64_t n = 0;
    bool compared = false;
    kkt_params_defaults(&j->with.kernel->problem, &j->problem);
    kkt_status status = read_lower(j, &n, &file, err);
    kkt_tensor shape = {.name = form->result, .role = KKT_TENSOR_OUTPUT, .dtype = KKT_FP64};
    kkt_host_tensor l = {.tensor = shape}, *t = &j->result.t[0];
    if (status != KKT_OK || n < 1)
        goto done;
    shape.rank = file.rank;
    memcpy(shape.dims, file.dims, sizeof shape.dims);
    l.tensor = shape;
    l.tensor.dtype = kkt_npy_dtype(file.type);
    l.data = file.data;
    j->inputs = (kkt_host_tensors){.count = 1, .t = {{.tensor = shape}}};
    status = check_lower(form->tensor, &l, n, err);
    if (status == KKT_OK)
        status = open_outputs(j, err);
    if (status != KKT_OK)
        goto done;
    compared = has_given(j);
    if (compared)
        judge_as_given(j);
    j->check = (kkt_data_check){.cond_estimate = NAN,
                                .growth_bound = INFINITY,
                                .compared = compared,
                                .parts = file.elements / (n * n),
                                .parts_checked = file.elements / (n * n)};
    status = invert_all(j, &l, t, compared ? &j->given : &j->result, n, err);
    const double tolerance =
        j->with.variant->tolerance(&j->problem, &j->with.config, form->input_case);
    kkt_data_check_judge(&j->check, tolerance, tolerance,
                         kkt_path_rounding(j->with.variant, &j->with.config, j->with.config_given));
    if (status == KKT_OK)
        status = write_outputs(j, err);
    if (status == KKT_OK)
        status = report(j, NULL, err);
done:
    kkt_npy_free(&file);
    return status;
}

static kkt_status run_reference(const kkt_args *args, kkt_error *err) {
    job *j = calloc(1, sizeof *j);
    if (!j)
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "out of memory");
    j->args = args;
    kkt_status status = read_options(j, err);
    if (status == KKT_OK) {
        char *lower = lower_path(j);
        status = lower && kkt_file_exists(lower) ? run_lower(j, err) : run_inputs(j, err);
        free(lower);
    }
    kkt_host_tensors_free(&j->inputs);
    kkt_host_tensors_free(&j->result);
    kkt_host_tensors_free(&j->given);
    free(j);
    return status;
}

static const kkt_option options[] = {
    {"--style", "NAME", "write style; default the kernel's first with device code"},
    {"--config", "k=v,...",
     "parameters that matter to the result: chunk, and the path's precision"},
    {"--problem", "k=v,...", "problem keys; those left out follow from the files' shapes"},
    {"--in", "DIR", "folder of the inputs, NAME.npy each"},
    {"--out", "DIR", "folder the result is written to; not needed to judge one"},
    {"--dtype", "T", "type of the result: bf16 (u2), fp16, fp32, fp64; default fp64"},
    {"--compare", "FILE",
     "a result to judge (or its folder); default: the result's file among the inputs (t.npy, ...)"},
    KKT_OPTION_JSON,
};

const kkt_command kkt_cmd_reference = {
    .name = "reference",
    .operands = "KERNEL",
    .summary = "the double-precision result of your own inputs, and a verdict on your own result",
    .details =
        "Reads each of the kernel's inputs from NAME.npy (with a kernel's name, --help lists\n"
        "them): f2, f4, f8, or bf16 as u2. A result of that name among them is judged.\n"
        "kkt_solve takes l.npy, too: the strictly lower matrices [...,C,C] themselves.",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run_reference,
};
