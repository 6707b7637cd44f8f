// Shared memory of the warp-specialized GEMM, in the order in which the variant's footprint lists
// it, and where operands lie in a stage.
//
//     a        stages x bm x bk         tiles of A
//     b        stages x bn x bk         tiles of B
//     c        consumers x store_panels x 64 x 64     C on its way out
//     sums     (cluster_k - 1) x bm x bn / cluster_k     fp32, what the other blocks of a cluster
//                                       that share K have summed up of this one's columns
//     full     stages                   mbarriers: a stage's bytes have arrived
//     empty    stages                   mbarriers: all that read a stage, or a copy of it, have
//                                       done so
//     received 2                        the first is told of the bytes in `sums`
//
// An operand's tile is made of panels whose rows are 128 bytes, swizzled (device/swizzle.cuh).
// What is summed over runs along the rows where the operand is stored that way ("K-major"), else
// down the panel:
//
//     K-major    bk / 64 panels of bm (or bn) rows x 64 of K
//     MN-major   bm / 64 panels of bk rows x 64 of M (or N); wgmma transposes on the way
#pragma once

#include "device/types.cuh"
#include "gemm/ws_parameters.cuh"

constexpr int kPanelColumns = 64, kRowBytes = 128;

// EXTENT rows of M or columns of N, SHARES blocks of a cluster that load a part each.
template <int EXTENT, bool K_MAJOR, int SHARES> struct Operand {
    static constexpr bool k_major = K_MAJOR;
    static constexpr int bytes = EXTENT * P::bk * 2;
    static constexpr int panels = K_MAJOR ? P::bk / 64 : EXTENT / 64;
    static constexpr int panel_bytes = bytes / panels;
    static constexpr int share = EXTENT / SHARES; // of M or N that a block loads
};

using OperandA = Operand<P::bm, P::a_along_k, P::cluster_n>;
using OperandB = Operand<P::bn, P::b_along_k, P::cluster_m>;

struct Layout {
    static constexpr int stage_bytes = OperandA::bytes + OperandB::bytes;
    static constexpr int a = 0;
    static constexpr int b = a + P::stages * OperandA::bytes;
    static constexpr int c = b + P::stages * OperandB::bytes;
    static constexpr int c_panel_bytes = 64 * kRowBytes;
    static constexpr int c_group_bytes = P::store_panels * c_panel_bytes;
    static constexpr int sums = c + P::consumers * c_group_bytes;
    static constexpr int full = sums + (P::cluster_k - 1) * (P::bm * P::bn / P::cluster_k) * 4;
    static constexpr int empty = full + P::stages * 8;
    static constexpr int received = empty + P::stages * 8;
    static constexpr int bytes = received + 16;
    static_assert(bytes <= KKT_SMEM_BYTES && KKT_SMEM_BYTES - bytes < 32,
                  "the host's footprint, which rounds each up to 16 bytes, and this layout differ");
};
