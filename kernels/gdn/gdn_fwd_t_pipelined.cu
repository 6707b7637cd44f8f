// gdn_fwd_t, pipelined: the forward pass of Gated DeltaNet with T of every chunk from kkt_solve.
// What a block does, and how, is in pipelined_block.cuh.
#include "gdn/pipelined_block.cuh"

#include "device/types.cuh"

constexpr TForm kForm = (TForm)KKT_T_FORM;

// V'^T = X^T T^T of a warp's own rows. Other warps are met only before their scores are read.
struct GivenT {
    static constexpr bool kReadsT = true;
    static constexpr int bytes = 0;

    u8 *base;

    __device__ __forceinline__ void make(const LaneAddress &, const Gates &, int, int) const {}

    __device__ __forceinline__ void solve(TokenColumns &x, const u8 *slot, int, int lane) const {
        const RoundedTokens rounded = round_rows(x);
        const u32 t = shared_address(slot + ChunkRing<kStages, true>::t_at) +
                      TBlock::at(lane % 8 + lane / 16 * 8, lane / 8 % 2);
        x.clear();
        multiply_lower<0>(x, rounded,
                          [&](int n) { return load_right_tile(t + n * TBlock::bytes); });
    }

    __device__ __forceinline__ void meet() const {
        __syncthreads();
    }
};

// Grid: x splits of dv, then value heads, then sequences.
extern "C" __global__ void __launch_bounds__(P::threads, P::min_blocks)
    gdn_fwd_t(const u16 *q, const u16 *k, const u16 *v, const float *beta, const float *g,
              const u16 *t, const float *h0, const int *cu_seqlens, u16 *o, float *ht, i64 tokens,
              int heads_k, int heads_v, float scale) {
    extern __shared__ __align__(1024) u8 shared[];
    const Problem p = {
        q,      k,       v,      kForm == kTBeta ? nullptr : beta, g, t, h0, cu_seqlens, o, ht,
        tokens, heads_k, heads_v};
    run_block<GivenT>(p, shared, scale);
}
