// gemm, pipelined: the loop of mainloop.cuh. A block makes one tile of C, BM x BN; its warps share
// the tile, WARPS_M x WARPS_N of them, and keep their sums in registers.
//
// STORE says how the result leaves: `direct`, each lane its pairs, or `staged`, strip by strip
// through a row of shared memory that each warp has, 16 bytes a lane.
//
// Shared memory: the ring; a warp's rows to store lie where the ring's tiles of A were.
#include "device/types.cuh"
#include "gemm/epilogue.cuh"
#include "gemm/mainloop.cuh"
#include "gemm/matrix.cuh"
#include "gemm/parameters.cuh"
#include "gemm/repack.cuh"
#include "gemm/tile_order.cuh"

enum Store { kDirect, kStaged };

static_assert(Ring::bytes == KKT_SMEM_BYTES, "the host's footprint and this layout differ");
static_assert(KKT_STORE == kDirect || P::warps_m * P::warps_n * StagedStrip::bytes <= Ring::b_at,
              "the strips to store fit where the tiles of A were");

extern "C" __global__ void __launch_bounds__(P::threads, KKT_MIN_BLOCKS > 0 ? KKT_MIN_BLOCKS : 1)
    gemm_pipelined(const u16 *a, const u16 *b, const u16 *padded, i64 a_at, i64 b_at, int m, int n,
                   int k, int a_stride, int b_stride, u16 *c) {
    extern __shared__ __align__(1024) u8 shared[];
    const auto left = Matrix<P::a_along_k>::make(a, padded, a_at, m, k, a_stride);
    const auto right = Matrix<P::b_along_k>::make(b, padded, b_at, n, k, b_stride);
    const TilePlace tile =
        TilePlace::make<KKT_RASTER>(blockIdx.x, divide_up(m, P::bm), divide_up(n, P::bn));
    const int row = tile.row * P::bm;
    const int column = tile.column * P::bn;
    const int warp = __shfl_sync(0xffffffffu, (int)threadIdx.x / kWarp, 0);
    const int lane = threadIdx.x % kWarp;
    const int warp_row = warp / P::warps_n * P::warp_m;
    const int warp_column = warp % P::warps_n * P::warp_n;

    Sums sums;
#pragma unroll
    for (int s = 0; s < P::strips; ++s)
        sums[s].clear();
    Mainloop loop =
        Mainloop::make(left, right, row, column, 0, k, shared, warp_row, warp_column, lane);
    loop.run(sums);
    if constexpr (KKT_STORE == kDirect) {
        store_sums(sums, c, m, n, row + warp_row, column + warp_column, lane);
    } else {
        const StagedStrip strip = {shared + warp * StagedStrip::bytes};
        store_staged(sums, strip, c, m, n, row + warp_row, column + warp_column, lane);
    }
}
