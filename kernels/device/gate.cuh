// Decay between two rows of a chunk, exp(G_i - G_j) for i > j, without ever forming exp(-G).
//
// Sums run over strips of 16 rows only, s_i = sum of g from the strip's first row to row i, so they
// stay small however strong the gate: a row's sum over the whole chunk would lose the digits of
// mild gates behind strong ones. With strips I > J, and each exponent at most 0,
//
//     G_i - G_j =  s_i  +  (sums of the strips between J and I)  +  (s_last(J) - s_j)
//                  row                 tile                            column
//
// so off the diagonal strip the decay is a product of a row, a tile and a column factor. Inside a
// diagonal strip it is exp(s_i - s_j). Exponents are kept in base 2.
#pragma once

#include "device/convert.cuh"
#include "device/types.cuh"

constexpr int kStrip = 16;
constexpr float kLog2E = 1.4426950408889634f;
// 2^-160 is 0 in fp32: a token's gate below it makes every decay across it 0 all the same.
constexpr float kGateFloor = -160.0f;

// The tables of one head, CHUNK floats each, in shared memory. Without a gate only `row` is used,
// and it holds beta.
struct GateTables {
    float *beta;   // in: beta
    float *sum;    // in: g; out: s in base 2
    float *row;    // out: beta_i 2^(s_i)
    float *column; // out: 2^(s_last - s_j)
};

// Turns the tables of one head from (beta, g) into factors; one warp.
template <int CHUNK> KKT_DEVICE void gate_scan(const GateTables &head, int lane) {
#pragma unroll
    for (int first = 0; first < CHUNK; first += kWarp) {
        const int i = first + lane;
        const bool inside = CHUNK % kWarp == 0 || i < CHUNK;
        float s = inside ? fmaxf(head.sum[i] * kLog2E, kGateFloor) : 0.0f;
#pragma unroll
        for (int step = 1; step < kStrip; step *= 2) {
            const float before = __shfl_up_sync(0xffffffffu, s, step, kStrip);
            s += lane % kStrip >= step ? before : 0.0f;
        }
        const float last = __shfl_sync(0xffffffffu, s, kStrip - 1, kStrip);
        if (inside) {
            head.sum[i] = s;
            head.row[i] = head.beta[i] * exp2_approx(s);
            head.column[i] = exp2_approx(last - s);
        }
    }
}

// Decay over the strips strictly between J and I, I > J.
KKT_DEVICE float gate_between(const float *sum, int strip_i, int strip_j) {
    float exponent = 0.0f;
#pragma unroll 1
    for (int strip = strip_j + 1; strip < strip_i; ++strip)
        exponent += sum[strip * kStrip + kStrip - 1];
    return exp2_approx(exponent);
}

// Decay inside a diagonal strip; 0 on and above the diagonal. The mask is in the exponent: above
// the diagonal s_i - s_j is positive and its exponential may be infinite.
KKT_DEVICE float gate_inside(float sum_i, float sum_j, bool below) {
    return exp2_approx(below ? sum_i - sum_j : -__int_as_float(0x7f800000));
}
