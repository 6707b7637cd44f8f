// Copies a matrix of 2-byte elements whose rows are no whole 16-byte units to one whose rows are,
// with zeros behind each row. Tensor maps, cp.async and 16-byte loads all ask for such rows; one
// pass over an operand costs little beside the many times that a product reads it.
#pragma once

#include "device/types.cuh"

constexpr int kUnit = 8; // elements of 16 bytes

constexpr int kRepackWords = 16; // of four bytes, a lane
constexpr int kRepackWarps = 8;  // of a block

// Two elements from `element` on of a matrix, the second in the high half; the matrix is read word
// by word, wherever the pair lies in them.
KKT_DEVICE u32 load_pair(const u16 *matrix, i64 element, bool odd) {
    const u32 *word = (const u32 *)matrix + element / 2;
    return odd ? word[0] >> 16 | word[1] << 16 : word[0];
}

// The same where a word may reach past the row, or the matrix.
KKT_DEVICE u32 load_pair_at_end(const u16 *row, int column, int columns) {
    const u32 low = column < columns ? row[column] : 0;
    return low | (column + 1 < columns ? (u32)row[column + 1] << 16 : 0);
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
    const int begin = warp % parts * kRepackWords * kWarp, lane = (int)threadIdx.x % kWarp;
    const i64 start = (i64)row * columns;
    const bool odd = start % 2 != 0;
    const bool inside = 2 * (begin + kRepackWords * kWarp) + 2 < columns;
    u32 *to = (u32 *)(padded + at) + (i64)row * words + begin + lane;
    const int column = 2 * (begin + lane);
    u32 pair[kRepackWords];
    if (inside) {
#pragma unroll
        for (int i = 0; i < kRepackWords; ++i)
            pair[i] = load_pair(matrix, start + column + 2 * i * kWarp, odd);
    } else {
#pragma unroll
        for (int i = 0; i < kRepackWords; ++i)
            pair[i] = load_pair_at_end(matrix + start, column + 2 * i * kWarp, columns);
    }
#pragma unroll
    for (int i = 0; i < kRepackWords; ++i)
        if (begin + i * kWarp + lane < words)
            to[i * kWarp] = pair[i];
}
