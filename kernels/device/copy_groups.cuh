// Asynchronous copies in groups: what a thread has issued since the last group.
#pragma once

#include "device/types.cuh"

KKT_DEVICE void copy_group_end() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits until at most PENDING of this thread's groups are still on their way.
template <int PENDING> KKT_DEVICE void copy_group_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}
