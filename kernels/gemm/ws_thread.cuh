// Which thread of the warp-specialized GEMM this is.
#pragma once

#include "device/types.cuh"
#include "device/uniform.cuh"

// Of which of the warpgroups that multiply, -1 the one that loads.
struct Thread {
    int group, warp, lane; // the first two are uniform

    KKT_DEVICE Thread self() {
        Thread t;
        const int warp = (int)uniform(threadIdx.x / kWarp);
        t.group = warp / 4 - 1;
        t.warp = warp % 4;
        t.lane = (int)threadIdx.x % kWarp;
        return t;
    }

    __device__ __forceinline__ int in_group() const {
        return warp * kWarp + lane;
    }
    __device__ __forceinline__ int in_groups() const {
        return group * 128 + in_group();
    }
};
