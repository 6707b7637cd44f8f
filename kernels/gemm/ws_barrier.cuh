// Barriers of the warp-specialized GEMM by their address in shared memory, and values that are the
// same in all threads of a warp. sm_90a only.
//
// wgmma's descriptors and TMA's operands are read from uniform registers. Of a value that comes
// from threadIdx or from a generic pointer the compiler does not know that it is the same in a
// warp: it moves it there before each use, in the loops that must not wait for it.
#pragma once

#include "device/types.cuh"

// The first lane's.
KKT_DEVICE u32 uniform(u32 value) {
    return __shfl_sync(0xffffffffu, value, 0);
}

// Which thread this is, of which of the warpgroups that multiply.
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

// Whether the phase with this parity has ended, as all threads of the warp see it.
KKT_DEVICE bool barrier_ended(u32 barrier, u32 parity) {
    u32 ended;
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, p;\n"
                 "}"
                 : "=r"(ended)
                 : "r"(barrier), "r"(parity)
                 : "memory");
    return __all_sync(0xffffffffu, ended);
}

// Returns when it has.
KKT_DEVICE void barrier_wait(u32 barrier, u32 parity) {
    u32 ended = 0;
    while (!ended)
        asm volatile("{\n"
                     ".reg .pred p;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p;\n"
                     "}"
                     : "=r"(ended)
                     : "r"(barrier), "r"(parity)
                     : "memory");
}

// Arrives, and makes the phase end only when `bytes` more have come in.
KKT_DEVICE void barrier_expect(u32 barrier, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
}

// One arrival at a barrier of this block or, by its address there (in_block), of another one of the
// cluster. It orders nothing for the other block's threads (with .release.cluster it would, and
// wait for all writes of this thread): it is for what only wgmma reads and only TMA writes.
KKT_DEVICE void barrier_arrive(u32 barrier) {
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}
