// The state warpgroup of a block of fewer than 64 columns, which are not enough for the rows of a
// product. Tokens lie along those here and the columns of V along the other side, so that fewer of
// them take less time; and a factor of a token is one of a row, two a thread. What one product
// gives goes to the next as a right operand, through shared memory (->); S stays in accumulators
// besides:
//
//     product          of                    while it runs                then
//     A = K S          CHUNK x BLOCK_DV      S decays                     X ->
//     V' = T X         CHUNK x BLOCK_DV                                   rest V' ->
//     S += K^T V'      DK x BLOCK_DV         V' handed on, V of the       S ->, and handed on
//                                            next chunk                   with that
//
// Tiles of S, X and V' have a row a column of V. V' goes where o of two chunks before was.
#pragma once

#include "device/matrix_move.cuh"
#include "device/tensor_map.cuh"
#include "device/types.cuh"
#include "device/warp_roles.cuh"
#include "device/wgmma_registers.cuh"
#include "gdn/ws_layout.cuh"
#include "gdn/ws_scores.cuh"
#include "gdn/ws_work.cuh"

#if KKT_BLOCK_DV < 64

static_assert(P::outputs > 0, "S and V' are in shared memory for the output warpgroups");
static_assert(!P::substitute && !P::narrow, "T's rows whole, and as they come");

using ColumnAccumulator = Accumulator<P::block_dv>;
using ColumnOperand = RowOperand<P::block_dv>; // as rounded pairs: no product's operand
using StageRing = Ring<P::stages>;
using OutRing = Ring<2>;

struct StateGroup {
    static constexpr int parts = P::dk / 64;
    ColumnAccumulator s[parts]; // 64 of DK rows each
    ColumnAccumulator a;        // A, then V'
    ColumnOperand v;            // V of the next chunk
    int warp, lane;
    int first; // of the warp's sixteen tokens; past the chunk it takes the last ones, for nothing
};

// Factors of this thread's two tokens, eight apart.
struct TokenFactors {
    float factor[2];

    KKT_DEVICE TokenFactors load(const StateGroup &g, const float *table) {
        const float *at = table + GateLayout::at(g.first + fragment_row(g.lane));
        return {{at[0], at[2]}}; // the lists have two columns of eight
    }
};

KKT_DEVICE void sync_state() {
    asm volatile("bar.sync 4, %0;" ::"n"(P::warpgroup) : "memory");
}

// ---- the state from and to memory ----

KKT_DEVICE i64 state_offset(const StateGroup &g, const Unit &u) {
    return u.state + (i64)(g.warp * 16 + fragment_row(g.lane)) * P::dv + fragment_column(g.lane);
}

KKT_DEVICE void load_state(StateGroup &g, const Problem &p, const Unit &u) {
    const float *h = p.h0 + state_offset(g, u);
#pragma unroll
    for (int part = 0; part < StateGroup::parts; ++part)
#pragma unroll
        for (int n = 0; n < P::block_dv / 8; ++n)
#pragma unroll
            for (int e = 0; e < 4; ++e)
                g.s[part].value[4 * n + e] =
                    p.h0 ? __ldg(h + (64 * part + e / 2 * 8) * P::dv + 8 * n + e % 2) : 0.0f;
}

KKT_DEVICE void store_state(const StateGroup &g, const Problem &p, const Unit &u) {
    float *h = p.ht + state_offset(g, u);
    if (p.ht)
#pragma unroll
        for (int part = 0; part < StateGroup::parts; ++part)
#pragma unroll
            for (int n = 0; n < P::block_dv / 8; ++n)
#pragma unroll
                for (int e = 0; e < 4; ++e)
                    h[(64 * part + e / 2 * 8) * P::dv + 8 * n + e % 2] = g.s[part].value[4 * n + e];
}

// ---- to shared memory ----

// Sixteen rows from `first` on of a result become columns of `tile`.
template <typename Tile>
KKT_DEVICE void store_turned(u8 *tile, const ColumnOperand &a, int first, int lane) {
#pragma unroll
    for (int t = 0; t < P::block_dv / 16; ++t) {
        const OperandTile words = {
            {a.word[4 * t], a.word[4 * t + 1], a.word[4 * t + 2], a.word[4 * t + 3]}};
        store_matrices<true>(shared_address(tile + Tile::at(16 * t + lane / 16 * 8 + lane % 8,
                                                            first / 8 + lane / 8 % 2)),
                             words);
    }
}

// Of a chunk; warps past its end have nothing to write.
KKT_DEVICE void store_tokens(const StateGroup &g, u8 *tile, const ColumnOperand &a) {
    if (P::chunk == 64 || g.warp * 16 < P::chunk)
        store_turned<TurnedTile>(tile, a, g.first, g.lane);
}

// S as the next chunk finds it, for this warpgroup and for the output's.
KKT_DEVICE void hand_on_state(const StateGroup &g, const Shared &shared, const OutRing &out) {
    mbarrier_wait(shared.barrier(Layout::s_empty + out.slot), out.parity ^ 1);
#pragma unroll
    for (int part = 0; part < StateGroup::parts; ++part) {
        ColumnOperand words;
        pack_operand<P::bf16>(words, g.s[part]);
        store_turned<StateTile>(shared.s(out.slot), words, 64 * part + 16 * g.warp, g.lane);
    }
    async_proxy_fence();
    mbarrier_arrive(shared.barrier(Layout::s_full + out.slot));
    sync_state();
}

// ---- steps of the chain ----

KKT_DEVICE void fetch_values(StateGroup &g, const Shared &shared, int slot) {
    const u8 *tile = shared.stage(slot) + Layout::v_at;
#pragma unroll
    for (int t = 0; t < P::block_dv / 16; ++t) {
        const OperandTile v = load_operand_tile(shared_address(
            tile + ValueTile::at(g.first + quarter_row(g.lane), 2 * t + quarter_unit(g.lane))));
#pragma unroll
        for (int i = 0; i < 4; ++i)
            g.v.word[4 * t + i] = v.quarter[i];
    }
}

KKT_DEVICE void decay_state(StateGroup &g, float total) {
    if (P::gated)
#pragma unroll
        for (int part = 0; part < StateGroup::parts; ++part)
#pragma unroll
            for (int i = 0; i < P::block_dv / 2; ++i)
                g.s[part].value[i] *= total;
}

// X, in place of V.
KKT_DEVICE void form_x(StateGroup &g, const TokenFactors &decay, const TokenFactors &beta) {
#pragma unroll
    for (int i = 0; i < P::block_dv / 4; ++i) {
        float2 v = unpack_pair<P::bf16>(g.v.word[i]);
        if (!P::t_beta) {
            v.x *= beta.factor[i % 2];
            v.y *= beta.factor[i % 2];
        }
        g.v.word[i] = pack_pair<P::bf16>(fmaf(-decay.factor[i % 2], g.a.value[2 * i], v.x),
                                         fmaf(-decay.factor[i % 2], g.a.value[2 * i + 1], v.y));
    }
}

// V' from S: A, X and T X, each when the one before is in shared memory.
KKT_DEVICE void solve_values(StateGroup &g, const Shared &shared, const StageRing &stages,
                             const OutRing &out) {
    const u32 stage = shared_address(shared.stage(stages.slot));
    const float *tables = shared.gates(stages.slot);
    wgmma_begin();
    wgmma_product_shared<P::bf16>(g.a, KeyColumns::at(stage + Layout::k_at),
                                  StateColumns::at(shared_address(shared.s(out.slot))));
    const TokenFactors decay = TokenFactors::load(g, tables + GateLayout::decay_at);
    TokenFactors beta = {};
    if (!P::t_beta)
        beta = TokenFactors::load(g, tables + GateLayout::beta_at);
    decay_state(g, tables[GateLayout::total_at]);
    wgmma_wait<0>();
    hold(g.a);
    form_x(g, decay, beta);
    store_tokens(g, shared.x(), g.v);
    async_proxy_fence();
    if (P::fused)
        mbarrier_wait(shared.barrier(Layout::solved + stages.slot), stages.parity);
    sync_state();
    wgmma_begin();
    wgmma_product_shared<P::bf16>(g.a, SquareColumns::at(stage + Layout::t_at),
                                  TurnedColumns::at(shared_address(shared.x())));
}

// S += K^T (rest V').
KKT_DEVICE void begin_update(StateGroup &g, const Shared &shared, u32 stage, const float *tables) {
    const TokenFactors rest = TokenFactors::load(g, tables + GateLayout::rest_at);
    ColumnOperand scaled;
    wgmma_wait<0>();
    hold(g.a);
#pragma unroll
    for (int i = 0; i < P::block_dv / 4; ++i)
        scaled.word[i] = pack_pair<P::bf16>(g.a.value[2 * i] * rest.factor[i % 2],
                                            g.a.value[2 * i + 1] * rest.factor[i % 2]);
    store_tokens(g, shared.scaled(), scaled);
    async_proxy_fence();
    sync_state();
    const KeyRows k = KeyRows::at(stage + Layout::k_at);
    const TurnedColumns values = TurnedColumns::at(shared_address(shared.scaled()));
#pragma unroll
    for (int part = 0; part < StateGroup::parts; ++part)
        hold(g.s[part]);
    wgmma_begin();
#pragma unroll
    for (int step = 0; step < P::chunk / 16; ++step)
#pragma unroll
        for (int part = 0; part < StateGroup::parts; ++part)
            wgmma_step_shared<P::bf16, P::block_dv, true>(
                g.s[part].value, k.step(step) + (u64)(part * KeyTile::panel_bytes >> 4),
                values.step(step), true);
    wgmma_commit();
}

// A chunk whose stage is full, whose V is in registers and whose S in shared memory.
KKT_DEVICE void state_chunk(StateGroup &g, const Shared &shared, StageRing &stages, OutRing &out,
                            bool last) {
    const u32 stage = shared_address(shared.stage(stages.slot));
    const float *tables = shared.gates(stages.slot);
    solve_values(g, shared, stages, out);
    begin_update(g, shared, stage, tables);

    ColumnOperand plain;
    pack_operand<P::bf16>(plain, g.a);
    u64 *read = shared.barrier(Layout::empty + stages.slot);
    stages.advance();
    mbarrier_wait(shared.barrier(Layout::o_empty + out.slot), out.parity ^ 1);
    store_tokens(g, shared.value(out.slot), plain);
    mbarrier_arrive(shared.barrier(Layout::value_full + out.slot));
    out.advance();
    if (!last) {
        mbarrier_wait(shared.barrier(Layout::full + stages.slot), stages.parity);
        fetch_values(g, shared, stages.slot);
    }
    wgmma_wait<0>();
#pragma unroll
    for (int part = 0; part < StateGroup::parts; ++part)
        hold(g.s[part]);
    mbarrier_arrive(read);
    if (!last)
        hand_on_state(g, shared, out);
}

KKT_DEVICE void state_role(const Problem &p, const Shared &shared, int, int warp, int lane) {
    StateGroup g;
    g.warp = warp;
    g.lane = lane;
    g.first = min(warp * 16, P::chunk - 16);
    StageRing stages = StageRing::start();
    OutRing out = OutRing::start();
#pragma unroll 1
    for (int index = blockIdx.x; index < p.units; index += gridDim.x) {
        const Unit u = find_unit(p, index);
        load_state(g, p, u);
        if (u.chunks > 0) {
            mbarrier_wait(shared.barrier(Layout::full + stages.slot), stages.parity);
            fetch_values(g, shared, stages.slot);
            hand_on_state(g, shared, out);
#pragma unroll 1
            for (int chunk = 0; chunk < u.chunks; ++chunk)
                state_chunk(g, shared, stages, out, chunk + 1 == u.chunks);
        }
        store_state(g, p, u);
    }
}

#endif
