// gdn_fwd_t, fragment: the forward pass of Gated DeltaNet with T of every chunk from kkt_solve.
// What a block does, and how, is in fragment_block.cuh. V' = T X of a warp's own rows and columns;
// T's rows come from global memory before the block waits for the other tiles, or with TABLES
// shared are copied with these.
//
// Shared memory:
//
//     t     blocks of 512 bytes (TABLES shared only)
#include "gdn/fragment_block.cuh"

#include "device/types.cuh"

constexpr TForm kForm = (TForm)KKT_T_FORM;

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

struct GivenT {
    static constexpr int bytes = kTables == kTablesShared ? P::blocks * kOperandBytes : 0;

    // T's rows, with tables in registers.
    using Chunk = TableOperands;

    TMatrix t;
    u8 *blocks;

    KKT_DEVICE GivenT make(const Problem &p, const Work &w, u8 *base) {
        return {TMatrix::make(p, w), base};
    }

    __device__ __forceinline__ void ask(i64 at, int rows) const {
        if (kTables == kTablesShared)
            t.ask(blocks, at, rows);
    }

    __device__ __forceinline__ void read(Chunk &rows, const Setup &b, i64 at, int valid) const {
        if (kTables == kTablesInRegisters)
            load_t(rows, t, at, valid, b.grid, b.lane);
    }

    __device__ __forceinline__ TableOperands make(const Setup &b) const {
        TokenTable gamma, scores[1];
        make_gamma(gamma, b.gates, b.grid, b.lane);
        scores[0].clear();
        multiply_keys(scores, {b.at.q}, b.at.k, b.grid);
#pragma unroll
        for (int r = 0; r < TokenGrid::strips; ++r)
            apply_table(scores[0], gamma, r, b.scale, b.scale);
        return round_table(scores[0]);
    }

    __device__ __forceinline__ void make_shared(const Setup &) const {}

    __device__ __forceinline__ void solve(const Chunk &rows, const Setup &b) const {
        TokenValues x;
        x.clear();
        const auto block = [&](int r, int j) {
            if constexpr (kTables == kTablesInRegisters)
                return rows.block[r][j];
            return load_operand_tile(shared_address(blocks) + TBlock::at(b.lane % 16, b.lane / 16) +
                                     lower_block(b.grid.strip(r), j) * TBlock::bytes);
        };
        multiply_table(x, block, b.at.v, b.grid);
        put_new_values(x, b.at, b.gates, b.grid, b.lane);
    }
};

// Grid: x splits of dv, then value heads, then sequences.
extern "C" __global__ void __launch_bounds__(P::threads, P::min_blocks)
    gdn_fwd_t(const u16 *q, const u16 *k, const u16 *v, const float *beta, const float *g,
              const u16 *t, const float *h0, const int *cu_seqlens, u16 *o, float *ht, i64 tokens,
              int heads_k, int heads_v, float scale) {
    extern __shared__ __align__(1024) u8 shared[];
    const Problem p = {
        q,      k,       v,      kForm == kTBeta ? nullptr : beta, g, t, h0, cu_seqlens, o, ht,
        tokens, heads_k, heads_v};
    run_block<GivenT>(p, shared, scale);
}
