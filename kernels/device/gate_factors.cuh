// L = -beta K K^T decay for code that holds it in fragments: the strips and factors of gate.cuh, in
// tables whose order suits a lane of a fragment. Within a strip of 16 rows:
//
//     pair order   0 8 1 9 2 10 ... 7 15     a lane's two rows r and r + 8 are one 8-byte access;
//                                            its four columns 2 c, 2 c + 8, 2 c + 1, 2 c + 9 one
//                                            16-byte access
//     quad order   0 1 8 9 2 3 10 11 ...     columns alone: written in pairs
//
// All exponents of factors are at most 0, and beta is negated: L comes out as -L, so that neither
// substitution nor couplings change signs.
#pragma once

#include "device/convert.cuh"
#include "device/gate.cuh"
#include "device/register_blocks.cuh"
#include "device/types.cuh"

// a *= by, element by element.
KKT_DEVICE void multiply_elements(Accumulator &a, const Accumulator &by) {
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int e = 0; e < 4; ++e)
            a.half[half].value[e] *= by.half[half].value[e];
}

// The tables of one head, floats in shared memory, ROWS each.
template <int ROWS, bool GATED> struct GateFactors {
    static constexpr int tables = GATED ? 4 : 1;
    static constexpr int words = tables * ROWS;

    float *beta;   // in: beta by row; out: -beta_i, pair order
    float *sum;    // in: g by row; out: s_i in base 2, pair order   (from here on: gated only)
    float *row;    // -beta_i 2^(s_i), pair order; without a gate the same table as beta
    float *column; // 2^(s_last - s_j), quad order

    KKT_DEVICE GateFactors at(float *first) {
        if (!GATED)
            return {first, nullptr, first, nullptr};
        return {first, first + ROWS, first + 2 * ROWS, first + 3 * ROWS};
    }

    // The tables from a strip on.
    __device__ __forceinline__ GateFactors from(int strip) const {
        const int n = strip * kStrip;
        if (!GATED)
            return {beta + n, nullptr, row + n, nullptr};
        return {beta + n, sum + n, row + n, column + n};
    }

    // Turns (beta, g) into factors; one warp. A lane takes two neighbouring rows, so a strip is
    // eight lanes.
    __device__ __forceinline__ void scan(int lane) const {
#pragma unroll
        for (int first = 0; first < ROWS; first += 2 * kWarp) {
            const int i = first + 2 * lane;
            const bool inside = ROWS % (2 * kWarp) == 0 || i < ROWS;
            const float2 b = inside ? *(const float2 *)(beta + i) : make_float2(0.0f, 0.0f);
            const float2 g = GATED && inside ? *(const float2 *)(sum + i) : make_float2(0.0f, 0.0f);
            float2 s = make_float2(0.0f, 0.0f);
            float last = 0.0f;
            if (GATED) {
                s.x = fmaxf(g.x * kLog2E, kGateFloor);
                s.y = s.x + fmaxf(g.y * kLog2E, kGateFloor);
                float total = s.y;
#pragma unroll
                for (int step = 1; step < 8; step *= 2) {
                    const float before = __shfl_up_sync(0xffffffffu, total, step, 8);
                    total += lane % 8 >= step ? before : 0.0f;
                }
                float before = __shfl_up_sync(0xffffffffu, total, 1, 8);
                before = lane % 8 == 0 ? 0.0f : before;
                s = make_float2(before + s.x, before + s.y);
                last = __shfl_sync(0xffffffffu, s.y, 7, 8);
            }
            __syncwarp(); // the strips' inputs were read, their factors take their place
            if (inside)
                store(i, b, s, last);
        }
    }

    // Rows i and i + 1, i even.
    __device__ __forceinline__ void store(int i, float2 b, float2 s, float last) const {
        const int strip = i / kStrip * kStrip;
        const int pair = strip + i % 8 * 2 + i / 8 % 2;
        const int quad = strip + i % 8 / 2 * 4 + i / 8 % 2 * 2;
        beta[pair] = -b.x;
        beta[pair + 2] = -b.y;
        if (GATED) {
            sum[pair] = s.x;
            sum[pair + 2] = s.y;
            row[pair] = -b.x * exp2_approx(s.x);
            row[pair + 2] = -b.y * exp2_approx(s.y);
            *(float2 *)(column + quad) =
                make_float2(exp2_approx(last - s.x), exp2_approx(last - s.y));
        }
    }

    // Decay over a whole strip.
    __device__ __forceinline__ float across(int strip) const {
        return exp2_approx(sum[strip * kStrip + kStrip - 1]);
    }

    // Turns block (i, j) of K K^T, i > j, into the block of -L; `between` is the decay over the
    // strips strictly between.
    __device__ __forceinline__ void below(Accumulator &a, int i, int j, float between,
                                          int lane) const {
        float2 r = *(const float2 *)(row + i * kStrip + lane / 4 * 2);
        float4 c = make_float4(1.0f, 1.0f, 1.0f, 1.0f);
        if (GATED) {
            c = *(const float4 *)(column + j * kStrip + lane % 4 * 4);
            r = make_float2(r.x * between, r.y * between);
        }
        scale(a.half[0], r, make_float2(c.x, c.y));
        scale(a.half[1], r, make_float2(c.z, c.w));
    }

    // What diagonal block i of K K^T is multiplied by to be that of -L, element by element; what is
    // on or above the diagonal is meaningless and may be infinite.
    __device__ __forceinline__ Accumulator diagonal(int i, int lane) const {
        const float2 b = *(const float2 *)(beta + i * kStrip + lane / 4 * 2);
        Accumulator a;
        fill(a.half[0], b);
        fill(a.half[1], b);
        if (GATED) {
            const float4 s = *(const float4 *)(sum + i * kStrip + lane % 4 * 4);
            const float2 r = *(const float2 *)(sum + i * kStrip + lane / 4 * 2);
            decay(a.half[0], r, make_float2(s.x, s.z));
            decay(a.half[1], r, make_float2(s.y, s.w));
        }
        return a;
    }

  private:
    KKT_DEVICE void fill(Fragment &f, float2 row) {
        f.value[0] = f.value[1] = row.x;
        f.value[2] = f.value[3] = row.y;
    }

    KKT_DEVICE void scale(Fragment &f, float2 row, float2 column) {
        f.value[0] *= row.x * column.x;
        f.value[1] *= row.x * column.y;
        f.value[2] *= row.y * column.x;
        f.value[3] *= row.y * column.y;
    }

    KKT_DEVICE void decay(Fragment &f, float2 row, float2 column) {
        f.value[0] *= exp2_approx(row.x - column.x);
        f.value[1] *= exp2_approx(row.x - column.y);
        f.value[2] *= exp2_approx(row.y - column.x);
        f.value[3] *= exp2_approx(row.y - column.y);
    }
};
