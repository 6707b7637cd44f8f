// kkt_solve, materialized: T = (I + L)^-1 of every chunk and value head, written to global memory.
// See kkt_solve.h for the mathematics and the tensors' shapes.
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
// Shared memory, in this order (kkt_solve.c lists the same buffers):
//
//     tile    K, CHUNK x (DK + 8) 2-byte elements: the odd number of 16-byte units a row keeps
//             ldmatrix free of conflicts; in step 3 the heads' lower triangles take its place
//     lower   HEADS_PER_BLOCK x LowerBlocks, fp32, over the tile
//     beta    HEADS_PER_BLOCK x CHUNK, fp32
//     sum, row, column    as beta; tables of the gate (with a gate only)
//     dense   a CHUNK x (CHUNK + 8) tile of T a team (ASSEMBLE_FUSED 0 only)
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

enum Inverse { kRow, kRecursive, kFlat };
enum Couple { kFp32, kTf32 };
enum KLoad { kLdg, kCpAsync };

// The configuration, as the compiler was given it.
struct P {
    static constexpr int chunk = KKT_CHUNK;
    static constexpr int dk = KKT_DK;
    static constexpr bool bf16 = KKT_DTYPE == 0;
    static constexpr bool gated = KKT_GATED;
    static constexpr int threads = KKT_THREADS;
    static constexpr int heads = KKT_HEADS_PER_BLOCK;
    static constexpr Inverse inverse = (Inverse)KKT_INVERSE;
    static constexpr int block = inverse == kRow ? chunk : KKT_BASE;
    static constexpr Couple couple = (Couple)KKT_COUPLE;
    static constexpr KLoad kload = (KLoad)KKT_KLOAD;
    static constexpr bool transpose = KKT_TRANSPOSE;
    static constexpr bool negate_early = KKT_NEGATE_EARLY;
    static constexpr bool assemble_fused = KKT_ASSEMBLE_FUSED;
    static constexpr int warps = threads / kWarp;
    static constexpr int subs = chunk / 8; // 8 x 8 sub-blocks a side
    static constexpr int block_subs = block / 8;
    static constexpr int team_warps = warps > heads ? warps / heads : 1;
};

using Lower = LowerBlocks<P::chunk, P::block, KKT_BLOCK_PAD, KKT_ROW_PAD>;
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

// What of the problem this block works on.
struct Work {
    i64 first;  // token of the chunk's first row, over the whole batch
    int rows;   // valid rows, 1..chunk
    int head_k; // key head
    int head_v; // first of its value heads
};

struct Problem {
    const u16 *k;
    const float *beta;
    const float *g;
    const void *cu_seqlens; // NULL: every batch entry is one sequence of `tokens`
    u16 *t;
    i64 tokens;
    int sequences, heads_k, heads_v;
    int cu_seqlens_wide; // cu_seqlens holds 64-bit integers
};

KKT_DEVICE i64 sequence_start(const Problem &p, int n) {
    return p.cu_seqlens_wide ? ((const i64 *)p.cu_seqlens)[n] : ((const int *)p.cu_seqlens)[n];
}

// Chunk `slot` of the grid; false for a surplus one. Sequence n owns the slots from
// start(n) / chunk + n on: enough for its chunks, and known to be at most tokens / chunk +
// sequences in all without looking at the lengths.
KKT_DEVICE bool find_rows(const Problem &p, i64 slot, i64 &first, int &rows) {
    i64 start, length, chunk;
    if (p.cu_seqlens) {
        int low = 0;
        int high = p.sequences - 1;
        while (low < high) {
            const int middle = (low + high + 1) / 2;
            if (sequence_start(p, middle) / P::chunk + middle <= slot)
                low = middle;
            else
                high = middle - 1;
        }
        start = sequence_start(p, low);
        length = sequence_start(p, low + 1) - start;
        chunk = slot - (start / P::chunk + low);
    } else {
        const i64 chunks = (p.tokens + P::chunk - 1) / P::chunk;
        start = slot / chunks * p.tokens;
        length = p.tokens;
        chunk = slot % chunks;
    }
    first = start + chunk * P::chunk;
    const i64 left = length - chunk * P::chunk;
    rows = left < P::chunk ? (int)left : P::chunk;
    return left > 0;
}

KKT_DEVICE bool find_work(const Problem &p, Work &w) {
    const u32 ratio = (u32)(p.heads_v / p.heads_k);
    const u32 groups = ratio / P::heads;        // blocks a key head
    const u32 blocks = (u32)p.heads_k * groups; // blocks a chunk
    const u32 group = blockIdx.x % blocks;
    w.head_k = (int)(group / groups);
    w.head_v = (int)(w.head_k * ratio + group % groups * P::heads);
    return find_rows(p, blockIdx.x / blocks, w.first, w.rows);
}

// Step 1: K. Rows past the end are zeros.
KKT_DEVICE void load_k(const Problem &p, const Work &w, u16 *tile) {
    constexpr int units = P::dk / 8; // of 16 bytes, a row
    const u16 *k = p.k + (w.first * p.heads_k + w.head_k) * P::dk;
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
        const i64 at = (w.first + row) * p.heads_v + w.head_v + head;
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

// Step 2: this warp's tiles of K K^T.
KKT_DEVICE void multiply_k_kt(const u16 *tile, Fragment (&c)[Tiles::per_warp][2], int warp,
                              int lane) {
    // Lanes 0..15 name the rows of the left half of an operand tile, lanes 16..31 of the right.
    const u32 k = shared_address(tile + lane % 16 * Layout::k_row + lane / 16 * 8);
#pragma unroll
    for (int n = 0; n < Tiles::per_warp; ++n) {
        fragment_clear(c[n][0]);
        fragment_clear(c[n][1]);
    }
#pragma unroll 2
    for (int depth = 0; depth < P::dk; depth += 16) {
        OperandTile x;
        int loaded = -1; // strip of 16 rows that x holds
#pragma unroll
        for (int n = 0; n < Tiles::per_warp; ++n) {
            const int t = warp * Tiles::per_warp + n;
            if (t >= Tiles::count)
                break;
            const int row = tile_row(t);
            const int column = tile_column(t, row);
            if (row != loaded)
                x = load_operand_tile(k + (u32)(row * 16 * Layout::k_row + depth) * 2);
            loaded = row;
            OperandTile y = x;
            if (column != row)
                y = load_operand_tile(k + (u32)(column * 16 * Layout::k_row + depth) * 2);
            mma_x_yt<P::bf16>(c[n][0], x, y, 0);
            mma_x_yt<P::bf16>(c[n][1], x, y, 1);
        }
    }
}

// Step 3: one half (8 columns) of a tile of L of one head to shared memory. (strip_i, strip_j): the
// tile; the diagonal becomes 1 and what is above it 0.
KKT_DEVICE void store_lower(float *head, const GateTables &gate, const Fragment &c, int strip_i,
                            int strip_j, int half, int lane) {
    const int column = strip_j * 16 + half * 8 + fragment_column(lane);
    float factor[2] = {1.0f, 1.0f};
    float between = 1.0f;
    if (P::gated && strip_i != strip_j) {
        const float2 f = *(const float2 *)(gate.column + column);
        between = gate_between(gate.sum, strip_i, strip_j);
        factor[0] = f.x;
        factor[1] = f.y;
    }
#pragma unroll
    for (int e = 0; e < 2; ++e) { // upper and lower eight rows
        const int i8 = strip_i * 2 + e;
        const int j8 = strip_j * 2 + half;
        if (!Lower::has_sub(i8, j8))
            continue;
        const int row = i8 * 8 + fragment_row(lane);
        float l[2];
#pragma unroll
        for (int d = 0; d < 2; ++d) {
            const float a = c.value[2 * e + d];
            if (strip_i != strip_j) {
                l[d] = a * (gate.row[row] * between) * factor[d];
            } else {
                const int j = column + d;
                const bool below = row > j;
                const float decay =
                    P::gated ? gate_inside(gate.sum[row], gate.sum[j], below) : 1.0f;
                l[d] = below ? gate.beta[row] * a * decay : row == j ? 1.0f : 0.0f;
            }
        }
        const bool coupled = i8 / P::block_subs != j8 / P::block_subs;
        const float sign = P::negate_early && coupled ? -1.0f : 1.0f;
        float *sub = head + Lower::sub_at(i8, j8);
        store_sub<Lower, kRowMajor>(sub, sign * l[0], sign * l[1], lane);
    }
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
#pragma unroll 1
        for (int h = 0; h < P::heads; ++h) {
            float *head = lower + h * Lower::words;
            const GateTables gate = tables_of(tables, h);
            store_lower(head, gate, c[n][0], i, j, 0, lane);
            store_lower(head, gate, c[n][1], i, j, 1, lane);
            if (P::inverse == kRow && i != j)
                clear_upper(head, i, j, lane);
        }
    }
}

// Step 4: the part of T below inverted diagonal blocks, shared among the team's warps.
template <int STRIP>
KKT_DEVICE void couple(float *head, const HeadTeam &team, Part part, int parts) {
    constexpr Order order = P::transpose ? kColumnMajor : kRowMajor;
    constexpr float sign = P::negate_early ? 1.0f : -1.0f;
    const int step = 2 * part.rows; // from one part to the next
    const int column_strips = part.columns / STRIP;
    const int row_strips = part.rows / STRIP;
#pragma unroll 1
    for (int n = team.warp; n < parts * column_strips; n += HeadTeam::warps) {
        const int at = n / column_strips * step;
        const Part x = {part.row + at, part.rows, part.column + at, part.columns};
        if (P::couple == kTf32)
            multiply_left<Lower, MultiplyTf32, STRIP, order>(head, x, n % column_strips * STRIP,
                                                             team.lane);
        else
            multiply_left<Lower, MultiplyFp32, STRIP, order>(head, x, n % column_strips * STRIP,
                                                             team.lane);
    }
    team.sync();
#pragma unroll 1
    for (int n = team.warp; n < parts * row_strips; n += HeadTeam::warps) {
        const int at = n / row_strips * step;
        const Part x = {part.row + at, part.rows, part.column + at, part.columns};
        if (P::couple == kTf32)
            multiply_right<Lower, MultiplyTf32, STRIP, order>(head, x, n % row_strips * STRIP, sign,
                                                              team.lane);
        else
            multiply_right<Lower, MultiplyFp32, STRIP, order>(head, x, n % row_strips * STRIP, sign,
                                                              team.lane);
    }
    team.sync();
}

// Step 4: the inverse of one head, in place.
KKT_DEVICE void invert(float *head, const HeadTeam &team) {
    // Strips of 16 columns use each left operand twice; of 8 there are twice as many to share out.
    constexpr int strip = P::block_subs == 1 || P::chunk / 32 < HeadTeam::warps ? 1 : 2;
    if constexpr (P::block > kWarp)
        substitute_rows<Lower, P::chunk>(head, team);
    else
        substitute_blocks<Lower, P::chunk>(head, team);
    team.sync();
    if constexpr (P::inverse == kRecursive) {
#pragma unroll
        for (int size = P::block_subs; size < P::subs; size *= 2)
            couple<strip>(head, team, {size, size, 0, size}, P::subs / (2 * size));
    } else if constexpr (P::inverse == kFlat) {
#pragma unroll 1
        for (int row = P::block_subs; row < P::subs; row += P::block_subs)
            couple<strip>(head, team, {row, P::block_subs, 0, row}, 1);
    }
}

KKT_DEVICE u32 pack(float a, float b) {
    return P::bf16 ? pack_bf16(a, b) : pack_fp16(a, b);
}

// Eight elements of row `row` of T from column 8 j on, in the output's type.
KKT_DEVICE uint4 output_unit(const float *head, int row, int j) {
    const float *sub = head + Lower::sub_at(row / 8, j) + row % 8 * Lower::row_words;
    const float4 a = Lower::load_4(sub);
    const float4 b = Lower::load_4(sub + 4);
    return make_uint4(pack(a.x, a.y), pack(a.z, a.w), pack(b.x, b.y), pack(b.z, b.w));
}

// Step 4: T of one head to global memory, 16 bytes a thread.
KKT_DEVICE void store_t(const Problem &p, const Work &w, const float *head, int head_v,
                        const HeadTeam &team) {
    u16 *t = p.t + (w.first * p.heads_v + head_v) * P::chunk;
    const i64 row_stride = (i64)p.heads_v * P::chunk;
#pragma unroll 4
    for (int n = team.thread(); n < P::chunk * P::subs; n += HeadTeam::threads) {
        const int row = n / P::subs;
        const int j = n % P::subs;
        if (row < w.rows) {
            const uint4 unit = j <= row / 8 ? output_unit(head, row, j) : make_uint4(0, 0, 0, 0);
            *(uint4 *)(t + row * row_stride + j * 8) = unit;
        }
    }
}

// The same through a dense tile in shared memory that is put together piece by piece: diagonal
// blocks, what is below them, what is above.
KKT_DEVICE void assemble_t(const Problem &p, const Work &w, const float *head, int head_v,
                           u16 *dense, const HeadTeam &team) {
#pragma unroll 1
    for (int piece = 0; piece < 3; ++piece) {
        for (int n = team.thread(); n < P::chunk * P::subs; n += HeadTeam::threads) {
            const int row = n / P::subs;
            const int j = n % P::subs;
            const int i_block = row / P::block;
            const int j_block = j / P::block_subs;
            if (piece != (i_block == j_block ? 0 : i_block > j_block ? 1 : 2))
                continue;
            const uint4 unit = piece < 2 ? output_unit(head, row, j) : make_uint4(0, 0, 0, 0);
            *(uint4 *)(dense + row * Layout::dense_row + j * 8) = unit;
        }
        team.sync();
    }
    u16 *t = p.t + (w.first * p.heads_v + head_v) * P::chunk;
    const i64 row_stride = (i64)p.heads_v * P::chunk;
    for (int n = team.thread(); n < w.rows * P::subs; n += HeadTeam::threads) {
        const int row = n / P::subs;
        const int j = n % P::subs;
        *(uint4 *)(t + row * row_stride + j * 8) =
            *(const uint4 *)(dense + row * Layout::dense_row + j * 8);
    }
    team.sync(); // the tile is free for the team's next head
}

// Grid: x = chunk slot * (heads_v / HEADS_PER_BLOCK) + group of heads; see find_rows for the slots.
extern "C" __global__ void __launch_bounds__(KKT_THREADS)
    kkt_solve(const u16 *k, const float *beta, const float *g, const void *cu_seqlens, u16 *t,
              i64 tokens, int sequences, int heads_k, int heads_v, int cu_seqlens_wide) {
    extern __shared__ __align__(16) unsigned char shared[];
    u16 *tile = (u16 *)(shared + Layout::tile_at);
    float *lower = (float *)(shared + Layout::tile_at);
    float *tables = (float *)(shared + Layout::beta_at);
    u16 *dense = (u16 *)(shared + Layout::dense_at);
    const int warp = threadIdx.x / kWarp;
    const int lane = threadIdx.x % kWarp;

    const Problem p = {k,      beta,      g,       cu_seqlens, t,
                       tokens, sequences, heads_k, heads_v,    cu_seqlens_wide};
    Work w;
    if (!find_work(p, w))
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
        if (P::assemble_fused)
            store_t(p, w, head, w.head_v + h, team);
        else
            assemble_t(p, w, head, w.head_v + h, dense + team.index * P::chunk * Layout::dense_row,
                       team);
    }
}
