// The output warpgroups of the warp-specialized gdn_fwd_t (outputs 1 or 2): O of a chunk, 64 rows
// of which CHUNK are valid, from S^T and V'^T in shared memory. Two of them take turns.
//
//     Q K^T            left operand Q, kept in registers
//     P                the decayed scores, in registers
//     O = Q S          rows then times scale 2^G_i
//     O += P V'
//
// Q K^T and P of a warpgroup's next chunk come before it waits for that chunk's state.
#pragma once

#include "device/matrix_move.cuh"
#include "device/types.cuh"
#include "device/warp_roles.cuh"
#include "device/wgmma_registers.cuh"
#include "gdn/ws_layout.cuh"
#include "gdn/ws_scores.cuh"
#include "gdn/ws_work.cuh"

#if KKT_OUTPUTS > 0

using OutputAccumulator = Accumulator<P::block_dv>;
struct OutputGroup {
    KeyOperand q;
    TokenAccumulator scores;
    TokenOperand p;
    float decay[2]; // of rows: scale 2^G_i
    int index, warp, lane;
    int first; // of the warp's sixteen tokens; past the chunk it takes the last ones, for nothing
};

// Reads Q and begins Q K^T.
KKT_DEVICE void begin_scores(OutputGroup &g, const Shared &shared, int slot) {
    const u8 *stage = shared.stage(slot);
    const int row = P::place(g.first + quarter_row(g.lane));
#pragma unroll
    for (int t = 0; t < P::dk / 16; ++t) {
        const OperandTile q = load_operand_tile(
            shared_address(stage + Layout::q_at + KeyTile::at(row, 2 * t + quarter_unit(g.lane))));
#pragma unroll
        for (int i = 0; i < 4; ++i)
            g.q.word[4 * t + i] = q.quarter[i];
    }
    hold(g.q);
    wgmma_begin();
    wgmma_product<P::bf16>(g.scores, g.q, KeyColumns::at(shared_address(stage + Layout::k_at)),
                           false);
}

KKT_DEVICE void form_scores(OutputGroup &g, const float *tables, float scale_exponent) {
    const ScoreRows rows = score_rows(tables, scale_exponent, g.first, g.lane);
#pragma unroll
    for (int t = 0; t < P::chunk / 16; ++t) {
        const OperandTile p = decay_scores(g.scores, tables, rows, t, g.lane);
#pragma unroll
        for (int i = 0; i < 4; ++i)
            g.p.word[4 * t + i] = p.quarter[i];
    }
    g.decay[0] = exp2_approx(rows.exponent[0]);
    g.decay[1] = exp2_approx(rows.exponent[1]);
    hold(g.p);
}

KKT_DEVICE void scale_rows(OutputAccumulator &o, const float (&factor)[2]) {
#pragma unroll
    for (int i = 0; i < P::block_dv / 2; ++i)
        o.value[i] *= factor[i / 2 % 2];
    hold(o);
}

// O to the place of V', when all warps of the group have read that.
KKT_DEVICE void store_output(const OutputGroup &g, const OutputAccumulator &o, u8 *tiles) {
    if (g.index == 0)
        asm volatile("bar.sync 1, %0;" ::"n"(P::warpgroup) : "memory");
    else
        asm volatile("bar.sync 2, %0;" ::"n"(P::warpgroup) : "memory");
    const int row = g.first + quarter_row(g.lane);
    if (g.warp * 16 < P::chunk)
#pragma unroll
        for (int t = 0; t < P::block_dv / 16; ++t) {
            OperandTile words;
#pragma unroll
            for (int i = 0; i < 4; ++i)
                words.quarter[i] =
                    pack_pair<P::bf16>(o.value[8 * t + 2 * i], o.value[8 * t + 2 * i + 1]);
            store_matrices<false>(
                shared_address(tiles + t / 4 * ValueTile::bytes +
                               ValueTile::at(row, 2 * (t % 4) + quarter_unit(g.lane))),
                words);
        }
}

KKT_DEVICE void output_role(const Shared &shared, int chunks, float scale, int index, int warp,
                            int lane) {
    OutputGroup g;
    g.index = index;
    g.warp = warp;
    g.lane = lane;
    g.first = min(warp * 16, P::chunk - 16);
    OutputAccumulator o;
    const float scale_exponent = __log2f(scale);
    Ring<P::stages> stage = Ring<P::stages>::start();
    Ring<2> ring = Ring<2>::start();
    stage.advance(index);
    ring.advance(index);
    if (index < chunks) {
        mbarrier_wait(shared.barrier(Layout::full + stage.slot), stage.parity);
        begin_scores(g, shared, stage.slot);
        wgmma_wait<0>();
        hold(g.scores);
        form_scores(g, shared.gates(stage.slot), scale_exponent);
    }
#pragma unroll 1
    for (int n = index; n < chunks; n += P::outputs) {
        mbarrier_wait(shared.barrier(Layout::s_full + ring.slot), ring.parity);
        async_proxy_fence(); // what the state's warps wrote, for this warp's products
        wgmma_begin();
        wgmma_product<P::bf16>(o, g.q, StateColumns::at(shared_address(shared.s(ring.slot))),
                               false);
        wgmma_wait<0>();
        hold(o);
        hold(g.q);
        mbarrier_arrive(shared.barrier(Layout::s_empty + ring.slot));
        mbarrier_arrive(shared.barrier(Layout::empty + stage.slot));
        scale_rows(o, g.decay);

        mbarrier_wait(shared.barrier(Layout::value_full + ring.slot), ring.parity);
        u8 *value = shared.value(ring.slot);
        async_proxy_fence();
        wgmma_begin();
        wgmma_product<P::bf16>(o, g.p, TurnedColumns::at(shared_address(value)), true);
        wgmma_wait<0>();
        hold(o);
        store_output(g, o, value);
        mbarrier_arrive(shared.barrier(Layout::o_full + ring.slot));
        ring.advance(P::outputs);
        stage.advance(P::outputs);

        if (n + P::outputs < chunks) {
            mbarrier_wait(shared.barrier(Layout::full + stage.slot), stage.parity);
            begin_scores(g, shared, stage.slot);
            wgmma_wait<0>();
            hold(g.scores);
            hold(g.p);
            form_scores(g, shared.gates(stage.slot), scale_exponent);
        }
    }
}

#endif
