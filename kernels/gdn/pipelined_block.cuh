// A block of the pipelined gdn_fwd or gdn_fwd_t: it takes a sequence, a value head and BLOCK_DV
// columns of v, and goes through the chunks. All warps copy into a ring of STAGES slots with
// cp.async, and all multiply with mma_sync; each owns rows of the transposed state
// (transposed_chain.cuh):
//
//     wait for the chunk's copies                                                      barrier
//     S^T K^T, S^T Q^T         own rows; meanwhile O of the chunk before goes out, and the chunk
//                              STAGES - 1 ahead comes in
//     P = Gamma o Q K^T        this warp's blocks, to shared memory
//                              one warp: the next chunk's tables of decay
//     X^T, V'^T, S^T           own rows                                     barrier, see below
//     O^T                      own rows, to where V was
//
// With one stage the copies are the chunk's own, and are waited for at once.
//
// How V' comes of X is the entry's, a SYSTEM with
//
//     kReadsT              whether T of a chunk is in its slot of the ring
//     bytes                of shared memory of its own
//     make(k, gates, ...)  what of it needs K alone
//     solve(x, slot, ...)  V'^T in the place of X^T; it may begin with the barrier after P
//     meet()               that barrier, if not
//
// Shared memory:
//
//     ring      chunk_ring.cuh
//     scores    P, blocks of 512 bytes
//     system    the entry's
//     gates     ChunkGates, twice
#pragma once

#include "device/copy_groups.cuh"
#include "device/types.cuh"
#include "gdn/chunk_gates.cuh"
#include "gdn/chunk_ring.cuh"
#include "gdn/chunk_scores.cuh"
#include "gdn/chunk_tiles.cuh"
#include "gdn/mma_parameters.cuh"
#include "gdn/mma_work.cuh"
#include "gdn/sequence.cuh"
#include "gdn/transposed_chain.cuh"

constexpr int kStages = KKT_STAGES;

using Gates = ChunkGates<P::chunk>;

template <class System> struct PipelinedLayout {
    using Ring = ChunkRing<kStages, System::kReadsT>;
    static constexpr int scores_at = Ring::bytes;
    static constexpr int system_at = scores_at + P::blocks * kOperandBytes;
    static constexpr int gates_at = system_at + System::bytes;
    static constexpr int bytes = gates_at + 2 * Gates::bytes;
    static_assert(bytes == KKT_SMEM_BYTES, "the host's footprint and this layout differ");
};

template <class System> KKT_DEVICE void run_block(const Problem &p, u8 *shared, float scale) {
    using Layout = PipelinedLayout<System>;
    using Ring = typename Layout::Ring;
    u8 *scores = shared + Layout::scores_at;
    const System system = {shared + Layout::system_at};
    const int warp = __shfl_sync(0xffffffffu, (int)threadIdx.x / kWarp, 0);
    const int lane = threadIdx.x % kWarp;

    const Work w = Work::find(p);
    const Sequence sequence = Sequence::make(p, w);
    const TMatrix t_matrix = System::kReadsT ? TMatrix::make(p, w) : TMatrix{};
    const int chunks = (int)((w.length + P::chunk - 1) / P::chunk);
    const Ring ring = {shared, sequence, t_matrix, w, chunks};
    const auto gates_of = [&](int n) {
        return Gates{(float *)(shared + Layout::gates_at + n % 2 * Gates::bytes)};
    };
    ring.begin();
    StateColumns state;
    state.clear();
    const i64 own = w.state + warp * kRowTiles * 16; // this warp's columns of the state
    if (p.h0)
        load_state(state, p.h0 + own, lane);
    if (warp == 0 && chunks > 0) {
        GateRows<P::chunk> rows;
        sequence.ask_gates(rows, 0, w.rows(0), lane);
        rows.put(gates_of(0), scale, lane);
    }

#pragma unroll 1
    for (int n = 0; n < chunks; ++n) {
        const u8 *slot = ring.slot(n);
        const Gates gates = gates_of(n);
        const i64 next = (i64)(n + 1) * P::chunk;
        const typename Ring::Turn turn = ring.turn(n);
        copy_group_wait<larger(kStages - 2, 0)>();
        __syncthreads();
        const bool by_steps = kStages > 1 && kQueriesEarly && turn.plain();
        if (!by_steps)
            turn.all();
        if (kStages == 1) {
            copy_group_end();
            copy_group_wait<0>();
            __syncthreads();
        }
        const bool scans = warp == Scores::idlest_warp && n + 1 < chunks;
        GateRows<P::chunk> next_gates;
        if (scans)
            sequence.ask_gates(next_gates, next, w.rows(next), lane);

        const LaneAddress k_at = KeyTile::lane_address(slot, lane);
        const LaneAddress q_at = KeyTile::lane_address(slot + Ring::q_at, lane);
        const LaneAddress v_at = warp_columns(slot + Ring::v_at, warp, lane);
        system.make(k_at, gates, warp, lane);
        TokenColumns values, queries;
        multiply_chunk(values, queries, state, k_at, q_at, scores, gates, scale, warp, lane, turn,
                       by_steps);
        copy_group_end();
        if (scans)
            next_gates.put(gates_of(n + 1), scale, lane);
        take_values(values, v_at, gates.value(), lane);
        system.solve(values, slot, warp, lane);
        finish_chunk(state, values, queries, scores, gates, k_at, q_at, v_at, lane,
                     [&] { system.meet(); });
    }
    __syncthreads();
    if (chunks > 0)
        ring.store_output(chunks - 1);
    if (p.ht)
        store_state(state, p.ht + own, lane);
}
