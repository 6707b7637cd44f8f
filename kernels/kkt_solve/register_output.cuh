// Step 3 of the register path, its end: blocks of T in fragments to their place in memory.
//
// Blocks are collected in tiles (swizzle.cuh) and sent from there, by TMA or in 16-byte pieces, or
// go out from fragments as they are. A tile is the span of a head, or what of it is sent on its
// own:
//
//     one tile       two halves         quarters of a team
//     +--------+     +--------+         +---+---+
//     |        |     |   0    |         | 0 | z |     z: zeros, one tile for all teams
//     |   0    |     +--------+         +---+---+
//     |        |     |   1    |         | 2 | 1 |     2 takes the place of 0
//     +--------+     +--------+         +---+---+
#pragma once

#include "device/matrix_move.cuh"
#include "device/tensor_map.cuh"
#include "kkt_solve/register_layout.cuh"
#include "kkt_solve/work.cuh"

// Where a warp's head goes.
struct Out {
    const TensorMap *map; // NULL where T does not go by TMA
    u16 *t;               // first row of the head's span
    i64 row_stride;       // elements
    int column, row;      // of the same in the map
    int rows;             // valid
    u8 *tile[2];          // of the halves, or a team's; else [0] alone
    const float *beta;    // -beta_i in pair order (gate_factors.cuh), of the span
    int lane;

    using Tile = Layout::OutTile;
    static constexpr int strips = Layout::out_rows / 16; // of a tile

    // A block of strip row or column `strip`, as it is or transposed, in T's form and type.
    template <bool TRANSPOSED, class Value>
    __device__ __forceinline__ OperandTile finish(const Value &block, int strip) const {
        if constexpr (P::times_beta) {
            Accumulator a = widen_block(block);
            const float *b = beta + strip * 16;
            if constexpr (TRANSPOSED) {
                const float2 rows_b = *(const float2 *)(b + lane / 4 * 2);
                scale_block(a, {-rows_b.x, -rows_b.y}, {1, 1, 1, 1});
            } else {
                const float4 v = *(const float4 *)(b + lane % 4 * 4);
                scale_block(a, {1, 1}, {-v.x, -v.z, -v.y, -v.w});
            }
            return output_tile<P::bf16>(a);
        } else {
            return output_tile<P::bf16>(block);
        }
    }

    // The row of an 8 x 8 matrix of block (i, j) that this lane names (matrix_move.cuh).
    template <bool TRANSPOSED> __device__ __forceinline__ u8 *row_of_matrix(int i, int j) const {
        const int r = i % strips * 16 + lane % 8 + (TRANSPOSED ? lane / 16 : lane / 8 % 2) * 8;
        const int unit = 2 * j + (TRANSPOSED ? lane / 8 % 2 : lane / 16);
        return (P::team == 2 ? tile[0] : tile[i / strips]) + Tile::at(r, unit);
    }

    // Block (i, j) of the tile or of the span, whose transpose is given where TRANSPOSED; j counts
    // from the tile's first column.
    template <bool TRANSPOSED>
    __device__ __forceinline__ void put(int i, int j, const OperandTile &block) const {
        if constexpr (P::store == kDirect)
            put_direct(i, j, TRANSPOSED ? transpose_tile(block) : block);
        else
            store_matrices<TRANSPOSED>(shared_address(row_of_matrix<TRANSPOSED>(i, j)), block);
    }

    __device__ __forceinline__ void put_direct(int i, int j, const OperandTile &block) const {
#pragma unroll
        for (int q = 0; q < 4; ++q) {
            const int r = i * 16 + q % 2 * 8 + fragment_row(lane);
            u16 *at = t + r * row_stride + j * 16 + q / 2 * 8 + fragment_column(lane);
            if (r < rows)
                *(u32 *)at = block.quarter[q];
        }
    }

    // Zeros above the diagonal of a triangle of SIDE strips, in block row i.
    template <int SIDE> __device__ __forceinline__ void clear_above(int i) const {
#pragma unroll
        for (int j = i % SIDE + 1; j < SIDE; ++j) {
            if constexpr (P::store == kDirect)
                put_direct(i, j, {{0, 0, 0, 0}});
            else // one register of zeros is enough
                *(uint4 *)row_of_matrix<false>(i, j) = make_uint4(0, 0, 0, 0);
        }
    }

    // Returns when the tiles sent so far may be overwritten.
    __device__ __forceinline__ void wait() const {
        if (P::store >= kTmaStore && lane == 0)
            tile_store_wait_read();
        __syncwarp();
    }

    // Sends a tile that this warp has finished, to the rows and columns from (i, j) on.
    __device__ __forceinline__ void send(const u8 *source, int i, int j) const {
        if constexpr (P::store == kDirect)
            return;
        if (P::store >= kTmaStore && map) {
            async_proxy_fence();
            __syncwarp();
            if (lane == 0) {
#pragma unroll
                for (int panel = 0; panel < Tile::panels; ++panel)
                    tile_store(*map, column + j + panel * 64, row + i,
                               source + panel * Tile::panel_bytes);
            }
        } else {
            __syncwarp();
            send_pieces(source, i, j, lane, kWarp);
        }
    }

    // The same by `count` threads, in 16-byte pieces.
    __device__ __forceinline__ void send_pieces(const u8 *source, int i, int j, int thread,
                                                int count) const {
#pragma unroll(P::store == kStaged ? 8 : 1) // by TMA: tails alone come here
        for (int n = thread; n < Layout::out_rows * Tile::units; n += count) {
            const int r = i + n / Tile::units;
            const int unit = n % Tile::units;
            const uint4 v = *(const uint4 *)(source + Tile::at(n / Tile::units, unit));
            if (r < rows)
                *(uint4 *)(t + r * row_stride + j + unit * 8) = v;
        }
    }
};

// Zeros above the diagonal to a tile that is the first half of a chunk, ahead of all else in it.
KKT_DEVICE void clear_first_half(u8 *tile, int lane) {
    Out out = {};
    out.tile[0] = tile;
    out.lane = lane;
#pragma unroll
    for (int i = 0; i < Out::strips; ++i)
        out.clear_above<Tiles::side>(i);
}
