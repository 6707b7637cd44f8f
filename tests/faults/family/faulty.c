/* The family `faulty`: candidates that misbehave on purpose, one good and seven broken ones for
 * each size of a tile. It is in the list of the test program alone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "family/faulty.h"

enum { FAULT, TILE };
enum {
    NONE,
    ILLEGAL_ADDRESS,
    ENDLESS_LOOP,
    MISSING_BARRIER,
    WRONG_TILE,
    OVERRUN,
    TOO_MUCH_SHARED, /* more dynamic shared memory than any GPU gives; unknown to the model */
    WORKER_ABORT     /* the host code in the worker process ends it */
};

static const char *const fault_names[] = {
    "none",       "illegal_address", "endless_loop",    "missing_barrier",
    "wrong_tile", "overrun",         "too_much_shared", "worker_abort"};

static const kkt_param problem_keys[] = {
    {.name = "n", .help = "elements", .low = 1, .high = 1 << 24, .fallback = 1 << 20},
};

static const kkt_param params[] = {
    [FAULT] = {.name = "fault",
               .macro = "FAULTY_FAULT",
               .help = "what goes wrong",
               .count = 8,
               .values = {NONE, ILLEGAL_ADDRESS, ENDLESS_LOOP, MISSING_BARRIER, WRONG_TILE, OVERRUN,
                          TOO_MUCH_SHARED, WORKER_ABORT},
               .names = fault_names,
               .fallback = NONE},
    [TILE] = {.name = "tile",
              .macro = "FAULTY_TILE",
              .help = "elements and threads of a block",
              .count = 2,
              .values = {128, 256},
              .fallback = 256},
};

static int tensors(const kkt_values *problem, const kkt_values *config, kkt_tensor *out) {
    (void)config;
    out[0] = (kkt_tensor){"x", KKT_TENSOR_INPUT, KKT_FP32, 1, {problem->v[0]}, false};
    out[1] = (kkt_tensor){"y", KKT_TENSOR_OUTPUT, KKT_FP32, 1, {problem->v[0]}, false};
    return 2;
}

static bool problem_valid(const kkt_values *problem, char *reason, size_t size) {
    snprintf(reason, size, "there is nothing to compute");
    return problem->v[0] > 0;
}

static bool applicable(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                       char *reason, size_t size) {
    (void)config;
    (void)arch;
    return problem_valid(problem, reason, size);
}

static int64_t blocks(const kkt_values *problem, const kkt_values *config) {
    return (problem->v[0] + config->v[TILE] - 1) / config->v[TILE];
}

static void footprint(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                      kkt_footprint *out) {
    (void)arch;
    memset(out, 0, sizeof *out);
    out->style = KKT_STYLE_MATERIALIZED;
    out->tokens = problem->v[0];
    out->blocks = blocks(problem, config);
    out->chunks_per_block = 1;
    out->threads = (int)config->v[TILE];
    out->cluster = 1;
    out->launches = 1;
    kkt_footprint_role(out, "all", out->threads);
    kkt_footprint_step(out, KKT_STEP_GLOBAL_LOAD, 1, 1);
    out->hbm_read_bytes = out->hbm_write_bytes = 4.0 * (double)problem->v[0];
    out->l2_read_bytes = out->hbm_read_bytes;
    out->fp32_flop = (double)problem->v[0];
    out->instructions = (double)problem->v[0] / 4;
}

static void plan(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                 kkt_plan *out) {
    (void)arch;
    memset(out, 0, sizeof *out);
    out->launch_count = 1;
    out->launches[0] = (kkt_launch){
        .entry = "faulty",
        .grid = {(uint32_t)blocks(problem, config), 1, 1},
        .block = {(uint32_t)config->v[TILE], 1, 1},
        .dynamic_smem_bytes = config->v[FAULT] == TOO_MUCH_SHARED ? 300000 : 0,
        .carveout_percent = -1,
        .arg_count = 3,
        .args = {{.kind = KKT_ARG_TENSOR, .tensor = 0},
                 {.kind = KKT_ARG_TENSOR, .tensor = 1},
                 {.kind = KKT_ARG_I64, .integer = problem->v[0]}},
    };
}

static const kkt_input_case cases[] = {
    {.name = "uniform", .summary = "uniform in [0.5, 1.5)", .timing = true},
};

/* Less than a tile, and some tiles with a tail. Called in the worker process alone. */
static bool check_problem(const kkt_values *problem, const kkt_values *config, int index,
                          kkt_values *small, int *input_case) {
    const int64_t sizes[] = {7, 3 * config->v[TILE] + 5, 64 * config->v[TILE]};
    if (config->v[FAULT] == WORKER_ABORT)
        abort();
    *small = *problem;
    *input_case = 0;
    if (index >= 3)
        return false;
    small->v[0] = sizes[index];
    return true;
}

static kkt_status make_inputs(const kkt_values *problem, int input_case, uint64_t seed,
                              kkt_host_tensors *inputs, kkt_error *err) {
    kkt_tensor shapes[2];
    (void)input_case;
    tensors(problem, NULL, shapes);
    memset(inputs, 0, sizeof *inputs);
    float *x = malloc(sizeof *x * (size_t)problem->v[0]);
    if (!x)
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "out of memory for the inputs of faulty");
    for (int64_t i = 0; i < problem->v[0]; i++) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        x[i] = 0.5f + (float)(seed >> 40) * 0x1p-24f;
    }
    inputs->count = 1;
    inputs->t[0] = (kkt_host_tensor){.tensor = shapes[0], .data = x};
    return KKT_OK;
}

static kkt_status check_inputs(const kkt_values *problem, kkt_host_tensors *inputs,
                               kkt_error *err) {
    (void)problem;
    return inputs->t[0].data ? KKT_OK
                             : kkt_fail(err, KKT_ERR_INPUT, 0, "tensor x of faulty is missing");
}

enum { PART = 4096 };

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
    const int64_t first = part * PART, left = problem->v[0] - first;
    *out = (kkt_region){.tensor = 1,
                        .offset = first,
                        .rows = 1,
                        .columns = left < PART ? left : PART,
                        .row_stride = problem->v[0]};
    return 1;
}

static kkt_status reference(const kkt_values *problem, const kkt_values *config,
                            kkt_host_tensors *inputs, int64_t part, double *out, size_t size,
                            kkt_error *err) {
    (void)problem;
    (void)config;
    (void)err;
    const float *x = (const float *)inputs->t[0].data + part * PART;
    for (size_t i = 0; i < size; i++)
        out[i] = 2.0 * (double)x[i];
    return KKT_OK;
}

static double tolerance(const kkt_values *problem, const kkt_values *config, int input_case) {
    (void)problem;
    (void)config;
    (void)input_case;
    return 1e-6; /* the racing bit is worth 1.2e-7 */
}

static const char *const sources[] = {"faulty/faulty.cu", NULL};
static const char *const default_problems[] = {"n=1048576", NULL};

static const kkt_variant materialized = {
    .style = KKT_STYLE_MATERIALIZED,
    .params = {"parameter", params, sizeof params / sizeof params[0]},
    .source = "faulty/faulty.cu",
    .sources = sources,
    .applicable = applicable,
    .footprint = footprint,
    .plan = plan,
    .tolerance = tolerance,
};

static const kkt_variant *const variants[] = {&materialized};

const kkt_kernel kkt_kernel_faulty = {
    .name = "faulty",
    .summary = "doubles numbers, and fails in every way a kernel can",
    .problem = {"problem key", problem_keys, sizeof problem_keys / sizeof problem_keys[0]},
    .default_problems = default_problems,
    .variants = variants,
    .variant_count = 1,
    .problem_valid = problem_valid,
    .tensors = tensors,
    .cases = cases,
    .case_count = 1,
    .check_problem = check_problem,
    .make_inputs = make_inputs,
    .check_inputs = check_inputs,
    .part_count = part_count,
    .part_regions = part_regions,
    .reference = reference,
};
