/* What the styles of gemv share: their parameters, constraints and footprint. */
#ifndef KKT_KERNELS_GEMV_SPACE_H
#define KKT_KERNELS_GEMV_SPACE_H

#include "kernels/gemv/gemv.h"

/* Indices of the parameters in kkt_values.v; the fragment style has those before SPLIT_K. */
enum {
    KKT_GEMV_ROWS_PER_BLOCK,
    KKT_GEMV_ROW_THREADS,
    KKT_GEMV_THREADS,
    KKT_GEMV_VEC,
    KKT_GEMV_UNROLL,
    KKT_GEMV_X_PLACE, /* enum kkt_gemv_x */
    KKT_GEMV_KEEP,
    KKT_GEMV_REDUCE, /* enum kkt_gemv_reduce */
    KKT_GEMV_MIN_BLOCKS,
    KKT_GEMV_PARAMS,
    KKT_GEMV_SPLIT_K = KKT_GEMV_PARAMS,
    KKT_GEMV_SPLIT_PARAMS
};

enum kkt_gemv_x { KKT_GEMV_X_GLOBAL, KKT_GEMV_X_SHARED };
enum kkt_gemv_keep { KKT_GEMV_CACHED, KKT_GEMV_STREAM, KKT_GEMV_STREAM_WIDE };
enum kkt_gemv_reduce { KKT_GEMV_REDUCE_END, KKT_GEMV_REDUCE_STEP };

enum { KKT_GEMV_CLAIM_COUNT = 14 };
extern const kkt_claim kkt_gemv_claims[KKT_GEMV_CLAIM_COUNT]; /* claims.c */

extern const kkt_param kkt_gemv_params[KKT_GEMV_SPLIT_PARAMS];
extern const char *const kkt_gemv_sources[]; /* headers and gemv.cu, NULL-terminated */

bool kkt_gemv_applicable(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                         char *reason, size_t size);
/* Of the launch that reads A where each row's sum is shared by `splits` blocks, its stretches
 * `span` elements long; sums of `sum_bytes` an element are written. */
void kkt_gemv_footprint(kkt_style_id style, const kkt_values *problem, const kkt_values *config,
                        int64_t splits, int64_t span, int sum_bytes, kkt_footprint *out);
void kkt_gemv_defines(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                      kkt_text *out);
/* That launch: a, x, `sums`, m, k, lda. */
kkt_launch kkt_gemv_launch(const char *entry, const kkt_values *problem, const kkt_values *config,
                           const kkt_footprint *footprint, int64_t splits, int sums);

#endif
