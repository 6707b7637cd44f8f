// kkt_solve with the couplings in registers: a warp, or a team of two, inverts a head's chunk, and
// what it couples never leaves its fragments (register_blocks.cuh).
//
// A block takes a span of one or more chunks and HEADS_PER_BLOCK value heads: of one key head, for
// all of which K K^T is formed once, without the gate; or one a warp, each with its own. In the
// order data flows, with the file of each step:
//
//     1  register_load.cuh      K to a swizzled tile, beta and g to the heads' tables     barrier
//     2  register_product.cuh   the gate's factors; K K^T on tensor cores and, in
//                               fragments, to shared memory                               barrier
//     3  register_warp.cuh      a warp a head: diagonal blocks of -L to scratch, their
//        or register_team.cuh   inverses back as operands, couplings by halves
//        register_inverse.cuh   what both have in common
//        register_output.cuh    blocks of T to a tile, and out
//
// From step 3 on a warp meets no other than its team's. A persistent block asks for its next unit's
// K and gates before step 3, and begins again behind a barrier. register_layout.cuh draws shared
// memory.
#pragma once

#include "kkt_solve/parameters.cuh"
#include "kkt_solve/work.cuh"

#if KKT_COUPLE >= 2

#include "kkt_solve/register_inverse.cuh"
#include "kkt_solve/register_layout.cuh"
#include "kkt_solve/register_load.cuh"
#include "kkt_solve/register_output.cuh"
#include "kkt_solve/register_product.cuh"
#include "kkt_solve/register_team.cuh"
#include "kkt_solve/register_warp.cuh"

// Calls `work` for each head of worker `first` of `workers`; one that has a single head is no loop.
template <int WORKERS, class Action> KKT_DEVICE void for_heads(int first, const Action &work) {
    if constexpr (WORKERS == P::heads) {
        work(first);
    } else {
#pragma unroll 1
        for (int head = first; head < P::heads; head += WORKERS)
            work(head);
    }
}

KKT_DEVICE Factors factors_of(u8 *shared, int head) {
    return Factors::at((float *)(shared + Layout::factors_at) + head * Factors::words);
}

// Step 3, one head of worker (warp or team) `worker`.
KKT_DEVICE void solve_head(const Problem &p, const Work &w, const TensorMap *t_map, u8 *shared,
                           const Area &area, const HeadTeam &team, int head, const LaneGate &gate) {
    const int head_v = w.head_v + head;
    const Factors factors = factors_of(shared, head);
    const bool whole = w.rows == P::span;
    const Out out = {whole ? t_map : nullptr,
                     p.t + ((i64)w.first * p.heads_v + head_v) * P::chunk,
                     (i64)p.heads_v * P::chunk,
                     head_v * P::chunk,
                     w.first,
                     w.rows,
                     {nullptr, nullptr},
                     factors.beta,
                     area.lane};
    const u8 *k_kt = area.work + Layout::k_kt_at;
    const int region = area.warp / P::team;
    if constexpr (P::team == 1)
        solve_by_warp(k_kt, factors, gate, area.work, region, out);
    else
        solve_by_team(k_kt, factors, area.work + region * Layout::region_bytes,
                      area.work + Layout::zeros_at, team, out);
}

#if KKT_KLOAD == 2 || KKT_STORE >= 2
#define KKT_MAPS , const __grid_constant__ TensorMap k_map, const __grid_constant__ TensorMap t_map
#define KKT_MAP(map) (&(map))
#else
#define KKT_MAPS
#define KKT_MAP(map) nullptr
#endif

// Grid: x groups of HEADS_PER_BLOCK value heads; y and z span slots, see find_block_work. Of
// persistent blocks x alone, as many as the GPU has room for.
extern "C" __global__ void __launch_bounds__(P::threads, P::min_blocks)
    kkt_solve(const u16 *k, const float *beta, const float *g, const void *cu_seqlens, u16 *t,
              i64 tokens, int sequences, int heads_k, int heads_v, int cu_seqlens_wide, int groups,
              int slots KKT_MAPS) {
    extern __shared__ __align__(1024) u8 shared[];
    __builtin_assume(threadIdx.x < P::threads);
    const int warp = uniform((int)(threadIdx.x / kWarp));
    __builtin_assume(warp >= 0 && warp < P::warps);
    const int lane = (int)(threadIdx.x % kWarp);

    const Problem p = {k,         beta,    g,       cu_seqlens,      t,      tokens,
                       sequences, heads_k, heads_v, cu_seqlens_wide, groups, slots};
    const Area area = Area::make(shared, warp, lane);
    const HeadTeam team = {warp / P::team, warp % P::team, lane};
    Work w;
    u32 unit = blockIdx.x; // of a persistent block
    if constexpr (P::persistent) {
        if constexpr (P::kload == kTmaLoad) {
            if (area.warp == 0 && elected())
                mbarrier_init(area.arrived, 1);
            __syncthreads();
        }
        if (!find_next_work(p, unit, w))
            return;
    } else {
        w = find_block_work(p);
        if (w.rows <= 0)
            return;
    }
    GateLoad gates;
    ask(p, w, KKT_MAP(k_map), area, key_head(p, w, warp), gates);
#if KKT_STORE >= 2
    // Persistent blocks do without: it would hold up the loads behind it, those of a neighbour too.
    if (!P::persistent && threadIdx.x == P::threads - 1)
        tensor_map_prefetch(t_map);
#endif
    if constexpr (Layout::apart) {
        if (area.warp < Layout::regions)
            clear_first_half(area.work + Layout::first_out(area.warp), lane);
    }
    for (u32 parity = 0;;) {
        receive(w, shared, gates);
        LaneGate gate;
        multiply_k(w, area, parity, [&] {
            for_heads<P::warps>(warp, [&](int head) { factors_of(shared, head).scan(lane); });
            if constexpr (LaneGate::early) {
                __syncwarp(); // the head's factors are written
                gate.make(factors_of(shared, warp), lane);
            }
        });
        const Work current = w;
        bool more = false;
        if constexpr (P::persistent) { // K's tile and the registers of the gates are free again
            parity ^= comes_by_tile(w);
            unit += gridDim.x;
            more = find_next_work(p, unit, w);
            if (more)
                ask(p, w, KKT_MAP(k_map), area, key_head(p, w, warp), gates);
        }
        for_heads<HeadTeam::count>(team.index, [&](int head) {
            solve_head(p, current, P::store >= kTmaStore ? KKT_MAP(t_map) : nullptr, shared, area,
                       team, head, gate);
        });
        if (!more)
            break;
        // Of one tile (halves lie behind): the next K K^T goes where it is, by all warps.
        if (Layout::alone && P::store == kTmaStore && lane == 0)
            tile_store_wait_read();
        __syncthreads(); // all else is the next unit's
    }
    if (P::persistent && P::store >= kTmaStore && lane == 0)
        tile_store_wait_read(); // before the block leaves its tiles
}

#endif // couplings in registers
