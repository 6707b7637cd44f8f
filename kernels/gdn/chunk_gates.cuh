// What a chunk's decay does to its tokens, as tables in shared memory. With G the inclusive sum of
// the log decay g inside the chunk:
//
//     query    scale e^(G_i)           of what token i asks of the state before the chunk
//     value    beta_j, beta_j e^(G_j)  of v_j and of what the state says of k_j
//     end      e^(G_last - G_j)        of what token j adds to the state after the chunk
//     decay    e^(G_last)
//
// and, between two tokens, e^(G_i - G_j) as products of factors of strips of 16 rows, or of a
// difference inside a strip (device/gate.cuh): row 2^(s_i), column 2^(s_last - s_j), between
// 2^(the strips strictly between). Every exponent is at most 0. Rows past a sequence's end have
// g = beta = 0, so they change nothing.
#pragma once

#include "device/convert.cuh"
#include "device/gate.cuh"
#include "device/types.cuh"

template <int CHUNK> struct ChunkGates {
    static constexpr int strips = CHUNK / kStrip;
    static constexpr int floats = round_up(7 * CHUNK + strips * strips + 1, 4);
    static constexpr int bytes = floats * 4;

    float *first;

    __device__ __forceinline__ float *value() const { // pairs
        return first;
    }
    __device__ __forceinline__ float *query() const {
        return first + 2 * CHUNK;
    }
    __device__ __forceinline__ float *end() const {
        return first + 3 * CHUNK;
    }
    __device__ __forceinline__ float *sum() const { // s_i in base 2
        return first + 4 * CHUNK;
    }
    __device__ __forceinline__ float *row() const {
        return first + 5 * CHUNK;
    }
    __device__ __forceinline__ float *column() const {
        return first + 6 * CHUNK;
    }
    __device__ __forceinline__ float *between() const { // [row strip][column strip]
        return first + 7 * CHUNK;
    }
    __device__ __forceinline__ float *decay() const {
        return first + 7 * CHUNK + strips * strips;
    }
};

// g and beta of a chunk on their way to the tables, in the registers of one warp: row 32 n + lane.
template <int CHUNK> struct GateRows {
    static constexpr int rounds = divide_up(CHUNK, kWarp);
    static constexpr int strips = CHUNK / kStrip;

    float g[rounds], beta[rounds];

    // `g_rows` and `beta_rows` point at the chunk's first row; either may be NULL (0, and 1).
    __device__ __forceinline__ void ask(const float *g_rows, const float *beta_rows, int stride,
                                        int valid, int lane) {
#pragma unroll
        for (int n = 0; n < rounds; ++n) {
            const int i = n * kWarp + lane;
            g[n] = g_rows && i < valid ? __ldg(g_rows + i * stride) : 0.0f;
            beta[n] = i >= valid ? 0.0f : beta_rows ? __ldg(beta_rows + i * stride) : 1.0f;
        }
    }

    __device__ __forceinline__ void put(const ChunkGates<CHUNK> &tables, float scale,
                                        int lane) const {
        float s[rounds], total[2 * rounds]; // of strips
#pragma unroll
        for (int n = 0; n < rounds; ++n) {
            s[n] = fmaxf(g[n] * kLog2E, kGateFloor);
#pragma unroll
            for (int step = 1; step < kStrip; step *= 2) {
                const float before = __shfl_up_sync(0xffffffffu, s[n], step, kStrip);
                s[n] += lane % kStrip >= step ? before : 0.0f;
            }
            total[2 * n] = __shfl_sync(0xffffffffu, s[n], kStrip - 1);
            total[2 * n + 1] = __shfl_sync(0xffffffffu, s[n], 2 * kStrip - 1);
        }
        const auto over = [&](int from, int to) { // strips from..to-1
            float sum = 0.0f;
#pragma unroll
            for (int strip = 0; strip < strips; ++strip)
                sum += strip >= from && strip < to ? total[strip] : 0.0f;
            return sum;
        };
#pragma unroll
        for (int n = 0; n < rounds; ++n) {
            const int i = n * kWarp + lane;
            const int strip = i / kStrip;
            const float last = lane < kStrip ? total[2 * n] : total[2 * n + 1];
            const float start = exp2_approx(over(0, strip) + s[n]);
            if (i < CHUNK) {
                *(float2 *)(tables.value() + 2 * i) = make_float2(beta[n], beta[n] * start);
                tables.query()[i] = scale * start;
                tables.end()[i] = exp2_approx(over(strip + 1, strips) + last - s[n]);
                tables.sum()[i] = s[n];
                tables.row()[i] = exp2_approx(s[n]);
                tables.column()[i] = exp2_approx(last - s[n]);
            }
        }
#pragma unroll
        for (int n = lane; n < strips * strips; n += kWarp)
            tables.between()[n] = exp2_approx(over(n % strips + 1, n / strips));
        if (lane == 0)
            *tables.decay() = exp2_approx(over(0, strips));
    }
};
