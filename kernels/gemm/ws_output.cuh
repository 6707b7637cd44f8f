// C from registers to memory: rounded, staged in shared memory as swizzled panels of 64 x 64, and
// written from there, by TMA where C's rows allow it. What is beyond C's edge is left out.
#pragma once

#include "device/convert.cuh"
#include "device/tensor_map.cuh"
#include "device/types.cuh"
#include "gemm/ws_barrier.cuh"
#include "gemm/ws_layout.cuh"
#include "gemm/ws_products.cuh"
#include "gemm/ws_thread.cuh"

struct Output {
    const TensorMap *map;
    u16 *c;
    int m, n;
};

KKT_DEVICE u32 pack_output(float low, float high) {
    return P::bf16 ? pack_bf16(low, high) : pack_fp16(low, high);
}

// Writes four 8 x 8 matrices of 2-byte elements; lane l gives the address of row l % 8 of matrix
// l / 8, and register i holds the lane's part of matrix i.
KKT_DEVICE void store_matrices(u32 address, u32 m0, u32 m1, u32 m2, u32 m3) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
                 "r"(m0), "r"(m1), "r"(m2), "r"(m3)
                 : "memory");
}

// A warp's 16 rows of one panel, `value` its eight fragments.
KKT_DEVICE void stage_panel(u32 panel, const float *value, int warp, int lane) {
    const int row = warp * 16 + lane % 16;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int unit = 2 * i + lane / 16;
        const float *v = value + 8 * i;
        store_matrices(panel + (u32)(row * kRowBytes + (unit ^ row % 8) * 16),
                       pack_output(v[0], v[1]), pack_output(v[2], v[3]), pack_output(v[4], v[5]),
                       pack_output(v[6], v[7]));
    }
}

// Where an element of panels side by side lies in its row, and the part of it that changes with the
// row: the unit, which is moved by row % 8.
struct StagedColumn {
    const u8 *panel;
    int unit;

    KKT_DEVICE StagedColumn at(const u8 *stage, int column) {
        StagedColumn c;
        c.panel = stage + column / 64 * Layout::c_panel_bytes + column % 8 * 2;
        c.unit = column % 64 / 8;
        return c;
    }

    __device__ __forceinline__ const u8 *row(int r) const {
        return panel + r * kRowBytes + (unit ^ r % 8) * 16;
    }
};

// Two elements side by side, the first at an even column or not.
template <int SKIPPED> struct StagedPair {
    StagedColumn first, second;

    KKT_DEVICE StagedPair at(const u8 *stage, int column) {
        StagedPair p;
        p.first = StagedColumn::at(stage, column);
        p.second = StagedColumn::at(stage, column + 1);
        return p;
    }

    __device__ __forceinline__ u32 row(int r) const {
        if (SKIPPED == 0)
            return *(const u32 *)first.row(r);
        return *(const u16 *)first.row(r) | (u32) * (const u16 *)second.row(r) << 16;
    }
};

// Of a warp's 16 rows of COUNT panels those that begin SKIPPED elements before a whole word of C:
// two elements a lane, words side by side. (row, column) is the panels' first element in C.
template <int COUNT, int SKIPPED>
KKT_DEVICE void copy_rows(const Output &out, int row, int column, const u8 *stage, int warp,
                          int lane) {
    const int columns = out.n - column < 64 * COUNT ? out.n - column : 64 * COUNT;
    StagedPair<SKIPPED> pair[COUNT];
#pragma unroll
    for (int w = 0; w < COUNT; ++w)
        pair[w] = StagedPair<SKIPPED>::at(stage, SKIPPED + 2 * (w * kWarp + lane));
#pragma unroll 4
    for (int i = 0; i < 16; ++i) {
        const int r = warp * 16 + i;
        u16 *to = out.c + (i64)(row + r) * out.n + column;
        if (row + r >= out.m || (int)((u64)to / 2 % 2) != SKIPPED)
            continue;
        if (SKIPPED > 0 && lane == 0 && columns > 0)
            to[0] = *(const u16 *)StagedColumn::at(stage, 0).row(r);
#pragma unroll
        for (int w = 0; w < COUNT; ++w) {
            const int at = SKIPPED + 2 * (w * kWarp + lane);
            if (at + 1 < columns)
                *(u32 *)(to + at) = pair[w].row(r);
            else if (at < columns)
                to[at] = *(const u16 *)pair[w].first.row(r);
        }
    }
}

// The same where C's rows are whole units: a warp writes 128 bytes of four rows at a time.
template <int COUNT>
KKT_DEVICE void copy_units(const Output &out, int row, int column, const u8 *stage, int warp,
                           int lane) {
    const int unit = lane % 8;
    uint4 value[COUNT][4];
#pragma unroll
    for (int p = 0; p < COUNT; ++p)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int r = warp * 16 + i * 4 + lane / 8;
            value[p][i] = *(const uint4 *)(stage + p * Layout::c_panel_bytes + r * kRowBytes +
                                           (unit ^ r % 8) * 16);
        }
#pragma unroll
    for (int p = 0; p < COUNT; ++p)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int r = row + warp * 16 + i * 4 + lane / 8, at = column + 64 * p + 8 * unit;
            if (r < out.m && at < out.n)
                *(uint4 *)(out.c + (i64)r * out.n + at) = value[p][i];
        }
}

// COUNT panels of 64 rows, whose first element in C is (row, column); `value` are their sums. All
// threads of the warpgroup. TMA is asked by the same one each time, which therefore can wait for
// it.
template <int COUNT>
KKT_DEVICE void write_panels(const Output &out, int row, int column, const float *value, u8 *stage,
                             const Thread &t) {
    if (P::bulk_store) {
        if (t.warp == 0 && elected())
            tile_store_wait_read();
        group_barrier(t.group);
    } else {
        __syncwarp();
    }
#pragma unroll
    for (int p = 0; p < COUNT; ++p)
        stage_panel(shared_address(stage) + (u32)(p * Layout::c_panel_bytes), value + 32 * p,
                    t.warp, t.lane);
    if (P::bulk_store) {
        async_proxy_fence();
        group_barrier(t.group);
        if (t.warp == 0 && elected())
#pragma unroll
            for (int p = 0; p < COUNT; ++p)
                if (row < out.m && column + 64 * p < out.n)
                    tile_store(*out.map, column + 64 * p, row, stage + p * Layout::c_panel_bytes);
    } else {
        __syncwarp();
        if (P::c_units)
            copy_units<COUNT>(out, row, column, stage, t.warp, t.lane);
        else {
            copy_rows<COUNT, 0>(out, row, column, stage, t.warp, t.lane);
            copy_rows<COUNT, 1>(out, row, column, stage, t.warp, t.lane);
        }
    }
}

// COLUMNS columns of a warpgroup's rows, the first at (row, column) of C.
template <int COLUMNS>
KKT_DEVICE void write_rows(const Output &out, int row, int column, const float *value, u8 *stage,
                           const Thread &t) {
    constexpr int panels = COLUMNS / 64;
    constexpr int count = panels < P::store_panels ? panels : P::store_panels;
    static_assert(panels % count == 0, "staged in equal parts");
#pragma unroll
    for (int p = 0; p < panels; p += count)
        write_panels<count>(out, row, column + 64 * p, value + 32 * p, stage, t);
}
