// What a solution of kkt_solve by library calls needs beside them: a product K K^T of every chunk
// and key head, its scaling to L of every value head, the solution of L T = I, and T in its own
// type and place. cuBLAS does the first and the third, in batches of matrices given by their
// addresses; the kernels here do the rest. Matrices between the steps are fp32, CHUNK x CHUNK,
// row-major:
//
//     products  [slots, heads_k, CHUNK, CHUNK]    K K^T (symmetric)
//     lower     [slots, heads_v, CHUNK, CHUNK]    L, with zeros on and above the diagonal
//     solved    [slots, heads_v, CHUNK, CHUNK]    the identity, then T
//
// A slot is a chunk; packed sequences have surplus slots, whose L is 0. A product always takes
// CHUNK rows of K: what they are beyond a chunk's own is masked afterwards. Where they would run
// past the end of K they are read from `tail`, the last rows of K with zeros behind them.
//
// KKT_CHUNK, KKT_DTYPE (0: bf16), KKT_GATED and KKT_T_FORM (1: T diag(beta)) come as macros.
#include "device/convert.cuh"
#include "device/types.cuh"

constexpr int CHUNK = KKT_CHUNK;
constexpr int THREADS = 128;
constexpr int MATRIX = CHUNK * CHUNK;

// Rows of a slot: tokens first to first + rows of all; none of a surplus slot.
struct Rows {
    int first, rows;
};

// Sequence n owns the slots from start(n) / CHUNK + n on, which are enough for its chunks.
KKT_DEVICE Rows rows_of(const int *cu_seqlens, int length, int sequences, int slot) {
    int start = 0;
    int chunk = slot;
    if (sequences > 1) {
        int low = 0;
        int high = sequences - 1;
        while (low < high) {
            const int middle = (low + high + 1) / 2;
            if (cu_seqlens[middle] / CHUNK + middle <= slot)
                low = middle;
            else
                high = middle - 1;
        }
        start = cu_seqlens[low];
        length = cu_seqlens[low + 1] - start;
        chunk = slot - (start / CHUNK + low);
    } else {
        const int chunks = divide_up(length, CHUNK);
        start = slot / chunks * length;
        chunk = slot % chunks;
    }
    const int left = length - chunk * CHUNK;
    return {start + chunk * CHUNK, left < 0 ? 0 : left < CHUNK ? left : CHUNK};
}

// The addresses of all matrices, in the order of the batches. A thread a slot and value head.
extern "C" __global__ void __launch_bounds__(THREADS)
    library_addresses(const u16 *k, const u16 *tail, const int *cu_seqlens, const float *products,
                      const float *lower, const float *solved, u64 *addresses_k,
                      u64 *addresses_products, u64 *addresses_lower, u64 *addresses_solved,
                      int length, int sequences, int tokens, int heads_k, int heads_v, int dk,
                      int slots) {
    const int item = (int)(blockIdx.x * THREADS + threadIdx.x);
    const int slot = item / heads_v;
    const int head = item % heads_v;
    if (slot >= slots)
        return;
    addresses_lower[item] = (u64)(lower + (i64)item * MATRIX);
    addresses_solved[item] = (u64)(solved + (i64)item * MATRIX);
    if (head >= heads_k)
        return;
    const Rows at = rows_of(cu_seqlens, length, sequences, slot);
    const int kept = tokens < CHUNK ? tokens : CHUNK; // rows of K that the tail begins with
    const int first = at.rows > 0 ? at.first : 0;
    const bool inside = first + CHUNK <= tokens;
    const u16 *rows = inside ? k : tail;
    const i64 row = inside ? first : first - (tokens - kept);
    const int product = slot * heads_k + head;
    addresses_k[product] = (u64)(rows + (row * heads_k + head) * dk);
    addresses_products[product] = (u64)(products + (i64)product * MATRIX);
}

// The last CHUNK rows of K, or all where there are fewer, then zeros: 2 CHUNK rows. A block a row.
extern "C" __global__ void __launch_bounds__(THREADS)
    library_tail(const u16 *k, u16 *tail, int tokens, int columns) {
    const int kept = tokens < CHUNK ? tokens : CHUNK;
    const int row = (int)blockIdx.x;
    const u16 *from = k + (i64)(tokens - kept + row) * columns;
    for (int column = (int)threadIdx.x; column < columns; column += THREADS)
        tail[(i64)row * columns + column] = row < kept ? from[column] : 0;
}

// L_ij = beta_i (K K^T)_ij exp(g_(j+1) + ... + g_i) below the diagonal, and the identity to solve
// for. A thread a column, whose exponent grows from row to row; THREADS / CHUNK matrices a block.
extern "C" __global__ void __launch_bounds__(THREADS)
    library_gate(const float *beta, const float *g, const int *cu_seqlens, const float *products,
                 float *lower, float *solved, int length, int sequences, int heads_k, int heads_v,
                 int slots) {
    constexpr float kLog2E = 1.4426950408889634f;
    __shared__ float factors[THREADS], gates[THREADS];
    const int matrix = (int)threadIdx.x / CHUNK;
    const int j = (int)threadIdx.x % CHUNK;
    const int item = (int)blockIdx.x * (THREADS / CHUNK) + matrix;
    const int slot = item / heads_v;
    const int head = item % heads_v;
    const bool there = slot < slots;
    const Rows at = there ? rows_of(cu_seqlens, length, sequences, slot) : Rows{0, 0};
    const i64 own = (i64)(at.first + j) * heads_v + head;
    factors[threadIdx.x] = j < at.rows ? beta[own] : 0.0f;
    gates[threadIdx.x] = KKT_GATED && j < at.rows ? g[own] * kLog2E : 0.0f;
    __syncthreads();
    if (!there)
        return;
    const i64 product = (i64)slot * heads_k + head / (heads_v / heads_k);
    const float *from = products + product * MATRIX + j;
    float *to = lower + (i64)item * MATRIX + j;
    float *identity = solved + (i64)item * MATRIX + j;
    float exponent = 0.0f;
#pragma unroll 4
    for (int i = 0; i < CHUNK; i++) {
        float value = 0.0f;
        if (i > j && i < at.rows) {
            exponent += gates[matrix * CHUNK + i];
            value = factors[matrix * CHUNK + i] * from[i * CHUNK] * exp2_approx(exponent);
        }
        to[i * CHUNK] = value;
        identity[i * CHUNK] = i == j ? 1.0f : 0.0f;
    }
}

KKT_DEVICE u32 pack(float low, float high) {
    return KKT_DTYPE == 0 ? pack_bf16(low, high) : pack_fp16(low, high);
}

// T from where it was solved, two columns a thread, a slot and value head a block.
extern "C" __global__ void __launch_bounds__(THREADS)
    library_write(const float *beta, const int *cu_seqlens, const float *solved, u16 *t, int length,
                  int sequences, int heads_v) {
    constexpr int WIDTH = CHUNK / 2;
    const int slot = (int)blockIdx.x / heads_v;
    const int head = (int)blockIdx.x % heads_v;
    const Rows at = rows_of(cu_seqlens, length, sequences, slot);
    const int j = 2 * ((int)threadIdx.x % WIDTH);
    float scale[2] = {1.0f, 1.0f};
    for (int n = 0; n < 2 && KKT_T_FORM == 1; n++)
        scale[n] = j + n < at.rows ? beta[(i64)(at.first + j + n) * heads_v + head] : 0.0f;
    for (int i = (int)threadIdx.x / WIDTH; i < at.rows; i += THREADS / WIDTH) {
        const float2 pair = *(const float2 *)(solved + (i64)blockIdx.x * MATRIX + i * CHUNK + j);
        const float low = j < i ? pair.x : j == i ? 1.0f : 0.0f;
        const float high = j + 1 < i ? pair.y : j + 1 == i ? 1.0f : 0.0f;
        const i64 row = (i64)(at.first + i) * heads_v + head;
        *(u32 *)(t + row * CHUNK + j) = pack(low * scale[0], high * scale[1]);
    }
}
