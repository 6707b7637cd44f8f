// A team: the warps of a block that work on one head, and their barrier.
#pragma once

#include "device/types.cuh"

// WARPS warps a team in a block of BLOCK_WARPS. A team of one warp needs no more than the warp's
// own barrier, a team of the whole block uses barrier 0; others take the named barriers 1, 2, ...
template <int WARPS, int BLOCK_WARPS> struct Team {
    static constexpr int warps = WARPS;
    static constexpr int threads = WARPS * kWarp;
    static constexpr int count = BLOCK_WARPS / WARPS;

    int index; // of this team
    int warp;  // of this warp in its team
    int lane;  // of this thread in its warp

    KKT_DEVICE Team make(int thread) {
        Team t;
        t.index = thread / threads;
        t.warp = thread / kWarp % WARPS;
        t.lane = thread % kWarp;
        return t;
    }

    __device__ __forceinline__ int thread() const {
        return warp * kWarp + lane;
    }

    // Orders shared memory among the team's threads.
    __device__ __forceinline__ void sync() const {
        if (WARPS == 1)
            __syncwarp();
        else if (WARPS == BLOCK_WARPS)
            __syncthreads();
        else
            asm volatile("bar.sync %0, %1;" ::"r"(index + 1), "n"(threads) : "memory");
    }
};
