// A block of the warp-specialized gdn_fwd_t or gdn_fwd: o and the last state of Gated DeltaNet from
// q, k, v, the gates and T, which is read or computed. See gdn.h for the mathematics. sm_90a.
//
// A block walks the chunks of one sequence and value head, for block_dv of its columns, and takes
// the next such unit of work when it is done (ws_work.cuh). Its warpgroups, 128 threads each:
//
//     state     1, 2 with 128   the recurrence over chunks, 64 columns each    ws_state.cuh
//                               with outputs 0: and o                          ws_state_output.cuh
//                               with outputs 1 or 2: no more than that         ws_state_chain.cuh
//                               fewer than 64 columns: tokens along rows       ws_state_shared.cuh
//     scores    1               outputs 0: the decayed scores                  ws_scores.cuh
//     outputs   1 or 2          o, in turns                                    ws_output.cuh
//     solver    1               gdn_fwd: T                                     ws_solver.cuh
//     service   1               warp 0 loads, 1 and 2 store, 3: gates          ws_service.cuh
//
// Shared memory is laid out in ws_layout.cuh. It is handed on by barriers; a reader waits for
// "full", a writer for "empty":
//
//     barrier       whose arrivals end a phase                   then can be
//     full          loads of a stage, gate warp                  read: the stage and its gates
//     empty         state, scores (or the chunk's output),       loaded: the stage
//                   solver
//     landed        loads of a chunk that is not whole           cleared: its end (gate warp)
//     scores_full   scores                                       read: P
//     scores_empty  state                                        written: P
//     s_full        state                                        read: S^T
//     s_empty       the chunk's output                           written: S^T
//     value_full    state                                        read: V'^T
//     o_full        who wrote o                                  stored: o
//     o_empty       store warp                                   written: o, or V'^T
//     solved        solver                                       read: T
#pragma once

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
#include "gdn/ws_state_shared.cuh"
#include "gdn/ws_work.cuh"

// One thread; how many arrivals end a phase. All threads of a role arrive, the loading one alone.
KKT_DEVICE void make_barriers(const Shared &shared) {
    constexpr int group = P::warpgroup;
    constexpr int state = group * P::groups;
    for (int n = 0; n < P::stages; ++n) {
        mbarrier_init(shared.barrier(Layout::full + n), 1 + kWarp);
        mbarrier_init(shared.barrier(Layout::empty + n), state + group * (P::fused ? 2 : 1));
        mbarrier_init(shared.barrier(Layout::landed + n), 1);
        if (P::fused)
            mbarrier_init(shared.barrier(Layout::solved + n), group);
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

// What every thread of a block does.
KKT_DEVICE void run_block(const Problem &p, const Maps &maps, u8 *smem) {
    const Shared shared = {smem};
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
        const int helper = warpgroup - P::groups;
#if KKT_FUSED
        if (helper == P::scorers)
            return solve_role(shared, chunks, warp, lane);
#endif
#if KKT_OUTPUTS > 0
        output_role(shared, chunks, p.scale, helper, warp, lane);
#else
        score_role(shared, chunks, p.scale, warp, lane);
#endif
    } else {
        registers_set<P::launch_registers, P::service_registers>();
        service_role(p, maps, shared, warp, lane);
    }
}
