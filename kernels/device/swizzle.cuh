// Where the 16-byte units of a tile lie in shared memory, in the layout that tensor maps and wgmma
// call swizzle 32B, 64B and 128B: rows of W = 2, 4 or 8 units follow one another, and a unit's
// position in its row is moved by exclusive-or with a number that changes from row to row, so that
// one unit of each of eight rows covers all 32 banks:
//
//     128B (W 8): position = unit ^ (row % 8)            row 0   0 1 2 3 4 5 6 7
//      64B (W 4): position = unit ^ (row / 2 % 4)        row 1   1 0 3 2 5 4 7 6
//      32B (W 2): position = unit ^ (row / 4 % 2)        row 2   2 3 0 1 6 7 4 5   ... (128B)
//
// A tile that is wider than 128 bytes is a sequence of panels of W = 8, each with all its rows.
// Tiles begin at multiples of 1,024 bytes.
#pragma once

#include "device/types.cuh"

// ROWS rows of COLUMNS 2-byte elements: 16, 32 or a multiple of 64.
template <int ROWS, int COLUMNS> struct SwizzledTile {
    static constexpr int units = COLUMNS / 8;           // of 16 bytes, a row
    static constexpr int panel = units < 8 ? units : 8; // of them in a panel
    static constexpr int row_bytes = panel * 16;        // of a panel
    static constexpr int panel_bytes = ROWS * row_bytes;
    static constexpr int panels = units / panel;
    static constexpr int bytes = panels * panel_bytes;

    // Byte offset of one unit.
    KKT_DEVICE int at(int row, int unit) {
        const int moved = unit % panel ^ row / (8 / panel) % panel;
        return unit / panel * panel_bytes + row * row_bytes + moved * 16;
    }
};
