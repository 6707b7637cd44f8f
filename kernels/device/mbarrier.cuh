// A barrier in shared memory that counts bytes: asynchronous copies into shared memory report to
// it, and threads wait for a phase of it to end. sm_90 and later.
#pragma once

#include "device/types.cuh"

// One thread sets it up for `arrivals` arrivals a phase, and a barrier of the block must follow.
KKT_DEVICE void mbarrier_init(u64 *barrier, u32 arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
                 "r"(arrivals)
                 : "memory");
    // Copies see the barrier through the asynchronous proxy.
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Arrives, and makes the phase end only when `bytes` more have come in.
KKT_DEVICE void mbarrier_expect(u64 *barrier, u32 bytes) {
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
        "r"(bytes)
        : "memory");
}

// Returns when the phase with this parity (0 for the first, then alternating) has ended.
KKT_DEVICE void mbarrier_wait(u64 *barrier, u32 parity) {
    u32 done = 0;
    while (!done) {
        asm volatile("{\n"
                     ".reg .pred p;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p;\n"
                     "}"
                     : "=r"(done)
                     : "r"(shared_address(barrier)), "r"(parity)
                     : "memory");
    }
}
