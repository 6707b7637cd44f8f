// 8 x 8 matrices of 2-byte elements between shared memory and the fragment layout (lane l holds
// elements (l / 4, 2 (l % 4)) and the one beside it), straight or transposed. A row is 16 bytes at
// a 16-byte boundary; lane l names row l % 8 of matrix l / 8.
#pragma once

#include "device/mma_sync.cuh"
#include "device/types.cuh"

// One matrix, named by lanes 0..7.
template <bool TRANSPOSED> KKT_DEVICE u32 load_matrix(u32 row) {
    u32 matrix;
    if constexpr (TRANSPOSED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];"
                     : "=r"(matrix)
                     : "r"(row)
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
                     : "=r"(matrix)
                     : "r"(row)
                     : "memory");
    return matrix;
}

// The lane that names a row where matrices 1 and 2 change places: the quarters of a tile whose
// matrices are then transposed one by one come out in order.
KKT_DEVICE int swap_middle_matrices(int lane) {
    return lane % 8 + lane / 16 * 8 + lane / 8 % 2 * 16;
}

// Four matrices, each transposed in itself.
KKT_DEVICE OperandTile load_transposed_tile(u32 row) {
    OperandTile t;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(t.quarter[0]), "=r"(t.quarter[1]), "=r"(t.quarter[2]), "=r"(t.quarter[3])
                 : "r"(row)
                 : "memory");
    return t;
}

// One matrix, transposed among the lanes.
KKT_DEVICE u32 transpose_matrix(u32 matrix) {
    u32 transposed;
    asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(transposed) : "r"(matrix));
    return transposed;
}

// The four quarters of a tile: the one below the diagonal changes place with the one above.
KKT_DEVICE OperandTile transpose_tile(const OperandTile &t) {
    return {{transpose_matrix(t.quarter[0]), transpose_matrix(t.quarter[2]),
             transpose_matrix(t.quarter[1]), transpose_matrix(t.quarter[3])}};
}

#if __CUDA_ARCH__ >= 900
// Four matrices to shared memory; with TRANSPOSED each lane's elements lie in a column.
template <bool TRANSPOSED> KKT_DEVICE void store_matrices(u32 row, const OperandTile &t) {
    if constexpr (TRANSPOSED)
        asm volatile(
            "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row),
            "r"(t.quarter[0]), "r"(t.quarter[1]), "r"(t.quarter[2]), "r"(t.quarter[3])
            : "memory");
    else
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row),
                     "r"(t.quarter[0]), "r"(t.quarter[1]), "r"(t.quarter[2]), "r"(t.quarter[3])
                     : "memory");
}
#else
// Lane l asks the lane that names its row for the address.
template <bool TRANSPOSED> KKT_DEVICE void store_matrices(u32 row, const OperandTile &t) {
    const int lane = threadIdx.x % kWarp;
#pragma unroll
    for (int n = 0; n < 4; ++n) {
        const u32 word = TRANSPOSED ? transpose_matrix(t.quarter[n]) : t.quarter[n];
        const u32 at = __shfl_sync(0xffffffffu, row, n * 8 + lane / 4) + lane % 4 * 4;
        asm volatile("st.shared.b32 [%0], %1;" ::"r"(at), "r"(word) : "memory");
    }
}
#endif
