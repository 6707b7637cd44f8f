// A warpgroup's products: its rows of a tile over K.
#pragma once

#include "device/mbarrier.cuh"
#include "device/warp_roles.cuh"
#include "gemm/ws_cluster.cuh"
#include "gemm/ws_layout.cuh"
#include "gemm/ws_schedule.cuh"
#include "gemm/ws_wgmma.cuh"

// One warpgroup waits for its turn to multiply, the other one gives it.
KKT_DEVICE void take_turn(int group) {
    asm volatile("bar.sync %0, 256;" ::"r"(group + 3) : "memory");
}

KKT_DEVICE void give_turn(int group) {
    asm volatile("bar.arrive %0, 256;" ::"r"((group ^ 1) + 3) : "memory");
}

// Rows of C in a warpgroup's registers, 64 at a time.
struct Accumulator {
    float block[P::row_blocks][P::bn / 2];
};

KKT_DEVICE void clear(Accumulator &c) {
#pragma unroll
    for (int r = 0; r < P::row_blocks; ++r)
#pragma unroll
        for (int i = 0; i < P::bn / 2; ++i)
            c.block[r][i] = 0;
}

KKT_DEVICE void hold(Accumulator &c) {
#pragma unroll
    for (int r = 0; r < P::row_blocks; ++r)
        hold(c.block[r]);
}

// Tells every block that writes to a stage of this one that this warp has read it: lane i the i-th
// of the blocks across, then of those down that are not among them.
struct Release {
    u32 rank;
    bool here;

    KKT_DEVICE Release of(const Place &place, int lane) {
        constexpr int writers = P::cluster_m + P::cluster_n - 1;
        Release r;
        const int i = lane - P::cluster_n;
        r.here = lane < writers;
        r.rank = lane < P::cluster_n
                     ? Place::rank_at(place.part, place.down, lane)
                     : Place::rank_at(place.part, i + (i >= place.down), place.across);
        return r;
    }

    __device__ __forceinline__ void operator()(u64 *empty) const {
        if (P::mn == 1) {
            if (here)
                mbarrier_arrive(empty);
        } else if (here) {
            mbarrier_arrive_in_block(empty, rank);
        }
    }
};

// Asks for c = A B over `count` K steps of the ring. The products of one step are in flight while
// those of the next are asked for; a stage is handed back when the step behind it has begun.
// Returns the slot of the last step, whose products are in flight still.
KKT_DEVICE int multiply(Accumulator &c, Ring<P::stages> &ring, int count, u32 smem, int group,
                        u64 *full, u64 *empty, const Release &release) {
    if (count == 0)
        clear(c);
    int last = 0;
    for (int k = 0; k < count; ++k) {
        mbarrier_wait(full + ring.slot, ring.parity);
        const u64 a = operand_descriptor<OperandA>(smem + Layout::a + ring.slot * OperandA::bytes);
        const u64 b = operand_descriptor<OperandB>(smem + Layout::b + ring.slot * OperandB::bytes);
        hold(c);
        wgmma_begin();
#pragma unroll
        for (int s = 0; s < P::bk / 16; ++s)
#pragma unroll
            for (int r = 0; r < P::row_blocks; ++r)
                wgmma_step<P::bn>(c.block[r],
                                  a + operand_offset<OperandA>(s, r) +
                                      (u64)group * operand_offset<OperandA>(0, P::row_blocks),
                                  b + operand_offset<OperandB>(s, 0), k > 0 || s > 0);
        wgmma_commit();
        hold(c);
        wgmma_wait<1>();
        if (k > 0)
            release(empty + last);
        last = ring.slot;
        ring.advance();
    }
    return last;
}

// Waits for c.
KKT_DEVICE void finish(Accumulator &c, int count, u64 *last_empty, const Release &release) {
    wgmma_wait<0>();
    hold(c);
    if (count > 0)
        release(last_empty);
}
