// gdn_fwd_t, warp-specialized: o and the last state of Gated DeltaNet from q, k, v, the gates and
// T. See gdn.h for the mathematics and the tensors' shapes. sm_90a.
//
// A block walks the chunks of one sequence and value head, for block_dv of its columns
// (ws_work.cuh) and takes the next such unit of work when it is done. Its warpgroups, 128 threads
// each:
//
//     state     block_dv / 64   the recurrence over chunks, each for 64 columns       ws_state.cuh
//                               with outputs 0, o too                          ws_state_output.cuh
//                               with outputs 1 or 2, no more than that          ws_state_chain.cuh
//     scores    1               outputs 0: the decayed scores for the former ws_scores.cuh outputs
//     1 or 2          o, in turns                                            ws_output.cuh service
//     1               warp 0: loads; warps 1, 2: stores; warp 3: gates      ws_service.cuh
//
// Shared memory is laid out in ws_layout.cuh. It is handed on by barriers; a reader waits for
// "full", a writer for "empty":
//
//     barrier       a phase ends with                                    then
//     full          the loads of a stage and the gate warp               stage and gates can be
//     read empty         each warp of state and scores (or the chunk's        the stage can be
//     loaded
//                   output warpgroup)
//     landed        the loads of a chunk that is not whole               the gate warp clears its
//     end scores_full   the score warps                                      P can be read
//     scores_empty  the state warps                                      P can be written
//     s_full        the state warps                                      S^T can be read
//     s_empty       the chunk's output warps                             S^T can be written
//     value_full    the state warps                                      V'^T can be read
//     o_full        the warps that wrote o                               it can be stored
//     o_empty       the store warp                                       o, or V'^T, can be written
#include "device/tensor_map.cuh"
#include "device/types.cuh"
#include "device/warp_roles.cuh"
#include "gdn/ws_layout.cuh"
#include "gdn/ws_output.cuh"
#include "gdn/ws_parameters.cuh"
#include "gdn/ws_scores.cuh"
#include "gdn/ws_service.cuh"
#include "gdn/ws_state_chain.cuh"
#include "gdn/ws_state_output.cuh"
#include "gdn/ws_work.cuh"

// One thread; how many arrivals end a phase. All threads of a role arrive, the loading one alone.
KKT_DEVICE void make_barriers(const Shared &shared) {
    constexpr int group = P::warpgroup;
    constexpr int state = group * P::groups;
    for (int n = 0; n < P::stages; ++n) {
        mbarrier_init(shared.barrier(Layout::full + n), 1 + kWarp);
        mbarrier_init(shared.barrier(Layout::empty + n), state + group);
        mbarrier_init(shared.barrier(Layout::landed + n), 1);
    }
    for (int n = 0; n < 2; ++n) {
        if (Layout::own_output) {
            mbarrier_init(shared.barrier(Layout::scores_full + n), group);
            mbarrier_init(shared.barrier(Layout::scores_empty + n), state);
        } else {
            mbarrier_init(shared.barrier(Layout::s_full + n), state);
            mbarrier_init(shared.barrier(Layout::s_empty + n), group);
            mbarrier_init(shared.barrier(Layout::value_full + n), state);
        }
    }
    for (int n = 0; n < 4; ++n) {
        mbarrier_init(shared.barrier(Layout::o_full + n), group);
        mbarrier_init(shared.barrier(Layout::o_empty + n), kWarp);
    }
}

extern "C" __global__ void __launch_bounds__(P::threads, 1)
    gdn_fwd_t(const __grid_constant__ TensorMap q, const __grid_constant__ TensorMap k,
              const __grid_constant__ TensorMap v, const __grid_constant__ TensorMap t,
              const __grid_constant__ TensorMap o_map, const float *g, const float *beta,
              const float *h0, float *ht, u16 *o, const void *cu_seqlens, i64 tokens, i32 heads_k,
              i32 heads_v, i32 cu_seqlens_wide, i32 units, float scale) {
    extern __shared__ __align__(1024) u8 smem[];
    const Shared shared = {smem};
    const Problem p = {
        g, beta, h0, ht, o, cu_seqlens, tokens, heads_k, heads_v, cu_seqlens_wide, units, scale};
    const int warpgroup = threadIdx.x / P::warpgroup;
    const int warp = threadIdx.x / kWarp % 4;
    const int lane = threadIdx.x % kWarp;
    if (threadIdx.x == 0)
        make_barriers(shared);
    __syncthreads();

    if (warpgroup < P::groups) {
        registers_set<P::launch_registers, P::state_registers>();
        state_role(p, shared, warpgroup, warp, lane);
    } else if (warpgroup < P::groups + P::helpers) {
        registers_set<P::launch_registers, P::helper_registers>();
        const int chunks = count_chunks(p);
#if KKT_OUTPUTS > 0
        output_role(shared, chunks, p.scale, warpgroup - P::groups, warp, lane);
#else
        score_role(shared, chunks, p.scale, warp, lane);
#endif
    } else {
        registers_set<P::launch_registers, P::service_registers>();
        const Maps maps = {q, k, v, t, o_map};
        service_role(p, maps, shared, warp, lane);
    }
}
