/* The declarations of cuBLAS that the program brings along, against the library's own headers where
 * these are installed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tuner/measure/library/cublas_api.h"

#if __has_include(<cublas_v2.h>) && __has_include(<cublasLt.h>)
#include <cublasLt.h>
#include <cublas_v2.h>

static const struct {
    const char *what;
    long long ours, theirs;
} values[] = {
    {"N", KKT_BLAS_N, CUBLAS_OP_N},
    {"T", KKT_BLAS_T, CUBLAS_OP_T},
    {"left", KKT_BLAS_LEFT, CUBLAS_SIDE_LEFT},
    {"right", KKT_BLAS_RIGHT, CUBLAS_SIDE_RIGHT},
    {"lower", KKT_BLAS_LOWER, CUBLAS_FILL_MODE_LOWER},
    {"upper", KKT_BLAS_UPPER, CUBLAS_FILL_MODE_UPPER},
    {"unit", KKT_BLAS_UNIT, CUBLAS_DIAG_UNIT},
    {"compute", KKT_BLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F},
    {"algorithm", KKT_BLAS_GEMM_DEFAULT, CUBLAS_GEMM_DEFAULT},
    {"fp32", KKT_BLAS_R_32F, CUDA_R_32F},
    {"fp16", KKT_BLAS_R_16F, CUDA_R_16F},
    {"bf16", KKT_BLAS_R_16BF, CUDA_R_16BF},
    {"major", KKT_BLAS_MAJOR, MAJOR_VERSION},
    {"minor", KKT_BLAS_MINOR, MINOR_VERSION},
    {"patch", KKT_BLAS_PATCH, PATCH_LEVEL},
    {"not supported", KKT_BLAS_NOT_SUPPORTED, CUBLAS_STATUS_NOT_SUPPORTED},
    {"op a", KKT_LT_DESC_TRANSA, CUBLASLT_MATMUL_DESC_TRANSA},
    {"op b", KKT_LT_DESC_TRANSB, CUBLASLT_MATMUL_DESC_TRANSB},
    {"workspace", KKT_LT_PREF_MAX_WORKSPACE_BYTES, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES},
    {"algorithm's size", sizeof(kkt_lt_algo), sizeof(cublasLtMatmulAlgo_t)},
    {"answer's size", sizeof(kkt_lt_result), sizeof(cublasLtMatmulHeuristicResult_t)},
    {"answer's workspace", offsetof(kkt_lt_result, workspace_bytes),
     offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize)},
    {"answer's state", offsetof(kkt_lt_result, state),
     offsetof(cublasLtMatmulHeuristicResult_t, state)},
};

static void values_are_those_of_the_headers(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        if (values[i].ours != values[i].theirs) {
            fail_msg("%s is %lld, not %lld", values[i].what, values[i].theirs, values[i].ours);
        }
    }
}
#else
static void values_are_those_of_the_headers(void **state) {
    (void)state;
    skip(); /* no headers of cuBLAS here */
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(values_are_those_of_the_headers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
