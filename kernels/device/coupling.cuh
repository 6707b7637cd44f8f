// Coupling of inverted diagonal blocks. With T11 and T00 known, the part between them becomes
//
//     | T00      |                       X <- T11 X      multiply_left
//     |  X   T11 |   X = -L10:           X <- X T00      multiply_right
//
// Both are done in place. T11 is lower triangular, so multiply_left goes through a column strip of
// X from the bottom up: the rows it still needs lie above the one it writes. multiply_right goes
// through a row strip from left to right. Strips are independent of each other.
//
// multiply_right computes the transpose, X^T <- T00^T X^T, so that in both products the long side
// of the 16 x 8 accumulator runs along the strip. All indices count 8 x 8 sub-blocks.
#pragma once

#include "device/convert.cuh"
#include "device/fragment.cuh"
#include "device/lower_blocks.cuh"
#include "device/mma_sync.cuh"
#include "device/types.cuh"

enum Order {
    kRowMajor,   // element (r, c) of a sub-block at word r row_words + c
    kColumnMajor // at word c row_words + r
};

template <class L, Order ORDER> KKT_DEVICE float sub_element(const float *sub, int r, int c) {
    return ORDER == kRowMajor ? sub[r * L::row_words + c] : sub[c * L::row_words + r];
}

// c += A B over eight columns of A on the CUDA cores. A is two sub-blocks one above the other; a
// NULL half counts as zeros. B is one sub-block.
template <class L, Order A, Order B> struct MultiplyFp32 {
    // Parts of up to so many sub-block rows are unrolled; a step is about 100 instructions.
    static constexpr int unrolled = 4;

    template <int STRIP>
    KKT_DEVICE void step(Fragment (&c)[STRIP], const float *upper, const float *lower,
                         const float *const (&b)[STRIP], int lane) {
        const int r = fragment_row(lane);
        const int n = fragment_column(lane);
#pragma unroll
        for (int k = 0; k < 8; k += 4) {
            float left[2][4];
            load_left(left[0], upper, r, k);
            load_left(left[1], lower, r, k);
#pragma unroll
            for (int s = 0; s < STRIP; ++s) {
                float right[4][2];
                load_right(right, b[s], k, n);
#pragma unroll
                for (int d = 0; d < 4; ++d) {
                    c[s].value[0] += left[0][d] * right[d][0];
                    c[s].value[1] += left[0][d] * right[d][1];
                    c[s].value[2] += left[1][d] * right[d][0];
                    c[s].value[3] += left[1][d] * right[d][1];
                }
            }
        }
    }

    // A(r, k..k+3)
    KKT_DEVICE void load_left(float (&a)[4], const float *sub, int r, int k) {
        if (!sub) {
            a[0] = a[1] = a[2] = a[3] = 0.0f;
        } else if (A == kRowMajor) {
            const float4 v = L::load_4(sub + r * L::row_words + k);
            a[0] = v.x, a[1] = v.y, a[2] = v.z, a[3] = v.w;
        } else {
#pragma unroll
            for (int d = 0; d < 4; ++d)
                a[d] = sub[(k + d) * L::row_words + r];
        }
    }

    // B(k..k+3, n..n+1)
    KKT_DEVICE void load_right(float (&b)[4][2], const float *sub, int k, int n) {
        if (B == kRowMajor) {
#pragma unroll
            for (int d = 0; d < 4; ++d) {
                const float2 v = L::load_2(sub + (k + d) * L::row_words + n);
                b[d][0] = v.x, b[d][1] = v.y;
            }
        } else {
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                const float4 v = L::load_4(sub + (n + e) * L::row_words + k);
                b[0][e] = v.x, b[1][e] = v.y, b[2][e] = v.z, b[3][e] = v.w;
            }
        }
    }

    // What is stored of an element of X that the next product only reads.
    KKT_DEVICE float stored(float value) {
        return value;
    }
};

// The same on tensor cores. B, which is nothing but an operand, was rounded when it was stored; A
// is part of the result and is rounded here.
template <class L, Order A, Order B> struct MultiplyTf32 {
    static constexpr int unrolled = 8; // a step is about 15 instructions

    template <int STRIP>
    KKT_DEVICE void step(Fragment (&c)[STRIP], const float *upper, const float *lower,
                         const float *const (&b)[STRIP], int lane) {
        const int r = lane / 4;
        const int k = lane % 4;
        const float left[4] = {
            upper ? round_tf32(sub_element<L, A>(upper, r, k)) : 0.0f,
            lower ? round_tf32(sub_element<L, A>(lower, r, k)) : 0.0f,
            upper ? round_tf32(sub_element<L, A>(upper, r, k + 4)) : 0.0f,
            lower ? round_tf32(sub_element<L, A>(lower, r, k + 4)) : 0.0f,
        };
#pragma unroll
        for (int s = 0; s < STRIP; ++s) {
            const float right[2] = {sub_element<L, B>(b[s], k, r),
                                    sub_element<L, B>(b[s], k + 4, r)};
            mma_tf32(c[s], left, right);
        }
    }

    KKT_DEVICE float stored(float value) {
        return round_tf32(value);
    }
};

// Writes eight rows of an accumulator to a sub-block.
template <class L, Order ORDER>
KKT_DEVICE void store_sub(float *sub, float first, float second, int lane) {
    const int r = fragment_row(lane);
    const int n = fragment_column(lane);
    if (ORDER == kRowMajor) {
        L::store_2(sub + r * L::row_words + n, first, second);
    } else {
        sub[n * L::row_words + r] = first;
        sub[(n + 1) * L::row_words + r] = second;
    }
}

// A coupled part: ROWS x COLUMNS sub-blocks, the first of them sub-block (row, column).
template <int ROWS, int COLUMNS> struct Part {
    static constexpr int rows = ROWS;
    static constexpr int columns = COLUMNS;
    int row, column;
};

// STRIP sub-block columns of X, from `first` on (counted inside the part): X <- T11 X. X is left in
// the order OUT inside each sub-block. One warp.
template <class L, template <class, Order, Order> class Multiply, int STRIP, Order OUT, class X>
KKT_DEVICE void multiply_left(float *head, const X &part, int first, int lane) {
    using Product = Multiply<L, kRowMajor, kRowMajor>;
#pragma unroll(X::rows <= Product::unrolled ? 16 : 1)
    for (int i = (X::rows - 1) / 2 * 2; i >= 0; i -= 2) {
        const bool pair = i + 1 < X::rows;
        Fragment c[STRIP];
#pragma unroll
        for (int s = 0; s < STRIP; ++s)
            fragment_clear(c[s]);
#pragma unroll(X::rows <= Product::unrolled ? 16 : 1)
        for (int k = 0; k < X::rows && k <= i + 1; ++k) {
            const float *upper = k <= i ? head + L::sub_at(part.row + i, part.row + k) : nullptr;
            const float *lower = pair ? head + L::sub_at(part.row + i + 1, part.row + k) : nullptr;
            const float *b[STRIP];
#pragma unroll
            for (int s = 0; s < STRIP; ++s)
                b[s] = head + L::sub_at(part.row + k, part.column + first + s);
            Product::template step<STRIP>(c, upper, lower, b, lane);
        }
        __syncwarp(); // all lanes have read rows i and i + 1 of X
#pragma unroll
        for (int s = 0; s < STRIP; ++s) {
            float *x = head + L::sub_at(part.row + i, part.column + first + s);
            store_sub<L, OUT>(x, Product::stored(c[s].value[0]), Product::stored(c[s].value[1]),
                              lane);
            if (pair) {
                x = head + L::sub_at(part.row + i + 1, part.column + first + s);
                store_sub<L, OUT>(x, Product::stored(c[s].value[2]), Product::stored(c[s].value[3]),
                                  lane);
            }
        }
    }
}

// STRIP sub-block rows of X, from `first` on: X <- sign X T00, where X comes in the order IN inside
// each sub-block and is left row-major. One warp.
template <class L, template <class, Order, Order> class Multiply, int STRIP, Order IN, class X>
KKT_DEVICE void multiply_right(float *head, const X &part, int first, float sign, int lane) {
    // The right operand is X^T: an X stored transposed is X^T in row-major order.
    constexpr Order transposed = IN == kRowMajor ? kColumnMajor : kRowMajor;
    using Product = Multiply<L, kColumnMajor, transposed>;
#pragma unroll(X::columns <= Product::unrolled ? 16 : 1)
    for (int j = 0; j < X::columns; j += 2) {
        const bool pair = j + 1 < X::columns;
        Fragment c[STRIP];
#pragma unroll
        for (int s = 0; s < STRIP; ++s)
            fragment_clear(c[s]);
#pragma unroll(X::columns <= Product::unrolled ? 16 : 1)
        for (int k = j; k < X::columns; ++k) {
            const float *upper = head + L::sub_at(part.column + k, part.column + j);
            const float *lower =
                pair && k > j ? head + L::sub_at(part.column + k, part.column + j + 1) : nullptr;
            const float *b[STRIP];
#pragma unroll
            for (int s = 0; s < STRIP; ++s)
                b[s] = head + L::sub_at(part.row + first + s, part.column + k);
            Product::template step<STRIP>(c, upper, lower, b, lane);
        }
        __syncwarp(); // all lanes have read columns j and j + 1 of X
#pragma unroll
        for (int s = 0; s < STRIP; ++s) {
            float *x = head + L::sub_at(part.row + first + s, part.column + j);
            store_sub<L, kColumnMajor>(x, sign * c[s].value[0], sign * c[s].value[1], lane);
            if (pair) {
                x = head + L::sub_at(part.row + first + s, part.column + j + 1);
                store_sub<L, kColumnMajor>(x, sign * c[s].value[2], sign * c[s].value[3], lane);
            }
        }
    }
}
