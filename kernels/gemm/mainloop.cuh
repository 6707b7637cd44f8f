// The loop along k of the pipelined product: a ring of STAGES slots in shared memory, each with a
// tile of A and one of B. All threads copy, STAGES - 1 steps ahead, and all multiply.
//
// Operands come into registers 16 terms ahead of their products, the first ones of a step at the
// end of the step before; that needs a barrier a step: behind it the slot that the block has left
// is free, and the next one is there.
//
//     step s     copy s + STAGES - 1 begins
//                16 terms: load the next 16, multiply these     ... the last time:
//                          wait for slot s + 1, barrier, load its first 16, multiply these
//
// With one stage nothing is in flight: copy, wait, barrier, multiply, barrier.
//
//     slot    a, then b (operand_tile.cuh)
#pragma once

#include "device/copy_groups.cuh"
#include "device/tile_math.cuh"
#include "device/types.cuh"
#include "gemm/epilogue.cuh"
#include "gemm/matrix.cuh"
#include "gemm/operand_tile.cuh"
#include "gemm/parameters.cuh"

constexpr int kStages = KKT_STAGES;
constexpr bool kSwizzle = KKT_SWIZZLE;

using AStore = OperandStore<P::bm, P::bk, P::a_along_k, kSwizzle>;
using BStore = OperandStore<P::bn, P::bk, P::b_along_k, kSwizzle>;

struct Ring {
    static constexpr int b_at = kStages * AStore::bytes;
    static constexpr int bytes = b_at + kStages * BStore::bytes;
};

// 16 terms of a warp's lines.
struct Terms {
    OperandTile a[P::strips];
    RightTile b[P::columns];

    __device__ __forceinline__ void load(u32 a_first, u32 b_first, int d) {
#pragma unroll
        for (int s = 0; s < P::strips; ++s)
            a[s] = AStore::load_left(a_first, s, d);
#pragma unroll
        for (int t = 0; t < P::columns; ++t)
            b[t] = BStore::load_right(b_first, t, d);
    }
    __device__ __forceinline__ void multiply(Sums &sums) const {
#pragma unroll
        for (int s = 0; s < P::strips; ++s)
#pragma unroll
            for (int t = 0; t < P::columns; ++t)
                sums[s].template add<P::bf16>(t, a[s], b[t]);
    }
};

KKT_DEVICE int next_slot(int slot) {
    return slot + 1 == kStages ? 0 : slot + 1;
}

// A block's way along k.
struct Mainloop {
    AStore::Share<P::threads> a;
    BStore::Share<P::threads> b;
    const u16 *anywhere; // readable
    int terms;           // not yet asked for
    u8 *ring;
    u32 a_lane, b_lane; // this lane's addresses in slot 0, for the warp's first operand

    // Terms `first` to `end` of the tile at `row` and `column`.
    KKT_DEVICE Mainloop make(const Matrix<P::a_along_k> &left, const Matrix<P::b_along_k> &right,
                             int row, int column, int first, int end, u8 *ring, int warp_row,
                             int warp_column, int lane) {
        Mainloop l;
        l.a = AStore::Share<P::threads>::make(left, row, first, threadIdx.x);
        l.b = BStore::Share<P::threads>::make(right, column, first, threadIdx.x);
        l.anywhere = left.data;
        l.terms = end - first;
        l.ring = ring;
        l.a_lane =
            AStore::operand(shared_address(ring) + AStore::left_offset(lane), warp_row / 16, 0);
        l.b_lane = BStore::operand(shared_address(ring + Ring::b_at) + BStore::right_offset(lane),
                                   warp_column / 16, 0);
        return l;
    }

    // Asks for the next step, if there is one; an empty group if not.
    __device__ __forceinline__ void copy(int slot) {
        if (terms > 0) {
            a.copy(ring + slot * AStore::bytes, terms, anywhere);
            b.copy(ring + Ring::b_at + slot * BStore::bytes, terms, anywhere);
        }
        terms -= P::bk;
        copy_group_end();
    }

    __device__ __forceinline__ void load(Terms &t, int slot, int d) const {
        t.load(a_lane + slot * AStore::bytes, b_lane + slot * BStore::bytes, d);
    }

    __device__ __forceinline__ void run(Sums &sums) {
        const int steps = divide_up(terms, P::bk);
        if constexpr (kStages == 1)
            run_serially(sums, steps);
        else
            run_ahead(sums, steps);
        // What follows may use the ring.
        copy_group_wait<0>();
        __syncthreads();
    }

  private:
    __device__ __forceinline__ void run_serially(Sums &sums, int steps) {
#pragma unroll 1
        for (int step = 0; step < steps; ++step) {
            copy(0);
            copy_group_wait<0>();
            __syncthreads();
#pragma unroll
            for (int d = 0; d < P::depth; ++d) {
                Terms t;
                load(t, 0, d);
                t.multiply(sums);
            }
            __syncthreads();
        }
    }

    __device__ __forceinline__ void run_ahead(Sums &sums, int steps) {
#pragma unroll
        for (int s = 0; s < kStages - 1; ++s)
            copy(s);
        copy_group_wait<larger(kStages - 2, 0)>();
        __syncthreads();
        Terms t[2];
        int read = 0, write = kStages - 1;
        load(t[0], read, 0);
#pragma unroll 1
        for (int step = 0; step < steps; ++step) {
            copy(write);
            write = next_slot(write);
#pragma unroll
            for (int d = 0; d < P::depth; ++d) {
                if (d == P::depth - 1) {
                    copy_group_wait<larger(kStages - 2, 0)>();
                    __syncthreads();
                    read = next_slot(read);
                }
                load(t[(d + 1) % 2], read, (d + 1) % P::depth);
                t[d % 2].multiply(sums);
            }
            if constexpr (P::depth % 2 == 1)
                t[0] = t[1];
        }
    }
};
