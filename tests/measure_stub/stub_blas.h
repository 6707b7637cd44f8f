/* What the stubs of cuBLAS and cuBLASLt share: products of fp32 matrices on the CPU, enqueued on
 * the stub driver's stream. KKT_STUB_BLAS says how they misbehave. */
#ifndef KKT_TESTS_STUB_BLAS_H
#define KKT_TESTS_STUB_BLAS_H

#include <cuda.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef struct product {
    int op_a, op_b;
    long long m, n, k, lda, ldb, ldc;
    const float *a, *b;
    float *c;
} product;

static inline bool told(const char *word) {
    const char *how = getenv("KKT_STUB_BLAS");
    return how != NULL && strcmp(how, word) == 0;
}

/* C = op(A) op(B), column-major. */
static inline void multiply(const void *arguments) {
    product p;
    memcpy(&p, arguments, sizeof p);
    for (long long j = 0; j < p.n; j++) {
        for (long long i = 0; i < p.m; i++) {
            float sum = 0.0F;
            for (long long l = 0; l < p.k; l++) {
                sum += (p.op_a ? p.a[i * p.lda + l] : p.a[l * p.lda + i]) *
                       (p.op_b ? p.b[l * p.ldb + j] : p.b[j * p.ldb + l]);
            }
            p.c[j * p.ldc + i] = sum;
        }
    }
}

static inline int enqueue(const product *p) {
    CUresult (*ask)(void (*host)(const void *arguments), const void *arguments, size_t size) = NULL;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    void *found = driver != NULL ? dlsym(driver, "kkt_stub_enqueue") : NULL;
    if (found == NULL) {
        abort();
    }
    memcpy(&ask, &found, sizeof ask);
    dlclose(driver);
    return ask(multiply, p, sizeof *p) == CUDA_SUCCESS ? 0 : 13;
}

#endif
