// Copies of tiles between global memory and PaddedTiles, by all threads of a block: into shared
// memory with cp.async, and out of it 16 bytes at a time.
#pragma once

#include "device/async_copy.cuh"
#include "device/padded_tile.cuh"
#include "device/types.cuh"

// Which 16-byte units of a ROWS x COLUMNS tile this thread moves: one column of units, every
// `step` rows. Threads that do not make up a whole row of units rest.
template <int ROWS, int COLUMNS, int THREADS> struct TileShare {
    using Tile = PaddedTile<ROWS, COLUMNS>;
    static constexpr int step = THREADS / Tile::units;
    static constexpr int rounds = divide_up(ROWS, step);
    static constexpr bool even = step * Tile::units == THREADS && ROWS % step == 0;

    int row;
    int tile_at; // byte offset in the tile
    int from;    // element offset from the first row in global memory
    int stride;  // elements between two of the thread's rows there

    // Rows in global memory are `row_stride` elements apart.
    KKT_DEVICE TileShare make(int thread, int row_stride) {
        const int row = thread / Tile::units;
        const int unit = thread % Tile::units;
        return {row, Tile::at(row, unit), row * row_stride + unit * 8, step * row_stride};
    }

    __device__ __forceinline__ bool has(int round, int valid) const {
        return (even || row < step) && row + round * step < valid;
    }

    // Asks for one round of a whole tile whose first row is at `source`.
    __device__ __forceinline__ void copy_round(u8 *tile, const u16 *source, int n) const {
        if (has(n, ROWS))
            async_copy_16(tile + tile_at + Tile::at(n * step, 0), source + (from + n * stride),
                          true);
    }

    // Asks for a tile of which `valid` rows are there; the others become zeros.
    __device__ __forceinline__ void copy(u8 *tile, const u16 *source, int valid) const {
        if (valid == ROWS) {
#pragma unroll
            for (int n = 0; n < rounds; ++n)
                copy_round(tile, source, n);
            return;
        }
#pragma unroll 1
        for (int n = 0; n < rounds; ++n)
            if (has(n, ROWS))
                async_copy_16(tile + tile_at + Tile::at(n * step, 0),
                              has(n, valid) ? source + (from + n * stride) : source, has(n, valid));
    }

    // Writes one round of a tile to where its first row is to be, as far as `valid` rows go.
    __device__ __forceinline__ void store_round(const u8 *tile, u16 *destination, int n,
                                                int valid) const {
        if (has(n, valid))
            *(uint4 *)(destination + (from + n * stride)) =
                *(const uint4 *)(tile + tile_at + Tile::at(n * step, 0));
    }

    __device__ __forceinline__ void store(const u8 *tile, u16 *destination, int valid) const {
#pragma unroll 1
        for (int n = 0; n < rounds; ++n)
            store_round(tile, destination, n, valid);
    }
};
