/* Inputs of the Gated DeltaNet families. Every tensor has a random stream of its own, so that it
 * can be made alone, and the families see the same k, beta and g for a case and a seed. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"
#include "kernels/gdn/chunk.h"

static uint64_t stream(uint64_t seed, int input_case, enum kkt_gdn_tensor what) {
    return kkt_inputs_seed(seed + ((uint64_t)what << 32), input_case);
}

static bool of_chunk(enum kkt_gdn_tensor what) {
    return what == KKT_GDN_TENSOR_T || what == KKT_GDN_TENSOR_W || what == KKT_GDN_TENSOR_U ||
           what == KKT_GDN_TENSOR_H;
}

/* Whether a tensor is left out of the inputs that are made. */
static bool absent(const kkt_shape *shape, enum kkt_gdn_tensor what, int input_case) {
    return (what == KKT_GDN_TENSOR_G && !shape->gated) ||
           (what == KKT_GDN_TENSOR_CU_SEQLENS && shape->sequences == 1) ||
           (what == KKT_GDN_TENSOR_H0 && input_case == KKT_CASE_ZERO_GATE);
}

static kkt_host_tensor *find(const kkt_gdn_tensors *family, kkt_host_tensors *inputs,
                             enum kkt_gdn_tensor what) {
    for (int i = 0; i < family->inputs; i++)
        if (family->what[i] == what)
            return &inputs->t[i];
    return NULL;
}

static kkt_status allocate(kkt_host_tensor *host, kkt_error *err) {
    host->data = malloc((size_t)kkt_tensor_bytes(&host->tensor) + 1);
    return host->data ? KKT_OK
                      : kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "out of memory for the tensor %s",
                                 host->tensor.name);
}

/* One tensor that does not depend on the chunk. */
static kkt_status fill(const kkt_shape *shape, enum kkt_gdn_tensor what, int input_case,
                       uint64_t seed, kkt_host_tensor *host, kkt_error *err) {
    uint64_t state = stream(seed, input_case, what);
    kkt_host_tensor none = {0};
    switch (what) {
    case KKT_GDN_TENSOR_Q:
        return kkt_fill_keys(shape, KKT_CASE_RANDOM, &state, host, err);
    case KKT_GDN_TENSOR_K:
        return kkt_fill_keys(shape, input_case, &state, host, err);
    case KKT_GDN_TENSOR_BETA:
        kkt_fill_scalars(shape, input_case, &state, host, &none);
        return KKT_OK;
    case KKT_GDN_TENSOR_G:
        kkt_fill_scalars(shape, input_case, &state, &none, host);
        return KKT_OK;
    case KKT_GDN_TENSOR_CU_SEQLENS:
        kkt_fill_boundaries(shape, input_case, &state, host);
        return KKT_OK;
    case KKT_GDN_TENSOR_V:
        kkt_fill_values(1.0, &state, host);
        return KKT_OK;
    case KKT_GDN_TENSOR_V_NEW:
    case KKT_GDN_TENSOR_H0: /* as large as what the recurrence settles to */
        kkt_fill_values(0.5, &state, host);
        return KKT_OK;
    case KKT_GDN_TENSOR_T:
    case KKT_GDN_TENSOR_W:
    case KKT_GDN_TENSOR_U:
    case KKT_GDN_TENSOR_H:
    case KKT_GDN_TENSOR_O:
    case KKT_GDN_TENSOR_HT:
        break;
    }
    return KKT_OK;
}

kkt_status kkt_gdn_make_inputs(const kkt_gdn_tensors *family, const kkt_values *problem,
                               int input_case, uint64_t seed, kkt_host_tensors *inputs,
                               kkt_error *err) {
    const kkt_shape shape = kkt_gdn_shape(problem);
    kkt_tensor list[KKT_TENSORS_MAX];
    memset(inputs, 0, sizeof *inputs);
    /* Shapes that depend on the chunk are settled when their data is made. */
    inputs->count = kkt_gdn_list(family, problem, KKT_GDN_ROWS, list);
    for (int i = 0; i < inputs->count; i++)
        inputs->t[i].tensor = list[i];
    kkt_status status = KKT_OK;
    for (int i = 0; i < family->inputs && status == KKT_OK; i++) {
        const enum kkt_gdn_tensor what = family->what[i];
        if (of_chunk(what) || absent(&shape, what, input_case))
            continue;
        status = allocate(&inputs->t[i], err);
        if (status == KKT_OK)
            status = fill(&shape, what, input_case, seed, &inputs->t[i], err);
    }
    if (status != KKT_OK)
        kkt_host_tensors_free(inputs);
    return status;
}

/* ---- t, w and u ---- */

typedef struct chunk_work {
    kkt_shape shape;
    int64_t chunk;
    bool t_beta;
    uint64_t seed;
    const kkt_chunk_part *parts;
    const kkt_host_tensor *k, *g, *beta;
    kkt_host_tensor *t, *w, *u; /* NULL: not wanted */
    int64_t pieces;             /* chunks times key heads */
    double *room;               /* room_size() values for each worker */
} chunk_work;

static void store_rows(const chunk_work *x, const kkt_chunk_part *part, kkt_host_tensor *tensor,
                       int64_t columns, const double *values, int64_t row_stride) {
    const int64_t first = part->batch * x->shape.length + part->token;
    for (int64_t i = 0; i < part->rows; i++)
        for (int64_t c = 0; c < columns; c++)
            kkt_dtype_store(tensor->tensor.dtype, tensor->data,
                            (size_t)(((first + i) * x->shape.heads_v + part->head) * columns + c),
                            values[i * row_stride + c]);
}

static void store_t(const chunk_work *x, const kkt_chunk_part *part, const double *t,
                    const double *beta) {
    double padded[KKT_GDN_ROWS * KKT_GDN_ROWS] = {0};
    for (int64_t i = 0; i < part->rows; i++)
        for (int64_t j = 0; j <= i; j++)
            padded[i * x->chunk + j] = t[i * part->rows + j] * (x->t_beta ? beta[j] : 1.0);
    store_rows(x, part, x->t, x->chunk, padded, x->chunk);
}

/* W = T diag(beta e^G) K, and U = T diag(beta) V of random values V. */
static void store_wu(const chunk_work *x, const kkt_chunk_part *part, const double *t,
                     const double *beta, const double *decay, const double *k, double *room) {
    const int64_t rows = part->rows, dk = x->shape.dk, dv = x->shape.dv;
    double *scaled = room, *product = room + rows * (dk > dv ? dk : dv);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t d = 0; d < dk; d++)
            scaled[i * dk + d] = beta[i] * exp(decay[i]) * k[i * dk + d];
    memset(product, 0, sizeof *product * (size_t)(rows * dk));
    kkt_multiply_add(t, rows, scaled, product, rows, rows, dk);
    store_rows(x, part, x->w, dk, product, dk);
    kkt_host_tensor v = {.tensor = {.dtype = KKT_FP64, .rank = 2, .dims = {rows, dv}},
                         .data = scaled};
    uint64_t state = x->seed + (uint64_t)(part->token * x->shape.heads_v + part->head);
    state = kkt_inputs_seed(state, (int)part->batch);
    kkt_fill_values(1.0, &state, &v);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t d = 0; d < dv; d++)
            scaled[i * dv + d] *= beta[i];
    memset(product, 0, sizeof *product * (size_t)(rows * dv));
    kkt_multiply_add(t, rows, scaled, product, rows, rows, dv);
    store_rows(x, part, x->u, dv, product, dv);
}

enum { WORKERS = 16 }; /* as many as kkt_parallel_for has threads at most */

/* Doubles that make_chunk works in. */
static int64_t room_size(const kkt_shape *s) {
    const int64_t widest = s->dk > s->dv ? s->dk : s->dv;
    return KKT_GDN_ROWS * (2 * s->dk + 2 * widest + 2 * KKT_GDN_ROWS);
}

/* All value heads of one key head in one chunk. */
static void make_chunk(const chunk_work *x, int64_t index, double *room) {
    const kkt_shape *s = &x->shape;
    const int64_t ratio = s->heads_v / s->heads_k, head_k = index % s->heads_k;
    kkt_chunk_part part = x->parts[index / s->heads_k];
    const int64_t widest = s->dk > s->dv ? s->dk : s->dv;
    const int64_t square = KKT_GDN_ROWS * KKT_GDN_ROWS;
    double *k = room + 2 * KKT_GDN_ROWS * widest, *transposed = k + KKT_GDN_ROWS * s->dk,
           *gram = transposed + KKT_GDN_ROWS * s->dk, *t = gram + square;
    kkt_gdn_load_rows(s, x->k, &part, s->heads_k, head_k, s->dk, k);
    kkt_gdn_gram(k, part.rows, s->dk, transposed, gram);
    for (part.head = head_k * ratio; part.head < (head_k + 1) * ratio; part.head++) {
        double beta[KKT_GDN_ROWS], decay[KKT_GDN_ROWS];
        kkt_gdn_load_rows(s, x->beta, &part, s->heads_v, part.head, 1, beta);
        kkt_gdn_decay(s, x->g, &part, decay);
        kkt_gdn_inverse(gram, beta, decay, part.rows, t);
        if (x->t)
            store_t(x, &part, t, beta);
        if (x->w)
            store_wu(x, &part, t, beta, decay, k, room);
    }
}

/* Every WORKERS-th piece, in this worker's own room. */
static void work(void *context, int64_t worker) {
    const chunk_work *x = context;
    for (int64_t i = worker; i < x->pieces; i += WORKERS)
        make_chunk(x, i, x->room + worker * room_size(&x->shape));
}

static kkt_status make_from_t(chunk_work *x, kkt_host_tensors *inputs, kkt_error *err) {
    const int64_t heads = x->shape.heads_v;
    const int64_t count = kkt_chunk_count(&x->shape, x->chunk, inputs);
    kkt_chunk_part *parts = calloc((size_t)count + 1, sizeof *parts);
    x->room = malloc(sizeof *x->room * (size_t)(WORKERS * room_size(&x->shape)));
    if (!parts || !x->room) {
        free(parts);
        free(x->room);
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "out of memory for the inputs by chunk");
    }
    for (int64_t i = 0; i < count; i++)
        if (!kkt_chunk_at(&x->shape, x->chunk, inputs, i * heads, &parts[i]))
            abort(); /* a bug: it counted them itself */
    x->parts = parts;
    x->pieces = count * x->shape.heads_k;
    kkt_parallel_for(WORKERS, work, x);
    free(parts);
    free(x->room);
    return KKT_OK;
}

/* States repeat after a while: nothing tells one chunk's from another's. */
static void fill_states(uint64_t state, kkt_host_tensor *h) {
    enum { PERIOD = 1000003 }; /* a prime: no two neighbouring states are alike */
    const size_t bytes = (size_t)kkt_tensor_bytes(&h->tensor);
    const int64_t elements = kkt_tensor_elements(&h->tensor);
    kkt_host_tensor first = *h;
    first.tensor.rank = 1;
    first.tensor.dims[0] = elements < PERIOD ? elements : PERIOD;
    kkt_fill_values(0.5, &state, &first);
    const size_t period = (size_t)kkt_tensor_bytes(&first.tensor);
    for (size_t at = period; at < bytes; at += period)
        memcpy((char *)h->data + at, h->data, bytes - at < period ? bytes - at : period);
}

kkt_status kkt_gdn_make_chunk_inputs(const kkt_gdn_tensors *family, const kkt_values *problem,
                                     int64_t chunk, int input_case, uint64_t seed,
                                     kkt_host_tensors *inputs, kkt_error *err) {
    kkt_tensor list[KKT_TENSORS_MAX];
    kkt_gdn_list(family, problem, chunk, list);
    kkt_status status = KKT_OK;
    for (int i = 0; i < family->inputs && status == KKT_OK; i++) {
        if (!of_chunk(family->what[i]))
            continue;
        free(inputs->t[i].data);
        inputs->t[i].data = NULL;
        inputs->t[i].tensor = list[i];
        status = allocate(&inputs->t[i], err);
    }
    if (status != KKT_OK)
        return status;
    kkt_host_tensor *h = find(family, inputs, KKT_GDN_TENSOR_H);
    if (h)
        fill_states(stream(seed, input_case, KKT_GDN_TENSOR_H), h);
    chunk_work x = {
        .shape = kkt_gdn_shape(problem),
        .chunk = chunk,
        .seed = stream(seed, input_case, KKT_GDN_TENSOR_U),
        .k = find(family, inputs, KKT_GDN_TENSOR_K),
        .g = find(family, inputs, KKT_GDN_TENSOR_G),
        .beta = find(family, inputs, KKT_GDN_TENSOR_BETA),
        .t = find(family, inputs, KKT_GDN_TENSOR_T),
        .w = find(family, inputs, KKT_GDN_TENSOR_W),
        .u = find(family, inputs, KKT_GDN_TENSOR_U),
    };
    if (!x.t && !x.w)
        return KKT_OK;
    x.t_beta = x.t && problem->v[KKT_GDN_T_FORM] == KKT_GDN_T_BETA;
    kkt_host_tensor beta = {.tensor = {.name = "beta",
                                       .dtype = KKT_FP32,
                                       .rank = 3,
                                       .dims = {x.shape.batch, x.shape.length, x.shape.heads_v}}};
    if (!x.beta) {
        status = allocate(&beta, err);
        if (status == KKT_OK)
            status = fill(&x.shape, KKT_GDN_TENSOR_BETA, input_case, seed, &beta, err);
        x.beta = &beta;
    }
    if (status == KKT_OK)
        status = make_from_t(&x, inputs, err);
    free(beta.data);
    return status;
}

kkt_status kkt_gdn_check_inputs(const kkt_values *problem, kkt_host_tensors *inputs,
                                kkt_error *err) {
    const kkt_shape shape = kkt_gdn_shape(problem);
    return kkt_check_all(&shape, inputs, err);
}
