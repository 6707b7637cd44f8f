// The operands of C = A B in global memory. Both are seen alike, as lines (rows of A, columns of B)
// of terms (along k); ALONG_K says that a line's terms are neighbours, else the lines are.
#pragma once

#include "device/matrix_move.cuh"
#include "device/types.cuh"

template <bool ALONG_K> struct Matrix {
    const u16 *data;
    int lines, terms;
    int stride; // elements from row to row: a multiple of 8, zeros where it is more than there are

    // `at` is -1 where the operand is read as it came, else the element where its copy begins.
    KKT_DEVICE Matrix make(const u16 *given, const u16 *padded, i64 at, int lines, int terms,
                           int stride) {
        return {at < 0 ? given : padded + at, lines, terms, stride};
    }

    // Two neighbours of row `row` as stored, zeros outside.
    __device__ __forceinline__ u32 word(int row, int column) const {
        const bool inside = row < (ALONG_K ? lines : terms) && column < stride;
        return inside ? *(const u32 *)(data + (i64)row * stride + column) : 0;
    }

    // A lane's word of the 8 x 8 matrix that begins at `line` and `term`, as it is stored: with
    // ALONG_K false it is the transpose of what a product wants.
    __device__ __forceinline__ u32 stored_word(int line, int term, int lane) const {
        return ALONG_K ? word(line + lane / 4, term + lane % 4 * 2)
                       : word(term + lane / 4, line + lane % 4 * 2);
    }

    // What it wants: lane l has terms 2 (l % 4) and the next of line l / 4.
    KKT_DEVICE u32 by_lines(u32 stored) {
        return ALONG_K ? stored : transpose_matrix(stored);
    }
};

// The arguments of every entry point that reads a and b, in their order.
struct Operands {
    const u16 *a, *b, *padded;
    i64 a_at, b_at;
    int m, n, k;
    int a_stride, b_stride;
};
