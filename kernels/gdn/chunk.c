#include "kernels/gdn/chunk.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kkt_solve/triangular.h"

enum { WIDE = 16 }; /* a fixed number of sums side by side, which compilers vectorise */

void kkt_multiply_add(const double *a, int64_t lda, const double *b, double *c, int64_t m,
                      int64_t n, int64_t columns) {
    for (int64_t first = 0; first < columns; first += WIDE) {
        for (int64_t i = 0; i < m; i++) {
            double sum[WIDE];
            memcpy(sum, c + i * columns + first, sizeof sum);
            for (int64_t l = 0; l < n; l++) {
                const double factor = a[i * lda + l];
                const double *row = b + l * columns + first;
                for (int x = 0; x < WIDE; x++)
                    sum[x] += factor * row[x];
            }
            memcpy(c + i * columns + first, sum, sizeof sum);
        }
    }
}

void kkt_gdn_load_rows(const kkt_shape *shape, const kkt_host_tensor *tensor,
                       const kkt_chunk_part *part, int64_t heads, int64_t head, int64_t columns,
                       double *out) {
    const int64_t first = part->batch * shape->length + part->token;
    for (int64_t i = 0; i < part->rows; i++)
        for (int64_t c = 0; c < columns; c++)
            out[i * columns + c] =
                kkt_dtype_load(tensor->tensor.dtype, tensor->data,
                               (size_t)(((first + i) * heads + head) * columns + c));
}

void kkt_gdn_decay(const kkt_shape *shape, const kkt_host_tensor *g, const kkt_chunk_part *part,
                   double decay[KKT_GDN_ROWS]) {
    memset(decay, 0, sizeof *decay * KKT_GDN_ROWS);
    if (!shape->gated || !g || !g->data)
        return;
    kkt_gdn_load_rows(shape, g, part, shape->heads_v, part->head, 1, decay);
    for (int64_t i = 1; i < part->rows; i++)
        decay[i] += decay[i - 1];
}

void kkt_gdn_gram(const double *k, int64_t rows, int64_t dk, double *transposed, double *gram) {
    memset(transposed, 0, sizeof *transposed * (size_t)(dk * KKT_GDN_ROWS));
    for (int64_t i = 0; i < rows; i++)
        for (int64_t d = 0; d < dk; d++)
            transposed[d * KKT_GDN_ROWS + i] = k[i * dk + d];
    memset(gram, 0, sizeof *gram * (size_t)(rows * KKT_GDN_ROWS));
    kkt_multiply_add(k, dk, transposed, gram, rows, dk, KKT_GDN_ROWS);
}

void kkt_gdn_inverse(const double *gram, const double *beta, const double *decay, int64_t rows,
                     double *t) {
    double l[KKT_GDN_ROWS * KKT_GDN_ROWS];
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < rows; j++)
            l[i * rows + j] =
                j < i ? beta[i] * gram[i * KKT_GDN_ROWS + j] * exp(decay[i] - decay[j]) : 0.0;
    kkt_triangular_inverse(l, (int)rows, t);
}
