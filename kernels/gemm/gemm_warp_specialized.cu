// C = A B by blocks whose warps have different tasks. sm_90a only.
//
//     warpgroup 0     one thread asks TMA for the tiles of A and B, stage after stage
//     warpgroup 1, 2  multiply (wgmma) and write C: both a tile together, half of its rows each;
//                     or, ping-pong, a tile each, so that one writes while the other multiplies
//
// Blocks of a cluster load each a share of the tiles that several of them need, and TMA delivers it
// to all (multicast); or they share a tile's K and add up their sums at the end. The grid has as
// many blocks as the GPU holds, and each takes tiles as long as there are any; or one a tile.
//
//     barrier          phase ends when                                  who waits
//     full[stage]      all bytes of the stage's tiles are there         consumers
//     empty[stage]     every warp that reads the stage, here or its     the loading thread
//                      copies elsewhere that this block writes, is done
//     received         what the other blocks of the cluster have        consumers
//                      summed up for this one has come
//     bar 1, 2         a warpgroup's 128 threads have staged C, or      the same warpgroup
//                      looked for the next stage
//     bar 3, 4         ping-pong: this warpgroup may multiply           both warpgroups
//     bar 5            the barriers above are set up                    consumers
//     cluster          before the first access to another block's       all
//                      shared memory; after the last one to its own
//                      the loading thread waits for every stage
//
// Shared memory is drawn in ws_layout.cuh.
#include "device/mbarrier.cuh"
#include "device/named_barrier.cuh"
#include "device/tensor_map.cuh"
#include "device/types.cuh"
#include "device/uniform.cuh"
#include "device/warp_roles.cuh"
#include "gemm/repack.cuh"
#include "gemm/ws_barrier.cuh"
#include "gemm/ws_cluster.cuh"
#include "gemm/ws_layout.cuh"
#include "gemm/ws_output.cuh"
#include "gemm/ws_parameters.cuh"
#include "gemm/ws_partials.cuh"
#include "gemm/ws_producer.cuh"
#include "gemm/ws_products.cuh"
#include "gemm/ws_reduce.cuh"
#include "gemm/ws_schedule.cuh"
#include "gemm/ws_thread.cuh"

// A block's view of what its roles share.
struct Block {
    u8 *smem;
    u32 shared; // its address
    Place place;
    Problem problem;
    Output out;
    float *partials;
};

// COLUMNS columns of 64 rows, to C or to the part's matrix.
template <int COLUMNS>
KKT_DEVICE void write_block(const Block &b, const float *value, int row, int column, int part,
                            const Thread &t) {
    if constexpr (P::split_k > 1)
        store_partial_rows<COLUMNS>(b.partials + (i64)part * b.out.m * b.out.n, b.out.m, b.out.n,
                                    row, column, value, t.in_group());
    else
        write_rows<COLUMNS>(b.out, row, column, value,
                            b.smem + Layout::c + t.group * Layout::c_group_bytes, t);
}

KKT_DEVICE void write_tile(const Block &b, const Accumulator &c, int2 origin, int part,
                           const Thread &t) {
    const int first = origin.x + t.group % P::team_groups * P::group_rows;
#pragma unroll
    for (int r = 0; r < P::row_blocks; ++r) {
        if constexpr (P::cluster_k == 1) {
            write_block<P::bn>(b, c.block[r], first + 64 * r, origin.y, part, t);
        } else {
            const int column = origin.y + b.place.part * Reduction::columns;
#pragma unroll
            for (int p = 0; p < Reduction::columns / 64; ++p) {
                float sum[32];
                sum_parts(sum, c, b.smem, b.place, r, p, t.in_groups());
                write_block<64>(b, sum, first + 64 * r, column + 64 * p, part, t);
            }
        }
    }
}

// Once a block: its own sums to the others of its cluster, and theirs of its columns to it.
KKT_DEVICE void exchange_sums(const Block &b, const Accumulator &c, const Thread &t) {
    const u32 received = b.shared + Layout::received;
    if (t.in_groups() == 0)
        mbarrier_expect(barrier_at(received), Reduction::bytes);
    send_partial_sums(c, b.shared, b.place, t.in_groups());
    mbarrier_wait(barrier_at(received), 0);
}

KKT_DEVICE void consume(const Block &b, const Thread &t) {
    const Release release = Release::of(b.shared, b.place, t.lane);
    const Operands operands = Operands::in_first_stage(b.shared, t.group);
    Ring<P::stages> ring = Ring<P::stages>::start();
    Accumulator c;
    int turn = 0;
    if (P::ping_pong && t.group == 1)
        give_turn(t.group);
    if (P::cluster_k > 1)
        cluster_wait();
    for (Schedule s = Schedule::start(b.problem); s.more(); s.advance(), turn ^= 1) {
        const int2 steps = s.steps(b.place);
        const int count = steps.y - steps.x;
        if (P::ping_pong && turn != t.group) {
            for (int k = 0; k < count; ++k)
                ring.advance();
            continue;
        }
        if (P::ping_pong)
            take_turn(t.group);
        const int last = multiply(c, ring, count, b.shared, t.group, operands, release);
        if (P::ping_pong)
            give_turn(t.group);
        const int2 origin = s.origin(b.place); // while the last products are in flight
        finish(c, count, last, release);
        if constexpr (P::cluster_k > 1)
            exchange_sums(b, c, t);
        write_tile(b, c, origin, s.part(), t);
    }
    if (P::bulk_store && t.warp == 0 && elected())
        tile_store_wait_read();
}

// By warp 0, a barrier a lane. Where no other block is involved the loading thread goes on at once.
KKT_DEVICE void set_up_barriers(const Block &b, const TensorMap &map_a, const TensorMap &map_b) {
    constexpr u32 readers = 4 * P::team_groups * (P::cluster_m + P::cluster_n - 1);
    static_assert(Layout::empty == Layout::full + P::stages * 8 &&
                      Layout::received == Layout::empty + P::stages * 8 && 2 * P::stages < kWarp,
                  "one after the other");
    const int lane = (int)threadIdx.x;
    u64 *barrier = (u64 *)(b.smem + Layout::full) + lane;
    if (lane <= 2 * P::stages)
        mbarrier_init(barrier, lane < P::stages || lane == 2 * P::stages ? 1 : readers);
    if (lane == 0) {
        tensor_map_prefetch(map_a);
        tensor_map_prefetch(map_b);
    }
    __syncwarp();
}

// What all threads of a cluster must take part in. Tiles go to other blocks at once, so all wait
// for their barriers; sums go there at the end, and cluster_wait comes before that.
KKT_DEVICE void begin_in_cluster() {
    if (P::mn > 1)
        cluster_synchronize();
    if (P::cluster_k > 1)
        cluster_arrive();
}

// The barriers of this block, and of those that it loads for, are set up. `loads`: warp 0.
KKT_DEVICE void begin(bool loads) {
    constexpr int threads = P::consumers * 128 + kWarp;
    if (P::mn == 1) {
        if (loads)
            named_barrier_arrive<threads>(5);
        else
            named_barrier_sync<threads>(5);
    }
    begin_in_cluster();
}

extern "C" __global__ void __launch_bounds__(P::threads, 1)
    gemm_warp_specialized(const __grid_constant__ TensorMap map_a,
                          const __grid_constant__ TensorMap map_b,
                          const __grid_constant__ TensorMap map_c, u16 *c, float *partials, i32 m,
                          i32 n, i32 k) {
    extern __shared__ __align__(1024) u8 smem[];
    const Block b = {smem,
                     uniform(shared_address(smem)),
                     Place::of(P::cluster > 1 ? cluster_rank() : 0),
                     {m, n, k},
                     {&map_c, c, m, n},
                     partials};
    const Thread t = Thread::self();
    if (t.group < 0) {
        registers_set<P::launch_registers, P::producer_registers>();
        if (t.warp == 0) {
            set_up_barriers(b, map_a, map_b);
            begin(true);
            if (elected())
                produce(b.shared, map_a, map_b, b.problem, b.place);
            __syncwarp();
        } else {
            begin_in_cluster();
        }
        if (P::cluster_k > 1)
            cluster_wait();
    } else {
        registers_set<P::launch_registers, P::consumer_registers>();
        begin(false);
        consume(b, t);
    }
}
