// gdn_fwd_t, pipelined: the forward pass of Gated DeltaNet with T of every chunk from kkt_solve.
// All warps copy into a ring of STAGES slots with cp.async, and all multiply with mma_sync.
//
// One block takes a sequence, a value head and BLOCK_DV columns of v, and goes through the chunks.
// Each warp owns rows of the transposed state (transposed_chain.cuh) and meets the others twice a
// chunk:
//
//     wait for the chunk's copies                                                      barrier
//     S^T K^T, S^T Q^T         own rows; meanwhile O of the chunk before goes out, and the chunk
//                              STAGES - 1 ahead comes in
//     P = Gamma o Q K^T        this warp's blocks, to shared memory
//                              one warp: the next chunk's tables of decay
//     X^T, V'^T, S^T           own rows                                                barrier
//     O^T                      own rows, to where V was
//
// With one stage the copies are the chunk's own, and are waited for at once.
//
// Shared memory:
//
//     ring      chunk_ring.cuh
//     scores    P, blocks of 512 bytes
//     gates     ChunkGates, twice
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
constexpr TForm kForm = (TForm)KKT_T_FORM;

using Gates = ChunkGates<P::chunk>;

using Ring = ChunkRing<kStages, true>;

struct Layout {
    static constexpr int scores_at = Ring::bytes;
    static constexpr int gates_at = scores_at + P::blocks * kOperandBytes;
    static constexpr int bytes = gates_at + 2 * Gates::bytes;
};

static_assert(Layout::bytes == KKT_SMEM_BYTES, "the host's footprint and this layout differ");

// V'^T of this warp's rows in the place of X^T.
KKT_DEVICE void solve(TokenColumns &x, const u8 *t_blocks, int lane) {
    const RoundedTokens rounded = round_rows(x);
    const u32 t = shared_address(t_blocks) + TBlock::at(lane % 8 + lane / 16 * 8, lane / 8 % 2);
    x.clear();
    multiply_lower<0>(x, rounded, [&](int n) { return load_right_tile(t + n * TBlock::bytes); });
}

// Grid: x splits of dv, then value heads, then sequences.
extern "C" __global__ void __launch_bounds__(P::threads, P::min_blocks)
    gdn_fwd_t(const u16 *q, const u16 *k, const u16 *v, const float *beta, const float *g,
              const u16 *t, const float *h0, const int *cu_seqlens, u16 *o, float *ht, i64 tokens,
              int heads_k, int heads_v, float scale) {
    extern __shared__ __align__(1024) u8 shared[];
    u8 *scores = shared + Layout::scores_at;
    const int warp = __shfl_sync(0xffffffffu, (int)threadIdx.x / kWarp, 0);
    const int lane = threadIdx.x % kWarp;

    const Problem p = {
        q,      k,       v,      kForm == kTBeta ? nullptr : beta, g, t, h0, cu_seqlens, o, ht,
        tokens, heads_k, heads_v};
    const Work w = Work::find(p);
    const Sequence sequence = Sequence::make(p, w);
    const TMatrix t_matrix = TMatrix::make(p, w);
    const int chunks = (int)((w.length + P::chunk - 1) / P::chunk);
    const Ring ring = {shared, sequence, t_matrix, w, chunks};
    const auto gates_of = [&](int n) {
        return Gates{(float *)(shared + Layout::gates_at + n % 2 * Gates::bytes)};
    };
    ring.begin();
    StateColumns state;
    state.clear();
    const i64 own = w.state + warp * kRowTiles * 16; // this warp's columns of the state
    if (h0)
        load_state(state, h0 + own, lane);
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
        const Ring::Turn turn = ring.turn(n);
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
        TokenColumns values, queries;
        multiply_chunk(values, queries, state, k_at, q_at, scores, gates, scale, warp, lane, turn,
                       by_steps);
        copy_group_end();
        if (scans)
            next_gates.put(gates_of(n + 1), scale, lane);
        take_values(values, v_at, gates.value(), lane);
        solve(values, slot + Ring::t_at, lane);
        finish_chunk(state, values, queries, scores, gates, k_at, q_at, v_at, lane,
                     [] { __syncthreads(); });
    }
    __syncthreads();
    if (chunks > 0)
        ring.store_output(chunks - 1);
    if (ht)
        store_state(state, ht + own, lane);
}
