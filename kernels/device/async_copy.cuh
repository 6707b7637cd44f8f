// 16-byte copies from global memory: through registers, or asynchronously into shared memory.
#pragma once

#include "device/types.cuh"

// Read-only data, asked for once by this block: kept out of L1.
KKT_DEVICE uint4 load_global_16(const void *source) {
    uint4 v;
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(source));
    return v;
}

// Copies 16 bytes past L1, or writes 16 zero bytes where `valid` is false; `source` must be a
// readable address either way. Done only after async_copy_wait and a barrier.
KKT_DEVICE void async_copy_16(void *destination, const void *source, bool valid) {
    const u32 bytes = valid ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(destination)),
                 "l"(source), "r"(bytes)
                 : "memory");
}

// Waits for all copies that this thread has issued.
KKT_DEVICE void async_copy_wait() {
    asm volatile("cp.async.wait_all;" ::: "memory");
}
