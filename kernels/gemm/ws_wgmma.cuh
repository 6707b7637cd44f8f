// Products of a warpgroup's 64 rows of A with all columns of B's tile, both in shared memory, in
// the layouts of ws_layout.cuh. sm_90a only.
//
// The accumulator: warp w of the group holds rows 16 w .. 16 w + 15, as fragments of 16 x 8 side by
// side (device/fragment.cuh): value[4 n .. 4 n + 3] is fragment n, columns 8 n .. 8 n + 7.
#pragma once

#include "device/types.cuh"
#include "gemm/ws_layout.cuh"

// Before the first wgmma, and after other instructions wrote to its accumulators.
KKT_DEVICE void wgmma_begin() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

// Closes the products so far to a group.
KKT_DEVICE void wgmma_commit() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Returns when at most PENDING of the groups are in flight.
template <int PENDING> KKT_DEVICE void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

// Keeps the compiler from moving what reads or writes these registers across this point.
template <int COUNT> KKT_DEVICE void hold(float (&value)[COUNT]) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i)
        asm volatile("" : "+f"(value[i])::"memory");
}

// What wgmma must know of an operand: address, distance of panels (where wgmma crosses them),
// distance of groups of eight rows, kind of swizzle.
template <class OPERAND> KKT_DEVICE u64 operand_descriptor(u32 tile) {
    constexpr u64 panels = OPERAND::k_major ? 16 : OPERAND::panel_bytes;
    constexpr u64 groups = 8 * kRowBytes, swizzle_128 = 1;
    return (u64)((tile & 0x3ffff) >> 4) | panels >> 4 << 16 | groups >> 4 << 32 | swizzle_128 << 62;
}

// How far from a tile's beginning the `k_step`-th 16 of K begin, for the `block`-th 64 of M or N;
// in the descriptor's unit, 16 bytes.
template <class OPERAND> KKT_DEVICE constexpr u64 operand_offset(int k_step, int block) {
    const int bytes = OPERAND::k_major ? k_step / 4 * OPERAND::panel_bytes +
                                             block * 64 * kRowBytes + k_step % 4 * 32
                                       : block * OPERAND::panel_bytes + k_step * 16 * kRowBytes;
    return (u64)(bytes / 16);
}

// ---- c (+)= 64 x 16 by 16 x COLUMNS, asynchronous ----

#define KKT_D32                                                                                    \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, "             \
    "%18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define KKT_D64                                                                                    \
    KKT_D32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "   \
            "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define KKT_D128                                                                                   \
    KKT_D64 ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "   \
            "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "     \
            "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, "     \
            "%110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, "       \
            "%123, %124, %125, %126, %127"
#define KKT_C8(n)                                                                                  \
    "+f"(c[n]), "+f"(c[n + 1]), "+f"(c[n + 2]), "+f"(c[n + 3]), "+f"(c[n + 4]), "+f"(c[n + 5]),    \
        "+f"(c[n + 6]), "+f"(c[n + 7])
#define KKT_C32(n) KKT_C8(n), KKT_C8(n + 8), KKT_C8(n + 16), KKT_C8(n + 24)
#define KKT_C64(n) KKT_C32(n), KKT_C32(n + 32)
#define KKT_C128(n) KKT_C64(n), KKT_C64(n + 64)

// The operands' numbers follow those of the accumulator.
#define KKT_WGMMA(TYPE, COLUMNS, D, C, A, B, ADD, TURN_A, TURN_B)                                  \
    asm volatile("{\n"                                                                             \
                 ".reg .pred add;\n"                                                               \
                 "setp.ne.b32 add, " ADD ", 0;\n"                                                  \
                 "wgmma.mma_async.sync.aligned.m64n" COLUMNS "k16.f32." TYPE "." TYPE " {" D       \
                 "}, " A ", " B ", add, 1, 1, " TURN_A ", " TURN_B ";\n"                           \
                 "}"                                                                               \
                 : C                                                                               \
                 : "l"(a), "l"(b), "r"((int)add), "n"((int)!OperandA::k_major),                    \
                   "n"((int)!OperandB::k_major))

#define KKT_WGMMA_COLUMNS(TYPE)                                                                    \
    if constexpr (COLUMNS == 64)                                                                   \
        KKT_WGMMA(TYPE, "64", KKT_D32, KKT_C32(0), "%32", "%33", "%34", "%35", "%36");             \
    else if constexpr (COLUMNS == 128)                                                             \
        KKT_WGMMA(TYPE, "128", KKT_D64, KKT_C64(0), "%64", "%65", "%66", "%67", "%68");            \
    else                                                                                           \
        KKT_WGMMA(TYPE, "256", KKT_D128, KKT_C128(0), "%128", "%129", "%130", "%131", "%132")

template <int COLUMNS> KKT_DEVICE void wgmma_step(float (&c)[COLUMNS / 2], u64 a, u64 b, bool add) {
    static_assert(COLUMNS == 64 || COLUMNS == 128 || COLUMNS == 256, "written out");
    if constexpr (P::bf16) {
        KKT_WGMMA_COLUMNS("bf16");
    } else {
        KKT_WGMMA_COLUMNS("f16");
    }
}

#undef KKT_WGMMA_COLUMNS
#undef KKT_WGMMA
#undef KKT_C128
#undef KKT_C64
#undef KKT_C32
#undef KKT_C8
#undef KKT_D128
#undef KKT_D64
#undef KKT_D32
