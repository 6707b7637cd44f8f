// The right operand of m16n8k16 as the instruction wants it: two neighbouring registers. A 16 x 16
// block Y of a product X Y^T has its 8 x 8 matrices in the order
//
//     half[0][0]  rows 0..7,  columns 0..7      half[1][0]  rows 8..15, columns 0..7
//     half[0][1]  rows 0..7,  columns 8..15     half[1][1]  rows 8..15, columns 8..15
//
// and half h gives output columns 8 h to 8 h + 7. An OperandTile (mma_sync.cuh) has the middle two
// the other way round, which costs a move for each register: what is only ever a right operand is
// loaded, and kept in shared memory, in this order.
#pragma once

#include "device/matrix_move.cuh"
#include "device/mma_sync.cuh"
#include "device/types.cuh"

struct RightTile {
    u32 half[2][2];
};

// `row` as for load_operand_tile, except that lanes 8..15 name columns 8..15 and lanes 16..23 rows
// 8..15.
KKT_DEVICE RightTile load_right_tile(u32 row) {
    const OperandTile t = load_operand_tile(row);
    return {{{t.quarter[0], t.quarter[1]}, {t.quarter[2], t.quarter[3]}}};
}

// Where shared memory holds Y^T; `row` as for load_operand_tile.
KKT_DEVICE RightTile load_transposed_right_tile(u32 row) {
    const OperandTile t = load_transposed_tile(row);
    return {{{t.quarter[0], t.quarter[1]}, {t.quarter[2], t.quarter[3]}}};
}

KKT_DEVICE RightTile right_tile(const OperandTile &y) {
    return {{{y.quarter[0], y.quarter[2]}, {y.quarter[1], y.quarter[3]}}};
}

// c += X Y^T for output columns 0..7 or 8..15.
template <bool BF16>
KKT_DEVICE void mma_right(Fragment &c, const OperandTile &x, const RightTile &y, int half) {
    const OperandTile same = {{y.half[half][0], y.half[half][0], y.half[half][1], y.half[half][1]}};
    mma_x_yt<BF16>(c, x, same, 0);
}
