// Groups of asynchronous copies of one thread (device/async_copy.cuh).
#pragma once

#include "device/types.cuh"

// Ends a group: the copies since the last one.
KKT_DEVICE void copy_group_end() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits until at most PENDING of this thread's groups, the latest ones, are not done.
template <int PENDING> KKT_DEVICE void copy_groups_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}
