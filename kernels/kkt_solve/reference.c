/* The result in double precision, a chunk and a head at a time. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kkt_solve/parts.h"
#include "kernels/kkt_solve/triangular.h"

int64_t kkt_solve_chunk_count(const kkt_values *problem, int64_t chunk, kkt_host_tensors *inputs) {
    const kkt_shape shape = kkt_solve_shape(problem);
    return kkt_chunk_count(&shape, chunk, inputs);
}

bool kkt_solve_part_at(const kkt_values *problem, int64_t chunk, kkt_host_tensors *inputs,
                       int64_t index, kkt_chunk_part *out) {
    const kkt_shape shape = kkt_solve_shape(problem);
    return kkt_chunk_at(&shape, chunk, inputs, index, out);
}

int64_t kkt_solve_part_count(const kkt_values *problem, const kkt_values *config,
                             kkt_host_tensors *inputs) {
    return kkt_solve_chunk_count(problem, config->v[KKT_SOLVE_CHUNK], inputs) *
           problem->v[KKT_SOLVE_HEADS_V];
}

int kkt_solve_part_regions(const kkt_values *problem, const kkt_values *config,
                           kkt_host_tensors *inputs, int64_t part, kkt_region *out) {
    const int64_t chunk = config->v[KKT_SOLVE_CHUNK];
    const int64_t heads = problem->v[KKT_SOLVE_HEADS_V];
    kkt_chunk_part at;
    if (!kkt_solve_part_at(problem, chunk, inputs, part, &at))
        return 0;
    const int64_t row = at.batch * kkt_solve_length(problem) + at.token;
    *out = (kkt_region){
        .tensor = KKT_SOLVE_TENSOR_T,
        .offset = (row * heads + at.head) * chunk,
        .rows = at.rows,
        .columns = chunk,
        .row_stride = heads * chunk,
    };
    return 1;
}

static double dot(const double *a, const double *b, int64_t n) {
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

kkt_status kkt_solve_lower(const kkt_values *problem, kkt_host_tensors *inputs,
                           const kkt_chunk_part *part, double *l, kkt_error *err) {
    const int64_t dk = problem->v[KKT_SOLVE_DK], rows = part->rows;
    const int64_t heads_k = problem->v[KKT_SOLVE_HEADS_K], heads_v = problem->v[KKT_SOLVE_HEADS_V];
    const kkt_host_tensor *k = &inputs->t[KKT_SOLVE_TENSOR_K];
    const kkt_host_tensor *beta = &inputs->t[KKT_SOLVE_TENSOR_BETA];
    const kkt_host_tensor *g = &inputs->t[KKT_SOLVE_TENSOR_G];
    const int64_t first = part->batch * kkt_solve_length(problem) + part->token;
    double *keys = calloc((size_t)(rows * (dk + 1)), sizeof *keys);
    if (!keys)
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "out of memory for the keys of a chunk");
    double *decay = keys + rows * dk; /* inclusive cumulative sum of g inside the chunk */
    for (int64_t i = 0; i < rows; i++) {
        const int64_t key = ((first + i) * heads_k + part->head / (heads_v / heads_k)) * dk;
        for (int64_t d = 0; d < dk; d++)
            keys[i * dk + d] = kkt_dtype_load(k->tensor.dtype, k->data, (size_t)(key + d));
        if (problem->v[KKT_SOLVE_GATED])
            decay[i] = (i ? decay[i - 1] : 0.0) +
                       kkt_dtype_load(g->tensor.dtype, g->data,
                                      (size_t)((first + i) * heads_v + part->head));
    }
    memset(l, 0, sizeof *l * (size_t)(rows * rows));
    for (int64_t i = 0; i < rows; i++) {
        const double factor = kkt_dtype_load(beta->tensor.dtype, beta->data,
                                             (size_t)((first + i) * heads_v + part->head));
        for (int64_t j = 0; j < i; j++)
            l[i * rows + j] =
                factor * dot(keys + i * dk, keys + j * dk, dk) * exp(decay[i] - decay[j]);
    }
    free(keys);
    return KKT_OK;
}

/* t diag(beta), in place. */
static void times_beta(const kkt_values *problem, const kkt_host_tensors *inputs,
                       const kkt_chunk_part *part, double *t) {
    const int64_t heads_v = problem->v[KKT_SOLVE_HEADS_V], rows = part->rows;
    const kkt_host_tensor *beta = &inputs->t[KKT_SOLVE_TENSOR_BETA];
    const int64_t first = part->batch * kkt_solve_length(problem) + part->token;
    for (int64_t j = 0; j < rows; j++) {
        const double factor = kkt_dtype_load(beta->tensor.dtype, beta->data,
                                             (size_t)((first + j) * heads_v + part->head));
        for (int64_t i = j; i < rows; i++)
            t[i * rows + j] *= factor;
    }
}

kkt_status kkt_solve_reference(const kkt_values *problem, const kkt_values *config,
                               kkt_host_tensors *inputs, int64_t part, double *out, size_t size,
                               kkt_error *err) {
    const int64_t chunk = config->v[KKT_SOLVE_CHUNK];
    kkt_chunk_part at;
    if (!kkt_solve_part_at(problem, chunk, inputs, part, &at))
        return kkt_fail(err, KKT_ERR_INPUT, 0, "kkt_solve has no part %lld", (long long)part);
    if (size < (size_t)(at.rows * chunk))
        return kkt_fail(err, KKT_ERR_INPUT, 0, "room for %zu values, %lld needed", size,
                        (long long)(at.rows * chunk));
    const size_t square = (size_t)(at.rows * at.rows);
    double *l = calloc(2 * square, sizeof *l);
    if (!l)
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "out of memory for the matrices of a chunk");
    kkt_status status = kkt_solve_lower(problem, inputs, &at, l, err);
    if (status == KKT_OK) {
        double *t = l + square;
        kkt_triangular_inverse(l, (int)at.rows, t);
        if (problem->v[KKT_SOLVE_T_FORM] == KKT_T_BETA)
            times_beta(problem, inputs, &at, t);
        memset(out, 0, sizeof *out * (size_t)(at.rows * chunk));
        for (int64_t i = 0; i < at.rows; i++)
            memcpy(out + i * chunk, t + i * at.rows, sizeof *out * (size_t)at.rows);
    }
    free(l);
    return status;
}
