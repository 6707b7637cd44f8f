/* Inputs of chunked linear attention, made by case and seed: the same seed gives the same bytes.
 * And what inputs from outside must satisfy. */
#ifndef KKT_KERNELS_COMMON_INPUTS_H
#define KKT_KERNELS_COMMON_INPUTS_H

#include "kernels/common/shape.h"

/* Rows of kkt_cases in this order. */
enum kkt_case {
    KKT_CASE_RANDOM,       /* unit keys, beta in (0, 1), mild gate: used for timing */
    KKT_CASE_CORRELATED,   /* keys with pairwise correlation 0.9, slow decay */
    KKT_CASE_DUPLICATES,   /* one key repeated, beta = 1 */
    KKT_CASE_ZERO_BETA,    /* beta = 0: T is the identity */
    KKT_CASE_ZERO_GATE,    /* g = 0: the ungated result */
    KKT_CASE_STRONG_GATE,  /* g down to -316 a token */
    KKT_CASE_SUB_DIAGONAL, /* only sub-diagonal blocks nonzero: T's lower left is -L10 */
    KKT_CASE_STEEP_GATE,   /* half of the tokens g = logsigmoid(normal) / 0.01, hundreds; a quarter
                              as random; for a quarter e^g is from 2^-25 to 2^-14, subnormal in
                              fp16 */
    KKT_CASE_GROWTH,       /* row sums of L near 37 at chunk 128, as trained models reach */
    KKT_CASE_LONG_KEYS,    /* one key repeated with |k| = 2: ill-conditioned, never a check */
    KKT_CASE_UNEVEN,       /* random, sequences of random lengths */
    KKT_CASE_COUNT
};

extern const kkt_input_case kkt_cases[KKT_CASE_COUNT];

/* The generator's state for a seed and a case. */
uint64_t kkt_inputs_seed(uint64_t seed, int input_case);
/* The case's keys. KKT_ERR_ENVIRONMENT when memory runs out. */
kkt_status kkt_fill_keys(const kkt_shape *shape, int input_case, uint64_t *state,
                         kkt_host_tensor *k, kkt_error *err);
/* The case's beta and gate, each where the tensor has memory. */
void kkt_fill_scalars(const kkt_shape *shape, int input_case, uint64_t *state,
                      kkt_host_tensor *beta, kkt_host_tensor *g);
/* Equal lengths where the case is RANDOM. Else random cuts; from three sequences on the second one
 * is empty. */
void kkt_fill_boundaries(const kkt_shape *shape, int input_case, uint64_t *state,
                         kkt_host_tensor *cu_seqlens);
/* Independent values, nearly normal, of standard deviation `deviation`. */
void kkt_fill_values(double deviation, uint64_t *state, kkt_host_tensor *tensor);

/* ---- small problems on which candidates are checked ---- */

typedef struct kkt_check_row {
    enum kkt_case input_case;
    int batch, sequences;
    int chunks, rest; /* tokens of a batch entry: chunks * chunk + rest */
    bool gated_only;
} kkt_check_row;

/* Row `index` of those for a problem with or without a gate; NULL past the last. */
const kkt_check_row *kkt_check_row_at(bool gated, int index);

/* ---- inputs from outside ---- */

/* Values that must be finite and, where `gate` is set, at most 0. */
kkt_status kkt_check_values(const kkt_host_tensor *host, bool gate, kkt_error *err);
/* cu_seqlens from 0 to the length, never decreasing. */
kkt_status kkt_check_boundaries(const kkt_shape *shape, const kkt_host_tensor *cu_seqlens,
                                kkt_error *err);
/* All inputs among `inputs`: there, or optional, and as above; "g" is the gate. */
kkt_status kkt_check_all(const kkt_shape *shape, kkt_host_tensors *inputs, kkt_error *err);

#endif
