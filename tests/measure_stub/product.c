#include "product.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/library.h"

enum { A, B, C, SCRATCH };

static const kkt_param problem_params[] = {
    {.name = "n", .help = "rows of c", .low = 1, .high = 64, .fallback = 12},
};
static const char *const routine_names[] = {"gemm", "lt", "unknown"};
static const kkt_param config_params[PRODUCT_PARAMS] = {
    [PRODUCT_ROUTINE] = {.name = "routine",
                         .count = 3,
                         .values = {PRODUCT_GEMM, PRODUCT_LT, PRODUCT_UNKNOWN},
                         .names = routine_names},
    [PRODUCT_CHOICE] = {.name = "choice", .count = 3, .values = {0, 1, 2}},
    /* 1: one product before the timed one, outside of the time, and one behind it, which alone
     * writes c */
    [PRODUCT_AROUND] = {.name = "around", .count = 2, .values = {0, 1}},
};
static const kkt_input_case cases[] = {{"whole", "small whole numbers", true}};

/* c is n x (n + 1), summed over n + 2. */
static int tensors(const kkt_values *problem, const kkt_values *config, kkt_tensor *out) {
    int64_t n = problem->v[0];
    (void)config;
    out[A] = (kkt_tensor){"a", KKT_TENSOR_INPUT, KKT_FP32, 2, {n, n + 2}, false};
    out[B] = (kkt_tensor){"b", KKT_TENSOR_INPUT, KKT_FP32, 2, {n + 2, n + 1}, false};
    out[C] = (kkt_tensor){"c", KKT_TENSOR_OUTPUT, KKT_FP32, 2, {n, n + 1}, false};
    return 3;
}

static int workspace(const kkt_values *problem, const kkt_values *config, kkt_tensor *out) {
    int64_t n = problem->v[0];
    (void)config;
    out[0] = (kkt_tensor){"scratch", KKT_TENSOR_WORKSPACE, KKT_FP32, 2, {n, n + 1}, false};
    return 1;
}

static bool check_problem(const kkt_values *problem, const kkt_values *config, int index,
                          kkt_values *small, int *input_case) {
    (void)config;
    *small = *problem;
    small->v[0] = index == 0 ? 1 : 5;
    *input_case = 0;
    return index < 2;
}

static kkt_status make_inputs(const kkt_values *problem, int input_case, uint64_t seed,
                              kkt_host_tensors *inputs, kkt_error *err) {
    kkt_tensor list[KKT_TENSORS_MAX];
    (void)input_case;
    memset(inputs, 0, sizeof *inputs);
    inputs->count = tensors(problem, problem, list);
    for (int i = 0; i < inputs->count; i++) {
        inputs->t[i].tensor = list[i];
        if (list[i].role != KKT_TENSOR_INPUT) {
            continue;
        }
        int64_t count = kkt_tensor_elements(&list[i]);
        float *values = malloc((size_t)count * sizeof *values);
        if (values == NULL) {
            return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "out of memory");
        }
        for (int64_t at = 0; at < count; at++) {
            values[at] = (float)((at * 7 + i + (int64_t)seed) % 11 - 5);
        }
        inputs->t[i].data = values;
    }
    return KKT_OK;
}

static int64_t part_count(const kkt_values *problem, const kkt_values *config,
                          kkt_host_tensors *inputs) {
    (void)config;
    (void)inputs;
    return problem->v[0];
}

static int part_regions(const kkt_values *problem, const kkt_values *config,
                        kkt_host_tensors *inputs, int64_t part, kkt_region *out) {
    int64_t columns = problem->v[0] + 1;
    (void)config;
    (void)inputs;
    out[0] = (kkt_region){.tensor = C,
                          .offset = part * columns,
                          .rows = 1,
                          .columns = columns,
                          .row_stride = columns};
    return 1;
}

static kkt_status reference(const kkt_values *problem, const kkt_values *config,
                            kkt_host_tensors *inputs, int64_t part, double *out, size_t size,
                            kkt_error *err) {
    int64_t k = problem->v[0] + 2;
    const float *a = inputs->t[A].data, *b = inputs->t[B].data;
    (void)config;
    (void)err;
    for (size_t j = 0; j < size; j++) {
        out[j] = 0.0;
        for (int64_t l = 0; l < k; l++) {
            out[j] += (double)a[part * k + l] * (double)b[l * (int64_t)size + (int64_t)j];
        }
    }
    return KKT_OK;
}

/* To the library, whose matrices are column-major, c is its own transpose: b^T by a^T. */
static void add_product(kkt_plan *plan, const kkt_values *problem, const kkt_values *config, int to,
                        bool timed) {
    static const char *const routines[] = {"cublasGemmEx", "cublasLtMatmul", "cublasDreamed"};
    int64_t n = problem->v[0];
    kkt_call_gemm(plan, routines[config->v[PRODUCT_ROUTINE]],
                  &(kkt_gemm_call){.m = n + 1,
                                   .n = n,
                                   .k = n + 2,
                                   .lda = n + 1,
                                   .ldb = n + 2,
                                   .ldc = n + 1,
                                   .dtype = KKT_FP32,
                                   .result = KKT_FP32,
                                   .a = B,
                                   .b = A,
                                   .c = to,
                                   .choice = config->v[PRODUCT_CHOICE]});
    plan->launches[plan->launch_count - 1].untimed = !timed;
}

static void plan(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                 kkt_plan *out) {
    bool around = config->v[PRODUCT_AROUND] != 0;
    (void)arch;
    if (around) {
        add_product(out, problem, config, SCRATCH, false);
    }
    add_product(out, problem, config, around ? SCRATCH : C, true);
    if (around) {
        add_product(out, problem, config, C, false);
    }
}

static double tolerance(const kkt_values *problem, const kkt_values *config, int input_case) {
    (void)problem;
    (void)config;
    (void)input_case;
    return 1e-6;
}

static const char *const routines[] = {"cublasGemmEx", "cublasLtMatmul", NULL};

static const kkt_variant library = {
    .style = KKT_STYLE_LIBRARY,
    .params = {"parameter", config_params, PRODUCT_PARAMS},
    .library = KKT_CUBLAS,
    .routines = routines,
    .plan = plan,
    .workspace = workspace,
    .tolerance = tolerance,
};

static const kkt_variant *const variants[] = {&library};

const kkt_kernel product_kernel = {
    .name = "product",
    .problem = {"problem key", problem_params, 1},
    .variants = variants,
    .variant_count = 1,
    .tensors = tensors,
    .cases = cases,
    .case_count = 1,
    .check_problem = check_problem,
    .make_inputs = make_inputs,
    .part_count = part_count,
    .part_regions = part_regions,
    .reference = reference,
};

kkt_status product_lookup(const char *name, const kkt_kernel **out, kkt_error *err) {
    if (strcmp(name, product_kernel.name) == 0) {
        *out = &product_kernel;
        return KKT_OK;
    }
    return kkt_kernel_parse(name, out, err);
}
