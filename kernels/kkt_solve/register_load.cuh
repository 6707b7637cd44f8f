// Step 1 of the register path: K to its tile; beta and g to the heads' tables.
#pragma once

#include "device/async_copy.cuh"
#include "device/mbarrier.cuh"
#include "device/tensor_map.cuh"
#include "kkt_solve/register_layout.cuh"
#include "kkt_solve/work.cuh"

// K by the threads of an area, 16 bytes at a time. Rows past the end are zeros.
KKT_DEVICE void copy_k(const Problem &p, const Work &w, int head_k, const Area &area) {
    // A thread keeps to one unit of the rows.
    constexpr int step = Layout::area_warps * kWarp / KTile::units; // rows
    static_assert(Layout::area_warps * kWarp % KTile::units == 0 && P::span % step == 0,
                  "whole rows a step");
    const int unit = area.thread() % KTile::units;
    const int row = area.thread() / KTile::units;
    const i64 row_stride = (i64)p.heads_k * P::dk;
    const u16 *k = p.k + ((i64)w.first * p.heads_k + head_k) * P::dk;
    const u16 *source = k + row * row_stride + unit * 8;
#pragma unroll(P::kload == kTmaLoad ? 1 : 8) // by TMA: tails alone come here
    for (int n = 0; n < P::span / step; ++n) {
        const bool valid = row + n * step < w.rows;
        u8 *destination = area.tile + KTile::at(row + n * step, unit);
        if (P::kload == kLdg)
            *(uint4 *)destination = valid ? load_global_16(source) : make_uint4(0, 0, 0, 0);
        else
            async_copy_16(destination, valid ? source : k, valid);
        source += step * row_stride;
    }
}

// K as whole panels, reported to the area's barrier; one warp. A persistent block sets the barrier
// up beforehand.
KKT_DEVICE void load_k_tile(const Work &w, int head_k, const TensorMap &k_map, const Area &area) {
    if (!P::persistent) {
        if (elected())
            mbarrier_init(area.arrived, 1);
        __syncwarp(); // for another lane to be elected
    }
    if (elected()) {
        mbarrier_expect(area.arrived, KTile::bytes);
#pragma unroll
        for (int panel = 0; panel < KTile::panels; ++panel)
            tile_load(area.tile + panel * KTile::panel_bytes, k_map, head_k * P::dk + panel * 64,
                      w.first, area.arrived);
    }
}

// Neighbouring heads of a row in one access.
template <int HEADS> struct HeadValues { float value[HEADS]; };

template <int HEADS>
KKT_DEVICE HeadValues<HEADS> load_head_values(const float *source, bool valid) {
    HeadValues<HEADS> v;
    if constexpr (HEADS == 4) {
        const float4 x = valid ? __ldg((const float4 *)source) : make_float4(0, 0, 0, 0);
        v.value[0] = x.x, v.value[1] = x.y, v.value[2] = x.z, v.value[3] = x.w;
    } else if constexpr (HEADS == 2) {
        const float2 x = valid ? __ldg((const float2 *)source) : make_float2(0, 0);
        v.value[0] = x.x, v.value[1] = x.y;
    } else {
        v.value[0] = valid ? __ldg(source) : 0.0f;
    }
    return v;
}

// beta and g of the block's heads: asked for before K, and put into the tables after it was asked
// for. Items are (g or beta, row, group of heads); threads go along rows.
struct GateLoad {
    static constexpr int heads = P::heads % 4 == 0 ? 4 : P::heads % 2 == 0 ? 2 : 1; // an item
    static constexpr int groups = P::heads / heads;
    static constexpr int a_tensor = P::span * groups;
    static constexpr int count = (P::gated ? 2 : 1) * a_tensor;
    static constexpr int per_thread = divide_up(count, P::threads);

    HeadValues<heads> values[per_thread];

    __device__ __forceinline__ void ask(const Problem &p, const Work &w) {
#pragma unroll
        for (int n = 0; n < per_thread; ++n) {
            const int item = n * P::threads + (int)threadIdx.x;
            const int row = item / groups % P::span;
            const float *tensor = item < a_tensor ? p.beta : p.g;
            const u64 at = (u64)(u32)(w.first + row) * (u32)p.heads_v +
                           (u32)(w.head_v + item % groups * heads);
            const bool valid = row < w.rows && item < count;
            values[n] = load_head_values<heads>(valid ? tensor + at : tensor, valid);
        }
    }

    __device__ __forceinline__ void put(float *tables) const {
#pragma unroll
        for (int n = 0; n < per_thread; ++n) {
            const int item = n * P::threads + (int)threadIdx.x;
            const int row = item / groups % P::span;
#pragma unroll
            for (int h = 0; h < heads; ++h) {
                const Factors f =
                    Factors::at(tables + (item % groups * heads + h) * Factors::words);
                if (count % P::threads == 0 || item < count)
                    (item < a_tensor ? f.beta : f.sum)[row] = values[n].value[h];
            }
        }
    }
};

// Whether a span's K comes by TMA: where that was asked for and the span is whole.
KKT_DEVICE bool comes_by_tile(const Work &w) {
    return P::kload == kTmaLoad && w.rows == P::span;
}

// Asks for all that a unit of work reads: first for K by TMA, for all of the block waits for it.
KKT_DEVICE void ask(const Problem &p, const Work &w, const TensorMap *k_map, const Area &area,
                    int head_k, GateLoad &gates) {
    if (comes_by_tile(w) && area.warp == 0)
        load_k_tile(w, head_k, *k_map, area);
    gates.ask(p, w);
    if (!comes_by_tile(w))
        copy_k(p, w, head_k, area);
}

// Waits for it, but for K by TMA: the gates are scanned while that is on its way.
KKT_DEVICE void receive(const Work &w, u8 *shared, const GateLoad &gates) {
    gates.put((float *)(shared + Layout::factors_at));
    if (!comes_by_tile(w)) {
        if (P::kload != kLdg)
            async_copy_wait();
        if (P::mma == kWgmma)
            async_proxy_fence();
    }
    __syncthreads();
}
