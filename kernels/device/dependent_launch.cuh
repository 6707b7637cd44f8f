// Programmatic dependent launch: a kernel that starts while the one before it in the stream still
// runs, and waits only before it reads what that one writes. Without the launch attribute both
// instructions do nothing. sm_90 and later.
#pragma once

#include "device/types.cuh"

// Returns when the kernels before have ended and what they wrote can be seen.
KKT_DEVICE void wait_for_kernels_before() {
    asm volatile("griddepcontrol.wait;" ::: "memory");
}

// The kernels behind may start when every block has called this or has ended.
KKT_DEVICE void let_next_kernel_start() {
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}
