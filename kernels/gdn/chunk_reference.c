/* References of the families that go chunk by chunk: each is the formula of gdn.h over its own
 * inputs, in double precision. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/gdn/chunk.h"

enum { COLUMNS = KKT_GDN_COLUMNS };

static kkt_status room_for(size_t size, int64_t needed, kkt_error *err) {
    return size >= (size_t)needed
               ? KKT_OK
               : kkt_fail(err, KKT_ERR_INPUT, 0, "room for %zu values, %lld needed", size,
                          (long long)needed);
}

static kkt_status part_of(const kkt_shape *shape, int64_t chunk, kkt_host_tensors *inputs,
                          int64_t part, kkt_chunk_part *out, kkt_error *err) {
    return kkt_chunk_at(shape, chunk, inputs, part, out)
               ? KKT_OK
               : kkt_fail(err, KKT_ERR_INPUT, 0, "there is no part %lld", (long long)part);
}

/* ---- w and u ---- */

/* T diag(beta), whatever t holds. */
static void load_t_beta(const kkt_values *problem, const kkt_shape *shape, int64_t chunk,
                        kkt_host_tensors *inputs, const kkt_chunk_part *part, double *t) {
    kkt_gdn_load_rows(shape, kkt_host_tensor_find(inputs, "t"), part, shape->heads_v, part->head,
                      chunk, t);
    if (problem->v[KKT_GDN_T_FORM] == KKT_GDN_T_BETA)
        return;
    double beta[KKT_GDN_ROWS];
    kkt_gdn_load_rows(shape, kkt_host_tensor_find(inputs, "beta"), part, shape->heads_v, part->head,
                      1, beta);
    for (int64_t i = 0; i < part->rows; i++)
        for (int64_t j = 0; j < part->rows; j++)
            t[i * chunk + j] *= beta[j];
}

kkt_status kkt_gdn_wu_reference(const kkt_values *problem, const kkt_values *config,
                                kkt_host_tensors *inputs, int64_t part, double *out, size_t size,
                                kkt_error *err) {
    const kkt_shape s = kkt_gdn_shape(problem);
    const int64_t chunk = config->v[KKT_GDN_CHUNK];
    kkt_chunk_part at;
    kkt_status status = part_of(&s, chunk, inputs, part, &at, err);
    if (status == KKT_OK)
        status = room_for(size, at.rows * (s.dk + s.dv), err);
    if (status != KKT_OK)
        return status;
    double *t = calloc((size_t)(chunk * (chunk + s.dk + s.dv)), sizeof *t);
    if (!t)
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "out of memory for a chunk");
    double *k = t + chunk * chunk, *v = k + chunk * s.dk, decay[KKT_GDN_ROWS];
    load_t_beta(problem, &s, chunk, inputs, &at, t);
    kkt_gdn_load_rows(&s, kkt_host_tensor_find(inputs, "k"), &at, s.heads_k,
                      kkt_shape_key_head(&s, at.head), s.dk, k);
    kkt_gdn_load_rows(&s, kkt_host_tensor_find(inputs, "v"), &at, s.heads_v, at.head, s.dv, v);
    kkt_gdn_decay(&s, kkt_host_tensor_find(inputs, "g"), &at, decay);
    for (int64_t i = 0; i < at.rows; i++)
        for (int64_t d = 0; d < s.dk; d++)
            k[i * s.dk + d] *= exp(decay[i]);
    memset(out, 0, sizeof *out * (size_t)(at.rows * (s.dk + s.dv)));
    kkt_multiply_add(t, chunk, k, out, at.rows, at.rows, s.dk);
    kkt_multiply_add(t, chunk, v, out + at.rows * s.dk, at.rows, at.rows, s.dv);
    free(t);
    return KKT_OK;
}

/* ---- states ---- */

int64_t kkt_gdn_slot_range(const kkt_values *problem, int64_t chunk, kkt_host_tensors *inputs,
                           const kkt_gdn_part *part, int64_t *count) {
    const kkt_shape s = kkt_gdn_shape(problem);
    const kkt_host_tensor *cu = kkt_host_tensor_find(inputs, "cu_seqlens");
    if (s.sequences == 1) {
        *count = (s.length + chunk - 1) / chunk;
        return part->batch * *count;
    }
    const int64_t n = part->sequence, first = part->token / chunk + n;
    *count = kkt_sequence_start(&s, cu, n + 1) / chunk + n + 1 - first;
    return first;
}

/* What a part of gdn_state reads, and its place. */
typedef struct state_walk {
    kkt_shape shape;
    kkt_gdn_part at;
    int64_t chunk;
    kkt_host_tensors *inputs;
    double *k, *w, *transposed; /* room for a chunk each */
} state_walk;

static void columns_of(const kkt_shape *shape, const kkt_host_tensor *tensor,
                       const kkt_chunk_part *part, int64_t column, double *out) {
    const int64_t first = part->batch * shape->length + part->token;
    for (int64_t i = 0; i < part->rows; i++)
        for (int64_t c = 0; c < COLUMNS; c++)
            out[i * COLUMNS + c] = kkt_dtype_load(
                tensor->tensor.dtype, tensor->data,
                (size_t)(((first + i) * shape->heads_v + part->head) * shape->dv + column + c));
}

/* One chunk: V' (rows x COLUMNS) from the state, then the state after it. */
static void state_step(const state_walk *x, const kkt_chunk_part *part, double *s, double *v_new) {
    const kkt_shape *shape = &x->shape;
    const int64_t rows = part->rows, dk = shape->dk;
    double decay[KKT_GDN_ROWS];
    kkt_gdn_load_rows(shape, kkt_host_tensor_find(x->inputs, "k"), part, shape->heads_k,
                      kkt_shape_key_head(shape, part->head), dk, x->k);
    kkt_gdn_load_rows(shape, kkt_host_tensor_find(x->inputs, "w"), part, shape->heads_v, part->head,
                      dk, x->w);
    kkt_gdn_decay(shape, kkt_host_tensor_find(x->inputs, "g"), part, decay);
    columns_of(shape, kkt_host_tensor_find(x->inputs, "u"), part, x->at.column, v_new);
    for (int64_t i = 0; i < rows * dk; i++)
        x->w[i] = -x->w[i];
    kkt_multiply_add(x->w, dk, s, v_new, rows, dk, COLUMNS);
    for (int64_t d = 0; d < dk * COLUMNS; d++)
        s[d] *= exp(decay[rows - 1]);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t d = 0; d < dk; d++)
            x->transposed[d * rows + i] = x->k[i * dk + d] * exp(decay[rows - 1] - decay[i]);
    kkt_multiply_add(x->transposed, rows, v_new, s, dk, rows, COLUMNS);
}

/* h of all slots, V' of all tokens, and ht. */
static void state_parts(const state_walk *x, double *h, int64_t slots, double *v_new, double *ht) {
    const int64_t size = x->shape.dk * COLUMNS;
    int64_t slot = 0;
    for (int64_t row = 0; row < x->at.rows; row += x->chunk, slot++) {
        const int64_t left = x->at.rows - row;
        const kkt_chunk_part part = {.batch = x->at.batch,
                                     .token = x->at.token + row,
                                     .rows = left < x->chunk ? left : x->chunk,
                                     .head = x->at.head};
        memcpy(h + slot * size, ht, sizeof *h * (size_t)size);
        state_step(x, &part, ht, v_new + row * COLUMNS);
    }
    memset(h + slot * size, 0, sizeof *h * (size_t)((slots - slot) * size));
}

kkt_status kkt_gdn_state_reference(const kkt_values *problem, const kkt_values *config,
                                   kkt_host_tensors *inputs, int64_t part, double *out, size_t size,
                                   kkt_error *err) {
    state_walk x = {
        .shape = kkt_gdn_shape(problem), .chunk = config->v[KKT_GDN_CHUNK], .inputs = inputs};
    const int64_t dk = x.shape.dk, dv = x.shape.dv;
    int64_t slots = 0;
    if (!kkt_gdn_part_at(problem, inputs, part, &x.at))
        return kkt_fail(err, KKT_ERR_INPUT, 0, "there is no part %lld", (long long)part);
    kkt_gdn_slot_range(problem, x.chunk, inputs, &x.at, &slots);
    kkt_status status = room_for(size, (slots * dk + x.at.rows + dk) * COLUMNS, err);
    if (status != KKT_OK)
        return status;
    x.k = calloc((size_t)(3 * x.chunk * dk), sizeof *x.k);
    if (!x.k)
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "out of memory for a chunk");
    x.w = x.k + x.chunk * dk;
    x.transposed = x.w + x.chunk * dk;
    double *v_new = out + slots * dk * COLUMNS, *ht = v_new + x.at.rows * COLUMNS;
    const kkt_host_tensor *h0 = kkt_host_tensor_find(inputs, "h0");
    const int64_t first = (x.at.number * x.shape.heads_v + x.at.head) * dk * dv + x.at.column;
    for (int64_t d = 0; d < dk; d++)
        for (int64_t c = 0; c < COLUMNS; c++)
            ht[d * COLUMNS + c] = h0 && h0->data ? kkt_dtype_load(h0->tensor.dtype, h0->data,
                                                                  (size_t)(first + d * dv + c))
                                                 : 0.0;
    state_parts(&x, out, slots, v_new, ht);
    free(x.k);
    return KKT_OK;
}

/* ---- outputs ---- */

/* The slot of h that belongs to a chunk. */
static int64_t slot_of(const kkt_values *problem, int64_t chunk, kkt_host_tensors *inputs,
                       const kkt_chunk_part *at) {
    const kkt_gdn_part sequence = {
        .batch = at->batch, .sequence = at->sequence, .token = at->token - at->index * chunk};
    int64_t count;
    return kkt_gdn_slot_range(problem, chunk, inputs, &sequence, &count) + at->index;
}

kkt_status kkt_gdn_output_reference(const kkt_values *problem, const kkt_values *config,
                                    kkt_host_tensors *inputs, int64_t part, double *out,
                                    size_t size, kkt_error *err) {
    const kkt_shape s = kkt_gdn_shape(problem);
    const int64_t chunk = config->v[KKT_GDN_CHUNK], dk = s.dk, dv = s.dv;
    kkt_chunk_part at;
    kkt_status status = part_of(&s, chunk, inputs, part, &at, err);
    if (status == KKT_OK)
        status = room_for(size, at.rows * dv, err);
    if (status != KKT_OK)
        return status;
    const int64_t rows = at.rows, wide = KKT_GDN_ROWS;
    double *q =
        calloc((size_t)(2 * rows * dk + rows * dv + dk * dv + dk * wide + rows * wide), sizeof *q);
    if (!q)
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "out of memory for a chunk");
    double *k = q + rows * dk, *v_new = k + rows * dk, *h = v_new + rows * dv, *kt = h + dk * dv,
           *p = kt + dk * wide, decay[KKT_GDN_ROWS];
    const int64_t head_k = kkt_shape_key_head(&s, at.head);
    kkt_gdn_load_rows(&s, kkt_host_tensor_find(inputs, "q"), &at, s.heads_k, head_k, dk, q);
    kkt_gdn_load_rows(&s, kkt_host_tensor_find(inputs, "k"), &at, s.heads_k, head_k, dk, k);
    kkt_gdn_load_rows(&s, kkt_host_tensor_find(inputs, "v_new"), &at, s.heads_v, at.head, dv,
                      v_new);
    kkt_gdn_decay(&s, kkt_host_tensor_find(inputs, "g"), &at, decay);
    const kkt_host_tensor *states = kkt_host_tensor_find(inputs, "h");
    const int64_t first = (slot_of(problem, chunk, inputs, &at) * s.heads_v + at.head) * dk * dv;
    for (int64_t i = 0; i < dk * dv; i++)
        h[i] = kkt_dtype_load(states->tensor.dtype, states->data, (size_t)(first + i));
    for (int64_t i = 0; i < rows; i++)
        for (int64_t d = 0; d < dk; d++)
            kt[d * wide + i] = k[i * dk + d];
    kkt_multiply_add(q, dk, kt, p, rows, dk, wide);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < wide; j++)
            p[i * wide + j] = j <= i ? p[i * wide + j] * exp(decay[i] - decay[j]) : 0.0;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t d = 0; d < dk; d++)
            q[i * dk + d] *= exp(decay[i]);
    memset(out, 0, sizeof *out * (size_t)(rows * dv));
    kkt_multiply_add(q, dk, h, out, rows, dk, dv);
    kkt_multiply_add(p, wide, v_new, out, rows, rows, dv);
    for (int64_t i = 0; i < rows * dv; i++)
        out[i] /= sqrt((double)dk);
    free(q);
    return KKT_OK;
}
