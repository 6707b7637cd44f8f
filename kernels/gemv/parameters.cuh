// What a configuration of gemv fixes at compile time, and the matrix as its device code sees it.
#pragma once

#include "device/elements.cuh"

struct P {
    static constexpr int threads = KKT_THREADS;
    static constexpr int rows = KKT_ROWS_PER_BLOCK;
    static constexpr int row_threads = KKT_ROW_THREADS; // that share the sum of a row
    static constexpr int vec = KKT_VEC;                 // elements of a load
    static constexpr int unroll = KKT_UNROLL;           // loads of a row in flight, a thread
    static constexpr bool x_shared = KKT_X == 1;
    static constexpr Keep keep = (Keep)KKT_KEEP;
    static constexpr bool reduce_steps = KKT_REDUCE == 1; // lanes add up at each step
    static constexpr int min_blocks = KKT_MIN_BLOCKS > 0 ? KKT_MIN_BLOCKS : 1;
    static constexpr bool bf16 = KKT_DTYPE == 0;
    static constexpr bool transposed = KKT_TRANSPOSED == 1;

    static constexpr int groups = threads / row_threads; // sets of threads with rows of their own
    static constexpr int each = rows * row_threads / threads; // rows of a thread
    // A row is read in loads that begin at multiples of their size. Rows so many apart begin alike.
    static constexpr int alike = KKT_ALIKE;

    // Floats that threads hand each other in shared memory.
    static constexpr int partials = transposed ? (row_threads > 1 ? row_threads * rows : 0)
                                    : row_threads > kWarp ? threads / kWarp *each
                                                          : 0;
};

static_assert(P::each * P::groups == P::rows, "every thread has as many rows");
static_assert(!P::transposed || P::each == P::vec, "a load brings one element of each row");
static_assert(!P::transposed || P::alike == 1, "columns are read whole vectors at a time");
static_assert(P::partials * 4 == KKT_PARTIALS_BYTES, "the host's footprint and this layout differ");

// A stretch of y = A x: `k` elements of each row's sum.
struct Stretch {
    const u16 *a; // the first of them in row 0
    const u16 *x;
    i64 lda;
    int m, k;
};

// The shared memory of a block: partials, then what is used of x.
KKT_DEVICE u16 *shared_x(u8 *shared) {
    return (u16 *)(shared + round_up(P::partials * 4, 16));
}

// x[first] to x[first + count - 1] to shared memory; a barrier must follow.
KKT_DEVICE void put_x(u16 *to, const u16 *x, int first, int count) {
    if (P::alike == 1) { // `first` is 0
        const int whole = count / 8 * 8;
        for (int i = threadIdx.x * 8; i < whole; i += P::threads * 8)
            *(uint4 *)(to + i) = __ldg((const uint4 *)(x + i));
        for (int i = whole + threadIdx.x; i < count; i += P::threads)
            to[i] = __ldg(x + i);
    } else {
        for (int i = threadIdx.x; i < count; i += P::threads)
            to[i] = __ldg(x + first + i);
    }
}
