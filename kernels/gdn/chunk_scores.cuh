// P = scale Gamma o (Q K^T), lower triangular, as operands in shared memory: block n of the list of
// blocks on and below the diagonal at n x kOperandBytes. And what K K^T shares with it.
#pragma once

#include "device/gate.cuh"
#include "device/mma_sync.cuh"
#include "device/register_blocks.cuh"
#include "gdn/chunk_gates.cuh"
#include "gdn/chunk_tiles.cuh"
#include "gdn/mma_parameters.cuh"

KKT_DEVICE void mma_block(Accumulator &c, const OperandTile &x, const RightTile &y) {
    mma_right<P::bf16>(c.half[0], x, y, 0);
    mma_right<P::bf16>(c.half[1], x, y, 1);
}

// Block (i, j) of a product times Gamma and a factor for each of a lane's two rows; 0 above the
// diagonal.
KKT_DEVICE void apply_gamma(Accumulator &a, const ChunkGates<P::chunk> &gates, int i, int j,
                            float2 rows, int lane) {
    const int r = i * 16 + fragment_row(lane);
    const int c = j * 16 + fragment_column(lane);
    if (i != j) {
        const float between = gates.between()[i * P::strips + j];
        rows.x *= gates.row()[r] * between;
        rows.y *= gates.row()[r + 8] * between;
    }
    const float sum[2] = {gates.sum()[r], gates.sum()[r + 8]};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const float2 by = *(const float2 *)((i != j ? gates.column() : gates.sum()) + c + half * 8);
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            const float column = e % 2 ? by.y : by.x;
            const float gamma =
                i != j ? column
                       : gate_inside(sum[e / 2], column, r + e / 2 * 8 >= c + half * 8 + e % 2);
            a.half[half].value[e] *= (e / 2 ? rows.y : rows.x) * gamma;
        }
    }
}

// How the warps share the blocks: a warp has strips of rows, long and short ones in pairs; where
// there are more warps than strips, those of a strip take its columns in turn.
struct Scores {
    static constexpr int row_warps = common_divisor(P::strips, P::warps);
    static constexpr int column_warps = P::warps / row_warps;
    static constexpr int strips = P::strips / row_warps; // of a warp
    static constexpr int columns = divide_up(P::strips, column_warps);

    // The warp with the fewest blocks.
    static constexpr int idlest_warp = (column_warps - 1) * row_warps;

    Accumulator a[strips][columns];
    int row_warp, column_warp;

    __device__ __forceinline__ void clear(int warp) {
        row_warp = warp % row_warps;
        column_warp = warp / row_warps;
#pragma unroll
        for (int n = 0; n < strips; ++n)
#pragma unroll
            for (int c = 0; c < columns; ++c)
                accumulator_clear(a[n][c]);
    }

    __device__ __forceinline__ int strip(int n) const {
        return n * row_warps + (n % 2 ? row_warps - 1 - row_warp : row_warp);
    }

    __device__ __forceinline__ bool has(int n, int j) const {
        return j % column_warps == column_warp && j <= strip(n);
    }

    // A step of 16 columns of Q K^T; `keys` are the step's operands of K.
    __device__ __forceinline__ void add(const LaneAddress &q, int step,
                                        const RightTile (&keys)[P::strips]) {
#pragma unroll
        for (int n = 0; n < strips; ++n) {
            const OperandTile rows =
                load_operand_tile(q.by_rows + KeyTile::operand_at(strip(n), step));
#pragma unroll
            for (int j = 0; j < P::strips; ++j)
                if (has(n, j))
                    mma_block(a[n][j / column_warps], rows, keys[j]);
        }
    }

    // All steps.
    __device__ __forceinline__ void multiply(const LaneAddress &q, const LaneAddress &k) {
#pragma unroll
        for (int step = 0; step < P::dk / 16; ++step) {
            RightTile keys[P::strips];
#pragma unroll
            for (int j = 0; j < P::strips; ++j)
                if (j <= strip(strips - 1) || j <= strip(strips > 1 ? strips - 2 : 0))
                    keys[j] = load_right_tile(k.by_columns + KeyTile::operand_at(j, step));
            add(q, step, keys);
        }
    }

    // P, rounded, to shared memory; a barrier must follow.
    __device__ __forceinline__ void put(u8 *scores, const ChunkGates<P::chunk> &gates, float scale,
                                        int lane) {
#pragma unroll
        for (int n = 0; n < strips; ++n)
#pragma unroll
            for (int j = 0; j < P::strips; ++j)
                if (has(n, j)) {
                    Accumulator &block = a[n][j / column_warps];
                    apply_gamma(block, gates, strip(n), j, make_float2(scale, scale), lane);
                    put_operand(scores, lower_block(strip(n), j), output_tile<P::bf16>(block),
                                lane);
                }
    }
};
