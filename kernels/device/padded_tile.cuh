// A tile of 2-byte elements in shared memory whose rows are followed by 16 bytes of nothing: a row
// is an odd number of 16-byte units, so that one unit of each of eight rows covers all 32 banks.
//
//                 COLUMNS / 8 units                  for 64 columns, the bank group of each unit
//     row 0   | u0 | u1 | u2 | ... | -- |            0 1 2 3 4 5 6 7 (0)
//     row 1   | u0 | u1 | u2 | ... | -- |            1 2 3 4 5 6 7 0 (1)
//     row 2   | u0 | u1 | u2 | ... | -- |            2 3 4 5 6 7 0 1 (2)
//
// Unlike a swizzled tile it takes any multiple of 16 columns, and what a lane reads lies at
// constants from one address of its own. Neither tensor maps nor wgmma can read it.
#pragma once

#include "device/types.cuh"

// Where the rows begin that a lane names in a 16 x 16 operand, in the two orders of its 8 x 8
// matrices:
//
//     by rows      0 2     left operands, and right operands where the tile is Y^T
//                  1 3
//     by columns   0 1     right operands, and left operands where the tile is X^T
//                  2 3
struct LaneAddress {
    u32 by_rows, by_columns;
};

template <int ROWS, int COLUMNS> struct PaddedTile {
    static_assert(COLUMNS % 16 == 0, "whole 16 x 16 operands");
    static constexpr int rows = ROWS;
    static constexpr int units = COLUMNS / 8; // of 16 bytes, a row
    static constexpr int row_bytes = COLUMNS * 2 + 16;
    static constexpr int bytes = ROWS * row_bytes;

    // Byte offset of one unit.
    KKT_DEVICE int at(int row, int unit) {
        return row * row_bytes + unit * 16;
    }

    // Byte offset of the 16 x 16 operand in strip `row` of rows and strip `column` of columns.
    KKT_DEVICE int operand_at(int row, int column) {
        return row * 16 * row_bytes + column * 32;
    }

    // In the tile's first operand; operand_at leads to the others.
    KKT_DEVICE LaneAddress lane_address(const u8 *tile, int lane) {
        const u32 first = shared_address(tile);
        return {first + at(lane % 16, lane / 16),
                first + at(lane % 8 + lane / 16 * 8, lane / 8 % 2)};
    }
};
