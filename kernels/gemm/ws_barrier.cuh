// Barriers in shared memory by their address, which is counted from the block's, a uniform one
// (device/uniform.cuh). sm_90a only.
#pragma once

#include "device/mbarrier.cuh"
#include "device/types.cuh"

// For the functions of device/mbarrier.cuh. They take the address again, and the compiler leaves
// out the way there and back.
KKT_DEVICE u64 *barrier_at(u32 address) {
    return (u64 *)__cvta_shared_to_generic(address);
}

// Whether the phase with this parity has ended, as all threads of the warp see it; mbarrier_wait
// without waiting.
KKT_DEVICE bool barrier_ended(u32 address, u32 parity) {
    u32 ended;
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, p;\n"
                 "}"
                 : "=r"(ended)
                 : "r"(address), "r"(parity)
                 : "memory");
    return __all_sync(0xffffffffu, ended);
}
