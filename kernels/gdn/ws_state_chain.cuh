// State warpgroups that hand S and V' to output warpgroups (outputs 1 or 2) and keep to the chain:
//
//     product          while it runs                           then
//     A = S K          S handed on, S decays                   X
//     V' = X T                                                 rest V'
//     S += V' K        V' handed on, V of the next chunk       S rounded
//
// V' goes where o of two chunks before was.
#pragma once

#include "device/types.cuh"
#include "gdn/ws_state.cuh"

#if KKT_OUTPUTS > 0 && KKT_BLOCK_DV >= 64

using StageRing = Ring<P::stages>;
using OutRing = Ring<2>;

// A left operand to a tile of as many columns, where `rows` is the address of this lane's unit of
// the first sixteen: an exclusive-or leads from one sixteen of a panel to the next.
template <typename Tile, int COLUMNS>
KKT_DEVICE void store_operand(u32 rows, const RowOperand<COLUMNS> &a) {
    constexpr int panel_steps = Tile::panel / 2;
#pragma unroll
    for (int s = 0; s < COLUMNS / 16; ++s) {
        const OperandTile words = {
            {a.word[4 * s], a.word[4 * s + 1], a.word[4 * s + 2], a.word[4 * s + 3]}};
        const u32 panel = (u32)(s / panel_steps * Tile::panel_bytes);
        store_matrices<false>((rows ^ (u32)(s % panel_steps * 32)) + panel, words);
    }
}

// The address that store_operand takes, for rows from `first` on.
template <typename Tile> KKT_DEVICE u32 operand_rows(const u8 *tile, int first, int lane) {
    return shared_address(tile + Tile::at(first + quarter_row(lane), quarter_unit(lane)));
}

// A, and S handed on.
KKT_DEVICE void multiply_keys(StateGroup &g, const Shared &shared, u32 stage, const OutRing &out,
                              int first) {
    const u32 rows = operand_rows<StateTile>(shared.s(out.slot), first, g.lane);
    mbarrier_wait(shared.barrier(Layout::s_empty + out.slot), out.parity ^ 1);
    wgmma_begin();
    wgmma_product<P::bf16>(g.a, g.s_pairs, KeyColumns::at(stage + Layout::k_at), false);
    store_operand<StateTile>(rows, g.s_pairs);
    mbarrier_arrive(shared.barrier(Layout::s_full + out.slot));
}

// V' from A.
KKT_DEVICE void solve_values(StateGroup &g, const Shared &shared, const StageRing &stages) {
    const float *tables = shared.gates(stages.slot);
    HalfColumns decay;
    load_columns(decay, tables + GateLayout::decay_at, 0, g.lane);
    wgmma_wait<0>();
    hold(g.a);
    form_x(g, tables, decay);
    hold(g.v);
    hold(g.a);
    begin_values(g, shared, stages);
    finish_values(g, shared, stages);
}

// A chunk whose stage is full and whose V is in registers. `first`: of this warp's rows.
KKT_DEVICE void state_chunk(StateGroup &g, const Shared &shared, StageRing &stages, OutRing &out,
                            int first, bool last) {
    const u32 stage = shared_address(shared.stage(stages.slot));
    hold(g.s_pairs);
    multiply_keys(g, shared, stage, out, first);
    decay_state(g);
    solve_values(g, shared, stages);

    wgmma_begin();
    wgmma_product<P::bf16>(g.s, g.scaled, KeyRows::at(stage + Layout::k_at), true);
    round_values(g);
    u64 *read = shared.barrier(Layout::empty + stages.slot);
    stages.advance();
    mbarrier_wait(shared.barrier(Layout::o_empty + out.slot), out.parity ^ 1);
    const u32 rows = operand_rows<TurnedTile>(shared.value(out.slot), first, g.lane);
    store_operand<TurnedTile>(rows, g.plain);
    mbarrier_arrive(shared.barrier(Layout::value_full + out.slot));
    out.advance();
    if (!last) {
        mbarrier_wait(shared.barrier(Layout::full + stages.slot), stages.parity);
        fetch_values(g, shared, stages.slot);
    }
    wgmma_wait<0>();
    hold(g.s);
    mbarrier_arrive(read);
    pack_operand<P::bf16>(g.s_pairs, g.s);
}

KKT_DEVICE void state_role(const Problem &p, const Shared &shared, int group, int warp, int lane) {
    StateGroup g = StateGroup::make(group, warp, lane);
    StageRing stages = StageRing::start();
    OutRing out = OutRing::start();
    const int first = group * 64 + warp * 16;
#pragma unroll 1
    for (int index = blockIdx.x; index < p.units; index += gridDim.x) {
        const Unit u = find_unit(p, index);
        load_state(g, p, u);
        if (u.chunks > 0) {
            mbarrier_wait(shared.barrier(Layout::full + stages.slot), stages.parity);
            fetch_values(g, shared, stages.slot);
#pragma unroll 1
            for (int chunk = 0; chunk < u.chunks; ++chunk)
                state_chunk(g, shared, stages, out, first, chunk + 1 == u.chunks);
        }
        store_state(g, p, u);
    }
}

#endif
