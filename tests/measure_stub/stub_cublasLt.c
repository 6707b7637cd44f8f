/* A cuBLASLt whose heuristics have two answers, of which the second leaves a product out of each
 * sum. */
#include "stub_blas.h"

#include <stdint.h>

typedef struct desc {
    int op_a, op_b;
} desc;

typedef struct layout {
    uint64_t rows, columns;
    int64_t ld;
} layout;

typedef struct answer {
    uint64_t algo[8];
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
} answer;

int cublasLtCreate(void **handle);
int cublasLtMatmulDescCreate(desc **out, int compute, int scale_type);
int cublasLtMatmulDescDestroy(desc *d);
int cublasLtMatmulDescSetAttribute(desc *d, int attribute, const void *value, size_t bytes);
int cublasLtMatrixLayoutCreate(layout **out, int type, uint64_t rows, uint64_t columns, int64_t ld);
int cublasLtMatrixLayoutDestroy(layout *l);
int cublasLtMatmulPreferenceCreate(void **out);
int cublasLtMatmulPreferenceDestroy(void *preference);
int cublasLtMatmulPreferenceSetAttribute(void *preference, int attribute, const void *value,
                                         size_t bytes);
int cublasLtMatmulAlgoGetHeuristic(void *handle, desc *d, layout *a, layout *b, layout *c,
                                   layout *out, void *preference, int wanted, answer *answers,
                                   int *count);
int cublasLtMatmul(void *handle, desc *d, const void *alpha, const void *a, layout *a_layout,
                   const void *b, layout *b_layout, const void *beta, const void *c,
                   layout *c_layout, void *out, layout *out_layout, const uint64_t *algo,
                   void *workspace, size_t bytes, CUstream stream);

int cublasLtCreate(void **handle) {
    static int the_one;
    *handle = &the_one;
    return 0;
}

int cublasLtMatmulDescCreate(desc **out, int compute, int scale_type) {
    *out = calloc(1, sizeof **out);
    return *out != NULL && compute == 68 && scale_type == 0 ? 0 : 7;
}

int cublasLtMatmulDescDestroy(desc *d) {
    free(d);
    return 0;
}

int cublasLtMatmulDescSetAttribute(desc *d, int attribute, const void *value, size_t bytes) {
    if ((attribute != 3 && attribute != 4) || bytes != sizeof(int)) {
        return 7;
    }
    memcpy(attribute == 3 ? &d->op_a : &d->op_b, value, bytes);
    return 0;
}

int cublasLtMatrixLayoutCreate(layout **out, int type, uint64_t rows, uint64_t columns,
                               int64_t ld) {
    *out = malloc(sizeof **out);
    if (*out == NULL || type != 0) {
        return 7;
    }
    **out = (layout){rows, columns, ld};
    return 0;
}

int cublasLtMatrixLayoutDestroy(layout *l) {
    free(l);
    return 0;
}

int cublasLtMatmulPreferenceCreate(void **out) {
    *out = calloc(1, sizeof(uint64_t));
    return *out != NULL ? 0 : 3;
}

int cublasLtMatmulPreferenceDestroy(void *preference) {
    free(preference);
    return 0;
}

int cublasLtMatmulPreferenceSetAttribute(void *preference, int attribute, const void *value,
                                         size_t bytes) {
    if (attribute != 1 || bytes != sizeof(uint64_t)) {
        return 7;
    }
    memcpy(preference, value, bytes);
    return 0;
}

int cublasLtMatmulAlgoGetHeuristic(void *handle, desc *d, layout *a, layout *b, layout *c,
                                   layout *out, void *preference, int wanted, answer *answers,
                                   int *count) {
    uint64_t workspace;
    memcpy(&workspace, preference, sizeof workspace);
    bool fits = (d->op_a ? a->rows : a->columns) == (d->op_b ? b->columns : b->rows) &&
                (d->op_a ? a->columns : a->rows) == c->rows &&
                (d->op_b ? b->rows : b->columns) == c->columns;
    if (handle == NULL || c != out || !fits || wanted < 2 || workspace == 0) {
        return 7;
    }
    for (int i = 0; i < 2; i++) {
        answers[i] = (answer){.algo = {(uint64_t)i}, .waves = 1.0F};
    }
    *count = 2;
    return 0;
}

int cublasLtMatmul(void *handle, desc *d, const void *alpha, const void *a, layout *a_layout,
                   const void *b, layout *b_layout, const void *beta, const void *c,
                   layout *c_layout, void *out, layout *out_layout, const uint64_t *algo,
                   void *workspace, size_t bytes, CUstream stream) {
    if (handle == NULL || alpha == NULL || beta == NULL || c != out || out_layout != c_layout ||
        workspace == NULL || bytes == 0 || stream == NULL) {
        return 7;
    }
    product p = {.op_a = d->op_a,
                 .op_b = d->op_b,
                 .m = (long long)c_layout->rows,
                 .n = (long long)c_layout->columns,
                 .k = (long long)(d->op_a ? a_layout->rows : a_layout->columns),
                 .lda = a_layout->ld,
                 .ldb = b_layout->ld,
                 .ldc = c_layout->ld,
                 .a = a,
                 .b = b,
                 .c = out};
    p.k -= algo[0] == 1;
    return enqueue(&p);
}
