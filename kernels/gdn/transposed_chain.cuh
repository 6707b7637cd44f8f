// One warp's part of the recurrence over chunks, transposed, so that nothing on it leaves
// registers. A warp owns 16 M columns of v, which are the rows of everything here; tokens and the
// columns of k run along the other side:
//
//     state  S^T   16 M x dk       fp32 fragments, for the whole sequence
//     X^T, V'^T, O^T   16 M x chunk
//
//     X^T  = V^T diag(beta) - (S^T K^T) diag(beta e^G)      multiply_state, take_values
//     V'^T = X^T T^T                                        multiply_lower
//     O^T  = (S^T Q^T) diag(scale e^G) + V'^T P^T           multiply_state, multiply_lower
//     S^T  = e^(G_last) S^T + V'^T diag(e^(G_last - G)) K   update_state
//
// Each product is X Y^T: its left operand is rounded accumulators (register_blocks.cuh), its right
// operand a tile in shared memory that all warps read. Only T and P, which are lower triangular,
// and the update's K want blocks; nothing is exchanged between warps.
#pragma once

#include "device/matrix_move.cuh"
#include "device/mma_sync.cuh"
#include "device/register_blocks.cuh"
#include "device/types.cuh"
#include "gdn/chunk_gates.cuh"
#include "gdn/chunk_scores.cuh"
#include "gdn/chunk_tiles.cuh"
#include "gdn/mma_parameters.cuh"
#include "gdn/transposed_rows.cuh"

// How many row tiles of 16 columns of v a warp owns.
constexpr int kRowTiles = P::block_dv / 16 / P::warps;
static_assert(kRowTiles * 16 * P::warps == P::block_dv, "each warp owns whole row tiles");

using StateColumns = Rows<kRowTiles, P::dk / 8>;
using TokenColumns = Rows<kRowTiles, P::chunk / 8>;
using RoundedTokens = RoundedRows<kRowTiles, P::strips>;

// A lane's address at its warp's columns of a tile of V or O.
KKT_DEVICE LaneAddress warp_columns(const u8 *tile, int warp, int lane) {
    return ValueTile::lane_address(tile + warp * kRowTiles * 32, lane);
}

// c += S^T X^T for the strips of a tile X of keys or queries from FIRST on.
template <int FIRST, int M, int N>
KKT_DEVICE void multiply_state(Rows<M, N> &c, const Rows<M, P::dk / 8> &state,
                               const LaneAddress &x) {
#pragma unroll
    for (int step = 0; step < P::dk / 16; ++step) {
        OperandTile s[M];
#pragma unroll
        for (int m = 0; m < M; ++m)
            s[m] = state.operand(m, step);
#pragma unroll
        for (int strip = 0; strip < N / 2; ++strip) {
            const RightTile y =
                load_right_tile(x.by_columns + KeyTile::operand_at(FIRST + strip, step));
#pragma unroll
            for (int m = 0; m < M; ++m)
#pragma unroll
                for (int half = 0; half < 2; ++half)
                    mma_right<P::bf16>(c.f[m][2 * strip + half], s[m], y, half);
        }
    }
}

// Both at once, for K and Q; `use(step, keys)` gets the operands of K of each step, and
// `meanwhile(step)` is what else is to be done in it.
template <int M, class Use, class Meanwhile>
KKT_DEVICE void
multiply_state_twice(Rows<M, P::chunk / 8> &of_keys, Rows<M, P::chunk / 8> &of_queries,
                     const Rows<M, P::dk / 8> &state, const LaneAddress &k, const LaneAddress &q,
                     const Use &use, const Meanwhile &meanwhile) {
#pragma unroll
    for (int step = 0; step < P::dk / 16; ++step) {
        RightTile keys[P::strips];
#pragma unroll
        for (int strip = 0; strip < P::strips; ++strip)
            keys[strip] = load_right_tile(k.by_columns + KeyTile::operand_at(strip, step));
#pragma unroll
        for (int m = 0; m < M; ++m) {
            const OperandTile s = state.operand(m, step);
#pragma unroll
            for (int strip = 0; strip < P::strips; ++strip) {
                mma_right<P::bf16>(of_keys.f[m][2 * strip], s, keys[strip], 0);
                mma_right<P::bf16>(of_keys.f[m][2 * strip + 1], s, keys[strip], 1);
            }
#pragma unroll
            for (int strip = 0; strip < P::strips; ++strip) {
                const RightTile y =
                    load_right_tile(q.by_columns + KeyTile::operand_at(strip, step));
                mma_right<P::bf16>(of_queries.f[m][2 * strip], s, y, 0);
                mma_right<P::bf16>(of_queries.f[m][2 * strip + 1], s, y, 1);
            }
        }
        use(step, keys);
        meanwhile(step);
    }
}

// Whether a warp has the registers for S^T Q^T and its scores beside S^T K^T: each operand of K is
// loaded once then. Otherwise S^T Q^T comes last, a part of the tokens at a time.
constexpr bool kQueriesEarly = kRowTiles * P::chunk <= 64 && Scores::strips == 1 && P::dk <= 128;
constexpr int kOutputParts = kQueriesEarly || P::chunk <= 32 ? 1 : kRowTiles;

// S^T K^T of the warp's rows, S^T Q^T where it comes early, and the warp's blocks of the scores, to
// shared memory. A ring's `turn` is taken step by step with the product where `by_steps`, which
// needs S^T Q^T early.
template <class Turn>
KKT_DEVICE void multiply_chunk(TokenColumns &of_keys, TokenColumns &of_queries,
                               const StateColumns &state, const LaneAddress &k,
                               const LaneAddress &q, u8 *score_blocks,
                               const ChunkGates<P::chunk> &gates, float scale, int warp, int lane,
                               const Turn &turn, bool by_steps) {
    Scores scores;
    scores.clear(warp);
    of_keys.clear();
    of_queries.clear();
    if constexpr (kQueriesEarly) {
        const auto use = [&](int step, const RightTile(&keys)[P::strips]) {
            scores.add(q, step, keys);
        };
        if (by_steps)
            multiply_state_twice(of_keys, of_queries, state, k, q, use,
                                 [&](int step) { turn.step(step); });
        else
            multiply_state_twice(of_keys, of_queries, state, k, q, use, [](int) {});
        scores.put(score_blocks, gates, scale, lane);
    } else {
        scores.multiply(q, k);
        scores.put(score_blocks, gates, scale, lane);
        multiply_state<0>(of_keys, state, k);
    }
}

// c += X^T Y^T for the strips of a lower triangular Y from FIRST on, whose block n of the list
// `load(n)` gives.
template <int FIRST, int M, int N, class Load>
KKT_DEVICE void multiply_lower(Rows<M, N> &c, const RoundedRows<M, P::strips> &x,
                               const Load &load) {
#pragma unroll
    for (int j = 0; j < FIRST + N / 2; ++j)
#pragma unroll
        for (int i = FIRST; i < FIRST + N / 2; ++i) {
            if (i < j)
                continue;
            const RightTile y = load(lower_block(i, j));
#pragma unroll
            for (int m = 0; m < M; ++m)
#pragma unroll
                for (int half = 0; half < 2; ++half)
                    mma_right<P::bf16>(c.f[m][2 * (i - FIRST) + half], x.step[m][j], y, half);
        }
}

// c = V^T diag(beta) - c diag(beta e^G). `v` is this lane's address at the warp's columns of the
// tile of V; `factors` are the pairs of ChunkGates::value.
template <int M>
KKT_DEVICE void take_values(Rows<M, P::chunk / 8> &c, const LaneAddress &v, const float *factors,
                            int lane) {
#pragma unroll
    for (int strip = 0; strip < P::strips; ++strip) {
        float4 factor[2]; // (beta, beta e^G) of two tokens, for either half
#pragma unroll
        for (int half = 0; half < 2; ++half)
            factor[half] =
                *(const float4 *)(factors + 2 * (strip * 16 + half * 8 + fragment_column(lane)));
#pragma unroll
        for (int m = 0; m < M; ++m) {
            const OperandTile values =
                load_transposed_tile(v.by_columns + ValueTile::operand_at(strip, m));
#pragma unroll
            for (int q = 0; q < 4; ++q) {
                const float2 pair = unpack_element_pair(values.quarter[q]);
                const float4 by = factor[q / 2];
                float *x = c.f[m][2 * strip + q / 2].value + q % 2 * 2;
                x[0] = by.x * pair.x - by.y * x[0];
                x[1] = by.z * pair.y - by.w * x[1];
            }
        }
    }
}

// S^T = decay S^T + X^T K.
template <int M>
KKT_DEVICE void update_state(Rows<M, P::dk / 8> &state, float decay,
                             const RoundedRows<M, P::strips> &x, const LaneAddress &k) {
#pragma unroll
    for (int step = 0; step < P::dk / 16; ++step) {
#pragma unroll
        for (int m = 0; m < M; ++m)
#pragma unroll
            for (int e = 0; e < 8; ++e)
                state.f[m][2 * step + e / 4].value[e % 4] *= decay;
#pragma unroll
        for (int strip = 0; strip < P::strips; ++strip) {
            const RightTile y =
                load_transposed_right_tile(k.by_rows + KeyTile::operand_at(strip, step));
#pragma unroll
            for (int m = 0; m < M; ++m)
#pragma unroll
                for (int half = 0; half < 2; ++half)
                    mma_right<P::bf16>(state.f[m][2 * step + half], x.step[m][strip], y, half);
        }
    }
}

// O^T of the strips from FIRST on, where c is their S^T Q^T diag(scale e^G), to the warp's columns
// of the tile where V was.
template <int FIRST, int M, int N, class Load>
KKT_DEVICE void put_output(Rows<M, N> &c, const RoundedRows<M, P::strips> &values,
                           const Load &load_scores, const LaneAddress &o) {
    multiply_lower<FIRST>(c, values, load_scores);
    put_columns(c, {o.by_rows + ValueTile::operand_at(FIRST, 0),
                    o.by_columns + ValueTile::operand_at(FIRST, 0)});
}

// The same for part PART of the tokens and those after it, S^T Q^T included.
template <int PART, class Load>
KKT_DEVICE void put_output_parts(const StateColumns &state, const RoundedTokens &values,
                                 const Load &load_scores, const ChunkGates<P::chunk> &gates,
                                 const LaneAddress &q, const LaneAddress &o, int lane) {
    if constexpr (PART < kOutputParts) {
        constexpr int strips = P::strips / kOutputParts;
        Rows<kRowTiles, 2 * strips> c;
        c.clear();
        multiply_state<PART * strips>(c, state, q);
        c.scale(gates.query() + PART * strips * 16, lane);
        put_output<PART * strips>(c, values, load_scores, o);
        put_output_parts<PART + 1>(state, values, load_scores, gates, q, o, lane);
    }
}

// What follows when V'^T is known: O^T, and the state after the chunk. `queries` is what
// multiply_chunk left; `wait_for_scores()` is called before the scores are read, as late as can be.
template <class Wait>
KKT_DEVICE void finish_chunk(StateColumns &state, TokenColumns &values, TokenColumns &queries,
                             const u8 *scores, const ChunkGates<P::chunk> &gates,
                             const LaneAddress &k, const LaneAddress &q, const LaneAddress &o,
                             int lane, const Wait &wait_for_scores) {
    const RoundedTokens rounded = round_rows(values);
    values.scale(gates.end(), lane);
    const RoundedTokens ends = round_rows(values);
    const auto load = [&](int n) { return take_operand(scores, n, lane); };
    if constexpr (kQueriesEarly) {
        queries.scale(gates.query(), lane);
        update_state(state, *gates.decay(), ends, k);
        wait_for_scores();
        put_output<0>(queries, rounded, load, o);
    } else {
        wait_for_scores();
        put_output_parts<0>(state, rounded, load, gates, q, o, lane);
        update_state(state, *gates.decay(), ends, k);
    }
}

// The state of a head and its fragments. Rows of h0 and ht are columns here: eight rows of v are 32
// bytes of one of them. `state` points at this warp's first column.
template <int M> KKT_DEVICE void load_state(Rows<M, P::dk / 8> &s, const float *state, int lane) {
#pragma unroll
    for (int m = 0; m < M; ++m)
#pragma unroll
        for (int n = 0; n < P::dk / 8; ++n)
#pragma unroll
            for (int e = 0; e < 4; ++e)
                s.f[m][n].value[e] = __ldg(state + (n * 8 + fragment_column(lane) + e % 2) * P::dv +
                                           m * 16 + fragment_row(lane) + e / 2 * 8);
}

template <int M> KKT_DEVICE void store_state(const Rows<M, P::dk / 8> &s, float *state, int lane) {
#pragma unroll
    for (int m = 0; m < M; ++m)
#pragma unroll
        for (int n = 0; n < P::dk / 8; ++n)
#pragma unroll
            for (int e = 0; e < 4; ++e)
                state[(n * 8 + fragment_column(lane) + e % 2) * P::dv + m * 16 +
                      fragment_row(lane) + e / 2 * 8] = s.f[m][n].value[e];
}
