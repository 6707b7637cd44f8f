// The forward pass with tokens along the rows, for the fragment style: a chunk's tables live in
// fragments of the warps that own its strips of 16 tokens.
//
//     tables     chunk x chunk     a warp owns whole strips of rows
//     X, V', O   chunk x block_dv  the same strips; with more warps than strips, a part of their
//                                  columns (and the warps of a strip hold its tables alike)
//     S          dk x block_dv     strips of rows of its own
//
// Every product's left operand is a warp's own rows; the right operand is a tile in shared memory,
// row-major in the direction of the sum, so that it is read transposed.
#pragma once

#include "device/matrix_move.cuh"
#include "device/mma_sync.cuh"
#include "device/register_blocks.cuh"
#include "device/types.cuh"
#include "gdn/chunk_gates.cuh"
#include "gdn/chunk_scores.cuh"
#include "gdn/chunk_tiles.cuh"
#include "gdn/mma_parameters.cuh"

// How the warps share STRIPS x block_dv: as many along the strips as divide them.
template <int STRIPS> struct WarpGrid {
    static constexpr int row_warps = common_divisor(STRIPS, P::warps);
    static constexpr int column_warps = P::warps / row_warps;
    static constexpr int strips = STRIPS / row_warps;               // a warp's
    static constexpr int columns = P::block_dv / column_warps / 16; // in steps of 16
    static_assert(columns * 16 * column_warps == P::block_dv, "whole steps of 16 columns a warp");

    int row_warp, column; // column: the warp's first, in steps of 16

    KKT_DEVICE WarpGrid make(int warp) {
        return {warp % row_warps, warp / row_warps * columns};
    }
    // Rows are dealt out in turn, so that a triangle's long and short ones are mixed.
    __device__ __forceinline__ int strip(int n) const {
        return row_warp + n * row_warps;
    }
};

using TokenGrid = WarpGrid<P::strips>;
using StateGrid = WarpGrid<P::dk / 16>;
using StateTile = PaddedTile<P::dk, P::block_dv>;

// A warp's strips of an accumulator, N steps of 16 columns.
template <int R, int N> struct Strips {
    Accumulator a[R][N];

    __device__ __forceinline__ void clear() {
#pragma unroll
        for (int r = 0; r < R; ++r)
#pragma unroll
            for (int n = 0; n < N; ++n)
                accumulator_clear(a[r][n]);
    }

    // Rows lane / 4 and lane / 4 + 8 of strip r times factors.
    __device__ __forceinline__ void scale(int r, float upper, float lower) {
#pragma unroll
        for (int n = 0; n < N; ++n)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                a[r][n].half[half].value[0] *= upper;
                a[r][n].half[half].value[1] *= upper;
                a[r][n].half[half].value[2] *= lower;
                a[r][n].half[half].value[3] *= lower;
            }
    }
};

using TokenTable = Strips<TokenGrid::strips, P::strips>;           // chunk x chunk
using TokenValues = Strips<TokenGrid::strips, TokenGrid::columns>; // chunk x block_dv
using StateStrips = Strips<StateGrid::strips, StateGrid::columns>; // dk x block_dv

// Rounded table rows as left operands.
struct TableOperands {
    OperandTile block[TokenGrid::strips][P::strips];
};

KKT_DEVICE TableOperands round_table(const TokenTable &t) {
    TableOperands o;
#pragma unroll
    for (int r = 0; r < TokenGrid::strips; ++r)
#pragma unroll
        for (int j = 0; j < P::strips; ++j)
            o.block[r][j] = output_tile<P::bf16>(t.a[r][j]);
    return o;
}

// A table times Gamma and a factor for each of a lane's rows of a strip.
KKT_DEVICE void apply_table(TokenTable &table, const TokenTable &gamma, int r, float upper,
                            float lower) {
#pragma unroll
    for (int j = 0; j < P::strips; ++j)
#pragma unroll
        for (int e = 0; e < 8; ++e)
            table.a[r][j].half[e / 4].value[e % 4] *=
                (e % 4 / 2 ? lower : upper) * gamma.a[r][j].half[e / 4].value[e % 4];
}

// Gamma on and below the diagonal, 0 above.
KKT_DEVICE void make_gamma(TokenTable &gamma, const ChunkGates<P::chunk> &gates,
                           const TokenGrid &grid, int lane) {
#pragma unroll
    for (int r = 0; r < TokenGrid::strips; ++r) {
        const int i = grid.strip(r);
        const int row = i * 16 + fragment_row(lane);
        const float sum[2] = {gates.sum()[row], gates.sum()[row + 8]};
        const float factor[2] = {gates.row()[row], gates.row()[row + 8]};
#pragma unroll
        for (int j = 0; j < P::strips; ++j) {
            const float between = gates.between()[i * P::strips + j];
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int column = j * 16 + half * 8 + fragment_column(lane);
                const float2 by =
                    *(const float2 *)((i == j ? gates.sum() : gates.column()) + column);
#pragma unroll
                for (int e = 0; e < 4; ++e) {
                    const float c = e % 2 ? by.y : by.x;
                    float &value = gamma.a[r][j].half[half].value[e];
                    if (i == j)
                        value = gate_inside(sum[e / 2], c, row + e / 2 * 8 >= column + e % 2);
                    else
                        value = i > j ? factor[e / 2] * between * c : 0.0f;
                }
            }
        }
    }
}

// tables[n] += X_n K^T on and below the diagonal, N tiles of keys or queries at once.
template <int N>
KKT_DEVICE void multiply_keys(TokenTable (&tables)[N], const LaneAddress (&x)[N],
                              const LaneAddress &k, const TokenGrid &grid) {
    constexpr int R = TokenGrid::strips;
#pragma unroll
    for (int step = 0; step < P::dk / 16; ++step) {
        OperandTile left[N][R];
#pragma unroll
        for (int n = 0; n < N; ++n)
#pragma unroll
            for (int r = 0; r < R; ++r)
                left[n][r] =
                    load_operand_tile(x[n].by_rows + KeyTile::operand_at(grid.strip(r), step));
#pragma unroll
        for (int j = 0; j < P::strips; ++j) {
            if (j > grid.strip(R - 1))
                break;
            const RightTile right = load_right_tile(k.by_columns + KeyTile::operand_at(j, step));
#pragma unroll
            for (int r = 0; r < R; ++r)
                if (j <= grid.strip(r))
#pragma unroll
                    for (int n = 0; n < N; ++n)
                        mma_block(tables[n].a[r][j], left[n][r], right);
        }
    }
}

// c += X S for the tokens' rows of a tile X of keys or queries; `s` is at the warp's columns of the
// tile of S, rounded.
KKT_DEVICE void multiply_state(TokenValues &c, const LaneAddress &x, const LaneAddress &s,
                               const TokenGrid &grid) {
#pragma unroll
    for (int step = 0; step < P::dk / 16; ++step) {
        OperandTile left[TokenGrid::strips];
#pragma unroll
        for (int r = 0; r < TokenGrid::strips; ++r)
            left[r] = load_operand_tile(x.by_rows + KeyTile::operand_at(grid.strip(r), step));
#pragma unroll
        for (int n = 0; n < TokenGrid::columns; ++n) {
            const RightTile right =
                load_transposed_right_tile(s.by_rows + StateTile::operand_at(step, n));
#pragma unroll
            for (int r = 0; r < TokenGrid::strips; ++r)
                mma_block(c.a[r][n], left[r], right);
        }
    }
}

// c += table X for a lower triangular table; `x` is at the warp's columns of the tile of X, and
// `left(r, j)` gives a block of the warp's rows.
template <class Left>
KKT_DEVICE void multiply_table(TokenValues &c, const Left &left, const LaneAddress &x,
                               const TokenGrid &grid) {
#pragma unroll
    for (int j = 0; j < P::strips; ++j) {
        if (j > grid.strip(TokenGrid::strips - 1))
            break;
        RightTile right[TokenGrid::columns];
#pragma unroll
        for (int n = 0; n < TokenGrid::columns; ++n)
            right[n] = load_transposed_right_tile(x.by_rows + ValueTile::operand_at(j, n));
#pragma unroll
        for (int r = 0; r < TokenGrid::strips; ++r) {
            if (j <= grid.strip(r)) {
                const OperandTile block = left(r, j);
#pragma unroll
                for (int n = 0; n < TokenGrid::columns; ++n)
                    mma_block(c.a[r][n], block, right[n]);
            }
        }
    }
}

// X = diag(beta) V - diag(beta e^G) (K S) in the place of K S; `v` is at the warp's columns of the
// tile of V.
KKT_DEVICE void take_values(TokenValues &c, const LaneAddress &v, const ChunkGates<P::chunk> &gates,
                            const TokenGrid &grid, int lane) {
#pragma unroll
    for (int r = 0; r < TokenGrid::strips; ++r) {
        const int row = grid.strip(r) * 16 + fragment_row(lane);
        const float2 upper = *(const float2 *)(gates.value() + 2 * row);
        const float2 lower = *(const float2 *)(gates.value() + 2 * (row + 8));
#pragma unroll
        for (int n = 0; n < TokenGrid::columns; ++n) {
            const OperandTile values =
                load_operand_tile(v.by_rows + ValueTile::operand_at(grid.strip(r), n));
#pragma unroll
            for (int q = 0; q < 4; ++q) {
                const float2 pair = unpack_element_pair(values.quarter[q]);
                const float2 by = q % 2 ? lower : upper;
                float *x = c.a[r][n].half[q / 2].value + q % 2 * 2;
                x[0] = by.x * pair.x - by.y * x[0];
                x[1] = by.x * pair.y - by.y * x[1];
            }
        }
    }
}

// The warp's rows, rounded, to its columns of a tile.
template <class Tile, class Grid, int R, int N>
KKT_DEVICE void put_rows(const LaneAddress &x, const Strips<R, N> &c, const Grid &grid) {
#pragma unroll
    for (int r = 0; r < R; ++r)
#pragma unroll
        for (int n = 0; n < N; ++n)
            store_matrices<false>(x.by_rows + Tile::operand_at(grid.strip(r), n),
                                  output_tile<P::bf16>(c.a[r][n]));
}

// S = decay S + K^T X; `x` is at the columns of the tile of X that the warp has of S.
KKT_DEVICE void update_state(StateStrips &s, float decay, const LaneAddress &k,
                             const LaneAddress &x, const StateGrid &grid) {
#pragma unroll
    for (int r = 0; r < StateGrid::strips; ++r)
        s.scale(r, decay, decay);
#pragma unroll
    for (int step = 0; step < P::strips; ++step) {
        OperandTile left[StateGrid::strips];
#pragma unroll
        for (int r = 0; r < StateGrid::strips; ++r)
            left[r] = load_transposed_tile(k.by_columns + KeyTile::operand_at(step, grid.strip(r)));
#pragma unroll
        for (int n = 0; n < StateGrid::columns; ++n) {
            const RightTile right =
                load_transposed_right_tile(x.by_rows + ValueTile::operand_at(step, n));
#pragma unroll
            for (int r = 0; r < StateGrid::strips; ++r)
                mma_block(s.a[r][n], left[r], right);
        }
    }
}

// The warp's part of a head's state in global memory: `use(pair, at)` gets two neighbouring floats
// and the element they lie at.
template <class Use>
KKT_DEVICE void for_state_pairs(const StateGrid &grid, int lane, const Use &use) {
#pragma unroll
    for (int r = 0; r < StateGrid::strips; ++r)
#pragma unroll
        for (int n = 0; n < StateGrid::columns; ++n)
#pragma unroll
            for (int q = 0; q < 4; ++q) {
                const int row = grid.strip(r) * 16 + q % 2 * 8 + fragment_row(lane);
                const int column = (grid.column + n) * 16 + q / 2 * 8 + fragment_column(lane);
                use(r, n, q, row * P::dv + column);
            }
}

// `from` and `to` point at the block's first column; NULL: zeros.
KKT_DEVICE void load_state(StateStrips &s, const float *from, const StateGrid &grid, int lane) {
    for_state_pairs(grid, lane, [&](int r, int n, int q, int at) {
        float *pair = s.a[r][n].half[q / 2].value + q % 2 * 2;
        const float2 x = from ? __ldg((const float2 *)(from + at)) : make_float2(0.0f, 0.0f);
        pair[0] = x.x, pair[1] = x.y;
    });
}

KKT_DEVICE void store_state(const StateStrips &s, float *to, const StateGrid &grid, int lane) {
    for_state_pairs(grid, lane, [&](int r, int n, int q, int at) {
        const float *pair = s.a[r][n].half[q / 2].value + q % 2 * 2;
        *(float2 *)(to + at) = make_float2(pair[0], pair[1]);
    });
}
