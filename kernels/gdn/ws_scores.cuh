// The decayed scores of a chunk, P = scale (Q K^T) o Gamma, from the accumulator of Q K^T. The
// warpgroups that form them hold 64 rows, of which CHUNK are valid.
#pragma once

#include "device/convert.cuh"
#include "device/gate.cuh"
#include "device/matrix_move.cuh"
#include "device/types.cuh"
#include "device/warp_roles.cuh"
#include "device/wgmma_registers.cuh"
#include "gdn/ws_layout.cuh"

using TokenAccumulator = Accumulator<P::chunk>;
using TokenOperand = RowOperand<P::chunk>;
using KeyOperand = RowOperand<P::dk>;
using KeyColumns = RightOperand<P::chunk, P::dk>; // a tile of K or Q whose columns are summed over
using SquareColumns = RightOperand<P::chunk, P::chunk>;
using StateColumns = RightOperand<P::block_dv, P::dk>;     // S^T
using TurnedColumns = RightOperand<P::block_dv, P::chunk>; // V'^T, X^T
using KeyRows = RightOperand<P::chunk, P::dk, true>;       // a tile of K whose rows are summed over

// Lanes of ldmatrix and stmatrix name the rows of a 16 x 16 tile so that its quarters come in the
// order of an operand's words.
KKT_DEVICE int quarter_row(int lane) {
    return lane / 8 % 2 * 8 + lane % 8;
}

KKT_DEVICE int quarter_unit(int lane) {
    return lane / 16;
}

// The tokens of this thread's rows, eight apart; those of columns are at P::place.
struct ScoreRows {
    int row;
    float exponent[2]; // G_i + log2(scale)
};

// `first`: of the warp's sixteen tokens.
KKT_DEVICE ScoreRows score_rows(const float *tables, float scale_exponent, int first, int lane) {
    ScoreRows r;
    r.row = first + fragment_row(lane);
    r.exponent[0] = tables[GateLayout::row_at + r.row] + scale_exponent;
    r.exponent[1] = tables[GateLayout::row_at + r.row + 8] + scale_exponent;
    return r;
}

// Words 4 t .. 4 t + 3 of P: columns 16 t .. 16 t + 15 in their places. The mask is in the
// exponent.
KKT_DEVICE OperandTile decay_scores(const TokenAccumulator &c, const float *tables,
                                    const ScoreRows &rows, int t, int lane) {
    const float none = -__int_as_float(0x7f800000);
    const float4 columns =
        *(const float4 *)(tables + GateLayout::exponent_at + lane % 4 * GateLayout::list + 4 * t);
    const float exponent[4] = {columns.x, columns.y, columns.z, columns.w};
    OperandTile p;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const int column = P::place(16 * t) + 8 * half + fragment_column(lane);
#pragma unroll
        for (int e = 0; e < 2; ++e) {
            const int row = rows.row + 8 * e;
            const float *value = c.value + 8 * t + 4 * half + 2 * e;
            const float a = column <= row ? rows.exponent[e] - exponent[2 * half] : none;
            const float b = column + 1 <= row ? rows.exponent[e] - exponent[2 * half + 1] : none;
            p.quarter[2 * half + e] =
                pack_pair<P::bf16>(value[0] * exp2_approx(a), value[1] * exp2_approx(b));
        }
    }
    return p;
}

// Outputs 0: one warpgroup forms P for the state warpgroups, two chunks ahead at most. As in T,
// rows are at P::place and columns in forward order.
KKT_DEVICE void score_role(const Shared &shared, int chunks, float scale, int warp, int lane) {
    Ring<P::stages> stage = Ring<P::stages>::start();
    Ring<2> out = Ring<2>::start();
    const float scale_exponent = __log2f(scale);
    // A warp whose rows are past the chunk has nothing to do.
    const int place = min(warp * 16, P::chunk - 16);
    const int row = place + quarter_row(lane);
#pragma unroll 1
    for (int n = 0; n < chunks; ++n) {
        TokenAccumulator c;
        const u32 k = shared_address(shared.stage(stage.slot) + Layout::k_at);
        mbarrier_wait(shared.barrier(Layout::full + stage.slot), stage.parity);
        wgmma_begin();
        wgmma_product_shared<P::bf16>(c, KeyColumns::at(k + Layout::q_at), KeyColumns::at(k));
        const float *tables = shared.gates(stage.slot);
        const ScoreRows rows = score_rows(tables, scale_exponent, P::place(place), lane);
        mbarrier_wait(shared.barrier(Layout::scores_empty + out.slot), out.parity ^ 1);
        wgmma_wait<0>();
        hold(c);
        if (warp * 16 < P::chunk)
#pragma unroll
            for (int t = 0; t < P::chunk / 16; ++t)
                store_matrices<false>(
                    shared_address(shared.scores(out.slot) +
                                   SquareTile::at(row, P::place(16 * t) / 8 + quarter_unit(lane))),
                    decay_scores(c, tables, rows, t, lane));
        async_proxy_fence();
        mbarrier_arrive(shared.barrier(Layout::scores_full + out.slot));
        mbarrier_arrive(shared.barrier(Layout::empty + stage.slot));
        stage.advance();
        out.advance();
    }
}
