// gdn_fwd, fragment: the whole forward pass of Gated DeltaNet in one kernel, a chunk's tables in
// the registers of the warps that own their rows (token_rows.cuh): Gamma, A = -diag(beta) Gamma o K
// K^T and P = Gamma o Q K^T. Nothing is in flight while the block multiplies.
//
// One block takes a sequence, a value head and BLOCK_DV columns of v, and goes through the chunks:
//
//     wait for K, Q and V                                                              barrier
//     Gamma, A, P              own rows; A goes to the triangular system (triangle.cuh)
//     X                        own rows and columns, to where V was                    barrier
//     SOLVE invert: T          own columns, to shared memory                           barrier
//         V' = T X             own rows and columns, to two tiles
//     SOLVE substitute: V'     own columns of v, to two tiles                          barrier
//     O                        own rows and columns, to where X was
//     S                        own rows                                                barrier
//     ask for the next K and Q; write O; ask for the next V; S rounded, to its tile;
//     one warp: the next chunk's tables of decay
//
// With TABLES shared, P and T stay in shared memory as blocks on and below the diagonal, and Gamma
// is applied to each block as it is made.
//
// Shared memory:
//
//     tiles      fragment_tiles.cuh
//     triangle   N, D and scratch
//     t          blocks of 512 bytes (SOLVE invert only)
//     scores     the same (TABLES shared only)
#include "device/async_copy.cuh"
#include "device/types.cuh"
#include "gdn/chunk_gates.cuh"
#include "gdn/chunk_scores.cuh"
#include "gdn/chunk_tiles.cuh"
#include "gdn/fragment_tiles.cuh"
#include "gdn/mma_parameters.cuh"
#include "gdn/mma_work.cuh"
#include "gdn/sequence.cuh"
#include "gdn/token_rows.cuh"
#include "gdn/transposed_rows.cuh"
#include "gdn/triangle.cuh"

constexpr Tables kTables = (Tables)KKT_TABLES;
constexpr Solve kSolve = (Solve)KKT_SOLVE;

using Gates = ChunkGates<P::chunk>;

struct Layout : FragmentTiles {
    static constexpr int triangle_at = FragmentTiles::bytes;
    static constexpr int t_at = triangle_at + Triangle::bytes;
    static constexpr int table_bytes = P::blocks * kOperandBytes;
    static constexpr int scores_at = t_at + (kSolve == kInvert ? table_bytes : 0);
    static constexpr int bytes = scores_at + (kTables == kTablesShared ? table_bytes : 0);
};

static_assert(Layout::bytes == KKT_SMEM_BYTES, "the host's footprint and this layout differ");

// The warp's rows of N: blocks below the diagonal as operands, diagonal ones inverted.
KKT_DEVICE void put_rows(const Triangle &triangle, const TokenTable &n, const TokenGrid &grid,
                         int warp, int lane) {
    SubOperand<kParts> corner[Triangle::diagonals];
#pragma unroll
    for (int r = 0; r < TokenGrid::strips; ++r)
#pragma unroll
        for (int j = 0; j < P::strips; ++j) {
            const int i = grid.strip(r);
            const Accumulator &a = n.a[r][j];
            if (j < i) {
                Triangle::put(triangle.first, Triangle::below_at(i, j), round_block<kParts>(a),
                              lane);
            } else if (j == i) {
                put_block<Triangle::diagonals, 8, kParts>(triangle.scratch_of(warp), a, r, lane);
                corner[r] = round_pair<kParts>(a.half[0].value[2], a.half[0].value[3]);
            }
        }
    triangle.invert_diagonals(corner, warp, lane);
}

// The tables of the warp's rows: N to the triangular system, P to registers.
KKT_DEVICE TableOperands make_tables(const Triangle &triangle, const Places &at, const Gates &gates,
                                     float scale, const TokenGrid &grid, int warp, int lane) {
    TokenTable gamma, tables[2]; // A, P
    make_gamma(gamma, gates, grid, lane);
    tables[0].clear();
    tables[1].clear();
    multiply_keys(tables, {at.k, at.q}, at.k, grid);
#pragma unroll
    for (int r = 0; r < TokenGrid::strips; ++r) {
        const float *beta = gates.value() + 2 * (grid.strip(r) * 16 + fragment_row(lane));
        apply_table(tables[0], gamma, r, -beta[0], -beta[16]);
        apply_table(tables[1], gamma, r, scale, scale);
    }
    if (warp < TokenGrid::row_warps) // warps of the same rows hold the same
        put_rows(triangle, tables[0], grid, warp, lane);
    return round_table(tables[1]);
}

// V' by substitution: a warp takes whole columns of X, 16 at a time.
KKT_DEVICE void substitute_columns(const Triangle &triangle, u8 *shared, const Gates &gates,
                                   int warp, int lane) {
    for (int column = warp; column < P::block_dv / 16; column += P::warps) {
        Rows<1, P::chunk / 8> x;
        const auto tile = [&](int at) {
            return ValueTile::lane_address(shared + at + column * 32, lane);
        };
        const LaneAddress from = tile(Layout::v_at);
#pragma unroll
        for (int strip = 0; strip < P::strips; ++strip) {
            const OperandTile block =
                load_transposed_tile(from.by_columns + ValueTile::operand_at(strip, 0));
#pragma unroll
            for (int q = 0; q < 4; ++q) {
                const float2 pair = unpack_element_pair(block.quarter[q]);
                x.f[0][2 * strip + q / 2].value[q % 2 * 2] = pair.x;
                x.f[0][2 * strip + q / 2].value[q % 2 * 2 + 1] = pair.y;
            }
        }
        triangle.substitute<1>(x.f, 0, lane);
        put_columns(x, tile(Layout::values_at));
        x.scale(gates.end(), lane);
        put_columns(x, tile(Layout::ends_at));
    }
}

// V' = T X for the warp's rows and columns, T's columns dealt out to the warps first.
KKT_DEVICE void invert_and_multiply(const Triangle &triangle, u8 *t, const Places &at,
                                    const Gates &gates, const TokenGrid &grid, int warp, int lane) {
    for (int column = warp; column < P::strips; column += P::warps)
        triangle.invert(t, column, lane);
    __syncthreads();
    const auto block = [&](int r, int j) {
        return take_left_operand(t, lower_block(grid.strip(r), j), lane);
    };
    TokenValues values;
    values.clear();
    if constexpr (kTables == kTablesInRegisters) {
        TableOperands rows;
#pragma unroll
        for (int r = 0; r < TokenGrid::strips; ++r)
#pragma unroll
            for (int j = 0; j < P::strips; ++j)
                if (j <= grid.strip(r))
                    rows.block[r][j] = block(r, j);
        multiply_table(
            values, [&](int r, int j) { return rows.block[r][j]; }, at.v, grid);
    } else {
        multiply_table(values, block, at.v, grid);
    }
    put_new_values(values, at, gates, grid, lane);
}

// Grid: x splits of dv, then value heads, then sequences.
extern "C" __global__ void __launch_bounds__(P::threads, P::min_blocks)
    gdn_fwd(const u16 *q, const u16 *k, const u16 *v, const float *beta, const float *g,
            const float *h0, const int *cu_seqlens, u16 *o, float *ht, i64 tokens, int heads_k,
            int heads_v, float scale) {
    extern __shared__ __align__(1024) u8 shared[];
    u8 *const score_blocks = shared + Layout::scores_at;
    const Triangle triangle = {shared + Layout::triangle_at};
    const Gates gates = {(float *)(shared + Layout::gates_at)};
    const int warp = __shfl_sync(0xffffffffu, (int)threadIdx.x / kWarp, 0);
    const int lane = threadIdx.x % kWarp;

    const Problem p = {q, k, v, beta, g, nullptr, h0, cu_seqlens, o, ht, tokens, heads_k, heads_v};
    const Work w = Work::find(p);
    const Sequence sequence = Sequence::make(p, w);
    const TokenGrid grid = TokenGrid::make(warp);
    const StateGrid states = StateGrid::make(warp);
    const Places at = Places::make(shared, grid, states, lane);

    StateStrips state;
    load_state(state, h0 ? h0 + w.state : nullptr, states, lane);
    const bool scans = warp == P::warps - 1;
    GateRows<P::chunk> next_gates;
    const auto ask_gates = [&](i64 next) {
        if (scans && next < w.length)
            sequence.ask_gates(next_gates, next, w.rows(next), lane);
    };
    // The chunk from token `next` on: asked for, and its decay, which was asked for, scanned.
    const auto ask = [&](i64 next) {
        const int rows = w.rows(next);
        sequence.ask_keys(shared, shared + Layout::q_at, next, rows);
        if (next > 0)
            sequence.store_output(shared + Layout::v_at, next - P::chunk, P::chunk);
        sequence.ask_values(shared + Layout::v_at, next, rows);
        if (scans)
            next_gates.put(gates, scale, lane);
        put_rows<StateTile>(at.own_state, state, states);
    };
    ask_gates(0);
    if (w.length > 0)
        ask(0);

#pragma unroll 1
    for (i64 token = 0; token < w.length; token += P::chunk) {
        async_copy_wait();
        __syncthreads();
        ask_gates(token + P::chunk);
        TableOperands scores;
        if constexpr (kTables == kTablesInRegisters) {
            scores = make_tables(triangle, at, gates, scale, grid, warp, lane);
        } else {
            triangle.make(at.k, gates, warp, lane);
            put_scores(score_blocks, at, gates, scale, warp, lane);
        }
        TokenValues x;
        x.clear();
        multiply_state(x, at.k, at.state, grid);
        take_values(x, at.v, gates, grid, lane);
        put_rows<ValueTile>(at.v, x, grid);
        __syncthreads();

        if constexpr (kSolve == kSubstitute)
            substitute_columns(triangle, shared, gates, warp, lane);
        else
            invert_and_multiply(triangle, shared + Layout::t_at, at, gates, grid, warp, lane);
        __syncthreads();

        const auto score_block = [&](int r, int j) {
            if constexpr (kTables == kTablesInRegisters)
                return scores.block[r][j];
            return take_left_operand(score_blocks, lower_block(grid.strip(r), j), lane);
        };
        put_output(at, score_block, gates, grid, lane);
        update_state(state, *gates.decay(), at.k, at.own_ends, states);
        __syncthreads();
        if (token + P::chunk < w.length)
            ask(token + P::chunk);
        else
            sequence.store_output(shared + Layout::v_at, token, w.rows(token));
    }
    if (ht)
        store_state(state, ht + w.state, states, lane);
}
