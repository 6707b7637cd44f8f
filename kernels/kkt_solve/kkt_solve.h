/* The kernel family kkt_solve: T = (I + L)^-1 of every chunk and value head, where
 *     L_ij = beta_i (k_i . k_j) exp(G_i - G_j)   for i > j, else 0,
 * and G is the inclusive cumulative sum of the log decay g inside the chunk (without a gate the
 * exponential is left out). Chunks restart at each sequence.
 *
 * With t_form t_beta it is T diag(beta) instead, column j of T times beta_j: what the step after it
 * multiplies with K and V.
 *
 * Tensors, row-major, last index fastest:
 *     k          [batch, tokens, heads_k, dk]      dtype of the problem
 *     beta       [batch, tokens, heads_v]          fp32
 *     g          [batch, tokens, heads_v]          fp32, <= 0; only where the problem is gated
 *     cu_seqlens [sequences + 1]                   i32, batch 1; may be absent where sequences is 1
 *     t          [batch, tokens, heads_v, chunk]   dtype of the problem, the output
 * Row t of a sequence holds its row inside the chunk; columns past the sequence's end are 0. The
 * key head of a value head hv is hv / (heads_v / heads_k).
 *
 * What the family's files share: kkt_solve.c (descriptor, space, footprint, plan), inputs.c,
 * reference.c and check.c (inputs, double-precision reference, scoring). */
#ifndef KKT_KERNELS_KKT_SOLVE_H
#define KKT_KERNELS_KKT_SOLVE_H

#include "kernels/common/inputs.h"
#include "kernels/kernel.h"

/* Indices of the problem keys in kkt_values.v. */
enum {
    KKT_SOLVE_BATCH,
    KKT_SOLVE_SEQUENCES, /* above 1: batch is 1 and cu_seqlens says where each begins */
    KKT_SOLVE_TOKENS,    /* in total, a multiple of the batch */
    KKT_SOLVE_HEADS_K,
    KKT_SOLVE_HEADS_V,
    KKT_SOLVE_DK,
    KKT_SOLVE_DTYPE, /* KKT_BF16 or KKT_FP16 */
    KKT_SOLVE_GATED,
    KKT_SOLVE_T_FORM, /* enum kkt_solve_t_form */
    KKT_SOLVE_PROBLEM_KEYS
};

/* Indices of the parameters in kkt_values.v. Those that only one way through the kernel has come
 * right after the parameter that decides the way, so that a walk passes them by at once. */
enum {
    KKT_SOLVE_CHUNK,
    KKT_SOLVE_INVERSE, /* enum kkt_solve_inverse */
    KKT_SOLVE_BASE,
    KKT_SOLVE_COUPLE, /* enum kkt_solve_couple; decides the way */
    /* couplings through shared memory */
    KKT_SOLVE_BLOCK_PAD,
    KKT_SOLVE_ROW_STRIDE, /* words from row to row of a 16-column block; others are padded alike */
    KKT_SOLVE_TRANSPOSE,
    KKT_SOLVE_NEGATE_EARLY,
    KKT_SOLVE_ASSEMBLE_FUSED,
    /* couplings in registers */
    KKT_SOLVE_MMA,   /* enum kkt_solve_mma */
    KKT_SOLVE_STORE, /* enum kkt_solve_store */
    KKT_SOLVE_SHARE, /* enum kkt_solve_share */
    KKT_SOLVE_WARPS_PER_HEAD,
    KKT_SOLVE_CHUNKS_PER_BLOCK,
    KKT_SOLVE_MIN_BLOCKS, /* resident, asked of the compiler; 0: none */
    KKT_SOLVE_CARVEOUT,   /* percent of the SM's shared memory at most; 0: the driver's choice */
    KKT_SOLVE_PERSISTENT, /* 1: min_blocks an SM, each with its share of the work */
    /* both */
    KKT_SOLVE_THREADS,
    KKT_SOLVE_HEADS_PER_BLOCK,
    KKT_SOLVE_KLOAD, /* enum kkt_solve_kload */
    KKT_SOLVE_PARAMS
};

enum kkt_solve_t_form { KKT_T_PLAIN, KKT_T_BETA };

enum kkt_solve_inverse {
    KKT_INVERSE_ROW,
    KKT_INVERSE_RECURSIVE,
    KKT_INVERSE_FLAT,
    KKT_INVERSE_NEUMANN
};
enum kkt_solve_couple { KKT_COUPLE_FP32, KKT_COUPLE_TF32, KKT_COUPLE_FP16, KKT_COUPLE_BF16X3 };
enum kkt_solve_kload { KKT_KLOAD_LDG, KKT_KLOAD_CP_ASYNC, KKT_KLOAD_TMA };
enum kkt_solve_mma { KKT_MMA_SYNC, KKT_MMA_WGMMA };
enum kkt_solve_share { KKT_SHARE_KEY_HEAD, KKT_SHARE_VALUE_HEAD };
enum kkt_solve_store { KKT_STORE_DIRECT, KKT_STORE_STAGED, KKT_STORE_TMA, KKT_STORE_TMA_HALVES };

/* Whether couplings stay in registers (register_path.cuh) or go through shared memory. */
static inline bool kkt_solve_in_registers(const int64_t *config) {
    return config[KKT_SOLVE_COUPLE] >= KKT_COUPLE_FP16;
}

/* Indices of the tensors kkt_solve_tensors lists. All five are always listed, in this order, so
 * that plans and regions can name them: without a gate g is optional and absent; cu_seqlens is
 * i32 and optional where sequences is 1 (absent: each batch entry is one sequence). */
enum {
    KKT_SOLVE_TENSOR_K,
    KKT_SOLVE_TENSOR_BETA,
    KKT_SOLVE_TENSOR_G,
    KKT_SOLVE_TENSOR_CU_SEQLENS,
    KKT_SOLVE_TENSOR_T,
    KKT_SOLVE_TENSORS
};

/* The descriptor's functions; kernels/kernel.h says what each must do. inputs.c, check.c and
 * reference.c define them, kkt_solve.c lists them. */
kkt_shape kkt_solve_shape(const kkt_values *problem); /* dv is 0 */
bool kkt_solve_problem_valid(const kkt_values *problem, char *reason, size_t size);
int kkt_solve_tensors(const kkt_values *problem, const kkt_values *config, kkt_tensor *out);
bool kkt_solve_check_problem(const kkt_values *problem, const kkt_values *config, int index,
                             kkt_values *small, int *input_case);
kkt_status kkt_solve_make_inputs(const kkt_values *problem, int input_case, uint64_t seed,
                                 kkt_host_tensors *inputs, kkt_error *err);
kkt_status kkt_solve_check_inputs(const kkt_values *problem, kkt_host_tensors *inputs,
                                  kkt_error *err);
int64_t kkt_solve_part_count(const kkt_values *problem, const kkt_values *config,
                             kkt_host_tensors *inputs);
int kkt_solve_part_regions(const kkt_values *problem, const kkt_values *config,
                           kkt_host_tensors *inputs, int64_t part, kkt_region *out);
kkt_status kkt_solve_reference(const kkt_values *problem, const kkt_values *config,
                               kkt_host_tensors *inputs, int64_t part, double *out, size_t size,
                               kkt_error *err);
void kkt_solve_score(const kkt_values *problem, const kkt_region *region, const double *expected,
                     const double *actual, kkt_score *score);
void kkt_solve_condition(const kkt_values *problem, const kkt_values *config,
                         kkt_host_tensors *inputs, int64_t part, const double *reference,
                         double *cond_estimate, double *growth_bound);
void kkt_solve_advice(const kkt_values *problem, const kkt_host_tensors *inputs, char *out,
                      size_t size);
double kkt_solve_tolerance(const kkt_values *problem, const kkt_values *config, int input_case);
double kkt_solve_rounding(const kkt_values *config);
extern const kkt_from_lower kkt_solve_from_lower;

/* In kkt_solve.c: the tables behind the two enums above, for the family's own files and tests. */
extern const kkt_param_table kkt_solve_problem_table;
extern const kkt_param_table kkt_solve_param_table;

/* In claims.c. */
enum { KKT_SOLVE_CLAIM_COUNT = 35 };
extern const kkt_claim kkt_solve_claims[KKT_SOLVE_CLAIM_COUNT];

extern const kkt_kernel kkt_kernel_kkt_solve;

/* Tokens of one batch entry, all its sequences together. */
static inline int64_t kkt_solve_length(const kkt_values *problem) {
    return problem->v[KKT_SOLVE_TOKENS] / problem->v[KKT_SOLVE_BATCH];
}

#endif
