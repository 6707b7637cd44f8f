// Which tiles a block computes, and in which order. The output is cut into tiles of a cluster,
// cluster_m x cluster_n of those of a block; cluster i takes the i-th, then the one that is as many
// further as there are clusters, ... The order runs down groups of `raster` rows of such tiles, so
// that what is computed at one time is near square and shares its operands in L2:
//
//     raster 2     0  2  4  6
//                  1  3  5  7
//                  8 10 12 14
//                  9 11 13 15
#pragma once

#include "device/types.cuh"
#include "gemm/ws_parameters.cuh"

// A block's place in its cluster: which part of K, which tile down and across.
struct Place {
    u32 rank;
    int part, down, across;

    KKT_DEVICE Place of(u32 rank) {
        Place p;
        p.rank = rank;
        p.part = (int)rank % P::cluster_k;
        p.down = (int)rank / P::cluster_k % P::cluster_m;
        p.across = (int)rank / P::cluster_k / P::cluster_m;
        return p;
    }

    KKT_DEVICE u32 rank_at(int part, int down, int across) {
        return (u32)((across * P::cluster_m + down) * P::cluster_k + part);
    }
};

// a / b for 0 <= a < 2^22 and 0 < b: a quotient of floats, set right. It is short: what comes
// before the first load may have to be fetched from memory itself when a launch begins.
KKT_DEVICE int divide(int a, int b) {
    const int q = (int)__fdividef((float)a, (float)b);
    const int rest = a - q * b;
    return q + (rest >= b) - (rest < 0);
}

struct Problem {
    int m, n, k;
};

struct Schedule {
    int rows, columns; // of tiles of a cluster
    int blocks_k;      // K steps, all parts
    int tile, step;    // the present one, part after part of K, and the number of clusters

    KKT_DEVICE Schedule start(const Problem &problem) {
        Schedule s;
        s.rows = divide_up(problem.m, P::bm * P::cluster_m);
        s.columns = divide_up(problem.n, P::bn * P::cluster_n);
        s.blocks_k = divide_up(problem.k, P::bk);
        s.tile = (int)blockIdx.x / P::cluster;
        s.step = (int)gridDim.x / P::cluster;
        return s;
    }

    __device__ __forceinline__ bool more() const {
        return tile < rows * columns * P::split_k;
    }
    __device__ __forceinline__ void advance() {
        tile += step;
    }

    // Which part of K goes to memory on its own.
    __device__ __forceinline__ int part() const {
        return P::split_k > 1 ? divide(tile, rows * columns) : 0;
    }

    // The first K step of this block, and the one behind its last.
    __device__ __forceinline__ int2 steps(const Place &place) const {
        constexpr int parts = P::split_k * P::cluster_k;
        const int at = part() * P::cluster_k + place.part;
        return make_int2(blocks_k * at / parts, blocks_k * (at + 1) / parts);
    }

    // The first row and column of C that this block computes.
    __device__ __forceinline__ int2 origin(const Place &place) const {
        const int at = tile - part() * rows * columns;
        const int group = divide(at, P::raster * columns);
        const int within = at - group * P::raster * columns, first = group * P::raster;
        const int height = rows - first < P::raster ? rows - first : P::raster;
        const int column = divide(within, height), row = first + within - column * height;
        return make_int2((row * P::cluster_m + place.down) * P::bm,
                         (column * P::cluster_n + place.across) * P::bn);
    }
};
