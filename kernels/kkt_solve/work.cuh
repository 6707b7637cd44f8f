// Which rows and heads a block of kkt_solve works on.
#pragma once

#include "device/types.cuh"
#include "kkt_solve/parameters.cuh"

// What of the problem this block works on: a span of whole chunks but for a sequence's last.
struct Work {
    int first;  // token of the span's first row, over the whole batch
    int rows;   // valid rows, 1..span
    int head_v; // first of its value heads
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

// Span `slot` of the grid; false for a surplus one. Sequence n owns the slots from
// start(n) / span + n on: enough for its spans, and known to be at most tokens / span +
// sequences in all without looking at the lengths. Tokens, over the whole batch, fit 31 bits.
KKT_DEVICE bool find_rows(const Problem &p, int slot, int &first, int &rows) {
    int start = 0;
    int length = (int)p.tokens;
    int span = slot;
    if (__builtin_expect(p.cu_seqlens != nullptr, 0)) { // out of the others' way
        int low = 0;
        int high = p.sequences - 1;
        while (low < high) {
            const int middle = (low + high + 1) / 2;
            if (sequence_start(p, middle) / P::span + middle <= slot)
                low = middle;
            else
                high = middle - 1;
        }
        start = sequence_start(p, low);
        length = sequence_start(p, low + 1) - start;
        span = slot - (start / P::span + low);
    } else if (__builtin_expect((i64)slot * P::span >= length, 0)) { // a second batch entry
        const int spans = (length + P::span - 1) / P::span;
        start = slot / spans * length;
        span = slot % spans;
    }
    first = start + span * P::span;
    const int left = length - span * P::span;
    rows = left < P::span ? left : P::span;
    return left > 0;
}

// The grid's x goes over groups of value heads, y and z over spans: a block starts without dividing
// (but by `groups`, where a key head has several), for its first loads wait for this.
KKT_DEVICE bool find_work(const Problem &p, Work &w) {
    const int slot = (int)(blockIdx.z * gridDim.y + blockIdx.y);
    w.head_v = (int)blockIdx.x * P::heads;
    return slot < p.slots && find_rows(p, slot, w.first, w.rows);
}

// The key head of this block, or of warp `warp` where each warp has its own.
KKT_DEVICE int key_head(const Problem &p, const Work &w, int warp) {
    const u32 group = P::a_key_head_each ? (u32)(w.head_v + warp) : blockIdx.x;
    return (int)(p.groups == 1 ? group : group / (u32)p.groups);
}
