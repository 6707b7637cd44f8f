// Fragments of a matrix that has columns of v along its rows and tokens, or columns of k, along its
// columns: a warp's part of S^T, X^T, V'^T, O^T.
#pragma once

#include "device/matrix_move.cuh"
#include "device/padded_tile.cuh"
#include "device/register_blocks.cuh"
#include "device/types.cuh"
#include "gdn/chunk_tiles.cuh"
#include "gdn/mma_parameters.cuh"

// 16 M rows by 8 N columns, and the same rounded, 16 columns a step.
template <int M, int N> struct Rows {
    Fragment f[M][N];

    __device__ __forceinline__ void clear() {
#pragma unroll
        for (int m = 0; m < M; ++m)
#pragma unroll
            for (int n = 0; n < N; ++n)
                fragment_clear(f[m][n]);
    }

    __device__ __forceinline__ OperandTile operand(int m, int step) const {
        const Accumulator pair = {{f[m][2 * step], f[m][2 * step + 1]}};
        return output_tile<P::bf16>(pair);
    }

    // Columns 2 c and 2 c + 1 of each fragment, c = lane % 4, times factors of a table.
    __device__ __forceinline__ void scale(const float *table, int lane) {
#pragma unroll
        for (int n = 0; n < N; ++n) {
            const float2 factor = *(const float2 *)(table + n * 8 + fragment_column(lane));
#pragma unroll
            for (int m = 0; m < M; ++m) {
                f[m][n].value[0] *= factor.x;
                f[m][n].value[1] *= factor.y;
                f[m][n].value[2] *= factor.x;
                f[m][n].value[3] *= factor.y;
            }
        }
    }
};

template <int M, int STEPS> struct RoundedRows { OperandTile step[M][STEPS]; };

template <int M, int N> KKT_DEVICE RoundedRows<M, N / 2> round_rows(const Rows<M, N> &x) {
    RoundedRows<M, N / 2> r;
#pragma unroll
    for (int m = 0; m < M; ++m)
#pragma unroll
        for (int n = 0; n < N / 2; ++n)
            r.step[m][n] = x.operand(m, n);
    return r;
}

// To the columns of a tile, transposed back: `tile` is at the first of them.
template <int M, int N> KKT_DEVICE void put_columns(const Rows<M, N> &x, const LaneAddress &tile) {
#pragma unroll
    for (int strip = 0; strip < N / 2; ++strip)
#pragma unroll
        for (int m = 0; m < M; ++m)
            store_matrices<true>(tile.by_columns + ValueTile::operand_at(strip, m),
                                 x.operand(m, strip));
}
