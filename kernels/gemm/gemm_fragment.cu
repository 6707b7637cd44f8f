// gemm, fragment: the naive product. A block makes one tile of C, BM x BN, in steps of BK terms: it
// loads the tiles of A and B, all of them, and then multiplies. Nothing is in flight meanwhile.
//
// A_PLACE and B_PLACE say where an operand's tile lies between the two:
//
//     register   every warp loads the lines that it multiplies, all BK terms, straight into the
//                layout of mma_sync: warps that share lines load them again
//     shared     all threads copy it once, and warps load 16 terms at a time
//
// The barrier between loading and multiplying is what makes a tile in registers one: without it the
// compiler would load its parts one after the other, as they are needed.
//
// Shared memory: a, then b, each if it lies there (operand_tile.cuh, swizzled).
#include "device/async_copy.cuh"
#include "device/tile_math.cuh"
#include "device/types.cuh"
#include "gemm/epilogue.cuh"
#include "gemm/matrix.cuh"
#include "gemm/operand_tile.cuh"
#include "gemm/parameters.cuh"
#include "gemm/repack.cuh"

enum Place { kRegister, kShared };
constexpr Place kAPlace = (Place)KKT_A_PLACE;
constexpr Place kBPlace = (Place)KKT_B_PLACE;

using AStore = OperandStore<P::bm, P::bk, P::a_along_k, true>;
using BStore = OperandStore<P::bn, P::bk, P::b_along_k, true>;

struct Layout {
    static constexpr int b_at = kAPlace == kShared ? AStore::bytes : 0;
    static constexpr int bytes = b_at + (kBPlace == kShared ? BStore::bytes : 0);
};

static_assert(Layout::bytes == KKT_SMEM_BYTES, "the host's footprint and this layout differ");

// A warp's lines of an operand, BK terms of each, as 16 x 16 blocks; TERMS_FIRST is the order of a
// block's 8 x 8 matrices: those of the next terms before those of the next lines.
template <int BLOCKS, bool ALONG_K, bool TERMS_FIRST> struct RegisterTile {
    u32 word[P::depth][BLOCKS][4];

    __device__ __forceinline__ void load(const Matrix<ALONG_K> &matrix, int line, int term,
                                         int lane) {
#pragma unroll
        for (int d = 0; d < P::depth; ++d)
#pragma unroll
            for (int b = 0; b < BLOCKS; ++b)
#pragma unroll
                for (int q = 0; q < 4; ++q) {
                    const int lines = (TERMS_FIRST ? q / 2 : q % 2) * 8 + b * 16;
                    const int terms = (TERMS_FIRST ? q % 2 : q / 2) * 8 + d * 16;
                    word[d][b][q] = matrix.stored_word(line + lines, term + terms, lane);
                }
    }
    __device__ __forceinline__ OperandTile get(int d, int b) const {
        OperandTile t;
#pragma unroll
        for (int q = 0; q < 4; ++q)
            t.quarter[q] = Matrix<ALONG_K>::by_lines(word[d][b][q]);
        return t;
    }
};

using ATile = RegisterTile<P::strips, P::a_along_k, false>;
using BTile = RegisterTile<P::columns, P::b_along_k, true>;

// Grid: x tiles of C, row by row.
extern "C" __global__ void __launch_bounds__(P::threads)
    gemm_fragment(const u16 *a, const u16 *b, const u16 *padded, i64 a_at, i64 b_at, int m, int n,
                  int k, int a_stride, int b_stride, u16 *c) {
    extern __shared__ __align__(1024) u8 shared[];
    const auto left = Matrix<P::a_along_k>::make(a, padded, a_at, m, k, a_stride);
    const auto right = Matrix<P::b_along_k>::make(b, padded, b_at, n, k, b_stride);
    const int across = divide_up(n, P::bn);
    const int row = (int)blockIdx.x / across * P::bm;
    const int column = (int)blockIdx.x % across * P::bn;
    const int warp = __shfl_sync(0xffffffffu, (int)threadIdx.x / kWarp, 0);
    const int lane = threadIdx.x % kWarp;
    const int warp_row = warp / P::warps_n * P::warp_m;
    const int warp_column = warp % P::warps_n * P::warp_n;

    auto a_share = AStore::Share<P::threads>::make(left, row, 0, threadIdx.x);
    auto b_share = BStore::Share<P::threads>::make(right, column, 0, threadIdx.x);
    const u32 a_lane =
        AStore::operand(shared_address(shared) + AStore::left_offset(lane), warp_row / 16, 0);
    const u32 b_lane = BStore::operand(
        shared_address(shared + Layout::b_at) + BStore::right_offset(lane), warp_column / 16, 0);
    ATile a_tile;
    BTile b_tile;
    Sums sums;
#pragma unroll
    for (int s = 0; s < P::strips; ++s)
        sums[s].clear();

#pragma unroll 1
    for (int term = 0; term < k; term += P::bk) {
        if constexpr (kAPlace == kShared)
            a_share.copy(shared, k - term, a);
        else
            a_tile.load(left, row + warp_row, term, lane);
        if constexpr (kBPlace == kShared)
            b_share.copy(shared + Layout::b_at, k - term, b);
        else
            b_tile.load(right, column + warp_column, term, lane);
        async_copy_wait();
        __syncthreads();
#pragma unroll
        for (int d = 0; d < P::depth; ++d) {
            OperandTile x[P::strips];
#pragma unroll
            for (int s = 0; s < P::strips; ++s)
                x[s] = kAPlace == kShared ? AStore::load_left(a_lane, s, d) : a_tile.get(d, s);
#pragma unroll
            for (int t = 0; t < P::columns; ++t) {
                const RightTile y = kBPlace == kShared ? BStore::load_right(b_lane, t, d)
                                                       : RightTile{b_tile.get(d, t)};
#pragma unroll
                for (int s = 0; s < P::strips; ++s)
                    sums[s].template add<P::bf16>(t, x[s], y);
            }
        }
        if (kAPlace == kShared || kBPlace == kShared)
            __syncthreads(); // the next tiles go where these are
    }
    store_sums(sums, c, m, n, row + warp_row, column + warp_column, lane);
}
