/* Problems, tensors and input cases of kkt_solve. The same seed gives the same bytes. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kkt_solve/kkt_solve.h"

const kkt_input_case kkt_solve_cases[KKT_SOLVE_CASE_COUNT] = {
    [KKT_SOLVE_CASE_RANDOM] =
        {
            .name = "random",
            .summary = "unit keys in random directions, beta = sigmoid(normal), mild gate",
            .timing = true,
        },
    [KKT_SOLVE_CASE_CORRELATED] =
        {
            .name = "correlated",
            .summary = "unit keys with pairwise correlation 0.9, beta = 1, slow decay",
        },
    [KKT_SOLVE_CASE_DUPLICATES] =
        {
            .name = "duplicates",
            .summary = "one unit key repeated, beta = 1, g = 0",
        },
    [KKT_SOLVE_CASE_ZERO_BETA] =
        {
            .name = "zero_beta",
            .summary = "beta = 0: T is the identity",
        },
    [KKT_SOLVE_CASE_ZERO_GATE] =
        {
            .name = "zero_gate",
            .summary = "g = 0: equals the result without a gate",
        },
    [KKT_SOLVE_CASE_STRONG_GATE] =
        {
            .name = "strong_gate",
            .summary = "g down to -316 a token",
        },
    [KKT_SOLVE_CASE_SUB_DIAGONAL] =
        {
            .name = "sub_diagonal",
            .summary = "only blocks below the diagonal: T = I - L",
        },
    [KKT_SOLVE_CASE_STEEP_GATE] =
        {
            .name = "steep_gate",
            .summary = "g = logsigmoid(normal) / 0.01",
        },
    [KKT_SOLVE_CASE_GROWTH] =
        {
            .name = "growth",
            .summary = "correlated keys whose rows of L sum to about 37 at chunk 128",
        },
    [KKT_SOLVE_CASE_LONG_KEYS] =
        {
            .name = "long_keys",
            .summary = "one key of length 2 repeated, beta = 1, g = 0: ill-conditioned",
        },
};

bool kkt_solve_problem_valid(const kkt_values *problem, char *reason, size_t size) {
    const int64_t *v = problem->v;
    if (v[KKT_SOLVE_HEADS_V] % v[KKT_SOLVE_HEADS_K] != 0) {
        snprintf(reason, size, "heads_v %" PRId64 " is no multiple of heads_k %" PRId64,
                 v[KKT_SOLVE_HEADS_V], v[KKT_SOLVE_HEADS_K]);
        return false;
    }
    if (v[KKT_SOLVE_SEQUENCES] > 1 && v[KKT_SOLVE_BATCH] > 1) {
        snprintf(reason, size,
                 "batch is %" PRId64 " with %" PRId64
                 " sequences: sequences of unequal length need batch 1",
                 v[KKT_SOLVE_BATCH], v[KKT_SOLVE_SEQUENCES]);
        return false;
    }
    if (v[KKT_SOLVE_TOKENS] % v[KKT_SOLVE_BATCH] != 0) {
        snprintf(reason, size, "tokens %" PRId64 " (in total) is no multiple of batch %" PRId64,
                 v[KKT_SOLVE_TOKENS], v[KKT_SOLVE_BATCH]);
        return false;
    }
    if (v[KKT_SOLVE_DK] % 16 != 0) { /* what one tensor-core instruction takes of K K^T */
        snprintf(reason, size, "dk %" PRId64 " is no multiple of 16", v[KKT_SOLVE_DK]);
        return false;
    }
    /* Kept far from 2^63 so that byte counts and offsets cannot overflow. */
    const double widest = fmax((double)v[KKT_SOLVE_HEADS_K] * (double)v[KKT_SOLVE_DK],
                               (double)v[KKT_SOLVE_HEADS_V] * 128.0);
    if ((double)v[KKT_SOLVE_TOKENS] * widest > 0x1p44) {
        snprintf(reason, size, "a tensor of this problem has more than 2^44 elements");
        return false;
    }
    return true;
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

/* splitmix64: every seed is good, and the sequence is the same on every machine. */
static uint64_t next_bits(uint64_t *state) {
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static double next_uniform(uint64_t *state) { /* in (0, 1) */
    return ((double)(next_bits(state) >> 11) + 0.5) * 0x1p-53;
}

static double next_normal(uint64_t *state) {
    const double pi = 3.14159265358979323846;
    const double radius = sqrt(-2.0 * log(next_uniform(state)));
    return radius * cos(2.0 * pi * next_uniform(state));
}

/* Nearly normal and cheap, for the many components of keys: the sum of four 16-bit uniforms. */
static double next_component(uint64_t *state) {
    const uint64_t bits = next_bits(state);
    const uint64_t sum =
        (bits & 0xffff) + ((bits >> 16) & 0xffff) + ((bits >> 32) & 0xffff) + (bits >> 48);
    return ((double)sum - 2.0 * 65535.0) * (1.7320508075688772 / 65536.0);
}

static double log_sigmoid(double x) {
    return x > 0 ? -log1p(exp(-x)) : x - log1p(exp(x));
}

static void scale_to(double *key, int64_t dk, double length) {
    double sum = 0.0;
    for (int64_t d = 0; d < dk; d++)
        sum += key[d] * key[d];
    const double factor = sum > 0.0 ? length / sqrt(sum) : 0.0;
    for (int64_t d = 0; d < dk; d++)
        key[d] *= factor;
}

static void random_key(uint64_t *state, double *key, int64_t dk) {
    for (int64_t d = 0; d < dk; d++)
        key[d] = next_component(state);
    scale_to(key, dk, 1.0);
}

/* Rows of odd blocks of eight are unit vectors, so that they meet each other in nothing but
 * themselves and meet the even blocks' dense keys in one component. */
enum { SUB_BLOCK = 8, SUB_PERIOD = 128 };

static bool sub_odd(int64_t token) {
    return (token / SUB_BLOCK) % 2 != 0;
}

static void sub_diagonal_key(uint64_t *state, double *key, int64_t dk, int64_t token) {
    random_key(state, key, dk);
    if (!sub_odd(token))
        return;
    const int64_t at = token % SUB_PERIOD;
    const int64_t axis = at / (2 * SUB_BLOCK) * SUB_BLOCK + at % SUB_BLOCK;
    memset(key, 0, sizeof *key * (size_t)dk);
    key[axis % dk] = 1.0;
}

/* How much of a key is the direction all keys of its head share; 0: nothing, 1: all. */
static double shared_part(int input_case) {
    switch (input_case) {
    case KKT_SOLVE_CASE_CORRELATED:
        return 0.9;
    case KKT_SOLVE_CASE_GROWTH:
        return 0.45;
    case KKT_SOLVE_CASE_DUPLICATES:
    case KKT_SOLVE_CASE_LONG_KEYS:
        return 1.0;
    default:
        return 0.0;
    }
}

static void fill_keys(const kkt_values *problem, int input_case, uint64_t *state,
                      kkt_host_tensor *k, double *common, double *key) {
    const int64_t dk = problem->v[KKT_SOLVE_DK], heads = problem->v[KKT_SOLVE_HEADS_K];
    const int64_t tokens = kkt_solve_length(problem);
    const double rho = shared_part(input_case);
    const double length = input_case == KKT_SOLVE_CASE_LONG_KEYS ? 2.0 : 1.0;
    for (int64_t h = 0; h < heads; h++)
        random_key(state, common + h * dk, dk);
    for (int64_t row = 0; row < problem->v[KKT_SOLVE_BATCH] * tokens; row++) {
        for (int64_t h = 0; h < heads; h++) {
            if (input_case == KKT_SOLVE_CASE_SUB_DIAGONAL)
                sub_diagonal_key(state, key, dk, row % tokens);
            else
                random_key(state, key, dk);
            if (rho > 0.0) {
                for (int64_t d = 0; d < dk; d++)
                    key[d] = sqrt(rho) * common[h * dk + d] + sqrt(1.0 - rho) * key[d];
                scale_to(key, dk, length);
            }
            for (int64_t d = 0; d < dk; d++)
                kkt_dtype_store(k->tensor.dtype, k->data, (size_t)((row * heads + h) * dk + d),
                                key[d]);
        }
    }
}

static double next_beta(int input_case, uint64_t *state, int64_t token) {
    const double sigmoid = 1.0 / (1.0 + exp(-next_normal(state)));
    switch (input_case) {
    case KKT_SOLVE_CASE_CORRELATED:
    case KKT_SOLVE_CASE_DUPLICATES:
    case KKT_SOLVE_CASE_LONG_KEYS:
        return 1.0;
    case KKT_SOLVE_CASE_ZERO_BETA:
        return 0.0;
    case KKT_SOLVE_CASE_GROWTH:
        return 0.55 + 0.2 * sigmoid;
    case KKT_SOLVE_CASE_SUB_DIAGONAL: /* even blocks' rows of L are empty: L^2 = 0 */
        return sub_odd(token) ? sigmoid : 0.0;
    default:
        return sigmoid;
    }
}

static double next_gate(int input_case, uint64_t *state) {
    const double normal = next_normal(state);
    switch (input_case) {
    case KKT_SOLVE_CASE_CORRELATED:
    case KKT_SOLVE_CASE_GROWTH:
        return -1e-4 * fabs(normal);
    case KKT_SOLVE_CASE_DUPLICATES:
    case KKT_SOLVE_CASE_LONG_KEYS:
    case KKT_SOLVE_CASE_ZERO_GATE:
        return 0.0;
    case KKT_SOLVE_CASE_STRONG_GATE: { /* most are mild, one in sixteen is the strongest */
        const double u = next_uniform(state);
        return u > 15.0 / 16.0 ? -316.0 : -316.0 * pow(u, 8.0);
    }
    case KKT_SOLVE_CASE_STEEP_GATE:
        return log_sigmoid(normal) / 0.01;
    default:
        return log_sigmoid(normal + 2.0);
    }
}

static void fill_scalars(const kkt_values *problem, int input_case, uint64_t *state,
                         kkt_host_tensor *beta, kkt_host_tensor *g) {
    const int64_t heads = problem->v[KKT_SOLVE_HEADS_V], tokens = kkt_solve_length(problem);
    const int64_t count = problem->v[KKT_SOLVE_BATCH] * tokens * heads;
    for (int64_t i = 0; i < count; i++) {
        const int64_t token = i / heads % tokens;
        kkt_dtype_store(KKT_FP32, beta->data, (size_t)i, next_beta(input_case, state, token));
    }
    for (int64_t i = 0; g->data && i < count; i++)
        kkt_dtype_store(KKT_FP32, g->data, (size_t)i, next_gate(input_case, state));
}

static int compare_i32(const void *a, const void *b) {
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* Random cuts; from three sequences on the second one is empty. */
static void fill_boundaries(const kkt_values *problem, uint64_t *state, kkt_host_tensor *cu) {
    const int64_t sequences = problem->v[KKT_SOLVE_SEQUENCES], tokens = kkt_solve_length(problem);
    int32_t *at = cu->data;
    at[0] = 0;
    for (int64_t s = 1; s < sequences; s++)
        at[s] = (int32_t)(next_uniform(state) * (double)(tokens + 1));
    at[sequences] = (int32_t)tokens;
    qsort(at, (size_t)sequences + 1, sizeof *at, compare_i32);
    if (sequences >= 3)
        at[2] = at[1];
}

kkt_status kkt_solve_make_inputs(const kkt_values *problem, int input_case, uint64_t seed,
                                 kkt_host_tensors *inputs, kkt_error *err) {
    kkt_values config; /* the output's shape alone depends on it, and outputs are not made here */
    kkt_params_defaults(&kkt_solve_param_table, &config);
    kkt_tensor shapes[KKT_SOLVE_TENSORS];
    const int count = kkt_solve_tensors(problem, &config, shapes);
    memset(inputs, 0, sizeof *inputs);
    inputs->count = count;
    const int64_t dk = problem->v[KKT_SOLVE_DK];
    double *scratch = malloc(sizeof *scratch * (size_t)((problem->v[KKT_SOLVE_HEADS_K] + 1) * dk));
    bool ok = scratch != NULL;
    for (int i = 0; i < count; i++) {
        inputs->t[i].tensor = shapes[i];
        if (shapes[i].role != KKT_TENSOR_INPUT || shapes[i].optional)
            continue;
        inputs->t[i].data = malloc((size_t)kkt_tensor_bytes(&shapes[i]) + 1);
        ok = ok && inputs->t[i].data;
    }
    if (!ok) {
        free(scratch);
        kkt_host_tensors_free(inputs);
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "out of memory for the inputs of kkt_solve");
    }
    uint64_t state = seed * UINT64_C(0x2545f4914f6cdd1d) + (uint64_t)input_case;
    fill_keys(problem, input_case, &state, &inputs->t[KKT_SOLVE_TENSOR_K], scratch + dk, scratch);
    fill_scalars(problem, input_case, &state, &inputs->t[KKT_SOLVE_TENSOR_BETA],
                 &inputs->t[KKT_SOLVE_TENSOR_G]);
    if (inputs->t[KKT_SOLVE_TENSOR_CU_SEQLENS].data)
        fill_boundaries(problem, &state, &inputs->t[KKT_SOLVE_TENSOR_CU_SEQLENS]);
    free(scratch);
    return KKT_OK;
}
