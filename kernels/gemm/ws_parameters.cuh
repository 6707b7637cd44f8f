// The parameters of the warp-specialized GEMM as named constants (macros: the variant's table and
// its defines), and what follows from them.
#pragma once

#include "device/types.cuh"

struct P {
    static constexpr int bm = KKT_BM, bn = KKT_BN, bk = KKT_BK; // the tile of a block, a K step
    static constexpr int stages = KKT_STAGES;
    static constexpr int cluster_m = KKT_CLUSTER_M, cluster_n = KKT_CLUSTER_N; // tiles a cluster
    static constexpr int cluster_k = KKT_CLUSTER_K; // blocks of a cluster that share a tile's K
    static constexpr int split_k = KKT_SPLIT_K;     // parts of K whose sums go through memory
    static constexpr bool ping_pong = KKT_PING_PONG;
    static constexpr int raster = KKT_RASTER;
    static constexpr bool a_along_k = KKT_A_ALONG_K, b_along_k = KKT_B_ALONG_K; // rows as stored
    static constexpr bool bf16 = KKT_DTYPE == 0;
    static constexpr bool c_units = KKT_C_UNITS; // rows of C are whole units of 16 bytes
    static constexpr bool bulk_store = c_units && KKT_BULK_STORE; // TMA writes C, else its warps
    static constexpr int store_panels = KKT_STORE_PANELS; // of 64 x 64 that a warpgroup stages

    static constexpr int teams = ping_pong ? 2 : 1;       // that have a tile each
    static constexpr int consumers = 2;                   // warpgroups
    static constexpr int team_groups = consumers / teams; // warpgroups that share a tile
    static constexpr int group_rows = bm / team_groups;   // of the tile, a warpgroup's
    static constexpr int row_blocks = group_rows / 64;    // wgmma's 64 rows
    static constexpr int mn = cluster_m * cluster_n;
    static constexpr int cluster = mn * cluster_k;
    static constexpr int threads = 128 * (consumers + 1);
    static constexpr int launch_registers = 65536 / threads / 8 * 8;
    static constexpr int consumer_registers = KKT_CONSUMER_REGISTERS;
    static constexpr int producer_registers = KKT_PRODUCER_REGISTERS;

    static_assert(bm % (64 * team_groups) == 0, "a warpgroup multiplies 64 rows at a time");
    static_assert(bk % 64 == 0, "a K step is made of rows of 128 bytes");
    static_assert(bm / cluster_n * cluster_n == bm && bm / cluster_n % (a_along_k ? 8 : 64) == 0,
                  "each block loads its share of A, in whole panels or groups of eight rows");
    static_assert(bn / cluster_m * cluster_m == bn && bn / cluster_m % (b_along_k ? 8 : 64) == 0,
                  "and of B");
    static_assert(bn % cluster_k == 0 && bn / cluster_k % 64 == 0, "and finishes its share of C");
    static_assert(!ping_pong || cluster_k == 1,
                  "partial sums are exchanged by all warps of a block");
    static_assert(consumers * consumer_registers + producer_registers <=
                      (consumers + 1) * launch_registers,
                  "registers are those of the launch, dealt out anew");
};
