/* cuBLAS and cuBLASLt. Both work on the plan's stream, in a workspace that is set once: without it
 * cuBLAS allocates while a graph is captured, which is not allowed, and with it a call runs the
 * same way each time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/library.h"
#include "tuner/measure/library/cublas_api.h"
#include "tuner/measure/library/library.h"

#define WORKSPACE_BYTES ((size_t)64 << 20) /* twice what NVIDIA advises for sm_90 */
enum { HEURISTICS_MOST = 8 };              /* answers that are asked of cuBLASLt */

typedef struct cublas {
    kkt_cublas_api api;
    kkt_cublaslt_api lt;
    void *handle, *lt_handle;
    CUstream stream;
    void *workspace;
} cublas;

static const kkt_library_symbol SYMBOLS[] = {
    {"cublasCreate_v2", offsetof(kkt_cublas_api, create)},
    {"cublasSetStream_v2", offsetof(kkt_cublas_api, set_stream)},
    {"cublasSetWorkspace_v2", offsetof(kkt_cublas_api, set_workspace)},
    {"cublasGetProperty", offsetof(kkt_cublas_api, property)},
    {"cublasGetStatusString", offsetof(kkt_cublas_api, status_string)},
    {"cublasGemmEx", offsetof(kkt_cublas_api, gemm_ex)},
    {"cublasGemmBatchedEx", offsetof(kkt_cublas_api, gemm_batched_ex)},
    {"cublasHSHgemvStridedBatched", offsetof(kkt_cublas_api, gemv_fp16)},
    {"cublasTSTgemvStridedBatched", offsetof(kkt_cublas_api, gemv_bf16)},
    {"cublasStrsmBatched", offsetof(kkt_cublas_api, trsm_batched)},
};

static const kkt_library_symbol LT_SYMBOLS[] = {
    {"cublasLtCreate", offsetof(kkt_cublaslt_api, create)},
    {"cublasLtMatmulDescCreate", offsetof(kkt_cublaslt_api, desc_create)},
    {"cublasLtMatmulDescDestroy", offsetof(kkt_cublaslt_api, desc_destroy)},
    {"cublasLtMatmulDescSetAttribute", offsetof(kkt_cublaslt_api, desc_set)},
    {"cublasLtMatrixLayoutCreate", offsetof(kkt_cublaslt_api, layout_create)},
    {"cublasLtMatrixLayoutDestroy", offsetof(kkt_cublaslt_api, layout_destroy)},
    {"cublasLtMatmulPreferenceCreate", offsetof(kkt_cublaslt_api, preference_create)},
    {"cublasLtMatmulPreferenceDestroy", offsetof(kkt_cublaslt_api, preference_destroy)},
    {"cublasLtMatmulPreferenceSetAttribute", offsetof(kkt_cublaslt_api, preference_set)},
    {"cublasLtMatmulAlgoGetHeuristic", offsetof(kkt_cublaslt_api, heuristic)},
    {"cublasLtMatmul", offsetof(kkt_cublaslt_api, matmul)},
};

/* ---- opening ---- */

/* cuBLAS finds cuBLASLt by name: one that is loaded already is taken, from whatever folder. Both
 * are of one release, so that the version told is that of either. */
static kkt_status load(cublas *c, kkt_error *err) {
    enum { LT, BLAS, FILES };
    static const char *const of_13[] = {"libcublasLt.so.13", "libcublas.so.13", NULL};
    static const char *const of_12[] = {"libcublasLt.so.12", "libcublas.so.12", NULL};
    static const char *const *const sets[] = {of_13, of_12, NULL};
    void *file[FILES] = {NULL};
    kkt_text looked = {0};
    const char *missing = NULL;
    const bool found = kkt_library_dlopen(sets, file, &looked);
    if (!found) {
        kkt_fail(
            err, KKT_ERR_MISSING, 0,
            "no cuBLAS of CUDA 12 or 13: set KKTTUNE_CUDA to the folder of a toolkit or of the "
            "wheels (looked in: %s)",
            kkt_text_get(&looked));
    } else {
        missing =
            kkt_library_resolve(file[BLAS], SYMBOLS, sizeof SYMBOLS / sizeof *SYMBOLS, &c->api);
        if (missing == NULL) {
            missing = kkt_library_resolve(file[LT], LT_SYMBOLS,
                                          sizeof LT_SYMBOLS / sizeof *LT_SYMBOLS, &c->lt);
        }
    }
    if (missing != NULL) {
        kkt_fail(err, KKT_ERR_MISSING, 0, "this cuBLAS has no %s", missing);
    }
    kkt_text_free(&looked);
    return found && missing == NULL ? KKT_OK : KKT_ERR_MISSING;
}

static kkt_status start(cublas *c, kkt_gpu *gpu, kkt_error *err) {
    CUdeviceptr workspace = 0;
    CUresult result = gpu->driver.memory_alloc(&workspace, WORKSPACE_BYTES);
    if (result != CUDA_SUCCESS) {
        return kkt_fail(err, KKT_ERR_MISSING, (int)result,
                        "no memory on the GPU for the workspace of cuBLAS");
    }
    memcpy(&c->workspace, &workspace, sizeof c->workspace);
    c->stream = gpu->stream;
    int status = c->api.create(&c->handle);
    if (status == 0) {
        status = c->api.set_stream(c->handle, c->stream); /* takes the workspace away, too */
    }
    if (status == 0) {
        status = c->api.set_workspace(c->handle, c->workspace, WORKSPACE_BYTES);
    }
    if (status == 0) {
        status = c->lt.create(&c->lt_handle);
    }
    return status == 0 ? KKT_OK
                       : kkt_fail(err, KKT_ERR_MISSING, status, "cuBLAS does not start: %s",
                                  c->api.status_string(status));
}

static kkt_status cublas_open(kkt_gpu *gpu, void **state, char *version, size_t size,
                              kkt_error *err) {
    cublas *c = calloc(1, sizeof *c);
    int part[3] = {0};
    *state = NULL;
    if (c == NULL) {
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "out of memory for cuBLAS");
    }
    kkt_status status = load(c, err);
    if (status == KKT_OK) {
        status = start(c, gpu, err);
    }
    if (status != KKT_OK) {
        CUdeviceptr workspace = 0;
        memcpy(&workspace, &c->workspace, sizeof c->workspace);
        if (workspace != 0) {
            gpu->driver.memory_free(workspace);
        }
        free(c);
        return status;
    }
    c->api.property(KKT_BLAS_MAJOR, &part[0]);
    c->api.property(KKT_BLAS_MINOR, &part[1]);
    c->api.property(KKT_BLAS_PATCH, &part[2]);
    snprintf(version, size, "%d.%d.%d", part[0], part[1], part[2]);
    *state = c;
    return KKT_OK;
}

static const char *error_text(const void *state, int status) {
    const cublas *c = state;
    return c->api.status_string(status);
}

/* ---- arguments ---- */

static const float one = 1.0F;
static const float zero = 0.0F;

static void *pointer(kkt_call_value value) {
    void *out = NULL;
    memcpy(&out, &value.pointer, sizeof out); /* a device address in a host pointer's clothes */
    return out;
}

static int operation(kkt_call_value transpose) {
    return transpose.integer != 0 ? KKT_BLAS_T : KKT_BLAS_N;
}

static int type_of(kkt_call_value dtype) {
    return dtype.integer == KKT_FP32   ? KKT_BLAS_R_32F
           : dtype.integer == KKT_FP16 ? KKT_BLAS_R_16F
                                       : KKT_BLAS_R_16BF;
}

/* ---- routines ---- */

static int gemm_ex(void *state, const kkt_call_value *a) {
    const cublas *c = state;
    const int type = type_of(a[KKT_GEMM_CALL_DTYPE]);
    return c->api.gemm_ex(c->handle, operation(a[KKT_GEMM_CALL_TRANSPOSE_A]),
                          operation(a[KKT_GEMM_CALL_TRANSPOSE_B]), (int)a[KKT_GEMM_CALL_M].integer,
                          (int)a[KKT_GEMM_CALL_N].integer, (int)a[KKT_GEMM_CALL_K].integer, &one,
                          pointer(a[KKT_GEMM_CALL_A]), type, (int)a[KKT_GEMM_CALL_LDA].integer,
                          pointer(a[KKT_GEMM_CALL_B]), type, (int)a[KKT_GEMM_CALL_LDB].integer,
                          &zero, pointer(a[KKT_GEMM_CALL_C]), type_of(a[KKT_GEMM_CALL_RESULT]),
                          (int)a[KKT_GEMM_CALL_LDC].integer, KKT_BLAS_COMPUTE_32F,
                          KKT_BLAS_GEMM_DEFAULT);
}

static int gemm_batched_ex(void *state, const kkt_call_value *a) {
    const cublas *c = state;
    const int type = type_of(a[KKT_GEMM_CALL_DTYPE]);
    return c->api.gemm_batched_ex(
        c->handle, operation(a[KKT_GEMM_CALL_TRANSPOSE_A]), operation(a[KKT_GEMM_CALL_TRANSPOSE_B]),
        (int)a[KKT_GEMM_CALL_M].integer, (int)a[KKT_GEMM_CALL_N].integer,
        (int)a[KKT_GEMM_CALL_K].integer, &one, pointer(a[KKT_GEMM_CALL_A]), type,
        (int)a[KKT_GEMM_CALL_LDA].integer, pointer(a[KKT_GEMM_CALL_B]), type,
        (int)a[KKT_GEMM_CALL_LDB].integer, &zero, pointer(a[KKT_GEMM_CALL_C]),
        type_of(a[KKT_GEMM_CALL_RESULT]), (int)a[KKT_GEMM_CALL_LDC].integer,
        (int)a[KKT_GEMM_CALL_BATCH].integer, KKT_BLAS_COMPUTE_32F, KKT_BLAS_GEMM_DEFAULT);
}

static int trsm_batched(void *state, const kkt_call_value *a) {
    const cublas *c = state;
    const int n = (int)a[KKT_TRSM_CALL_N].integer;
    return c->api.trsm_batched(
        c->handle, a[KKT_TRSM_CALL_RIGHT].integer != 0 ? KKT_BLAS_RIGHT : KKT_BLAS_LEFT,
        a[KKT_TRSM_CALL_LOWER].integer != 0 ? KKT_BLAS_LOWER : KKT_BLAS_UPPER,
        operation(a[KKT_TRSM_CALL_TRANSPOSE]), KKT_BLAS_UNIT, n, n, &one,
        pointer(a[KKT_TRSM_CALL_A]), (int)a[KKT_TRSM_CALL_LDA].integer, pointer(a[KKT_TRSM_CALL_B]),
        (int)a[KKT_TRSM_CALL_LDB].integer, (int)a[KKT_TRSM_CALL_BATCH].integer);
}

static int gemv_fp16(void *state, const kkt_call_value *a) {
    const cublas *c = state;
    return c->api.gemv_fp16(c->handle, operation(a[KKT_GEMV_CALL_TRANSPOSE]),
                            (int)a[KKT_GEMV_CALL_M].integer, (int)a[KKT_GEMV_CALL_N].integer, &one,
                            pointer(a[KKT_GEMV_CALL_A]), (int)a[KKT_GEMV_CALL_LDA].integer, 0,
                            pointer(a[KKT_GEMV_CALL_X]), 1, 0, &zero, pointer(a[KKT_GEMV_CALL_Y]),
                            1, 0, 1);
}

static int gemv_bf16(void *state, const kkt_call_value *a) {
    const cublas *c = state;
    return c->api.gemv_bf16(c->handle, operation(a[KKT_GEMV_CALL_TRANSPOSE]),
                            (int)a[KKT_GEMV_CALL_M].integer, (int)a[KKT_GEMV_CALL_N].integer, &one,
                            pointer(a[KKT_GEMV_CALL_A]), (int)a[KKT_GEMV_CALL_LDA].integer, 0,
                            pointer(a[KKT_GEMV_CALL_X]), 1, 0, &zero, pointer(a[KKT_GEMV_CALL_Y]),
                            1, 0, 1);
}

/* What cuBLASLt wants described. */
typedef struct product {
    void *desc, *a, *b, *c, *preference;
} product;

static int describe(const cublas *c, const kkt_call_value *a, product *out) {
    const int op_a = operation(a[KKT_GEMM_CALL_TRANSPOSE_A]);
    const int op_b = operation(a[KKT_GEMM_CALL_TRANSPOSE_B]);
    const uint64_t m = (uint64_t)a[KKT_GEMM_CALL_M].integer;
    const uint64_t n = (uint64_t)a[KKT_GEMM_CALL_N].integer;
    const uint64_t k = (uint64_t)a[KKT_GEMM_CALL_K].integer;
    const int type = type_of(a[KKT_GEMM_CALL_DTYPE]);
    const size_t most = WORKSPACE_BYTES;
    const bool plain_a = op_a == KKT_BLAS_N, plain_b = op_b == KKT_BLAS_N;
    int status = c->lt.desc_create(&out->desc, KKT_BLAS_COMPUTE_32F, KKT_BLAS_R_32F);
    if (status == 0) {
        status = c->lt.desc_set(out->desc, KKT_LT_DESC_TRANSA, &op_a, sizeof op_a);
    }
    if (status == 0) {
        status = c->lt.desc_set(out->desc, KKT_LT_DESC_TRANSB, &op_b, sizeof op_b);
    }
    if (status == 0) {
        status = c->lt.layout_create(&out->a, type, plain_a ? m : k, plain_a ? k : m,
                                     a[KKT_GEMM_CALL_LDA].integer);
    }
    if (status == 0) {
        status = c->lt.layout_create(&out->b, type, plain_b ? k : n, plain_b ? n : k,
                                     a[KKT_GEMM_CALL_LDB].integer);
    }
    if (status == 0) {
        status = c->lt.layout_create(&out->c, type_of(a[KKT_GEMM_CALL_RESULT]), m, n,
                                     a[KKT_GEMM_CALL_LDC].integer);
    }
    if (status == 0) {
        status = c->lt.preference_create(&out->preference);
    }
    if (status == 0) {
        status = c->lt.preference_set(out->preference, KKT_LT_PREF_MAX_WORKSPACE_BYTES, &most,
                                      sizeof most);
    }
    return status;
}

static void forget(const cublas *c, const product *p) {
    if (p->desc != NULL) {
        c->lt.desc_destroy(p->desc);
    }
    void *const layouts[] = {p->a, p->b, p->c};
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        if (layouts[i] != NULL) {
            c->lt.layout_destroy(layouts[i]);
        }
    }
    if (p->preference != NULL) {
        c->lt.preference_destroy(p->preference);
    }
}

/* Answer number `choice` of the heuristics, or the last: for small problems there may be fewer, and
 * that one is checked on them, too. */
static int lt_matmul(void *state, const kkt_call_value *a) {
    const cublas *c = state;
    int64_t choice = a[KKT_GEMM_CALL_CHOICE].integer;
    kkt_lt_result found[HEURISTICS_MOST];
    product p = {0};
    int count = 0;
    memset(found, 0, sizeof found);
    int status = describe(c, a, &p);
    if (status == 0) {
        status = c->lt.heuristic(c->lt_handle, p.desc, p.a, p.b, p.c, p.c, p.preference,
                                 HEURISTICS_MOST, found, &count);
    }
    choice = choice < count ? choice : count - 1;
    if (status == 0 && choice < 0) {
        status = KKT_BLAS_NOT_SUPPORTED;
    }
    if (status == 0) {
        status = found[choice].state;
    }
    if (status == 0) {
        status = c->lt.matmul(c->lt_handle, p.desc, &one, pointer(a[KKT_GEMM_CALL_A]), p.a,
                              pointer(a[KKT_GEMM_CALL_B]), p.b, &zero, pointer(a[KKT_GEMM_CALL_C]),
                              p.c, pointer(a[KKT_GEMM_CALL_C]), p.c, &found[choice].algo,
                              c->workspace, WORKSPACE_BYTES, c->stream);
    }
    forget(c, &p);
    return status;
}

static const kkt_routine routines[] = {
    {"cublasGemmEx", KKT_GEMM_CALL_ARGS, gemm_ex},
    {"cublasGemmBatchedEx", KKT_GEMM_CALL_ARGS, gemm_batched_ex},
    {"cublasLtMatmul", KKT_GEMM_CALL_ARGS, lt_matmul},
    {"cublasHSHgemvStridedBatched", KKT_GEMV_CALL_ARGS, gemv_fp16},
    {"cublasTSTgemvStridedBatched", KKT_GEMV_CALL_ARGS, gemv_bf16},
    {"cublasStrsmBatched", KKT_TRSM_CALL_ARGS, trsm_batched},
};

const kkt_library_type kkt_library_cublas = {
    .name = KKT_CUBLAS,
    .open = cublas_open,
    .error_text = error_text,
    .routines = routines,
    .routine_count = sizeof routines / sizeof *routines,
};
