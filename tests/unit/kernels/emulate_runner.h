/* A runner for the gate that computes kkt_solve with the emulation: outputs live in a guarded,
 * poisoned buffer as they do on a GPU. */
#ifndef KKT_TESTS_EMULATE_RUNNER_H
#define KKT_TESTS_EMULATE_RUNNER_H

#include <stdio.h>

#include "emulate.h"
#include "kernels/kkt_solve/parts.h"
#include "tuner/engine/gate.h"

enum { RUNNER_GUARD = 64 }; /* elements before and after the output */

static inline double runner_load(const kkt_host_tensors *tensors, int tensor, int64_t at) {
    return kkt_dtype_load(tensors->t[tensor].tensor.dtype, tensors->t[tensor].data, (size_t)at);
}

/* I + L of a chunk as a block builds it: rows past the end have key and beta 0. */
static inline void runner_build(const emulate *e, const kkt_values *problem,
                                const kkt_host_tensors *tensors, const kkt_chunk_part *part,
                                matrix *a) {
    const int64_t *v = problem->v;
    const int64_t dk = v[KKT_SOLVE_DK],
                  first = part->batch * kkt_solve_length(problem) + part->token;
    const int64_t head_k = part->head / (v[KKT_SOLVE_HEADS_V] / v[KKT_SOLVE_HEADS_K]);
    const bool gated = v[KKT_SOLVE_GATED] && e->fault != FAULT_UNGATED;
    double decay[EMULATE_MAX] = {0};
    for (int i = 0; i < a->n; i++) {
        const int64_t scalar = (first + i) * v[KKT_SOLVE_HEADS_V] + part->head;
        const bool valid = i < part->rows;
        const double beta = valid ? runner_load(tensors, KKT_SOLVE_TENSOR_BETA, scalar) : 0.0;
        const double gate = valid && gated ? runner_load(tensors, KKT_SOLVE_TENSOR_G, scalar) : 0.0;
        decay[i] = emulate_round(e, (i ? decay[i - 1] : 0.0) + gate);
        for (int j = 0; j < a->n; j++)
            a->v[i][j] = i == j ? 1.0 : 0.0;
        const int last = e->fault == FAULT_DIAGONAL_KEPT ? i + 1 : i;
        for (int j = 0; valid && j < last; j++) {
            double dot = 0.0;
            for (int64_t d = 0; d < dk; d++) {
                const int64_t row_i = ((first + i) * v[KKT_SOLVE_HEADS_K] + head_k) * dk;
                const int64_t row_j = ((first + j) * v[KKT_SOLVE_HEADS_K] + head_k) * dk;
                dot =
                    emulate_round(e, dot + runner_load(tensors, KKT_SOLVE_TENSOR_K, row_i + d) *
                                               runner_load(tensors, KKT_SOLVE_TENSOR_K, row_j + d));
            }
            const double factor = emulate_round(e, exp(emulate_round(e, decay[i] - decay[j])));
            a->v[i][j] = emulate_round(e, emulate_round(e, beta * dot) * factor);
        }
    }
}

static inline void runner_part(const emulate *e, const kkt_values *problem,
                               kkt_host_tensors *tensors, const kkt_chunk_part *part, int chunk,
                               void *out) {
    const kkt_dtype dtype = tensors->t[KKT_SOLVE_TENSOR_T].tensor.dtype;
    const int64_t heads = problem->v[KKT_SOLVE_HEADS_V];
    const int64_t first = part->batch * kkt_solve_length(problem) + part->token;
    matrix *a = calloc(1, sizeof *a);
    a->n = chunk;
    runner_build(e, problem, tensors, part, a);
    emulate_invert(e, a);
    if (e->fault == FAULT_UPPER_NOT_CLEARED) /* what the chunk before left in the buffer */
        a->v[0][chunk - 1] = 0.25;
    for (int i = 0; i < (int)part->rows; i++) {
        for (int j = 0; j < chunk; j++) {
            const bool last = i == (int)part->rows - 1 && j == chunk - 1;
            if (last && e->fault == FAULT_NOT_WRITTEN)
                continue;
            double value = emulate_kept(e, a->v[i][j]);
            if (last && e->fault == FAULT_RACE && e->runs % 2)
                value += 0x1p-9;
            kkt_dtype_store(dtype, out, (size_t)(((first + i) * heads + part->head) * chunk + j),
                            value);
        }
    }
    free(a);
}

static inline bool runner_poisoned(const unsigned char *at, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        if (at[i] != 0xff)
            return false;
    return true;
}

static inline kkt_outcome emulate_run(void *context, const kkt_values *problem,
                                      kkt_host_tensors *tensors, char *reason, size_t size) {
    emulate *e = context;
    kkt_host_tensor *t = &tensors->t[KKT_SOLVE_TENSOR_T];
    const int chunk = (int)t->tensor.dims[3];
    const size_t each = kkt_dtype_bytes(t->tensor.dtype), guard = RUNNER_GUARD * each;
    const size_t bytes = (size_t)kkt_tensor_bytes(&t->tensor);
    unsigned char *buffer = malloc(bytes + 2 * guard);
    memset(buffer, 0xff, bytes + 2 * guard);
    kkt_chunk_part part;
    for (int64_t i = 0; kkt_solve_part_at(problem, chunk, tensors, i, &part); i++)
        runner_part(e, problem, tensors, &part, chunk, buffer + guard);
    if (e->fault == FAULT_GUARD_DAMAGED)
        memset(buffer + guard + bytes, 0, each);
    e->runs++;
    kkt_outcome outcome = KKT_OUTCOME_OK;
    if (!runner_poisoned(buffer, guard) || !runner_poisoned(buffer + guard + bytes, guard)) {
        snprintf(reason, size, "it wrote outside t");
        outcome = KKT_OUTCOME_WRONG_RESULT;
    }
    for (size_t i = 0; outcome == KKT_OUTCOME_OK && i < bytes / each; i++) {
        if (runner_poisoned(buffer + guard + i * each, each)) {
            snprintf(reason, size, "element %zu of t was never written", i);
            outcome = KKT_OUTCOME_WRONG_RESULT;
        }
    }
    memcpy(t->data, buffer + guard, bytes);
    free(buffer);
    return outcome;
}

#endif
