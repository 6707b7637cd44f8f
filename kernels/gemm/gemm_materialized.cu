// gemm, materialized: sums along k are split, and what the parts come to goes through HBM. Where C
// has few tiles this gives every SM work; it costs 4 bytes written and read for each element and
// part.
//
//     gemm_materialized   a block makes one tile of one part of k: the loop of mainloop.cuh, then
//     its
//                         sums to `partials`, in fp32
//     gemm_reduce         adds the parts up, in their order, and rounds
//
// Shared memory: the ring.
#include "device/types.cuh"
#include "gemm/epilogue.cuh"
#include "gemm/mainloop.cuh"
#include "gemm/matrix.cuh"
#include "gemm/parameters.cuh"
#include "gemm/repack.cuh"
#include "gemm/tile_order.cuh"

constexpr int kParts = KKT_SPLIT_K;

static_assert(Ring::bytes == KKT_SMEM_BYTES, "the host's footprint and this layout differ");

// Two neighbours of a row of a part.
KKT_DEVICE void store_partial_pair(float *part, int n, int row, int column, float first,
                                   float second) {
    float *at = part + (i64)row * n + column;
    if (P::c_units) {
        if (column < n)
            *(float2 *)at = make_float2(first, second);
    } else {
        if (column < n)
            at[0] = first;
        if (column + 1 < n)
            at[1] = second;
    }
}

KKT_DEVICE void store_partials(const Sums &sums, float *part, int m, int n, int row, int column,
                               int lane) {
#pragma unroll
    for (int s = 0; s < P::strips; ++s)
#pragma unroll
        for (int f = 0; f < P::columns * 2; ++f)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int at_row = row + s * 16 + half * 8 + fragment_row(lane);
                const float *pair = sums[s].part[f].value + half * 2;
                if (at_row < m)
                    store_partial_pair(part, n, at_row, column + f * 8 + fragment_column(lane),
                                       pair[0], pair[1]);
            }
}

// Grid: x tiles of C, part by part.
extern "C" __global__ void __launch_bounds__(P::threads, KKT_MIN_BLOCKS > 0 ? KKT_MIN_BLOCKS : 1)
    gemm_materialized(const u16 *a, const u16 *b, const u16 *padded, i64 a_at, i64 b_at, int m,
                      int n, int k, int a_stride, int b_stride, float *partials) {
    extern __shared__ __align__(1024) u8 shared[];
    const auto left = Matrix<P::a_along_k>::make(a, padded, a_at, m, k, a_stride);
    const auto right = Matrix<P::b_along_k>::make(b, padded, b_at, n, k, b_stride);
    const int down = divide_up(m, P::bm);
    const int across = divide_up(n, P::bn);
    const int part = (int)blockIdx.x / (down * across);
    const TilePlace tile =
        TilePlace::make<KKT_RASTER>((int)blockIdx.x - part * down * across, down, across);
    const int row = tile.row * P::bm;
    const int column = tile.column * P::bn;
    const int warp = __shfl_sync(0xffffffffu, (int)threadIdx.x / kWarp, 0);
    const int lane = threadIdx.x % kWarp;
    const int warp_row = warp / P::warps_n * P::warp_m;
    const int warp_column = warp % P::warps_n * P::warp_n;
    const int share = divide_up(divide_up(k, P::bk), kParts) * P::bk; // terms of a part
    const int first = part * share;
    const int end = k - first < share ? k : first + share; // not after `first`: an empty part

    Sums sums;
#pragma unroll
    for (int s = 0; s < P::strips; ++s)
        sums[s].clear();
    Mainloop loop =
        Mainloop::make(left, right, row, column, first, end, shared, warp_row, warp_column, lane);
    loop.run(sums);
    store_partials(sums, partials + (i64)part * m * n, m, n, row + warp_row, column + warp_column,
                   lane);
}

// Grid: x elements of C in their order, eight a thread where rows are whole units, else one.
extern "C" __global__ void __launch_bounds__(256)
    gemm_reduce(const float *partials, u16 *c, i64 elements) {
    constexpr int count = P::c_units ? 8 : 1;
    const i64 at = ((i64)blockIdx.x * blockDim.x + threadIdx.x) * count;
    if (at >= elements)
        return;
    float sum[count];
#pragma unroll
    for (int p = 0; p < kParts; ++p) {
        const float *from = partials + p * elements + at;
#pragma unroll
        for (int e = 0; e < count; ++e)
            sum[e] = p == 0 ? from[e] : sum[e] + from[e];
    }
    if constexpr (P::c_units)
        *(uint4 *)(c + at) =
            make_uint4(pack_pair<P::bf16>(sum[0], sum[1]), pack_pair<P::bf16>(sum[2], sum[3]),
                       pack_pair<P::bf16>(sum[4], sum[5]), pack_pair<P::bf16>(sum[6], sum[7]));
    else
        c[at] = (u16)pack_pair<P::bf16>(sum[0], 0.0f);
}
