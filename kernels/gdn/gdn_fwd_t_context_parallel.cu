// gdn_fwd_t, context-parallel: a sequence's segments side by side. cp_work.cuh says which launch
// does what.
#include "gdn/cp_work.cuh"

#include "gdn/cp_pass.cuh"
#include "gdn/cp_starts.cuh"
#include "gdn/ws_block.cuh"

// Where segments of both kinds begin and what they leave: each block moves h0 and ht to its head.
KKT_DEVICE i64 head_state(const Place &at, int heads_v) {
    return ((i64)at.sequence * heads_v + at.head) * P::dk * P::dv;
}

// `units` blocks with o, then those of the pass.
extern "C" __global__ void __launch_bounds__(P::threads, 1)
    gdn_fwd_t_first(const __grid_constant__ TensorMap q, const __grid_constant__ TensorMap k,
                    const __grid_constant__ TensorMap v, const __grid_constant__ TensorMap t,
                    const __grid_constant__ TensorMap o_map, const float *g, const float *beta,
                    const float *h0, float *ht, u16 *o, const void *cu_seqlens, i64 tokens,
                    i32 heads_k, i32 heads_v, i32 cu_seqlens_wide, i32 units, float scale,
                    float *starts, float *steps) {
    extern __shared__ __align__(1024) u8 smem[];
    Problem p = {g,      beta,    h0,      nullptr,         o,     cu_seqlens,
                 tokens, heads_k, heads_v, cu_seqlens_wide, units, scale};
    const Maps maps = {q, k, v, t, o_map};
    if (blockIdx.x < units) {
        const Place at = find_place(p, blockIdx.x);
        p.h0 = h0 ? h0 + head_state(at, heads_v) : nullptr;
        p.ht = starts + start_offset(at.sequence, 1, at.head, heads_v);
        run_block(p, maps, smem);
    } else {
        run_pass(p, maps, {starts, steps}, blockIdx.x - units, smem);
    }
}

extern "C" __global__ void __launch_bounds__(StartsLayout::threads)
    gdn_fwd_t_starts(float *starts, float *steps, i32 heads_v) {
    extern __shared__ __align__(1024) u8 smem[];
    find_starts({starts, steps}, heads_v, smem);
}

extern "C" __global__ void __launch_bounds__(P::threads, 1)
    gdn_fwd_t_rest(const __grid_constant__ TensorMap q, const __grid_constant__ TensorMap k,
                   const __grid_constant__ TensorMap v, const __grid_constant__ TensorMap t,
                   const __grid_constant__ TensorMap o_map, const float *g, const float *beta,
                   const float *h0, float *ht, u16 *o, const void *cu_seqlens, i64 tokens,
                   i32 heads_k, i32 heads_v, i32 cu_seqlens_wide, i32 units, float scale,
                   const float *starts) {
    extern __shared__ __align__(1024) u8 smem[];
    Problem p = {g,      beta,    nullptr, nullptr,         o,     cu_seqlens,
                 tokens, heads_k, heads_v, cu_seqlens_wide, units, scale};
    const Maps maps = {q, k, v, t, o_map};
    const Place at = find_place(p, blockIdx.x);
    p.h0 = starts + start_offset(at.sequence, at.segment, at.head, heads_v);
    if (ht && at.segment == C::later)
        p.ht = ht + head_state(at, heads_v);
    wait_for_kernels_before();
    run_block(p, maps, smem);
}
