// A block of the fragment gdn_fwd or gdn_fwd_t: it takes a sequence, a value head and BLOCK_DV
// columns of v, and goes through the chunks with their tables in the registers of the warps that
// own their rows (token_rows.cuh). Nothing is in flight while it multiplies:
//
//     wait for K, Q and V                                                              barrier
//     Gamma, P = Gamma o Q K^T own rows, and what the system needs of K
//     X                        own rows and columns, to where V was                    barrier
//     V'                       the system's, to two tiles                              barrier
//     O                        own rows and columns, to where X was
//     S                        own rows                                                barrier
//     ask for the next K and Q; write O; ask for the next V; S rounded, to its tile;
//     one warp: the next chunk's tables of decay
//
// With TABLES shared, P lies in shared memory instead, as blocks on and below the diagonal, and
// Gamma is applied to each block as it is made.
//
// How V' comes of X is the entry's, a SYSTEM with
//
//     bytes                 of shared memory of its own
//     Chunk                 what it has in registers of a chunk
//     ask(at, rows)         copies of a chunk
//     read(chunk, at, ...)  loads of a chunk, before the block waits for the copies
//     make(setup)           P of the warp's rows for registers, and what else needs K
//     make_shared(setup)    with TABLES shared: the latter alone
//     solve(chunk, ...)     V' from X, to the tiles
//
// Shared memory:
//
//     tiles      fragment_tiles.cuh
//     system     the entry's
//     scores     P in blocks of 512 bytes (TABLES shared only)
#pragma once

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

constexpr Tables kTables = (Tables)KKT_TABLES;

using Gates = ChunkGates<P::chunk>;

// What a block and its system are at work on, and where.
struct Setup {
    u8 *shared;
    Gates gates;
    TokenGrid grid;
    Places at;
    float scale;
    int warp, lane;
};

template <class System> struct FragmentLayout : FragmentTiles {
    static constexpr int system_at = FragmentTiles::bytes;
    static constexpr int scores_at = system_at + System::bytes;
    static constexpr int bytes =
        scores_at + (kTables == kTablesShared ? P::blocks * kOperandBytes : 0);
    static_assert(bytes == KKT_SMEM_BYTES, "the host's footprint and this layout differ");
};

template <class System> KKT_DEVICE void run_block(const Problem &p, u8 *shared, float scale) {
    using Layout = FragmentLayout<System>;
    u8 *const score_blocks = shared + Layout::scores_at;
    const int warp = __shfl_sync(0xffffffffu, (int)threadIdx.x / kWarp, 0);
    const int lane = threadIdx.x % kWarp;

    const Work w = Work::find(p);
    const Sequence sequence = Sequence::make(p, w);
    const System system = System::make(p, w, shared + Layout::system_at);
    const TokenGrid grid = TokenGrid::make(warp);
    const StateGrid states = StateGrid::make(warp);
    const Places at = Places::make(shared, grid, states, lane);
    const Gates gates = {(float *)(shared + Layout::gates_at)};
    const Setup setup = {shared, gates, grid, at, scale, warp, lane};

    StateStrips state;
    load_state(state, p.h0 ? p.h0 + w.state : nullptr, states, lane);
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
        system.ask(next, rows);
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
        typename System::Chunk chunk;
        TableOperands scores;
        system.read(chunk, setup, token, w.rows(token));
        async_copy_wait();
        __syncthreads();
        ask_gates(token + P::chunk);
        if constexpr (kTables == kTablesInRegisters) {
            scores = system.make(setup);
        } else {
            system.make_shared(setup);
            put_scores(score_blocks, at, gates, scale, warp, lane);
        }
        TokenValues x;
        x.clear();
        multiply_state(x, at.k, at.state, grid);
        take_values(x, at.v, gates, grid, lane);
        put_rows<ValueTile>(at.v, x, grid);
        __syncthreads();
        system.solve(chunk, setup);
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
    if (p.ht)
        store_state(state, p.ht + w.state, states, lane);
}
