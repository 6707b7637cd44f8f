// kkt_solve with the couplings in registers: one warp inverts a head's chunk, and what it couples
// never leaves its fragments (register_blocks.cuh).
//
// One block takes a span of one or more chunks and HEADS_PER_BLOCK value heads of one key head; K
// K^T is formed once for all of them, without the gate. In the order data flows:
//
//     1  all threads    K to a swizzled tile, beta and g to the heads' tables              barrier
//     2  each warp      its tiles of K K^T on tensor cores; the gate's factors of its heads
//                       (a barrier where K K^T takes the place of K)
//                       K K^T to shared memory, in fragments                               barrier
//     3  a warp a head  diagonal blocks of -L to scratch, their inverses back as operands
//                       (block_inverse.cuh); couplings by halves, below; T to a tile and out
//
// From here on a warp meets no other. Couplings of (A, 0; L, D), A and D inverted already:
//
//     M^T = A^T (-L)^T        X Y^T with X = A^T and Y = -L, which K K^T fragments give directly
//     T   = D M               X Y^T with X = D and Y = M^T; swapped, it is T^T
//
// so the upper half of a matrix is wanted transposed and the lower half as it is.
//
// Shared memory (footprint.c lists the same buffers):
//
//     tile      K, SPAN x DK in swizzled panels
//     work      over the tile, when K K^T is done: a region a warp, and K K^T behind them
//     factors   HEADS_PER_BLOCK x GateFactors
//     barrier   where the tile is loaded by TMA
//
// A region holds scratch and then the tile of T over it, in two halves one behind the other where
// they are stored one by one. A block of several chunks keeps scratch behind the tile; a block of
// one head and chunk puts T over K K^T, which is dead by then.
#pragma once

#include "device/async_copy.cuh"
#include "device/block_inverse.cuh"
#include "device/fragment.cuh"
#include "device/gate_factors.cuh"
#include "device/matrix_move.cuh"
#include "device/mbarrier.cuh"
#include "device/mma_sync.cuh"
#include "device/register_blocks.cuh"
#include "device/swizzle.cuh"
#include "device/tensor_map.cuh"
#include "device/types.cuh"
#include "device/wgmma.cuh"
#include "kkt_solve/parameters.cuh"
#include "kkt_solve/work.cuh"

#if KKT_COUPLE >= 2

using Factors = GateFactors<P::span, P::gated>;
using Block = Operand<P::parts>;
using Quarter = SubOperand<P::parts>;
using Scratch = BlockScratch<P::span / 16, P::block, P::parts>;
using KTile = SwizzledTile<P::span, P::dk>;

// Blocks of 16 x 16 on and below the diagonal of the chunks, chunk by chunk and row by row.
struct Tiles {
    static constexpr int side = P::chunk / 16;
    static constexpr int chunks = P::span / P::chunk;
    static constexpr int a_chunk = side * (side + 1) / 2;
    static constexpr int count = chunks * a_chunk;
    static constexpr int bytes = count * 1024; // fp32

    // Of the block at strips (i, j) of the span, both in one chunk.
    KKT_DEVICE int at(int i, int j) {
        return i / side * a_chunk + i % side * (i % side + 1) / 2 + j % side;
    }
};

struct Layout {
    static constexpr bool halves = P::store == kTmaHalves;
    static constexpr bool alone = P::heads == 1 && Tiles::chunks == 1;
    static constexpr int out_rows = halves ? P::span / 2 : P::span;
    using OutTile = SwizzledTile<out_rows, P::chunk>;
    // Large halves take turns in one place: the second waits until the first is on its way.
    static constexpr bool in_turn = halves && P::chunk > 64;
    static constexpr int out_bytes =
        P::store == kDirect ? 0 : (halves && !in_turn ? 2 : 1) * OutTile::bytes;
    static constexpr int scratch_bytes = P::inverse == kNeumann ? 0 : Scratch::bytes;
    static constexpr int regions = P::warps < P::heads ? P::warps : P::heads;

    // Within a region.
    static constexpr int scratch_at = alone ? Tiles::bytes : Tiles::chunks > 1 ? out_bytes : 0;
    static constexpr int first_out_at = alone && halves ? Tiles::bytes : 0;
    static constexpr int second_out_at = in_turn ? first_out_at : alone ? 0 : OutTile::bytes;
    static constexpr int region_bytes =
        round_up(larger(scratch_at + scratch_bytes,
                        larger(out_bytes, halves ? first_out_at + OutTile::bytes : 0)),
                 1024);

    static constexpr int k_kt_at = alone ? 0 : regions * region_bytes;
    static constexpr int work_bytes = alone ? region_bytes : k_kt_at + Tiles::bytes;
    static constexpr int factors_at = larger(KTile::bytes, work_bytes);
    static constexpr int barrier_at = factors_at + P::heads * Factors::words * 4;
    static constexpr int bytes = barrier_at + (P::kload == kTmaLoad ? 16 : 0);
};

static_assert(Layout::bytes == KKT_SMEM_BYTES, "the host's footprint and this layout differ");
static_assert(P::dk % 64 == 0, "K lies in panels of 64 columns");
static_assert(P::mma != kWgmma || (P::span == 64 && P::threads == 128),
              "wgmma takes 64 rows and one warpgroup");
static_assert(!Layout::halves || (Tiles::chunks == 1 && P::chunk >= 32),
              "halves of one chunk, in strips of 16 rows");

// ---- step 1 ----

// K by all threads, 16 bytes at a time. Rows past the end are zeros.
KKT_DEVICE void copy_k(const Problem &p, const Work &w, u8 *tile) {
    // A thread keeps to one unit of the rows.
    constexpr int step = P::threads / KTile::units; // rows
    static_assert(P::threads % KTile::units == 0 && P::span % step == 0, "whole rows a step");
    const int unit = threadIdx.x % KTile::units;
    const int row = threadIdx.x / KTile::units;
    const i64 row_stride = (i64)p.heads_k * P::dk;
    const u16 *k = p.k + (w.first * p.heads_k + w.head_k) * P::dk;
    const u16 *source = k + row * row_stride + unit * 8;
#pragma unroll(P::kload == kTmaLoad ? 1 : 8) // by TMA: tails alone come here
    for (int n = 0; n < P::span / step; ++n) {
        const bool valid = row + n * step < w.rows;
        u8 *destination = tile + KTile::at(row + n * step, unit);
        if (P::kload == kLdg)
            *(uint4 *)destination = valid ? load_global_16(source) : make_uint4(0, 0, 0, 0);
        else
            async_copy_16(destination, valid ? source : k, valid);
        source += step * row_stride;
    }
}

// Neighbouring heads of a row in one access.
template <int HEADS> struct HeadValues { float value[HEADS]; };

template <int HEADS>
KKT_DEVICE HeadValues<HEADS> load_head_values(const float *source, bool valid) {
    HeadValues<HEADS> v;
    if constexpr (HEADS == 4) {
        const float4 x = valid ? __ldg((const float4 *)source) : make_float4(0, 0, 0, 0);
        v.value[0] = x.x, v.value[1] = x.y, v.value[2] = x.z, v.value[3] = x.w;
    } else if constexpr (HEADS == 2) {
        const float2 x = valid ? __ldg((const float2 *)source) : make_float2(0, 0);
        v.value[0] = x.x, v.value[1] = x.y;
    } else {
        v.value[0] = valid ? __ldg(source) : 0.0f;
    }
    return v;
}

// beta and g of the block's heads: asked for before K, and put into the tables after it was asked
// for. Items are (g or beta, row, group of heads); threads go along rows.
struct GateLoad {
    static constexpr int heads = P::heads % 4 == 0 ? 4 : P::heads % 2 == 0 ? 2 : 1; // an item
    static constexpr int groups = P::heads / heads;
    static constexpr int a_tensor = P::span * groups;
    static constexpr int count = (P::gated ? 2 : 1) * a_tensor;
    static constexpr int per_thread = divide_up(count, P::threads);

    HeadValues<heads> values[per_thread];

    __device__ __forceinline__ void ask(const Problem &p, const Work &w) {
#pragma unroll
        for (int n = 0; n < per_thread; ++n) {
            const int item = n * P::threads + threadIdx.x;
            const int row = item / groups % P::span;
            const float *tensor = item < a_tensor ? p.beta : p.g;
            const i64 at = (w.first + row) * p.heads_v + w.head_v + item % groups * heads;
            const bool valid = row < w.rows && item < count;
            values[n] = load_head_values<heads>(valid ? tensor + at : tensor, valid);
        }
    }

    __device__ __forceinline__ void put(float *tables) const {
#pragma unroll
        for (int n = 0; n < per_thread; ++n) {
            const int item = n * P::threads + threadIdx.x;
            const int row = item / groups % P::span;
#pragma unroll
            for (int h = 0; h < heads; ++h) {
                const Factors f =
                    Factors::at(tables + (item % groups * heads + h) * Factors::words);
                if (count % P::threads == 0 || item < count)
                    (item < a_tensor ? f.beta : f.sum_row)[row] = values[n].value[h];
            }
        }
    }
};

// ---- step 2 ----

// Fragments of K K^T in shared memory: 16 bytes a lane for each half of a block.
KKT_DEVICE void store_k_kt(u8 *k_kt, int tile, int half, const Fragment &f, int lane) {
    *(float4 *)(k_kt + (tile * 2 + half) * 512 + lane * 16) =
        make_float4(f.value[0], f.value[1], f.value[2], f.value[3]);
}

KKT_DEVICE Accumulator load_k_kt(const u8 *k_kt, int tile, int lane) {
    Accumulator a;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const float4 v = *(const float4 *)(k_kt + (tile * 2 + half) * 512 + lane * 16);
        a.half[half] = {{v.x, v.y, v.z, v.w}};
    }
    return a;
}

KKT_DEVICE OperandTile load_k(const u8 *tile, int strip, int depth, int lane) {
    return load_operand_tile(
        shared_address(tile + KTile::at(strip * 16 + lane % 16, depth / 8 + lane / 16)));
}

// Warp WARP's share of the half blocks of K K^T by mma.sync, in the order of the list. What each
// warp does is known to the compiler: a strip of K is loaded once a step, and only where it is
// needed.
template <int WARP> struct WarpTiles {
    static constexpr int halves = 2 * Tiles::count;
    static constexpr int first = WARP * halves / P::warps;
    static constexpr int count = (WARP + 1) * halves / P::warps - first;

    Fragment c[larger(count, 1)];

    // Strips of half block n.
    KKT_DEVICE int row(int n) {
        int i = 0;
#pragma unroll
        for (int k = 1; k < Tiles::side; ++k)
            i += n / 2 % Tiles::a_chunk >= k * (k + 1) / 2;
        return n / 2 / Tiles::a_chunk * Tiles::side + i;
    }
    KKT_DEVICE int column(int n) {
        const int i = row(n) % Tiles::side;
        return row(n) - i + n / 2 % Tiles::a_chunk - i * (i + 1) / 2;
    }
    // Whether a half block of the share lies in this row or column of strips; may say so of others
    // where the share spans several rows.
    KKT_DEVICE bool needs(int strip) {
        const int last = first + count - 1;
        if (row(first) == row(last))
            return strip == row(first) || (strip >= column(first) && strip <= column(last));
        return strip <= row(last);
    }

    __device__ __forceinline__ void multiply(const u8 *tile, int lane) {
#pragma unroll
        for (int n = 0; n < count; ++n)
            fragment_clear(c[n]);
#pragma unroll(P::dk <= 128 ? 8 : 2)
        for (int depth = 0; depth < P::dk; depth += 16) {
            OperandTile strip[P::span / 16];
#pragma unroll
            for (int i = 0; i < P::span / 16; ++i)
                if (needs(i))
                    strip[i] = load_k(tile, i, depth, lane);
#pragma unroll
            for (int n = 0; n < count; ++n)
                mma_x_yt<P::bf16>(c[n], strip[row(first + n)], strip[column(first + n)],
                                  (first + n) % 2);
        }
    }

    __device__ __forceinline__ void store(u8 *k_kt, int lane) const {
#pragma unroll
        for (int n = 0; n < count; ++n)
            store_k_kt(k_kt, (first + n) / 2, (first + n) % 2, c[n], lane);
    }
};

// Step 2 of this warp: tries the warps from WARP on.
template <int WARP = 0> KKT_DEVICE void multiply_tiles(u8 *shared, int warp, int lane) {
    constexpr bool over_tile = Layout::k_kt_at < KTile::bytes;
    if (WARP == P::warps - 1 || warp == WARP) {
        WarpTiles<WARP> tiles;
        tiles.multiply(shared, lane);
        if (over_tile)
            __syncthreads();
        tiles.store(shared + Layout::k_kt_at, lane);
    } else if constexpr (WARP < P::warps - 1) {
        multiply_tiles<WARP + 1>(shared, warp, lane);
    }
}

// The warpgroup's 64 x 64 product by wgmma; warp w has strip w of all columns.
struct GroupTiles {
    Fragment c[8];

    __device__ __forceinline__ void begin(const u8 *tile) {
#pragma unroll
        for (int n = 0; n < 8; ++n)
            fragment_clear(c[n]);
        wgmma_begin();
#pragma unroll
        for (int unit = 0; unit < KTile::units; unit += 2) // 16 columns
            wgmma_x_xt<P::bf16>(
                c, wgmma_operand(tile + unit / 8 * KTile::panel_bytes + unit % 8 * 16));
        wgmma_commit();
    }

    __device__ __forceinline__ void store(u8 *k_kt, int warp, int lane) const {
        const int first = warp / Tiles::side * Tiles::side; // of the warp's chunk
#pragma unroll
        for (int n = 0; n < 8; ++n)
            if (n / 2 >= first && n / 2 <= warp)
                store_k_kt(k_kt, Tiles::at(warp, n / 2), n % 2, c[n], lane);
    }
};

// ---- step 3: the output ----

// Where a warp's head goes.
struct Out {
    const TensorMap *map; // NULL where T does not go by TMA
    u16 *t;               // first row of the head's span
    i64 row_stride;       // elements
    int column, row;      // of the same in the map
    int rows;             // valid
    u8 *tile[2];          // of the halves; else [0] alone
    int lane;

    // Block (i, j) of the span, whose transpose is given where TRANSPOSED; j counts from the
    // chunk's first column.
    template <bool TRANSPOSED>
    __device__ __forceinline__ void put(int i, int j, const OperandTile &block) const {
        if constexpr (P::store == kDirect) {
            put_direct(i, j, TRANSPOSED ? transpose_tile(block) : block);
        } else {
            constexpr int strips = Layout::out_rows / 16;
            const int row =
                i % strips * 16 + lane % 8 + (TRANSPOSED ? lane / 16 : lane / 8 % 2) * 8;
            const int unit = 2 * j + (TRANSPOSED ? lane / 8 % 2 : lane / 16);
            store_matrices<TRANSPOSED>(
                shared_address(tile[i / strips] + Layout::OutTile::at(row, unit)), block);
        }
    }

    __device__ __forceinline__ void put_direct(int i, int j, const OperandTile &block) const {
#pragma unroll
        for (int q = 0; q < 4; ++q) {
            const int row = i * 16 + q % 2 * 8 + fragment_row(lane);
            u16 *at = t + row * row_stride + j * 16 + q / 2 * 8 + fragment_column(lane);
            if (row < rows)
                *(u32 *)at = block.quarter[q];
        }
    }

    // Zeros above the diagonal, in block row i of the span and of its chunk.
    __device__ __forceinline__ void clear_above(int i) const {
#pragma unroll
        for (int j = i % Tiles::side + 1; j < Tiles::side; ++j)
            put<false>(i, j, {{0, 0, 0, 0}});
    }

    // Returns when the tiles sent so far may be overwritten.
    __device__ __forceinline__ void wait() const {
        if (P::store >= kTmaStore && lane == 0)
            tile_store_wait_read();
        __syncwarp();
    }

    // Sends a finished tile: the span, or half 0 or 1 of it.
    __device__ __forceinline__ void send(int half) const {
        using Tile = Layout::OutTile;
        if constexpr (P::store == kDirect)
            return;
        if (P::store >= kTmaStore && map) {
            async_proxy_fence();
            __syncwarp();
            if (lane == 0) {
#pragma unroll
                for (int panel = 0; panel < Tile::panels; ++panel)
                    tile_store(*map, column + panel * 64, row + half * Layout::out_rows,
                               tile[half] + panel * Tile::panel_bytes);
            }
        } else {
            __syncwarp();
#pragma unroll(P::store == kStaged ? 8 : 1) // by TMA: tails alone come here
            for (int n = lane; n < Layout::out_rows * Tile::units; n += kWarp) {
                const int r = half * Layout::out_rows + n / Tile::units;
                const int unit = n % Tile::units;
                const uint4 v = *(const uint4 *)(tile[half] + Tile::at(n / Tile::units, unit));
                if (r < rows)
                    *(uint4 *)(t + r * row_stride + unit * 8) = v;
            }
        }
    }
};

// ---- step 3: the inverse ----

enum Form { kPlain = 1, kTransposed = 2 };

// The inverse of N strips, in one or both forms: block (i, j), i >= j, and its transpose.
template <int N> struct LowerOperands {
    Block plain[N * (N + 1) / 2], transposed[N * (N + 1) / 2];

    KKT_DEVICE int at(int i, int j) {
        return i * (i + 1) / 2 + j;
    }
};

// One head, as its warp sees it.
struct Head {
    const u8 *k_kt;
    Factors factors;
    u8 *scratch;
    int lane;
    Quarter below[P::span / 16]; // base 8: the lower left quarter of each diagonal block

    // Decay over the strips strictly between two.
    __device__ __forceinline__ float between(int i, int j) const {
        float product = 1.0f;
#pragma unroll
        for (int strip = j + 1; strip < i; ++strip)
            if (P::gated)
                product *= factors.across(strip);
        return product;
    }

    // Block (i, j) of -L, i > j.
    __device__ __forceinline__ Block lower(int i, int j) const {
        Accumulator a = load_k_kt(k_kt, Tiles::at(i, j), lane);
        factors.below(a, i, j, between(i, j), lane);
        return round_block<P::parts>(a);
    }

    __device__ __forceinline__ Accumulator diagonal(int i) const {
        Accumulator a = load_k_kt(k_kt, Tiles::at(i, i), lane);
        factors.diagonal(a, i, lane);
        return a;
    }

    // Inverts the diagonal blocks, into scratch.
    __device__ __forceinline__ void substitute_diagonal() {
        if constexpr (P::inverse != kNeumann) {
#pragma unroll
            for (int i = 0; i < P::span / 16; ++i) {
                const Accumulator a = diagonal(i);
                put_block<P::span / 16, P::block, P::parts>(scratch, a, i, lane);
                below[i] = round_pair<P::parts>(a.half[0].value[2], a.half[0].value[3]);
            }
            __syncwarp();
            substitute<P::span / 16, P::block, P::parts>(scratch, lane);
            __syncwarp();
        }
    }

    __device__ __forceinline__ BlockInverse<P::parts> take(int i) const {
        if constexpr (P::inverse == kNeumann)
            return double_powers<P::parts>(diagonal(i), lane);
        else if constexpr (P::block == 8)
            return take_block_8<P::span / 16, P::parts>(scratch, below[i], i, lane);
        else
            return take_block_16<P::span / 16, P::parts>(scratch, i, lane);
    }
};

// m[r][c] = (M^T)_cr of the coupling of SIZE strips above and as many below, from strip FIRST on.
template <int FIRST, int SIZE>
KKT_DEVICE void multiply_upper(Block (&m)[SIZE][SIZE], const Head &head,
                               const LowerOperands<SIZE> &upper) {
#pragma unroll
    for (int r = 0; r < SIZE; ++r) {
        Block row[SIZE];
#pragma unroll
        for (int c = 0; c < SIZE; ++c)
            row[c] = head.lower(FIRST + SIZE + r, FIRST + c);
#pragma unroll
        for (int j = 0; j < SIZE; ++j) {
            Accumulator a;
            accumulator_clear(a);
#pragma unroll
            for (int c = j; c < SIZE; ++c)
                multiply_blocks(a, upper.transposed[upper.at(c, j)], row[c]);
            m[r][j] = round_block<P::parts>(a);
        }
    }
}

// Block (i, j) of D M, or its transpose.
template <bool TRANSPOSED, int SIZE>
KKT_DEVICE Accumulator multiply_lower(const LowerOperands<SIZE> &lower,
                                      const Block (&m)[SIZE][SIZE], int i, int j) {
    Accumulator a;
    accumulator_clear(a);
#pragma unroll
    for (int r = 0; r <= i; ++r) {
        const Block &d = lower.plain[lower.at(i, r)];
        if (TRANSPOSED)
            multiply_blocks(a, m[r][j], d);
        else
            multiply_blocks(a, d, m[r][j]);
    }
    return a;
}

// The inverse of N strips from FIRST on, in the forms that are asked for.
template <int FIRST, int N, int FORMS>
KKT_DEVICE void invert(LowerOperands<N> &t, const Head &head) {
    if constexpr (N == 1) {
        const BlockInverse<P::parts> block = head.take(FIRST);
        t.plain[0] = block.plain;
        t.transposed[0] = block.transposed;
    } else {
        constexpr int half = N / 2;
        LowerOperands<half> upper, lower;
        invert<FIRST, half, FORMS | kTransposed>(upper, head);
        invert<FIRST + half, half, FORMS | kPlain>(lower, head);
        Block m[half][half];
        multiply_upper<FIRST, half>(m, head, upper);
#pragma unroll
        for (int i = 0; i < half; ++i) {
#pragma unroll
            for (int j = 0; j < half; ++j) {
                const int at = t.at(half + i, j);
                if (FORMS & kPlain)
                    t.plain[at] = round_block<P::parts>(multiply_lower<false>(lower, m, i, j));
                if (FORMS & kTransposed)
                    t.transposed[at] = round_block<P::parts>(multiply_lower<true>(lower, m, i, j));
                if (j <= i) {
                    t.plain[t.at(i, j)] = upper.plain[upper.at(i, j)];
                    t.transposed[t.at(i, j)] = upper.transposed[upper.at(i, j)];
                    t.plain[t.at(half + i, half + j)] = lower.plain[lower.at(i, j)];
                    t.transposed[t.at(half + i, half + j)] = lower.transposed[lower.at(i, j)];
                }
            }
        }
    }
}

// The diagonal half that starts at strip FIRST, into the tile; its columns start at block COLUMN.
template <bool TRANSPOSED, int FIRST, int COLUMN, int N>
KKT_DEVICE void put_half(const Out &out, const LowerOperands<N> &t) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
#pragma unroll
        for (int j = 0; j <= i; ++j)
            out.put<TRANSPOSED>(
                FIRST + i, COLUMN + j,
                output_tile<P::bf16>(TRANSPOSED ? t.transposed[t.at(i, j)] : t.plain[t.at(i, j)]));
        out.clear_above(FIRST + i);
    }
}

// The chunk that starts at strip FIRST: its inverse, block by block into the tile as it is ready.
template <int FIRST, int STRIPS> KKT_DEVICE void invert_chunk(const Head &head, const Out &out) {
    if constexpr (STRIPS == 1) {
        out.put<false>(FIRST, 0, output_tile<P::bf16>(head.take(FIRST).plain));
    } else {
        constexpr int half = STRIPS / 2;
        LowerOperands<half> upper, lower;
        invert<FIRST, half, kTransposed>(upper, head);
        invert<FIRST + half, half, kPlain>(lower, head);
        __syncwarp(); // scratch was read
        if constexpr (Layout::halves) {
            put_half<true, FIRST, 0>(out, upper);
            out.send(0);
        }
        Block m[half][half];
        multiply_upper<FIRST, half>(m, head, upper);
        if constexpr (Layout::alone)
            __syncwarp(); // K K^T was read
        if constexpr (!Layout::halves)
            put_half<true, FIRST, 0>(out, upper);
        if constexpr (Layout::in_turn)
            out.wait();
        put_half<false, FIRST + half, half>(out, lower);
#pragma unroll
        for (int i = 0; i < half; ++i)
#pragma unroll
            for (int j = 0; j < half; ++j)
                out.put<false>(FIRST + half + i, j,
                               output_tile<P::bf16>(multiply_lower<false>(lower, m, i, j)));
    }
}

template <int CHUNK> KKT_DEVICE void invert_chunks(const Head &head, const Out &out) {
    if constexpr (CHUNK < Tiles::chunks) {
        invert_chunk<CHUNK * Tiles::side, Tiles::side>(head, out);
        invert_chunks<CHUNK + 1>(head, out);
    }
}

// ---- the kernel ----

KKT_DEVICE void load_k_tile(const Work &w, const TensorMap &k_map, u8 *tile, u64 *arrived) {
    mbarrier_init(arrived, 1);
    mbarrier_expect(arrived, KTile::bytes);
#pragma unroll
    for (int panel = 0; panel < KTile::panels; ++panel)
        tile_load(tile + panel * KTile::panel_bytes, k_map, w.head_k * P::dk + panel * 64,
                  (int)w.first, arrived);
}

// Step 1. K comes by TMA where that was asked for and the span is whole. The gates are asked for
// first: they are few, and scanned while K is on its way.
KKT_DEVICE void load(const Problem &p, const Work &w, const TensorMap *k_map, u8 *shared,
                     u64 *arrived) {
    const bool by_tile = P::kload == kTmaLoad && w.rows == P::span;
    GateLoad gates;
    gates.ask(p, w);
    if (!by_tile)
        copy_k(p, w, shared);
    else if (threadIdx.x == 0)
        load_k_tile(w, *k_map, shared, arrived);
    gates.put((float *)(shared + Layout::factors_at));
    if (!by_tile) {
        if (P::kload != kLdg)
            async_copy_wait();
        if (P::mma == kWgmma)
            async_proxy_fence();
    }
    __syncthreads();
}

// Calls `work` for each head of a warp; one that has a single head is no loop.
template <class Action> KKT_DEVICE void for_heads(int warp, const Action &work) {
    if constexpr (P::warps == P::heads) {
        work(warp);
    } else {
#pragma unroll 1
        for (int head = warp; head < P::heads; head += P::warps)
            work(head);
    }
}

KKT_DEVICE void scan_gates(float *tables, int warp, int lane) {
    for_heads(warp, [&](int head) { Factors::at(tables + head * Factors::words).scan(lane); });
}

// Step 2. The gates are scanned while something is on its way: K, or its product.
KKT_DEVICE void multiply_k(const Work &w, u8 *shared, u64 *arrived, int warp, int lane) {
    constexpr bool early = P::kload == kTmaLoad || P::mma != kWgmma;
    float *tables = (float *)(shared + Layout::factors_at);
    if (early)
        scan_gates(tables, warp, lane);
    if (P::kload == kTmaLoad && w.rows == P::span)
        mbarrier_wait(arrived, 0);
    if constexpr (P::mma == kWgmma) {
        GroupTiles tiles;
        tiles.begin(shared);
        if (!early)
            scan_gates(tables, warp, lane);
        wgmma_end(tiles.c);
        if (Layout::k_kt_at < KTile::bytes)
            __syncthreads();
        tiles.store(shared + Layout::k_kt_at, warp, lane);
    } else {
        multiply_tiles(shared, warp, lane);
    }
    __syncthreads();
}

// Step 3, one head.
KKT_DEVICE void solve_head(const Problem &p, const Work &w, const TensorMap *t_map, u8 *shared,
                           int head, int warp, int lane) {
    u8 *region = shared + warp * Layout::region_bytes;
    const int head_v = w.head_v + head;
    const bool whole = w.rows == P::span;
    const Out out = {whole ? t_map : nullptr,
                     p.t + (w.first * p.heads_v + head_v) * P::chunk,
                     (i64)p.heads_v * P::chunk,
                     head_v * P::chunk,
                     (int)w.first,
                     w.rows,
                     {region + Layout::first_out_at, region + Layout::second_out_at},
                     lane};
    Head h;
    h.k_kt = shared + Layout::k_kt_at;
    h.factors = Factors::at((float *)(shared + Layout::factors_at) + head * Factors::words);
    h.scratch = region + Layout::scratch_at;
    h.lane = lane;
    h.substitute_diagonal();
    invert_chunks<0>(h, out);
    out.send(Layout::halves);
    out.wait(); // the region is the next head's, or the block's to leave
}

#if KKT_KLOAD == 2 || KKT_STORE >= 2
#define KKT_MAPS , const __grid_constant__ TensorMap k_map, const __grid_constant__ TensorMap t_map
#define KKT_MAP(map) (&(map))
#else
#define KKT_MAPS
#define KKT_MAP(map) nullptr
#endif

// Grid: x groups of HEADS_PER_BLOCK value heads; y and z span slots, see find_rows.
extern "C" __global__ void __launch_bounds__(P::threads, P::min_blocks)
    kkt_solve(const u16 *k, const float *beta, const float *g, const void *cu_seqlens, u16 *t,
              i64 tokens, int sequences, int heads_k, int heads_v, int cu_seqlens_wide, int groups,
              int slots KKT_MAPS) {
    extern __shared__ __align__(1024) u8 shared[];
    u64 *arrived = (u64 *)(shared + Layout::barrier_at);
    // Through a shuffle, for the compiler to see that it is the same in all lanes.
    const int warp = __shfl_sync(0xffffffffu, (int)threadIdx.x / kWarp, 0);
    const int lane = threadIdx.x % kWarp;

    const Problem p = {k,         beta,    g,       cu_seqlens,      t,      tokens,
                       sequences, heads_k, heads_v, cu_seqlens_wide, groups, slots};
#if KKT_STORE >= 2
    if (threadIdx.x == P::threads - 1)
        tensor_map_prefetch(t_map);
#endif
    Work w;
    if (!find_work(p, w))
        return;
    load(p, w, KKT_MAP(k_map), shared, arrived);
    multiply_k(w, shared, arrived, warp, lane);
    for_heads(warp, [&](int head) {
        solve_head(p, w, P::store >= kTmaStore ? KKT_MAP(t_map) : nullptr, shared, head, warp,
                   lane);
    });
}

#endif // couplings in registers
