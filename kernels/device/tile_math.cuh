// Products of one warp between fragments and tiles, and the steps between them.
#pragma once

#include "device/convert.cuh"
#include "device/fragment.cuh"
#include "device/mma_sync.cuh"
#include "device/types.cuh"

// The value, of which the compiler knows nothing: what is computed from it in a loop stays there,
// and is not held in registers all the while.
KKT_DEVICE int opaque(int value) {
    asm volatile("" : "+r"(value));
    return value;
}

// A right operand of 16 x 16: words 0 and 1 are B of output columns 0..7, words 2 and 3 of columns
// 8..15 (panel_tile.cuh loads it).
struct RightTile {
    OperandTile words;
};

// c += A B for one half (0 or 1) of the 16 output columns.
template <bool BF16>
KKT_DEVICE void mma_right(Fragment &c, const OperandTile &a, const RightTile &b, int half) {
    const u32 *pair = b.words.quarter + 2 * half;
    Fragment d;
#define KKT_MMA_RIGHT(TYPE)                                                                        \
    asm("mma.sync.aligned.m16n8k16.row.col.f32." TYPE "." TYPE ".f32 "                             \
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"                      \
        : "=f"(d.value[0]), "=f"(d.value[1]), "=f"(d.value[2]), "=f"(d.value[3])                   \
        : "r"(a.quarter[0]), "r"(a.quarter[1]), "r"(a.quarter[2]), "r"(a.quarter[3]),              \
          "r"(pair[0]), "r"(pair[1]), "f"(c.value[0]), "f"(c.value[1]), "f"(c.value[2]),           \
          "f"(c.value[3]))
    if constexpr (BF16)
        KKT_MMA_RIGHT("bf16");
    else
        KKT_MMA_RIGHT("f16");
#undef KKT_MMA_RIGHT
    c = d;
}

// Sixteen rows of an accumulator: 16 x 8 fragments side by side.
template <int COLUMNS> struct Strip {
    static constexpr int count = COLUMNS / 8;

    Fragment part[count];

    __device__ __forceinline__ void clear() {
#pragma unroll
        for (int n = 0; n < count; ++n)
            fragment_clear(part[n]);
    }

    // Columns 16 n to 16 n + 15 += A B.
    template <bool BF16>
    __device__ __forceinline__ void add(int n, const OperandTile &a, const RightTile &b) {
        mma_right<BF16>(part[2 * n], a, b, 0);
        mma_right<BF16>(part[2 * n + 1], a, b, 1);
    }

    // Rows r and r + 8 of each lane times `upper` and `lower`.
    __device__ __forceinline__ void scale_rows(float upper, float lower) {
#pragma unroll
        for (int n = 0; n < count; ++n) {
            part[n].value[0] *= upper;
            part[n].value[1] *= upper;
            part[n].value[2] *= lower;
            part[n].value[3] *= lower;
        }
    }

    // Columns 16 n to 16 n + 15 rounded: an operand, or what goes to memory.
    template <bool BF16> __device__ __forceinline__ OperandTile round(int n) const {
        OperandTile t;
#pragma unroll
        for (int q = 0; q < 4; ++q) {
            const float *pair = part[2 * n + q / 2].value + q % 2 * 2;
            t.quarter[q] = BF16 ? pack_bf16(pair[0], pair[1]) : pack_fp16(pair[0], pair[1]);
        }
        return t;
    }
};

template <bool BF16> KKT_DEVICE float2 unpack_pair(u32 word) {
    if constexpr (BF16)
        return make_float2(__int_as_float((int)(word << 16)),
                           __int_as_float((int)(word & 0xffff0000u)));
    else
        return unpack_fp16(word);
}

template <bool BF16> KKT_DEVICE u32 pack_pair(float low, float high) {
    return BF16 ? pack_bf16(low, high) : pack_fp16(low, high);
}

// Column factors of a lane in a 16 x 16 block: of its columns 2 c, 2 c + 1 and eight further on.
struct ColumnFactors {
    float2 left, right;
};

KKT_DEVICE ColumnFactors column_factors(const float *table, int column, int lane) {
    const float *at = table + column + fragment_column(lane);
    return {*(const float2 *)at, *(const float2 *)(at + 8)};
}

// A block with its columns scaled, rounded again.
template <bool BF16>
KKT_DEVICE OperandTile scale_columns(const OperandTile &t, const ColumnFactors &f) {
    OperandTile out;
#pragma unroll
    for (int q = 0; q < 4; ++q) {
        const float2 v = unpack_pair<BF16>(t.quarter[q]);
        const float2 s = q / 2 ? f.right : f.left;
        out.quarter[q] = pack_pair<BF16>(v.x * s.x, v.y * s.y);
    }
    return out;
}
