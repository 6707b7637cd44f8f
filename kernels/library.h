/* Calls of library routines as steps of a plan. A routine is named by its library's own name for
 * it; its arguments are the library's, in column-major terms, and travel as a step's arguments in
 * the order of the enums below. tuner/measure/library/ makes the calls. */
#ifndef KKT_KERNELS_LIBRARY_H
#define KKT_KERNELS_LIBRARY_H

#include "kernels/kernel.h"

#define KKT_CUBLAS "cublas"

/* How a library is called beyond what a plan asks for (workspace, mode, heuristics): raised by one
 * with each change of tuner/measure/library/ that makes a call another one. Part of the hash of
 * what calls the library, so that its earlier times are stale. 1 is where counting began. */
int kkt_library_calls_revision(const char *library);

/* Whether cuBLAS multiplies both 16-bit types on an architecture: from sm_80 on. */
bool kkt_call_applicable(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                         char *reason, size_t size);

/* C = op(A) op(B), m x n, summed over k in fp32; op transposes where asked. */
typedef struct kkt_gemm_call {
    bool transpose_a, transpose_b;
    int64_t m, n, k, lda, ldb, ldc; /* elements */
    kkt_dtype dtype, result;        /* of A and B; of C: fp16, bf16 or fp32 */
    int a, b, c;    /* tensors; of cublasGemmBatchedEx tensors of device addresses */
    int64_t batch;  /* cublasGemmBatchedEx: number of products */
    int64_t choice; /* cublasLtMatmul: which answer of its heuristics, from 0; the last where there
                       are fewer */
} kkt_gemm_call;

enum {
    KKT_GEMM_CALL_TRANSPOSE_A,
    KKT_GEMM_CALL_TRANSPOSE_B,
    KKT_GEMM_CALL_M,
    KKT_GEMM_CALL_N,
    KKT_GEMM_CALL_K,
    KKT_GEMM_CALL_LDA,
    KKT_GEMM_CALL_LDB,
    KKT_GEMM_CALL_LDC,
    KKT_GEMM_CALL_DTYPE,
    KKT_GEMM_CALL_RESULT,
    KKT_GEMM_CALL_A,
    KKT_GEMM_CALL_B,
    KKT_GEMM_CALL_C,
    KKT_GEMM_CALL_BATCH,
    KKT_GEMM_CALL_CHOICE,
    KKT_GEMM_CALL_ARGS
};

/* cublasGemmEx, cublasGemmBatchedEx or cublasLtMatmul. */
void kkt_call_gemm(kkt_plan *plan, const char *routine, const kkt_gemm_call *call);

/* y = op(A) x for one matrix of m x n; A, x and y of one 16-bit type, sums in fp32. */
typedef struct kkt_gemv_call {
    bool transpose;
    int64_t m, n, lda;
    kkt_dtype dtype; /* fp16 or bf16 */
    int a, x, y;     /* tensors */
} kkt_gemv_call;

enum {
    KKT_GEMV_CALL_TRANSPOSE,
    KKT_GEMV_CALL_M,
    KKT_GEMV_CALL_N,
    KKT_GEMV_CALL_LDA,
    KKT_GEMV_CALL_A,
    KKT_GEMV_CALL_X,
    KKT_GEMV_CALL_Y,
    KKT_GEMV_CALL_ARGS
};

/* cublasHSHgemvStridedBatched for fp16, cublasTSTgemvStridedBatched for bf16; a batch of one. */
void kkt_call_gemv(kkt_plan *plan, const kkt_gemv_call *call);

/* In place B = A^-1 B (left) or B A^-1 (right) for n x n fp32 triangles A with a unit diagonal and
 * as large matrices B, `batch` of them. */
typedef struct kkt_trsm_call {
    bool right, lower, transpose;
    int64_t n, lda, ldb, batch;
    int a, b; /* tensors of device addresses */
} kkt_trsm_call;

enum {
    KKT_TRSM_CALL_RIGHT,
    KKT_TRSM_CALL_LOWER,
    KKT_TRSM_CALL_TRANSPOSE,
    KKT_TRSM_CALL_N,
    KKT_TRSM_CALL_LDA,
    KKT_TRSM_CALL_LDB,
    KKT_TRSM_CALL_BATCH,
    KKT_TRSM_CALL_A,
    KKT_TRSM_CALL_B,
    KKT_TRSM_CALL_ARGS
};

/* cublasStrsmBatched. */
void kkt_call_trsm(kkt_plan *plan, const kkt_trsm_call *call);

#endif
