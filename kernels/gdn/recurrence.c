/* Parts of a recurrence, and the result of gdn_fwd and gdn_fwd_t by the recurrence over tokens: a
 * part is a sequence, a value head and a group of columns of the state, which need no others. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/gdn/gdn.h"

enum { COLUMNS = KKT_GDN_COLUMNS };

int64_t kkt_gdn_part_count(const kkt_values *problem) {
    const kkt_shape s = kkt_gdn_shape(problem);
    return s.batch * s.sequences * s.heads_v * (s.dv / COLUMNS);
}

bool kkt_gdn_part_at(const kkt_values *problem, kkt_host_tensors *inputs, int64_t part,
                     kkt_gdn_part *out) {
    if (part < 0 || part >= kkt_gdn_part_count(problem))
        return false;
    const kkt_shape s = kkt_gdn_shape(problem);
    const kkt_host_tensor *cu = kkt_host_tensor_find(inputs, "cu_seqlens");
    const int64_t groups = s.dv / COLUMNS;
    kkt_gdn_part at = {.number = part / groups / s.heads_v,
                       .head = part / groups % s.heads_v,
                       .column = part % groups * COLUMNS};
    at.batch = at.number / s.sequences;
    at.sequence = at.number % s.sequences;
    at.token = kkt_sequence_start(&s, cu, at.sequence);
    at.rows = kkt_sequence_start(&s, cu, at.sequence + 1) - at.token;
    *out = at;
    return true;
}

kkt_region kkt_gdn_rows_region(const kkt_values *problem, const kkt_gdn_part *part, int tensor) {
    const kkt_shape s = kkt_gdn_shape(problem);
    const int64_t row = part->batch * s.length + part->token;
    return (kkt_region){.tensor = tensor,
                        .offset = (row * s.heads_v + part->head) * s.dv + part->column,
                        .rows = part->rows,
                        .columns = COLUMNS,
                        .row_stride = s.heads_v * s.dv};
}

kkt_region kkt_gdn_state_region(const kkt_values *problem, const kkt_gdn_part *part, int tensor) {
    const kkt_shape s = kkt_gdn_shape(problem);
    return (kkt_region){.tensor = tensor,
                        .offset =
                            (part->number * s.heads_v + part->head) * s.dk * s.dv + part->column,
                        .rows = s.dk,
                        .columns = COLUMNS,
                        .row_stride = s.dv};
}

int kkt_gdn_recurrence_regions(const kkt_values *problem, kkt_host_tensors *inputs, int64_t part,
                               int tensor_o, int tensor_ht, kkt_region *out) {
    kkt_gdn_part at;
    int count = 0;
    if (!kkt_gdn_part_at(problem, inputs, part, &at))
        return 0;
    if (at.rows > 0)
        out[count++] = kkt_gdn_rows_region(problem, &at, tensor_o);
    out[count++] = kkt_gdn_state_region(problem, &at, tensor_ht);
    return count;
}

/* ---- the recurrence ---- */

/* What a part reads, by name, and its place. */
typedef struct walk {
    kkt_shape shape;
    kkt_gdn_part at;
    const kkt_host_tensor *q, *k, *v, *beta, *g, *h0;
} walk;

static double load(const kkt_host_tensor *tensor, int64_t at) {
    return kkt_dtype_load(tensor->tensor.dtype, tensor->data, (size_t)at);
}

static void load_state(const walk *w, double *s) {
    const int64_t dk = w->shape.dk, dv = w->shape.dv;
    const int64_t first = (w->at.number * w->shape.heads_v + w->at.head) * dk * dv + w->at.column;
    memset(s, 0, sizeof *s * (size_t)(dk * COLUMNS));
    for (int64_t d = 0; w->h0 && w->h0->data && d < dk; d++)
        for (int c = 0; c < COLUMNS; c++)
            s[d * COLUMNS + c] = load(w->h0, first + d * dv + c);
}

/* One token: `s` goes from before it to after it. `k` and `q` are room for a row each. */
static void step(const walk *w, int64_t token, double *s, double *k, double *q, double *o) {
    const kkt_shape *shape = &w->shape;
    const int64_t dk = shape->dk, row = w->at.batch * shape->length + w->at.token + token;
    const int64_t key = (row * shape->heads_k + kkt_shape_key_head(shape, w->at.head)) * dk;
    const int64_t scalar = row * shape->heads_v + w->at.head;
    const double decay = shape->gated ? exp(load(w->g, scalar)) : 1.0;
    const double beta = load(w->beta, scalar), scale = 1.0 / sqrt((double)dk);
    double e[COLUMNS] = {0}, sum[COLUMNS] = {0};
    for (int64_t d = 0; d < dk; d++) {
        k[d] = load(w->k, key + d);
        q[d] = load(w->q, key + d) * scale;
    }
    for (int64_t d = 0; d < dk; d++) {
        double *at = s + d * COLUMNS;
        for (int c = 0; c < COLUMNS; c++) {
            at[c] *= decay;
            e[c] += at[c] * k[d];
        }
    }
    for (int c = 0; c < COLUMNS; c++)
        e[c] = beta * (load(w->v, scalar * shape->dv + w->at.column + c) - e[c]);
    for (int64_t d = 0; d < dk; d++) {
        double *at = s + d * COLUMNS;
        for (int c = 0; c < COLUMNS; c++) {
            at[c] += k[d] * e[c];
            sum[c] += at[c] * q[d];
        }
    }
    memcpy(o, sum, sizeof sum);
}

kkt_status kkt_gdn_recurrence(const kkt_values *problem, kkt_host_tensors *inputs, int64_t part,
                              double *out, size_t size, kkt_error *err) {
    walk w = {
        .shape = kkt_gdn_shape(problem),
        .q = kkt_host_tensor_find(inputs, "q"),
        .k = kkt_host_tensor_find(inputs, "k"),
        .v = kkt_host_tensor_find(inputs, "v"),
        .beta = kkt_host_tensor_find(inputs, "beta"),
        .g = kkt_host_tensor_find(inputs, "g"),
        .h0 = kkt_host_tensor_find(inputs, "h0"),
    };
    const int64_t dk = w.shape.dk;
    if (!kkt_gdn_part_at(problem, inputs, part, &w.at))
        return kkt_fail(err, KKT_ERR_INPUT, 0, "there is no part %lld", (long long)part);
    if (size < (size_t)((w.at.rows + dk) * COLUMNS))
        return kkt_fail(err, KKT_ERR_INPUT, 0, "room for %zu values, %lld needed", size,
                        (long long)((w.at.rows + dk) * COLUMNS));
    double *s = out + w.at.rows * COLUMNS; /* ht is the last state */
    double *rows = calloc((size_t)(2 * dk), sizeof *rows);
    if (!rows)
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "out of memory for the reference");
    load_state(&w, s);
    for (int64_t t = 0; t < w.at.rows; t++)
        step(&w, t, s, rows, rows + dk, out + t * COLUMNS);
    free(rows);
    return KKT_OK;
}
