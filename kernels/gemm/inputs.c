/* Inputs of gemm. Every row of a matrix has a random stream of its own, so that rows are made at
 * the same time. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"
#include "base/random.h"
#include "kernels/common/inputs.h"
#include "kernels/gemm/gemm.h"

const kkt_input_case kkt_gemm_cases[KKT_GEMM_CASES] = {
    [KKT_GEMM_RANDOM] = {.name = "random",
                         .summary = "independent, nearly normal, deviation 1",
                         .timing = true},
    [KKT_GEMM_INTEGERS] = {.name = "integers", .summary = "-1, 0 and 1: the result is exact"},
    [KKT_GEMM_LARGE] = {.name = "large",
                        .summary = "results near the type's largest values, in fp16 past them"},
    [KKT_GEMM_ZEROS] = {.name = "zeros", .summary = "a is 0, and so is the result"},
};

typedef struct filling {
    kkt_host_tensor *host;
    int64_t rows, columns;
    uint64_t seed;
    int input_case;
    double deviation;
} filling;

static void fill_row(void *context, int64_t row) {
    const filling *f = context;
    const kkt_dtype dtype = f->host->tensor.dtype;
    uint64_t state = kkt_random_mix(f->seed + (uint64_t)row);
    uint16_t *values = (uint16_t *)f->host->data + row * f->columns;
    for (int64_t column = 0; column < f->columns; column++) {
        const uint64_t bits = kkt_random_next(&state);
        /* four 16-bit uniforms have a variance of 4 / 12 */
        const int64_t sum = (int64_t)((bits & 0xffff) + (bits >> 16 & 0xffff) +
                                      (bits >> 32 & 0xffff) + (bits >> 48)) -
                            2 * 65535;
        const double value = f->input_case == KKT_GEMM_INTEGERS
                                 ? (double)(bits % 3) - 1.0
                                 : f->deviation * (double)sum * (1.7320508075688772 / 65536.0);
        values[column] =
            dtype == KKT_FP16 ? kkt_half_from_double(value) : kkt_bf16_from_double(value);
    }
}

/* Of each element, so that sums of k products have the deviation that LARGE wants: in fp16 a tenth
 * of them is beyond 65504, in bf16 none comes near the largest number. */
static double deviation_of(const kkt_values *problem, int input_case) {
    if (input_case != KKT_GEMM_LARGE)
        return 1.0;
    const double wanted = problem->v[KKT_GEMM_DTYPE] == KKT_FP16 ? 40000.0 : 1e36;
    return sqrt(wanted / sqrt((double)problem->v[KKT_GEMM_K]));
}

kkt_status kkt_gemm_make_inputs(const kkt_values *problem, int input_case, uint64_t seed,
                                kkt_host_tensors *inputs, kkt_error *err) {
    kkt_tensor shapes[KKT_TENSORS_MAX];
    kkt_gemm_tensors(problem, NULL, shapes);
    memset(inputs, 0, sizeof *inputs);
    for (int i = KKT_GEMM_TENSOR_A; i <= KKT_GEMM_TENSOR_B; i++) {
        kkt_host_tensor *host = &inputs->t[inputs->count++];
        *host = (kkt_host_tensor){.tensor = shapes[i],
                                  .data = malloc((size_t)kkt_tensor_bytes(&shapes[i]))};
        if (!host->data) {
            kkt_host_tensors_free(inputs);
            return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "out of memory for the tensor %s",
                            shapes[i].name);
        }
        if (i == KKT_GEMM_TENSOR_A && input_case == KKT_GEMM_ZEROS) {
            memset(host->data, 0, (size_t)kkt_tensor_bytes(&shapes[i]));
            continue;
        }
        filling f = {.host = host,
                     .rows = shapes[i].dims[0],
                     .columns = shapes[i].dims[1],
                     .seed = kkt_random_mix(kkt_inputs_seed(seed, input_case) + (uint64_t)i),
                     .input_case = input_case,
                     .deviation = deviation_of(problem, input_case)};
        kkt_parallel_for(f.rows, fill_row, &f);
    }
    return KKT_OK;
}

kkt_status kkt_gemm_check_inputs(const kkt_values *problem, kkt_host_tensors *inputs,
                                 kkt_error *err) {
    (void)problem;
    for (int i = 0; i < inputs->count; i++) {
        const kkt_host_tensor *host = &inputs->t[i];
        if (host->tensor.role != KKT_TENSOR_INPUT)
            continue;
        if (!host->data)
            return kkt_fail(err, KKT_ERR_INPUT, 0, "tensor %s is missing", host->tensor.name);
        kkt_status status = kkt_check_values(host, false, err);
        if (status != KKT_OK)
            return status;
    }
    return KKT_OK;
}
