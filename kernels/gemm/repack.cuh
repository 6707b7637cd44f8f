// Copies a matrix of 2-byte elements whose rows are no whole 16-byte units to one whose rows are,
// with zeros behind each row. Tensor maps, cp.async and 16-byte loads all ask for such rows; one
// pass over an operand costs little beside the many times that a product reads it.
#pragma once

#include "device/types.cuh"

constexpr int kUnit = 8; // elements of 16 bytes

// Eight elements of a row from `column` on, zeros past its end.
KKT_DEVICE uint4 load_unaligned_unit(const u16 *row, int column, int columns) {
    u32 half[kUnit];
#pragma unroll
    for (int e = 0; e < kUnit; ++e)
        half[e] = column + e < columns ? row[column + e] : 0;
    return make_uint4(half[0] | half[1] << 16, half[2] | half[3] << 16, half[4] | half[5] << 16,
                      half[6] | half[7] << 16);
}

// Grid: x units of the copy, row by row.
extern "C" __global__ void __launch_bounds__(256)
    gemm_repack(const u16 *matrix, u16 *padded, i64 at, i64 rows, int columns, int units) {
    const i64 index = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    const i64 row = index / units;
    if (row >= rows)
        return;
    const int unit = (int)(index - row * units);
    *(uint4 *)(padded + at + index * kUnit) =
        load_unaligned_unit(matrix + row * columns, unit * kUnit, columns);
}
