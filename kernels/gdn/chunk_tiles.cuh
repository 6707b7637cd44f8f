// How a chunk's matrices lie in shared memory, and how their elements come out of it.
#pragma once

#include "device/convert.cuh"
#include "device/mma_sync.cuh"
#include "device/padded_tile.cuh"
#include "device/register_blocks.cuh"
#include "device/right_operand.cuh"
#include "device/swizzle.cuh"
#include "device/types.cuh"
#include "gdn/mma_parameters.cuh"

using KeyTile = PaddedTile<P::chunk, P::dk>;         // K or Q
using ValueTile = PaddedTile<P::chunk, P::block_dv>; // V, and what takes its place
using TBlock = SwizzledTile<16, 16>;                 // a block of T as it lies in global memory

// A 16 x 16 block in the order of a RightTile, 16 bytes a lane: written and read without conflicts,
// and with nothing to rearrange.
constexpr int kOperandBytes = 512;

KKT_DEVICE void put_operand(u8 *operands, int n, const OperandTile &t, int lane) {
    *(uint4 *)(operands + n * kOperandBytes + lane * 16) =
        make_uint4(t.quarter[0], t.quarter[2], t.quarter[1], t.quarter[3]);
}

// As a right operand, or as a left one.
KKT_DEVICE RightTile take_operand(const u8 *operands, int n, int lane) {
    const uint4 t = *(const uint4 *)(operands + n * kOperandBytes + lane * 16);
    return {{{t.x, t.y}, {t.z, t.w}}};
}

KKT_DEVICE OperandTile take_left_operand(const u8 *operands, int n, int lane) {
    const uint4 t = *(const uint4 *)(operands + n * kOperandBytes + lane * 16);
    return {{t.x, t.z, t.y, t.w}};
}

// Two neighbouring elements as floats.
KKT_DEVICE float2 unpack_element_pair(u32 word) {
    if constexpr (P::bf16)
        return make_float2(low_bf16(word), high_bf16(word));
    else
        return unpack_fp16(word);
}
