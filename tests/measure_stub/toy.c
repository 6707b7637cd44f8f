#include "toy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PART 512 /* elements of a part */

static const kkt_param problem_params[] = {
    {.name = "n", .help = "elements", .low = 1, .high = 1 << 24, .fallback = 5000},
};
static const kkt_param config_params[] = {
    {.name = "smem", .help = "dynamic shared memory", .low = 0, .high = 1 << 20, .fallback = 0},
    {.name = "tag", .help = "any", .low = 0, .high = 100, .fallback = 0},
};
static const kkt_input_case cases[] = {{"other", "", false}, {"random", "", true}};

static bool problem_valid(const kkt_values *problem, char *reason, size_t size) {
    snprintf(reason, size, "n is odd");
    return problem->v[0] % 2 == 0 || problem->v[0] < 100;
}

static int tensors(const kkt_values *problem, const kkt_values *config, kkt_tensor *out) {
    (void)config;
    out[0] = (kkt_tensor){"x", KKT_TENSOR_INPUT, KKT_FP32, 1, {problem->v[0]}, false};
    out[1] = (kkt_tensor){"extra", KKT_TENSOR_INPUT, KKT_FP32, 1, {3}, true};
    out[2] = (kkt_tensor){"y", KKT_TENSOR_OUTPUT, KKT_FP32, 1, {problem->v[0]}, false};
    out[3] = (kkt_tensor){"w", KKT_TENSOR_WORKSPACE, KKT_FP32, 1, {8}, false};
    return 4;
}

static bool check_problem(const kkt_values *problem, const kkt_values *config, int index,
                          kkt_values *small, int *input_case) {
    static const int64_t sizes[] = {7, 600};
    (void)config;
    *small = *problem;
    if (index >= 2) {
        return false;
    }
    small->v[0] = sizes[index];
    *input_case = index;
    return true;
}

static kkt_status make_inputs(const kkt_values *problem, int input_case, uint64_t seed,
                              kkt_host_tensors *inputs, kkt_error *err) {
    kkt_tensor list[KKT_TENSORS_MAX];
    memset(inputs, 0, sizeof *inputs);
    inputs->count = tensors(problem, problem, list);
    for (int i = 0; i < inputs->count; i++) {
        inputs->t[i].tensor = list[i];
    }
    float *x = malloc((size_t)problem->v[0] * sizeof *x);
    if (x == NULL) {
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "out of memory");
    }
    for (int64_t i = 0; i < problem->v[0]; i++) {
        x[i] = (float)((i * 31 + (int64_t)(seed % 97) + input_case) % 1013) / 64.0F;
    }
    inputs->t[0].data = x;
    return KKT_OK;
}

static int64_t part_count(const kkt_values *problem, const kkt_values *config,
                          kkt_host_tensors *inputs) {
    (void)config;
    (void)inputs;
    return (problem->v[0] + PART - 1) / PART;
}

static int part_regions(const kkt_values *problem, const kkt_values *config,
                        kkt_host_tensors *inputs, int64_t part, kkt_region *out) {
    (void)config;
    (void)inputs;
    int64_t left = problem->v[0] - part * PART;
    out[0] = (kkt_region){.tensor = 2,
                          .offset = part * PART,
                          .rows = 1,
                          .columns = left < PART ? left : PART,
                          .row_stride = PART};
    return 1;
}

static kkt_status reference(const kkt_values *problem, const kkt_values *config,
                            kkt_host_tensors *inputs, int64_t part, double *out, size_t size,
                            kkt_error *err) {
    (void)problem;
    (void)config;
    (void)err;
    for (size_t i = 0; i < size; i++) {
        out[i] = 2.0 * kkt_dtype_load(KKT_FP32, inputs->t[0].data, (size_t)(part * PART) + i);
    }
    return KKT_OK;
}

static void plan(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                 kkt_plan *out) {
    (void)arch;
    out->launch_count = 2;
    for (int i = 0; i < 2; i++) {
        out->launches[i] = (kkt_launch){
            .entry = i == 0 ? "toy_low" : "toy_high",
            .grid = {1, 1, 1},
            .block = {32, 1, 1},
            .cluster = {i == 1, i == 1, i == 1},
            .dynamic_smem_bytes = config->v[0],
            .carveout_percent = 50,
            .arg_count = 5,
            .args = {{.kind = KKT_ARG_TENSOR, .tensor = 0},
                     {.kind = KKT_ARG_TENSOR, .tensor = 1},
                     {.kind = KKT_ARG_TENSOR, .tensor = 2},
                     {.kind = KKT_ARG_I64, .integer = problem->v[0]},
                     {.kind = KKT_ARG_F32, .real = 2.0}},
        };
    }
}

static double tolerance(const kkt_values *problem, const kkt_values *config, int input_case) {
    (void)problem;
    (void)config;
    (void)input_case;
    return 1e-6;
}

static const kkt_variant materialized = {
    .style = KKT_STYLE_MATERIALIZED,
    .params = {"parameter", config_params, 2},
    .plan = plan,
    .tolerance = tolerance,
};

static const kkt_variant *const variants[] = {&materialized};

const kkt_kernel toy_kernel = {
    .name = "toy",
    .problem = {"problem key", problem_params, 1},
    .variants = variants,
    .variant_count = 1,
    .problem_valid = problem_valid,
    .tensors = tensors,
    .cases = cases,
    .case_count = 2,
    .check_problem = check_problem,
    .make_inputs = make_inputs,
    .part_count = part_count,
    .part_regions = part_regions,
    .reference = reference,
};

/* ---- a pipeline: z = 2 y of y = 2 x, and one kernel that gives z = 4 x ---- */

static int next_tensors(const kkt_values *problem, const kkt_values *config, kkt_tensor *out) {
    int count = tensors(problem, config, out);
    out[0].name = "y";
    out[2].name = "z";
    return count;
}

static int whole_tensors(const kkt_values *problem, const kkt_values *config, kkt_tensor *out) {
    int count = tensors(problem, config, out);
    out[2].name = "z";
    return count;
}

static int astray_tensors(const kkt_values *problem, const kkt_values *config, kkt_tensor *out) {
    int count = next_tensors(problem, config, out);
    out[0].name = "u"; /* nobody writes it */
    return count;
}

static void next_plan(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                      kkt_plan *out) {
    plan(problem, config, arch, out);
    for (int i = 0; i < out->launch_count; i++) {
        out->launches[i].waits = true;
    }
}

static kkt_status whole_reference(const kkt_values *problem, const kkt_values *config,
                                  kkt_host_tensors *inputs, int64_t part, double *out, size_t size,
                                  kkt_error *err) {
    kkt_status status = reference(problem, config, inputs, part, out, size, err);
    for (size_t i = 0; i < size; i++) {
        out[i] *= 2.0;
    }
    return status;
}

static const kkt_variant next_variant = {
    .style = KKT_STYLE_MATERIALIZED,
    .params = {"parameter", config_params, 2},
    .plan = next_plan,
    .tolerance = tolerance,
};
static const kkt_variant *const next_variants[] = {&next_variant};

const kkt_kernel toy_next = {
    .name = "toy_next",
    .problem = {"problem key", problem_params, 1},
    .variants = next_variants,
    .variant_count = 1,
    .tensors = next_tensors,
    .cases = cases,
    .case_count = 2,
};

const kkt_kernel toy_astray = {
    .name = "toy_astray",
    .problem = {"problem key", problem_params, 1},
    .variants = next_variants,
    .variant_count = 1,
    .tensors = astray_tensors,
    .cases = cases,
    .case_count = 2,
};

const kkt_kernel toy_whole = {
    .name = "toy_whole",
    .problem = {"problem key", problem_params, 1},
    .variants = variants,
    .variant_count = 1,
    .tensors = whole_tensors,
    .cases = cases,
    .case_count = 2,
    .make_inputs = make_inputs,
    .part_count = part_count,
    .part_regions = part_regions,
    .reference = whole_reference,
};

kkt_status toy_lookup(const char *name, const kkt_kernel **out, kkt_error *err) {
    static const kkt_kernel *const toys[] = {&toy_kernel, &toy_next, &toy_astray, &toy_whole};
    for (size_t i = 0; i < sizeof toys / sizeof *toys; i++) {
        if (strcmp(name, toys[i]->name) == 0) {
            *out = toys[i];
            return KKT_OK;
        }
    }
    return kkt_kernel_parse(name, out, err);
}
