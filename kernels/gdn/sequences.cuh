// Where the chunks of a problem lie.
#pragma once

#include "device/types.cuh"

// `sequences` of one batch entry that hold `length` tokens together. One: every batch entry is a
// sequence. More: `cu_seqlens` says where each begins, and there is one batch entry.
struct Sequences {
    const int *cu_seqlens;
    i64 length;
    int sequences;
};

// A chunk, or a whole sequence: its first token over the whole batch, and its tokens.
struct Rows {
    i64 first;
    int count;
};

// Chunk `slot` of CHUNK rows; no rows: a surplus slot. Sequence n owns the slots from
// start(n) / CHUNK + n on: enough for its chunks, and known without looking at other lengths.
template <int CHUNK> KKT_DEVICE Rows chunk_rows(const Sequences &s, u32 slot) {
    i64 start = 0;
    i64 length = s.length;
    i64 chunk = slot;
    if (s.sequences > 1) {
        int low = 0;
        int high = s.sequences - 1;
        while (low < high) {
            const int middle = (low + high + 1) / 2;
            if (s.cu_seqlens[middle] / CHUNK + middle <= (int)slot)
                low = middle;
            else
                high = middle - 1;
        }
        start = s.cu_seqlens[low];
        length = s.cu_seqlens[low + 1] - start;
        chunk = (int)slot - (s.cu_seqlens[low] / CHUNK + low);
    } else {
        const u32 chunks = (u32)((s.length + CHUNK - 1) / CHUNK);
        if (slot >= chunks) { // a division only where there is a second batch entry
            start = slot / chunks * s.length;
            chunk = slot % chunks;
        }
    }
    const i64 left = length - chunk * CHUNK;
    return {start + chunk * CHUNK, left <= 0 ? 0 : left < CHUNK ? (int)left : CHUNK};
}

// Sequence `n` over all batch entries, and its slots.
struct SequenceRows {
    i64 first;
    int count;
    i64 slot;
    int slots;
};

template <int CHUNK> KKT_DEVICE SequenceRows sequence_rows(const Sequences &s, int n) {
    if (s.sequences > 1) {
        const int start = s.cu_seqlens[n];
        const int end = s.cu_seqlens[n + 1];
        const int slot = start / CHUNK + n;
        return {start, end - start, slot, end / CHUNK + n + 1 - slot};
    }
    const int chunks = (int)((s.length + CHUNK - 1) / CHUNK);
    return {n * s.length, (int)s.length, (i64)n * chunks, chunks};
}
