// Sums along rows that are stored one after the other. A block has P::rows of them, P::row_threads
// threads for each, and a thread has P::each: what of x it needs is then loaded and converted once
// for all of them.
//
//     row    head | vectors of P::vec elements                          | tail
//            .....|lane 0|lane 1| ... |lane 0|lane 1| ...  |lane 0|lane 1| ...
//
// A row may begin anywhere, vectors begin at multiples of their size. Rows P::alike apart have
// heads of the same length, so a block's rows are so many apart: then all its threads meet the same
// elements of x, shifted by the head.
#pragma once

#include "gemv/parameters.cuh"

struct RowBlock {
    i64 first;   // its first row
    int head;    // elements before the first vector
    int vectors; // whole ones
    int edges;   // elements before the first and behind the last
};

KKT_DEVICE RowBlock row_block(const Stretch &s, i64 block) {
    RowBlock b;
    b.first = block / P::alike * (P::rows * P::alike) + block % P::alike;
    b.head = 0;
    if (P::alike > 1) {
        b.head = (int)(-(u64)(b.first * s.lda) % P::vec);
        b.head = b.head < s.k ? b.head : s.k;
    }
    b.vectors = (s.k - b.head) / P::vec;
    b.edges = s.k - b.vectors * P::vec;
    return b;
}

// The elements of x at `x` that meet a vector of the rows.
KKT_DEVICE Elements<P::vec> x_vector(const u16 *x) {
    if (P::x_shared)
        return shared_elements<P::vec>(x);
    if (P::alike == 1)
        return load_elements<P::vec, Keep::kCached>(x);
    Elements<P::vec> v; // x does not begin where the rows do
    v.clear();
#pragma unroll
    for (int i = 0; i < P::vec; ++i)
        v.word[i / 2] |= (u32)__ldg(x + i) << (i % 2 * 16);
    return v;
}

// The sum over the threads of a row, as far as they are of one warp; in all of them.
KKT_DEVICE float add_lanes(float sum) {
    constexpr int lanes = P::row_threads < kWarp ? P::row_threads : kWarp;
#pragma unroll
    for (int step = lanes / 2; step > 0; step /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
    return sum;
}

struct RowSums {
    const u16 *row[P::each]; // at the first vector
    float sum[P::each];

    __device__ __forceinline__ void begin(const Stretch &s, const RowBlock &b, int group) {
#pragma unroll
        for (int r = 0; r < P::each; ++r) {
            const i64 at = b.first + (i64)(group * P::each + r) * P::alike;
            row[r] = s.a + (at < s.m ? at : b.first) * s.lda + b.head;
            sum[r] = 0.0f;
        }
    }

    // Vectors `first`, first + row_threads, ...: P::unroll of them, those below `end` where RAGGED.
    template <bool RAGGED> __device__ __forceinline__ void step(const u16 *x, int first, int end) {
        Elements<P::vec> a[P::unroll][P::each], factors[P::unroll];
        const i64 at = (i64)first * P::vec;
        constexpr int apart = P::row_threads * P::vec; // elements from load to load
#pragma unroll
        for (int u = 0; u < P::unroll; ++u)
#pragma unroll
            for (int r = 0; r < P::each; ++r)
                if (!RAGGED || first + u * P::row_threads < end)
                    a[u][r] = load_elements<P::vec, P::keep>(row[r] + at + u * apart);
#pragma unroll
        for (int u = 0; u < P::unroll; ++u)
            if (!RAGGED || first + u * P::row_threads < end)
                factors[u] = x_vector(x + at + u * apart);
        float part[P::each];
#pragma unroll
        for (int r = 0; r < P::each; ++r)
            part[r] = P::reduce_steps ? 0.0f : sum[r];
#pragma unroll
        for (int u = 0; u < P::unroll; ++u)
            if (!RAGGED || first + u * P::row_threads < end)
#pragma unroll
                for (int i = 0; i < P::vec; ++i) {
                    const float factor = factors[u].template value<P::bf16>(i);
#pragma unroll
                    for (int r = 0; r < P::each; ++r)
                        part[r] = fmaf(a[u][r].template value<P::bf16>(i), factor, part[r]);
                }
#pragma unroll
        for (int r = 0; r < P::each; ++r)
            sum[r] = P::reduce_steps ? sum[r] + add_lanes(part[r]) : part[r];
    }

    // The elements before the first vector and behind the last one.
    __device__ __forceinline__ void add_edges(const Stretch &s, const RowBlock &b, int lane) {
        float part[P::each];
#pragma unroll
        for (int r = 0; r < P::each; ++r)
            part[r] = 0.0f;
        for (int i = lane; i < b.edges; i += P::row_threads) {
            const int at = i < b.head ? i : i + b.vectors * P::vec; // in the row
            const u32 x = __ldg(s.x + at);
            const float factor = Elements<1>{{x}}.value<P::bf16>(0);
#pragma unroll
            for (int r = 0; r < P::each; ++r) {
                const u32 a = __ldg(row[r] + at - b.head);
                part[r] = fmaf(Elements<1>{{a}}.value<P::bf16>(0), factor, part[r]);
            }
        }
#pragma unroll
        for (int r = 0; r < P::each; ++r)
            sum[r] += P::reduce_steps ? add_lanes(part[r]) : part[r];
    }
};

// put(row, sum) for each row of the block, each by one thread.
template <class PUT>
KKT_DEVICE void sum_rows(const Stretch &s, i64 block, u8 *shared, const PUT &put) {
    const RowBlock b = row_block(s, block);
    const int lane = threadIdx.x % P::row_threads;
    const int group = threadIdx.x / P::row_threads;
    if (b.first >= s.m) // the same for the whole block
        return;
    const u16 *x = s.x + b.head;
    if (P::x_shared) {
        put_x(shared_x(shared), s.x, b.head, b.vectors * P::vec);
        x = shared_x(shared);
        __syncthreads();
    }
    RowSums rows;
    rows.begin(s, b, group);
    constexpr int at_once = P::row_threads * P::unroll;
    const int whole = b.vectors - b.vectors % at_once;
#pragma unroll 1
    for (int first = 0; first < whole; first += at_once)
        rows.step<false>(x, first + lane, b.vectors);
    if (whole < b.vectors)
        rows.step<true>(x, whole + lane, b.vectors);
    if (b.edges > 0)
        rows.add_edges(s, b, lane);

    float *partials = (float *)shared;
#pragma unroll
    for (int r = 0; r < P::each; ++r) {
        const float sum = P::reduce_steps ? rows.sum[r] : add_lanes(rows.sum[r]);
        const int at = group * P::each + r;
        if (P::row_threads <= kWarp && lane == r % P::row_threads)
            put(b.first + (i64)at * P::alike, sum);
        if (P::row_threads > kWarp && lane % kWarp == 0)
            partials[threadIdx.x / kWarp * P::each + r] = sum;
    }
    if (P::row_threads > kWarp) {
        constexpr int warps = divide_up(P::row_threads, kWarp);
        __syncthreads();
        for (int at = threadIdx.x; at < P::rows; at += P::threads) {
            float sum = 0.0f;
#pragma unroll
            for (int w = 0; w < warps; ++w)
                sum += partials[(at / P::each * warps + w) * P::each + at % P::each];
            put(b.first + (i64)at * P::alike, sum);
        }
    }
}
