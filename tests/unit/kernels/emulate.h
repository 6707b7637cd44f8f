/* A CPU emulation of the solvers' algorithms, with the faults a kernel can have. It mirrors what
 * a block does (in place, row backup, early negation, a transposed intermediate), in double or in
 * single precision, with couplings in fp32, tf32 or fp16. Test code: matrices are at most 128 x
 * 128. */
#ifndef KKT_TESTS_EMULATE_H
#define KKT_TESTS_EMULATE_H

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kkt_solve/kkt_solve.h"

enum { EMULATE_MAX = 128 };

typedef enum emulate_fault {
    FAULT_NONE,
    FAULT_NO_NEGATION,
    FAULT_NO_ROW_BACKUP,
    FAULT_DIAGONAL_KEPT,
    FAULT_UPPER_NOT_CLEARED,
    FAULT_RACE,
    FAULT_UNGATED,
    FAULT_NO_TRANSPOSE,
    FAULT_ONE_TILE_SIZE,
    FAULT_NOT_WRITTEN,
    FAULT_GUARD_DAMAGED,
    FAULT_DOUBLING_FP16, /* the product (I - L)(I + L^2)(I + L^4)... with fp16 factors */
} emulate_fault;

typedef struct emulate {
    enum kkt_solve_inverse inverse;
    int base;
    bool single; /* fp32 arithmetic; else double */
    bool tf32;   /* operands of couplings rounded to 11 bits */
    bool half;   /* operands of couplings in fp16, and what they give kept in it */
    emulate_fault fault;
    int runs; /* counted by the runner */
} emulate;

typedef struct matrix {
    int n;
    double v[EMULATE_MAX][EMULATE_MAX];
} matrix;

static inline double emulate_round(const emulate *e, double x) {
    return e->single ? (double)(float)x : x;
}

static inline double emulate_half(double x) {
    return kkt_half_to_double(kkt_half_from_double(x));
}

/* What is kept of a result between couplings. */
static inline double emulate_kept(const emulate *e, double x) {
    return e->half ? emulate_half(x) : x;
}

static inline double emulate_operand(const emulate *e, double x) {
    if (e->half)
        return emulate_half(x);
    if (!e->tf32)
        return x;
    float single = (float)x;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    bits = (bits + 0x1000u) & ~UINT32_C(0x1fff);
    memcpy(&single, &bits, sizeof bits);
    return (double)single;
}

/* Rows at, at + 1, ... of `a` in place: the strictly lower part alone is overwritten. Without the
 * backup, coefficients that were already overwritten are read as if they were still L's. */
static inline void emulate_rows(const emulate *e, matrix *a, int at, int n) {
    for (int k = at + 1; k < at + n; k++) {
        double backup[EMULATE_MAX];
        memcpy(backup, a->v[k], sizeof backup);
        const double *factors = e->fault == FAULT_NO_ROW_BACKUP ? a->v[k] : backup;
        for (int c = k - 1; c >= at; c--) {
            double sum = 0.0;
            for (int r = at; r < k; r++)
                sum = emulate_round(e, sum - emulate_round(e, a->v[r][c] * factors[r]));
            a->v[k][c] = sum;
        }
    }
}

/* out += left x right of h x h blocks; the operands' corners are given. */
static inline void emulate_product(const emulate *e, const matrix *left, int lr, int lc,
                                   const matrix *right, int rr, int rc, int h, double sign,
                                   matrix *out, int or, int oc) {
    const int inner = e->fault == FAULT_ONE_TILE_SIZE && left->n == 64 ? h - 1 : h;
    for (int i = 0; i < h; i++) {
        for (int j = 0; j < h; j++) {
            double sum = out->v[or + i][oc + j];
            for (int k = 0; k < inner; k++)
                sum = emulate_round(e, sum + sign * emulate_operand(e, left->v[lr + i][lc + k]) *
                                                 emulate_operand(e, right->v[rr + k][rc + j]));
            out->v[or + i][oc + j] = emulate_kept(e, sum);
        }
    }
}

static inline void emulate_clear(matrix *m, int row, int column, int h) {
    for (int i = 0; i < h; i++)
        memset(&m->v[row + i][column], 0, sizeof(double) * (size_t)h);
}

static inline void emulate_recursive(const emulate *e, matrix *a, int at, int n) {
    if (n <= e->base) {
        emulate_rows(e, a, at, n);
        return;
    }
    const int h = n / 2;
    emulate_recursive(e, a, at, h);
    emulate_recursive(e, a, at + h, h);
    matrix *temp = calloc(1, sizeof *temp);
    temp->n = a->n;
    const double sign = e->fault == FAULT_NO_NEGATION ? 1.0 : -1.0;
    emulate_product(e, a, at + h, at + h, a, at + h, at, h, sign, temp, 0, 0);
    if (e->fault == FAULT_NO_TRANSPOSE) /* written back as it is, read as if transposed */
        for (int i = 0; i < h; i++)
            for (int j = 0; j < i; j++) {
                const double swap = temp->v[i][j];
                temp->v[i][j] = temp->v[j][i];
                temp->v[j][i] = swap;
            }
    emulate_clear(a, at + h, at, h);
    emulate_product(e, temp, 0, 0, a, at, at, h, 1.0, a, at + h, at);
    free(temp);
}

/* Block rows one after the other: X_ij = -X_ii sum_k L_ik X_kj. */
static inline void emulate_flat(const emulate *e, matrix *a) {
    const int blocks = a->n / e->base, b = e->base;
    const double sign = e->fault == FAULT_NO_NEGATION ? 1.0 : -1.0;
    for (int i = 0; i < blocks; i++)
        emulate_rows(e, a, i * b, b);
    matrix *lower = malloc(sizeof *lower);
    matrix *temp = calloc(1, sizeof *temp);
    temp->n = a->n;
    for (int i = 1; i < blocks; i++) {
        *lower = *a;
        for (int j = 0; j < i; j++) {
            emulate_clear(temp, 0, 0, b);
            for (int k = j; k < i; k++)
                emulate_product(e, lower, i * b, k * b, a, k * b, j * b, b, sign, temp, 0, 0);
            emulate_clear(a, i * b, j * b, b);
            emulate_product(e, a, i * b, i * b, temp, 0, 0, b, 1.0, a, i * b, j * b);
        }
    }
    free(lower);
    free(temp);
}

static inline void emulate_doubling_fp16(matrix *a) {
    matrix *power = malloc(sizeof *power), *next = malloc(sizeof *next);
    const int n = a->n;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            power->v[i][j] = j < i ? emulate_half(-a->v[i][j]) : 0.0;
            a->v[i][j] = j == i ? 1.0 : power->v[i][j];
        }
    for (int reach = 2; reach < n; reach *= 2) {
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++) {
                double sum = 0.0;
                for (int k = j; k <= i; k++)
                    sum += power->v[i][k] * power->v[k][j];
                next->v[i][j] = emulate_half(sum);
            }
        *power = *next;
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++) {
                double sum = a->v[i][j];
                for (int k = j; k <= i; k++)
                    sum += a->v[i][k] * power->v[k][j];
                next->v[i][j] = emulate_half(sum);
            }
        for (int i = 0; i < n; i++)
            memcpy(a->v[i], next->v[i], sizeof(double) * (size_t)n);
    }
    free(power);
    free(next);
}

/* (I + L)^-1 in place; `a` holds the unit lower triangular matrix itself. */
static inline void emulate_invert(const emulate *e, matrix *a) {
    if (e->fault == FAULT_DOUBLING_FP16)
        emulate_doubling_fp16(a);
    else if (e->inverse == KKT_INVERSE_ROW || a->n <= e->base)
        emulate_rows(e, a, 0, a->n);
    else if (e->inverse == KKT_INVERSE_FLAT)
        emulate_flat(e, a);
    else
        emulate_recursive(e, a, 0, a->n);
}

#endif
