// Blocks of a cluster: tiles that arrive in several of them, barriers and stores in another one's
// shared memory. sm_90a only.
#pragma once

#include "device/tensor_map.cuh"
#include "device/types.cuh"

KKT_DEVICE u32 cluster_rank() {
    u32 rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

// All threads of all blocks of the cluster arrive and wait in turns: all blocks have begun then.
// Of what they wrote only barriers that were set up can be seen (they have a fence of their own).
KKT_DEVICE void cluster_arrive() {
    asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
}

KKT_DEVICE void cluster_wait() {
    asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}

KKT_DEVICE void cluster_synchronize() {
    cluster_arrive();
    cluster_wait();
}

// Where `address` of this block lies in block `rank`.
KKT_DEVICE u32 in_block(u32 address, u32 rank) {
    u32 there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
    return there;
}

// One arrival at the barrier with this address, of this block or, by in_block, of another one. It
// orders nothing for the other block's threads (with .release.cluster it would, and wait for all
// writes of this thread): it is for what only wgmma reads and only TMA writes.
KKT_DEVICE void arrive_in_block(u32 barrier) {
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// Stores to an address of another block, asynchronously: the barrier there is told of the bytes.
KKT_DEVICE void store_in_block(u32 address, u32 barrier, float x, float y, float z, float w) {
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 "
                 "[%0], {%1, %2, %3, %4}, [%5];" ::"r"(address),
                 "f"(x), "f"(y), "f"(z), "f"(w), "r"(barrier)
                 : "memory");
}

// As tile_load, but to shared addresses, and to the same places in all blocks whose bits are set,
// where the barriers there are told of the bytes.
template <bool MULTICAST>
KKT_DEVICE void tile_load_to(u32 destination, const TensorMap &map, int column, int row,
                             u32 barrier, u16 blocks) {
    if (MULTICAST)
        asm volatile(
            "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
            ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(destination),
            "l"(&map), "r"(column), "r"(row), "r"(barrier), "h"(blocks)
            : "memory");
    else
        asm volatile(
            "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
            "[%0], [%1, {%2, %3}], [%4];" ::"r"(destination),
            "l"(&map), "r"(column), "r"(row), "r"(barrier)
            : "memory");
}
