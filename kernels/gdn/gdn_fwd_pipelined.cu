// gdn_fwd, pipelined: the whole forward pass of Gated DeltaNet in one kernel; the chunk's
// triangular system is solved on chip. What a block does, and how, is in pipelined_block.cuh.
#include "gdn/pipelined_block.cuh"

#include "device/types.cuh"
#include "gdn/triangle.cuh"

constexpr Solve kSolve = (Solve)KKT_SOLVE;

// V' from N and D (triangle.cuh), of which each warp makes its blocks: by substitution, a warp its
// own rows, or with T, made column by column first.
//
// Shared memory:
//
//     triangle  N, D and scratch
//     t         T, blocks of 512 bytes (SOLVE invert only)
struct SolvedSystem {
    static constexpr bool kReadsT = false;
    static constexpr int t_at = Triangle::bytes;
    static constexpr int bytes = t_at + (kSolve == kInvert ? P::blocks * kOperandBytes : 0);

    u8 *base;

    __device__ __forceinline__ Triangle triangle() const {
        return {base};
    }

    __device__ __forceinline__ void make(const LaneAddress &k, const Gates &gates, int warp,
                                         int lane) const {
        triangle().make(k, gates, warp, lane);
    }

    __device__ __forceinline__ void solve(TokenColumns &x, const u8 *, int warp, int lane) const {
        u8 *t = base + t_at;
        __syncthreads();
        if constexpr (kSolve == kSubstitute) {
            triangle().substitute<kRowTiles>(x.f, 0, lane);
        } else {
            for (int column = warp; column < P::strips; column += P::warps)
                triangle().invert(t, column, lane);
            __syncthreads();
            const RoundedTokens rounded = round_rows(x);
            x.clear();
            multiply_lower<0>(x, rounded, [&](int n) { return take_operand(t, n, lane); });
        }
    }

    __device__ __forceinline__ void meet() const {}
};

// Grid: x splits of dv, then value heads, then sequences.
extern "C" __global__ void __launch_bounds__(P::threads, P::min_blocks)
    gdn_fwd(const u16 *q, const u16 *k, const u16 *v, const float *beta, const float *g,
            const float *h0, const int *cu_seqlens, u16 *o, float *ht, i64 tokens, int heads_k,
            int heads_v, float scale) {
    extern __shared__ __align__(1024) u8 shared[];
    const Problem p = {q, k, v, beta, g, nullptr, h0, cu_seqlens, o, ht, tokens, heads_k, heads_v};
    run_block<SolvedSystem>(p, shared, scale);
}
