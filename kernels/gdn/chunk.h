/* One chunk of one value head in double precision, from the exact values of the inputs. All
 * matrices are dense and row-major with KKT_GDN_ROWS rows at most. */
#ifndef KKT_KERNELS_GDN_CHUNK_H
#define KKT_KERNELS_GDN_CHUNK_H

#include "kernels/gdn/gdn.h"

enum { KKT_GDN_ROWS = 128 };

/* c += a b, with a m x n (rows `lda` apart), b n x columns and c m x columns; columns is a multiple
 * of 16. */
void kkt_multiply_add(const double *a, int64_t lda, const double *b, double *c, int64_t m,
                      int64_t n, int64_t columns);

/* The rows of a chunk of a per-token tensor with `heads` heads of `columns` values, dense in `out`.
 */
void kkt_gdn_load_rows(const kkt_shape *shape, const kkt_host_tensor *tensor,
                       const kkt_chunk_part *part, int64_t heads, int64_t head, int64_t columns,
                       double *out);
/* G of each row; all 0 without a gate (`g` may then be NULL). */
void kkt_gdn_decay(const kkt_shape *shape, const kkt_host_tensor *g, const kkt_chunk_part *part,
                   double decay[KKT_GDN_ROWS]);
/* k k^T of a key head: rows x KKT_GDN_ROWS, of which rows x rows hold something. `k` is rows x dk;
 * `transposed` is room for dk x KKT_GDN_ROWS values. */
void kkt_gdn_gram(const double *k, int64_t rows, int64_t dk, double *transposed, double *gram);
/* T (rows x rows, dense) from the gram, beta and G of the value head. */
void kkt_gdn_inverse(const double *gram, const double *beta, const double *decay, int64_t rows,
                     double *t);

#endif
