// A warp's sums, rounded, to their place in C.
#pragma once

#include "device/tile_math.cuh"
#include "device/types.cuh"
#include "gemm/parameters.cuh"

using Sums = Strip<P::warp_n>[P::strips];

// Two neighbours of a row of C.
KKT_DEVICE void store_pair(u16 *c, int n, int row, int column, u32 pair) {
    u16 *at = c + (i64)row * n + column;
    if (P::c_units) {
        if (column < n)
            *(u32 *)at = pair;
    } else {
        if (column < n)
            at[0] = (u16)pair;
        if (column + 1 < n)
            at[1] = (u16)(pair >> 16);
    }
}

// From registers, each lane its pairs. `row` and `column` are the warp's first.
KKT_DEVICE void store_sums(const Sums &sums, u16 *c, int m, int n, int row, int column, int lane) {
#pragma unroll
    for (int s = 0; s < P::strips; ++s)
#pragma unroll
        for (int t = 0; t < P::columns; ++t) {
            const OperandTile rounded = sums[s].template round<P::bf16>(t);
#pragma unroll
            for (int q = 0; q < 4; ++q) {
                const int at_row = row + s * 16 + q % 2 * 8 + fragment_row(lane);
                if (at_row < m)
                    store_pair(c, n, at_row, column + t * 16 + q / 2 * 8 + fragment_column(lane),
                               rounded.quarter[q]);
            }
        }
}
