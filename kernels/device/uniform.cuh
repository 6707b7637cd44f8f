// Values that are the same in all threads of a warp, for the compiler to know that they are.
//
// wgmma's descriptors and TMA's operands are read from uniform registers. Of a value that comes
// from threadIdx the compiler does not know that a warp's threads agree: it moves it there before
// each use, in the loops that must not wait for it.
#pragma once

#include "device/types.cuh"

// The first lane's. All threads of the warp.
KKT_DEVICE u32 uniform(u32 value) {
    return __shfl_sync(0xffffffffu, value, 0);
}
