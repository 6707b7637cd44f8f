// Copies of rectangular tiles between global and shared memory by the tensor memory accelerator.
// One thread asks for a whole tile; sm_90 and later. The tile's size, its place in the tensor's
// rows and its swizzle (swizzle.cuh) are in the tensor map, which the host encodes.
#pragma once

#include "device/types.cuh"

// As the host's CUtensorMap; passed as a __grid_constant__ parameter, never copied.
struct alignas(64) TensorMap {
    u64 opaque[16];
};

// One lane of the warp. Where this decides, the compiler knows that one lane goes on, and a copy
// takes no loop over lanes.
KKT_DEVICE bool elected() {
    u32 yes;
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "elect.sync _|p, 0xffffffff;\n"
                 "selp.u32 %0, 1, 0, p;\n"
                 "}"
                 : "=r"(yes));
    return yes;
}

// Fetches the map itself, so that the first copy does not wait for it.
KKT_DEVICE void tensor_map_prefetch(const TensorMap &map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

// Asks for the tile at (column, row); its bytes are reported to `barrier`.
KKT_DEVICE void tile_load(void *destination, const TensorMap &map, int column, int row,
                          u64 *barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];" ::"r"(shared_address(destination)),
                 "l"(&map), "r"(column), "r"(row), "r"(shared_address(barrier))
                 : "memory");
}

// Makes this thread's writes to shared memory visible to tile_store and to wgmma; every writer
// calls it before the barrier after which one thread goes on.
KKT_DEVICE void async_proxy_fence() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Writes the tile to (column, row) and closes the group of this thread's stores so far.
KKT_DEVICE void tile_store(const TensorMap &map, int column, int row, const void *source) {
    asm volatile(
        "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map),
        "r"(column), "r"(row), "r"(shared_address(source))
        : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Returns when the sources of all stores of this thread have been read and may be overwritten (or
// the block may end).
KKT_DEVICE void tile_store_wait_read() {
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}
