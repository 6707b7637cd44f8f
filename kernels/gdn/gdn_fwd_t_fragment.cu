// gdn_fwd_t, fragment: the forward pass of Gated DeltaNet with T of every chunk from kkt_solve, its
// tables in the registers of the warps that own their rows (token_rows.cuh). Nothing is in flight
// while the block multiplies.
//
// One block takes a sequence, a value head and BLOCK_DV columns of v, and goes through the chunks:
//
//     wait for K, Q and V                                                              barrier
//     T                        own rows, from global memory                 (tables in registers)
//     Gamma, P = Gamma o Q K^T own rows
//     X                        own rows and columns, to where V was                    barrier
//     V' = T X                 own rows and columns, to two tiles                      barrier
//     O                        own rows and columns, to where X was
//     S                        own rows                                                barrier
//     ask for the next K and Q; write O; ask for the next V; S rounded, to its tile;
//     one warp: the next chunk's tables of decay
//
// With TABLES shared, P and T lie in shared memory instead, as blocks on and below the diagonal,
// and Gamma is applied to each block as it is made.
//
// Shared memory:
//
//     tiles         fragment_tiles.cuh
//     scores, t     blocks of 512 bytes (TABLES shared only)
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

constexpr TForm kForm = (TForm)KKT_T_FORM;
constexpr Tables kTables = (Tables)KKT_TABLES;

using Gates = ChunkGates<P::chunk>;

struct Layout : FragmentTiles {
    static constexpr int scores_at = FragmentTiles::bytes;
    static constexpr int table_bytes = kTables == kTablesShared ? P::blocks * kOperandBytes : 0;
    static constexpr int t_at = scores_at + table_bytes;
    static constexpr int bytes = t_at + table_bytes;
};

static_assert(Layout::bytes == KKT_SMEM_BYTES, "the host's footprint and this layout differ");

// The warp's rows of T.
KKT_DEVICE void load_t(TableOperands &rows, const TMatrix &t, i64 at, int valid,
                       const TokenGrid &grid, int lane) {
#pragma unroll
    for (int r = 0; r < TokenGrid::strips; ++r)
#pragma unroll
        for (int j = 0; j < P::strips; ++j)
            if (j <= grid.strip(r))
                rows.block[r][j] = t.load(at, valid, grid.strip(r), j, lane);
}

// P of the warp's rows.
KKT_DEVICE TableOperands make_scores(const Places &at, const Gates &gates, float scale,
                                     const TokenGrid &grid, int lane) {
    TokenTable gamma, scores[1];
    make_gamma(gamma, gates, grid, lane);
    scores[0].clear();
    multiply_keys(scores, {at.q}, at.k, grid);
#pragma unroll
    for (int r = 0; r < TokenGrid::strips; ++r)
        apply_table(scores[0], gamma, r, scale, scale);
    return round_table(scores[0]);
}

// Grid: x splits of dv, then value heads, then sequences.
extern "C" __global__ void __launch_bounds__(P::threads, P::min_blocks)
    gdn_fwd_t(const u16 *q, const u16 *k, const u16 *v, const float *beta, const float *g,
              const u16 *t, const float *h0, const int *cu_seqlens, u16 *o, float *ht, i64 tokens,
              int heads_k, int heads_v, float scale) {
    extern __shared__ __align__(1024) u8 shared[];
    u8 *const score_blocks = shared + Layout::scores_at;
    u8 *const t_blocks = shared + Layout::t_at;
    const Gates gates = {(float *)(shared + Layout::gates_at)};
    const int warp = __shfl_sync(0xffffffffu, (int)threadIdx.x / kWarp, 0);
    const int lane = threadIdx.x % kWarp;

    const Problem p = {
        q,      k,       v,      kForm == kTBeta ? nullptr : beta, g, t, h0, cu_seqlens, o, ht,
        tokens, heads_k, heads_v};
    const Work w = Work::find(p);
    const Sequence sequence = Sequence::make(p, w);
    const TMatrix t_matrix = TMatrix::make(p, w);
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
        if (kTables == kTablesShared)
            t_matrix.ask(t_blocks, next, rows);
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
        TableOperands t_rows, scores;
        if (kTables == kTablesInRegisters)
            load_t(t_rows, t_matrix, token, w.rows(token), grid, lane);
        async_copy_wait();
        __syncthreads();
        ask_gates(token + P::chunk);
        if (kTables == kTablesInRegisters)
            scores = make_scores(at, gates, scale, grid, lane);
        else
            put_scores(score_blocks, at, gates, scale, warp, lane);

        TokenValues x;
        x.clear();
        multiply_state(x, at.k, at.state, grid);
        take_values(x, at.v, gates, grid, lane);
        put_rows<ValueTile>(at.v, x, grid);
        __syncthreads();

        x.clear();
        const auto t_block = [&](int r, int j) {
            if constexpr (kTables == kTablesInRegisters)
                return t_rows.block[r][j];
            return load_operand_tile(shared_address(t_blocks) + TBlock::at(lane % 16, lane / 16) +
                                     lower_block(grid.strip(r), j) * TBlock::bytes);
        };
        multiply_table(x, t_block, at.v, grid);
        put_new_values(x, at, gates, grid, lane);
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
