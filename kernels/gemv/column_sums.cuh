// Sums down the columns of a matrix that is stored by rows: y = A x where A is stored transposed. A
// thread has P::vec neighbouring columns, which one load brings; threads side by side have the
// block's P::rows columns, and P::row_threads threads, one below the other, share a column's sum.
//
//     stored row j         thread 0     thread 1    ...
//     stored row j + 1     thread C     thread C + 1 ...     C = threads / row_threads
#pragma once

#include "gemv/parameters.cuh"

struct ColumnSums {
    const u16 *column; // at this thread's first stored row
    i64 stride;        // to its next one
    float sum[P::vec];

    __device__ __forceinline__ void begin(const Stretch &s, i64 first, int below) {
        column = s.a + below * s.lda + first;
        stride = P::row_threads * s.lda;
#pragma unroll
        for (int i = 0; i < P::vec; ++i)
            sum[i] = 0.0f;
    }

    // Stored rows `first`, first + row_threads, ...: P::unroll of them, those below `end` where
    // RAGGED.
    template <bool RAGGED> __device__ __forceinline__ void step(const u16 *x, int first, int end) {
        Elements<P::vec> a[P::unroll];
        float factor[P::unroll];
#pragma unroll
        for (int u = 0; u < P::unroll; ++u)
            if (!RAGGED || first + u * P::row_threads < end)
                a[u] = load_elements<P::vec, P::keep>(column + u * stride);
#pragma unroll
        for (int u = 0; u < P::unroll; ++u)
            if (!RAGGED || first + u * P::row_threads < end) {
                const int at = first + u * P::row_threads;
                const u32 word = P::x_shared ? x[at] : __ldg(x + at);
                factor[u] = Elements<1>{{word}}.value<P::bf16>(0);
            }
#pragma unroll
        for (int u = 0; u < P::unroll; ++u)
            if (!RAGGED || first + u * P::row_threads < end)
#pragma unroll
                for (int i = 0; i < P::vec; ++i)
                    sum[i] = fmaf(a[u].template value<P::bf16>(i), factor[u], sum[i]);
        column += P::unroll * stride;
    }
};

// put(row of y, sum) for each of the block's, each by one thread.
template <class PUT>
KKT_DEVICE void sum_columns(const Stretch &s, i64 block, u8 *shared, const PUT &put) {
    const int across = threadIdx.x % P::groups * P::vec;
    const int below = threadIdx.x / P::groups;
    const i64 first = block * P::rows;
    const u16 *x = s.x;
    if (P::x_shared) {
        put_x(shared_x(shared), s.x, 0, s.k);
        x = shared_x(shared);
        __syncthreads();
    }
    ColumnSums columns;
    columns.begin(s, first + across, below);
    if (first + across < s.m) {
        constexpr int at_once = P::row_threads * P::unroll;
        const int whole = s.k - s.k % at_once;
#pragma unroll 1
        for (int j = 0; j < whole; j += at_once)
            columns.step<false>(x, j + below, s.k);
        if (whole < s.k)
            columns.step<true>(x, whole + below, s.k);
    }
    if (P::row_threads == 1) {
#pragma unroll
        for (int i = 0; i < P::vec; ++i)
            put(first + across + i, columns.sum[i]);
        return;
    }
    float *partials = (float *)shared; // [row_threads][rows]
#pragma unroll
    for (int i = 0; i < P::vec; ++i)
        partials[below * P::rows + across + i] = columns.sum[i];
    __syncthreads();
    for (int at = threadIdx.x; at < P::rows; at += P::threads) {
        float sum = 0.0f;
#pragma unroll
        for (int n = 0; n < P::row_threads; ++n)
            sum += partials[n * P::rows + at];
        put(first + at, sum);
    }
}
