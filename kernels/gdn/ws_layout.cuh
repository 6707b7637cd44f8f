// Shared memory of the warp-specialized gdn_fwd_t and gdn_fwd (the host's footprints list the same
// buffers):
//
//     stage x STAGES    K        CHUNK x DK      2-byte elements in swizzled tiles, as TMA writes
//                       Q        CHUNK x DK      and wgmma reads them (swizzle.cuh); tokens along
//                       T        CHUNK x CHUNK   the rows of these three at P::place
//                       V        CHUNK x GROUP_DV for each state warpgroup
//     with outputs 0    scores   CHUNK x CHUNK       x 2, the decayed scores P
//                       o        CHUNK x GROUP_DV    x 2 for each state warpgroup
//     with outputs > 0  s        BLOCK_DV x DK       x 2, the incoming state S^T
//                       value    BLOCK_DV x CHUNK    x 2, V'^T; o takes its place
//     block_dv below 64 x        BLOCK_DV x CHUNK    X^T
//                       scaled   BLOCK_DV x CHUNK    V'^T as it goes into the state
//     in gdn_fwd        what the solver needs, see SolverLayout
//     gates x STAGES    tables of decays, see GateLayout
//     barriers
#pragma once

#include "device/swizzle.cuh"
#include "device/types.cuh"
#include "gdn/ws_parameters.cuh"

using KeyTile = SwizzledTile<P::chunk, P::dk>;
using SquareTile = SwizzledTile<P::chunk, P::chunk>;
using ValueTile = SwizzledTile<P::chunk, P::group_dv>;
using StateTile = SwizzledTile<P::block_dv, P::dk>;
using TurnedTile = SwizzledTile<P::block_dv, P::chunk>;

// Factors of a chunk's tokens in fp32. A thread's accumulator has the columns 8 n + 2 q and the one
// beside it, q = lane % 4, for every n. A column table is sorted by q, so that a thread's factors
// lie one after the other, and the four lists start 4 banks apart (modulo a row of banks):
//
//     q = 0   columns  0  1   8  9  16 17 ...   pad (4)
//     q = 1   columns  2  3  10 11  18 19 ...   pad
//     ...
struct GateLayout {
    static constexpr int list = P::chunk / 4 + 4; // floats
    static constexpr int table = 4 * list;

    static constexpr int decay_at = 0;            // 2^G_j, times beta_j where T does not carry it
    static constexpr int rest_at = table;         // 2^(G_last - G_j)
    static constexpr int exponent_at = 2 * table; // G_j
    static constexpr int out_at = 3 * table;      // scale 2^G_j
    static constexpr int beta_at = 4 * table;     // beta_j
    static constexpr int row_at = 5 * table;      // G_i in the order of tokens
    static constexpr int total_at = row_at + P::chunk; // 2^G_last
    static constexpr int row_beta_at = total_at + 4;   // beta_i in the order of tokens (gdn_fwd)
    static constexpr int floats = row_beta_at + (P::fused ? P::chunk : 0);

    // Of a token in a column table.
    KKT_DEVICE int at(int token) {
        const int column = P::place(token);
        return column % 8 / 2 * list + column / 8 * 2 + column % 2;
    }
};

// Of the solver (ws_solver.cuh): for each warp a diagonal block of L in fp32, and where T is
// inverted T's blocks for one another, in fp16.
struct SolverLayout {
    static constexpr int row = 20; // floats of a row of 16, so that rows start in different banks
    static constexpr int block_bytes = 16 * row * 4;
    static constexpr int diagonals_at = P::substitute ? 0 : SquareTile::bytes;
    static constexpr int bytes = round_up(diagonals_at + P::chunk / 16 * block_bytes, 1024);
};

struct Layout {
    // Within a stage.
    static constexpr int k_at = 0;
    static constexpr int q_at = KeyTile::bytes;
    static constexpr int t_at = 2 * KeyTile::bytes;
    static constexpr int v_at = t_at + round_up(SquareTile::bytes, 1024);
    static constexpr int stage_bytes = v_at + P::groups * ValueTile::bytes;
    static constexpr int copied_bytes =
        2 * KeyTile::bytes + (P::fused ? 0 : SquareTile::bytes) + P::groups * ValueTile::bytes;

    static constexpr bool own_output = P::outputs == 0; // of the state warpgroups
    static constexpr int score_bytes = round_up(SquareTile::bytes, 1024);
    static constexpr int after_stages = P::stages * stage_bytes;

    static constexpr int scores_at = after_stages;
    static constexpr int o_at = scores_at + 2 * score_bytes;

    static constexpr int s_at = after_stages;
    static constexpr int value_at = s_at + 2 * StateTile::bytes;

    static constexpr int x_at = value_at + 2 * TurnedTile::bytes;
    static constexpr int scaled_at = x_at + TurnedTile::bytes;

    static constexpr int solver_at = own_output        ? o_at + 2 * P::groups * ValueTile::bytes
                                     : P::state_shared ? scaled_at + TurnedTile::bytes
                                                       : x_at;
    static constexpr int gates_at = solver_at + (P::fused ? SolverLayout::bytes : 0);
    static constexpr int gate_bytes = GateLayout::floats * 4;
    static constexpr int barriers_at = gates_at + P::stages * gate_bytes;

    // Barriers, 8 bytes each; which warps arrive is said in ws_block.cuh.
    static constexpr int full = 0;
    static constexpr int empty = full + P::stages;
    static constexpr int landed = empty + P::stages;
    static constexpr int scores_full = landed + P::stages;
    static constexpr int scores_empty = scores_full + 2;
    static constexpr int s_full = scores_full;
    static constexpr int s_empty = scores_empty;
    static constexpr int value_full = s_empty + 2;
    static constexpr int o_full = value_full + 2;
    static constexpr int o_empty = o_full + 4; // also: the place of V' is free again
    static constexpr int solved = o_empty + 4;
    static constexpr int barriers = solved + (P::fused ? P::stages : 0);

    static constexpr int bytes = barriers_at + round_up(8 * barriers, 16);
};

#ifdef KKT_SMEM_BYTES
static_assert(Layout::bytes == KKT_SMEM_BYTES, "the host's footprint and this layout differ");
#endif
static_assert(Layout::stage_bytes % 1024 == 0 && Layout::gates_at % 1024 == 0,
              "tiles begin at multiples of 1,024 bytes");

// The shared memory of a block by names.
struct Shared {
    u8 *base;

    __device__ __forceinline__ u8 *stage(int slot) const {
        return base + slot * Layout::stage_bytes;
    }
    __device__ __forceinline__ float *gates(int slot) const {
        return (float *)(base + Layout::gates_at + slot * Layout::gate_bytes);
    }
    __device__ __forceinline__ u64 *barrier(int index) const {
        return (u64 *)(base + Layout::barriers_at) + index;
    }
    __device__ __forceinline__ u8 *scores(int slot) const {
        return base + Layout::scores_at + slot * Layout::score_bytes;
    }
    // Of state warpgroup `group` (outputs 0).
    __device__ __forceinline__ u8 *o(int group, int slot) const {
        return base + Layout::o_at + (2 * group + slot) * ValueTile::bytes;
    }
    __device__ __forceinline__ u8 *s(int slot) const {
        return base + Layout::s_at + slot * StateTile::bytes;
    }
    __device__ __forceinline__ u8 *value(int slot) const {
        return base + Layout::value_at + slot * TurnedTile::bytes;
    }
    __device__ __forceinline__ u8 *x() const {
        return base + Layout::x_at;
    }
    __device__ __forceinline__ u8 *scaled() const {
        return base + Layout::scaled_at;
    }
};
