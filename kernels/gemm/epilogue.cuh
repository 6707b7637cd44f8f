// A warp's sums, rounded, to their place in C.
#pragma once

#include "device/matrix_move.cuh"
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

// Sixteen rows of a warp's sums on their way to C, each followed by 16 bytes of nothing.
struct StagedStrip {
    static constexpr int units = P::warp_n / 8;
    static constexpr int row_bytes = P::warp_n * 2 + 16;
    static constexpr int bytes = 16 * row_bytes;

    u8 *base;

    __device__ __forceinline__ u32 row_address(int row, int unit) const {
        return shared_address(base + row * row_bytes + unit * 16);
    }

    __device__ __forceinline__ void put(const Strip<P::warp_n> &strip, int lane) const {
#pragma unroll
        for (int t = 0; t < P::columns; ++t)
            store_matrices<false>(row_address(lane % 16, t * 2 + lane / 16),
                                  strip.template round<P::bf16>(t));
    }

    // Rows of whole units, 16 bytes a lane. `rows` and `columns` say how much of C there is.
    __device__ __forceinline__ void write_units(u16 *c, int n, int rows, int columns,
                                                int lane) const {
        static_assert(16 * units % kWarp == 0, "whole turns of the warp");
#pragma unroll
        for (int i = 0; i < 16 * units / kWarp; ++i) {
            const int row = (i * kWarp + lane) / units;
            const int unit = (i * kWarp + lane) % units;
            if (row < rows && unit * 8 < columns)
                *(uint4 *)(c + (i64)row * n + unit * 8) =
                    *(const uint4 *)(base + row * row_bytes + unit * 16);
        }
    }

    // Any rows, neighbouring lanes neighbouring elements.
    __device__ __forceinline__ void write_elements(u16 *c, int n, int rows, int columns,
                                                   int lane) const {
#pragma unroll 4
        for (int row = 0; row < 16; ++row)
#pragma unroll
            for (int i = 0; i < divide_up(P::warp_n, kWarp); ++i) {
                const int column = i * kWarp + lane;
                if (row < rows && column < columns && column < P::warp_n)
                    c[(i64)row * n + column] = *(const u16 *)(base + row * row_bytes + column * 2);
            }
    }
};

KKT_DEVICE void store_staged(const Sums &sums, const StagedStrip &strip, u16 *c, int m, int n,
                             int row, int column, int lane) {
#pragma unroll
    for (int s = 0; s < P::strips; ++s) {
        u16 *first = c + (i64)(row + s * 16) * n + column;
        strip.put(sums[s], lane);
        __syncwarp();
        if (P::c_units)
            strip.write_units(first, n, m - row - s * 16, n - column, lane);
        else
            strip.write_elements(first, n, m - row - s * 16, n - column, lane);
        __syncwarp();
    }
}
