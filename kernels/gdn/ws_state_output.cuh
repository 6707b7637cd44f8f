// State warpgroups that compute O as well (outputs 0), from the scores of the score warpgroup. A
// chunk in the order of instructions; products run in this order too:
//
//     product          while it runs                            then
//     A = S K          O of the chunk before handed on
//     O = S Q          S decays, (A done) X
//     V' = X T         (O done) O decays                        (V' done) rest V'
//     S += V' K        V' rounded
//     O += V' P        V of the next chunk, (S done) S rounded
//
// What is handed on first in a unit of work is no chunk's. Waits that look redundant tell the
// compiler that an accumulator of the chunk before is free; without them it waits for all products.
#pragma once

#include "device/types.cuh"
#include "gdn/ws_state.cuh"

#if KKT_OUTPUTS == 0

using ScoreRing = Ring<2>;
using StoreRing = Ring<2>;
using StageRing = Ring<P::stages>;

// The tile of the store warp for this chunk's O.
struct StoreTile {
    u32 tile;
    u64 *full;
};

KKT_DEVICE StoreTile take_store_tile(const StateGroup &g, const Shared &shared, StoreRing &ring) {
    const int barrier = 2 * g.group + ring.slot;
    const StoreTile out = {shared_address(shared.o(g.group, ring.slot)),
                           shared.barrier(Layout::o_full + barrier)};
    mbarrier_wait(shared.barrier(Layout::o_empty + barrier), ring.parity ^ 1);
    ring.advance();
    return out;
}

// Columns 16 t .. of O, rounded.
KKT_DEVICE void write_o(const StateGroup &g, const StoreTile &out, int t) {
    OperandTile words;
#pragma unroll
    for (int i = 0; i < 4; ++i)
        words.quarter[i] =
            pack_pair<P::bf16>(g.o.value[8 * t + 2 * i], g.o.value[8 * t + 2 * i + 1]);
    store_matrices<true>(turned_tile(g, out.tile, t), words);
}

KKT_DEVICE void write_o(const StateGroup &g, const StoreTile &out) {
#pragma unroll
    for (int t = 0; t < P::chunk / 16; ++t)
        write_o(g, out, t);
    mbarrier_arrive(out.full);
}

// A and O = S Q, then V' from A.
KKT_DEVICE void multiply(StateGroup &g, const Shared &shared, const StageRing &stages,
                         const StoreTile &out) {
    const u32 stage = shared_address(shared.stage(stages.slot));
    const float *tables = shared.gates(stages.slot);
    HalfColumns decay;
    Columns factors;
    hold(g.s_pairs);
    wgmma_begin();
    wgmma_product<P::bf16>(g.a, g.s_pairs, KeyColumns::at(stage + Layout::k_at), false);
    wgmma_wait<1>();
    hold(g.o);
    write_o(g, out);
    wgmma_begin();
    wgmma_product<P::bf16>(g.o, g.s_pairs, KeyColumns::at(stage + Layout::q_at), false);
    wgmma_wait<2>();
    hold(g.s);
    decay_state(g);
    hold(g.s);
    load_columns(decay, tables + GateLayout::decay_at, 0, g.lane);

    wgmma_wait<1>();
    hold(g.a);
    form_x(g, tables, decay);
    hold(g.v);
    hold(g.a);
    begin_values(g, shared, stages);
    load_columns(factors, tables + GateLayout::out_at, 0, g.lane);
    wgmma_wait<1>();
    hold(g.o);
    hold(g.s_pairs);
    scale_columns(g.o, factors);
    hold(g.o);
}

// The update of the state by V'.
KKT_DEVICE void update(StateGroup &g, const Shared &shared, const StageRing &stages) {
    const u32 stage = shared_address(shared.stage(stages.slot));
    finish_values(g, shared, stages);
    wgmma_begin();
    wgmma_product<P::bf16>(g.s, g.scaled, KeyRows::at(stage + Layout::k_at), true);
    wgmma_wait<1>();
    hold(g.a);
    round_values(g);
    hold(g.plain);
}

// A chunk whose stage is full and whose V is in registers.
KKT_DEVICE void state_chunk(StateGroup &g, const Shared &shared, StageRing &stages,
                            ScoreRing &scores, StoreRing &stores, bool last) {
    multiply(g, shared, stages, take_store_tile(g, shared, stores));
    update(g, shared, stages);
    mbarrier_wait(shared.barrier(Layout::scores_full + scores.slot), scores.parity);
    const u32 p = shared_address(shared.scores(scores.slot));
    wgmma_begin();
    multiply_triangle(g.o, g.plain, SquareColumns::at(p), true);

    u64 *read = shared.barrier(Layout::empty + stages.slot);
    stages.advance();
    if (!last) {
        mbarrier_wait(shared.barrier(Layout::full + stages.slot), stages.parity);
        fetch_values(g, shared, stages.slot);
    }
    wgmma_wait<1>();
    hold(g.s);
    mbarrier_arrive(read);
    pack_operand<P::bf16>(g.s_pairs, g.s);
    hold(g.s_pairs);
    wgmma_wait<0>();
    hold(g.o);
    mbarrier_arrive(shared.barrier(Layout::scores_empty + scores.slot));
    scores.advance();
}

KKT_DEVICE void state_role(const Problem &p, const Shared &shared, int group, int warp, int lane) {
    StateGroup g = StateGroup::make(group, warp, lane);
    StageRing stages = StageRing::start();
    ScoreRing scores = ScoreRing::start();
    StoreRing stores = StoreRing::start();
#pragma unroll
    for (int i = 0; i < P::chunk / 2; ++i)
        g.o.value[i] = 0.0f;
#pragma unroll 1
    for (int index = blockIdx.x; index < p.units; index += gridDim.x) {
        const Unit u = find_unit(p, index);
        load_state(g, p, u);
        if (u.chunks > 0) {
            mbarrier_wait(shared.barrier(Layout::full + stages.slot), stages.parity);
            fetch_values(g, shared, stages.slot);
#pragma unroll 1
            for (int chunk = 0; chunk < u.chunks; ++chunk)
                state_chunk(g, shared, stages, scores, stores, chunk + 1 == u.chunks);
            write_o(g, take_store_tile(g, shared, stores));
        }
        store_state(g, p, u);
    }
}

#endif
