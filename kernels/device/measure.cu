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
