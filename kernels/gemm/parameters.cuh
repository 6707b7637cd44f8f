// The configuration of a product with mma_sync, as the compiler was given it. What a parameter
// means is said in the variant's file.
#pragma once

#include "device/types.cuh"

struct P {
    static constexpr int bm = KKT_BM;
    static constexpr int bn = KKT_BN;
    static constexpr int bk = KKT_BK;
    static constexpr int warps_m = KKT_WARPS_M;
    static constexpr int warps_n = KKT_WARPS_N;
    static constexpr int threads = warps_m * warps_n * kWarp;
    static constexpr bool bf16 = KKT_DTYPE == 0;
    static constexpr bool a_along_k = KKT_A_ALONG_K; // a is stored [m, k], else [k, m]
    static constexpr bool b_along_k = KKT_B_ALONG_K; // b is stored [n, k], else [k, n]
    static constexpr bool c_units = KKT_C_UNITS;     // rows of c are whole 16-byte units

    // A warp's share of the block's tile, and the 16 x 16 operands in it.
    static constexpr int warp_m = bm / warps_m;
    static constexpr int warp_n = bn / warps_n;
    static constexpr int strips = warp_m / 16;
    static constexpr int columns = warp_n / 16;
    static constexpr int depth = bk / 16;
};

static_assert(P::warp_m % 16 == 0 && P::warp_n % 16 == 0 && P::bk % 16 == 0, "whole operands");
