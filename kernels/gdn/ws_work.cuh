// Which sequence, head and columns a block of the warp-specialized gdn_fwd_t works on. A unit of
// work is a sequence, a value head and block_dv columns of it; a block takes every gridDim.x-th.
#pragma once

#include "device/tensor_map.cuh"
#include "device/types.cuh"
#include "gdn/ws_parameters.cuh"

struct Problem {
    const float *g;    // NULL without a gate
    const float *beta; // not read where T carries it
    const float *h0;   // NULL: the state begins with zeros
    float *ht;         // NULL: not wanted
    u16 *o;
    const void *cu_seqlens; // NULL: every batch entry is one sequence of `tokens`
    i64 tokens;
    int heads_k, heads_v;
    int cu_seqlens_wide; // cu_seqlens holds 64-bit integers
    int units;
    float scale; // of o, > 0
};

// One of each tensor that is moved in tiles. A box is 64 columns wide (that of T CHUNK, where that
// is less) and has P::box_rows of q, k and t, CHUNK rows of v and o.
struct Maps {
    const TensorMap &q, &k, &v, &t, &o;
};

struct Unit {
    i64 first;  // token of the sequence's first row, over the whole batch
    int tokens; // of the sequence
    int chunks;
    int head_k, head_v;
    int column; // first of its columns in the head
    i64 state;  // of its first element in h0 and ht

    // Valid rows of a chunk.
    __device__ __forceinline__ int rows(int chunk) const {
        const int left = tokens - chunk * P::chunk;
        return left < P::chunk ? left : P::chunk;
    }
};

KKT_DEVICE i64 sequence_start(const Problem &p, int n) {
    return p.cu_seqlens_wide ? ((const i64 *)p.cu_seqlens)[n] : ((const int *)p.cu_seqlens)[n];
}

// Neighbouring units share a sequence and a key head, whose tiles L2 then serves.
KKT_DEVICE Unit find_unit(const Problem &p, int index) {
    constexpr int splits = P::dv / P::block_dv;
    const int head = index / splits;
    const int sequence = head / p.heads_v;
    Unit u;
    u.column = index % splits * P::block_dv;
    u.head_v = head % p.heads_v;
    u.head_k = u.head_v / (p.heads_v / p.heads_k);
    if (p.cu_seqlens) {
        u.first = sequence_start(p, sequence);
        u.tokens = (int)(sequence_start(p, sequence + 1) - u.first);
    } else {
        u.first = sequence * p.tokens;
        u.tokens = (int)p.tokens;
    }
    u.chunks = divide_up(u.tokens, P::chunk);
    u.state = (i64)head * P::dk * P::dv + u.column;
    return u;
}

// Chunks of all units of this block.
KKT_DEVICE int count_chunks(const Problem &p) {
    int chunks = 0;
    for (int unit = blockIdx.x; unit < p.units; unit += gridDim.x)
        chunks += find_unit(p, unit).chunks;
    return chunks;
}
