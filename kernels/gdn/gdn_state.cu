// The recurrence over chunks: V' = U - W S, S+ = e^{G_last} S + K^T diag(e^{G_last - G}) V', with S
// before each chunk and V' written out. A block walks the chunks of one sequence with BLOCK_DV
// columns of one value head's state. Two roles:
//
//     copy, COPY_WARPS warps   W, K and U of the chunk STAGES - 1 ahead to the ring; the decays of
//                              the next chunk to their table; where WRITER says so, h and v_new of
//                              the chunk before from their tiles to global memory
//     compute, the others      WARP_DV columns of the state each, transposed, in registers: S^T is
//                              the left operand of S^T W^T, V'^T that of V'^T K, and both come from
//                              the accumulators they are in with nothing moved between lanes
//
// All meet once a chunk: then the chunk's tiles and decays are there, and those of the chunk before
// are used up. Between, a warp that computes does without the others:
//
//     1  S^T rounded: an operand, and, transposed back, h to a tile; X^T = S^T W^T
//     2  V'^T = U^T - X^T; rounded and transposed back it is v_new, to a tile
//     3  S^T = e^{G_last} S^T + (V'^T diag(e^{G_last - G})) K
//
// Shared memory (gdn_state_materialized.c lists the same buffers):
//
//     w, k     STAGES x CHUNK x DK each
//     u        STAGES x CHUNK x BLOCK_DV
//     h        2 x DK x BLOCK_DV, on its way out         where the copying warps write
//     v_new    2 x CHUNK x BLOCK_DV, likewise
//     out      a tile of WARP_DV columns a warp: h,      where those that compute write
//              and then v_new, on their way out
//     decays   2 x (CHUNK + 4) floats: e^{G_last - G} of each row, then e^{G_last}; with a gate
#include "device/copy_groups.cuh"
#include "device/decay.cuh"
#include "device/panel_tile.cuh"
#include "device/tile_math.cuh"
#include "gdn/sequences.cuh"

struct P {
    static constexpr int chunk = KKT_CHUNK;
    static constexpr int dk = KKT_DK;
    static constexpr int dv = KKT_DV;
    static constexpr int columns = KKT_BLOCK_DV;
    static constexpr int warp_columns = KKT_WARP_DV;
    static constexpr int warps = columns / warp_columns;
    static constexpr int copy_threads = KKT_COPY_WARPS * kWarp;
    static constexpr int threads = warps * kWarp + copy_threads;
    static constexpr int stages = KKT_STAGES;
    static constexpr bool copy_writes = KKT_WRITER;
    static constexpr bool bf16 = KKT_DTYPE == 0;
    static constexpr bool gated = KKT_GATED;

    static constexpr int splits = dv / columns;
    static constexpr int groups = warp_columns / 16; // of 16 columns of the state, a warp
};

using KeyTile = PanelTile<P::chunk, P::dk>;
using ValueTile = PanelTile<P::chunk, P::columns>;
// Results on their way out: the block's, or a warp's own.
constexpr int kOutColumns = P::copy_writes ? P::columns : P::warp_columns;
using StateOut = PanelTile<P::dk, kOutColumns>;
using ValueOut = PanelTile<P::chunk, kOutColumns>;

struct Layout {
    static constexpr int w_at = 0;
    static constexpr int k_at = w_at + P::stages * KeyTile::bytes;
    static constexpr int u_at = k_at + P::stages * KeyTile::bytes;
    static constexpr int out_at = u_at + P::stages * ValueTile::bytes;
    static constexpr int v_new_at = out_at + 2 * StateOut::bytes; // where the copying warps write
    static constexpr int warp_bytes = larger(StateOut::bytes, ValueOut::bytes); // where not
    static constexpr int decays_at =
        P::copy_writes ? v_new_at + 2 * ValueOut::bytes : out_at + P::warps * warp_bytes;
    static constexpr int decay_words = P::chunk + 4;
    static constexpr int bytes = decays_at + (P::gated ? 2 * decay_words * 4 : 0);
};

static_assert(Layout::bytes == KKT_SMEM_BYTES, "the host's footprint and this layout differ");

struct Problem {
    const u16 *w, *k, *u; // at the block's head and columns
    const float *g;
    u16 *h, *v_new;                     // likewise
    i64 key_stride, w_stride, u_stride; // elements from token to token
    i64 slot_stride;                    // elements from slot to slot of h
    int heads;                          // value heads: from token to token of g
};

struct Stage {
    KeyTile w, k;
    ValueTile u;
};

KKT_DEVICE Stage stage_of(u8 *shared, int chunk) {
    const int slot = chunk % P::stages;
    return {{shared + Layout::w_at + slot * KeyTile::bytes},
            {shared + Layout::k_at + slot * KeyTile::bytes},
            {shared + Layout::u_at + slot * ValueTile::bytes}};
}

// What a chunk leaves behind; a warp's own tiles share their place.
struct Results {
    StateOut h;
    ValueOut v_new;
};

KKT_DEVICE Results results_of(u8 *shared, int chunk, int warp) {
    if (!P::copy_writes) {
        u8 *own = shared + Layout::out_at + warp * Layout::warp_bytes;
        return {{own}, {own}};
    }
    return {{shared + Layout::out_at + chunk % 2 * StateOut::bytes},
            {shared + Layout::v_new_at + chunk % 2 * ValueOut::bytes}};
}

// The decays of a chunk.
KKT_DEVICE float *decays_of(u8 *shared, int chunk) {
    return (float *)(shared + Layout::decays_at) + chunk % 2 * Layout::decay_words;
}

// Where the two roles meet. Each comes to it on a way of its own: barrier.sync allows that, the
// block's plain barrier and bar.sync want all threads at one and the same instruction (PTX ISA,
// "barrier": .aligned).
KKT_DEVICE void meet() {
    asm volatile("barrier.sync 1, %0;" ::"n"(P::threads) : "memory");
}

// ---- the warps that copy ----

// Every chunk is a group of copies, an empty one past the end. Rows past the end are 0.
KKT_DEVICE void load(const Problem &p, const SequenceRows &rows, u8 *shared, int chunk,
                     int thread) {
    const int left = rows.count - chunk * P::chunk;
    if (left > 0) {
        const Stage s = stage_of(shared, chunk);
        const i64 first = rows.first + (i64)chunk * P::chunk;
        s.w.copy<P::copy_threads>(p.w + first * p.w_stride, p.w_stride, left, thread);
        s.k.copy<P::copy_threads>(p.k + first * p.key_stride, p.key_stride, left, thread);
        s.u.copy<P::copy_threads>(p.u + first * p.u_stride, p.u_stride, left, thread);
    }
    copy_group_end();
}

using Gates = RowGates<P::chunk>;

KKT_DEVICE void ask_gates(const Problem &p, const SequenceRows &rows, Gates &gates, int chunk,
                          int lane) {
    const i64 first = rows.first + (i64)chunk * P::chunk;
    gates.ask(p.g + first * p.heads, p.heads, rows.count - chunk * P::chunk, lane);
}

KKT_DEVICE void put_decays(const Gates &gates, float *table, int lane) {
    float to_end[Gates::count];
    const float whole = gates.to_end(to_end, lane);
    Gates::put(to_end, table, lane);
    if (lane == 0)
        table[P::chunk] = whole;
}

// h and v_new of a chunk, by all warps that copy.
KKT_DEVICE void write(const Problem &p, const SequenceRows &rows, u8 *shared, int chunk,
                      int thread) {
    constexpr int units = kOutColumns / 8;
    const Results r = results_of(shared, chunk, 0);
    r.h.write<P::copy_threads, P::dk, units>(p.h + (rows.slot + chunk) * p.slot_stride, P::dv, 0,
                                             P::dk, 0, thread);
    const int first = chunk * P::chunk;
    r.v_new.write<P::copy_threads, P::chunk, units>(p.v_new + (rows.first + first) * p.u_stride,
                                                    p.u_stride, 0, rows.count - first, 0, thread);
}

KKT_DEVICE void copy_chunks(const Problem &p, const SequenceRows &rows, u8 *shared, int chunks,
                            int thread) {
    const int lane = thread % kWarp;
    const bool scans = P::gated && thread < kWarp; // one warp does
    Gates gates;
    if (scans)
        ask_gates(p, rows, gates, 0, lane);
#pragma unroll 1
    for (int stage = 0; stage < P::stages - 1; ++stage)
        load(p, rows, shared, stage, thread);
#pragma unroll 1
    for (int chunk = 0; chunk < chunks; ++chunk) {
        if (scans) {
            put_decays(gates, decays_of(shared, chunk), lane);
            ask_gates(p, rows, gates, chunk + 1, lane);
        }
        copy_group_wait<P::stages - 2>();
        meet();
        load(p, rows, shared, chunk + P::stages - 1, thread);
        if (P::copy_writes && chunk > 0)
            write(p, rows, shared, chunk - 1, thread);
    }
    if (P::copy_writes) {
        meet();
        if (chunks > 0)
            write(p, rows, shared, chunks - 1, thread);
    }
}

// 16 columns of the state, transposed: rows are columns of the state, columns are those of a key.
using State = Strip<P::dk>;
using Values = Strip<P::chunk>; // V'^T or X^T: columns are tokens

// ---- the state's way in and out, in fp32 ----

// Calls `visit(value, element of dk x dv)` for what a lane holds.
template <class Visit>
KKT_DEVICE void for_state(State &s, int first_column, int lane, const Visit &visit) {
#pragma unroll
    for (int n = 0; n < State::count; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int d = n * 8 + fragment_column(lane) + i % 2;
            const int column = first_column + fragment_row(lane) + i / 2 * 8;
            visit(s.part[n].value[i], d * P::dv + column);
        }
}

// ---- the warps that compute ----

struct Warp {
    State state[P::groups];
    Values values[P::groups];
    int column;   // first of the warp's within the block
    int out_unit; // the same in the tiles of results, in units
    int lane;

    // X^T = S^T W^T; S rounded goes to `h` as well.
    __device__ __forceinline__ void multiply_w(const KeyTile &w, const StateOut &h) {
#pragma unroll
        for (int m = 0; m < P::groups; ++m)
            values[m].clear();
#pragma unroll
        for (int d = 0; d < P::dk / 16; ++d) {
            OperandTile s[P::groups];
#pragma unroll
            for (int m = 0; m < P::groups; ++m) {
                s[m] = state[m].template round<P::bf16>(d);
                h.store_transposed(d * 16, out_unit + m * 2, s[m], lane);
            }
#pragma unroll
            for (int c = 0; c < P::chunk / 16; ++c) {
                const RightTile rows = w.load_right(c * 16, d * 2, lane);
#pragma unroll
                for (int m = 0; m < P::groups; ++m)
                    values[m].template add<P::bf16>(c, s[m], rows);
            }
        }
    }

    // V'^T = U^T - X^T; V' rounded goes to `v_new`.
    __device__ __forceinline__ void subtract(const ValueTile &u, const ValueOut &v_new) {
#pragma unroll
        for (int c = 0; c < P::chunk / 16; ++c)
#pragma unroll
            for (int m = 0; m < P::groups; ++m) {
                const OperandTile t = u.load_transposed(c * 16, column / 8 + m * 2, lane);
#pragma unroll
                for (int q = 0; q < 4; ++q) {
                    const float2 pair = unpack_pair<P::bf16>(t.quarter[q]);
                    float *x = values[m].part[2 * c + q / 2].value + q % 2 * 2;
                    x[0] = pair.x - x[0];
                    x[1] = pair.y - x[1];
                }
                v_new.store_transposed(c * 16, out_unit + m * 2,
                                       values[m].template round<P::bf16>(c), lane);
            }
    }

    // S^T = `whole` S^T + (V'^T diag(to_end)) K.
    __device__ __forceinline__ void update(const KeyTile &k, const float *to_end, float whole) {
        if (P::gated) {
#pragma unroll
            for (int m = 0; m < P::groups; ++m)
                state[m].scale_rows(whole, whole);
        }
#pragma unroll
        for (int c = 0; c < P::chunk / 16; ++c) {
            OperandTile v[P::groups];
#pragma unroll
            for (int m = 0; m < P::groups; ++m)
                v[m] = decayed(m, c, to_end);
#pragma unroll
            for (int d = 0; d < P::dk / 16; ++d) {
                const RightTile keys = k.load_right_transposed(c * 16, d * 2, lane);
#pragma unroll
                for (int m = 0; m < P::groups; ++m)
                    state[m].template add<P::bf16>(d, v[m], keys);
            }
        }
    }

    // Columns 16 c to 16 c + 15 of V'^T diag(to_end), rounded.
    __device__ __forceinline__ OperandTile decayed(int m, int c, const float *to_end) const {
        if (!P::gated)
            return values[m].template round<P::bf16>(c);
        const ColumnFactors f = column_factors(to_end, c * 16, lane);
        OperandTile t;
#pragma unroll
        for (int q = 0; q < 4; ++q) {
            const float *x = values[m].part[2 * c + q / 2].value + q % 2 * 2;
            const float2 s = q / 2 ? f.right : f.left;
            t.quarter[q] = pack_pair<P::bf16>(x[0] * s.x, x[1] * s.y);
        }
        return t;
    }
};

KKT_DEVICE void walk_chunks(const Problem &p, const SequenceRows &rows, u8 *shared, int chunks,
                            const float *h0, float *ht, int warp, int lane) {
    constexpr int units = P::warp_columns / 8;
    Warp x;
    x.column = warp * P::warp_columns;
    x.out_unit = P::copy_writes ? x.column / 8 : 0;
    x.lane = lane;
#pragma unroll
    for (int m = 0; m < P::groups; ++m)
        for_state(x.state[m], x.column + m * 16, lane,
                  [&](float &value, int at) { value = h0 ? __ldg(h0 + at) : 0.0f; });
    u16 *h = p.h + rows.slot * p.slot_stride + x.column;
    u16 *v_new = p.v_new + rows.first * p.u_stride + x.column;
#pragma unroll 1
    for (int chunk = 0; chunk < chunks; ++chunk) {
        const Stage s = stage_of(shared, chunk);
        const Results r = results_of(shared, chunk, warp);
        const float *decays = decays_of(shared, chunk);
        meet();
        x.multiply_w(s.w, r.h);
        if (!P::copy_writes) {
            __syncwarp();
            r.h.write<kWarp, P::dk, units>(h, P::dv, 0, P::dk, 0, lane);
            __syncwarp();
        }
        x.subtract(s.u, r.v_new);
        if (!P::copy_writes) {
            __syncwarp();
            r.v_new.write<kWarp, P::chunk, units>(v_new, p.u_stride, 0,
                                                  rows.count - chunk * P::chunk, 0, lane);
        }
        x.update(s.k, decays, P::gated ? decays[P::chunk] : 1.0f);
        if (!P::copy_writes)
            __syncwarp(); // the tile is written anew
        h += p.slot_stride;
        v_new += P::chunk * p.u_stride;
    }
    if (P::copy_writes)
        meet(); // the last results are there
#pragma unroll
    for (int m = 0; m < P::groups; ++m)
        for_state(x.state[m], x.column + m * 16, lane,
                  [&](float &value, int at) { ht[at] = value; });
}

// Slots that the sequence owns and has no chunk for.
KKT_DEVICE void clear_slots(const Problem &p, const SequenceRows &rows, int chunks) {
    constexpr int units = P::columns / 8;
#pragma unroll 1
    for (int slot = chunks; slot < rows.slots; ++slot)
        for (int item = threadIdx.x; item < P::dk * units; item += P::threads)
            *(uint4 *)(p.h + (rows.slot + slot) * p.slot_stride + item / units * P::dv +
                       item % units * 8) = make_uint4(0, 0, 0, 0);
}

// Grid: columns of the state, head by head, sequence by sequence.
extern "C" __global__ void __launch_bounds__(P::threads)
    gdn_state(const u16 *k, const u16 *w, const u16 *u, const float *g, const float *h0,
              const int *cu_seqlens, u16 *h, u16 *v_new, float *ht, i64 length, int sequences,
              int heads_k, int heads_v) {
    extern __shared__ __align__(1024) u8 shared[];
    const int warp = __shfl_sync(0xffffffffu, (int)threadIdx.x / kWarp, 0);
    const int lane = threadIdx.x % kWarp;
    const int column = blockIdx.x % P::splits * P::columns;
    const int head = blockIdx.x / P::splits % heads_v;
    const int n = blockIdx.x / P::splits / heads_v;
    const SequenceRows rows = sequence_rows<P::chunk>({cu_seqlens, length, sequences}, n);
    const int chunks = divide_up(rows.count, P::chunk);

    Problem p;
    p.w = w + head * P::dk;
    p.k = k + head / (heads_v / heads_k) * P::dk;
    p.u = u + head * P::dv + column;
    p.g = g + head;
    p.h = h + (i64)head * P::dk * P::dv + column;
    p.v_new = v_new + head * P::dv + column;
    p.key_stride = (i64)heads_k * P::dk;
    p.w_stride = (i64)heads_v * P::dk;
    p.u_stride = (i64)heads_v * P::dv;
    p.slot_stride = (i64)heads_v * P::dk * P::dv;
    p.heads = heads_v;

    const i64 state_at = ((i64)n * heads_v + head) * P::dk * P::dv + column;
    if (warp >= P::warps)
        copy_chunks(p, rows, shared, chunks, (int)threadIdx.x - P::warps * kWarp);
    else
        walk_chunks(p, rows, shared, chunks, h0 ? h0 + state_at : nullptr, ht + state_at, warp,
                    lane);
    clear_slots(p, rows, chunks);
}
