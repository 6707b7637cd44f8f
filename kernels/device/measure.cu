// Helper kernels of the measurement itself: emptying the L2 by reading, and a look at every
// element of an output without copying it to the host.

typedef unsigned long long u64;

// Reads `count` 16-byte words, more than the L2 holds. By reading, since lines left dirty by
// writing would be evicted, and so paid for, inside the next timed launch. `sink` is written only
// where the words' exclusive or is `never`, so that the loads are not optimised away.
extern "C" __global__ void kkt_flush(const uint4 *words, u64 count, unsigned never,
                                     unsigned *sink) {
    unsigned all = 0;
    u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
        uint4 word = words[i];
        all ^= word.x ^ word.y ^ word.z ^ word.w;
    }
    if (all == never)
        *sink = all;
}

struct scan_result {
    u64 unwritten;  // elements whose bits are still the poison: all ones
    u64 not_finite; // elements that are infinite or NaN, the unwritten ones included
    u64 hash;       // sum of mixed (index, bits): the same for any order of the threads
};

static __device__ u64 mix(u64 x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

static __device__ u64 warp_sum(u64 value) {
    for (int lane = 16; lane > 0; lane /= 2)
        value += __shfl_down_sync(0xffffffffu, value, lane);
    return value;
}

// `exponent`: the bits that are all set in a value that is not finite; 0 for integers.
template <typename word>
static __device__ void scan(const word *data, u64 count, u64 exponent, scan_result *out) {
    u64 unwritten = 0, not_finite = 0, hash = 0;
    u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
        word bits = data[i];
        unwritten += bits == (word)~(word)0;
        not_finite += exponent != 0 && (bits & exponent) == exponent;
        hash += mix(i * 0x9e3779b97f4a7c15ull ^ bits);
    }
    unwritten = warp_sum(unwritten);
    not_finite = warp_sum(not_finite);
    hash = warp_sum(hash);
    if (threadIdx.x % 32 == 0) {
        atomicAdd(&out->unwritten, unwritten);
        atomicAdd(&out->not_finite, not_finite);
        atomicAdd(&out->hash, hash);
    }
}

// One output of `count` elements of `bytes` bytes each; the block is a multiple of 32 threads.
extern "C" __global__ void kkt_scan(const void *data, u64 count, int bytes, u64 exponent,
                                    scan_result *out) {
    if (bytes == 2)
        scan((const unsigned short *)data, count, exponent, out);
    else if (bytes == 4)
        scan((const unsigned *)data, count, exponent, out);
    else
        scan((const u64 *)data, count, exponent, out);
}

struct compare_result {
    u64 worst;   // bits of the largest |a - b| above its place
    u64 largest; // bits of the largest |b|
};

template <int KIND> static __device__ float value_at(const void *data, u64 i) {
    if (KIND == 0)
        return __uint_as_float((unsigned)((const unsigned short *)data)[i] << 16);
    if (KIND == 1) {
        float value;
        asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(((const unsigned short *)data)[i]));
        return value;
    }
    return KIND == 2 ? ((const float *)data)[i] : (float)((const double *)data)[i];
}

static __device__ u64 warp_max(u64 value) {
    for (int lane = 16; lane > 0; lane /= 2) {
        u64 other = __shfl_down_sync(0xffffffffu, value, lane);
        value = other > value ? other : value;
    }
    return value;
}

// Bits of floats that are not negative are ordered as the floats are.
template <int KIND>
static __device__ void compare(const void *a, const void *b, u64 count, int shift,
                               compare_result *out) {
    u64 worst = 0;
    float largest = 0.0f;
    u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
        float y = value_at<KIND>(b, i);
        u64 bits = __float_as_uint(fabsf(value_at<KIND>(a, i) - y));
        bits = bits << 32 | i >> shift;
        worst = bits > worst ? bits : worst;
        largest = fmaxf(largest, fabsf(y));
    }
    worst = warp_max(worst);
    u64 largest_bits = warp_max(__float_as_uint(largest));
    if (threadIdx.x % 32 == 0) {
        atomicMax(&out->worst, worst);
        atomicMax(&out->largest, largest_bits);
    }
}

// Two outputs of `count` elements. `kind`: bf16, fp16, fp32, fp64. `shift`: places are counted in
// steps of 2^shift elements, so that they take 32 bits.
extern "C" __global__ void kkt_compare(const void *a, const void *b, u64 count, int kind, int shift,
                                       compare_result *out) {
    if (kind == 0)
        compare<0>(a, b, count, shift, out);
    else if (kind == 1)
        compare<1>(a, b, count, shift, out);
    else if (kind == 2)
        compare<2>(a, b, count, shift, out);
    else
        compare<3>(a, b, count, shift, out);
}
