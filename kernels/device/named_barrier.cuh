// Barriers of a block by number, for warps that have tasks of their own: some of them meet, or some
// wait until others have come by.
//
// bar.sync and bar.arrive are the .aligned forms of these. They promise that all threads of the
// block execute one and the same instruction (PTX ISA, "bar, barrier"), which roles do not: each
// comes to a barrier at an instruction of its own, or never.
#pragma once

#include "device/types.cuh"

// Returns when THREADS threads, whole warps, have come to this barrier, here or by arriving.
template <int THREADS> KKT_DEVICE void named_barrier_sync(int barrier) {
    asm volatile("barrier.sync %0, %1;" ::"r"(barrier), "n"(THREADS) : "memory");
}

// As named_barrier_sync; whether `value` is true in all of the threads.
template <int THREADS> KKT_DEVICE bool named_barrier_all(int barrier, bool value) {
    u32 all;
    asm volatile("{\n"
                 ".reg .pred p, q;\n"
                 "setp.ne.u32 p, %2, 0;\n"
                 "barrier.red.and.pred q, %1, %3, p;\n"
                 "selp.u32 %0, 1, 0, q;\n"
                 "}"
                 : "=r"(all)
                 : "r"(barrier), "r"((u32)value), "n"(THREADS)
                 : "memory");
    return __all_sync(0xffffffffu, all); // which the compiler knows to be the same in a warp
}

// Comes to it and goes on. A warp must not come again before all others have.
template <int THREADS> KKT_DEVICE void named_barrier_arrive(int barrier) {
    asm volatile("barrier.arrive %0, %1;" ::"r"(barrier), "n"(THREADS) : "memory");
}
