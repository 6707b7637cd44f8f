// gdn_fwd, fragment: the whole forward pass of Gated DeltaNet in one kernel. What a block does, and
// how, is in fragment_block.cuh; here is the chunk's triangular system:
//
//     A = -diag(beta) Gamma o K K^T    own rows, as Gamma and P (with TABLES shared, by blocks); it
//                                      goes to triangle.cuh
//     SOLVE invert: T                  own columns, to shared memory                   barrier
//         V' = T X                     own rows and columns, to two tiles
//     SOLVE substitute: V'             own columns of v, to two tiles
//
// Shared memory:
//
//     triangle   N, D and scratch
//     t          blocks of 512 bytes (SOLVE invert only)
#include "gdn/fragment_block.cuh"

#include "device/types.cuh"
#include "gdn/transposed_rows.cuh"
#include "gdn/triangle.cuh"

constexpr Solve kSolve = (Solve)KKT_SOLVE;

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
KKT_DEVICE TableOperands make_tables(const Triangle &triangle, const Setup &b) {
    TokenTable gamma, tables[2]; // A, P
    make_gamma(gamma, b.gates, b.grid, b.lane);
    tables[0].clear();
    tables[1].clear();
    multiply_keys(tables, {b.at.k, b.at.q}, b.at.k, b.grid);
#pragma unroll
    for (int r = 0; r < TokenGrid::strips; ++r) {
        const float *beta = b.gates.value() + 2 * (b.grid.strip(r) * 16 + fragment_row(b.lane));
        apply_table(tables[0], gamma, r, -beta[0], -beta[16]);
        apply_table(tables[1], gamma, r, b.scale, b.scale);
    }
    if (b.warp < TokenGrid::row_warps) // warps of the same rows hold the same
        put_rows(triangle, tables[0], b.grid, b.warp, b.lane);
    return round_table(tables[1]);
}

// V' by substitution: a warp takes whole columns of X, 16 at a time.
KKT_DEVICE void substitute_columns(const Triangle &triangle, const Setup &b) {
    using Tiles = FragmentTiles;
    const int lane = b.lane;
    for (int column = b.warp; column < P::block_dv / 16; column += P::warps) {
        Rows<1, P::chunk / 8> x;
        const auto tile = [&](int at) {
            return ValueTile::lane_address(b.shared + at + column * 32, lane);
        };
        const LaneAddress from = tile(Tiles::v_at);
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
        put_columns(x, tile(Tiles::values_at));
        x.scale(b.gates.end(), lane);
        put_columns(x, tile(Tiles::ends_at));
    }
}

// V' = T X for the warp's rows and columns, T's columns dealt out to the warps first.
KKT_DEVICE void invert_and_multiply(const Triangle &triangle, u8 *t, const Setup &b) {
    const TokenGrid &grid = b.grid;
    for (int column = b.warp; column < P::strips; column += P::warps)
        triangle.invert(t, column, b.lane);
    __syncthreads();
    const auto block = [&](int r, int j) {
        return take_left_operand(t, lower_block(grid.strip(r), j), b.lane);
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
            values, [&](int r, int j) { return rows.block[r][j]; }, b.at.v, grid);
    } else {
        multiply_table(values, block, b.at.v, grid);
    }
    put_new_values(values, b.at, b.gates, grid, b.lane);
}

struct SolvedSystem {
    static constexpr int t_at = Triangle::bytes;
    static constexpr int bytes = t_at + (kSolve == kInvert ? P::blocks * kOperandBytes : 0);

    struct Chunk {};

    Triangle triangle;
    u8 *t;

    KKT_DEVICE SolvedSystem make(const Problem &, const Work &, u8 *base) {
        return {{base}, base + t_at};
    }

    __device__ __forceinline__ void ask(i64, int) const {}

    __device__ __forceinline__ void read(Chunk &, const Setup &, i64, int) const {}

    __device__ __forceinline__ TableOperands make(const Setup &b) const {
        return make_tables(triangle, b);
    }

    __device__ __forceinline__ void make_shared(const Setup &b) const {
        triangle.make(b.at.k, b.gates, b.warp, b.lane);
    }

    __device__ __forceinline__ void solve(const Chunk &, const Setup &b) const {
        if constexpr (kSolve == kSubstitute)
            substitute_columns(triangle, b);
        else
            invert_and_multiply(triangle, t, b);
    }
};

// Grid: x splits of dv, then value heads, then sequences.
extern "C" __global__ void __launch_bounds__(P::threads, P::min_blocks)
    gdn_fwd(const u16 *q, const u16 *k, const u16 *v, const float *beta, const float *g,
            const float *h0, const int *cu_seqlens, u16 *o, float *ht, i64 tokens, int heads_k,
            int heads_v, float scale) {
    extern __shared__ __align__(1024) u8 shared[];
    const Problem p = {q, k, v, beta, g, nullptr, h0, cu_seqlens, o, ht, tokens, heads_k, heads_v};
    run_block<SolvedSystem>(p, shared, scale);
}
