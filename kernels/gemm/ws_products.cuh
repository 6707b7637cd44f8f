// A warpgroup's products: its rows of a tile over K.
#pragma once

#include "device/named_barrier.cuh"
#include "device/warp_roles.cuh"
#include "gemm/ws_barrier.cuh"
#include "gemm/ws_cluster.cuh"
#include "gemm/ws_layout.cuh"
#include "gemm/ws_schedule.cuh"
#include "gemm/ws_wgmma.cuh"

// One warpgroup waits for its turn to multiply, the other one gives it.
KKT_DEVICE void take_turn(int group) {
    named_barrier_sync<256>(group + 3);
}

KKT_DEVICE void give_turn(int group) {
    named_barrier_arrive<256>((group ^ 1) + 3);
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
    u32 empty; // the first stage's barrier there
    bool here;

    KKT_DEVICE Release of(u32 smem, const Place &place, int lane) {
        constexpr int writers = P::cluster_m + P::cluster_n - 1;
        Release r;
        const int i = lane - P::cluster_n;
        const u32 rank = lane < P::cluster_n
                             ? Place::rank_at(place.part, place.down, lane)
                             : Place::rank_at(place.part, i + (i >= place.down), place.across);
        r.here = lane < writers;
        r.empty = smem + Layout::empty;
        if (P::mn > 1 && r.here)
            r.empty = in_block(r.empty, rank);
        return r;
    }

    __device__ __forceinline__ void operator()(int slot) const {
        if (here)
            arrive_in_block(empty + 8 * slot);
    }
};

// A warpgroup's operands in a stage, as wgmma is told of them.
struct Operands {
    u64 a, b;

    KKT_DEVICE Operands in_first_stage(u32 smem, int group) {
        Operands o;
        o.a = operand_descriptor<OperandA>(smem + Layout::a) +
              (u64)(group % P::team_groups) * operand_offset<OperandA>(0, P::row_blocks);
        o.b = operand_descriptor<OperandB>(smem + Layout::b);
        return o;
    }

    __device__ __forceinline__ Operands in_stage(int slot) const {
        Operands o;
        o.a = a + (u32)slot * (u64)(OperandA::bytes / 16);
        o.b = b + (u32)slot * (u64)(OperandB::bytes / 16);
        return o;
    }
};

// Asks for terms FROM to TO of a step, 16 at a time, and closes them to a group. `add`: to what is
// in c.
template <int FROM, int TO>
KKT_DEVICE void multiply_terms(Accumulator &c, const Operands &o, bool add) {
#pragma unroll
    for (int s = FROM / 16; s < TO / 16; ++s)
#pragma unroll
        for (int r = 0; r < P::row_blocks; ++r)
            wgmma_step<P::bn>(c.block[r], o.a + operand_offset<OperandA>(s, r),
                              o.b + operand_offset<OperandB>(s, 0), add || s > 0);
    wgmma_commit();
    hold(c);
}

// Asks for c = A B over `count` K steps of the ring. Products are in flight all the time, and what
// must be done beside is done behind the first half of a step's: the stage before is handed back,
// and the next one looked for. Where that is not there in time, memory is what the product waits
// for: then nothing is kept in flight, so that the stage can be filled again at once.
// Returns the slot of the last step, whose products are in flight still.
KKT_DEVICE int multiply(Accumulator &c, Ring<P::stages> &ring, int count, u32 smem, int group,
                        const Operands &first, const Release &release) {
    if (count == 0)
        clear(c);
    const u32 full = smem + Layout::full;
    bool there = false; // the next step's stage, and products of the step before are in flight
    int last = 0;
    for (int k = 0; k < count; ++k) {
        if (!there) {
            if (k > 0) {
                wgmma_wait<0>();
                release(last);
            }
            mbarrier_wait(barrier_at(full + 8 * ring.slot), ring.parity);
        }
        const Operands o = first.in_stage(ring.slot);
        hold(c);
        wgmma_begin();
        multiply_terms<0, P::bk / 2>(c, o, k > 0);
        if (there) {
            wgmma_wait<1>();
            release(last);
        }
        last = ring.slot;
        ring.advance();
        there = barrier_ended(full + 8 * ring.slot, ring.parity, group);
        multiply_terms<P::bk / 2, P::bk>(c, o, true);
    }
    return last;
}

// Waits for c.
KKT_DEVICE void finish(Accumulator &c, int count, int last, const Release &release) {
    wgmma_wait<0>();
    hold(c);
    if (count > 0)
        release(last);
}
