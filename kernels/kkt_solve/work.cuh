// Which rows and heads a block of kkt_solve works on.
#pragma once

#include "device/types.cuh"
#include "kkt_solve/parameters.cuh"

// What of the problem this block works on: a span of whole chunks but for a sequence's last.
struct Work {
    int first;  // token of the span's first row, over the whole batch
    int rows;   // valid rows, 1..span; 0 or less: a surplus block
    int group;  // of HEADS_PER_BLOCK value heads
    int head_v; // first of them
};

struct Problem {
    const u16 *k;
    const float *beta;
    const float *g;
    const void *cu_seqlens; // NULL: every batch entry is one sequence of `tokens`
    u16 *t;
    i64 tokens;
    int sequences, heads_k, heads_v;
    int cu_seqlens_wide; // cu_seqlens holds 64-bit integers
    int groups; // what shares a key head: of blocks, or of value heads where each forms its
                // own K K^T (key_head)
    int slots;  // spans of the grid
};

KKT_DEVICE int sequence_start(const Problem &p, int n) {
    return p.cu_seqlens_wide ? (int)((const i64 *)p.cu_seqlens)[n] : ((const int *)p.cu_seqlens)[n];
}

// A value that is the same in all lanes, for the compiler to see that it is: addresses and branches
// that follow from it then take no lane's registers, and a copy by TMA no loop over lanes.
KKT_DEVICE int uniform(int value) {
    int same;
    asm volatile("shfl.sync.idx.b32 %0, %1, 0, 31, 0xffffffff;" : "=r"(same) : "r"(value));
    return same;
}

// Where sequence n's slots begin: enough for its spans, and known to be at most tokens / span +
// sequences in all without looking at the lengths.
KKT_DEVICE int first_slot(int start, int n) {
    return (int)((u32)start / P::span) + n;
}

// The sequence that has slot `slot`: the last one whose slots begin there or before. The lanes look
// at 32 candidates at once, so that up to 32 sequences cost one more load.
KKT_DEVICE int find_sequence(const Problem &p, int slot) {
    const int lane = threadIdx.x % kWarp;
    int n = 0;
    int count = p.sequences; // candidates, from n on
#pragma unroll 1
    while (count > 1) {
        const int step = divide_up(count, kWarp);
        const int ahead = lane * step;
        const int candidate = ahead < count ? n + ahead : n;
        const bool before = first_slot(sequence_start(p, candidate), candidate) <= slot;
        const u32 lanes = __ballot_sync(0xffffffffu, before && ahead < count);
        const int last = (kWarp - 1 - __clz((int)lanes)) * step;
        n += last;
        count = min(step, count - last);
    }
    return n;
}

// What there is in slot `slot` for group `group`; no rows in a surplus slot. Tokens, over the whole
// batch, fit 31 bits.
KKT_DEVICE Work find_work(const Problem &p, int slot, int group) {
    int start = 0;
    int length = (int)p.tokens;
    int span = slot;
    if (__builtin_expect(p.cu_seqlens != nullptr, 0)) { // out of the others' way
        const int n = find_sequence(p, slot);
        start = sequence_start(p, n);
        length = sequence_start(p, n + 1) - start;
        span = slot - first_slot(start, n);
    } else if (__builtin_expect((u32)slot * P::span >= (u32)length, 0)) { // a second batch entry
        const int spans = (length + P::span - 1) / P::span;
        const int entry = slot / spans;
        start = entry * length;
        span = slot < p.slots ? slot - entry * spans : spans; // past the last entry: surplus
    }
    const int left = length - span * P::span;
    Work w;
    w.first = uniform(start + span * P::span);
    w.rows = uniform(left < P::span ? left : P::span);
    w.group = group;
    w.head_v = group * P::heads;
    return w;
}

// The grid's x goes over groups of value heads, y and z over slots: a block starts without dividing
// (but by `groups`, where a key head has several), for its first loads wait for this.
KKT_DEVICE Work find_block_work(const Problem &p) {
    return find_work(p, (int)(blockIdx.z * gridDim.y + blockIdx.y), (int)blockIdx.x);
}

// Persistent blocks: the units are slots times groups, and a block takes every gridDim.x-th. Goes
// on from `unit` to the next one that has rows; false where there is none.
KKT_DEVICE bool find_next_work(const Problem &p, u32 &unit, Work &w) {
    const u32 groups = (u32)(p.heads_v / P::heads);
    for (; unit < groups * (u32)p.slots; unit += gridDim.x) {
        w = find_work(p, (int)(unit / groups), (int)(unit % groups));
        if (w.rows > 0)
            return true;
    }
    return false;
}

// The key head of a block's work, or of warp `warp` where each warp has its own.
KKT_DEVICE int key_head(const Problem &p, const Work &w, int warp) {
    const u32 group = (u32)(P::a_key_head_each ? w.head_v + warp : w.group);
    return (int)(p.groups == 1 ? group : group / (u32)p.groups);
}
