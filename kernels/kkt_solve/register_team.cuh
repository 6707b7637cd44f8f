// Step 3 of the register path where a team of two warps has a head: one warp inverts the upper left
// half, the other the lower right, by the same instructions at the same time, and both couple them,
// each in every second pair of columns:
//
//     warp 0: A    warp 1: D        columns of T's lower left quarter      0  1  2  3
//         |            |            warp that makes them                   0  1  1  0
//         +- exchange -+
//         |            |            A column j costs SIDE - j blocks of a row of M: so both warps
//     D M, columns  D M, columns    have as much to do.
#pragma once

#include "kkt_solve/register_inverse.cuh"
#include "kkt_solve/register_output.cuh"

// A block of the exchange: its four quarters as 8 x 8 matrices (matrix_move.cuh), a part each.
KKT_DEVICE void give_block(u8 *block, const Block &b, int lane) {
#pragma unroll
    for (int p = 0; p < P::parts; ++p)
        store_matrices<false>(shared_address(block + p * kWarp * 16 + lane * 16), b.part[p]);
}

template <bool TRANSPOSED> KKT_DEVICE Block take_block(const u8 *block, int lane) {
    Block b;
#pragma unroll
    for (int p = 0; p < P::parts; ++p) {
        const u32 first = shared_address(block + p * kWarp * 16);
        if constexpr (TRANSPOSED)
            b.part[p] = load_transposed_tile(first + swap_middle_matrices(lane) * 16);
        else
            b.part[p] = load_operand_tile(first + lane * 16);
    }
    return b;
}

struct TeamHead {
    static constexpr int side = Tiles::side;
    using Operands = LowerOperands<side>;

    Head whole; // of the head: for L between the halves
    Out out;
    HeadTeam team;
    u8 *region;
    const u8 *zeros;

    __device__ __forceinline__ u8 *exchange(int half, int block) const {
        return region + Layout::exchange_at + half * Exchange::half_bytes +
               block * Exchange::block_bytes;
    }

    __device__ __forceinline__ u8 *column_block(int r) const {
        return region + Layout::exchange_at + 2 * Exchange::half_bytes +
               (team.warp * side + r) * Exchange::block_bytes;
    }

    // This warp's half: into the exchange, and out.
    __device__ __forceinline__ void invert_half() const {
        const int rank = team.warp;
        u8 *quarter = region + rank * Layout::quarter_bytes;
        Head head;
        head.k_kt = whole.k_kt + rank * Tiles::triangle_bytes;
        head.factors = whole.factors.from(rank * side);
        head.scratch = quarter;
        head.lane = whole.lane;
        head.substitute_diagonal();
        Operands t;
        invert<0, side, kPlain>(t, head);
        __syncwarp(); // scratch was read
        Out here = out;
        here.tile[0] = quarter;
#pragma unroll
        for (int i = 0; i < side; ++i) {
#pragma unroll
            for (int j = 0; j <= i; ++j) {
                const Block &b = t.plain[t.at(i, j)];
                give_block(exchange(rank, t.at(i, j)), b, head.lane);
                here.put<false>(i, j, here.finish<false>(b, rank * side + j));
            }
            here.clear_above<side>(i);
        }
        here.send(quarter, rank * Layout::out_rows, rank * Layout::out_columns);
        if (rank == 0)
            clear_quarter();
    }

    // Zeros to T's upper right quarter.
    __device__ __forceinline__ void clear_quarter() const {
        using Tile = Layout::OutTile;
        if (Layout::zeros_bytes > 0 && out.map) {
            if (out.lane == 0)
                tile_store(*out.map, out.column + Layout::out_columns, out.row, zeros);
        } else {
            for (int n = out.lane; n < Layout::out_rows * Tile::units; n += kWarp)
                if (n / Tile::units < out.rows)
                    *(uint4 *)(out.t + n / Tile::units * out.row_stride + Layout::out_columns +
                               n % Tile::units * 8) = make_uint4(0, 0, 0, 0);
        }
    }

    // Column j of M^T, block by block to this warp's part of the exchange; `above` is the decay
    // from strip c to the halves' border. Rows are a loop: unrolled, the code would not stay in the
    // instruction cache.
    __device__ __forceinline__ void multiply_column(int j, const float (&above)[side]) const {
        Block a[side]; // column j of A, transposed
#pragma unroll
        for (int c = 0; c < side; ++c)
            if (c >= j)
                a[c] = take_block<true>(exchange(0, Operands::at(c, j)), out.lane);
        float decay = 1.0f; // from the border to strip r
#pragma unroll 1
        for (int r = 0; r < side; ++r) {
            Accumulator sum;
            accumulator_clear(sum);
#pragma unroll
            for (int c = 0; c < side; ++c)
                if (c >= j)
                    multiply_blocks(sum, a[c], whole.lower(side + r, c, above[c] * decay));
            give_block(column_block(r), round_block<P::parts>(sum), out.lane);
            if (P::gated)
                decay *= whole.factors.across(side + r);
        }
    }

    // Column j of D M, block by block into the tile.
    __device__ __forceinline__ void multiply_inverse(int j, const Out &here) const {
        Block m[side];
#pragma unroll
        for (int r = 0; r < side; ++r)
            m[r] = take_block<false>(column_block(r), out.lane);
#pragma unroll 1
        for (int i = 0; i < side; ++i) {
            Accumulator sum;
            accumulator_clear(sum);
#pragma unroll
            for (int r = 0; r < side; ++r)
                if (r <= i)
                    multiply_blocks(
                        sum, take_block<false>(exchange(1, Operands::at(i, r)), out.lane), m[r]);
            here.put<false>(i, j, here.finish<false>(sum, j));
        }
    }

    // Columns of the lower left quarter, two of each four for either warp.
    __device__ __forceinline__ void couple() const {
        float above[side];
        above[side - 1] = 1.0f;
#pragma unroll
        for (int c = side - 2; c >= 0; --c)
            above[c] = P::gated ? above[c + 1] * whole.factors.across(c + 1) : 1.0f;
        Out here = out;
        here.tile[0] = region;
#pragma unroll 1
        for (int n = 0; n < side / 2; ++n) {
            const int j = 2 * n + (team.warp ^ n % 2);
            multiply_column(j, above);
            __syncwarp();
            if (n == 0 && P::store >= kTmaStore) {
                out.wait(); // the upper left quarter was sent by warp 0
                team.sync();
            }
            multiply_inverse(j, here);
        }
    }

    // The lower left quarter, of which either warp has written columns.
    __device__ __forceinline__ void send_coupled() const {
        if (P::store >= kTmaStore && out.map) {
            async_proxy_fence();
            team.sync();
            if (team.thread() == 0)
                tile_store(*out.map, out.column, out.row + Layout::out_rows, region);
        } else {
            team.sync();
            out.send_pieces(region, Layout::out_rows, 0, team.thread(), HeadTeam::threads);
        }
    }
};

// One head.
KKT_DEVICE void solve_by_team(const u8 *k_kt, const Factors &factors, u8 *region, const u8 *zeros,
                              const HeadTeam &team, const Out &out) {
    TeamHead head;
    head.whole.k_kt = k_kt;
    head.whole.factors = factors;
    head.whole.lane = out.lane;
    head.out = out;
    head.team = team;
    head.region = region;
    head.zeros = zeros;
    head.invert_half();
    team.sync(); // the exchange is complete
    head.couple();
    head.send_coupled();
    out.wait();
    if (P::heads > HeadTeam::count)
        team.sync(); // the region is the next head's
}
