/* Inputs of gemv, the result in double precision, and how results are judged. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/integer.h"
#include "base/random.h"
#include "kernels/common/rounded.h"
#include "kernels/gemv/gemv.h"

const kkt_input_case kkt_gemv_cases[KKT_GEMV_CASES] = {
    [KKT_GEMV_RANDOM] = {.name = "random", .summary = "independent, nearly normal", .timing = true},
    [KKT_GEMV_SPARSE] = {.name = "sparse",
                         .summary = "small integers, few of x nonzero: the result is exact"},
    [KKT_GEMV_CANCEL] = {.name = "cancel",
                         .summary = "terms of 30000 and -30000, beyond fp16 once summed, that "
                                    "cancel but for small integers"},
};

/* ---- inputs ---- */

/* Values are drawn from a table, for A has hundreds of millions: five from one random number. */
enum { TABLE_BITS = 12, TABLE = 1 << TABLE_BITS, DRAWS = 64 / TABLE_BITS };

static void fill_random(kkt_dtype dtype, uint16_t *out, int64_t count, uint64_t *state) {
    uint16_t table[TABLE];
    for (int i = 0; i < TABLE; i++) { /* the sum of twelve uniforms has variance 1 */
        double sum = -6;
        for (int n = 0; n < 12; n++)
            sum += kkt_random_unit(kkt_random_next(state));
        kkt_dtype_store(dtype, table, (size_t)i, sum);
    }
    for (int64_t i = 0; i < count; i += DRAWS) {
        uint64_t bits = kkt_random_next(state);
        for (int64_t n = i; n < i + DRAWS && n < count; n++, bits >>= TABLE_BITS)
            out[n] = table[bits % TABLE];
    }
}

/* x: one element in k/48 is 1 or -1, so that sums stay below 2 x 96, about. */
static double sparse_x(uint64_t bits, int64_t k) {
    const bool there = k <= 48 || kkt_random_unit(bits) * (double)k < 48;
    return there ? (bits & 1 ? 1 : -1) : 0;
}

/* Element (row, j) of A and element j of x, of the exact cases. */
static double exact_a(int input_case, uint64_t bits, int64_t j, int64_t k) {
    const double small = (double)(bits % 5) - 2;
    if (input_case == KKT_GEMV_SPARSE)
        return small;
    if (j == k - 1)
        return small;
    return k % 2 == 0 && j == k - 2 ? 0 : j % 2 == 0 ? 250 : -250; /* as many of each sign */
}

static double exact_x(int input_case, uint64_t bits, int64_t j, int64_t k) {
    if (input_case == KKT_GEMV_SPARSE)
        return sparse_x(bits, k);
    return j == k - 1 ? 1 : 120;
}

static void fill_exact(const kkt_values *problem, int input_case, uint64_t seed, kkt_host_tensor *a,
                       kkt_host_tensor *x) {
    const int64_t m = problem->v[KKT_GEMV_M], k = problem->v[KKT_GEMV_K];
    const int64_t lda = kkt_gemv_lda(problem);
    const bool transposed = problem->v[KKT_GEMV_LAYOUT] == KKT_GEMV_T;
    uint64_t state = seed;
    for (int64_t j = 0; j < k; j++)
        kkt_dtype_store(x->tensor.dtype, x->data, (size_t)j,
                        exact_x(input_case, kkt_random_next(&state), j, k));
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < k; j++) {
            const int64_t at = transposed ? j * lda + i : i * lda + j;
            kkt_dtype_store(a->tensor.dtype, a->data, (size_t)at,
                            exact_a(input_case, kkt_random_next(&state), j, k));
        }
}

static void poison_padding(const kkt_values *problem, kkt_host_tensor *a) {
    const bool transposed = problem->v[KKT_GEMV_LAYOUT] == KKT_GEMV_T;
    const int64_t used = problem->v[transposed ? KKT_GEMV_M : KKT_GEMV_K];
    const int64_t rows = a->tensor.dims[0], lda = a->tensor.dims[1];
    for (int64_t row = 0; row < rows && used < lda; row++)
        for (int64_t column = used; column < lda; column++)
            kkt_dtype_store(a->tensor.dtype, a->data, (size_t)(row * lda + column), NAN);
}

kkt_status kkt_gemv_make_inputs(const kkt_values *problem, int input_case, uint64_t seed,
                                kkt_host_tensors *inputs, kkt_error *err) {
    kkt_tensor shapes[KKT_GEMV_TENSORS];
    kkt_gemv_list(problem, shapes);
    memset(inputs, 0, sizeof *inputs);
    inputs->count = KKT_GEMV_Y;
    for (int i = 0; i < inputs->count; i++) {
        inputs->t[i] = (kkt_host_tensor){.tensor = shapes[i],
                                         .data = malloc((size_t)kkt_tensor_bytes(&shapes[i]))};
        if (!inputs->t[i].data) {
            kkt_host_tensors_free(inputs);
            return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "out of memory for the inputs of gemv");
        }
    }
    kkt_host_tensor *a = &inputs->t[KKT_GEMV_A], *x = &inputs->t[KKT_GEMV_X];
    uint64_t state = kkt_random_mix(seed) + (uint64_t)input_case;
    if (input_case == KKT_GEMV_RANDOM) {
        fill_random(a->tensor.dtype, a->data, kkt_tensor_elements(&a->tensor), &state);
        fill_random(x->tensor.dtype, x->data, kkt_tensor_elements(&x->tensor), &state);
    } else {
        fill_exact(problem, input_case, state, a, x);
    }
    poison_padding(problem, a);
    return KKT_OK;
}

kkt_status kkt_gemv_check_inputs(const kkt_values *problem, kkt_host_tensors *inputs,
                                 kkt_error *err) {
    const bool transposed = problem->v[KKT_GEMV_LAYOUT] == KKT_GEMV_T;
    for (int t = KKT_GEMV_A; t <= KKT_GEMV_X; t++) {
        const kkt_host_tensor *host = &inputs->t[t];
        if (!host->data)
            return kkt_fail(err, KKT_ERR_INPUT, 0, "tensor %s is missing", host->tensor.name);
        const int64_t columns = host->tensor.dims[host->tensor.rank - 1];
        const int64_t used =
            t == KKT_GEMV_X ? columns : problem->v[transposed ? KKT_GEMV_M : KKT_GEMV_K];
        for (int64_t i = 0, count = kkt_tensor_elements(&host->tensor); i < count; i++) {
            const double value = kkt_dtype_load(host->tensor.dtype, host->data, (size_t)i);
            if (isfinite(value) || i % columns >= used)
                continue;
            char element[96];
            kkt_tensor_element_name(&host->tensor, i, element, sizeof element);
            return kkt_fail(err, KKT_ERR_INPUT, 0, "%s is %g: inputs must be finite", element,
                            value);
        }
    }
    return KKT_OK;
}

/* ---- reference ---- */

enum { PART = 16 }; /* elements of y */

int64_t kkt_gemv_part_count(const kkt_values *problem, const kkt_values *config,
                            kkt_host_tensors *inputs) {
    (void)config;
    (void)inputs;
    return kkt_divide_up(problem->v[KKT_GEMV_M], PART);
}

int kkt_gemv_part_regions(const kkt_values *problem, const kkt_values *config,
                          kkt_host_tensors *inputs, int64_t part, kkt_region *out) {
    (void)config;
    (void)inputs;
    const int64_t first = part * PART, left = problem->v[KKT_GEMV_M] - first;
    *out = (kkt_region){.tensor = KKT_GEMV_Y,
                        .offset = first,
                        .rows = 1,
                        .columns = left < PART ? left : PART,
                        .row_stride = problem->v[KKT_GEMV_M]};
    return 1;
}

kkt_status kkt_gemv_reference(const kkt_values *problem, const kkt_values *config,
                              kkt_host_tensors *inputs, int64_t part, double *out, size_t size,
                              kkt_error *err) {
    (void)config;
    (void)err;
    const kkt_host_tensor *a = &inputs->t[KKT_GEMV_A], *x = &inputs->t[KKT_GEMV_X];
    const int64_t lda = kkt_gemv_lda(problem);
    const bool transposed = problem->v[KKT_GEMV_LAYOUT] == KKT_GEMV_T;
    const int64_t across = transposed ? 1 : lda, along = transposed ? lda : 1;
    memset(out, 0, size * sizeof *out);
    for (int64_t j = 0; j < problem->v[KKT_GEMV_K]; j++) {
        const double factor = kkt_dtype_load(x->tensor.dtype, x->data, (size_t)j);
        for (size_t i = 0; i < size; i++) {
            const int64_t row = part * PART + (int64_t)i;
            out[i] += factor *
                      kkt_dtype_load(a->tensor.dtype, a->data, (size_t)(row * across + j * along));
        }
    }
    return KKT_OK;
}

/* ---- judging ---- */

/* How far a value is from its nearest number of the dtype, relatively, at the most. */
static const double roundoffs[] = {[KKT_BF16] = 0x1p-8, [KKT_FP16] = 0x1p-11};

/* The exact cases are that, in every order of summation, and the result is a number of the dtype.
 * Else y is rounded once. Of the fp32 sums before, n terms one after the other are off by about
 * 2^-24 sqrt(n) of the root mean square of their partial sums, which is that of the result; with
 * all of k terms in one sum and a factor of four, this bounds every split into threads and blocks.
 * Few results of a few thousand terms each reach half of this; that single terms are not lost or
 * mixed up is what the exact cases see to. */
double kkt_gemv_tolerance(const kkt_values *problem, const kkt_values *config, int input_case) {
    (void)config;
    if (input_case != KKT_GEMV_RANDOM)
        return 1e-9;
    return roundoffs[problem->v[KKT_GEMV_DTYPE]] +
           4 * 0x1p-24 * sqrt((double)problem->v[KKT_GEMV_K]);
}

void kkt_gemv_score(const kkt_values *problem, const kkt_region *region, const double *expected,
                    const double *actual, kkt_score *score) {
    kkt_rounded_score((kkt_dtype)problem->v[KKT_GEMV_DTYPE], region, expected, actual, score);
}
