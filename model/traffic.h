/* Bytes through HBM, parallel width of the inverse's stages, GEMM tiles and shared-memory bank
 * conflicts, each exact. Formulas: docs/model.md, sections 1, 4 and 6. */
#ifndef KKT_MODEL_TRAFFIC_H
#define KKT_MODEL_TRAFFIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A problem of chunked linear attention. Sequences are taken to be of equal length. */
typedef struct kkt_attention {
    int64_t tokens;    /* over all sequences */
    int64_t sequences; /* at least 1 */
    int64_t heads_k, heads_v, dk, dv;
    int element_bytes; /* of q, k, v, o and T; beta, g and the state are fp32 */
    bool gated;
} kkt_attention;

/* Chunks over all sequences: a sequence's last chunk may be partial and costs a whole one. */
int64_t kkt_attention_chunks(const kkt_attention *problem, int64_t chunk);
/* K, beta (and g) in, T out; K is counted once. */
int64_t kkt_traffic_solve_bytes(const kkt_attention *problem, int64_t chunk);
/* K K^T of every value head and the recursive inverse. */
int64_t kkt_traffic_solve_flop(const kkt_attention *problem, int64_t chunk, int64_t base);
/* Fused forward: q, k, v, beta, g in, o out, the state in and out once a sequence. */
int64_t kkt_traffic_forward_bytes(const kkt_attention *problem);
/* The same with T written by a solver and read back, the state staying on chip. */
int64_t kkt_traffic_forward_t_bytes(const kkt_attention *problem, int64_t chunk);
/* What one kernel moves that reads T (`t_beta`: T diag(beta), without beta) and computes o and the
 * outgoing state. */
int64_t kkt_traffic_forward_given_t_bytes(const kkt_attention *problem, int64_t chunk, bool t_beta);
/* The kernels between which W, U, V' and the state before each chunk go through HBM: k, v, beta, g
 * and T to W and U; k, W, U, g and the state to the states, V' and the outgoing state; q, k, V',
 * the states and g to o. */
int64_t kkt_traffic_wu_bytes(const kkt_attention *problem, int64_t chunk, bool t_beta);
int64_t kkt_traffic_state_bytes(const kkt_attention *problem, int64_t chunk);
int64_t kkt_traffic_output_bytes(const kkt_attention *problem, int64_t chunk);
double kkt_traffic_forward_flop(const kkt_attention *problem, int64_t chunk, int64_t base);

/* Stages of the recursive inverse, in order: all diagonal blocks by substitution, then one
 * coupling stage a level. */
typedef struct kkt_stage {
    bool coupling;   /* else substitution */
    int64_t depth;   /* dependent steps */
    int64_t tasks;   /* independent pieces */
    int64_t outputs; /* elements that can be computed at the same time */
} kkt_stage;

#define KKT_STAGES_MAX 16

/* Fills at most KKT_STAGES_MAX stages; returns their number. */
int kkt_stage_widths(int64_t chunk, int64_t base, kkt_stage *out);

/* A GEMM tile bm x bn x bk: operands in fragments (registers) or in a shared ring of `stages`. */
typedef struct kkt_gemm_tile {
    int64_t bm, bn, bk;
    int threads, stages;
    bool operands_in_registers;
} kkt_gemm_tile;

double kkt_gemm_accumulator_registers(const kkt_gemm_tile *tile); /* fp32, a thread */
double kkt_gemm_operand_registers(const kkt_gemm_tile *tile, int element_bytes);
int64_t kkt_gemm_smem_bytes(const kkt_gemm_tile *tile, int element_bytes);
/* The tiles that the model's tables show. */
const kkt_gemm_tile *kkt_gemm_tiles(size_t *count);

/* Passes that one warp's access of 4-byte words takes: the most distinct words in one bank. */
int kkt_bank_wavefronts(const int64_t word[32], int lanes);
/* Substitution with blocks of base rows + block_pad of padding: lane (j, i) touches word i of a
 * row in block j. `offset` is the distance of two blocks in words. */
int kkt_bank_substitution(int64_t base, int64_t block_pad, int64_t *offset);
/* Wavefronts of writing a base x base block transposed with rows `row_stride` words apart. */
int kkt_bank_transposed_store(int64_t base, int64_t row_stride);

#endif
