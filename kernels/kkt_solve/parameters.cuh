// The configuration of kkt_solve, as the compiler was given it. What a parameter means, and where
// it has a meaning, is said in kkt_solve.c.
#pragma once

#include "device/types.cuh"

enum Inverse { kRow, kRecursive, kFlat, kNeumann };
enum Couple { kFp32, kTf32, kFp16, kBf16x3 };
enum KLoad { kLdg, kCpAsync, kTmaLoad };
enum Mma { kMmaSync, kWgmma };
enum Store { kDirect, kStaged, kTmaStore, kTmaHalves };

struct P {
    static constexpr int chunk = KKT_CHUNK;
    static constexpr int dk = KKT_DK;
    static constexpr bool bf16 = KKT_DTYPE == 0;
    static constexpr bool gated = KKT_GATED;
    static constexpr bool times_beta = KKT_T_FORM == 1; // T diag(beta) instead of T
    static constexpr int threads = KKT_THREADS;
    static constexpr int warps = threads / kWarp;
    static constexpr int heads = KKT_HEADS_PER_BLOCK;
    static constexpr int span = chunk * KKT_CHUNKS_PER_BLOCK; // rows of a block
    static constexpr Inverse inverse = (Inverse)KKT_INVERSE;
    static constexpr int block = inverse == kRow ? chunk : KKT_BASE;
    static constexpr Couple couple = (Couple)KKT_COUPLE;
    static constexpr KLoad kload = (KLoad)KKT_KLOAD;

    // Couplings in registers.
    static constexpr Mma mma = (Mma)KKT_MMA;
    static constexpr Store store = (Store)KKT_STORE;
    static constexpr bool a_key_head_each = KKT_SHARE == 1; // each value head forms its own K K^T
    static constexpr int team = KKT_WARPS_PER_HEAD;
    static constexpr bool persistent =
        KKT_PERSISTENT; // a block takes one unit of work after another
    static constexpr int min_blocks = KKT_MIN_BLOCKS > 0 ? KKT_MIN_BLOCKS : 1;
    static constexpr int parts = couple == kBf16x3 ? 2 : 1; // words an operand's pair takes

    // Couplings through shared memory.
    static constexpr bool transpose = KKT_TRANSPOSE;
    static constexpr bool negate_early = KKT_NEGATE_EARLY;
    static constexpr bool assemble_fused = KKT_ASSEMBLE_FUSED;
    static constexpr int subs = chunk / 8; // 8 x 8 sub-blocks a side
    static constexpr int block_subs = block / 8;
    static constexpr int team_warps = warps > heads ? warps / heads : 1;
    // Loops over the couplings' strips: unrolled where a warp has them all and the code stays
    // small, so that every address is a constant.
    static constexpr int unroll = team_warps == 1 && chunk <= (couple == kTf32 ? 64 : 32) ? 64 : 1;
};
