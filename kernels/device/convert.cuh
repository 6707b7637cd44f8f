// Conversions and the exponential.
#pragma once

#include "device/types.cuh"

// Two floats rounded to nearest even in one word, `low` in the low half.
KKT_DEVICE u32 pack_bf16(float low, float high) {
    u32 word;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    return word;
}

KKT_DEVICE u32 pack_fp16(float low, float high) {
    u32 word;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    return word;
}

// Nearest tf32 value (10 stored mantissa bits); NaN stays NaN.
KKT_DEVICE u32 round_tf32(float value) {
    u32 bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
    return bits;
}

// 2^x to about 2 ulp; 2^-infinity is 0, and what would be subnormal is 0.
KKT_DEVICE float exp2_approx(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
