/* The family row_sum: y[r] = sum of row r of x [rows, columns], fp32. It is the example of
 * docs/adding-a-kernel.md; a test quotes this file against that page. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernel.h"

/* ---- 1. problem keys and parameters ---- */

enum { ROWS, COLUMNS };
enum { THREADS, ROWS_PER_THREAD };

static const kkt_param problem_keys[] = {
    [ROWS] = {.name = "rows", .help = "rows of x", .low = 1, .high = 1 << 24, .fallback = 65536},
    [COLUMNS] =
        {.name = "columns", .help = "columns of x", .low = 1, .high = 1 << 16, .fallback = 1024},
};

static const kkt_param params[] = {
    [THREADS] = {.name = "threads",
                 .macro = "ROW_SUM_THREADS",
                 .help = "threads of a block",
                 .count = 3,
                 .values = {64, 128, 256},
                 .fallback = 128},
    [ROWS_PER_THREAD] = {.name = "rows_per_thread",
                         .macro = "ROW_SUM_ROWS",
                         .help = "rows a thread adds up",
                         .count = 3,
                         .values = {1, 2, 4},
                         .fallback = 1},
};

/* ---- 2. tensors ---- */

enum { TENSOR_X, TENSOR_Y };

static int tensors(const kkt_values *problem, const kkt_values *config, kkt_tensor *out) {
    (void)config;
    out[TENSOR_X] = (kkt_tensor){.name = "x",
                                 .role = KKT_TENSOR_INPUT,
                                 .dtype = KKT_FP32,
                                 .rank = 2,
                                 .dims = {problem->v[ROWS], problem->v[COLUMNS]}};
    out[TENSOR_Y] = (kkt_tensor){.name = "y",
                                 .role = KKT_TENSOR_OUTPUT,
                                 .dtype = KKT_FP32,
                                 .rank = 1,
                                 .dims = {problem->v[ROWS]}};
    return 2;
}

/* ---- 3. constraints, footprint, launch plan ---- */

static bool applicable(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                       char *reason, size_t size) {
    (void)arch;
    const int64_t rows = config->v[THREADS] * config->v[ROWS_PER_THREAD];
    if (config->v[ROWS_PER_THREAD] > 1 && rows > problem->v[ROWS]) {
        kkt_reason(reason, size, "a block of %lld rows is more than there are: %lld",
                   (long long)rows, (long long)problem->v[ROWS]);
        return false;
    }
    return true;
}

static int64_t blocks(const kkt_values *problem, const kkt_values *config) {
    const int64_t rows = config->v[THREADS] * config->v[ROWS_PER_THREAD];
    return (problem->v[ROWS] + rows - 1) / rows;
}

static void footprint(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                      kkt_footprint *out) {
    (void)arch;
    const double elements = (double)problem->v[ROWS] * (double)problem->v[COLUMNS];
    memset(out, 0, sizeof *out);
    out->style = KKT_STYLE_FRAGMENT;
    out->tokens = problem->v[ROWS];
    out->blocks = blocks(problem, config);
    out->chunks_per_block = config->v[ROWS_PER_THREAD];
    out->threads = (int)config->v[THREADS];
    out->cluster = 1;
    out->launches = 1;
    kkt_footprint_role(out, "all", out->threads);
    kkt_footprint_step(out, KKT_STEP_GLOBAL_LOAD, 1, (double)problem->v[COLUMNS]);
    out->hbm_read_bytes = out->l2_read_bytes = 4 * elements;
    out->hbm_write_bytes = 4 * (double)problem->v[ROWS];
    out->fp32_flop = elements;
    out->instructions = 2 * elements / 32;
}

static void plan(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                 kkt_plan *out) {
    (void)arch;
    memset(out, 0, sizeof *out);
    out->launch_count = 1;
    out->launches[0] = (kkt_launch){
        .entry = "row_sum",
        .grid = {(uint32_t)blocks(problem, config), 1, 1},
        .block = {(uint32_t)config->v[THREADS], 1, 1},
        .carveout_percent = -1,
        .arg_count = 4,
        .args = {{.kind = KKT_ARG_TENSOR, .tensor = TENSOR_X},
                 {.kind = KKT_ARG_TENSOR, .tensor = TENSOR_Y},
                 {.kind = KKT_ARG_I64, .integer = problem->v[ROWS]},
                 {.kind = KKT_ARG_I64, .integer = problem->v[COLUMNS]}},
    };
}

/* ---- 4. inputs and the small problems every candidate is checked on ---- */

enum { CASE_UNIFORM, CASE_ZERO };

static const kkt_input_case cases[] = {
    [CASE_UNIFORM] = {.name = "uniform", .summary = "uniform in [0.5, 1.5)", .timing = true},
    [CASE_ZERO] = {.name = "zero", .summary = "zeros: every sum is exactly 0"},
};

static kkt_status make_inputs(const kkt_values *problem, int input_case, uint64_t seed,
                              kkt_host_tensors *inputs, kkt_error *err) {
    kkt_tensor shapes[2];
    tensors(problem, NULL, shapes);
    const int64_t count = kkt_tensor_elements(&shapes[TENSOR_X]);
    memset(inputs, 0, sizeof *inputs);
    float *x = malloc(sizeof *x * (size_t)count);
    if (!x)
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "out of memory for the inputs of row_sum");
    for (int64_t i = 0; i < count; i++) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        x[i] = input_case == CASE_ZERO ? 0.0f : 0.5f + (float)(seed >> 40) * 0x1p-24f;
    }
    inputs->count = 1;
    inputs->t[0] = (kkt_host_tensor){.tensor = shapes[TENSOR_X], .data = x};
    return KKT_OK;
}

/* One row alone, a tail behind a full block, zeros. */
static bool check_problem(const kkt_values *problem, const kkt_values *config, int index,
                          kkt_values *small, int *input_case) {
    const int64_t block = config->v[THREADS] * config->v[ROWS_PER_THREAD];
    const int64_t rows[] = {1, block + 3, block};
    if (index >= 3)
        return false;
    *small = *problem;
    small->v[ROWS] = rows[index];
    small->v[COLUMNS] = 37;
    *input_case = index == 2 ? CASE_ZERO : CASE_UNIFORM;
    return true;
}

static kkt_status check_inputs(const kkt_values *problem, kkt_host_tensors *inputs,
                               kkt_error *err) {
    (void)problem;
    if (!inputs->t[TENSOR_X].data)
        return kkt_fail(err, KKT_ERR_INPUT, 0, "tensor x is missing");
    return KKT_OK;
}

/* ---- 5. the reference, in parts of at most 64 rows ---- */

enum { PART_ROWS = 64 };

static int64_t part_count(const kkt_values *problem, const kkt_values *config,
                          kkt_host_tensors *inputs) {
    (void)config;
    (void)inputs;
    return (problem->v[ROWS] + PART_ROWS - 1) / PART_ROWS;
}

static int part_regions(const kkt_values *problem, const kkt_values *config,
                        kkt_host_tensors *inputs, int64_t part, kkt_region *out) {
    (void)config;
    (void)inputs;
    const int64_t first = part * PART_ROWS, left = problem->v[ROWS] - first;
    *out = (kkt_region){.tensor = TENSOR_Y,
                        .offset = first,
                        .rows = 1,
                        .columns = left < PART_ROWS ? left : PART_ROWS,
                        .row_stride = problem->v[ROWS]};
    return 1;
}

static kkt_status reference(const kkt_values *problem, const kkt_values *config,
                            kkt_host_tensors *inputs, int64_t part, double *out, size_t size,
                            kkt_error *err) {
    (void)config;
    (void)err;
    const float *x = inputs->t[TENSOR_X].data;
    const int64_t columns = problem->v[COLUMNS];
    for (size_t i = 0; i < size; i++) {
        const float *row = x + (part * PART_ROWS + (int64_t)i) * columns;
        out[i] = 0.0;
        for (int64_t c = 0; c < columns; c++)
            out[i] += (double)row[c];
    }
    return KKT_OK;
}

/* n - 1 roundings in fp32, each of at most 2^-24 of a partial sum of positive terms. */
static double tolerance(const kkt_values *problem, const kkt_values *config, int input_case) {
    (void)config;
    (void)input_case;
    return 0x1p-24 * (double)problem->v[COLUMNS];
}

/* ---- 6. the descriptor ---- */

static const char *const sources[] = {"row_sum/row_sum.cu", NULL};
static const char *const default_problems[] = {"rows=65536,columns=1024", NULL};

static const kkt_variant fragment = {
    .style = KKT_STYLE_FRAGMENT,
    .params = {.what = "parameter", .params = params, .count = 2},
    .source = "row_sum/row_sum.cu",
    .sources = sources,
    .applicable = applicable,
    .footprint = footprint,
    .plan = plan,
    .tolerance = tolerance,
};

static const kkt_variant *const variants[] = {&fragment};

const kkt_kernel kkt_kernel_row_sum = {
    .name = "row_sum",
    .summary = "sums of the rows of a matrix",
    .problem = {.what = "problem key", .params = problem_keys, .count = 2},
    .default_problems = default_problems,
    .variants = variants,
    .variant_count = 1,
    .tensors = tensors,
    .cases = cases,
    .case_count = sizeof cases / sizeof cases[0],
    .check_problem = check_problem,
    .make_inputs = make_inputs,
    .check_inputs = check_inputs,
    .part_count = part_count,
    .part_regions = part_regions,
    .reference = reference,
};
