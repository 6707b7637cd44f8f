// The pass of the context-parallel gdn_fwd_t over a segment: no more than the state, so without q
// and o. What the segment adds is the recurrence from 0; M is the same from the identity with V =
// 0. A block has a segment, a value head and 128 of those DV + DK columns. Warpgroups:
//
//     state     2   64 columns each, transposed as in ws_state.cuh; past the last column what the
//                   other one has, for nothing
//     service   1   warp 0 loads, 3: gates
//
//     product          while it runs                           then
//     A = S K          S decays                                X
//     V' = X T                                                 rest V'
//     S += V' K        V of the next chunk                     S rounded
//
// The chunks of such a segment are all whole. Barriers as in ws_block.cuh: `full` of a stage ends
// with its loads and the gate warp, `empty` with the state's threads.
#pragma once

#include "device/dependent_launch.cuh"
#include "device/tensor_map.cuh"
#include "device/types.cuh"
#include "device/warp_roles.cuh"
#include "device/wgmma_registers.cuh"
#include "gdn/cp_work.cuh"
#include "gdn/ws_layout.cuh"
#include "gdn/ws_service.cuh"
#include "gdn/ws_state.cuh"

// Shared memory:
//
//     stage x PASS_STAGES    K        CHUNK x DK       as in ws_layout.cuh
//                            T        CHUNK x CHUNK
//                            V        CHUNK x 64 for each state warpgroup that has some
//     gates x PASS_STAGES    see GateLayout
//     barriers
struct PassLayout {
    static constexpr int k_at = 0;
    static constexpr int t_at = KeyTile::bytes;
    static constexpr int v_at = t_at + round_up(SquareTile::bytes, 1024);
    static constexpr int stage_bytes = v_at + C::pass_groups * ValueTile::bytes;
    static constexpr int gates_at = C::pass_stages * stage_bytes;
    static constexpr int barriers_at = gates_at + C::pass_stages * Layout::gate_bytes;
    static constexpr int full = 0;
    static constexpr int empty = C::pass_stages;
    static constexpr int bytes = barriers_at + round_up(8 * 2 * C::pass_stages, 16);
};

#ifdef KKT_PASS_BYTES
static_assert(PassLayout::bytes == KKT_PASS_BYTES, "the host's footprint and this layout differ");
#endif

struct PassShared {
    u8 *base;

    __device__ __forceinline__ u8 *stage(int slot) const {
        return base + slot * PassLayout::stage_bytes;
    }
    __device__ __forceinline__ float *gates(int slot) const {
        return (float *)(base + PassLayout::gates_at + slot * Layout::gate_bytes);
    }
    __device__ __forceinline__ u64 *barrier(int index) const {
        return (u64 *)(base + PassLayout::barriers_at) + index;
    }
};

using PassRing = Ring<C::pass_stages>;

// A block's unit of work.
struct PassUnit {
    Unit unit;
    int sequence, segment;
    int first; // of its warpgroups among those of the segment: DV / 64 of V, then DK / 64 of M
};

// Neighbours share a segment and a key head, whose tiles L2 then serves.
KKT_DEVICE PassUnit find_pass_unit(const Problem &p, int index) {
    const int head = index / C::pass_blocks;
    const int place = head / p.heads_v;
    PassUnit w;
    w.sequence = place / C::inner;
    w.segment = 1 + place % C::inner;
    w.first = index % C::pass_blocks * C::pass_groups;
    w.unit = find_segment(p, w.sequence, w.segment, head % p.heads_v);
    return w;
}

// Warpgroups of a block that have columns of V.
KKT_DEVICE int value_groups(const PassUnit &w) {
    return max(0, min(C::pass_groups, P::dv / 64 - w.first));
}

// ---- service ----

// All of a chunk but T.
KKT_DEVICE void load_pass_inputs(const Maps &maps, const PassShared &shared, const PassUnit &w,
                                 int chunk, int slot) {
    u64 *full = shared.barrier(PassLayout::full + slot);
    u8 *stage = shared.stage(slot);
    const int row = (int)w.unit.first + chunk * P::chunk;
    const int values = value_groups(w);
    mbarrier_expect(full, KeyTile::bytes + SquareTile::bytes + values * ValueTile::bytes);
#pragma unroll
    for (int panel = 0; panel < KeyTile::panels; ++panel)
#pragma unroll
        for (int token = 0; token < P::chunk; token += P::box_rows)
            tile_load(stage + PassLayout::k_at + panel * KeyTile::panel_bytes +
                          P::place(token) * KeyTile::row_bytes,
                      maps.k, w.unit.head_k * P::dk + panel * 64, row + token, full);
#pragma unroll
    for (int group = 0; group < C::pass_groups; ++group)
        if (group < values)
            tile_load(stage + PassLayout::v_at + group * ValueTile::bytes, maps.v,
                      w.unit.head_v * P::dv + (w.first + group) * 64, row, full);
}

// One thread. T alone comes from the kernel before.
KKT_DEVICE void load_pass(const Maps &maps, const PassShared &shared, const PassUnit &w) {
    const int chunks = w.unit.chunks;
    const int ahead = chunks < C::pass_stages ? chunks : C::pass_stages;
    for (int chunk = 0; chunk < ahead; ++chunk)
        load_pass_inputs(maps, shared, w, chunk, chunk);
    wait_for_kernels_before();
    PassRing ring = PassRing::start();
#pragma unroll 1
    for (int chunk = 0; chunk < chunks; ++chunk) {
        if (chunk >= ahead) {
            mbarrier_wait(shared.barrier(PassLayout::empty + ring.slot), ring.parity ^ 1);
            load_pass_inputs(maps, shared, w, chunk, ring.slot);
        }
#pragma unroll
        for (int token = 0; token < P::chunk; token += P::box_rows)
            tile_load(shared.stage(ring.slot) + PassLayout::t_at +
                          P::place(token) * SquareTile::row_bytes,
                      maps.t, w.unit.head_v * P::chunk,
                      (int)w.unit.first + chunk * P::chunk + token,
                      shared.barrier(PassLayout::full + ring.slot));
        ring.advance();
    }
}

// A warp.
KKT_DEVICE void pass_gates(const Problem &p, const PassShared &shared, const PassUnit &w,
                           int lane) {
    i64 at = (w.unit.first + lane * GateTokens::each) * p.heads_v + w.unit.head_v;
    GateTokens next;
    fetch_gates(p, at, w.unit.rows(0), lane, next);
    PassRing ring = PassRing::start();
#pragma unroll 1
    for (int chunk = 0; chunk < w.unit.chunks; ++chunk) {
        GateTokens t = next;
        const float last = sum_gates(t, lane);
        at += P::chunk * p.heads_v;
        if (chunk + 1 < w.unit.chunks)
            fetch_gates(p, at, P::chunk, lane, next);
        mbarrier_wait(shared.barrier(PassLayout::empty + ring.slot), ring.parity ^ 1);
        write_gates(shared.gates(ring.slot), t, last, p.scale, lane);
        mbarrier_arrive(shared.barrier(PassLayout::full + ring.slot));
        ring.advance();
    }
}

// ---- state ----

// V^T of a chunk, or nothing of M's, and the decay over it.
template <bool MATRIX>
KKT_DEVICE void fetch_pass_values(StateGroup &g, const PassShared &shared, int slot) {
    if (!MATRIX) {
        const u32 tile = shared_address(shared.stage(slot)) +
                         (u32)(PassLayout::v_at + g.group * ValueTile::bytes);
#pragma unroll
        for (int t = 0; t < P::chunk / 16; ++t) {
            const OperandTile v = load_transposed_tile(turned_tile(g, tile, t));
#pragma unroll
            for (int i = 0; i < 4; ++i)
                g.v.word[4 * t + i] = v.quarter[i];
        }
    }
    g.total = shared.gates(slot)[GateLayout::total_at];
}

// A chunk whose stage is full and whose V is in registers.
template <bool MATRIX>
KKT_DEVICE void pass_chunk(StateGroup &g, const PassShared &shared, PassRing &ring, bool last) {
    const u32 stage = shared_address(shared.stage(ring.slot));
    const float *tables = shared.gates(ring.slot);
    hold(g.s_pairs);
    wgmma_begin();
    wgmma_product<P::bf16>(g.a, g.s_pairs, KeyColumns::at(stage + PassLayout::k_at), false);
    decay_state(g);
    HalfColumns columns;
    load_columns(columns, tables + GateLayout::decay_at, 0, g.lane);
    if (MATRIX)
#pragma unroll
        for (int i = 0; i < P::chunk / 4; ++i)
            g.v.word[i] = 0;
    wgmma_wait<0>();
    hold(g.a);
    form_x(g, tables, columns);
    hold(g.v);
    hold(g.a);
    wgmma_begin();
    multiply_triangle(g.a, g.v, SquareColumns::at(stage + PassLayout::t_at), false);
    load_columns(columns, tables + GateLayout::rest_at, 0, g.lane);
    wgmma_wait<0>();
    hold(g.a);
    pack_scaled<0>(g, columns);
    load_columns(columns, tables + GateLayout::rest_at, 1, g.lane);
    pack_scaled<P::chunk / 8>(g, columns);
    hold(g.scaled);
    wgmma_begin();
    wgmma_product<P::bf16>(g.s, g.scaled, KeyRows::at(stage + PassLayout::k_at), true);
    u64 *read = shared.barrier(PassLayout::empty + ring.slot);
    ring.advance();
    if (!last) {
        mbarrier_wait(shared.barrier(PassLayout::full + ring.slot), ring.parity);
        fetch_pass_values<MATRIX>(g, shared, ring.slot);
    }
    wgmma_wait<0>();
    hold(g.s);
    mbarrier_arrive(read);
    pack_operand<P::bf16>(g.s_pairs, g.s);
}

template <bool MATRIX>
KKT_DEVICE void pass_chunks(StateGroup &g, const PassShared &shared, int chunks) {
    PassRing ring = PassRing::start();
    if (chunks == 0)
        return;
    mbarrier_wait(shared.barrier(PassLayout::full), 0);
    fetch_pass_values<MATRIX>(g, shared, 0);
#pragma unroll 1
    for (int chunk = 0; chunk < chunks; ++chunk)
        pass_chunk<MATRIX>(g, shared, ring, chunk + 1 == chunks);
}

// The identity's columns from `column` on, transposed; none: 0.
KKT_DEVICE void begin_state(StateGroup &g, bool matrix, int column) {
    const int row = column + g.warp * 16 + fragment_row(g.lane);
#pragma unroll
    for (int n = 0; n < P::dk / 8; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            const bool one = row + e / 2 * 8 == 8 * n + fragment_column(g.lane) + e % 2;
            g.s.value[4 * n + e] = matrix && one ? 1.0f : 0.0f;
        }
    pack_operand<P::bf16>(g.s_pairs, g.s);
}

// To 64 columns of a matrix of DK rows, transposed back.
KKT_DEVICE void store_columns(const StateGroup &g, float *matrix, int columns) {
    float *out = matrix + g.warp * 16 + fragment_row(g.lane) + fragment_column(g.lane) * columns;
#pragma unroll
    for (int n = 0; n < P::dk / 8; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e)
            out[(8 * n + e % 2) * columns + e / 2 * 8] = g.s.value[4 * n + e];
}

KKT_DEVICE void pass_state(const Problem &p, const Passed &passed, const PassShared &shared,
                           const PassUnit &w, int group, int warp, int lane) {
    const bool idle = w.first + group >= C::groups;
    const int own = w.first + (idle ? 0 : group);
    const bool matrix = own >= P::dv / 64;
    const int column = 64 * (matrix ? own - P::dv / 64 : own);
    StateGroup g = StateGroup::make(idle ? 0 : group, warp, lane);
    begin_state(g, matrix, column);
    if (matrix)
        pass_chunks<true>(g, shared, w.unit.chunks);
    else
        pass_chunks<false>(g, shared, w.unit.chunks);
    if (idle)
        return;
    const int head = w.unit.head_v;
    if (matrix)
        store_columns(
            g, passed.steps + step_offset(w.sequence, w.segment, head, p.heads_v) + column, P::dk);
    else
        store_columns(
            g, passed.starts + start_offset(w.sequence, w.segment + 1, head, p.heads_v) + column,
            P::dv);
}

// What every thread of a block does.
KKT_DEVICE void run_pass(const Problem &p, const Maps &maps, const Passed &passed, int index,
                         u8 *smem) {
    const PassShared shared = {smem};
    const PassUnit w = find_pass_unit(p, index);
    const int warpgroup = threadIdx.x / P::warpgroup;
    const int warp = threadIdx.x / kWarp % 4;
    const int lane = threadIdx.x % kWarp;
    if (threadIdx.x == 0)
        for (int n = 0; n < C::pass_stages; ++n) {
            mbarrier_init(shared.barrier(PassLayout::full + n), 1 + kWarp);
            mbarrier_init(shared.barrier(PassLayout::empty + n), C::pass_groups * P::warpgroup);
        }
    __syncthreads();
    if (warpgroup < C::pass_groups) {
        registers_set<P::launch_registers, C::pass_state_registers>();
        pass_state(p, passed, shared, w, warpgroup, warp, lane);
    } else {
        registers_set<P::launch_registers, C::pass_service_registers>();
        if (warp == 0 && lane == 0)
            load_pass(maps, shared, w);
        else if (warp == 3)
            pass_gates(p, shared, w, lane);
    }
}
