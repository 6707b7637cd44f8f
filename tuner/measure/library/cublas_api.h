/* The part of cuBLAS and cuBLASLt that is called, declared here: their headers are not in the
 * wheels that serve as a toolkit. Values and prototypes are those of cublas_api.h and cublasLt.h of
 * CUDA 13.0, and were the same in CUDA 12; a test holds them against the headers where those are
 * there. Matrices are column-major. */
#ifndef KKT_TUNER_MEASURE_CUBLAS_API_H
#define KKT_TUNER_MEASURE_CUBLAS_API_H

#include <cuda.h>
#include <stddef.h>
#include <stdint.h>

enum { KKT_BLAS_N = 0, KKT_BLAS_T = 1 };         /* cublasOperation_t */
enum { KKT_BLAS_LEFT = 0, KKT_BLAS_RIGHT = 1 };  /* cublasSideMode_t */
enum { KKT_BLAS_LOWER = 0, KKT_BLAS_UPPER = 1 }; /* cublasFillMode_t */
enum { KKT_BLAS_UNIT = 1 };                      /* cublasDiagType_t */
enum { KKT_BLAS_COMPUTE_32F = 68 };  /* cublasComputeType_t: products and sums in fp32 */
enum { KKT_BLAS_GEMM_DEFAULT = -1 }; /* cublasGemmAlgo_t: the library's choice */
enum { KKT_BLAS_R_32F = 0, KKT_BLAS_R_16F = 2, KKT_BLAS_R_16BF = 14 }; /* cudaDataType */
enum { KKT_BLAS_MAJOR = 0, KKT_BLAS_MINOR = 1, KKT_BLAS_PATCH = 2 };   /* libraryPropertyType */
enum { KKT_BLAS_NOT_SUPPORTED = 15 };                                  /* cublasStatus_t */
enum { KKT_LT_DESC_TRANSA = 3, KKT_LT_DESC_TRANSB = 4 };               /* matmul descriptor */
enum { KKT_LT_PREF_MAX_WORKSPACE_BYTES = 1 };                          /* preference */

typedef struct kkt_lt_algo {
    uint64_t data[8];
} kkt_lt_algo;

typedef struct kkt_lt_result { /* cublasLtMatmulHeuristicResult_t */
    kkt_lt_algo algo;
    size_t workspace_bytes;
    int state;
    float waves;
    int reserved[4];
} kkt_lt_result;

/* Functions by their names without the prefix. Handles and descriptors are opaque pointers; every
 * function returns a cublasStatus_t. */
typedef struct kkt_cublas_api {
    int (*create)(void **handle);
    int (*set_stream)(void *handle, CUstream stream);
    int (*set_workspace)(void *handle, void *workspace, size_t bytes);
    int (*property)(int type, int *value);
    const char *(*status_string)(int status);
    int (*gemm_ex)(void *handle, int op_a, int op_b, int m, int n, int k, const void *alpha,
                   const void *a, int a_type, int lda, const void *b, int b_type, int ldb,
                   const void *beta, void *c, int c_type, int ldc, int compute, int algo);
    int (*gemm_batched_ex)(void *handle, int op_a, int op_b, int m, int n, int k, const void *alpha,
                           const void *const *a, int a_type, int lda, const void *const *b,
                           int b_type, int ldb, const void *beta, void *const *c, int c_type,
                           int ldc, int batch, int compute, int algo);
    int (*gemv_fp16)(void *handle, int op, int m, int n, const float *alpha, const void *a, int lda,
                     long long stride_a, const void *x, int x_step, long long stride_x,
                     const float *beta, void *y, int y_step, long long stride_y, int batch);
    int (*gemv_bf16)(void *handle, int op, int m, int n, const float *alpha, const void *a, int lda,
                     long long stride_a, const void *x, int x_step, long long stride_x,
                     const float *beta, void *y, int y_step, long long stride_y, int batch);
    int (*trsm_batched)(void *handle, int side, int fill, int op, int diagonal, int m, int n,
                        const float *alpha, const float *const *a, int lda, float *const *b,
                        int ldb, int batch);
} kkt_cublas_api;

typedef struct kkt_cublaslt_api {
    int (*create)(void **handle);
    int (*desc_create)(void **desc, int compute, int scale_type);
    int (*desc_destroy)(void *desc);
    int (*desc_set)(void *desc, int attribute, const void *value, size_t bytes);
    int (*layout_create)(void **layout, int type, uint64_t rows, uint64_t columns, int64_t ld);
    int (*layout_destroy)(void *layout);
    int (*preference_create)(void **preference);
    int (*preference_destroy)(void *preference);
    int (*preference_set)(void *preference, int attribute, const void *value, size_t bytes);
    int (*heuristic)(void *handle, void *desc, void *a, void *b, void *c, void *d, void *preference,
                     int wanted, kkt_lt_result *results, int *count);
    int (*matmul)(void *handle, void *desc, const void *alpha, const void *a, void *a_layout,
                  const void *b, void *b_layout, const void *beta, const void *c, void *c_layout,
                  void *d, void *d_layout, const kkt_lt_algo *algo, void *workspace, size_t bytes,
                  CUstream stream);
} kkt_cublaslt_api;

#endif
