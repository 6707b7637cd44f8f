// o_i = dk^-1/2 (e^{G_i} S^T q_i + sum_{j <= i} Gamma_ij (q_i . k_j) v'_j) with S the state before
// the chunk. A block takes one chunk of one value head and BLOCK_DV columns. In the order data
// flows:
//
//     1  all threads   q and k, then h and v', to their tiles, in STAGES groups of copies
//        warp 0        the decays' tables                                                barrier
//     2  each warp     P = Gamma o Q K^T of a strip of 16 rows, in registers; masked
//                      (a barrier where h and v' come as a second group)
//     3  each warp     e^G Q S of its strip and columns, + P V'                          barrier
//                      rounded to where v' was, and out, 16 bytes at a time
//
// Where there are more warps than strips, several form the same P and share the columns.
//
// Shared memory (gdn_output_materialized.c lists the same buffers):
//
//     q, k     CHUNK x DK each
//     h        DK x BLOCK_DV
//     v_new    CHUNK x BLOCK_DV; then o
//     factors  2 x CHUNK floats: s, and 2^(s_last - s) of each strip; only with a gate
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
    static constexpr int threads = KKT_THREADS;
    static constexpr int warps = threads / kWarp;
    static constexpr int stages = KKT_STAGES;
    static constexpr bool bf16 = KKT_DTYPE == 0;
    static constexpr bool gated = KKT_GATED;

    static constexpr int splits = dv / columns;
    static constexpr int strips = chunk / 16;
    static constexpr int column_warps = warps / strips;
    static constexpr int warp_columns = columns / column_warps;
};

using KeyTile = PanelTile<P::chunk, P::dk>;
using StateTile = PanelTile<P::dk, P::columns>;
using ValueTile = PanelTile<P::chunk, P::columns>;

struct Layout {
    static constexpr int q_at = 0;
    static constexpr int k_at = q_at + KeyTile::bytes;
    static constexpr int h_at = k_at + KeyTile::bytes;
    static constexpr int v_at = h_at + StateTile::bytes;
    static constexpr int factors_at = v_at + ValueTile::bytes;
    static constexpr int bytes = factors_at + (P::gated ? 2 * P::chunk * 4 : 0);
};

static_assert(Layout::bytes == KKT_SMEM_BYTES, "the host's footprint and this layout differ");
static_assert(P::column_warps >= 1 && P::warp_columns % 16 == 0, "a strip or more, a warp");

// Sums of the gates from each strip's first row on, in base 2, and the decay from each row to the
// end of its strip: between strips, a decay is a product of three that are at most 1.
struct Decays {
    const float *sum;
    const float *after;

    // The exponent of the decay from the chunk's start to a strip's.
    __device__ __forceinline__ float before(int strip) const {
        float exponent = 0.0f;
#pragma unroll 1
        for (int s = 0; s < strip; ++s)
            exponent += sum[s * kStrip + kStrip - 1];
        return exponent;
    }
};

KKT_DEVICE void put_decays(const float *g, int stride, int valid, float *table, int lane) {
#pragma unroll
    for (int first = 0; first < P::chunk; first += kWarp) {
        const int row = first + lane;
        float s = row < valid ? gate_exponent(__ldg(g + (i64)row * stride)) : 0.0f;
#pragma unroll
        for (int step = 1; step < kStrip; step *= 2) {
            const float before = __shfl_up_sync(0xffffffffu, s, step, kStrip);
            s += lane % kStrip >= step ? before : 0.0f;
        }
        const float last = __shfl_sync(0xffffffffu, s, kStrip - 1, kStrip);
        if (P::chunk % kWarp == 0 || row < P::chunk) {
            table[row] = s;
            table[P::chunk + row] = exp2_approx(last - s);
        }
    }
}

struct RowPair {
    float upper, lower; // of a lane's rows r and r + 8
};

KKT_DEVICE RowPair strip_sums(const Decays &d, int strip, int lane) {
    const float *at = d.sum + strip * kStrip + fragment_row(lane);
    return {at[0], at[8]};
}

// Gamma o: block (i, j) below the diagonal. `between` is the decay over the strips strictly
// between.
KKT_DEVICE void decay_below(Strip<16> &p, const Decays &d, RowPair s, int j, float between,
                            int lane) {
    const ColumnFactors f = column_factors(d.after, j * kStrip, lane);
    p.scale_rows(exp2_approx(s.upper) * between, exp2_approx(s.lower) * between);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const float2 c = half ? f.right : f.left;
        p.part[half].value[0] *= c.x;
        p.part[half].value[1] *= c.y;
        p.part[half].value[2] *= c.x;
        p.part[half].value[3] *= c.y;
    }
}

// Gamma o on the diagonal, 0 above it: the mask is in the exponent.
KKT_DEVICE void decay_diagonal(Strip<16> &p, const Decays &d, RowPair s, int i, int lane) {
    ColumnFactors c = {make_float2(0.0f, 0.0f), make_float2(0.0f, 0.0f)};
    if (P::gated)
        c = column_factors(d.sum, i * kStrip, lane);
    const int row = fragment_row(lane);
#pragma unroll
    for (int n = 0; n < 8; ++n) {
        const int column = n / 4 * 8 + fragment_column(lane) + n % 2;
        const float2 pair = n / 4 ? c.right : c.left;
        const float column_sum = n % 2 ? pair.y : pair.x;
        const bool lower = n % 4 >= 2;
        const bool inside = column <= row + (lower ? 8 : 0);
        p.part[n / 4].value[n % 4] *= gate_inside(lower ? s.lower : s.upper, column_sum, inside);
    }
}

// A warp's strip of Q, and of P, as operands.
struct Queries {
    OperandTile part[P::dk / 16];

    __device__ __forceinline__ void load(const KeyTile &q, int strip, int lane) {
#pragma unroll
        for (int d = 0; d < P::dk / 16; ++d)
            part[d] = q.load_left(strip * 16, d * 2, lane);
    }
};

struct Scores {
    OperandTile part[P::strips];

    // Blocks up to the diagonal's; the others stay undefined and are not used.
    __device__ __forceinline__ void form(const Queries &q, const KeyTile &k, const Decays &decays,
                                         int strip, int lane) {
        const RowPair sums = P::gated ? strip_sums(decays, strip, lane) : RowPair{0.0f, 0.0f};
#pragma unroll
        for (int j = 0; j < P::strips; ++j) {
            if (j > strip)
                break;
            Strip<16> p;
            p.clear();
#pragma unroll
            for (int d = 0; d < P::dk / 16; ++d)
                p.add<P::bf16>(0, q.part[d], k.load_right(j * 16, d * 2, lane));
            if (j == strip)
                decay_diagonal(p, decays, sums, j, lane);
            else if (P::gated)
                decay_below(p, decays, sums, j, gate_between(decays.sum, strip, j), lane);
            part[j] = p.round<P::bf16>(0);
        }
    }
};

struct Output {
    Strip<P::warp_columns> o;

    __device__ __forceinline__ void from_state(const Queries &q, const StateTile &h,
                                               const Decays &decays, int strip, int unit,
                                               int lane) {
        o.clear();
#pragma unroll
        for (int d = 0; d < P::dk / 16; ++d)
#pragma unroll
            for (int n = 0; n < P::warp_columns / 16; ++n)
                o.template add<P::bf16>(n, q.part[d],
                                        h.load_right_transposed(d * 16, unit + n * 2, lane));
        if (P::gated) {
            const RowPair sums = strip_sums(decays, strip, lane);
            const float before = decays.before(strip);
            o.scale_rows(exp2_approx(before + sums.upper), exp2_approx(before + sums.lower));
        }
    }

    __device__ __forceinline__ void add_values(const Scores &p, const ValueTile &v, int strip,
                                               int unit, int lane) {
#pragma unroll
        for (int j = 0; j < P::strips; ++j) {
            if (j > strip)
                break;
#pragma unroll
            for (int n = 0; n < P::warp_columns / 16; ++n)
                o.template add<P::bf16>(n, p.part[j],
                                        v.load_right_transposed(j * 16, unit + n * 2, lane));
        }
    }

    __device__ __forceinline__ void write(u16 *out, i64 stride, int valid, float scale,
                                          const ValueTile &tile, int strip, int unit, int lane) {
        o.scale_rows(scale, scale);
#pragma unroll
        for (int n = 0; n < P::warp_columns / 16; ++n)
            tile.store(strip * 16, unit + n * 2, o.template round<P::bf16>(n), lane);
        __syncwarp();
        tile.write<kWarp, 16, P::warp_columns / 8>(out, stride, strip * 16, valid - strip * 16,
                                                   unit, lane);
    }
};

struct Tiles {
    KeyTile q, k;
    StateTile h;
    ValueTile v;
};

// Grid: x columns of o, head by head; y and z slots.
extern "C" __global__ void __launch_bounds__(P::threads)
    gdn_output(const u16 *q, const u16 *k, const u16 *v_new, const u16 *h, const float *g,
               const int *cu_seqlens, u16 *o, i64 length, int sequences, int heads_k, int heads_v,
               int slots, float scale) {
    extern __shared__ __align__(1024) u8 shared[];
    float *table = (float *)(shared + Layout::factors_at);
    const int warp = __shfl_sync(0xffffffffu, (int)threadIdx.x / kWarp, 0);
    const int lane = threadIdx.x % kWarp;
    const int column = blockIdx.x % P::splits * P::columns;
    const int head = blockIdx.x / P::splits;
    const int head_k = head / (heads_v / heads_k);
    const u32 slot = blockIdx.z * gridDim.y + blockIdx.y;
    if (slot >= (u32)slots)
        return;
    const Rows rows = chunk_rows<P::chunk>({cu_seqlens, length, sequences}, slot);
    if (rows.count == 0)
        return;

    const Tiles tiles = {{shared + Layout::q_at},
                         {shared + Layout::k_at},
                         {shared + Layout::h_at},
                         {shared + Layout::v_at}};
    const i64 key_stride = (i64)heads_k * P::dk;
    const i64 value_stride = (i64)heads_v * P::dv;
    const i64 keys_at = rows.first * key_stride + head_k * P::dk;
    const i64 values_at = rows.first * value_stride + head * P::dv + column;
    tiles.q.copy<P::threads>(q + keys_at, key_stride, rows.count, threadIdx.x);
    tiles.k.copy<P::threads>(k + keys_at, key_stride, rows.count, threadIdx.x);
    copy_group_end();
    tiles.h.copy<P::threads>(h + ((i64)slot * heads_v + head) * P::dk * P::dv + column, P::dv,
                             P::dk, threadIdx.x);
    tiles.v.copy<P::threads>(v_new + values_at, value_stride, rows.count, threadIdx.x);
    copy_group_end();
    if (P::gated && warp == 0)
        put_decays(g + rows.first * heads_v + head, heads_v, rows.count, table, lane);
    copy_group_wait<P::stages == 2 ? 1 : 0>();
    __syncthreads();

    const Decays decays = {table, table + P::chunk};
    const int strip = warp % P::strips;
    const int unit = warp / P::strips * P::warp_columns / 8;
    Queries queries;
    Scores scores;
    queries.load(tiles.q, strip, lane);
    scores.form(queries, tiles.k, decays, strip, lane);
    if (P::stages == 2) {
        copy_group_wait<0>();
        __syncthreads();
    }
    Output output;
    output.from_state(queries, tiles.h, decays, strip, unit, lane);
    output.add_values(scores, tiles.v, strip, unit, lane);
    __syncthreads(); // o takes the place of v'
    output.write(o + values_at + strip * 16 * value_stride + unit * 8, value_stride, rows.count,
                 scale, tiles.v, strip, unit, lane);
}
