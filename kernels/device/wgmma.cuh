// Tensor-core products of a warpgroup (four warps, the first a multiple of four) with both operands
// in shared memory. sm_90a only.
//
// The 64 x 64 fp32 accumulator: warp w of the group holds rows 16 w .. 16 w + 15, as eight
// fragments of 16 x 8 side by side (fragment.cuh): fragment n has columns 8 n .. 8 n + 7.
#pragma once

#include "device/fragment.cuh"
#include "device/types.cuh"

// Describes a tile with 128-byte swizzled rows (swizzle.cuh) whose inner index is summed over:
// address, eight rows of 128 bytes to the next group of rows, kind of swizzle.
KKT_DEVICE u64 wgmma_operand(const void *tile) {
    constexpr u64 group_bytes = 8 * 128;
    constexpr u64 swizzle_128 = 1;
    return (shared_address(tile) & 0x3ffff) >> 4 | (u64)1 << 16 | (group_bytes >> 4) << 32 |
           swizzle_128 << 62;
}

// Before the first wgmma, and after other instructions wrote to its accumulators.
KKT_DEVICE void wgmma_begin() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

// c += X Y^T over 16 columns of X and Y, 64 rows each; asynchronous until wgmma_end. Without ADD
// c = X Y^T, whatever was in c.
template <bool BF16, bool ADD = true> KKT_DEVICE void wgmma_x_yt(Fragment (&c)[8], u64 x, u64 y) {
#define KKT_ACCUMULATOR(n)                                                                         \
    "+f"(c[n].value[0]), "+f"(c[n].value[1]), "+f"(c[n].value[2]), "+f"(c[n].value[3])
#define KKT_WGMMA(TYPE)                                                                            \
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32." TYPE "." TYPE " "                   \
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "         \
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, "     \
                 "%31}, %32, %33, %34, 1, 1, 0, 0;"                                                \
                 : KKT_ACCUMULATOR(0), KKT_ACCUMULATOR(1), KKT_ACCUMULATOR(2), KKT_ACCUMULATOR(3), \
                   KKT_ACCUMULATOR(4), KKT_ACCUMULATOR(5), KKT_ACCUMULATOR(6), KKT_ACCUMULATOR(7)  \
                 : "l"(x), "l"(y), "n"(ADD))
    if constexpr (BF16)
        KKT_WGMMA("bf16");
    else
        KKT_WGMMA("f16");
#undef KKT_WGMMA
#undef KKT_ACCUMULATOR
}

// Closes the products so far; wgmma_end waits for them.
KKT_DEVICE void wgmma_commit() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

KKT_DEVICE void wgmma_end(Fragment (&c)[8]) {
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    // The compiler must not read an accumulator before the wait.
#pragma unroll
    for (int n = 0; n < 8; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e)
            asm volatile("" : "+f"(c[n].value[e])::"memory");
}
