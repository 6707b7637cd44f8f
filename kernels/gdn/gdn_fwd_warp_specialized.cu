// gdn_fwd, warp-specialized: T is computed on the way. What a block does, and how, is in
// ws_block.cuh.
#include "gdn/ws_solver.cuh"

#include "gdn/ws_block.cuh"

extern "C" __global__ void __launch_bounds__(P::threads, 1)
    gdn_fwd(const __grid_constant__ TensorMap q, const __grid_constant__ TensorMap k,
            const __grid_constant__ TensorMap v, const __grid_constant__ TensorMap o_map,
            const float *g, const float *beta, const float *h0, float *ht, u16 *o,
            const void *cu_seqlens, i64 tokens, i32 heads_k, i32 heads_v, i32 cu_seqlens_wide,
            i32 units, float scale) {
    extern __shared__ __align__(1024) u8 smem[];
    const Problem p = {
        g, beta, h0, ht, o, cu_seqlens, tokens, heads_k, heads_v, cu_seqlens_wide, units, scale};
    const Maps maps = {q, k, v, q, o_map}; // no T
    run_block(p, maps, smem);
}
