// W = T diag(beta e^G) K and U = T diag(beta) V. A block takes one value head, BLOCK_D columns of W
// or of U, and CHUNKS_PER_BLOCK neighbouring chunks one after the other. In the order data flows:
//
//     1  all threads   T and the columns X of K or V to a slot of the ring, STAGES - 1 chunks ahead
//     2  warp 0        the factors of T's columns to their table                         barrier
//     3  each warp     its strips of 16 rows times its columns, on tensor cores          barrier
//                      rounded to where X was, and out, 16 bytes at a time               barrier
//
// T is lower triangular: a strip multiplies with the strips up to its own alone.
//
// Shared memory (gdn_wu_materialized.c lists the same buffers):
//
//     t        STAGES x CHUNK x CHUNK
//     x        STAGES x CHUNK x BLOCK_D
//     factors  CHUNK floats
#include "device/copy_groups.cuh"
#include "device/decay.cuh"
#include "device/panel_tile.cuh"
#include "device/tile_math.cuh"
#include "gdn/sequences.cuh"

struct P {
    static constexpr int chunk = KKT_CHUNK;
    static constexpr int dk = KKT_DK;
    static constexpr int dv = KKT_DV;
    static constexpr int columns = KKT_BLOCK_D;
    static constexpr int threads = KKT_THREADS;
    static constexpr int warps = threads / kWarp;
    static constexpr int chunks = KKT_CHUNKS_PER_BLOCK;
    static constexpr int stages = KKT_STAGES;
    static constexpr bool bf16 = KKT_DTYPE == 0;
    static constexpr bool gated = KKT_GATED;
    static constexpr bool t_beta = KKT_T_FORM; // T diag(beta) is what t holds

    // Blocks of a value head: the columns of W, then those of U.
    static constexpr int w_splits = dk / columns;
    static constexpr int splits = w_splits + dv / columns;

    // Warps share the strips, and the columns where there are more warps than strips.
    static constexpr int strips = chunk / 16;
    static constexpr int row_warps = warps < strips ? warps : strips;
    static constexpr int column_warps = warps / row_warps;
    static constexpr int warp_strips = strips / row_warps;
    static constexpr int warp_columns = columns / column_warps;
};

using TTile = PanelTile<P::chunk, P::chunk>;
using XTile = PanelTile<P::chunk, P::columns>;

struct Layout {
    static constexpr int t_at = 0;
    static constexpr int x_at = t_at + P::stages * TTile::bytes;
    static constexpr int factors_at = x_at + P::stages * XTile::bytes;
    static constexpr int bytes = factors_at + P::chunk * 4;
};

static_assert(Layout::bytes == KKT_SMEM_BYTES, "the host's footprint and this layout differ");
static_assert(P::warp_columns % 16 == 0, "a warp multiplies blocks of 16 columns");
static_assert(P::dk % P::columns == 0 && P::dv % P::columns == 0, "whole blocks of columns");

struct Problem {
    const u16 *t;
    const u16 *x; // K or V, at the block's head and columns
    u16 *out;     // W or U, likewise
    const float *beta, *g;
    Sequences sequences;
    i64 t_stride, x_stride, out_stride; // elements from token to token
    int heads;                          // value heads: from token to token of beta and g
    bool is_w;
};

struct Stage {
    TTile t;
    XTile x;
};

KKT_DEVICE Stage stage_of(u8 *shared, int item) {
    const int slot = item % P::stages;
    return {{shared + Layout::t_at + slot * TTile::bytes},
            {shared + Layout::x_at + slot * XTile::bytes}};
}

// Step 1. Every item is a group of copies, an empty one where there is nothing to load.
KKT_DEVICE void load(const Problem &p, const Rows &rows, u8 *shared, int item, int thread) {
    const Stage s = stage_of(shared, item);
    if (rows.count > 0) {
        s.t.copy<P::threads>(p.t + rows.first * p.t_stride, p.t_stride, rows.count, thread);
        s.x.copy<P::threads>(p.x + rows.first * p.x_stride, p.x_stride, rows.count, thread);
    }
    copy_group_end();
}

// Step 2: beta_j, and e^{G_j} with it for W; what t holds already is left out.
KKT_DEVICE void put_factors(const Problem &p, const Rows &rows, float *table, int lane) {
    using Gates = RowGates<P::chunk>;
    Gates gates, betas;
    float factor[Gates::count];
    if (!P::t_beta)
        betas.ask(p.beta + rows.first * p.heads, p.heads, rows.count, lane);
    if (P::gated && p.is_w) {
        gates.ask(p.g + rows.first * p.heads, p.heads, rows.count, lane);
        gates.from_start(factor, lane);
    }
#pragma unroll
    for (int i = 0; i < Gates::count; ++i) {
        factor[i] = P::gated && p.is_w ? factor[i] : 1.0f;
        factor[i] *= P::t_beta ? 1.0f : betas.value[i];
    }
    Gates::put(factor, table, lane);
}

// Step 3: the warp's strips, row_warps apart, so that each warp has long and short ones.
struct Product {
    Strip<P::warp_columns> strip[P::warp_strips];

    __device__ __forceinline__ void multiply(const Stage &s, const float *table, bool scaled,
                                             int row_warp, int first_column, int lane) {
#pragma unroll
        for (int m = 0; m < P::warp_strips; ++m)
            strip[m].clear();
#pragma unroll 1
        for (int depth = 0; depth <= (P::warp_strips - 1) * P::row_warps + row_warp; ++depth) {
            const ColumnFactors factors = column_factors(table, depth * 16, lane);
            OperandTile t[P::warp_strips];
#pragma unroll
            for (int m = 0; m < P::warp_strips; ++m) {
                const int row = m * P::row_warps + row_warp;
                t[m] = s.t.load_left(row * 16, depth * 2, lane);
                if (scaled)
                    t[m] = scale_columns<P::bf16>(t[m], factors);
            }
#pragma unroll
            for (int n = 0; n < P::warp_columns / 16; ++n) {
                const RightTile x =
                    s.x.load_right_transposed(depth * 16, first_column / 8 + n * 2, lane);
#pragma unroll
                for (int m = 0; m < P::warp_strips; ++m)
                    if (m * P::row_warps + row_warp >= depth)
                        strip[m].template add<P::bf16>(n, t[m], x);
            }
        }
    }

    // By way of the tile that X was in; nobody else has this warp's rows and columns.
    __device__ __forceinline__ void write(const Problem &p, const Rows &rows, const XTile &tile,
                                          int row_warp, int first_column, int lane) const {
#pragma unroll
        for (int m = 0; m < P::warp_strips; ++m)
#pragma unroll
            for (int n = 0; n < P::warp_columns / 16; ++n)
                tile.store((m * P::row_warps + row_warp) * 16, first_column / 8 + n * 2,
                           strip[m].template round<P::bf16>(n), lane);
        __syncwarp();
#pragma unroll
        for (int m = 0; m < P::warp_strips; ++m) {
            const int row = (m * P::row_warps + row_warp) * 16;
            tile.write<kWarp, 16, P::warp_columns / 8>(
                p.out + (rows.first + row) * p.out_stride + first_column, p.out_stride, row,
                rows.count - row, first_column / 8, lane);
        }
    }
};

KKT_DEVICE Rows item_rows(const Problem &p, u32 first_slot, int item, int slots) {
    const u32 slot = first_slot + item;
    if (item >= P::chunks || slot >= (u32)slots)
        return {0, 0};
    return chunk_rows<P::chunk>(p.sequences, slot);
}

// Grid: x columns of W and U, head by head; y and z groups of CHUNKS_PER_BLOCK slots.
extern "C" __global__ void __launch_bounds__(P::threads)
    gdn_wu(const u16 *k, const u16 *v, const float *beta, const float *g, const u16 *t,
           const int *cu_seqlens, u16 *w, u16 *u, i64 length, int sequences, int heads_k,
           int heads_v, int slots) {
    extern __shared__ __align__(1024) u8 shared[];
    float *factors = (float *)(shared + Layout::factors_at);
    const int warp = __shfl_sync(0xffffffffu, (int)threadIdx.x / kWarp, 0);
    const int split = blockIdx.x % P::splits;
    const int head = blockIdx.x / P::splits;
    const int head_k = head / (heads_v / heads_k);
    const bool is_w = split < P::w_splits;
    const int column = (is_w ? split : split - P::w_splits) * P::columns;

    Problem p;
    p.t = t + (i64)head * P::chunk;
    p.x = is_w ? k + head_k * P::dk + column : v + head * P::dv + column;
    p.out = is_w ? w + head * P::dk + column : u + head * P::dv + column;
    p.beta = beta + head;
    p.g = g + head;
    p.sequences = {cu_seqlens, length, sequences};
    p.t_stride = (i64)heads_v * P::chunk;
    p.x_stride = is_w ? (i64)heads_k * P::dk : (i64)heads_v * P::dv;
    p.out_stride = (i64)heads_v * (is_w ? P::dk : P::dv);
    p.heads = heads_v;
    p.is_w = is_w;

    const u32 first_slot = (blockIdx.z * gridDim.y + blockIdx.y) * P::chunks;
    const int row_warp = warp % P::row_warps;
    const int first_column = warp / P::row_warps * P::warp_columns;
    const bool scaled = !P::t_beta || (P::gated && is_w);
#pragma unroll
    for (int item = 0; item < P::stages - 1; ++item)
        load(p, item_rows(p, first_slot, item, slots), shared, item, threadIdx.x);
#pragma unroll 1
    for (int item = 0; item < P::chunks; ++item) {
        const int thread = opaque(threadIdx.x);
        const int lane = thread % kWarp;
        const Rows rows = item_rows(p, first_slot, item, slots);
        load(p, item_rows(p, first_slot, item + P::stages - 1, slots), shared, item + P::stages - 1,
             thread);
        if (rows.count == 0) // the same for the whole block
            continue;
        const Stage s = stage_of(shared, item);
        if (warp == 0)
            put_factors(p, rows, factors, lane);
        copy_group_wait<P::stages - 1>();
        __syncthreads();
        Product product;
        product.multiply(s, factors, scaled, row_warp, first_column, lane);
        __syncthreads();
        product.write(p, rows, s.x, row_warp, first_column, lane);
        if (item + 1 < P::chunks)
            __syncthreads(); // the next copies go where this result was
    }
}
