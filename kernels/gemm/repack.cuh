// Copies a matrix of 2-byte elements whose rows are no whole 16-byte units to one whose rows are,
// with zeros behind each row. Tensor maps, cp.async and 16-byte loads all ask for such rows; one
// pass over an operand costs little beside the many times that a product reads it.
#pragma once

#include "device/types.cuh"

constexpr int kUnit = 8; // elements of 16 bytes

constexpr int kRepackWords = 16; // of four bytes, a lane
constexpr int kRepackWarps = 8;  // of a block

// Two elements from `element` on of a matrix of `count` ones, the second in the high half; `second`
// says whether it is wanted, else it is 0. Words of the matrix are read whole, wherever the pair
// lies in them.
KKT_DEVICE u32 load_pair(const u16 *matrix, i64 element, i64 count, bool second) {
    const u32 *words = (const u32 *)matrix;
    const i64 word = element / 2;
    if (!second || 2 * word + 3 >= count)
        return matrix[element] | (second ? (u32)matrix[element + 1] << 16 : 0);
    if (element % 2 == 0)
        return words[word];
    return words[word] >> 16 | words[word + 1] << 16;
}

// Grid: x warps, each a part of a row of the copy; a lane's words are 32 apart.
extern "C" __global__ void __launch_bounds__(kRepackWarps *kWarp)
    gemm_repack(const u16 *matrix, u16 *padded, i64 at, i64 rows, int columns, int units) {
    const int words = units * (kUnit / 2);
    const int parts = divide_up(words, kRepackWords * kWarp);
    const int warp = (int)(blockIdx.x * kRepackWarps + threadIdx.x / kWarp);
    const int row = warp / parts;
    if (row >= rows)
        return;
    const int first = warp % parts * kRepackWords * kWarp + (int)threadIdx.x % kWarp;
    const i64 start = (i64)row * columns;
    u32 *to = (u32 *)(padded + at) + (i64)row * words;
    u32 pair[kRepackWords];
#pragma unroll
    for (int i = 0; i < kRepackWords; ++i) {
        const int column = 2 * (first + i * kWarp);
        pair[i] = column < columns
                      ? load_pair(matrix, start + column, rows * columns, column + 1 < columns)
                      : 0;
    }
#pragma unroll
    for (int i = 0; i < kRepackWords; ++i)
        if (first + i * kWarp < words)
            to[first + i * kWarp] = pair[i];
}
