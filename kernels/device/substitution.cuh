// Inverses of unit lower triangular blocks by forward substitution, in place. Lanes own columns:
// the column x of the inverse that starts at the diagonal j obeys
//
//     x_i = [i = j] - sum of L_ik x_k over k < i
//
// so that rows of L are read by all lanes of a block at once (a broadcast), and a column needs
// nothing of its neighbours. Above j the sums are of zeros, so x is 0 there exactly, and 1 at j.
#pragma once

#include "device/lower_blocks.cuh"
#include "device/team.cuh"
#include "device/types.cuh"

// Columns `column[c]` of the diagonal blocks, CHAINS at a time, with x in registers. A column past
// the chunk is a lane without work, in a warp that has some.
template <class L, int CHUNK, int CHAINS>
KKT_DEVICE void substitute_columns(float *head, const int (&column)[CHAINS]) {
    constexpr int B = L::block;
    float x[CHAINS][B];
    float *block[CHAINS];
#pragma unroll
    for (int c = 0; c < CHAINS; ++c)
        block[c] = head + (column[c] < CHUNK ? column[c] / B : 0) * L::block_words;
#pragma unroll
    for (int i = 0; i < B; ++i) {
#pragma unroll
        for (int c = 0; c < CHAINS; ++c)
            x[c][i] = column[c] % B == i ? 1.0f : 0.0f;
#pragma unroll
        for (int k = 0; k < i; k += 4) {
#pragma unroll
            for (int c = 0; c < CHAINS; ++c) {
                const float4 l = L::load_4(block[c] + i * L::row_words + k);
                x[c][i] -= l.x * x[c][k];
                if (k + 1 < i)
                    x[c][i] -= l.y * x[c][k + 1];
                if (k + 2 < i)
                    x[c][i] -= l.z * x[c][k + 2];
                if (k + 3 < i)
                    x[c][i] -= l.w * x[c][k + 3];
            }
        }
    }
    __syncwarp(); // every lane has read its block before any lane overwrites it
#pragma unroll
    for (int c = 0; c < CHAINS; ++c) {
        const int j = column[c] % B;
        if (column[c] < CHUNK) {
#pragma unroll
            for (int i = 0; i < B; ++i)
                block[c][i * L::row_words + j] = x[c][i];
        }
    }
}

// All diagonal blocks (at most 32 rows each) of one head, by its team.
template <class L, int CHUNK, class T>
KKT_DEVICE void substitute_blocks(float *head, const T &team) {
    static_assert(L::block <= kWarp, "a block's columns must lie in one warp");
    constexpr int columns = divide_up(CHUNK, T::threads); // a lane
    constexpr int chains = columns > 1 && L::block < 32 ? 2 : 1;
#pragma unroll 1
    for (int n = 0; n < columns; n += chains) {
        if (n * T::threads + team.warp * kWarp >= CHUNK)
            break; // a warp beyond the chunk must not read what others write
        int column[chains];
#pragma unroll
        for (int c = 0; c < chains; ++c)
            column[c] = (n + c) * T::threads + team.thread();
        substitute_columns<L, CHUNK, chains>(head, column);
    }
}

// The whole chunk as one block of more than 32 rows: x stays in shared memory, where it takes the
// place of L row by row. Needs ones on the diagonal and zeros above it.
template <class L, int CHUNK, class T> KKT_DEVICE void substitute_rows(float *head, const T &team) {
    static_assert(L::block == CHUNK, "one block");
    constexpr int columns = divide_up(CHUNK, T::threads); // a lane
#pragma unroll 1
    for (int i = 1; i < CHUNK; ++i) {
        float *row = head + i * L::row_words;
        float x[columns];
#pragma unroll
        for (int n = 0; n < columns; ++n)
            x[n] = 0.0f;
#pragma unroll 1
        for (int k = 0; k < i; k += 4) {
            const float4 l4 = L::load_4(row + k);
            const float l[4] = {l4.x, l4.y, l4.z, l4.w};
#pragma unroll
            for (int d = 0; d < 4; ++d) {
#pragma unroll
                for (int n = 0; n < columns; ++n) {
                    const int j = n * T::threads + team.thread();
                    if (k + d < i && j < CHUNK)
                        x[n] -= l[d] * head[(k + d) * L::row_words + j];
                }
            }
        }
        team.sync(); // row i of L was read by all
#pragma unroll
        for (int n = 0; n < columns; ++n) {
            const int j = n * T::threads + team.thread();
            if (j < i)
                row[j] = x[n];
        }
    }
}
