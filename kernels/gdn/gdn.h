/* The families of the Gated DeltaNet forward. Per token, with the state S (dk x dv) of a value
 * head,
 *
 *     S = exp(g) S;  e = beta (v - S^T k);  S = S + k e^T;  o = dk^-1/2 S^T q
 *
 * and per chunk, with G the inclusive sum of g inside the chunk, Gamma_ij = exp(G_i - G_j) for
 * i >= j, and T = (I + L)^-1 of kkt_solve:
 *
 *     V'  = T diag(beta) (V - diag(e^G) K S)              = U - W S
 *     o_i = dk^-1/2 (e^{G_i} S^T q_i + sum_{j <= i} Gamma_ij (q_i . k_j) v'_j)
 *     S+  = e^{G_last} S + sum_j e^{G_last - G_j} k_j v'_j^T
 *
 * `last` is the last valid row. A sequence of no tokens leaves ht = h0.
 *
 *     family       reads                            writes
 *     gdn_fwd      q k v beta g h0 cu_seqlens       o ht
 *     gdn_fwd_t    q k v beta g t h0 cu_seqlens     o ht
 *     gdn_wu       k v beta g t cu_seqlens          w u
 *     gdn_state    k w u g h0 cu_seqlens            h v_new ht
 *     gdn_output   q k v_new h g cu_seqlens         o
 *
 * where W = T diag(beta e^G) K and U = T diag(beta) V.
 *
 * Tensors as in kernels/common/shape.h, and
 *     w      [batch, length, heads_v, dk]      dtype
 *     u      [batch, length, heads_v, dv]      dtype
 *     v_new  [batch, length, heads_v, dv]      dtype: V'
 *     h      [slots, heads_v, dk, dv]          dtype: S before each chunk
 * Without h0 the state begins at 0. Where there is one sequence, h has a slot a chunk, batch entry
 * by batch entry. Where there are more, sequence n owns the slots from start(n) / chunk + n up to
 * start(n + 1) / chunk + n + 1: enough for its chunks without looking at other lengths; what it
 * does not need is 0.
 *
 * In every variant the first parameter is the chunk. */
#ifndef KKT_KERNELS_GDN_H
#define KKT_KERNELS_GDN_H

#include "kernels/common/inputs.h"
#include "kernels/kernel.h"
#include "model/traffic.h"

/* Indices of the problem keys in kkt_values.v. */
enum {
    KKT_GDN_BATCH,
    KKT_GDN_SEQUENCES, /* above 1: batch is 1 and cu_seqlens says where each begins */
    KKT_GDN_TOKENS,    /* in total, a multiple of the batch */
    KKT_GDN_HEADS_K,
    KKT_GDN_HEADS_V,
    KKT_GDN_DK,
    KKT_GDN_DV,
    KKT_GDN_DTYPE, /* KKT_BF16 or KKT_FP16 */
    KKT_GDN_GATED,
    KKT_GDN_KEYS,                  /* of families that do not read t */
    KKT_GDN_T_FORM = KKT_GDN_KEYS, /* enum kkt_gdn_t_form */
    KKT_GDN_T_KEYS                 /* of families that do */
};

/* What the tensor t holds. T diag(beta) spares its reader beta. */
enum kkt_gdn_t_form { KKT_GDN_T, KKT_GDN_T_BETA };

/* Index of the chunk in the kkt_values.v of every variant's configuration. */
enum { KKT_GDN_CHUNK = 0 };

/* ---- tensors: indices as plans and regions name them ---- */

enum {
    KKT_FWD_Q,
    KKT_FWD_K,
    KKT_FWD_V,
    KKT_FWD_BETA,
    KKT_FWD_G,
    KKT_FWD_H0,
    KKT_FWD_CU_SEQLENS,
    KKT_FWD_O,
    KKT_FWD_HT,
    KKT_FWD_TENSORS
};
enum {
    KKT_FWD_T_Q,
    KKT_FWD_T_K,
    KKT_FWD_T_V,
    KKT_FWD_T_BETA,
    KKT_FWD_T_G,
    KKT_FWD_T_T,
    KKT_FWD_T_H0,
    KKT_FWD_T_CU_SEQLENS,
    KKT_FWD_T_O,
    KKT_FWD_T_HT,
    KKT_FWD_T_TENSORS
};
enum {
    KKT_WU_K,
    KKT_WU_V,
    KKT_WU_BETA,
    KKT_WU_G,
    KKT_WU_T,
    KKT_WU_CU_SEQLENS,
    KKT_WU_W,
    KKT_WU_U,
    KKT_WU_TENSORS
};
enum {
    KKT_STATE_K,
    KKT_STATE_W,
    KKT_STATE_U,
    KKT_STATE_G,
    KKT_STATE_H0,
    KKT_STATE_CU_SEQLENS,
    KKT_STATE_H,
    KKT_STATE_V_NEW,
    KKT_STATE_HT,
    KKT_STATE_TENSORS
};
enum {
    KKT_OUTPUT_Q,
    KKT_OUTPUT_K,
    KKT_OUTPUT_V_NEW,
    KKT_OUTPUT_H,
    KKT_OUTPUT_G,
    KKT_OUTPUT_CU_SEQLENS,
    KKT_OUTPUT_O,
    KKT_OUTPUT_TENSORS
};

/* What a tensor is, whatever its index in a family. */
enum kkt_gdn_tensor {
    KKT_GDN_TENSOR_Q,
    KKT_GDN_TENSOR_K,
    KKT_GDN_TENSOR_V,
    KKT_GDN_TENSOR_BETA,
    KKT_GDN_TENSOR_G,
    KKT_GDN_TENSOR_T,
    KKT_GDN_TENSOR_W,
    KKT_GDN_TENSOR_U,
    KKT_GDN_TENSOR_H,
    KKT_GDN_TENSOR_V_NEW,
    KKT_GDN_TENSOR_H0,
    KKT_GDN_TENSOR_CU_SEQLENS,
    KKT_GDN_TENSOR_O,
    KKT_GDN_TENSOR_HT
};

/* A family's tensors: `count` of them, the first `inputs` read and the others written. */
typedef struct kkt_gdn_tensors {
    int inputs, count;
    enum kkt_gdn_tensor what[KKT_TENSORS_MAX];
} kkt_gdn_tensors;

/* ---- problems (problem.c) ---- */

extern const kkt_param kkt_gdn_keys[KKT_GDN_T_KEYS];
extern const char *const kkt_gdn_default_problems[]; /* NULL-terminated */

kkt_shape kkt_gdn_shape(const kkt_values *problem);
/* The same for the traffic formulas. */
kkt_attention kkt_gdn_attention(const kkt_values *problem);
bool kkt_gdn_problem_valid(const kkt_values *problem, char *reason, size_t size);
bool kkt_gdn_check_problem(const kkt_values *problem, const kkt_values *config, int index,
                           kkt_values *small, int *input_case);
/* Slots of h: see the top of this file. */
int64_t kkt_gdn_slots(const kkt_values *problem, int64_t chunk);
/* The tensors of a family in its order; returns their number. */
int kkt_gdn_list(const kkt_gdn_tensors *family, const kkt_values *problem, int64_t chunk,
                 kkt_tensor *out);

/* ---- inputs (inputs.c) ---- */

/* h0 is there but for zero_gate inputs. What depends on the chunk has no data yet. */
kkt_status kkt_gdn_make_inputs(const kkt_gdn_tensors *family, const kkt_values *problem,
                               int input_case, uint64_t seed, kkt_host_tensors *inputs,
                               kkt_error *err);
/* t, w and u of the family's k and g, and states h of about the right size. */
kkt_status kkt_gdn_make_chunk_inputs(const kkt_gdn_tensors *family, const kkt_values *problem,
                                     int64_t chunk, int input_case, uint64_t seed,
                                     kkt_host_tensors *inputs, kkt_error *err);
kkt_status kkt_gdn_check_inputs(const kkt_values *problem, kkt_host_tensors *inputs,
                                kkt_error *err);

/* ---- references ---- */

/* Columns of dv that one part of a recurrence has: columns do not depend on each other. */
enum { KKT_GDN_COLUMNS = 16 };

/* Where a part of a recurrence lies: a sequence, a value head and a group of columns. */
typedef struct kkt_gdn_part {
    int64_t batch, sequence; /* within the batch entry */
    int64_t number;          /* of the sequence, over all batch entries: index in h0 and ht */
    int64_t token, rows;     /* first token within the batch entry; tokens */
    int64_t head, column;
} kkt_gdn_part;

int64_t kkt_gdn_part_count(const kkt_values *problem);
/* False past the end. */
bool kkt_gdn_part_at(const kkt_values *problem, kkt_host_tensors *inputs, int64_t part,
                     kkt_gdn_part *out);
/* The region of a part in o, u or v_new, and in h0 or ht. */
kkt_region kkt_gdn_rows_region(const kkt_values *problem, const kkt_gdn_part *part, int tensor);
kkt_region kkt_gdn_state_region(const kkt_values *problem, const kkt_gdn_part *part, int tensor);
/* First slot of h of a sequence, and how many it owns. */
int64_t kkt_gdn_slot_range(const kkt_values *problem, int64_t chunk, kkt_host_tensors *inputs,
                           const kkt_gdn_part *part, int64_t *count);

/* recurrence.c: parts of gdn_fwd and gdn_fwd_t (o, then ht), by the recurrence over tokens. Tensors
 * are found by name; t is not looked at. */
int kkt_gdn_recurrence_regions(const kkt_values *problem, kkt_host_tensors *inputs, int64_t part,
                               int tensor_o, int tensor_ht, kkt_region *out);
kkt_status kkt_gdn_recurrence(const kkt_values *problem, kkt_host_tensors *inputs, int64_t part,
                              double *out, size_t size, kkt_error *err);
/* chunk_reference.c: one function a family, as kernels/kernel.h wants them. */
kkt_status kkt_gdn_wu_reference(const kkt_values *problem, const kkt_values *config,
                                kkt_host_tensors *inputs, int64_t part, double *out, size_t size,
                                kkt_error *err);
kkt_status kkt_gdn_state_reference(const kkt_values *problem, const kkt_values *config,
                                   kkt_host_tensors *inputs, int64_t part, double *out, size_t size,
                                   kkt_error *err);
kkt_status kkt_gdn_output_reference(const kkt_values *problem, const kkt_values *config,
                                    kkt_host_tensors *inputs, int64_t part, double *out,
                                    size_t size, kkt_error *err);

/* ---- judging (check.c) ---- */

double kkt_gdn_tolerance(const kkt_values *problem, const kkt_values *config, int input_case);
void kkt_gdn_score(const kkt_values *problem, const kkt_region *region, const double *expected,
                   const double *actual, kkt_score *score);

/* ---- what variants share ---- */

/* Chunks of 16, 32, 64 and 128 tokens as rows of a table: 0 to 3. What lies between two is the next
 * larger one's, what is larger the last one's. */
enum { KKT_GDN_CHUNKS = 4 };
int kkt_gdn_chunk_index(int64_t chunk);
/* False with the reason where the architecture lacks what all of them use: cp.async, and mma.sync
 * of m16n8k16 in bf16. */
bool kkt_gdn_has_tensor_copies(const kkt_arch *arch, char *reason, size_t size);
/* False with the reason where `block_dv` does not divide dv. */
bool kkt_gdn_block_dv_fits(const kkt_values *problem, int64_t block_dv, char *reason, size_t size);
/* A table of fp32 in the registers of `role`. */
void kkt_gdn_register_table(kkt_footprint *fp, const char *name, int64_t rows, int64_t columns,
                            int role);
/* Says that a thread of the role takes so many registers in all: what is beyond its tables, which
 * are to be listed before, is in flight. */
void kkt_gdn_registers_taken(kkt_footprint *fp, int role, double taken);
/* A tile in shared memory, `stages` copies of it. */
void kkt_gdn_shared_tile(kkt_footprint *fp, const char *name, int64_t rows, int64_t columns,
                         int element_bytes, int64_t stages);
/* -D options of what is compiled in: KKT_DK, KKT_DV, KKT_DTYPE, KKT_GATED, and KKT_SMEM_BYTES. */
void kkt_gdn_defines(const kkt_values *problem, const kkt_footprint *footprint, kkt_text *out);
/* Arguments of a launch, in the order they are added. */
void kkt_gdn_add_tensor(kkt_launch *launch, int tensor);
void kkt_gdn_add_i32(kkt_launch *launch, int64_t value);
void kkt_gdn_add_i64(kkt_launch *launch, int64_t value);
void kkt_gdn_add_f32(kkt_launch *launch, double value);

#endif
