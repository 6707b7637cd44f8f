// Algebra on 16 x 16 blocks that stay in the registers of one warp.
//
// A product's result and its operands are laid out alike: the accumulator of a block is two
// fragments of 16 x 8 (fragment.cuh), and rounding neighbouring elements to words gives the four
// quarters of an operand (mma_sync.cuh), with nothing moved between lanes:
//
//     half[0].value[0, 1]  ->  quarter[0]        half[1].value[0, 1]  ->  quarter[2]
//     half[0].value[2, 3]  ->  quarter[1]        half[1].value[2, 3]  ->  quarter[3]
//
// The same words serve as X and as Y of a product X Y^T. So chains of products are free of shared
// memory as long as every product is written as X Y^T of what is at hand.
//
// Operands have PARTS parts: 1 is fp16; 2 is a bf16 value and the bf16 rest that it leaves, whose
// products (without rest times rest) are as good as fp32's to about 2^-16.
#pragma once

#include "device/convert.cuh"
#include "device/fragment.cuh"
#include "device/mma_sync.cuh"
#include "device/types.cuh"

struct Accumulator {
    Fragment half[2]; // columns 0..7 and 8..15
};

template <int PARTS> struct Operand { OperandTile part[PARTS]; };

// One 8 x 8 quarter.
template <int PARTS> struct SubOperand { u32 part[PARTS]; };

template <int PARTS> KKT_DEVICE SubOperand<PARTS> quarter_of(const Operand<PARTS> &x, int quarter) {
    SubOperand<PARTS> s;
#pragma unroll
    for (int p = 0; p < PARTS; ++p)
        s.part[p] = x.part[p].quarter[quarter];
    return s;
}

KKT_DEVICE void accumulator_clear(Accumulator &a) {
    fragment_clear(a.half[0]);
    fragment_clear(a.half[1]);
}

KKT_DEVICE float low_bf16(u32 word) {
    return __int_as_float((int)(word << 16));
}

KKT_DEVICE float high_bf16(u32 word) {
    return __int_as_float((int)(word & 0xffff0000u));
}

// Two neighbouring elements, rounded.
template <int PARTS> KKT_DEVICE SubOperand<PARTS> round_pair(float low, float high) {
    SubOperand<PARTS> s;
    if constexpr (PARTS == 1) {
        s.part[0] = pack_fp16(low, high);
    } else {
        s.part[0] = pack_bf16(low, high);
        s.part[1] = pack_bf16(low - low_bf16(s.part[0]), high - high_bf16(s.part[0]));
    }
    return s;
}

template <int PARTS> KKT_DEVICE Operand<PARTS> round_block(const Accumulator &a) {
    Operand<PARTS> o;
#pragma unroll
    for (int q = 0; q < 4; ++q) {
        const float *pair = a.half[q / 2].value + q % 2 * 2;
        const SubOperand<PARTS> s = round_pair<PARTS>(pair[0], pair[1]);
#pragma unroll
        for (int p = 0; p < PARTS; ++p)
            o.part[p].quarter[q] = s.part[p];
    }
    return o;
}

// c += X Y^T, the smallest products first.
template <int PARTS>
KKT_DEVICE void multiply_blocks(Accumulator &c, const Operand<PARTS> &x, const Operand<PARTS> &y) {
#pragma unroll
    for (int order = PARTS - 1; order >= 0; --order)
#pragma unroll
        for (int p = order; p >= 0; --p)
#pragma unroll
            for (int half = 0; half < 2; ++half)
                mma_x_yt<PARTS == 2>(c.half[half], x.part[p], y.part[order - p], half);
}

// The product X Y^T of quarters, X one of two in neighbouring registers, rounded again. The other
// is multiplied as well, for nothing (mma_quarters_x_yt).
enum Half { kUpper, kLower };

template <Half X, int PARTS>
KKT_DEVICE SubOperand<PARTS> multiply_quarters(const SubOperand<PARTS> &upper,
                                               const SubOperand<PARTS> &lower,
                                               const SubOperand<PARTS> &y) {
    Fragment c;
    fragment_clear(c);
#pragma unroll
    for (int order = PARTS - 1; order >= 0; --order)
#pragma unroll
        for (int p = order; p >= 0; --p)
            mma_quarters_x_yt<PARTS == 2>(c, upper.part[p], lower.part[p], y.part[order - p]);
    return round_pair<PARTS>(c.value[2 * X], c.value[2 * X + 1]);
}

// The same of an X that was just rounded: its own parts lie side by side, so that one instruction
// takes both, and even rest times rest.
template <int PARTS>
KKT_DEVICE SubOperand<PARTS> multiply_parts(const SubOperand<PARTS> &x,
                                            const SubOperand<PARTS> &y) {
    Fragment c;
    fragment_clear(c);
#pragma unroll
    for (int p = PARTS - 1; p >= 0; --p)
        mma_quarters_x_yt<PARTS == 2>(c, x.part[0], x.part[PARTS - 1], y.part[p]);
    if constexpr (PARTS == 1)
        return round_pair<PARTS>(c.value[0], c.value[1]);
    else
        return round_pair<PARTS>(c.value[0] + c.value[2], c.value[1] + c.value[3]);
}

template <int PARTS> KKT_DEVICE Operand<PARTS> transpose_block(const Operand<PARTS> &x) {
    Operand<PARTS> t;
#pragma unroll
    for (int p = 0; p < PARTS; ++p)
        t.part[p] = transpose_tile(x.part[p]);
    return t;
}

// An operand in the output's type.
template <bool BF16, int PARTS> KKT_DEVICE OperandTile output_tile(const Operand<PARTS> &x) {
    if constexpr (BF16 == (PARTS == 2)) {
        return x.part[0]; // the rounding of the value itself
    } else {
        OperandTile t;
#pragma unroll
        for (int q = 0; q < 4; ++q) {
            if constexpr (PARTS == 1) {
                const float2 v = unpack_fp16(x.part[0].quarter[q]);
                t.quarter[q] = pack_bf16(v.x, v.y);
            } else {
                const u32 value = x.part[0].quarter[q];
                const u32 rest = x.part[1].quarter[q];
                t.quarter[q] =
                    pack_fp16(low_bf16(value) + low_bf16(rest), high_bf16(value) + high_bf16(rest));
            }
        }
        return t;
    }
}

template <bool BF16> KKT_DEVICE OperandTile output_tile(const Accumulator &a) {
    OperandTile t;
#pragma unroll
    for (int q = 0; q < 4; ++q) {
        const float *pair = a.half[q / 2].value + q % 2 * 2;
        t.quarter[q] = BF16 ? pack_bf16(pair[0], pair[1]) : pack_fp16(pair[0], pair[1]);
    }
    return t;
}

// An operand's elements, and an accumulator's as they are.
template <int PARTS> KKT_DEVICE Accumulator widen_block(const Operand<PARTS> &x) {
    Accumulator a;
#pragma unroll
    for (int q = 0; q < 4; ++q) {
        float *pair = a.half[q / 2].value + q % 2 * 2;
        const u32 word = x.part[0].quarter[q];
        if constexpr (PARTS == 1) {
            const float2 v = unpack_fp16(word);
            pair[0] = v.x;
            pair[1] = v.y;
        } else {
            const u32 rest = x.part[1].quarter[q];
            pair[0] = low_bf16(word) + low_bf16(rest);
            pair[1] = high_bf16(word) + high_bf16(rest);
        }
    }
    return a;
}

KKT_DEVICE Accumulator widen_block(const Accumulator &a) {
    return a;
}

// Rows r and r + 8 of a lane, and its columns 2 c, 2 c + 1, 2 c + 8, 2 c + 9, each by a factor.
KKT_DEVICE void scale_block(Accumulator &a, const float (&row)[2], const float (&column)[4]) {
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int e = 0; e < 4; ++e)
            a.half[half].value[e] *= row[e / 2] * column[half * 2 + e % 2];
}
