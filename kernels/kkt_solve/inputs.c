/* Problems, tensors and inputs of kkt_solve. */
#include <stdlib.h>
#include <string.h>

#include "kernels/kkt_solve/kkt_solve.h"

kkt_shape kkt_solve_shape(const kkt_values *problem) {
    const int64_t *v = problem->v;
    return (kkt_shape){.batch = v[KKT_SOLVE_BATCH],
                       .sequences = v[KKT_SOLVE_SEQUENCES],
                       .length = v[KKT_SOLVE_TOKENS] / v[KKT_SOLVE_BATCH],
                       .heads_k = v[KKT_SOLVE_HEADS_K],
                       .heads_v = v[KKT_SOLVE_HEADS_V],
                       .dk = v[KKT_SOLVE_DK],
                       .dtype = (kkt_dtype)v[KKT_SOLVE_DTYPE],
                       .gated = v[KKT_SOLVE_GATED] != 0};
}

bool kkt_solve_problem_valid(const kkt_values *problem, char *reason, size_t size) {
    const kkt_shape shape = kkt_solve_shape(problem);
    return kkt_shape_valid(&shape, problem->v[KKT_SOLVE_TOKENS], shape.heads_v * 128, reason, size);
}

int kkt_solve_tensors(const kkt_values *problem, const kkt_values *config, kkt_tensor *out) {
    const int64_t *v = problem->v;
    const int64_t batch = v[KKT_SOLVE_BATCH], tokens = kkt_solve_length(problem);
    const kkt_dtype dtype = (kkt_dtype)v[KKT_SOLVE_DTYPE];
    const kkt_tensor beta = {
        .name = "beta",
        .role = KKT_TENSOR_INPUT,
        .dtype = KKT_FP32,
        .rank = 3,
        .dims = {batch, tokens, v[KKT_SOLVE_HEADS_V]},
    };
    out[KKT_SOLVE_TENSOR_K] = (kkt_tensor){
        .name = "k",
        .role = KKT_TENSOR_INPUT,
        .dtype = dtype,
        .rank = 4,
        .dims = {batch, tokens, v[KKT_SOLVE_HEADS_K], v[KKT_SOLVE_DK]},
    };
    out[KKT_SOLVE_TENSOR_BETA] = beta;
    out[KKT_SOLVE_TENSOR_G] = beta;
    out[KKT_SOLVE_TENSOR_G].name = "g";
    out[KKT_SOLVE_TENSOR_G].optional = !v[KKT_SOLVE_GATED];
    out[KKT_SOLVE_TENSOR_CU_SEQLENS] = (kkt_tensor){
        .name = "cu_seqlens",
        .role = KKT_TENSOR_INPUT,
        .dtype = KKT_I32,
        .rank = 1,
        .dims = {v[KKT_SOLVE_SEQUENCES] + 1},
        .optional = v[KKT_SOLVE_SEQUENCES] == 1,
    };
    out[KKT_SOLVE_TENSOR_T] = (kkt_tensor){
        .name = "t",
        .role = KKT_TENSOR_OUTPUT,
        .dtype = dtype,
        .rank = 4,
        .dims = {batch, tokens, v[KKT_SOLVE_HEADS_V], config->v[KKT_SOLVE_CHUNK]},
    };
    return KKT_SOLVE_TENSORS;
}

kkt_status kkt_solve_make_inputs(const kkt_values *problem, int input_case, uint64_t seed,
                                 kkt_host_tensors *inputs, kkt_error *err) {
    kkt_values config; /* the output's shape alone depends on it, and outputs are not made here */
    kkt_params_defaults(&kkt_solve_param_table, &config);
    kkt_tensor shapes[KKT_SOLVE_TENSORS];
    const int count = kkt_solve_tensors(problem, &config, shapes);
    memset(inputs, 0, sizeof *inputs);
    inputs->count = count;
    const kkt_shape shape = kkt_solve_shape(problem);
    bool ok = true;
    for (int i = 0; i < count; i++) {
        inputs->t[i].tensor = shapes[i];
        if (shapes[i].role != KKT_TENSOR_INPUT || shapes[i].optional)
            continue;
        inputs->t[i].data = malloc((size_t)kkt_tensor_bytes(&shapes[i]) + 1);
        ok = ok && inputs->t[i].data;
    }
    if (!ok) {
        kkt_host_tensors_free(inputs);
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "out of memory for the inputs of kkt_solve");
    }
    uint64_t state = kkt_inputs_seed(seed, input_case);
    kkt_status status =
        kkt_fill_keys(&shape, input_case, &state, &inputs->t[KKT_SOLVE_TENSOR_K], err);
    if (status != KKT_OK) {
        kkt_host_tensors_free(inputs);
        return status;
    }
    kkt_fill_scalars(&shape, input_case, &state, &inputs->t[KKT_SOLVE_TENSOR_BETA],
                     &inputs->t[KKT_SOLVE_TENSOR_G]);
    if (inputs->t[KKT_SOLVE_TENSOR_CU_SEQLENS].data)
        kkt_fill_boundaries(&shape, input_case, &state, &inputs->t[KKT_SOLVE_TENSOR_CU_SEQLENS]);
    return KKT_OK;
}
