// What a block of the forward kernels reads and writes of its sequence.
#pragma once

#include "device/async_copy.cuh"
#include "device/copy_ring.cuh"
#include "device/types.cuh"
#include "gdn/chunk_gates.cuh"
#include "gdn/chunk_tiles.cuh"
#include "gdn/mma_parameters.cuh"
#include "gdn/mma_work.cuh"

struct Sequence {
    using KeyShare = TileShare<P::chunk, P::dk, P::threads>;
    using ValueShare = TileShare<P::chunk, P::block_dv, P::threads>;

    const u16 *q, *k, *v;  // first rows, at the block's head and columns
    const float *beta, *g; // NULL: 1, and no gate
    u16 *o;
    int k_stride, v_stride, gate_stride; // elements from row to row
    KeyShare keys;                       // this thread's
    ValueShare values;

    KKT_DEVICE Sequence make(const Problem &p, const Work &w) {
        const i64 key = (w.first * p.heads_k + w.head_k) * P::dk;
        const i64 token = w.first * p.heads_v + w.head_v;
        const i64 value = token * P::dv + w.column;
        return {p.q + key,
                p.k + key,
                p.v + value,
                p.beta ? p.beta + token : nullptr,
                P::gated ? p.g + token : nullptr,
                p.o + value,
                p.heads_k * P::dk,
                p.heads_v * P::dv,
                p.heads_v,
                KeyShare::make(threadIdx.x, p.heads_k * P::dk),
                ValueShare::make(threadIdx.x, p.heads_v * P::dv)};
    }

    // Asynchronous copies of the chunk that begins `at` tokens into the sequence, all threads.
    __device__ __forceinline__ void ask_keys(u8 *k_tile, u8 *q_tile, i64 at, int rows) const {
        keys.copy(k_tile, k + at * k_stride, rows);
        keys.copy(q_tile, q + at * k_stride, rows);
    }

    // May follow store_output of the same tile at once: a thread writes where it has read.
    __device__ __forceinline__ void ask_values(u8 *tile, i64 at, int rows) const {
        values.copy(tile, v + at * v_stride, rows);
    }

    __device__ __forceinline__ void store_output(const u8 *tile, i64 at, int rows) const {
        values.store(tile, o + at * v_stride, rows);
    }

    // The chunk's gates, one warp.
    __device__ __forceinline__ void ask_gates(GateRows<P::chunk> &gates, i64 at, int rows,
                                              int lane) const {
        gates.ask(g ? g + at * gate_stride : nullptr, beta ? beta + at * gate_stride : nullptr,
                  gate_stride, rows, lane);
    }
};

// T of a sequence and head, as kkt_solve writes it. Blocks above the diagonal are zeros, and never
// read. In shared memory the others are a list of TBlocks.
struct TMatrix {
    static constexpr int units = P::chunk / 8; // of 16 bytes, a row
    static constexpr int step = P::threads / units;
    static constexpr int rounds = divide_up(P::chunk, step);

    const u16 *first; // the sequence's first row
    int stride;       // elements from row to row
    int row, unit;    // this thread's, every `step` rows

    KKT_DEVICE TMatrix make(const Problem &p, const Work &w) {
        return {p.t + (w.first * p.heads_v + w.head_v) * P::chunk, p.heads_v * P::chunk,
                (int)threadIdx.x / units, (int)threadIdx.x % units};
    }

    // Asynchronous copies of one round of the chunk that begins `at` tokens into the sequence.
    // Rows from `valid` on become zeros.
    __device__ __forceinline__ void ask_round(u8 *blocks, i64 at, int n, int valid) const {
        const int r = row + n * step;
        const int strip = r / 16;
        const bool inside = r < valid;
        const u16 *source = first + at * stride;
        if (r < P::chunk && unit / 2 <= strip)
            async_copy_16(blocks + lower_block(strip, unit / 2) * TBlock::bytes +
                              TBlock::at(r % 16, unit % 2),
                          inside ? source + (r * stride + unit * 8) : source, inside);
    }

    __device__ __forceinline__ void ask(u8 *blocks, i64 at, int valid) const {
#pragma unroll 1
        for (int n = 0; n < rounds; ++n)
            ask_round(blocks, at, n, valid);
    }

    // Block (i, j), j <= i, as an operand straight from global memory: a word is two neighbouring
    // elements.
    __device__ __forceinline__ OperandTile load(i64 at, int valid, int i, int j, int lane) const {
        OperandTile block;
#pragma unroll
        for (int q = 0; q < 4; ++q) {
            const int r = i * 16 + q % 2 * 8 + fragment_row(lane);
            const int column = j * 16 + q / 2 * 8 + fragment_column(lane);
            block.quarter[q] =
                r < valid ? __ldg((const u32 *)(first + at * stride + (r * stride + column))) : 0;
        }
        return block;
    }
};
