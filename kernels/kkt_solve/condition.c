/* How far inputs can be trusted: growth and conditioning of a part. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kkt_solve/parts.h"
#include "kernels/kkt_solve/triangular.h"

static double key_norm(const kkt_values *problem, const kkt_host_tensor *k, int64_t row,
                       int64_t head) {
    const int64_t dk = problem->v[KKT_SOLVE_DK];
    const int64_t at = (row * problem->v[KKT_SOLVE_HEADS_K] + head) * dk;
    double sum = 0.0;
    for (int64_t d = 0; d < dk; d++) {
        const double value = kkt_dtype_load(k->tensor.dtype, k->data, (size_t)(at + d));
        sum += value * value;
    }
    return sqrt(sum);
}

/* With 0 <= beta |k|^2 <= 2 every step of the recurrence is a contraction, hence
 * |T_ij| <= beta_i |k_i| |k_j| for i > j; and T's diagonal is 1. A step outside of it: no bound. */
static double bound_of(const kkt_values *problem, kkt_host_tensors *inputs,
                       const kkt_chunk_part *part) {
    const int64_t heads_v = problem->v[KKT_SOLVE_HEADS_V];
    const kkt_host_tensor *k = &inputs->t[KKT_SOLVE_TENSOR_K];
    const kkt_host_tensor *beta = &inputs->t[KKT_SOLVE_TENSOR_BETA];
    const int64_t first = part->batch * kkt_solve_length(problem) + part->token;
    const int64_t head_k = part->head / (heads_v / problem->v[KKT_SOLVE_HEADS_K]);
    double longest = 0.0, bound = 1.0;
    for (int64_t i = 0; i < part->rows; i++) {
        const double length = key_norm(problem, k, first + i, head_k);
        const double b = kkt_dtype_load(beta->tensor.dtype, beta->data,
                                        (size_t)((first + i) * heads_v + part->head));
        if (!(b * length * length >= 0.0 && b * length * length <= 2.0))
            return INFINITY;
        bound = fmax(bound, b * length * longest);
        longest = fmax(longest, length);
    }
    return bound;
}

void kkt_solve_condition(const kkt_values *problem, const kkt_values *config,
                         kkt_host_tensors *inputs, int64_t part, const double *reference,
                         double *cond_estimate, double *growth_bound) {
    const int64_t chunk = config->v[KKT_SOLVE_CHUNK];
    kkt_chunk_part at;
    *cond_estimate = 1.0;
    *growth_bound = 1.0;
    if (!kkt_solve_part_at(problem, chunk, inputs, part, &at))
        return;
    *growth_bound = bound_of(problem, inputs, &at);
    const size_t square = (size_t)(at.rows * at.rows);
    double *l = calloc(2 * square, sizeof *l);
    *cond_estimate = NAN;
    if (l && kkt_solve_lower(problem, inputs, &at, l, NULL) == KKT_OK) {
        double *t = l + square;
        if (problem->v[KKT_SOLVE_T_FORM] == KKT_T_BETA) /* the reference is T diag(beta) */
            kkt_triangular_inverse(l, (int)at.rows, t);
        else
            for (int64_t i = 0; i < at.rows; i++)
                memcpy(t + i * at.rows, reference + i * chunk, sizeof *t * (size_t)at.rows);
        *cond_estimate = kkt_triangular_condition(l, t, (int)at.rows);
    }
    free(l);
}

void kkt_solve_advice(const kkt_values *problem, const kkt_host_tensors *inputs, char *out,
                      size_t size) {
    const int64_t heads_v = problem->v[KKT_SOLVE_HEADS_V];
    const int64_t ratio = heads_v / problem->v[KKT_SOLVE_HEADS_K];
    const kkt_host_tensor *k = &inputs->t[KKT_SOLVE_TENSOR_K];
    const kkt_host_tensor *beta = &inputs->t[KKT_SOLVE_TENSOR_BETA];
    double strongest = -1.0, length = 0.0, strength = 0.0;
    int64_t at = 0;
    for (int64_t i = 0; i < problem->v[KKT_SOLVE_TOKENS] * heads_v; i++) {
        const double norm = key_norm(problem, k, i / heads_v, i % heads_v / ratio);
        const double b = kkt_dtype_load(beta->tensor.dtype, beta->data, (size_t)i);
        if (fabs(b) * norm * norm <= strongest)
            continue;
        strongest = fabs(b) * norm * norm;
        length = norm;
        strength = b;
        at = i;
    }
    char element[96];
    kkt_tensor_element_name(&beta->tensor, at, element, sizeof element);
    if (strongest > 2.0 || strength < 0.0)
        snprintf(out, size,
                 "beta |k|^2 reaches %.3g (|k| = %.3g, beta = %.3g at %s), and outside of 0 to 2 T "
                 "grows with every row: normalise the keys to |k| = 1, or lower beta",
                 strongest, length, strength, element);
    else
        snprintf(out, size,
                 "beta |k|^2 is at most %.3g (|k| = %.3g, beta = %.3g at %s), so it is keys that "
                 "are almost alike: lower beta, or a smaller chunk",
                 strongest, length, strength, element);
}
