// The tiles of the fragment style in shared memory, and where a lane's elements lie in them:
//
//     k, q          PaddedTile CHUNK x DK
//     v             PaddedTile CHUNK x BLOCK_DV: V, then X, then O
//     values, ends  the same: V' and diag(e^(G_last - G)) V'
//     state         PaddedTile DK x BLOCK_DV: S, rounded
//     gates         ChunkGates
#pragma once

#include "device/types.cuh"
#include "gdn/chunk_gates.cuh"
#include "gdn/chunk_scores.cuh"
#include "gdn/chunk_tiles.cuh"
#include "gdn/mma_parameters.cuh"
#include "gdn/token_rows.cuh"

struct FragmentTiles {
    static constexpr int q_at = KeyTile::bytes;
    static constexpr int v_at = q_at + KeyTile::bytes;
    static constexpr int values_at = v_at + ValueTile::bytes;
    static constexpr int ends_at = values_at + ValueTile::bytes;
    static constexpr int state_at = ends_at + ValueTile::bytes;
    static constexpr int gates_at = state_at + StateTile::bytes;
    static constexpr int bytes = gates_at + ChunkGates<P::chunk>::bytes;
};

struct Places {
    LaneAddress k, q;
    LaneAddress v, values; // at the warp's columns of a chunk's tiles
    LaneAddress state;     // at the same of S
    LaneAddress own_state; // at the columns of the warp's own strips of S
    LaneAddress own_ends;  // and of what is added to them

    KKT_DEVICE Places make(const u8 *shared, const TokenGrid &tokens, const StateGrid &states,
                           int lane) {
        using T = FragmentTiles;
        const u8 *columns = shared + tokens.column * 32;
        const u8 *own = shared + states.column * 32;
        return {KeyTile::lane_address(shared, lane),
                KeyTile::lane_address(shared + T::q_at, lane),
                ValueTile::lane_address(columns + T::v_at, lane),
                ValueTile::lane_address(columns + T::values_at, lane),
                StateTile::lane_address(columns + T::state_at, lane),
                StateTile::lane_address(own + T::state_at, lane),
                ValueTile::lane_address(own + T::ends_at, lane)};
    }

    // At the warp's columns of the tile of diag(e^(G_last - G)) V'.
    __device__ __forceinline__ LaneAddress ends() const {
        constexpr int further = FragmentTiles::ends_at - FragmentTiles::values_at;
        return {values.by_rows + further, values.by_columns + further};
    }
};

// P by blocks, to shared memory.
KKT_DEVICE void put_scores(u8 *blocks, const Places &at, const ChunkGates<P::chunk> &gates,
                           float scale, int warp, int lane) {
    Scores scores;
    scores.clear(warp);
    scores.multiply(at.q, at.k);
    scores.put(blocks, gates, scale, lane);
}

// V' and its share in the state, to their tiles.
KKT_DEVICE void put_new_values(TokenValues &values, const Places &at,
                               const ChunkGates<P::chunk> &gates, const TokenGrid &grid, int lane) {
    put_rows<ValueTile>(at.values, values, grid);
#pragma unroll
    for (int r = 0; r < TokenGrid::strips; ++r) {
        const float *end = gates.end() + grid.strip(r) * 16 + fragment_row(lane);
        values.scale(r, end[0], end[8]);
    }
    put_rows<ValueTile>(at.ends(), values, grid);
}

// O = diag(scale e^G) Q S + P V', to where X was; `scores(r, j)` gives a block of the warp's rows
// of P.
template <class Load>
KKT_DEVICE void put_output(const Places &at, const Load &scores, const ChunkGates<P::chunk> &gates,
                           const TokenGrid &grid, int lane) {
    TokenValues o;
    o.clear();
    multiply_state(o, at.q, at.state, grid);
#pragma unroll
    for (int r = 0; r < TokenGrid::strips; ++r) {
        const float *query = gates.query() + grid.strip(r) * 16 + fragment_row(lane);
        o.scale(r, query[0], query[8]);
    }
    multiply_table(o, scores, at.values, grid);
    put_rows<ValueTile>(at.v, o, grid);
}
