// Tensor-core products of a warpgroup whose left operand lies in registers (or, where said, in
// shared memory as well), with any number of output columns. sm_90a only.
//
// An accumulator of 64 rows: warp w of the group holds rows 16 w .. 16 w + 15, as fragments of
// 16 x 8 side by side (fragment.cuh): value[4 n .. 4 n + 3] is fragment n, columns 8 n .. 8 n + 7.
//
// A left operand of 64 rows has the same layout in pairs of 2-byte elements: word[4 s .. 4 s + 3]
// are the 16 columns of step s, and word i is made of value[2 i] and value[2 i + 1]. So a result
// becomes the operand of the next product without leaving its thread:
//
//     step s      columns 16 s .. + 7     16 s + 8 .. + 15
//     rows  0..7       word[4 s]              word[4 s + 2]          of each warp's sixteen
//     rows 8..15       word[4 s + 1]          word[4 s + 3]
#pragma once

#include "device/convert.cuh"
#include "device/swizzle.cuh"
#include "device/types.cuh"
#include "device/wgmma.cuh"

template <int COLUMNS> struct Accumulator { float value[COLUMNS / 2]; };

template <int COLUMNS> struct RowOperand { u32 word[COLUMNS / 4]; };

template <bool BF16> KKT_DEVICE u32 pack_pair(float low, float high) {
    return BF16 ? pack_bf16(low, high) : pack_fp16(low, high);
}

template <bool BF16> KKT_DEVICE float2 unpack_pair(u32 word) {
    if constexpr (BF16)
        return make_float2(__int_as_float((i32)(word << 16)),
                           __int_as_float((i32)(word & 0xffff0000u)));
    else
        return unpack_fp16(word);
}

template <bool BF16, int COLUMNS>
KKT_DEVICE void pack_operand(RowOperand<COLUMNS> &a, const Accumulator<COLUMNS> &c) {
#pragma unroll
    for (int i = 0; i < COLUMNS / 4; ++i)
        a.word[i] = pack_pair<BF16>(c.value[2 * i], c.value[2 * i + 1]);
}

// Keeps the compiler from moving what reads or writes these registers across this point: they
// belong to products in flight from a step's begin to its wait.
template <int COLUMNS> KKT_DEVICE void hold(Accumulator<COLUMNS> &c) {
#pragma unroll
    for (int i = 0; i < COLUMNS / 2; ++i)
        asm volatile("" : "+f"(c.value[i])::"memory");
}

template <int COLUMNS> KKT_DEVICE void hold(RowOperand<COLUMNS> &a) {
#pragma unroll
    for (int i = 0; i < COLUMNS / 4; ++i)
        asm volatile("" : "+r"(a.word[i])::"memory");
}

// Returns when at most PENDING of the committed groups of products are in flight.
template <int PENDING> KKT_DEVICE void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

// A right operand in shared memory, a SwizzledTile of ROWS x COLUMNS. Either its rows are the
// result's columns and its own columns are summed over, 16 a step:
//
//     row bytes   32 (16 columns)   64 (32)   128 (64, and wider tiles in panels)
//
// or, ROWS_SUMMED, its rows are summed over, 16 a step, and its columns (a multiple of 64) are the
// result's: the tensor core transposes on the way.
template <int ROWS, int COLUMNS, bool ROWS_SUMMED = false> struct RightOperand {
    using Tile = SwizzledTile<ROWS, COLUMNS>;
    static constexpr int steps = (ROWS_SUMMED ? ROWS : COLUMNS) / 16;
    static constexpr int columns = ROWS_SUMMED ? COLUMNS : ROWS; // of the result
    static constexpr u64 swizzle = Tile::row_bytes == 128 ? 1 : Tile::row_bytes == 64 ? 2 : 3;
    static constexpr u64 group_bytes = 8 * Tile::row_bytes; // eight rows to the next eight
    static constexpr u64 panel_bytes = ROWS_SUMMED ? Tile::panel_bytes : 16;
    static constexpr int panel_steps = Tile::row_bytes / 32;
    static_assert(!ROWS_SUMMED || Tile::row_bytes == 128, "whole panels of 64 columns");

    u64 descriptor;

    KKT_DEVICE RightOperand at(u32 tile) {
        RightOperand b;
        b.descriptor = (u64)((tile & 0x3ffff) >> 4) | panel_bytes >> 4 << 16 |
                       group_bytes >> 4 << 32 | swizzle << 62;
        return b;
    }

    // Operand of one step. `row` (a multiple of 8) leaves out the result's columns before it.
    __device__ __forceinline__ u64 step(int s, int row = 0) const {
        if (ROWS_SUMMED)
            return descriptor + (u64)(s * 16 * Tile::row_bytes >> 4);
        return descriptor + (u64)(s / panel_steps * (Tile::panel_bytes >> 4) + s % panel_steps * 2 +
                                  (row * Tile::row_bytes >> 4));
    }
};

// ---- one step: c (+)= 64 x 16 by 16 x COLUMNS, asynchronous ----

#define KKT_D8 "%0, %1, %2, %3, %4, %5, %6, %7"
#define KKT_D16 KKT_D8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define KKT_D24 KKT_D16 ", %16, %17, %18, %19, %20, %21, %22, %23"
#define KKT_D32                                                                                    \
    KKT_D16 ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define KKT_D64                                                                                    \
    KKT_D32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "   \
            "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define KKT_C4(n) "+f"(c[n]), "+f"(c[n + 1]), "+f"(c[n + 2]), "+f"(c[n + 3])
#define KKT_C8(n) KKT_C4(n), KKT_C4(n + 4)
#define KKT_C16(n) KKT_C8(n), KKT_C8(n + 8)
#define KKT_C24(n) KKT_C16(n), KKT_C8(n + 16)
#define KKT_C32(n) KKT_C16(n), KKT_C16(n + 16)
#define KKT_C64(n) KKT_C32(n), KKT_C32(n + 32)

// The operands' numbers follow those of the accumulator.
#define KKT_FROM_REGISTERS(TYPE, COLUMNS, D, C, A, B, ADD, TURN)                                   \
    asm volatile("{\n"                                                                             \
                 ".reg .pred add;\n"                                                               \
                 "setp.ne.b32 add, " ADD ", 0;\n"                                                  \
                 "wgmma.mma_async.sync.aligned.m64n" COLUMNS "k16.f32." TYPE "." TYPE " {" D       \
                 "}, {" A "}, " B ", add, 1, 1, " TURN ";\n"                                       \
                 "}"                                                                               \
                 : C                                                                               \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((int)add),              \
                   "n"((int)ROWS_SUMMED))

#define KKT_FROM_REGISTERS_N(TYPE)                                                                 \
    if constexpr (COLUMNS == 16)                                                                   \
        KKT_FROM_REGISTERS(TYPE, "16", KKT_D8, KKT_C8(0), "%8, %9, %10, %11", "%12", "%13",        \
                           "%14");                                                                 \
    else if constexpr (COLUMNS == 32)                                                              \
        KKT_FROM_REGISTERS(TYPE, "32", KKT_D16, KKT_C16(0), "%16, %17, %18, %19", "%20", "%21",    \
                           "%22");                                                                 \
    else if constexpr (COLUMNS == 48)                                                              \
        KKT_FROM_REGISTERS(TYPE, "48", KKT_D24, KKT_C24(0), "%24, %25, %26, %27", "%28", "%29",    \
                           "%30");                                                                 \
    else if constexpr (COLUMNS == 64)                                                              \
        KKT_FROM_REGISTERS(TYPE, "64", KKT_D32, KKT_C32(0), "%32, %33, %34, %35", "%36", "%37",    \
                           "%38");                                                                 \
    else                                                                                           \
        KKT_FROM_REGISTERS(TYPE, "128", KKT_D64, KKT_C64(0), "%64, %65, %66, %67", "%68", "%69",   \
                           "%70")

// The accumulator's registers begin at c, so that a part of a wider one can be named.
template <bool BF16, bool ROWS_SUMMED, int COLUMNS>
KKT_DEVICE void wgmma_step(float *c, const u32 *a, u64 b, bool add) {
    static_assert(COLUMNS == 16 || COLUMNS == 32 || COLUMNS == 48 || COLUMNS == 64 ||
                      COLUMNS == 128,
                  "written out");
    if constexpr (BF16) {
        KKT_FROM_REGISTERS_N("bf16");
    } else {
        KKT_FROM_REGISTERS_N("f16");
    }
}

// The same with the left operand in shared memory, described like the right one. TURNED: its rows
// there are summed over.
#define KKT_FROM_SHARED(TYPE, COLUMNS, D, C, A, B, ADD, TURN)                                      \
    asm volatile("{\n"                                                                             \
                 ".reg .pred add;\n"                                                               \
                 "setp.ne.b32 add, " ADD ", 0;\n"                                                  \
                 "wgmma.mma_async.sync.aligned.m64n" COLUMNS "k16.f32." TYPE "." TYPE " {" D       \
                 "}, " A ", " B ", add, 1, 1, " TURN ", 0;\n"                                      \
                 "}"                                                                               \
                 : C                                                                               \
                 : "l"(a), "l"(b), "r"((int)add), "n"((int)TURNED))

#define KKT_FROM_SHARED_N(TYPE)                                                                    \
    if constexpr (COLUMNS == 16)                                                                   \
        KKT_FROM_SHARED(TYPE, "16", KKT_D8, KKT_C8(0), "%8", "%9", "%10", "%11");                  \
    else if constexpr (COLUMNS == 32)                                                              \
        KKT_FROM_SHARED(TYPE, "32", KKT_D16, KKT_C16(0), "%16", "%17", "%18", "%19");              \
    else if constexpr (COLUMNS == 64)                                                              \
        KKT_FROM_SHARED(TYPE, "64", KKT_D32, KKT_C32(0), "%32", "%33", "%34", "%35");              \
    else                                                                                           \
        KKT_FROM_SHARED(TYPE, "128", KKT_D64, KKT_C64(0), "%64", "%65", "%66", "%67")

template <bool BF16, int COLUMNS, bool TURNED = false>
KKT_DEVICE void wgmma_step_shared(float *c, u64 a, u64 b, bool add) {
    if constexpr (BF16) {
        KKT_FROM_SHARED_N("bf16");
    } else {
        KKT_FROM_SHARED_N("f16");
    }
}

#undef KKT_FROM_SHARED_N
#undef KKT_FROM_SHARED
#undef KKT_FROM_REGISTERS_N
#undef KKT_FROM_REGISTERS
#undef KKT_C64
#undef KKT_C32
#undef KKT_C16
#undef KKT_C8
#undef KKT_C4
#undef KKT_D64
#undef KKT_D32
#undef KKT_D16
#undef KKT_D8

// ---- whole products, one committed group each ----

// c = A B, or with `add` c += A B. The caller has begun (wgmma_begin) after it wrote to c or A. The
// warp stands still while the tensor core is busy with what it asked for before: A's registers are
// read one step after the other.
template <bool BF16, int ROWS, int COLUMNS, bool ROWS_SUMMED, int N, int DEPTH>
KKT_DEVICE void wgmma_product(Accumulator<N> &c, const RowOperand<DEPTH> &a,
                              const RightOperand<ROWS, COLUMNS, ROWS_SUMMED> &b, bool add) {
    using B = RightOperand<ROWS, COLUMNS, ROWS_SUMMED>;
    static_assert(N == B::columns && DEPTH == 16 * B::steps, "shapes of the product");
#pragma unroll
    for (int s = 0; s < B::steps; ++s)
        wgmma_step<BF16, ROWS_SUMMED, N>(c.value, a.word + 4 * s, b.step(s), add || s > 0);
    wgmma_commit();
}

// c (+)= A B where A's columns, B's rows in the sum and c's columns come in sixteens that are in
// reversed order, and B is 0 wherever its row comes after its column, sixteen by sixteen. So the
// last sixteen of A goes into all columns of c, the one before it into all but the last sixteen,
// ...:
//
//     c is      | 3   2   1   0 |     the numbers are places in the forward order
//     A's 0     | x   x   x   x |     A's sixteen 0 is the last one in registers
//     A's 1     | x   x   x     |     each is a wider or narrower product into the same
//     A's 2     | x   x         |     registers, from the first on
//     A's 3     | x             |
//
// B's own columns in shared memory, which the sum goes over, are in forward order.
template <bool BF16, int STEP, int ROWS>
KKT_DEVICE void wgmma_lower_steps(Accumulator<ROWS> &c, const RowOperand<ROWS> &a,
                                  const RightOperand<ROWS, ROWS> &b, bool add) {
    constexpr int last = ROWS / 16 - 1;
    wgmma_step<BF16, false, ROWS - 16 * STEP>(c.value, a.word + 4 * (last - STEP), b.step(STEP),
                                              add || STEP > 0);
    if constexpr (STEP < last)
        wgmma_lower_steps<BF16, STEP + 1>(c, a, b, add);
}

template <bool BF16, int ROWS>
KKT_DEVICE void wgmma_product_lower(Accumulator<ROWS> &c, const RowOperand<ROWS> &a,
                                    const RightOperand<ROWS, ROWS> &b, bool add) {
    wgmma_lower_steps<BF16, 0>(c, a, b, add);
    wgmma_commit();
}

// c = A B^T, both in shared memory with their columns summed over. A has 64 rows; where its tile
// ends before, the rest is what lies behind it.
template <bool BF16, int ROWS_A, int ROWS, int COLUMNS>
KKT_DEVICE void wgmma_product_shared(Accumulator<ROWS> &c, const RightOperand<ROWS_A, COLUMNS> &a,
                                     const RightOperand<ROWS, COLUMNS> &b) {
#pragma unroll
    for (int s = 0; s < COLUMNS / 16; ++s)
        wgmma_step_shared<BF16, ROWS>(c.value, a.step(s), b.step(s), s > 0);
    wgmma_commit();
}
