// y = A x, a weighted reduction of rows: a block has some of them, and reads each element of A once
// from memory into registers. Sums are in fp32, in an order that the configuration fixes.
//
// Shared memory (fragment.c lists the same buffers):
//
//     partials   sums of a row's warps; layout t: of the threads that share a column
//     x          with x = shared: what of x meets whole vectors of the block's rows
#include "gemv/column_sums.cuh"
#include "gemv/row_sums.cuh"

struct PutY {
    u16 *y;
    int m;

    __device__ __forceinline__ void operator()(i64 row, float sum) const {
        if (row < m)
            y[row] = (u16)(P::bf16 ? pack_bf16(sum, 0.0f) : pack_fp16(sum, 0.0f));
    }
};

extern "C" __global__ void __launch_bounds__(P::threads, P::min_blocks)
    gemv(const u16 *a, const u16 *x, u16 *y, int m, int k, i64 lda) {
    extern __shared__ __align__(16) u8 shared[];
    const Stretch s = {a, x, lda, m, k};
    const PutY put = {y, m};
    if (P::transposed)
        sum_columns(s, blockIdx.x, shared, put);
    else
        sum_rows(s, blockIdx.x, shared, put);
}
