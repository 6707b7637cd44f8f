// Step 2 of the register path: K K^T, without the gate, for all heads of an area.
//
// It goes from tensor cores to shared memory as it is, in fragments, in the order of Tiles: each
// half of a 16 x 16 block is 16 bytes a lane, but of the second half of a diagonal block only the
// lower eight rows count, 8 bytes a lane.
//
//     half 0     lane 0's four elements | lane 1's | ... | lane 31's       512 bytes
//     half 1     likewise; on the diagonal lane 0's last two | ...         512 or 256
#pragma once

#include "device/fragment.cuh"
#include "device/mbarrier.cuh"
#include "device/mma_sync.cuh"
#include "device/tensor_map.cuh"
#include "device/wgmma.cuh"
#include "kkt_solve/register_layout.cuh"
#include "kkt_solve/register_load.cuh"
#include "kkt_solve/work.cuh"

KKT_DEVICE void store_k_kt(u8 *k_kt, int i, int j, int half, const Fragment &f, int lane) {
    u8 *at = k_kt + Tiles::at(i, j) + half * 512;
    if (half == 1 && i == j)
        *(float2 *)(at + lane * 8) = make_float2(f.value[2], f.value[3]);
    else
        *(float4 *)(at + lane * 16) = make_float4(f.value[0], f.value[1], f.value[2], f.value[3]);
}

KKT_DEVICE Accumulator load_k_kt(const u8 *k_kt, int i, int j, int lane) {
    const u8 *at = k_kt + Tiles::at(i, j);
    const float4 left = *(const float4 *)(at + lane * 16);
    Accumulator a;
    a.half[0] = {{left.x, left.y, left.z, left.w}};
    if (i == j) {
        const float2 low = *(const float2 *)(at + 512 + lane * 8);
        a.half[1] = {{0.0f, 0.0f, low.x, low.y}};
    } else {
        const float4 right = *(const float4 *)(at + 512 + lane * 16);
        a.half[1] = {{right.x, right.y, right.z, right.w}};
    }
    return a;
}

// ---- by mma.sync ----

KKT_DEVICE OperandTile load_k(const u8 *tile, int strip, int depth, int lane) {
    return load_operand_tile(
        shared_address(tile + KTile::at(strip * 16 + lane % 16, depth / 8 + lane / 16)));
}

// Warp WARP's share of the half blocks of K K^T, row by row. What each warp does is known to the
// compiler: a strip of K is loaded once a step, and only where it is needed.
template <int WARP> struct WarpTiles {
    static constexpr int halves = 2 * Tiles::count;
    static constexpr int first = WARP * halves / Layout::area_warps;
    static constexpr int count = (WARP + 1) * halves / Layout::area_warps - first;

    Fragment c[larger(count, 1)];

    // Strips of half block n.
    KKT_DEVICE int row(int n) {
        int i = 0;
#pragma unroll
        for (int k = 1; k < Tiles::chunk_side; ++k)
            i += n / 2 % Tiles::a_chunk >= k * (k + 1) / 2;
        return n / 2 / Tiles::a_chunk * Tiles::chunk_side + i;
    }
    KKT_DEVICE int column(int n) {
        const int i = row(n) % Tiles::chunk_side;
        return row(n) - i + n / 2 % Tiles::a_chunk - i * (i + 1) / 2;
    }
    // Whether a half block of the share lies in this row or column of strips; may say so of others
    // where the share spans several rows.
    KKT_DEVICE bool needs(int strip) {
        const int last = first + count - 1;
        if (row(first) == row(last))
            return strip == row(first) || (strip >= column(first) && strip <= column(last));
        return strip <= row(last);
    }

    __device__ __forceinline__ void multiply(const u8 *tile, int lane) {
#pragma unroll
        for (int n = 0; n < count; ++n)
            fragment_clear(c[n]);
#pragma unroll(P::dk <= 128 ? 8 : 2)
        for (int depth = 0; depth < P::dk; depth += 16) {
            OperandTile strip[P::span / 16];
#pragma unroll
            for (int i = 0; i < P::span / 16; ++i)
                if (needs(i))
                    strip[i] = load_k(tile, i, depth, lane);
#pragma unroll
            for (int n = 0; n < count; ++n)
                mma_x_yt<P::bf16>(c[n], strip[row(first + n)], strip[column(first + n)],
                                  (first + n) % 2);
        }
    }

    __device__ __forceinline__ void store(u8 *k_kt, int lane) const {
#pragma unroll
        for (int n = 0; n < count; ++n)
            store_k_kt(k_kt, row(first + n), column(first + n), (first + n) % 2, c[n], lane);
    }
};

// All of it by this warp: tries the warps from WARP on.
template <int WARP = 0> KKT_DEVICE void multiply_tiles(const Area &area) {
    if (WARP == Layout::area_warps - 1 || area.warp == WARP) {
        WarpTiles<WARP> tiles;
        tiles.multiply(area.tile, area.lane);
        if (Layout::over_k)
            Area::sync_apart();
        tiles.store(area.work + Layout::k_kt_at, area.lane);
    } else if constexpr (WARP < Layout::area_warps - 1) {
        multiply_tiles<WARP + 1>(area);
    }
}

// ---- by wgmma ----

// The block's one warpgroup: a 64 x 64 product, or the three on and below the diagonal of 128 rows.
// Warp w has strip w of the rows and all columns of a product.
//
//     product     0 0     of row and column groups of 64
//                 1 2
struct GroupTiles {
    static constexpr int count = P::span == 128 ? 3 : 1;
    Fragment c[count][8];

    KKT_DEVICE u64 operand(const u8 *tile, int group, int unit) {
        return wgmma_operand(tile + unit / 8 * KTile::panel_bytes + group * 64 * KTile::row_bytes +
                             unit % 8 * 16);
    }

    __device__ __forceinline__ void begin(const u8 *tile) {
        wgmma_begin();
#pragma unroll
        for (int n = 0; n < count; ++n) {
            wgmma_x_yt<P::bf16, false>(c[n], operand(tile, n > 0, 0), operand(tile, n == 2, 0));
#pragma unroll
            for (int unit = 2; unit < KTile::units; unit += 2) // 16 columns
                wgmma_x_yt<P::bf16>(c[n], operand(tile, n > 0, unit), operand(tile, n == 2, unit));
        }
        wgmma_commit();
    }

    __device__ __forceinline__ void end() {
#pragma unroll
        for (int n = 0; n < count; ++n)
            wgmma_end(c[n]);
    }

    __device__ __forceinline__ void store(u8 *k_kt, int warp, int lane) const {
#pragma unroll
        for (int n = 0; n < count; ++n) {
            const int row = (n > 0) * 4 + warp;
            const int first = row / Tiles::chunk_side * Tiles::chunk_side; // of the row's chunk
#pragma unroll
            for (int e = 0; e < 8; ++e) {
                const int column = (n == 2) * 4 + e / 2;
                if (column >= first && column <= row)
                    store_k_kt(k_kt, row, column, e % 2, c[n][e], lane);
            }
        }
    }
};

// ---- the step ----

// Gates are scanned while something is on its way: K, or its product. `scan` scans those of this
// warp; `parity` is that of the barrier's phase that K by TMA ends.
template <class Action>
KKT_DEVICE void multiply_k(const Work &w, const Area &area, u32 parity, const Action &scan) {
    constexpr bool early = P::kload == kTmaLoad || P::mma != kWgmma;
    if (early)
        scan();
    if (comes_by_tile(w))
        mbarrier_wait(area.arrived, parity);
    if constexpr (P::mma == kWgmma) {
        GroupTiles tiles;
        tiles.begin(area.tile);
        if (!early)
            scan();
        tiles.end();
        if (Layout::over_k)
            Area::sync();
        tiles.store(area.work + Layout::k_kt_at, area.warp, area.lane);
    } else {
        multiply_tiles(area);
    }
    if constexpr (Layout::zeros_bytes > 0) { // sent by the teams
        for (int at = area.thread() * 16; at < Layout::zeros_bytes;
             at += Layout::area_warps * kWarp * 16)
            *(uint4 *)(area.work + Layout::zeros_at + at) = make_uint4(0, 0, 0, 0);
        async_proxy_fence();
    }
    Area::sync();
}
