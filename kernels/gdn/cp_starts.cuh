// The states that segments start from: S of one, times M and with what it adds, is that of the
// next. A block has a sequence, a value head and 16 columns, and goes from segment to segment; a
// warp has 16 rows of the state. fp32 all along: a factor is two parts in bf16, and a product three
// on the tensor cores, without that of the small parts.
//
// Shared memory:
//
//     m x 3    M    DK x DK, fp32, rows of DK + 8: a warp copies and reads its own sixteen alone
//     s x 2    S^T  16 x DK, the large parts, then the small ones, rows of DK + 8
#pragma once

#include "device/async_copy.cuh"
#include "device/copy_groups.cuh"
#include "device/dependent_launch.cuh"
#include "device/mma_sync.cuh"
#include "gdn/cp_work.cuh"

struct StartsLayout {
    static constexpr int columns = 16;
    static constexpr int warps = P::dk / 16;
    static constexpr int threads = warps * kWarp;
    static constexpr int row = P::dk + 8; // floats, or elements: neighbours in different banks
    static constexpr int slots = 3;
    static constexpr int matrix_bytes = P::dk * row * 4;
    static constexpr int part_bytes = columns * row * 2;
    static constexpr int states_at = slots * matrix_bytes;
    static constexpr int bytes = states_at + 4 * part_bytes;
};

#ifdef KKT_STARTS_BYTES
static_assert(StartsLayout::bytes == KKT_STARTS_BYTES,
              "the host's footprint and this layout differ");
#endif

// Two floats as pairs of bf16: what is nearest, and what is left.
struct SplitPair {
    u32 large, small;

    KKT_DEVICE SplitPair of(float a, float b) {
        const u32 large = pack_bf16(a, b);
        return {large, pack_bf16(a - __int_as_float((i32)(large << 16)),
                                 b - __int_as_float((i32)(large & 0xffff0000u)))};
    }
};

// Sixteen rows and columns of the state, as a warp has them: two fragments side by side.
struct StartRows {
    Fragment f[2];
};

KKT_DEVICE StartRows load_start(const float *at) {
    StartRows s;
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
            const float2 v = *(const float2 *)(at + e * 8 * P::dv + 8 * n);
            s.f[n].value[2 * e] = v.x;
            s.f[n].value[2 * e + 1] = v.y;
        }
    return s;
}

KKT_DEVICE void store_start(float *at, const StartRows &s) {
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
        for (int e = 0; e < 2; ++e)
            *(float2 *)(at + e * 8 * P::dv + 8 * n) =
                make_float2(s.f[n].value[2 * e], s.f[n].value[2 * e + 1]);
}

// To shared memory, transposed and in two parts.
KKT_DEVICE void share_start(u16 *parts, const StartRows &s, int warp, int lane) {
    u16 *at = parts + fragment_column(lane) * StartsLayout::row + 16 * warp + fragment_row(lane);
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
            const SplitPair v = SplitPair::of(s.f[n].value[2 * e], s.f[n].value[2 * e + 1]);
            u16 *to = at + 8 * n * StartsLayout::row + 8 * e;
            to[0] = (u16)v.large;
            to[StartsLayout::row] = (u16)(v.large >> 16);
            to += StartsLayout::part_bytes / 2;
            to[0] = (u16)v.small;
            to[StartsLayout::row] = (u16)(v.small >> 16);
        }
}

// A warp's rows of M to shared memory.
KKT_DEVICE void copy_step(float *to, const float *from, int lane) {
    constexpr int units = P::dk / 4; // of 16 bytes, a row
#pragma unroll
    for (int n = 0; n < 16 * units; n += kWarp) {
        const int unit = n + lane;
        async_copy_16(to + unit / units * StartsLayout::row + unit % units * 4, from + unit * 4,
                      true);
    }
}

// A warp's rows of M as operands, in two parts.
struct StepRows {
    OperandTile large[P::dk / 16], small[P::dk / 16];
};

// `m` is at this thread's first element.
KKT_DEVICE void load_step(StepRows &rows, const float *m) {
#pragma unroll
    for (int step = 0; step < P::dk / 16; ++step)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const float2 v =
                *(const float2 *)(m + i % 2 * 8 * StartsLayout::row + 16 * step + i / 2 * 8);
            const SplitPair pair = SplitPair::of(v.x, v.y);
            rows.large[step].quarter[i] = pair.large;
            rows.small[step].quarter[i] = pair.small;
        }
}

// s = M S + s; `parts` is the address of this lane's row of S. Sums of their own for each kind of
// product, so that fewer wait for one another.
KKT_DEVICE void apply_step(StartRows &s, const StepRows &m, u32 parts) {
    StartRows right = {}, left = {};
#pragma unroll
    for (int step = 0; step < P::dk / 16; ++step) {
        const OperandTile large = load_operand_tile(parts + 32 * step);
        const OperandTile small = load_operand_tile(parts + StartsLayout::part_bytes + 32 * step);
#pragma unroll
        for (int n = 0; n < 2; ++n) {
            mma_x_yt<true>(s.f[n], m.large[step], large, n);
            mma_x_yt<true>(right.f[n], m.large[step], small, n);
            mma_x_yt<true>(left.f[n], m.small[step], large, n);
        }
    }
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e)
            s.f[n].value[e] += right.f[n].value[e] + left.f[n].value[e];
}

// What every thread of a block does.
KKT_DEVICE void find_starts(const Passed &passed, int heads, u8 *smem) {
    constexpr int splits = P::dv / StartsLayout::columns;
    constexpr int slots = StartsLayout::slots;
    const int warp = threadIdx.x / kWarp;
    const int lane = threadIdx.x % kWarp;
    const int column = blockIdx.x % splits * StartsLayout::columns;
    const int head = blockIdx.x / splits % heads;
    const int sequence = blockIdx.x / splits / heads;
    const i64 next_step = (i64)heads * P::dk * P::dk;
    const i64 next_start = (i64)heads * P::dk * P::dv;
    const float *step =
        passed.steps + step_offset(sequence, 1, head, heads) + 16 * warp * P::dk; // to be copied
    float *start = passed.starts + start_offset(sequence, 1, head, heads) +
                   (16 * warp + fragment_row(lane)) * P::dv + column + fragment_column(lane);
    float *own = (float *)smem + 16 * warp * StartsLayout::row; // this warp's rows of slot 0
    const int element = fragment_row(lane) * StartsLayout::row + fragment_column(lane);
    u16 *states = (u16 *)(smem + StartsLayout::states_at);
    const u32 operand = shared_address(states + lane % 16 * StartsLayout::row + lane / 16 * 8);

    wait_for_kernels_before();
    let_next_kernel_start();
#pragma unroll
    for (int n = 0; n < slots; ++n, step += next_step) {
        if (n < C::inner)
            copy_step(own + n * StartsLayout::matrix_bytes / 4, step, lane);
        copy_group_end();
    }
    StartRows s = load_start(start);
    StartRows added = load_start(start + next_start);
    share_start(states, s, warp, lane);
#pragma unroll 1
    for (int n = 0; n < C::inner; ++n, step += next_step) {
        float *m = own + n % slots * (StartsLayout::matrix_bytes / 4);
        StepRows rows;
        copy_group_wait<slots - 1>();
        __syncwarp();
        load_step(rows, m + element);
        __syncwarp();
        if (n + slots < C::inner)
            copy_step(m, step, lane);
        copy_group_end();
        start += next_start;
        s = added;
        if (n + 1 < C::inner)
            added = load_start(start + next_start);
        __syncthreads(); // the state of the segment before is there
        apply_step(s, rows, operand + n % 2 * 2 * StartsLayout::part_bytes);
        store_start(start, s);
        if (n + 1 < C::inner)
            share_start(states + (n + 1) % 2 * StartsLayout::part_bytes, s, warp, lane);
    }
}
