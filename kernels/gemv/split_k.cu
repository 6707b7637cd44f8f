// y = A x where SPLIT_K blocks share the sum of a row: each takes a stretch of k and writes its
// part of the sum to HBM, and a second launch adds the parts up. For matrices of few rows (or,
// stored transposed, few columns), which alone do not fill the GPU.
//
// Shared memory: as in gemv.cu.
#include "gemv/column_sums.cuh"
#include "gemv/row_sums.cuh"

constexpr int kSumThreads = 256; // of a block of gemv_sum; materialized.c has the same

struct PutPartial {
    float *parts; // of this stretch, [m]
    int m;

    __device__ __forceinline__ void operator()(i64 row, float sum) const {
        if (row < m)
            parts[row] = sum;
    }
};

// Grid: x as gemv's, y the stretches of `span` elements, a multiple of 8.
extern "C" __global__ void __launch_bounds__(P::threads, P::min_blocks)
    gemv_partial(const u16 *a, const u16 *x, float *partials, int m, int k, i64 lda, int span) {
    extern __shared__ __align__(16) u8 shared[];
    const i64 first = (i64)blockIdx.y * span;
    const int left = first < k ? (int)(k - first) : 0;
    const Stretch s = {a + (P::transposed ? first * lda : first), x + first, lda, m,
                       left < span ? left : span};
    const PutPartial put = {partials + (i64)blockIdx.y * m, m};
    if (P::transposed)
        sum_columns(s, blockIdx.x, shared, put);
    else
        sum_rows(s, blockIdx.x, shared, put);
}

extern "C" __global__ void __launch_bounds__(kSumThreads)
    gemv_sum(const float *partials, u16 *y, int m) {
    const i64 row = (i64)blockIdx.x * kSumThreads + threadIdx.x;
    if (row >= m)
        return;
    float sum = 0.0f;
#pragma unroll
    for (int n = 0; n < KKT_SPLIT_K; ++n)
        sum += partials[(i64)n * m + row];
    y[row] = (u16)(P::bf16 ? pack_bf16(sum, 0.0f) : pack_fp16(sum, 0.0f));
}
