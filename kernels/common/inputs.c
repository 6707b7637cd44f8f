#include "kernels/common/inputs.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"

const kkt_input_case kkt_cases[KKT_CASE_COUNT] = {
    [KKT_CASE_RANDOM] =
        {
            .name = "random",
            .summary =
                "unit keys in random directions, beta = sigmoid(normal), mild gate, equal lengths",
            .timing = true,
        },
    [KKT_CASE_CORRELATED] =
        {
            .name = "correlated",
            .summary = "unit keys with pairwise correlation 0.9, beta = 1, slow decay",
        },
    [KKT_CASE_DUPLICATES] =
        {
            .name = "duplicates",
            .summary = "one unit key repeated, beta = 1, g = 0",
        },
    [KKT_CASE_ZERO_BETA] =
        {
            .name = "zero_beta",
            .summary = "beta = 0: T is the identity",
        },
    [KKT_CASE_ZERO_GATE] =
        {
            .name = "zero_gate",
            .summary = "g = 0: equals the result without a gate",
        },
    [KKT_CASE_STRONG_GATE] =
        {
            .name = "strong_gate",
            .summary = "g down to -316 a token",
        },
    [KKT_CASE_SUB_DIAGONAL] =
        {
            .name = "sub_diagonal",
            .summary = "only blocks below the diagonal: T = I - L",
        },
    [KKT_CASE_STEEP_GATE] =
        {
            .name = "steep_gate",
            .summary =
                "one token in two g = logsigmoid(normal) / 0.01, one in four from -17 to -9.7, "
                "one in four mild",
        },
    [KKT_CASE_GROWTH] =
        {
            .name = "growth",
            .summary = "correlated keys whose rows of L sum to about 37 at chunk 128",
        },
    [KKT_CASE_LONG_KEYS] =
        {
            .name = "long_keys",
            .summary = "one key of length 2 repeated, beta = 1, g = 0: ill-conditioned",
        },
    [KKT_CASE_UNEVEN] =
        {
            .name = "uneven",
            .summary = "as random, sequences of random lengths",
        },
};

static double next_uniform(uint64_t *state) { /* in (0, 1) */
    return ((double)(kkt_random_next(state) >> 11) + 0.5) * 0x1p-53;
}

static double next_normal(uint64_t *state) {
    const double pi = 3.14159265358979323846;
    const double radius = sqrt(-2.0 * log(next_uniform(state)));
    return radius * cos(2.0 * pi * next_uniform(state));
}

/* Nearly normal and cheap, for the many components of keys: the sum of four 16-bit uniforms. */
static double next_component(uint64_t *state) {
    const uint64_t bits = kkt_random_next(state);
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
    case KKT_CASE_CORRELATED:
        return 0.9;
    case KKT_CASE_GROWTH:
        return 0.45;
    case KKT_CASE_DUPLICATES:
    case KKT_CASE_LONG_KEYS:
        return 1.0;
    default:
        return 0.0;
    }
}

kkt_status kkt_fill_keys(const kkt_shape *shape, int input_case, uint64_t *state,
                         kkt_host_tensor *k, kkt_error *err) {
    const int64_t dk = shape->dk, heads = shape->heads_k, tokens = shape->length;
    double *key = malloc(sizeof *key * (size_t)((heads + 1) * dk)), *common = key + dk;
    if (!key)
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "out of memory for the keys");
    const double rho = shared_part(input_case);
    const double length = input_case == KKT_CASE_LONG_KEYS ? 2.0 : 1.0;
    for (int64_t h = 0; h < heads; h++)
        random_key(state, common + h * dk, dk);
    for (int64_t row = 0; row < shape->batch * tokens; row++) {
        for (int64_t h = 0; h < heads; h++) {
            if (input_case == KKT_CASE_SUB_DIAGONAL)
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
    free(key);
    return KKT_OK;
}

static double next_beta(int input_case, uint64_t *state, int64_t token) {
    const double sigmoid = 1.0 / (1.0 + exp(-next_normal(state)));
    switch (input_case) {
    case KKT_CASE_CORRELATED:
    case KKT_CASE_DUPLICATES:
    case KKT_CASE_LONG_KEYS:
        return 1.0;
    case KKT_CASE_ZERO_BETA:
        return 0.0;
    case KKT_CASE_GROWTH:
        return 0.55 + 0.2 * sigmoid;
    case KKT_CASE_SUB_DIAGONAL: /* even blocks' rows of L are empty: L^2 = 0 */
        return sub_odd(token) ? sigmoid : 0.0;
    default:
        return sigmoid;
    }
}

static double next_gate(int input_case, uint64_t *state) {
    const double normal = next_normal(state);
    switch (input_case) {
    case KKT_CASE_CORRELATED:
    case KKT_CASE_GROWTH:
        return -1e-4 * fabs(normal);
    case KKT_CASE_DUPLICATES:
    case KKT_CASE_LONG_KEYS:
    case KKT_CASE_ZERO_GATE:
        return 0.0;
    case KKT_CASE_STRONG_GATE: { /* most are mild, one in sixteen is the strongest */
        const double u = next_uniform(state);
        return u > 15.0 / 16.0 ? -316.0 : -316.0 * pow(u, 8.0);
    }
    case KKT_CASE_STEEP_GATE: { /* something is left of every problem, however small it is */
        const double u = next_uniform(state);
        if (u < 0.25)
            return log_sigmoid(normal + 2.0);
        return u < 0.5 ? -9.7 - 7.3 * (4.0 * u - 1.0) : log_sigmoid(normal) / 0.01;
    }
    default:
        return log_sigmoid(normal + 2.0);
    }
}

void kkt_fill_scalars(const kkt_shape *shape, int input_case, uint64_t *state,
                      kkt_host_tensor *beta, kkt_host_tensor *g) {
    const int64_t heads = shape->heads_v, tokens = shape->length;
    const int64_t count = shape->batch * tokens * heads;
    for (int64_t i = 0; beta->data && i < count; i++) {
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

void kkt_fill_boundaries(const kkt_shape *shape, int input_case, uint64_t *state,
                         kkt_host_tensor *cu) {
    const int64_t sequences = shape->sequences, tokens = shape->length;
    int32_t *at = cu->data;
    for (int64_t s = 0; s <= sequences; s++)
        at[s] = (int32_t)(s * tokens / sequences);
    if (input_case == KKT_CASE_RANDOM)
        return;
    for (int64_t s = 1; s < sequences; s++)
        at[s] = (int32_t)(next_uniform(state) * (double)(tokens + 1));
    qsort(at, (size_t)sequences + 1, sizeof *at, compare_i32);
    if (sequences >= 3)
        at[2] = at[1];
}

void kkt_fill_values(double deviation, uint64_t *state, kkt_host_tensor *tensor) {
    const int64_t count = kkt_tensor_elements(&tensor->tensor);
    for (int64_t i = 0; i < count; i++)
        kkt_dtype_store(tensor->tensor.dtype, tensor->data, (size_t)i,
                        deviation * next_component(state));
}

uint64_t kkt_inputs_seed(uint64_t seed, int input_case) {
    return seed * UINT64_C(0x2545f4914f6cdd1d) + (uint64_t)input_case;
}

/* ---- small problems ---- */

/* Each case meets the boundaries of the chunk at hand. */
static const kkt_check_row check_rows[] = {
    {KKT_CASE_RANDOM, 1, 1, 2, 11, false},    {KKT_CASE_SUB_DIAGONAL, 1, 1, 2, 0, false},
    {KKT_CASE_ZERO_BETA, 1, 1, 1, 5, false},  {KKT_CASE_CORRELATED, 1, 1, 2, 0, false},
    {KKT_CASE_DUPLICATES, 1, 1, 1, 9, false}, {KKT_CASE_GROWTH, 1, 1, 1, 3, false},
    {KKT_CASE_RANDOM, 2, 1, 1, 1, false},     {KKT_CASE_UNEVEN, 1, 5, 3, 7, false},
    {KKT_CASE_RANDOM, 1, 1, 0, 3, false},     {KKT_CASE_ZERO_GATE, 1, 1, 1, 0, true},
    {KKT_CASE_STRONG_GATE, 1, 1, 2, 7, true}, {KKT_CASE_STEEP_GATE, 2, 1, 1, 11, true},
};

const kkt_check_row *kkt_check_row_at(bool gated, int index) {
    for (size_t i = 0; i < sizeof check_rows / sizeof check_rows[0]; i++)
        if ((gated || !check_rows[i].gated_only) && index-- == 0)
            return &check_rows[i];
    return NULL;
}

/* ---- inputs from outside ---- */

kkt_status kkt_check_values(const kkt_host_tensor *host, bool gate, kkt_error *err) {
    const int64_t count = kkt_tensor_elements(&host->tensor);
    char element[96];
    for (int64_t i = 0; i < count; i++) {
        const double value = kkt_dtype_load(host->tensor.dtype, host->data, (size_t)i);
        if (isfinite(value) && !(gate && value > 0.0))
            continue;
        kkt_tensor_element_name(&host->tensor, i, element, sizeof element);
        if (!isfinite(value))
            return kkt_fail(err, KKT_ERR_INPUT, 0, "%s is %g: inputs must be finite", element,
                            value);
        return kkt_fail(err, KKT_ERR_INPUT, 0,
                        "%s is %g, but the gate must be <= 0: pass log g, not alpha", element,
                        value);
    }
    return KKT_OK;
}

kkt_status kkt_check_boundaries(const kkt_shape *shape, const kkt_host_tensor *cu, kkt_error *err) {
    const int64_t sequences = shape->sequences;
    const int64_t tokens = shape->length;
    int64_t before = 0;
    for (int64_t s = 0; s <= sequences; s++) {
        const int64_t at = (int64_t)kkt_dtype_load(cu->tensor.dtype, cu->data, (size_t)s);
        if (s == 0 && at != 0)
            return kkt_fail(err, KKT_ERR_INPUT, 0, "cu_seqlens[0] is %" PRId64 ", it must be 0",
                            at);
        if (at < before)
            return kkt_fail(err, KKT_ERR_INPUT, 0,
                            "cu_seqlens[%" PRId64 "] is %" PRId64 ", below the %" PRId64
                            " before it: boundaries must not decrease",
                            s, at, before);
        before = at;
    }
    if (before != tokens)
        return kkt_fail(err, KKT_ERR_INPUT, 0,
                        "cu_seqlens ends at %" PRId64 ", but there are %" PRId64 " tokens", before,
                        tokens);
    return KKT_OK;
}

kkt_status kkt_check_all(const kkt_shape *shape, kkt_host_tensors *inputs, kkt_error *err) {
    inputs->cursor = (kkt_part_cursor){0};
    for (int i = 0; i < inputs->count; i++) {
        const kkt_host_tensor *host = &inputs->t[i];
        if (host->tensor.role != KKT_TENSOR_INPUT || (!host->data && host->tensor.optional))
            continue;
        if (!host->data)
            return kkt_fail(err, KKT_ERR_INPUT, 0, "tensor %s is missing", host->tensor.name);
        kkt_status status = strcmp(host->tensor.name, "cu_seqlens") == 0
                                ? kkt_check_boundaries(shape, host, err)
                                : kkt_check_values(host, strcmp(host->tensor.name, "g") == 0, err);
        if (status != KKT_OK)
            return status;
    }
    return KKT_OK;
}
