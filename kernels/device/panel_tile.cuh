// A matrix of 2-byte elements in shared memory, in panels as wide as its columns allow: 64, 32 or
// 16 columns, swizzled as in swizzle.cuh, so that 8 x 8 matrices are read and written without bank
// conflicts. Unlike SwizzledTile it takes any multiple of 16 columns (96: three panels of 32).
//
// A 16 x 16 block of it comes into registers as a left operand or accumulator (quarters as in
// mma_sync.cuh), or as a right operand, whose quarters 1 and 2 change places: then the two words
// that one instruction takes are neighbours, as it wants them, and need not be moved. Either may be
// the block itself or its transpose:
//
//     left          X of a product X B        right             Y of X Y^T
//     transposed    X is its transpose        right_transposed  B of X B
#pragma once

#include "device/async_copy.cuh"
#include "device/matrix_move.cuh"
#include "device/mma_sync.cuh"
#include "device/tile_math.cuh"
#include "device/types.cuh"

template <int ROWS, int COLUMNS> struct PanelTile {
    static_assert(COLUMNS % 16 == 0, "panels are 16 columns wide at least");
    static constexpr int rows = ROWS;
    static constexpr int units = COLUMNS / 8;                                 // of 16 bytes, a row
    static constexpr int panel = units % 8 == 0 ? 8 : units % 4 == 0 ? 4 : 2; // of them in a panel
    static constexpr int bytes = ROWS * COLUMNS * 2;

    u8 *base; // at a multiple of 128 bytes

    // One unit.
    __device__ __forceinline__ u8 *at(int row, int unit) const {
        const int moved = unit % panel ^ row / (8 / panel) % panel;
        return base + (unit / panel * ROWS + row) * (panel * 16) + moved * 16;
    }

    // Where lane `lane` points for the block at `row` and `unit`, 8 x 8 matrix by matrix: down the
    // columns first (quarters 0 to 3), or along the rows.
    __device__ __forceinline__ u32 by_columns(int row, int unit, int lane) const {
        return shared_address(at(row + lane % 16, unit + lane / 16));
    }
    __device__ __forceinline__ u32 by_rows(int row, int unit, int lane) const {
        return shared_address(at(row + lane % 8 + lane / 16 * 8, unit + lane / 8 % 2));
    }

    __device__ __forceinline__ OperandTile load_left(int row, int unit, int lane) const {
        return load_operand_tile(by_columns(row, unit, lane));
    }
    __device__ __forceinline__ OperandTile load_transposed(int row, int unit, int lane) const {
        return load_transposed_tile(by_rows(row, unit, lane));
    }
    __device__ __forceinline__ RightTile load_right(int row, int unit, int lane) const {
        return {load_operand_tile(by_rows(row, unit, lane))};
    }
    __device__ __forceinline__ RightTile load_right_transposed(int row, int unit, int lane) const {
        return {load_transposed_tile(by_columns(row, unit, lane))};
    }
    // A left operand or an accumulator's rounded block.
    __device__ __forceinline__ void store(int row, int unit, const OperandTile &t, int lane) const {
        store_matrices<false>(by_columns(row, unit, lane), t);
    }
    // Stores the transpose of `t`.
    __device__ __forceinline__ void store_transposed(int row, int unit, const OperandTile &t,
                                                     int lane) const {
        store_matrices<true>(by_rows(row, unit, lane), t);
    }

    // Asks for the tile's rows, `row_stride` elements apart in global memory, with THREADS threads
    // of which this is `thread`. Rows from `valid` on become 0; `source` is readable all the same.
    template <int THREADS>
    __device__ __forceinline__ void copy(const u16 *source, i64 row_stride, int valid,
                                         int thread) const {
        if (valid >= ROWS)
            copy_units<THREADS, true>(source, row_stride, valid, thread);
        else
            copy_units<THREADS, false>(source, row_stride, valid, thread);
    }

    // Writes UNITS units of each of ROW_COUNT rows from `row` on to global memory, with THREADS
    // threads of which this is `thread`; no more than `valid` rows.
    template <int THREADS, int ROW_COUNT, int UNITS>
    __device__ __forceinline__ void write(u16 *destination, i64 row_stride, int row, int valid,
                                          int first_unit, int thread) const {
        if (valid >= ROW_COUNT)
            write_units<THREADS, ROW_COUNT, UNITS, true>(destination, row_stride, row, valid,
                                                         first_unit, thread);
        else
            write_units<THREADS, ROW_COUNT, UNITS, false>(destination, row_stride, row, valid,
                                                          first_unit, thread);
    }

  private:
    // Calls `visit(row, unit, element offset)` for the units of one of THREADS threads. Where a
    // row's units divide the threads, a thread keeps to one unit and goes down in equal steps.
    template <int THREADS, int ROW_COUNT, int UNITS, class Visit>
    KKT_DEVICE void for_units(i64 row_stride, int thread, const Visit &visit) {
        if constexpr (THREADS % UNITS == 0 && ROW_COUNT % (THREADS / UNITS) == 0) {
            constexpr int step = THREADS / UNITS;
            const int row = thread / UNITS;
            const int unit = thread % UNITS;
            i64 at = row * row_stride + unit * 8;
#pragma unroll 8
            for (int n = 0; n < ROW_COUNT / step; ++n) {
                visit(row + n * step, unit, at);
                at += step * row_stride;
            }
        } else {
#pragma unroll 2
            for (int item = thread; item < ROW_COUNT * UNITS; item += THREADS)
                visit(item / UNITS, item % UNITS, item / UNITS * row_stride + item % UNITS * 8);
        }
    }

    template <int THREADS, bool WHOLE>
    __device__ __forceinline__ void copy_units(const u16 *source, i64 row_stride, int valid,
                                               int thread) const {
        for_units<THREADS, ROWS, units>(row_stride, thread, [&](int row, int unit, i64 offset) {
            const bool inside = WHOLE || row < valid;
            async_copy_16(at(row, unit), inside ? source + offset : source, inside);
        });
    }

    template <int THREADS, int ROW_COUNT, int UNITS, bool WHOLE>
    __device__ __forceinline__ void write_units(u16 *destination, i64 row_stride, int row,
                                                int valid, int first_unit, int thread) const {
        for_units<THREADS, ROW_COUNT, UNITS>(row_stride, thread, [&](int r, int unit, i64 offset) {
            if (WHOLE || r < valid)
                *(uint4 *)(destination + offset) = *(const uint4 *)at(row + r, first_unit + unit);
        });
    }
};
