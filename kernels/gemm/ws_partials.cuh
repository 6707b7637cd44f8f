// Sums of parts of K that go through memory: `partials` holds an m x n matrix of fp32 for each
// part. A launch of gemm_reduce_parts adds them up.
#pragma once

#include "device/types.cuh"
#include "gemm/ws_output.cuh"
#include "gemm/ws_parameters.cuh"

// Two neighbours of a row; a pair begins at an even column.
KKT_DEVICE void store_partial_pair(float *row, int column, int n, float first, float second) {
    if (P::c_units) {
        if (column < n)
            *(float2 *)(row + column) = make_float2(first, second);
    } else {
        if (column < n)
            row[column] = first;
        if (column + 1 < n)
            row[column + 1] = second;
    }
}

// 64 rows of a warpgroup and COLUMNS columns, the first at (row, column) of the part's matrix.
template <int COLUMNS>
KKT_DEVICE void store_partial_rows(float *part, int m, int n, int row, int column,
                                   const float *value, int thread) {
    const int warp = thread / kWarp, lane = thread % kWarp;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const int at = row + warp * 16 + half * 8 + lane / 4;
        if (at >= m)
            continue;
        float *to = part + (i64)at * n;
#pragma unroll
        for (int f = 0; f < COLUMNS / 8; ++f)
            store_partial_pair(to, column + 8 * f + lane % 4 * 2, n, value[4 * f + 2 * half],
                               value[4 * f + 2 * half + 1]);
    }
}

#if KKT_SPLIT_K > 1
// Elements of C in their order, four a thread where rows are whole units, else one; the parts are
// added in their order.
extern "C" __global__ void __launch_bounds__(256)
    gemm_reduce_parts(const float *partials, u16 *c, i64 elements) {
    const i64 thread = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if constexpr (P::c_units) {
        const i64 at = thread * 4;
        if (at >= elements)
            return;
        float4 part[P::split_k];
#pragma unroll
        for (int p = 0; p < P::split_k; ++p)
            part[p] = *(const float4 *)(partials + p * elements + at);
        float4 sum = part[0];
#pragma unroll
        for (int p = 1; p < P::split_k; ++p) {
            sum.x += part[p].x;
            sum.y += part[p].y;
            sum.z += part[p].z;
            sum.w += part[p].w;
        }
        *(uint2 *)(c + at) = make_uint2(pack_output(sum.x, sum.y), pack_output(sum.z, sum.w));
    } else {
        if (thread >= elements)
            return;
        float sum = partials[thread];
#pragma unroll
        for (int p = 1; p < P::split_k; ++p)
            sum += partials[p * elements + thread];
        c[thread] = (u16)pack_output(sum, 0);
    }
}
#endif
