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

KKT_DEVICE float2 unpack_fp16(u32 word) {
    float2 v;
    asm("{\n"
        ".reg .f16 low, high;\n"
        "mov.b32 {low, high}, %2;\n"
        "cvt.f32.f16 %0, low;\n"
        "cvt.f32.f16 %1, high;\n"
        "}"
        : "=f"(v.x), "=f"(v.y)
        : "r"(word));
    return v;
}

// A float whose upper 19 bits are its nearest tf32 value (ties away from zero): the tensor core
// ignores the rest, so adding half a unit rounds in one instruction, where cvt.rna takes four on
// sm_90. Infinities stay; a NaN may become a small number, which can only happen after another
// element of the same result is NaN already.
KKT_DEVICE float round_tf32(float value) {
    return __int_as_float(__float_as_int(value) + 0x1000);
}

// 2^x to about 2 ulp; 2^-infinity is 0, and what would be subnormal is 0.
KKT_DEVICE float exp2_approx(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
