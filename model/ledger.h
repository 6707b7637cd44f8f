/* The chunk-level ledger: what inverting a unit lower-triangular C x C matrix costs, and how that
 * weighs against the rest of a chunk's work, per token and value head.
 * Formulas: docs/model.md, sections 1 and 2. */
#ifndef KKT_MODEL_LEDGER_H
#define KKT_MODEL_LEDGER_H

#include <stdint.h>

#include "base/error.h"

#define KKT_LEDGER_CHUNK_MAX 4096
#define KKT_LEDGER_DIM_MAX 65536

/* FMA count and dependent steps of one inverse; `chunk` / `base` is a power of two. */
int64_t kkt_inverse_fma_row(int64_t n);                         /* n (n-1) (n-2) / 6 */
int64_t kkt_inverse_fma_recursive(int64_t chunk, int64_t base); /* halves down to base */
int64_t kkt_inverse_fma_flat(int64_t chunk, int64_t base);      /* block forward substitution */
int64_t kkt_inverse_chain_row(int64_t n);
int64_t kkt_inverse_chain_recursive(int64_t chunk, int64_t base);
int64_t kkt_inverse_chain_flat(int64_t chunk, int64_t base);
/* Halvings from chunk down to base: log2(chunk / base); 0 where chunk <= base. */
int64_t kkt_inverse_levels(int64_t chunk, int64_t base);

typedef struct kkt_ledger {
    int64_t chunk, base, dk, dv;
    int64_t chain_row, chain_recursive, chain_flat; /* dependent steps */
    int64_t fma_row, fma_recursive, fma_flat;       /* of one inverse */
    int64_t recursion_levels, diagonal_blocks, coupling_gemm_pairs;
    double fma_inverse_per_token; /* recursive */
    /* The products around the inverse, per token and value head: as the article counts them
     * (Q K^T, A V, Q S, state update) and in full (with K S, T W and K K^T). */
    int64_t fma_main_per_token_seed, fma_main_per_token_full;
    double inverse_share_seed, inverse_share_full; /* inverse / (inverse + main) */
    double state_bytes_per_token;                  /* where the state goes through HBM each chunk */
    int64_t t_write_bytes_per_token;               /* T written back once */
    int64_t table_fp32_bytes;                      /* one C x C fp32 table */
} kkt_ledger;

/* The row of one chunk and base; `element_bytes` of q, k, v and T. KKT_ERR_INPUT where a value is
 * out of range (chunk 1 to 4096, base 1 to chunk, dk and dv 1 to 65536) or chunk / base is no
 * power of two. */
kkt_status kkt_ledger_compute(int64_t chunk, int64_t base, int64_t dk, int64_t dv,
                              int element_bytes, kkt_ledger *out, kkt_error *err);
/* Registers a thread that one C x C fp32 table costs when `threads` threads share it. */
double kkt_ledger_table_registers(int64_t chunk, int threads);

#endif
