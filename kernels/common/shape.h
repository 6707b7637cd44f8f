/* The problem of chunked linear attention as the families' common code sees it, whatever other keys
 * a family has.
 *
 * Tensors, row-major, last index fastest:
 *     q, k       [batch, length, heads_k, dk]      dtype
 *     v, o       [batch, length, heads_v, dv]      dtype
 *     beta, g    [batch, length, heads_v]          fp32; g is the log decay, <= 0
 *     t          [batch, length, heads_v, chunk]   dtype; a row holds its row inside the chunk
 *     h0, ht     [N, heads_v, dk, dv]              fp32; N = batch * sequences
 *     cu_seqlens [sequences + 1]                   i32, batch 1; absent: one sequence a batch entry
 *
 * The key head of value head hv is hv / (heads_v / heads_k). Chunks restart at each sequence. */
#ifndef KKT_KERNELS_COMMON_SHAPE_H
#define KKT_KERNELS_COMMON_SHAPE_H

#include "kernels/kernel.h"

typedef struct kkt_shape {
    int64_t batch;
    int64_t sequences; /* of a batch entry; above 1: batch is 1 */
    int64_t length;    /* tokens of a batch entry, all its sequences together */
    int64_t heads_k, heads_v;
    int64_t dk, dv; /* dv 0: the family has none */
    kkt_dtype dtype;
    bool gated;
} kkt_shape;

/* False with one line in `reason` where the numbers do not fit together. `tokens` is batch * length
 * before the division, `widest` the most elements that an output has for each token. */
bool kkt_shape_valid(const kkt_shape *shape, int64_t tokens, int64_t widest, char *reason,
                     size_t size);

static inline int64_t kkt_shape_key_head(const kkt_shape *shape, int64_t head_v) {
    return head_v / (shape->heads_v / shape->heads_k);
}

/* ---- sequences ---- */

/* Sequences of a batch entry: 1 without boundaries. `cu` may be NULL or have no data. */
int64_t kkt_sequence_count(const kkt_shape *shape, const kkt_host_tensor *cu);
/* The token at which a sequence begins, within its batch entry; of the one past the last: the end.
 */
int64_t kkt_sequence_start(const kkt_shape *shape, const kkt_host_tensor *cu, int64_t sequence);

/* ---- chunks: what many results fall into ---- */

typedef struct kkt_chunk_part {
    int64_t batch;    /* batch entry */
    int64_t sequence; /* within the batch entry */
    int64_t index;    /* of the chunk, within its sequence */
    int64_t token;    /* first token of the chunk, within the batch entry */
    int64_t rows;     /* valid rows, 1..chunk: the last chunk of a sequence may be a tail */
    int64_t head;     /* value head */
} kkt_chunk_part;

/* Chunks of all sequences and batch entries; empty sequences have none. Both read the boundaries of
 * `inputs` (the tensor cu_seqlens) and keep their place in its cursor. */
int64_t kkt_chunk_count(const kkt_shape *shape, int64_t chunk, kkt_host_tensors *inputs);
/* Part `index` of chunk_count x heads_v, the head running fastest. False past the end. */
bool kkt_chunk_at(const kkt_shape *shape, int64_t chunk, kkt_host_tensors *inputs, int64_t index,
                  kkt_chunk_part *out);

#endif
