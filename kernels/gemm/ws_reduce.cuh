// The sum of a cluster's partial products, where its blocks share a tile's K. Block i of them
// finishes the i-th part of the tile's columns: all others send it their values of these, each
// thread to the thread of its number.
//
//     space of block i    from the block before, from the one before that, ...; within, for each 64
//                         rows and fragment of C a float4 of every thread
//
// The sum runs over the parts of K in their order, so that it does not depend on who is first.
#pragma once

#include "device/types.cuh"
#include "gemm/ws_cluster.cuh"
#include "gemm/ws_layout.cuh"
#include "gemm/ws_products.cuh"

struct Reduction {
    static constexpr int columns = P::bn / P::cluster_k;
    static constexpr int values = columns / 2; // of a thread and 64 rows
    static constexpr int threads = 128 * P::consumers;
    static constexpr int bytes = (P::cluster_k - 1) * P::bm * P::bn / P::cluster_k * 4;
    static constexpr int block_bytes = P::row_blocks * values / 4 * threads * 16; // from one block

    // Where block `from` puts the i-th float4 of 64-row block `r`; there is no gap for itself.
    KKT_DEVICE u32 address(u32 smem, int to, int from, int r, int i, int thread) {
        const int place = from - (from > to);
        return smem + (u32)(Layout::sums + place * block_bytes +
                            ((r * values / 4 + i) * threads + thread) * 16);
    }
};

// To all other blocks of the cluster that share this tile. Every thread of theirs must have come to
// its cluster_wait.
KKT_DEVICE void send_partial_sums(const Accumulator &c, u32 smem, const Place &place, int thread) {
#pragma unroll
    for (int to = 0; to < P::cluster_k; ++to) {
        if (to == place.part)
            continue;
        const u32 there = in_block(smem, Place::rank_at(to, place.down, place.across));
        const u32 received = there + Layout::received;
#pragma unroll
        for (int r = 0; r < P::row_blocks; ++r)
#pragma unroll
            for (int i = 0; i < Reduction::values / 4; ++i) {
                const float *v = c.block[r] + to * Reduction::values + 4 * i;
                store_in_block(Reduction::address(there, to, place.part, r, i, thread), received,
                               v[0], v[1], v[2], v[3]);
            }
    }
}

// The `panel`-th 64 of this block's columns, 64 rows of them, summed.
KKT_DEVICE void sum_parts(float (&sum)[32], const Accumulator &c, const u8 *smem,
                          const Place &place, int r, int panel, int thread) {
#pragma unroll
    for (int i = 0; i < 32; ++i)
        sum[i] = 0;
#pragma unroll
    for (int from = 0; from < P::cluster_k; ++from) {
        if (from == place.part) {
#pragma unroll
            for (int part = 0; part < P::cluster_k; ++part)
                if (part == from)
#pragma unroll
                    for (int i = 0; i < 32; ++i)
                        sum[i] += c.block[r][part * Reduction::values + panel * 32 + i];
        } else {
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                const float4 v =
                    *(const float4 *)(smem + Reduction::address(0, place.part, from, r,
                                                                panel * 8 + i, thread));
                sum[4 * i] += v.x;
                sum[4 * i + 1] += v.y;
                sum[4 * i + 2] += v.z;
                sum[4 * i + 3] += v.w;
            }
        }
    }
}
