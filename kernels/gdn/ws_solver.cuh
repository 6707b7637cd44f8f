// The solver warpgroup of the warp-specialized gdn_fwd: from K and the gates of a chunk what V' is
// solved with, in place of the T that gdn_fwd_t loads. With L_ij = beta_i (k_i . k_j) 2^(G_i - G_j)
// below the diagonal and T = (I + L)^-1, in blocks of 16 x 16 of which warp w has those of row w:
//
//     1  -L from K K^T
//     2  T_ww by substitution in fp32: a lane has a column, L's block lies in shared memory
//     3  solve=substitute   M_wj = T_ww (-L_wj) for j < w: the state warpgroups go on with
//                           V'_w = T_ww diag(beta) X_w + sum over j of M_wj V'_j
//        solve=invert       T_wj = T_ww M, M = sum over k of (-L_wk) T_kj, k = j .. w - 1, for
//                           j = w - 1 (a barrier), then w - 2 (a barrier), ...; times diag(beta)
//
// So without the inverse no warp waits for another. Products have the form X Y^T: Y of M_wj is
// (-L_wj)^T; with the inverse, M^T = T_kj^T (-L_wk)^T, and its fragments are the Y of T_ww M.
// Operands are rounded to fp16, whatever the tensors' type: T's elements are at most about 1 for
// keys of unit length. What is above the diagonal stays 0 from the start.
#pragma once

#include "device/gate.cuh"
#include "device/matrix_move.cuh"
#include "device/mma_sync.cuh"
#include "device/tensor_map.cuh"
#include "device/types.cuh"
#include "device/warp_roles.cuh"
#include "device/wgmma_registers.cuh"
#include "gdn/ws_layout.cuh"
#include "gdn/ws_scores.cuh"

#if KKT_FUSED

static_assert(!P::narrow, "rows of K and T as they come");

constexpr int kStrips = P::chunk / 16;

// Where this warp works, and on what.
struct Solver {
    int warp, lane;
    int first;           // of its rows
    u8 *blocks;          // with the inverse: T in fp16, for the other warps
    OperandTile l[3];    // blocks of -L left of the diagonal
    OperandTile inverse; // T_ww
    u8 *t;               // the stage's result
    float *diagonal;     // its diagonal block of -L
    const float *tables; // the stage's gates
};

KKT_DEVICE void sync_solver() {
    asm volatile("bar.sync 3, %0;" ::"n"(P::warpgroup) : "memory");
}

// Step 1, in place of K K^T. The mask is in the exponent.
KKT_DEVICE void form_minus_l(const Solver &s, TokenAccumulator &c) {
    const float none = -__int_as_float(0x7f800000);
    const int row = s.first + fragment_row(s.lane);
    const float *list = s.tables + GateLayout::exponent_at + s.lane % 4 * GateLayout::list;
#pragma unroll
    for (int e = 0; e < 2; ++e) {
        const int i = row + 8 * e;
        const float exponent = s.tables[GateLayout::row_at + i];
        const float beta = s.tables[GateLayout::row_beta_at + i];
#pragma unroll
        for (int n = 0; n < P::chunk / 8; ++n) {
            const int column = 8 * n + fragment_column(s.lane);
            const float2 other = *(const float2 *)(list + 2 * n);
            float *value = c.value + 4 * n + 2 * e;
            value[0] *= -beta * exp2_approx(column < i ? exponent - other.x : none);
            value[1] *= -beta * exp2_approx(column + 1 < i ? exponent - other.y : none);
        }
    }
}

// Step 2: the block of -L to shared memory. Which registers it is in depends on the warp.
KKT_DEVICE void put_diagonal(const Solver &s, const TokenAccumulator &c) {
    float mine[8];
#pragma unroll
    for (int n = 0; n < 8; ++n) {
        mine[n] = c.value[n];
#pragma unroll
        for (int j = 1; j < kStrips; ++j) {
            float value = c.value[8 * j + n];
            asm("" : "+f"(value)); // else the compiler indexes c, and puts it in local memory
            mine[n] = s.warp == j ? value : mine[n];
        }
    }
    float *at = s.diagonal + fragment_row(s.lane) * SolverLayout::row + fragment_column(s.lane);
#pragma unroll
    for (int n = 0; n < 4; ++n) // rows 8 and more, then columns 8 and more
        *(float2 *)(at + n % 2 * 8 * SolverLayout::row + n / 2 * 8) =
            make_float2(mine[2 * n], mine[2 * n + 1]);
    __syncwarp();
}

// Step 2: column lane % 16 of T_ww; x_i = [i = column] + sum of (-L)_ik x_k over k < i.
KKT_DEVICE void substitute(const Solver &s, float (&x)[16]) {
#pragma unroll
    for (int i = 0; i < 16; ++i) {
        float sum[4] = {i == s.lane % 16 ? 1.0f : 0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
        for (int k = 0; k < i; k += 4) {
            const float4 l = *(const float4 *)(s.diagonal + i * SolverLayout::row + k);
            const float row[4] = {l.x, l.y, l.z, l.w};
#pragma unroll
            for (int e = 0; e < 4; ++e)
                if (k + e < i)
                    sum[e] += row[e] * x[k + e];
        }
        x[i] = sum[0] + sum[1] + (sum[2] + sum[3]);
    }
}

// The blocks of -L left of the diagonal.
KKT_DEVICE void take_operands(Solver &s, const TokenAccumulator &c) {
#pragma unroll
    for (int k = 0; k < kStrips - 1; ++k)
#pragma unroll
        for (int n = 0; n < 4; ++n)
            s.l[k].quarter[n] =
                pack_pair<false>(c.value[8 * k + 2 * n], c.value[8 * k + 2 * n + 1]);
}

// Address of this lane's row of the 16 x 16 block at strips (i, j), in the order of quarters.
KKT_DEVICE u32 block_rows(const u8 *tile, int i, int j, int lane) {
    return shared_address(tile +
                          SquareTile::at(16 * i + quarter_row(lane), 2 * j + quarter_unit(lane)));
}

// A block of T, columns times beta, to the stage.
KKT_DEVICE void write_t(const Solver &s, int j, const float2 (&t)[4]) {
    const float *beta = s.tables + GateLayout::row_beta_at + 16 * j + fragment_column(s.lane);
    OperandTile words;
#pragma unroll
    for (int n = 0; n < 4; ++n) {
        const float2 b = *(const float2 *)(beta + n / 2 * 8);
        words.quarter[n] = pack_pair<P::bf16>(t[n].x * b.x, t[n].y * b.y);
    }
    store_matrices<false>(block_rows(s.t, s.warp, j, s.lane), words);
}

// T_ww from its columns: as rows of its transpose over the block of L, and back as an operand.
KKT_DEVICE void take_diagonal(Solver &s, const float (&x)[16]) {
    __syncwarp(); // all have read the block of L
    u8 *rows = (u8 *)s.diagonal;
    float y[8]; // two lanes have a column: a half each
#pragma unroll
    for (int n = 0; n < 8; ++n)
        y[n] = s.lane < 16 ? x[n] : x[n + 8];
    *(uint4 *)(rows + s.lane % 16 * 32 + s.lane / 16 * 16) =
        make_uint4(pack_pair<false>(y[0], y[1]), pack_pair<false>(y[2], y[3]),
                   pack_pair<false>(y[4], y[5]), pack_pair<false>(y[6], y[7]));
    __syncwarp();
    s.inverse = load_transposed_tile(
        shared_address(rows + (s.lane / 16 * 8 + s.lane % 8) * 32 + s.lane / 8 % 2 * 16));
    if (!P::substitute)
        store_matrices<false>(block_rows(s.blocks, s.warp, s.warp, s.lane), s.inverse);
    float2 t[4];
#pragma unroll
    for (int n = 0; n < 4; ++n)
        t[n] = unpack_fp16(s.inverse.quarter[n]);
    write_t(s, s.warp, t);
}

// Step 3 without the inverse: M_wj for all j < w.
KKT_DEVICE void write_couplings(const Solver &s) {
#pragma unroll
    for (int j = 0; j < kStrips - 1; ++j)
        if (j < s.warp) {
            const OperandTile y = transpose_tile(s.l[j]);
            OperandTile words;
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                Fragment m;
                fragment_clear(m);
                mma_x_yt<false>(m, s.inverse, y, half);
                words.quarter[2 * half] = pack_pair<P::bf16>(m.value[0], m.value[1]);
                words.quarter[2 * half + 1] = pack_pair<P::bf16>(m.value[2], m.value[3]);
            }
            store_matrices<false>(block_rows(s.t, s.warp, j, s.lane), words);
        }
}

// Step 3 with the inverse: T_wj.
KKT_DEVICE void solve_block(const Solver &s, int j) {
    Fragment m[2], t[2];
    fragment_clear(m[0]);
    fragment_clear(m[1]);
#pragma unroll
    for (int k = 0; k < kStrips - 1; ++k)
        if (k >= j && k < s.warp) {
            // Quarters of T_kj^T: lanes 8..15 name the right half's rows, 16..23 the lower left's.
            const OperandTile x = load_transposed_tile(
                shared_address(s.blocks + SquareTile::at(16 * k + s.lane / 16 * 8 + s.lane % 8,
                                                         2 * j + s.lane / 8 % 2)));
            mma_x_yt<false>(m[0], x, s.l[k], 0);
            mma_x_yt<false>(m[1], x, s.l[k], 1);
        }
    OperandTile y, words;
    float2 values[4];
#pragma unroll
    for (int n = 0; n < 4; ++n)
        y.quarter[n] = pack_pair<false>(m[n / 2].value[n % 2 * 2], m[n / 2].value[n % 2 * 2 + 1]);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        fragment_clear(t[half]);
        mma_x_yt<false>(t[half], s.inverse, y, half);
    }
#pragma unroll
    for (int n = 0; n < 4; ++n) {
        values[n] = make_float2(t[n / 2].value[n % 2 * 2], t[n / 2].value[n % 2 * 2 + 1]);
        words.quarter[n] = pack_pair<false>(values[n].x, values[n].y);
    }
    store_matrices<false>(block_rows(s.blocks, s.warp, j, s.lane), words);
    write_t(s, j, values);
}

KKT_DEVICE void clear_t(const Shared &shared, int thread) {
    for (int slot = 0; slot < P::stages; ++slot)
        for (int at = thread * 16; at < SquareTile::bytes; at += P::warpgroup * 16)
            *(uint4 *)(shared.stage(slot) + Layout::t_at + at) = make_uint4(0, 0, 0, 0);
}

// K K^T of a stage, when it is full.
KKT_DEVICE void multiply_k_kt(TokenAccumulator &c, const Shared &shared,
                              const Ring<P::stages> &stage) {
    const u32 k = shared_address(shared.stage(stage.slot) + Layout::k_at);
    mbarrier_wait(shared.barrier(Layout::full + stage.slot), stage.parity);
    wgmma_begin();
    wgmma_product_shared<P::bf16>(c, KeyColumns::at(k), KeyColumns::at(k));
    wgmma_wait<0>();
    hold(c);
}

// Steps 2 and 3. All threads of the group.
KKT_DEVICE void solve(Solver &s) {
    const bool works = s.warp < kStrips;
    if (!P::substitute)
        sync_solver(); // all have read the blocks of the chunk before
    if (works) {
        float x[16];
        substitute(s, x);
        take_diagonal(s, x);
        if (P::substitute)
            write_couplings(s);
    }
    if (!P::substitute)
#pragma unroll 1
        for (int distance = 1; distance < kStrips; ++distance) {
            sync_solver();
            if (works && s.warp >= distance)
                solve_block(s, s.warp - distance);
        }
    async_proxy_fence();
}

KKT_DEVICE Solver make_solver(const Shared &shared, int warp, int lane) {
    const int strip = min(warp, kStrips - 1); // warps past the chunk have nothing to do
    Solver s;
    s.warp = warp;
    s.lane = lane;
    s.first = strip * 16;
    s.blocks = shared.base + Layout::solver_at;
    s.diagonal =
        (float *)(s.blocks + SolverLayout::diagonals_at + strip * SolverLayout::block_bytes);
    return s;
}

KKT_DEVICE void solve_role(const Shared &shared, int chunks, int warp, int lane) {
    Ring<P::stages> stage = Ring<P::stages>::start();
    Solver s = make_solver(shared, warp, lane);
    TokenAccumulator c;
    clear_t(shared, warp * kWarp + lane);
#pragma unroll 1
    for (int n = 0; n < chunks; ++n) {
        const int slot = stage.slot;
        s.t = shared.stage(slot) + Layout::t_at;
        s.tables = shared.gates(slot);
        multiply_k_kt(c, shared, stage);
        form_minus_l(s, c);
        if (warp < kStrips)
            put_diagonal(s, c);
        take_operands(s, c);
        stage.advance();
        solve(s);
        mbarrier_arrive(shared.barrier(Layout::solved + slot));
        mbarrier_arrive(shared.barrier(Layout::empty + slot));
    }
}

#endif
