// The ring of a pipelined forward kernel: STAGES slots, each with the inputs of a chunk,
//
//     K, Q    PaddedTile CHUNK x DK
//     V       PaddedTile CHUNK x BLOCK_DV; O takes its place
//     T       TBlocks on and below the diagonal, where T is read (WITH_T)
//
// and what one chunk's turn does to it while the block multiplies: the O that the chunk before left
// in its slot goes out, and the chunk STAGES - 1 ahead comes in. A copy ties up the registers of
// its address until it is on its way, and many in a row wait for one another: they are dealt out to
// the steps of a product instead.
#pragma once

#include "device/copy_groups.cuh"
#include "device/types.cuh"
#include "gdn/chunk_tiles.cuh"
#include "gdn/mma_parameters.cuh"
#include "gdn/mma_work.cuh"
#include "gdn/sequence.cuh"

template <int STAGES, bool WITH_T> struct ChunkRing {
    static constexpr int q_at = KeyTile::bytes;
    static constexpr int v_at = q_at + KeyTile::bytes;
    static constexpr int t_at = v_at + ValueTile::bytes;
    static constexpr int slot_bytes = t_at + (WITH_T ? P::blocks * TBlock::bytes : 0);
    static constexpr int bytes = STAGES * slot_bytes;

    u8 *first;
    const Sequence &sequence;
    const TMatrix &t;
    const Work &w;
    int chunks;

    __device__ __forceinline__ u8 *slot(int chunk) const {
        return first + chunk % STAGES * slot_bytes;
    }

    // All copies of a chunk; none where there is no such chunk.
    __device__ __forceinline__ void ask(int chunk) const {
        if (chunk >= chunks)
            return;
        u8 *to = slot(chunk);
        const i64 at = (i64)chunk * P::chunk;
        const int rows = w.rows(at);
        sequence.ask_keys(to, to + q_at, at, rows);
        sequence.ask_values(to + v_at, at, rows);
        if (WITH_T)
            t.ask(to + t_at, at, rows);
    }

    // What is to be copied before the first turn.
    __device__ __forceinline__ void begin() const {
        for (int n = 0; n < STAGES - 1; ++n) {
            ask(n);
            copy_group_end();
        }
    }

    // After the last turn: a chunk's O.
    __device__ __forceinline__ void store_output(int chunk) const {
        const i64 at = (i64)chunk * P::chunk;
        sequence.store_output(slot(chunk) + v_at, at, w.rows(at));
    }

    // One chunk's turn, for all threads.
    struct Turn {
        static constexpr int steps = P::dk / 16;

        const ChunkRing &ring;
        u8 *slot;             // of the chunk before, and of the one ahead
        const u16 *k, *q, *v; // first rows of the chunk ahead
        u16 *o;               // and of the one before; NULL: there is none
        int ahead;
        bool whole; // the chunk ahead has all its rows

        // Rounds n of ROUNDS that belong to a step.
        KKT_DEVICE bool turn_of(int n, int rounds, int step) {
            return n * steps / rounds == step;
        }

        // Whether nothing of the turn depends on a length: then it may be taken step by step,
        // without a branch that would keep copies and products apart.
        __device__ __forceinline__ bool plain() const {
            return whole && o;
        }

        // Of a plain turn; to be called once for each step.
        __device__ __forceinline__ void step(int step) const {
            using Keys = Sequence::KeyShare;
            using Values = Sequence::ValueShare;
            const Sequence &s = ring.sequence;
#pragma unroll
            for (int n = 0; n < Keys::rounds; ++n)
                if (turn_of(n, Keys::rounds, step)) {
                    s.keys.copy_round(slot, k, n);
                    s.keys.copy_round(slot + q_at, q, n);
                }
#pragma unroll
            for (int n = 0; n < Values::rounds; ++n)
                if (turn_of(n, Values::rounds, step)) {
                    s.values.store_round(slot + v_at, o, n, P::chunk);
                    s.values.copy_round(slot + v_at, v, n);
                }
#pragma unroll
            for (int n = 0; n < TMatrix::rounds; ++n)
                if (WITH_T && turn_of(n, TMatrix::rounds, step))
                    ring.t.ask_round(slot + t_at, (i64)ahead * P::chunk, n, P::chunk);
        }

        // Any turn, at once.
        __device__ __forceinline__ void all() const {
            if (o)
                ring.store_output(ahead - STAGES);
            ring.ask(ahead);
        }
    };

    __device__ __forceinline__ Turn turn(int chunk) const {
        const int ahead = chunk + STAGES - 1;
        const i64 at = (i64)ahead * P::chunk;
        const i64 before = (i64)(chunk - 1) * P::chunk;
        return {*this,
                slot(ahead),
                sequence.k + at * sequence.k_stride,
                sequence.q + at * sequence.k_stride,
                sequence.v + at * sequence.v_stride,
                chunk > 0 ? sequence.o + before * sequence.v_stride : nullptr,
                ahead,
                at + P::chunk <= w.length};
    }
};
