// Groups of neighbouring 16-bit elements: loads of 2 to 16 bytes, and their values as floats.
#pragma once

#include "device/convert.cuh"
#include "device/types.cuh"

// What a load leaves behind. Data that is read once need not stay: kStream keeps it out of L1,
// kStreamWide asks in addition that its 256 bytes of memory come to L2 together.
enum class Keep { kCached, kStream, kStreamWide };

// COUNT elements, two a word, the first in the low half of the first word.
template <int COUNT> struct Elements {
    static_assert(COUNT == 1 || COUNT == 2 || COUNT == 4 || COUNT == 8, "2, 4, 8 or 16 bytes");
    static constexpr int words = divide_up(COUNT, 2);

    u32 word[words];

    __device__ __forceinline__ void clear() {
#pragma unroll
        for (int i = 0; i < words; ++i)
            word[i] = 0;
    }

    // Element `i`, a constant once loops are unrolled.
    template <bool BF16> __device__ __forceinline__ float value(int i) const {
        const u32 pair = word[i / 2];
        if (BF16)
            return __uint_as_float(i % 2 ? pair & 0xffff0000u : pair << 16);
        const float2 both = unpack_fp16(pair);
        return i % 2 ? both.y : both.x;
    }
};

#define KKT_LOAD_ELEMENTS(HINT)                                                                    \
    if constexpr (COUNT == 8)                                                                      \
        asm volatile("ld.global.nc" HINT ".v4.u32 {%0, %1, %2, %3}, [%4];"                         \
                     : "=r"(v.word[0]), "=r"(v.word[1]), "=r"(v.word[2]), "=r"(v.word[3])          \
                     : "l"(source));                                                               \
    else if constexpr (COUNT == 4)                                                                 \
        asm volatile("ld.global.nc" HINT ".v2.u32 {%0, %1}, [%2];"                                 \
                     : "=r"(v.word[0]), "=r"(v.word[1])                                            \
                     : "l"(source));                                                               \
    else if constexpr (COUNT == 2)                                                                 \
        asm volatile("ld.global.nc" HINT ".u32 %0, [%1];" : "=r"(v.word[0]) : "l"(source));        \
    else                                                                                           \
        asm volatile("{\n"                                                                         \
                     ".reg .u16 element;\n"                                                        \
                     "ld.global.nc" HINT ".u16 element, [%1];\n"                                   \
                     "cvt.u32.u16 %0, element;\n"                                                  \
                     "}"                                                                           \
                     : "=r"(v.word[0])                                                             \
                     : "l"(source));

// COUNT elements from a multiple of their size; nobody writes them while the kernel runs.
template <int COUNT, Keep KEEP> KKT_DEVICE Elements<COUNT> load_elements(const u16 *source) {
    Elements<COUNT> v;
    if constexpr (KEEP == Keep::kCached) {
        KKT_LOAD_ELEMENTS("")
    } else if constexpr (KEEP == Keep::kStream) {
        KKT_LOAD_ELEMENTS(".L1::no_allocate")
    } else {
        KKT_LOAD_ELEMENTS(".L1::no_allocate.L2::256B")
    }
    return v;
}

#undef KKT_LOAD_ELEMENTS

// The same from shared memory.
template <int COUNT> KKT_DEVICE Elements<COUNT> shared_elements(const u16 *source) {
    Elements<COUNT> v;
    if constexpr (COUNT == 8) {
        const uint4 all = *(const uint4 *)source;
        v.word[0] = all.x, v.word[1] = all.y, v.word[2] = all.z, v.word[3] = all.w;
    } else if constexpr (COUNT == 4) {
        const uint2 all = *(const uint2 *)source;
        v.word[0] = all.x, v.word[1] = all.y;
    } else if constexpr (COUNT == 2) {
        v.word[0] = *(const u32 *)source;
    } else {
        v.word[0] = *source;
    }
    return v;
}
