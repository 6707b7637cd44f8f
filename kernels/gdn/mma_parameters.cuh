// The configuration of a forward kernel that multiplies with mma_sync, as the compiler was given
// it. What a parameter means is said in the family's descriptor.
#pragma once

#include "device/types.cuh"

enum Solve { kSubstitute, kInvert };
enum TForm { kT, kTBeta };
enum Tables { kTablesInRegisters, kTablesShared };

struct P {
    static constexpr int chunk = KKT_CHUNK;
    static constexpr int dk = KKT_DK;
    static constexpr int dv = KKT_DV;
    static constexpr int block_dv = KKT_BLOCK_DV;
    static constexpr bool bf16 = KKT_DTYPE == 0;
    static constexpr bool gated = KKT_GATED;
    static constexpr int threads = KKT_THREADS;
    static constexpr int warps = threads / kWarp;
    static constexpr int min_blocks = KKT_MIN_BLOCKS > 0 ? KKT_MIN_BLOCKS : 1;
    static constexpr int splits = dv / block_dv; // blocks that share a head's chunk
    static constexpr int strips = chunk / 16;
    static constexpr int blocks = strips * (strips + 1) / 2; // 16 x 16, on and below the diagonal
};

static_assert(P::dv % P::block_dv == 0, "whole splits");
static_assert(P::dk % 16 == 0 && P::chunk % 16 == 0 && P::block_dv % 16 == 0, "whole operands");

__host__ __device__ constexpr int common_divisor(int a, int b) {
    return b == 0 ? a : common_divisor(b, a % b);
}

// Row of block n in the list (0,0) (1,0) (1,1) (2,0) ..., and its place in the row.
KKT_DEVICE int lower_block_row(int n) {
    int row = 0;
#pragma unroll
    for (int i = 1; i < P::strips; ++i)
        row += n >= i * (i + 1) / 2;
    return row;
}

KKT_DEVICE int lower_block(int row, int column) {
    return row * (row + 1) / 2 + column;
}
