// A lower triangular matrix in shared memory as square fp32 blocks, without the blocks above the
// diagonal. For four block rows the blocks lie in this order:
//
//      0
//      4   1          the diagonal first, so that neighbouring diagonal blocks are one block
//      5   6   2      stride apart; then the others row by row
//      7   8   9   3
//
// A row of a block takes BLOCK + ROW_PAD words, and BLOCK_PAD rows follow each block
// where there is more than one:
// - BLOCK_PAD 1 moves neighbouring diagonal blocks to other banks (16 x 16 words are a multiple of
//   32 banks, 17 x 16 are not): lanes that walk several blocks in step do not collide.
// - ROW_PAD 1 makes column walks free of conflicts and costs the 16-byte accesses; ROW_PAD 4 keeps
//   them, and eight consecutive rows start in different 16-byte bank groups.
//
// All code addresses it by 8 x 8 sub-blocks, whatever the size of its blocks.
#pragma once

#include "device/types.cuh"

template <int CHUNK, int BLOCK, int BLOCK_PAD, int ROW_PAD> struct LowerBlocks {
    static constexpr int block = BLOCK;
    static constexpr int blocks = CHUNK / BLOCK; // a side
    static constexpr int row_words = BLOCK + ROW_PAD;
    static constexpr int block_words = (BLOCK + (blocks > 1 ? BLOCK_PAD : 0)) * row_words;
    static constexpr int words = blocks * (blocks + 1) / 2 * block_words;
    static constexpr bool wide_rows = row_words % 4 == 0; // rows start at 16-byte boundaries
    static constexpr bool even_rows = row_words % 2 == 0; // and at 8-byte boundaries

    // Word offset of block (i, j), i >= j.
    KKT_DEVICE int block_at(int i, int j) {
        return (i == j ? i : blocks + i * (i - 1) / 2 + j) * block_words;
    }

    // Word offset of the sub-block whose first element is (8 i, 8 j), i >= j.
    KKT_DEVICE int sub_at(int i, int j) {
        constexpr int subs = BLOCK / 8;
        return block_at(i / subs, j / subs) + (i % subs * row_words + j % subs) * 8;
    }

    // Whether sub-block (i, j) has a place: those above the diagonal do inside diagonal blocks.
    KKT_DEVICE bool has_sub(int i, int j) {
        constexpr int subs = BLOCK / 8;
        return i / subs >= j / subs;
    }

    // Two neighbouring words; `word` is even wherever rows are.
    KKT_DEVICE float2 load_2(const float *word) {
        return even_rows ? *(const float2 *)word : make_float2(word[0], word[1]);
    }

    KKT_DEVICE void store_2(float *word, float a, float b) {
        if (even_rows) {
            *(float2 *)word = make_float2(a, b);
        } else {
            word[0] = a;
            word[1] = b;
        }
    }

    // Four neighbouring words, the first a multiple of four in its row.
    KKT_DEVICE float4 load_4(const float *word) {
        return wide_rows ? *(const float4 *)word : make_float4(word[0], word[1], word[2], word[3]);
    }
};
