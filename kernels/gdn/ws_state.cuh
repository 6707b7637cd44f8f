// The state warpgroups of the warp-specialized gdn_fwd_t. Each keeps S^T of 64 columns of V, fp32,
// in its accumulators for a whole sequence, and everything on the serial chain from one chunk to
// the next stays in its registers: what one product gives is packed in place into the left operand
// of the next. All is transposed, so that K, Q, T and P, shared by all columns of V, are the right
// operands in shared memory:
//
//     A  = S^T K^T                    64 x CHUNK, summed over DK
//     X  = beta V^T - beta 2^G A      by columns (tokens); V^T and beta as they come from memory
//     V' = X T^T                      64 x CHUNK, summed over CHUNK as far as T is not 0
//     S^T = 2^G_last S^T + (2^(G_last - G) V') K         64 x DK, summed over CHUNK
//
// and, with outputs 0, O^T = scale 2^G (S^T Q^T) + V' P^T between the lines.
#pragma once

#include "device/matrix_move.cuh"
#include "device/types.cuh"
#include "device/warp_roles.cuh"
#include "device/wgmma_registers.cuh"
#include "gdn/ws_layout.cuh"
#include "gdn/ws_scores.cuh"
#include "gdn/ws_work.cuh"

#if KKT_BLOCK_DV >= 64

using StateAccumulator = Accumulator<P::dk>;

// What a state warpgroup has in registers, and its place in the block.
struct StateGroup {
    StateAccumulator s;
    KeyOperand s_pairs;                  // s, rounded
    TokenAccumulator a;                  // A, then V' but for
    Accumulator<16> part[P::chunk / 16]; // V' by sixteen tokens, with substitution
    TokenOperand v;                      // V^T of the next chunk, then X
    TokenOperand scaled;                 // what the update adds
    TokenOperand plain;                  // V', rounded
    TokenAccumulator o;                  // with outputs 0
    float total;                         // 2^G_last of the next chunk
    int group, warp, lane;
    u32 turned; // see turned_tile

    KKT_DEVICE StateGroup make(int group, int warp, int lane) {
        StateGroup g;
        g.group = group;
        g.warp = warp;
        g.lane = lane;
        g.turned = (u32)ValueTile::at(lane / 16 * 8 + lane % 8, 2 * warp + lane / 8 % 2);
        return g;
    }
};

// A thread's factors of COUNT columns of a table, beginning at the `part`-th COUNT of them.
template <int COUNT> struct Factors { float factor[COUNT]; };
using Columns = Factors<P::chunk / 4>;
using HalfColumns = Factors<P::chunk / 8>;

template <int COUNT>
KKT_DEVICE void load_columns(Factors<COUNT> &c, const float *table, int part, int lane) {
    static_assert(COUNT % 2 == 0, "pairs of columns");
    const float *list = table + lane % 4 * GateLayout::list + part * COUNT;
#pragma unroll
    for (int n = 0; n + 4 <= COUNT; n += 4) {
        const float4 v = *(const float4 *)(list + n);
        c.factor[n] = v.x;
        c.factor[n + 1] = v.y;
        c.factor[n + 2] = v.z;
        c.factor[n + 3] = v.w;
    }
    if (COUNT % 4 != 0) {
        const float2 v = *(const float2 *)(list + COUNT - 2);
        c.factor[COUNT - 2] = v.x;
        c.factor[COUNT - 1] = v.y;
    }
}

// c (+)= A B for a B that is a lower triangle's transpose.
template <typename Operand>
KKT_DEVICE void multiply_triangle(TokenAccumulator &c, const TokenOperand &a, const Operand &b,
                                  bool add) {
    if constexpr (P::narrow)
        wgmma_product_lower<P::bf16>(c, a, b, add);
    else
        wgmma_product<P::bf16>(c, a, b, add);
}

// ---- the state from and to memory ----

KKT_DEVICE i64 state_offset(const StateGroup &g, const Unit &u) {
    return u.state + g.group * 64 + g.warp * 16 + fragment_row(g.lane) +
           (i64)fragment_column(g.lane) * P::dv;
}

KKT_DEVICE void load_state(StateGroup &g, const Problem &p, const Unit &u) {
    const float *h = p.h0 + state_offset(g, u);
#pragma unroll
    for (int n = 0; n < P::dk / 8; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e)
            g.s.value[4 * n + e] = p.h0 ? __ldg(h + (8 * n + e % 2) * P::dv + e / 2 * 8) : 0.0f;
    pack_operand<P::bf16>(g.s_pairs, g.s);
}

KKT_DEVICE void store_state(const StateGroup &g, const Problem &p, const Unit &u) {
    float *h = p.ht + state_offset(g, u);
    if (p.ht)
#pragma unroll
        for (int n = 0; n < P::dk / 8; ++n)
#pragma unroll
            for (int e = 0; e < 4; ++e)
                h[(8 * n + e % 2) * P::dv + e / 2 * 8] = g.s.value[4 * n + e];
}

// ---- steps of the chain ----

// Where lanes find the 16 x 16 tile of columns 16 t .. and this warp's rows of V^T or O^T in a tile
// [token][column] at `tile`: sixteen rows further on lanes do the same.
KKT_DEVICE u32 turned_tile(const StateGroup &g, u32 tile, int t) {
    return tile + g.turned + (u32)(P::place(16 * t) * ValueTile::row_bytes);
}

// V^T of a chunk and the decay over it.
KKT_DEVICE void fetch_values(StateGroup &g, const Shared &shared, int slot) {
    const u32 tile =
        shared_address(shared.stage(slot)) + (u32)(Layout::v_at + g.group * ValueTile::bytes);
#pragma unroll
    for (int t = 0; t < P::chunk / 16; ++t) {
        const OperandTile v = load_transposed_tile(turned_tile(g, tile, t));
#pragma unroll
        for (int i = 0; i < 4; ++i)
            g.v.word[4 * t + i] = v.quarter[i];
    }
    g.total = shared.gates(slot)[GateLayout::total_at];
}

KKT_DEVICE void decay_state(StateGroup &g) {
    if (P::gated)
#pragma unroll
        for (int i = 0; i < P::dk / 2; ++i)
            g.s.value[i] *= g.total;
}

// X, in place of V^T. The half of the decays that is wanted first was read ahead.
KKT_DEVICE void form_x(StateGroup &g, const float *tables, const HalfColumns &ahead) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        HalfColumns decay = ahead, beta;
        if (half == 1)
            load_columns(decay, tables + GateLayout::decay_at, half, g.lane);
        if (!P::t_beta)
            load_columns(beta, tables + GateLayout::beta_at, half, g.lane);
#pragma unroll
        for (int j = 0; j < P::chunk / 8; ++j) {     // pairs of columns
            const int i = half * (P::chunk / 8) + j; // word
            const int n = j / 2 * 2;                 // of the pair's factors
            float2 v = unpack_pair<P::bf16>(g.v.word[i]);
            if (!P::t_beta) {
                v.x *= beta.factor[n];
                v.y *= beta.factor[n + 1];
            }
            g.v.word[i] = pack_pair<P::bf16>(fmaf(-decay.factor[n], g.a.value[2 * i], v.x),
                                             fmaf(-decay.factor[n + 1], g.a.value[2 * i + 1], v.y));
        }
    }
}

// V' from X begins. Where T is solved for by substitution, with its diagonal blocks.
KKT_DEVICE void begin_values(StateGroup &g, const Shared &shared, const Ring<P::stages> &stage) {
    const SquareColumns t =
        SquareColumns::at(shared_address(shared.stage(stage.slot)) + (u32)Layout::t_at);
    if (P::fused)
        mbarrier_wait(shared.barrier(Layout::solved + stage.slot), stage.parity);
    wgmma_begin();
    if constexpr (P::substitute) {
#pragma unroll
        for (int i = 0; i < P::chunk / 16; ++i)
            wgmma_step<P::bf16, false, 16>(g.part[i].value, g.v.word + 4 * i, t.step(i, 16 * i),
                                           false);
        wgmma_commit();
    } else {
        multiply_triangle(g.a, g.v, t, false);
    }
}

// Element i of a thread's V'.
KKT_DEVICE float value_at(const StateGroup &g, int i) {
    return P::substitute ? g.part[i / 8].value[i % 8] : g.a.value[i];
}

// `scaled`: words FIRST .. of V', columns times the factors of `table`, COUNT at a time.
template <int FIRST, int COUNT>
KKT_DEVICE void pack_scaled(StateGroup &g, const Factors<COUNT> &columns) {
#pragma unroll
    for (int j = 0; j < COUNT; ++j) { // pairs of columns
        const int i = FIRST + j;
        const int n = j / 2 * 2;
        g.scaled.word[i] = pack_pair<P::bf16>(value_at(g, 2 * i) * columns.factor[n],
                                              value_at(g, 2 * i + 1) * columns.factor[n + 1]);
    }
}

// Substitution from sixteen tokens that are done to all that come after them. Meanwhile those are
// scaled for the update.
template <int DONE>
KKT_DEVICE void substitute_values(StateGroup &g, const SquareColumns &t, const float *rest) {
    Factors<4> columns;
    load_columns(columns, rest, DONE, g.lane);
    wgmma_wait<0>();
#pragma unroll
    for (int i = DONE; i < P::chunk / 16; ++i)
        hold(g.part[i]);
#pragma unroll
    for (int i = 0; i < 4; ++i)
        g.plain.word[4 * DONE + i] =
            pack_pair<P::bf16>(g.part[DONE].value[2 * i], g.part[DONE].value[2 * i + 1]);
    if constexpr (DONE + 1 < P::chunk / 16) {
        hold(g.plain);
        wgmma_begin();
#pragma unroll
        for (int i = DONE + 1; i < P::chunk / 16; ++i)
            wgmma_step<P::bf16, false, 16>(g.part[i].value, g.plain.word + 4 * DONE,
                                           t.step(DONE, 16 * i), true);
        wgmma_commit();
        pack_scaled<4 * DONE>(g, columns);
        substitute_values<DONE + 1>(g, t, rest);
    } else {
        pack_scaled<4 * DONE>(g, columns);
    }
}

// V' is there, and scaled for the update; with substitution it is rounded as well.
KKT_DEVICE void finish_values(StateGroup &g, const Shared &shared, const Ring<P::stages> &stage) {
    const float *rest = shared.gates(stage.slot) + GateLayout::rest_at;
    if constexpr (P::substitute) {
        substitute_values<0>(
            g, SquareColumns::at(shared_address(shared.stage(stage.slot)) + (u32)Layout::t_at),
            rest);
    } else {
        HalfColumns columns;
        load_columns(columns, rest, 0, g.lane);
        wgmma_wait<0>();
        hold(g.a);
        pack_scaled<0>(g, columns);
        load_columns(columns, rest, 1, g.lane);
        pack_scaled<P::chunk / 8>(g, columns);
    }
    hold(g.scaled);
}

KKT_DEVICE void round_values(StateGroup &g) {
    if (!P::substitute)
        pack_operand<P::bf16>(g.plain, g.a);
}

// Columns of c times their factors.
KKT_DEVICE void scale_columns(TokenAccumulator &c, const Columns &columns) {
#pragma unroll
    for (int i = 0; i < P::chunk / 2; ++i)
        c.value[i] *= columns.factor[i / 4 * 2 + i % 2];
}

#endif
