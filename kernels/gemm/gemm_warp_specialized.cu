// C = A B by blocks whose warps have different tasks. sm_90a only.
//
//     warpgroup 0     one thread asks TMA for the tiles of A and B, stage after stage
//     warpgroup 1, 2  multiply (wgmma) and write C: both a tile together, half of its rows each,
//     or,
//                     ping-pong, a tile each, so that one writes while the other multiplies
//
// Blocks of a cluster load each a share of the tiles that several of them need, and TMA delivers it
// to all (multicast); or they share a tile's K and add up their sums at the end. The grid has as
// many blocks as the GPU holds, and each takes tiles as long as there are any; or one a tile.
//
//     barrier          phase ends when                                  who waits
//     full[stage]      all bytes of the stage's tiles are there         consumers
//     empty[stage]     every warp that reads the stage, here or its     the loading thread
//                      copies elsewhere that this block writes, is done
//     bar 1, 2         a warpgroup's 128 threads have staged C          the same warpgroup
//     bar 3, 4         this warpgroup may multiply: ping-pong, its      both warpgroups
//                      tile; else, once, its first
//     cluster          before the first and after the last access to    all
//                      another block's shared memory
//
// Shared memory is drawn in ws_layout.cuh.
#include "device/mbarrier.cuh"
#include "device/tensor_map.cuh"
#include "device/types.cuh"
#include "device/warp_roles.cuh"
#include "gemm/repack.cuh"
#include "gemm/ws_cluster.cuh"
#include "gemm/ws_layout.cuh"
#include "gemm/ws_output.cuh"
#include "gemm/ws_parameters.cuh"
#include "gemm/ws_partials.cuh"
#include "gemm/ws_producer.cuh"
#include "gemm/ws_products.cuh"
#include "gemm/ws_reduce.cuh"
#include "gemm/ws_schedule.cuh"

// A block's view of what its roles share.
struct Block {
    u8 *smem;
    u64 *full, *empty;
    Place place;
    Problem problem;
    Output out;
    float *partials;
};

// COLUMNS columns of 64 rows, to C or to the part's matrix.
template <int COLUMNS>
KKT_DEVICE void write_block(const Block &b, const float *value, int row, int column, int part,
                            int group, int thread) {
    if constexpr (P::split_k > 1)
        store_partial_rows<COLUMNS>(b.partials + (i64)part * b.out.m * b.out.n, b.out.m, b.out.n,
                                    row, column, value, thread);
    else
        write_rows<COLUMNS>(b.out, row, column, value,
                            b.smem + Layout::c + group * Layout::c_group_bytes, group, thread);
}

KKT_DEVICE void write_tile(const Block &b, const Accumulator &c, const Schedule &s, int group,
                           int thread) {
    const int2 origin = s.origin(b.place);
    const int first = origin.x + group % P::team_groups * P::group_rows;
#pragma unroll
    for (int r = 0; r < P::row_blocks; ++r) {
        if constexpr (P::cluster_k == 1) {
            write_block<P::bn>(b, c.block[r], first + 64 * r, origin.y, s.part(), group, thread);
        } else {
            const int column = origin.y + b.place.part * Reduction::columns;
#pragma unroll
            for (int p = 0; p < Reduction::columns / 64; ++p) {
                float sum[32];
                sum_parts(sum, c, b.smem, b.place, r, p, group * 128 + thread);
                write_block<64>(b, sum, first + 64 * r, column + 64 * p, s.part(), group, thread);
            }
        }
    }
}

KKT_DEVICE void consume(const Block &b, int group, int thread) {
    const Release release = Release::of(b.place, thread % kWarp);
    const int team = P::ping_pong ? group : 0;
    const u32 smem = shared_address(b.smem);
    Ring<P::stages> ring = Ring<P::stages>::start();
    Schedule s = Schedule::start(b.problem);
    Accumulator c;
    int turn = 0;
    bool begun = false;
    if (P::ping_pong && team == 1)
        give_turn(group);
    for (; s.more(); s.advance(), turn ^= 1) {
        const int2 steps = s.steps(b.place);
        const int count = steps.y - steps.x;
        if (P::ping_pong && turn != team) {
            for (int k = 0; k < count; ++k)
                ring.advance();
            continue;
        }
        if (P::ping_pong || (P::skew > 0 && !begun && group == 1))
            take_turn(group);
        const int signal = begun || group == 1 ? -1 : P::skew < count ? P::skew : count - 1;
        const int last = multiply(c, ring, count, signal, smem, group % P::team_groups, b.full,
                                  b.empty, release);
        if (P::ping_pong)
            give_turn(group);
        begun = true;
        finish(c, count, b.empty + last, release);
        if constexpr (P::cluster_k > 1) {
            cluster_synchronize();
            send_partial_sums(c, smem, b.place, group * 128 + thread);
            cluster_synchronize();
        }
        write_tile(b, c, s, group, thread);
    }
    if (P::bulk_store && thread == 0)
        tile_store_wait_read();
}

KKT_DEVICE void set_up(const Block &b, const TensorMap &map_a, const TensorMap &map_b) {
    if (threadIdx.x == 0) {
        constexpr int readers = 4 * P::team_groups * (P::cluster_m + P::cluster_n - 1);
        tensor_map_prefetch(map_a);
        tensor_map_prefetch(map_b);
        for (int i = 0; i < P::stages; ++i) {
            mbarrier_init(b.full + i, 1);
            mbarrier_init(b.empty + i, readers);
        }
    }
    if (P::cluster > 1)
        cluster_synchronize();
    __syncthreads();
}

extern "C" __global__ void __launch_bounds__(P::threads, 1)
    gemm_warp_specialized(const __grid_constant__ TensorMap map_a,
                          const __grid_constant__ TensorMap map_b,
                          const __grid_constant__ TensorMap map_c, u16 *c, float *partials, i32 m,
                          i32 n, i32 k) {
    extern __shared__ __align__(1024) u8 smem[];
    const Block b = {smem,
                     (u64 *)(smem + Layout::full),
                     (u64 *)(smem + Layout::empty),
                     Place::of(P::cluster > 1 ? cluster_rank() : 0),
                     {m, n, k},
                     {&map_c, c, m, n},
                     partials};
    const int group = (int)threadIdx.x / 128, thread = (int)threadIdx.x % 128;
    set_up(b, map_a, map_b);
    if (group == 0) {
        registers_set<P::launch_registers, P::producer_registers>();
        if (thread == 0)
            produce(smem, b.full, b.empty, map_a, map_b, b.problem, b.place);
        __syncwarp();
        if (P::cluster_k > 1) { // as often as the consumers, which have one tile
            cluster_synchronize();
            cluster_synchronize();
        }
    } else {
        registers_set<P::launch_registers, P::consumer_registers>();
        consume(b, group - 1, thread);
    }
    if (P::mn > 1)
        cluster_synchronize();
}
