// Decays of a chunk from its gates, by one warp. Sums are taken in the direction in which they are
// used, so that no difference of large sums is formed, and every exponent is at most 0. Exponents
// are kept in base 2.
#pragma once

#include "device/convert.cuh"
#include "device/gate.cuh"
#include "device/types.cuh"

// A gate in base 2; one that makes every decay across it 0 is cut off, so that sums stay finite.
KKT_DEVICE float gate_exponent(float g) {
    return fmaxf(g * kLog2E, kGateFloor);
}

// The gates of ROWS rows, neighbouring ones in a lane: rows lane * count and on.
template <int ROWS> struct RowGates {
    static constexpr int count = divide_up(ROWS, kWarp);

    float value[count];

    // `source` is row 0's gate; rows from `valid` on have none.
    __device__ __forceinline__ void ask(const float *source, int stride, int valid, int lane) {
#pragma unroll
        for (int i = 0; i < count; ++i) {
            const int row = lane * count + i;
            value[i] = row < valid && row < ROWS ? __ldg(source + (i64)row * stride) : 0.0f;
        }
    }

    // exp(g_0 + ... + g_row) of the rows that this lane has.
    __device__ __forceinline__ void from_start(float (&out)[count], int lane) const {
        float sum[count];
        float total = 0.0f;
#pragma unroll
        for (int i = 0; i < count; ++i)
            sum[i] = total += gate_exponent(value[i]);
#pragma unroll
        for (int step = 1; step < kWarp; step *= 2) {
            const float before = __shfl_up_sync(0xffffffffu, total, step);
            total += lane >= step ? before : 0.0f;
        }
        const float before = __shfl_up_sync(0xffffffffu, total, 1);
#pragma unroll
        for (int i = 0; i < count; ++i)
            out[i] = exp2_approx(sum[i] + (lane > 0 ? before : 0.0f));
    }

    // exp(g_{row + 1} + ... + g_last) of the rows that this lane has; returns exp(g_0 + ... +
    // g_last).
    __device__ __forceinline__ float to_end(float (&out)[count], int lane) const {
        float sum[count]; // of the lane's rows behind each
        float total = 0.0f;
#pragma unroll
        for (int i = count - 1; i >= 0; --i) {
            sum[i] = total;
            total += gate_exponent(value[i]);
        }
#pragma unroll
        for (int step = 1; step < kWarp; step *= 2) {
            const float after = __shfl_down_sync(0xffffffffu, total, step);
            total += lane + step < kWarp ? after : 0.0f;
        }
        const float after = __shfl_down_sync(0xffffffffu, total, 1);
#pragma unroll
        for (int i = 0; i < count; ++i)
            out[i] = exp2_approx(sum[i] + (lane + 1 < kWarp ? after : 0.0f));
        return exp2_approx(__shfl_sync(0xffffffffu, total, 0));
    }

    // Puts what was computed for each row into a table of ROWS floats.
    KKT_DEVICE void put(const float (&values)[count], float *table, int lane) {
#pragma unroll
        for (int i = 0; i < count; ++i)
            if (ROWS % kWarp == 0 || lane * count + i < ROWS)
                table[lane * count + i] = values[i];
    }
};
