// kkt_solve with the couplings through shared memory.
//
// One block takes one chunk and HEADS_PER_BLOCK value heads of one key head; K K^T is formed once
// for all of them, without the gate. In the order data flows:
//
//     1  all threads    K tile, beta and g to shared memory                              barrier
//     2  each warp      its 16 x 16 tiles of K K^T on tensor cores, kept in registers;
//                       the decay tables of its heads                                    barrier
//     3  each warp      L = beta K K^T decay of its tiles, for each head                 barrier
//     4  a team a head  inverse of the diagonal blocks, couplings, T to global memory    team
//     barriers
//
// A team is as many warps as there are for a head, at least one; with fewer teams than heads a team
// takes several heads in turn.
//
// Shared memory, in this order (footprint.c lists the same buffers):
//
//     tile    K, CHUNK x (DK + 8) 2-byte elements: the odd number of 16-byte units a row keeps
//             ldmatrix free of conflicts; in step 3 the heads' lower triangles take its place
//     lower   HEADS_PER_BLOCK x LowerBlocks, fp32, over the tile
//     beta    HEADS_PER_BLOCK x CHUNK, fp32
//     sum, row, column    as beta; tables of the gate (with a gate only)
//     dense   a CHUNK x (CHUNK + 8) tile of T a team (ASSEMBLE_FUSED 0 only)
#pragma once

#include "device/async_copy.cuh"
#include "device/convert.cuh"
#include "device/coupling.cuh"
#include "device/fragment.cuh"
#include "device/gate.cuh"
#include "device/lower_blocks.cuh"
#include "device/mma_sync.cuh"
#include "device/substitution.cuh"
#include "device/team.cuh"
#include "device/types.cuh"
#include "kkt_solve/parameters.cuh"
#include "kkt_solve/work.cuh"

#if KKT_COUPLE < 2

using Lower = LowerBlocks<P::chunk, P::block, KKT_BLOCK_PAD, KKT_ROW_STRIDE - 16>;
using HeadTeam = Team<P::team_warps, P::warps>;

// Tiles of 16 x 16 on and below the diagonal of K K^T; a warp takes `per_warp` in a row.
struct Tiles {
    static constexpr int side = P::chunk / 16;
    static constexpr int count = side * (side + 1) / 2;
    static constexpr int per_warp = divide_up(count, P::warps);
};

struct Layout {
    static constexpr int k_row = P::dk + 8; // elements
    static constexpr int k_bytes = P::chunk * k_row * 2;
    static constexpr int lower_bytes = divide_up(P::heads * Lower::words * 4, 16) * 16;
    static constexpr int table_bytes = P::heads * P::chunk * 4;
    static constexpr int tables = P::gated ? 4 : 1;
    static constexpr int dense_row = P::chunk + 8; // elements
    static constexpr int teams = HeadTeam::count < P::heads ? HeadTeam::count : P::heads;
    static constexpr int dense_bytes = P::assemble_fused ? 0 : teams * P::chunk * dense_row * 2;

    static constexpr int tile_at = 0;
    static constexpr int beta_at = k_bytes > lower_bytes ? k_bytes : lower_bytes;
    static constexpr int dense_at = beta_at + tables * table_bytes;
    static constexpr int bytes = dense_at + dense_bytes;
};

static_assert(Layout::bytes == KKT_SMEM_BYTES, "the host's footprint and this layout differ");
static_assert(P::chunk % P::block == 0, "blocks must divide the chunk");
static_assert(P::dk % 16 == 0, "K K^T goes in steps of 16 columns");
static_assert(P::chunk % 16 == 0, "tiles of 16 rows");

// Step 1: K. Rows past the end are zeros.
KKT_DEVICE void load_k(const Problem &p, const Work &w, u16 *tile) {
    constexpr int units = P::dk / 8; // of 16 bytes, a row
    const u16 *k = p.k + ((i64)w.first * p.heads_k + key_head(p, w, 0)) * P::dk;
    const i64 row_stride = (i64)p.heads_k * P::dk;
#pragma unroll 4
    for (int n = threadIdx.x; n < P::chunk * units; n += P::threads) {
        const int row = n / units;
        const int column = n % units * 8;
        const bool valid = row < w.rows;
        const u16 *source = k + (valid ? row * row_stride + column : 0);
        u16 *destination = tile + row * Layout::k_row + column;
        if (P::kload == kCpAsync)
            async_copy_16(destination, source, valid);
        else
            *(uint4 *)destination = valid ? load_global_16(source) : make_uint4(0, 0, 0, 0);
    }
}

// Step 1: beta and g, transposed to one row a head.
KKT_DEVICE void load_gates(const Problem &p, const Work &w, float *beta, float *sum) {
    for (int n = threadIdx.x; n < P::chunk * P::heads; n += P::threads) {
        const int row = n / P::heads;
        const int head = n % P::heads;
        const i64 at = (i64)(w.first + row) * p.heads_v + w.head_v + head;
        const bool valid = row < w.rows;
        beta[head * P::chunk + row] = valid ? __ldg(p.beta + at) : 0.0f;
        if (P::gated)
            sum[head * P::chunk + row] = valid ? __ldg(p.g + at) : 0.0f;
    }
}

// The tables of one head.
KKT_DEVICE GateTables tables_of(float *tables, int head) {
    constexpr int all = P::heads * P::chunk;
    float *beta = tables + head * P::chunk;
    if (!P::gated)
        return {beta, nullptr, beta, nullptr};
    return {beta, beta + all, beta + 2 * all, beta + 3 * all};
}

// Row of tile n in the list (0,0) (1,0) (1,1) (2,0) ...
KKT_DEVICE int tile_row(int n) {
    int row = 0;
#pragma unroll
    for (int i = 1; i < Tiles::side; ++i)
        row += n >= i * (i + 1) / 2;
    return row;
}

KKT_DEVICE int tile_column(int n, int row) {
    return n - row * (row + 1) / 2;
}

// Step 2: this warp's tiles of K K^T. A warp at the end of the list repeats its last tile rather
// than branch.
KKT_DEVICE void multiply_k_kt(const u16 *tile, Fragment (&c)[Tiles::per_warp][2], int warp,
                              int lane) {
    // Lanes 0..15 name the rows of the left half of an operand tile, lanes 16..31 of the right.
    const u32 k = shared_address(tile + lane % 16 * Layout::k_row + lane / 16 * 8);
    u32 x_at[Tiles::per_warp], y_at[Tiles::per_warp];
#pragma unroll
    for (int n = 0; n < Tiles::per_warp; ++n) {
        const int t = min(warp * Tiles::per_warp + n, Tiles::count - 1);
        const int row = tile_row(t);
        x_at[n] = k + (u32)(row * 16 * Layout::k_row) * 2;
        y_at[n] = k + (u32)(tile_column(t, row) * 16 * Layout::k_row) * 2;
        fragment_clear(c[n][0]);
        fragment_clear(c[n][1]);
    }
#pragma unroll(P::dk <= 128 ? 8 : 2)
    for (int depth = 0; depth < P::dk; depth += 16) {
        OperandTile x, y;
#pragma unroll
        for (int n = 0; n < Tiles::per_warp; ++n) {
            if (n == 0 || x_at[n] != x_at[n - 1])
                x = load_operand_tile(x_at[n] + depth * 2);
            y = x;
            if (y_at[n] != x_at[n])
                y = load_operand_tile(y_at[n] + depth * 2);
            mma_x_yt<P::bf16>(c[n][0], x, y, 0);
            mma_x_yt<P::bf16>(c[n][1], x, y, 1);
        }
    }
}

// Where a lane's elements of a 16 x 16 tile of L go: word offsets in a head, by 8 x 8 sub-block.
struct TilePlace {
    int row, column; // of the lane's first element, in the chunk
    int at[2][2];    // [lower eight rows][right eight columns]
};

KKT_DEVICE TilePlace place_tile(int strip_i, int strip_j, int lane) {
    TilePlace p;
    p.row = strip_i * 16 + fragment_row(lane);
    p.column = strip_j * 16 + fragment_column(lane);
#pragma unroll
    for (int e = 0; e < 2; ++e)
#pragma unroll
        for (int half = 0; half < 2; ++half)
            p.at[e][half] = Lower::sub_at(strip_i * 2 + e, strip_j * 2 + half) +
                            fragment_row(lane) * Lower::row_words + fragment_column(lane);
    return p;
}

// Step 3: a tile of L below the diagonal strip, for one head. Blocks that couplings read are
// operands and nothing else: negated and rounded here where that is asked for.
KKT_DEVICE void store_tile_below(float *head, const GateTables &gate, const Fragment (&c)[2],
                                 const TilePlace &p, float between, bool coupled) {
    const float factor = P::negate_early && coupled ? -between : between;
    const float rows[2] = {gate.row[p.row] * factor, gate.row[p.row + 8] * factor};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        float2 columns = make_float2(1.0f, 1.0f);
        if (P::gated)
            columns = *(const float2 *)(gate.column + p.column + half * 8);
#pragma unroll
        for (int e = 0; e < 2; ++e) {
            float a = c[half].value[2 * e] * rows[e] * columns.x;
            float b = c[half].value[2 * e + 1] * rows[e] * columns.y;
            if (P::couple == kTf32 && coupled) {
                a = round_tf32(a);
                b = round_tf32(b);
            }
            Lower::store_2(head + p.at[e][half], a, b);
        }
    }
}

// Step 3: a tile on the diagonal. Substitution in registers reads nothing on or above the diagonal;
// substitute_rows needs ones and zeros there.
KKT_DEVICE void store_tile_diagonal(float *head, const GateTables &gate, const Fragment (&c)[2],
                                    const TilePlace &p) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const int column = p.column + half * 8;
        float2 sum_j = make_float2(0.0f, 0.0f);
        if (P::gated)
            sum_j = *(const float2 *)(gate.sum + column);
#pragma unroll
        for (int e = half; e < 2; ++e) {
            const int row = p.row + e * 8;
            const bool coupled = P::block == 8 && e > half; // below 8 x 8 diagonal blocks
            const float beta = P::negate_early && coupled ? -gate.beta[row] : gate.beta[row];
            float a = beta * c[half].value[2 * e];
            float b = beta * c[half].value[2 * e + 1];
            if (P::gated) {
                a *= gate_inside(gate.sum[row], sum_j.x, row > column);
                b *= gate_inside(gate.sum[row], sum_j.y, row > column + 1);
            }
            if (P::couple == kTf32 && coupled) {
                a = round_tf32(a);
                b = round_tf32(b);
            }
            if (P::block > kWarp) {
                a = row > column ? a : row == column ? 1.0f : 0.0f;
                b = row > column + 1 ? b : row == column + 1 ? 1.0f : 0.0f;
            }
            Lower::store_2(head + p.at[e][half], a, b);
        }
    }
    if (P::block > kWarp)
        Lower::store_2(head + p.at[0][1], 0.0f, 0.0f);
}

// Step 3 for substitute_rows: zeros above the diagonal.
KKT_DEVICE void clear_upper(float *head, int strip_i, int strip_j, int lane) {
#pragma unroll
    for (int n = 0; n < 4; ++n) {
        float *sub = head + Lower::sub_at(strip_j * 2 + n / 2, strip_i * 2 + n % 2);
        store_sub<Lower, kRowMajor>(sub, 0.0f, 0.0f, lane);
    }
}

KKT_DEVICE void store_tiles(float *lower, float *tables, const Fragment (&c)[Tiles::per_warp][2],
                            int warp, int lane) {
#pragma unroll
    for (int n = 0; n < Tiles::per_warp; ++n) {
        const int t = warp * Tiles::per_warp + n;
        if (t >= Tiles::count)
            break;
        const int i = tile_row(t);
        const int j = tile_column(t, i);
        const bool coupled = i * 16 / P::block != j * 16 / P::block;
        const TilePlace place = place_tile(i, j, lane);
#pragma unroll(Tiles::per_warp <= 3 ? P::heads : 1)
        for (int h = 0; h < P::heads; ++h) {
            float *head = lower + h * Lower::words;
            const GateTables gate = tables_of(tables, h);
            if (i == j) {
                store_tile_diagonal(head, gate, c[n], place);
            } else {
                const float between = P::gated && i > j + 1 ? gate_between(gate.sum, i, j) : 1.0f;
                store_tile_below(head, gate, c[n], place, between, coupled);
                if (P::block > kWarp)
                    clear_upper(head, i, j, lane);
            }
        }
    }
}

// Step 4: PARTS parts of T, each ROWS x COLUMNS sub-blocks below inverted diagonal blocks; the
// first begins at sub-block row `row`, the others follow along the diagonal. Strips are shared
// among the team's warps.
template <int ROWS, int COLUMNS, int PARTS>
KKT_DEVICE void couple(float *head, const HeadTeam &team, int row) {
    constexpr Order order = P::transpose ? kColumnMajor : kRowMajor;
    constexpr float sign = P::negate_early ? 1.0f : -1.0f;
    // Strips of 16 columns use each left operand twice; of 8 there are twice as many to share out.
    constexpr int strip = P::block_subs == 1 || P::chunk / 32 < HeadTeam::warps ? 1 : 2;
    constexpr int column_strips = COLUMNS / strip;
    constexpr int row_strips = ROWS / strip;
#pragma unroll(P::unroll)
    for (int n = 0; n < divide_up(PARTS * column_strips, HeadTeam::warps); ++n) {
        const int task = n * HeadTeam::warps + team.warp;
        if (HeadTeam::warps > 1 && task >= PARTS * column_strips)
            break;
        const int at = task / column_strips * 2 * ROWS;
        const int first = task % column_strips * strip;
        const Part<ROWS, COLUMNS> x = {row + at, at};
        if (P::couple == kTf32)
            multiply_left<Lower, MultiplyTf32, strip, order>(head, x, first, team.lane);
        else
            multiply_left<Lower, MultiplyFp32, strip, order>(head, x, first, team.lane);
    }
    team.sync();
#pragma unroll(P::unroll)
    for (int n = 0; n < divide_up(PARTS * row_strips, HeadTeam::warps); ++n) {
        const int task = n * HeadTeam::warps + team.warp;
        if (HeadTeam::warps > 1 && task >= PARTS * row_strips)
            break;
        const int at = task / row_strips * 2 * ROWS;
        const int first = task % row_strips * strip;
        const Part<ROWS, COLUMNS> x = {row + at, at};
        if (P::couple == kTf32)
            multiply_right<Lower, MultiplyTf32, strip, order>(head, x, first, sign, team.lane);
        else
            multiply_right<Lower, MultiplyFp32, strip, order>(head, x, first, sign, team.lane);
    }
    team.sync();
}

// Neighbouring blocks of SIZE sub-blocks to blocks of twice the size, until there is one.
template <int SIZE> KKT_DEVICE void couple_recursive(float *head, const HeadTeam &team) {
    if constexpr (SIZE < P::subs) {
        couple<SIZE, SIZE, P::subs / (2 * SIZE)>(head, team, SIZE);
        couple_recursive<2 * SIZE>(head, team);
    }
}

// The block row that begins at sub-block ROW to the inverse above it, then the next.
template <int ROW> KKT_DEVICE void couple_flat(float *head, const HeadTeam &team) {
    if constexpr (ROW < P::subs) {
        couple<P::block_subs, ROW, 1>(head, team, ROW);
        couple_flat<ROW + P::block_subs>(head, team);
    }
}

// Step 4: the inverse of one head, in place.
KKT_DEVICE void invert(float *head, const HeadTeam &team) {
    if constexpr (P::block > kWarp)
        substitute_rows<Lower, P::chunk>(head, team);
    else
        substitute_blocks<Lower, P::chunk>(head, team);
    team.sync();
    if constexpr (P::inverse == kRecursive)
        couple_recursive<P::block_subs>(head, team);
    else if constexpr (P::inverse == kFlat)
        couple_flat<P::block_subs>(head, team);
}

KKT_DEVICE u32 pack(float a, float b) {
    return P::bf16 ? pack_bf16(a, b) : pack_fp16(a, b);
}

KKT_DEVICE float4 multiply_4(const float4 &a, const float4 &b) {
    return make_float4(a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w);
}

// Eight elements of a row of a sub-block from `word` on, in the output's form and type; `beta` is
// that of their columns.
KKT_DEVICE uint4 output_unit(const float *word, const float *beta) {
    float4 a = Lower::load_4(word);
    float4 b = Lower::load_4(word + 4);
    if (P::times_beta) {
        a = multiply_4(a, *(const float4 *)beta);
        b = multiply_4(b, *(const float4 *)(beta + 4));
    }
    return make_uint4(pack(a.x, a.y), pack(a.z, a.w), pack(b.x, b.y), pack(b.z, b.w));
}

// How a team walks a chunk x chunk matrix of 16-byte units: a warp takes 8 rows (16 where a row has
// but two units) by `units` units, lanes down the rows first. So eight lanes that share a pass of
// shared memory read the eight rows of one sub-block, and 64 bytes of a row leave together.
struct Walk {
    static constexpr int units = P::subs < 4 ? P::subs : 4;
    static constexpr int rows = kWarp / units;
    static constexpr int across = P::subs / units; // steps a row of sub-blocks
    static constexpr int steps = P::chunk / rows * across;
};

// Step 4: T of one head to global memory, 16 bytes a lane.
KKT_DEVICE void store_t(const Problem &p, const Work &w, const float *head, const float *beta,
                        int head_v, const HeadTeam &team) {
    const i64 row_stride = (i64)p.heads_v * P::chunk;
    const int lane_row = team.lane % Walk::rows;
    const int lane_unit = team.lane / Walk::rows;
    u16 *t = p.t + ((i64)w.first * p.heads_v + head_v) * P::chunk + lane_row * row_stride +
             lane_unit * 8;
#pragma unroll(HeadTeam::warps == 1 && P::chunk <= 64 ? 16 : 2)
    for (int n = team.warp; n < Walk::steps; n += HeadTeam::warps) {
        const int first_row = n / Walk::across * Walk::rows;
        const int first_unit = n % Walk::across * Walk::units;
        const int i = Walk::rows == 8 ? first_row / 8 : (first_row + lane_row) / 8;
        const int j = first_unit + lane_unit;
        uint4 unit = make_uint4(0, 0, 0, 0);
        if (j <= i)
            unit = output_unit(head + Lower::sub_at(i, j) + lane_row % 8 * Lower::row_words,
                               beta + j * 8);
        if (first_row + lane_row < w.rows)
            *(uint4 *)(t + first_row * row_stride + first_unit * 8) = unit;
    }
}

// The same through a dense tile in shared memory that is put together piece by piece: diagonal
// blocks, what is below them, what is above.
KKT_DEVICE void assemble_t(const Problem &p, const Work &w, const float *head, const float *beta,
                           int head_v, u16 *dense, const HeadTeam &team) {
#pragma unroll 1
    for (int piece = 0; piece < 3; ++piece) {
        for (int n = team.thread(); n < P::chunk * P::subs; n += HeadTeam::threads) {
            const int row = n / P::subs;
            const int j = n % P::subs;
            const int i_block = row / P::block;
            const int j_block = j / P::block_subs;
            if (piece != (i_block == j_block ? 0 : i_block > j_block ? 1 : 2))
                continue;
            uint4 unit = make_uint4(0, 0, 0, 0);
            if (j <= row / 8)
                unit = output_unit(head + Lower::sub_at(row / 8, j) + row % 8 * Lower::row_words,
                                   beta + j * 8);
            *(uint4 *)(dense + row * Layout::dense_row + j * 8) = unit;
        }
        team.sync();
    }
    u16 *t = p.t + ((i64)w.first * p.heads_v + head_v) * P::chunk;
    const i64 row_stride = (i64)p.heads_v * P::chunk;
    for (int n = team.thread(); n < w.rows * P::subs; n += HeadTeam::threads) {
        const int row = n / P::subs;
        const int j = n % P::subs;
        *(uint4 *)(t + row * row_stride + j * 8) =
            *(const uint4 *)(dense + row * Layout::dense_row + j * 8);
    }
    team.sync(); // the tile is free for the team's next head
}

// Grid: x groups of HEADS_PER_BLOCK value heads; y and z chunk slots, see find_block_work.
extern "C" __global__ void __launch_bounds__(KKT_THREADS)
    kkt_solve(const u16 *k, const float *beta, const float *g, const void *cu_seqlens, u16 *t,
              i64 tokens, int sequences, int heads_k, int heads_v, int cu_seqlens_wide, int groups,
              int slots) {
    extern __shared__ __align__(16) unsigned char shared[];
    u16 *tile = (u16 *)(shared + Layout::tile_at);
    float *lower = (float *)(shared + Layout::tile_at);
    float *tables = (float *)(shared + Layout::beta_at);
    u16 *dense = (u16 *)(shared + Layout::dense_at);
    const int warp = threadIdx.x / kWarp;
    const int lane = threadIdx.x % kWarp;

    const Problem p = {k,         beta,    g,       cu_seqlens,      t,      tokens,
                       sequences, heads_k, heads_v, cu_seqlens_wide, groups, slots};
    const Work w = find_block_work(p);
    if (w.rows <= 0)
        return;

    load_k(p, w, tile);
    load_gates(p, w, tables, tables + P::heads * P::chunk);
    if (P::kload == kCpAsync)
        async_copy_wait();
    __syncthreads();

    Fragment k_kt[Tiles::per_warp][2];
    multiply_k_kt(tile, k_kt, warp, lane);
    if (P::gated) {
        for (int h = warp; h < P::heads; h += P::warps)
            gate_scan<P::chunk>(tables_of(tables, h), lane);
    }
    __syncthreads(); // K was read by all, the tables are complete

    store_tiles(lower, tables, k_kt, warp, lane);
    __syncthreads();

    const HeadTeam team = HeadTeam::make(threadIdx.x);
    for (int h = team.index; h < P::heads; h += HeadTeam::count) {
        float *head = lower + h * Lower::words;
        invert(head, team);
        const float *beta_h = tables_of(tables, h).beta;
        if (P::assemble_fused)
            store_t(p, w, head, beta_h, w.head_v + h, team);
        else
            assemble_t(p, w, head, beta_h, w.head_v + h,
                       dense + team.index * P::chunk * Layout::dense_row, team);
    }
}

#endif // couplings through shared memory
