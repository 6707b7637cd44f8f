/* A cuBLAS of which the products alone are there: what else the program asks for by name answers
 * that it is not supported. It insists on a stream and a workspace. */
#include "stub_blas.h"

typedef struct handle {
    CUstream stream;
    bool workspace;
} handle;

int cublasCreate_v2(handle **out);
int cublasSetStream_v2(handle *h, CUstream stream);
int cublasSetWorkspace_v2(handle *h, void *workspace, size_t bytes);
int cublasGetProperty(int type, int *value);
const char *cublasGetStatusString(int status);
int cublasGemmEx(handle *h, int op_a, int op_b, int m, int n, int k, const void *alpha,
                 const void *a, int a_type, int lda, const void *b, int b_type, int ldb,
                 const void *beta, void *c, int c_type, int ldc, int compute, int algo);
int cublasGemmBatchedEx(void);
int cublasHSHgemvStridedBatched(void);
int cublasTSTgemvStridedBatched(void);
int cublasStrsmBatched(void);

int cublasCreate_v2(handle **out) {
    static handle the_one;
    if (told("abort")) {
        abort();
    }
    *out = &the_one;
    return told("unable") ? 1 : 0;
}

/* As the real one does, it takes a workspace away that was set before. */
int cublasSetStream_v2(handle *h, CUstream stream) {
    h->stream = stream;
    h->workspace = false;
    return 0;
}

int cublasSetWorkspace_v2(handle *h, void *workspace, size_t bytes) {
    h->workspace = workspace != NULL && bytes >= (size_t)32 << 20;
    return 0;
}

int cublasGetProperty(int type, int *value) {
    static const int version[] = {13, 7, 2};
    *value = version[type];
    return 0;
}

const char *cublasGetStatusString(int status) {
    return status == 1 ? "CUBLAS_STATUS_NOT_INITIALIZED" : "CUBLAS_STATUS_OF_THE_STUB";
}

int cublasGemmEx(handle *h, int op_a, int op_b, int m, int n, int k, const void *alpha,
                 const void *a, int a_type, int lda, const void *b, int b_type, int ldb,
                 const void *beta, void *c, int c_type, int ldc, int compute, int algo) {
    float factors[2];
    memcpy(&factors[0], alpha, sizeof factors[0]);
    memcpy(&factors[1], beta, sizeof factors[1]);
    bool fp32 = a_type == 0 && b_type == 0 && c_type == 0 && compute == 68 && algo == -1;
    if (h->stream == NULL || !h->workspace || !fp32 || factors[0] < 1.0F || factors[1] > 0.0F ||
        told("refuse")) {
        return 7;
    }
    const product p = {op_a, op_b, m, n, k, lda, ldb, ldc, a, b, c};
    return enqueue(&p);
}

int cublasGemmBatchedEx(void) {
    return 15;
}

int cublasHSHgemvStridedBatched(void) {
    return 15;
}

int cublasTSTgemvStridedBatched(void) {
    return 15;
}

int cublasStrsmBatched(void) {
    return 15;
}
