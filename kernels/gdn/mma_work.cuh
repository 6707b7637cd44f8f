// Which sequence, head and columns of v a block of the forward kernels works on.
#pragma once

#include "device/types.cuh"
#include "gdn/mma_parameters.cuh"

struct Problem {
    const u16 *q, *k, *v;
    const float *beta, *g; // g NULL: no gate
    const u16 *t;          // NULL where T is made on chip
    const float *h0;       // NULL: the states begin at 0
    const int *cu_seqlens; // NULL: every batch entry is one sequence of `tokens`
    u16 *o;
    float *ht;
    i64 tokens;
    int heads_k, heads_v;
};

// A sequence, from its first chunk to its last. Blocks that share a head are neighbours in the
// grid, so that what they both read is in L2.
struct Work {
    i64 first;  // token of the sequence's first row, over the whole batch
    i64 length; // tokens, 0 or more
    int head_k, head_v;
    int column; // first of this block's columns of v
    i64 state;  // element of h0 and ht where this block's columns begin

    KKT_DEVICE Work find(const Problem &p) {
        Work w;
        const u32 head = blockIdx.x / P::splits;
        const u32 sequence = head / (u32)p.heads_v;
        w.head_v = (int)(head % (u32)p.heads_v);
        w.head_k = w.head_v / (p.heads_v / p.heads_k);
        w.column = (int)(blockIdx.x % P::splits) * P::block_dv;
        w.state = (i64)head * P::dk * P::dv + w.column;
        if (p.cu_seqlens) {
            w.first = p.cu_seqlens[sequence];
            w.length = p.cu_seqlens[sequence + 1] - w.first;
        } else {
            w.first = sequence * p.tokens;
            w.length = p.tokens;
        }
        return w;
    }

    // Valid rows of the chunk that begins `at` tokens into the sequence.
    __device__ __forceinline__ int rows(i64 at) const {
        return length - at < P::chunk ? (int)(length - at) : P::chunk;
    }
};
