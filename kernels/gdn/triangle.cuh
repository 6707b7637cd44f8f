// A chunk's triangular system (I + L) V' = X on chip, by strips of 16 rows. With N = -L and D_i the
// inverse of diagonal block i,
//
//     V'_i = D_i (X_i + sum of N_ij V'_j over j < i)
//
// Transposed, as products X Y^T that stay in registers, for any rows X^T a warp has:
//
//     substitute   X^T is the chunk's own right-hand side, 16 columns of v a row tile
//     invert       X^T is the identity: 16 columns of T = (I + L)^-1 a warp, for all to use
//
// N and D are kept in two parts of bf16 (register_blocks.cuh), good to 2^-16, and so is what is
// multiplied with them; only the result is rounded once. Shared memory:
//
//     lower      blocks (1,0) (2,0) (2,1) (3,0) ... of N, kOperandBytes a part
//     inverses   D of every strip, the same
//     scratch    a region a warp, where its diagonal blocks are inverted (block_inverse.cuh)
#pragma once

#include "device/block_inverse.cuh"
#include "device/register_blocks.cuh"
#include "device/types.cuh"
#include "gdn/chunk_gates.cuh"
#include "gdn/chunk_scores.cuh"
#include "gdn/chunk_tiles.cuh"
#include "gdn/mma_parameters.cuh"

constexpr int kParts = 2;
using Block = Operand<kParts>;

struct RightBlock {
    RightTile part[kParts];
};

// c += X Y^T, the smallest products first.
KKT_DEVICE void multiply_right(Accumulator &c, const Block &x, const RightBlock &y) {
#pragma unroll
    for (int order = kParts - 1; order >= 0; --order)
#pragma unroll
        for (int p = order; p >= 0; --p)
#pragma unroll
            for (int half = 0; half < 2; ++half)
                mma_right<true>(c.half[half], x.part[p], y.part[order - p], half);
}

// a[n] = block (row[n], column[n]) of K K^T. Several at a time do not wait for one another.
template <int N>
KKT_DEVICE void multiply_key_blocks(Accumulator (&a)[N], const LaneAddress &k, const int (&row)[N],
                                    const int (&column)[N]) {
#pragma unroll
    for (int n = 0; n < N; ++n)
        accumulator_clear(a[n]);
#pragma unroll
    for (int step = 0; step < P::dk / 16; ++step)
#pragma unroll
        for (int n = 0; n < N; ++n)
            mma_block(a[n], load_operand_tile(k.by_rows + KeyTile::operand_at(row[n], step)),
                      load_right_tile(k.by_columns + KeyTile::operand_at(column[n], step)));
}

struct Triangle {
    static constexpr int below = P::blocks - P::strips; // blocks below the diagonal
    // A warp's blocks: first the diagonal ones, then those below, each kind dealt out in turn.
    static constexpr int diagonals = divide_up(P::strips, P::warps);
    static constexpr int belows = divide_up(below, P::warps);
    static constexpr int count = diagonals + belows;
    using Scratch = BlockScratch<diagonals, 8, kParts>;

    static constexpr int inverses_at = below * kParts * kOperandBytes;
    static constexpr int scratch_at = inverses_at + P::strips * kParts * kOperandBytes;
    static constexpr int scratch_bytes = round_up(Scratch::bytes, 16);
    static constexpr int bytes = scratch_at + P::warps * scratch_bytes;

    u8 *first;

    __device__ __forceinline__ u8 *inverses() const {
        return first + inverses_at;
    }

    __device__ __forceinline__ u8 *scratch_of(int warp) const {
        return first + scratch_at + warp * scratch_bytes;
    }

    KKT_DEVICE int below_at(int row, int column) {
        return row * (row - 1) / 2 + column;
    }

    KKT_DEVICE void put(u8 *operands, int n, const Block &b, int lane) {
#pragma unroll
        for (int part = 0; part < kParts; ++part)
            put_operand(operands, n * kParts + part, b.part[part], lane);
    }

    KKT_DEVICE Block take(const u8 *operands, int n, int lane) {
        Block b;
#pragma unroll
        for (int part = 0; part < kParts; ++part)
            b.part[part] = take_left_operand(operands, n * kParts + part, lane);
        return b;
    }

    KKT_DEVICE RightBlock take_right(const u8 *operands, int n, int lane) {
        RightBlock b;
#pragma unroll
        for (int part = 0; part < kParts; ++part)
            b.part[part] = take_operand(operands, n * kParts + part, lane);
        return b;
    }

    // Block n of a warp; false where it has no more.
    KKT_DEVICE bool block(int warp, int n, int &row, int &column) {
        if (n < diagonals) {
            row = column = min(warp + n * P::warps, P::strips - 1);
            return warp + n * P::warps < P::strips;
        }
        const int b = warp + (n - diagonals) * P::warps;
        row = 1;
#pragma unroll
        for (int i = 2; i < P::strips; ++i)
            row += b >= i * (i - 1) / 2;
        column = b < below ? b - below_at(row, 0) : 0;
        return b < below;
    }

    // N and D of the warp's blocks, from K K^T. A barrier must follow.
    __device__ __forceinline__ void make(const LaneAddress &k, const ChunkGates<P::chunk> &gates,
                                         int warp, int lane) const {
        constexpr int at_once = divide_up(count, divide_up(count, 4));
        SubOperand<kParts> corner[diagonals]; // the lower left quarter of each diagonal block
        u8 *scratch = scratch_of(warp);
#pragma unroll
        for (int from = 0; from < count; from += at_once) {
            Accumulator a[at_once];
            int row[at_once], column[at_once];
            bool has[at_once];
#pragma unroll
            for (int n = 0; n < at_once; ++n) {
                has[n] = from + n < count && block(warp, from + n, row[n], column[n]);
                if (from + n >= count)
                    row[n] = column[n] = 0;
            }
            multiply_key_blocks(a, k, row, column);
#pragma unroll
            for (int n = 0; n < at_once; ++n) {
                const float *beta = gates.value() + 2 * (row[n] * 16 + fragment_row(lane));
                if (from + n < diagonals) {
                    apply_gamma(a[n], gates, row[n], row[n], make_float2(-beta[0], -beta[16]),
                                lane);
                    put_block<diagonals, 8, kParts>(scratch, a[n], from + n, lane);
                    corner[min(from + n, diagonals - 1)] =
                        round_pair<kParts>(a[n].half[0].value[2], a[n].half[0].value[3]);
                } else if (has[n]) {
                    apply_gamma(a[n], gates, row[n], column[n], make_float2(-beta[0], -beta[16]),
                                lane);
                    put(first, below_at(row[n], column[n]), round_block<kParts>(a[n]), lane);
                }
            }
        }
        invert_diagonals(corner, warp, lane);
    }

    // D of the warp's diagonal blocks, which were put into its scratch.
    __device__ __forceinline__ void invert_diagonals(const SubOperand<kParts> (&corner)[diagonals],
                                                     int warp, int lane) const {
        u8 *scratch = scratch_of(warp);
        __syncwarp();
        ::substitute<diagonals, 8, kParts>(scratch, lane);
        __syncwarp();
#pragma unroll
        for (int n = 0; n < diagonals; ++n)
            if (warp + n * P::warps < P::strips)
                put(inverses(), warp + n * P::warps,
                    take_block_8<diagonals, kParts>(scratch, corner[n], n, lane).plain, lane);
    }

    // V'^T of a warp's rows in the place of X^T, from strip `start` on (before it, X is 0).
    template <int M>
    __device__ __forceinline__ void substitute(Fragment (&x)[M][P::chunk / 8], int start,
                                               int lane) const {
#pragma unroll
        for (int j = 0; j < P::strips; ++j) {
            if (j < start)
                continue;
            const RightBlock inverse = take_right(inverses(), j, lane);
            Block values[M];
#pragma unroll
            for (int m = 0; m < M; ++m) {
                const Accumulator right = {{x[m][2 * j], x[m][2 * j + 1]}};
                Accumulator a;
                accumulator_clear(a);
                multiply_right(a, round_block<kParts>(right), inverse);
                x[m][2 * j] = a.half[0];
                x[m][2 * j + 1] = a.half[1];
                values[m] = round_block<kParts>(a);
            }
            eliminate<M>(x, values, j, lane);
        }
    }

    // 16 columns of T from strip `column` on, rounded, into the list of operands `t`.
    __device__ __forceinline__ void invert(u8 *t, int column, int lane) const {
        Fragment x[1][P::chunk / 8];
#pragma unroll
        for (int n = 0; n < P::chunk / 8; ++n)
            fragment_clear(x[0][n]);
        const Block inverse = take(inverses(), column, lane);
        put_operand(t, lower_block(column, column), output_tile<P::bf16>(inverse), lane);
        const Block values[1] = {transpose_block(inverse)};
#pragma unroll
        for (int j = 0; j < P::strips; ++j) // which strip it is must be known to the compiler
            if (j == column)
                eliminate<1>(x, values, j, lane);
        substitute<1>(x, column + 1, lane);
#pragma unroll
        for (int i = 1; i < P::strips; ++i)
            if (i > column) {
                const Accumulator a = {{x[0][2 * i], x[0][2 * i + 1]}};
                put_operand(t, lower_block(i, column), transpose_tile(output_tile<P::bf16>(a)),
                            lane);
            }
    }

  private:
    // x_i += N_ij V'_j for the strips i below j.
    template <int M>
    __device__ __forceinline__ void eliminate(Fragment (&x)[M][P::chunk / 8],
                                              const Block (&values)[M], int j, int lane) const {
#pragma unroll
        for (int i = 1; i < P::strips; ++i) {
            if (i <= j)
                continue;
            const RightBlock n = take_right(first, below_at(i, j), lane);
#pragma unroll
            for (int m = 0; m < M; ++m) {
                Accumulator a = {{x[m][2 * i], x[m][2 * i + 1]}};
                multiply_right(a, values[m], n);
                x[m][2 * i] = a.half[0];
                x[m][2 * i + 1] = a.half[1];
            }
        }
    }
};
