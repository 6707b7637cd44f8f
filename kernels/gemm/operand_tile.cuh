// A block's tile of an operand in shared memory: LINES lines (rows of A, columns of B) of DEPTH
// terms, as it is stored in global memory, so with ALONG_K a row is a line, else a row is a term.
// Its 16-byte units are placed in one of two ways so that eight rows' units of an 8 x 8 matrix
// cover all banks:
//
//     swizzled   panels of up to 64 columns, units moved by exclusive-or (device/swizzle.cuh)
//     padded     16 bytes of nothing behind each row (device/padded_tile.cuh)
//
// A lane's addresses for ldmatrix differ from operand to operand by constants, added or
// exclusive-or.
#pragma once

#include "device/async_copy.cuh"
#include "device/matrix_move.cuh"
#include "device/mma_sync.cuh"
#include "device/tile_math.cuh"
#include "device/types.cuh"
#include "gemm/matrix.cuh"

template <int LINES, int DEPTH, bool ALONG_K, bool SWIZZLE> struct OperandStore {
    static constexpr int rows = ALONG_K ? LINES : DEPTH;
    static constexpr int columns = ALONG_K ? DEPTH : LINES;
    static constexpr int units = columns / 8;
    static constexpr int panel = !SWIZZLE ? units : units < 8 ? units : 8; // units of one
    static constexpr int row_bytes = panel * 16 + (SWIZZLE ? 0 : 16);
    static constexpr int panel_bytes = rows * row_bytes;
    static constexpr int bytes = units / panel * panel_bytes;

    static_assert(units % panel == 0 && (panel & (panel - 1)) == 0, "columns are a power of two");

    // Byte offset of one unit.
    KKT_DEVICE int at(int row, int unit) {
        const int moved = SWIZZLE ? unit % panel ^ row / (8 / panel) % panel : unit;
        return unit / panel * panel_bytes + row * row_bytes + moved * 16;
    }

    // ---- to registers ----

    // Of the lane's row of the tile's first operand: its 8 x 8 matrices one below the other first
    // (`down`), or side by side first.
    KKT_DEVICE u32 lane_offset(bool down, int lane) {
        const int low = lane / 8 % 2, high = lane / 16;
        return at(lane % 8 + (down ? low : high) * 8, down ? high : low);
    }
    // A is wanted line by line: matrices 0, 1 are lines 0..7, 8..15 of the first terms. Of B the
    // first two are the terms 0..7, 8..15 of the first lines.
    KKT_DEVICE u32 left_offset(int lane) {
        return lane_offset(ALONG_K, lane);
    }
    KKT_DEVICE u32 right_offset(int lane) {
        return lane_offset(!ALONG_K, lane);
    }

    // From a lane's address in the first operand to that of the operand at 16 `line`, 16 `term`.
    // What exclusive-or changes are bits 4 to 6, which a tile's begin leaves alone.
    KKT_DEVICE u32 operand(u32 first, int line, int term) {
        const int row = (ALONG_K ? line : term) * 16;
        const int unit = (ALONG_K ? term : line) * 2;
        const int along = unit % panel * 16;
        const u32 moved = SWIZZLE ? first ^ along : first + along;
        return moved + row * row_bytes + unit / panel * panel_bytes;
    }

    KKT_DEVICE OperandTile load_left(u32 first, int line, int term) {
        const u32 row = operand(first, line, term);
        return ALONG_K ? load_operand_tile(row) : load_transposed_tile(row);
    }
    KKT_DEVICE RightTile load_right(u32 first, int line, int term) {
        const u32 row = operand(first, line, term);
        return {ALONG_K ? load_operand_tile(row) : load_transposed_tile(row)};
    }

    // ---- from global memory ----

    // The units that one of THREADS threads copies: one of each `step` rows.
    template <int THREADS> struct Share {
        static constexpr int step = THREADS / units;
        static constexpr int rounds = divide_up(rows, step);
        static constexpr bool even = step * units == THREADS && rows % step == 0;

        const u16 *from; // the thread's first unit of the step along k at hand
        i64 advance;     // elements from one step along k to the next
        i64 stride;      // elements between two of its rows
        int row, column; // of its first unit, in the tile
        int lines_left;  // from the tile's first line on
        int columns_end; // stride minus the tile's first column
        int tile_at;     // byte offset of its first unit

        KKT_DEVICE Share make(const Matrix<ALONG_K> &matrix, int line, int term, int thread) {
            Share s;
            s.row = thread / units;
            s.column = thread % units * 8;
            const int first_row = (ALONG_K ? line : term) + s.row;
            const int first_column = (ALONG_K ? term : line) + s.column;
            s.from = matrix.data + (i64)first_row * matrix.stride + first_column;
            s.advance = ALONG_K ? DEPTH : (i64)DEPTH * matrix.stride;
            s.stride = (i64)step * matrix.stride;
            s.lines_left = matrix.lines - line;
            s.columns_end = matrix.stride - (ALONG_K ? 0 : line);
            s.tile_at = at(s.row, thread % units);
            return s;
        }

        // Whether nothing of a step's tile is outside, where it has `terms` terms before the end.
        __device__ __forceinline__ bool whole(int terms) const {
            return terms >= DEPTH && lines_left >= LINES;
        }

        // Asks for the tile of the next step along k. `anywhere` is a readable address.
        __device__ __forceinline__ void copy(u8 *tile, int terms, const u16 *anywhere) {
            if (whole(terms))
                copy_rows<true>(tile, terms, anywhere);
            else
                copy_rows<false>(tile, terms, anywhere);
            from += advance;
        }

        template <bool WHOLE>
        __device__ __forceinline__ void copy_rows(u8 *tile, int terms, const u16 *anywhere) const {
            const int rows_left = ALONG_K ? lines_left : terms;
            const bool column_inside =
                ALONG_K ? column < terms : column < columns_end; // whole units alone
#pragma unroll
            for (int n = 0; n < rounds; ++n) {
                const int at_row = row + n * step;
                if (!even && (row >= step || at_row >= rows))
                    break;
                const bool inside = WHOLE || (column_inside && at_row < rows_left);
                async_copy_16(tile + place(n), inside ? from + n * stride : anywhere, inside);
            }
        }

        // Byte offset of the thread's unit of round n: rows `step` apart keep their exclusive-or
        // where step is a multiple of 8.
        __device__ __forceinline__ int place(int n) const {
            if constexpr (!SWIZZLE || step % 8 == 0)
                return tile_at + n * step * row_bytes;
            else
                return at(row + n * step, column / 8);
        }
    };
};
