// The warp that loads: of each stage its block's share of the tiles, to all blocks of the cluster
// that read them.
#pragma once

#include "device/tensor_map.cuh"
#include "device/warp_roles.cuh"
#include "gemm/ws_barrier.cuh"
#include "gemm/ws_cluster.cuh"
#include "gemm/ws_layout.cuh"
#include "gemm/ws_schedule.cuh"

// An operand's share of a stage: `at` is its first row of M (or column of N), `k` of K, `index`
// which share this block loads, `readers` the blocks it goes to.
template <class OPERAND, bool MULTICAST>
KKT_DEVICE void load_share(u32 tile, const TensorMap &map, int at, int k, int index, u16 readers,
                           u32 full) {
    constexpr int loads = OPERAND::k_major ? OPERAND::panels : OPERAND::share / 64;
    const int first = index * OPERAND::share;
    const u32 to =
        tile + (u32)(OPERAND::k_major ? first * kRowBytes : first / 64 * OPERAND::panel_bytes);
#pragma unroll
    for (int i = 0; i < loads; ++i) {
        const int step = 64 * i; // of K along its rows, or of M or N
        const int column = OPERAND::k_major ? k + step : at + first + step;
        const int row = OPERAND::k_major ? at + first : k;
        tile_load_to<MULTICAST>(to + (u32)(i * OPERAND::panel_bytes), map, column, row, full,
                                readers);
    }
}

// The blocks that read the same tile of A (all that are across) or of B (all that are down).
KKT_DEVICE u16 blocks_across(const Place &place) {
    u32 blocks = 0;
#pragma unroll
    for (int i = 0; i < P::cluster_n; ++i)
        blocks |= 1u << Place::rank_at(place.part, place.down, i);
    return (u16)blocks;
}

KKT_DEVICE u16 blocks_down(const Place &place) {
    u32 blocks = 0;
#pragma unroll
    for (int i = 0; i < P::cluster_m; ++i)
        blocks |= 1u << Place::rank_at(place.part, i, place.across);
    return (u16)blocks;
}

// One thread.
KKT_DEVICE void produce(u32 smem, const TensorMap &a, const TensorMap &b, const Problem &problem,
                        const Place &place) {
    const u16 across = blocks_across(place), down = blocks_down(place);
    Ring<P::stages> ring = Ring<P::stages>::start();
    for (Schedule s = Schedule::start(problem); s.more(); s.advance()) {
        const int2 origin = s.origin(place), steps = s.steps(place);
        for (int k = steps.x; k < steps.y; ++k) {
            const u32 full = smem + Layout::full + 8 * ring.slot;
            mbarrier_wait(barrier_at(smem + Layout::empty + 8 * ring.slot), ring.parity ^ 1);
            mbarrier_expect(barrier_at(full), Layout::stage_bytes);
            load_share<OperandA, (P::cluster_n > 1)>(
                smem + Layout::a + (u32)(ring.slot * OperandA::bytes), a, origin.x, k * P::bk,
                place.across, across, full);
            load_share<OperandB, (P::cluster_m > 1)>(
                smem + Layout::b + (u32)(ring.slot * OperandB::bytes), b, origin.y, k * P::bk,
                place.down, down, full);
            ring.advance();
        }
    }
    // Other blocks tell these barriers of stages that they have read: the block must last as long.
    if (P::mn > 1)
        for (int i = 0; i < P::stages; ++i, ring.advance())
            mbarrier_wait(barrier_at(smem + Layout::empty + 8 * ring.slot), ring.parity ^ 1);
}
