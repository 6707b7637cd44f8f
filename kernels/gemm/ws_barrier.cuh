// Barriers of the roles: those in shared memory by their address, which is counted from the
// block's, a uniform one (device/uniform.cuh), and a warpgroup's own. sm_90a only.
#pragma once

#include "device/mbarrier.cuh"
#include "device/named_barrier.cuh"
#include "device/types.cuh"

// For the functions of device/mbarrier.cuh. They take the address again, and the compiler leaves
// out the way there and back.
KKT_DEVICE u64 *barrier_at(u32 address) {
    return (u64 *)__cvta_shared_to_generic(address);
}

// All threads of a warpgroup that multiplies.
KKT_DEVICE void group_barrier(int group) {
    named_barrier_sync<128>(group + 1);
}

// Whether the phase with this parity has ended, as all threads of the warpgroup see it; they meet.
// Warps that look for themselves need not see the same, and what follows from it holds instructions
// that all warps of the group must come to or none (PTX ISA, "wgmma.wait_group": .aligned).
KKT_DEVICE bool barrier_ended(u32 address, u32 parity, int group) {
    u32 ended;
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, p;\n"
                 "}"
                 : "=r"(ended)
                 : "r"(address), "r"(parity)
                 : "memory");
    return named_barrier_all<128>(group + 1, ended);
}
