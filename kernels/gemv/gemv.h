/* y = A x: the matrix times a vector, fp16 or bf16 in and out, sums in fp32. Every element of A is
 * used once, so that the time is that of reading it.
 *
 *     layout n   a [m, lda]   y_i = sum_j a[i, j] x_j      columns from k on are padding
 *     layout t   a [k, lda]   y_i = sum_j a[j, i] x_j      columns from m on are padding
 *     x [k], y [m]; all of the problem's dtype, row-major
 *
 * lda 0 stands for rows without padding. Nothing is asked of m, k and lda: rows of A may begin at
 * any element, but A and x as a whole at a multiple of 16 bytes. Padding is never read into a sum;
 * it may hold anything, NaN included. */
#ifndef KKT_KERNELS_GEMV_H
#define KKT_KERNELS_GEMV_H

#include "kernels/kernel.h"

/* Indices of the problem keys in kkt_values.v. */
enum {
    KKT_GEMV_M,
    KKT_GEMV_K,
    KKT_GEMV_LDA, /* 0: tight */
    KKT_GEMV_DTYPE,
    KKT_GEMV_LAYOUT, /* enum kkt_gemv_layout */
    KKT_GEMV_KEYS
};

enum kkt_gemv_layout { KKT_GEMV_N, KKT_GEMV_T };

/* Indices of the tensors; `partials` is there in the materialized style alone. */
enum { KKT_GEMV_A, KKT_GEMV_X, KKT_GEMV_Y, KKT_GEMV_TENSORS, KKT_GEMV_PARTIALS = KKT_GEMV_TENSORS };

/* Input cases. */
enum {
    KKT_GEMV_RANDOM, /* timing */
    KKT_GEMV_SPARSE, /* small integers: the result is exact in every dtype */
    KKT_GEMV_CANCEL, /* large terms that cancel to a small integer, exactly in fp32 */
    KKT_GEMV_CASES
};

/* ---- problems (problem.c) ---- */

extern const kkt_param kkt_gemv_keys[KKT_GEMV_KEYS];
extern const char *const kkt_gemv_default_problems[]; /* NULL-terminated */

/* Elements from one row of A to the next. */
int64_t kkt_gemv_lda(const kkt_values *problem);
/* lda of no padding becomes 0. */
void kkt_gemv_problem_canonical(kkt_values *problem);
bool kkt_gemv_problem_valid(const kkt_values *problem, char *reason, size_t size);
/* The tensors without workspace; returns KKT_GEMV_TENSORS. */
int kkt_gemv_list(const kkt_values *problem, kkt_tensor *out);
bool kkt_gemv_check_problem(const kkt_values *problem, const kkt_values *config, int index,
                            kkt_values *small, int *input_case);

/* ---- inputs, reference and judging (check.c) ---- */

extern const kkt_input_case kkt_gemv_cases[KKT_GEMV_CASES];

kkt_status kkt_gemv_make_inputs(const kkt_values *problem, int input_case, uint64_t seed,
                                kkt_host_tensors *inputs, kkt_error *err);
kkt_status kkt_gemv_check_inputs(const kkt_values *problem, kkt_host_tensors *inputs,
                                 kkt_error *err);
int64_t kkt_gemv_part_count(const kkt_values *problem, const kkt_values *config,
                            kkt_host_tensors *inputs);
int kkt_gemv_part_regions(const kkt_values *problem, const kkt_values *config,
                          kkt_host_tensors *inputs, int64_t part, kkt_region *out);
kkt_status kkt_gemv_reference(const kkt_values *problem, const kkt_values *config,
                              kkt_host_tensors *inputs, int64_t part, double *out, size_t size,
                              kkt_error *err);
double kkt_gemv_tolerance(const kkt_values *problem, const kkt_values *config, int input_case);
void kkt_gemv_score(const kkt_values *problem, const kkt_region *region, const double *expected,
                    const double *actual, kkt_score *score);

/* ---- variants ---- */

extern const kkt_variant kkt_gemv_fragment, kkt_gemv_materialized, kkt_gemv_library;

#endif
