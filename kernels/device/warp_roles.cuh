// What warps with different tasks in one block need: registers moved from one warpgroup to another,
// and rings of buffers that are handed on by barriers. sm_90a only.
#pragma once

#include "device/mbarrier.cuh"
#include "device/types.cuh"

// A warpgroup gives registers back to the block's pool, or waits until it can have COUNT; all its
// threads call it once. COUNT is a multiple of 8 from 24 to 240.
template <int COUNT> KKT_DEVICE void registers_give_back() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT));
}

template <int COUNT> KKT_DEVICE void registers_take() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT));
}

// From HAS, what the kernel was launched with, to COUNT.
template <int HAS, int COUNT> KKT_DEVICE void registers_set() {
    static_assert(COUNT % 8 == 0 && COUNT >= 24 && COUNT <= 240, "what setmaxnreg takes");
    if constexpr (COUNT < HAS)
        registers_give_back<COUNT>();
    else if constexpr (COUNT > HAS)
        registers_take<COUNT>();
}

// One arrival, after what this thread has read and written. Every thread of a warp arrives for
// itself: that costs no more than one of them for all, and needs no barrier of the warp before.
KKT_DEVICE void mbarrier_arrive(u64 *barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier))
                 : "memory");
}

// A place in a ring of SLOTS buffers. Each buffer has a barrier for "full" and one for "empty"; a
// reader waits for full with `parity`, a writer for empty with `parity ^ 1`, which lets the first
// round pass. It advances by SLOTS at most.
template <int SLOTS> struct Ring {
    int slot;
    u32 parity;

    KKT_DEVICE Ring start(int slot = 0) {
        Ring r;
        r.slot = slot;
        r.parity = 0;
        return r;
    }

    __device__ __forceinline__ void advance(int by = 1) {
        slot += by;
        if (slot >= SLOTS) {
            slot -= SLOTS;
            parity ^= 1;
        }
    }
};
