// Fixed-width types and the few qualifiers that device code here uses. The kernels are compiled by
// NVRTC without include paths, so nothing of the C++ or CUDA headers is at hand.
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int i32;
typedef long long i64;

#define KKT_DEVICE static __device__ __forceinline__

constexpr int kWarp = 32;

__host__ __device__ constexpr int divide_up(int a, int b) {
    return (a + b - 1) / b;
}

__host__ __device__ constexpr int round_up(int a, int unit) {
    return divide_up(a, unit) * unit;
}

__host__ __device__ constexpr int larger(int a, int b) {
    return a > b ? a : b;
}

// Address of shared memory as the 32-bit offset that ldmatrix and cp.async take.
KKT_DEVICE u32 shared_address(const void *pointer) {
    return (u32)__cvta_generic_to_shared(pointer);
}
