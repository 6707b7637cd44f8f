/* What the claims on couplings in registers compare; for claims.c alone, which has what is said
 * of it. */
#ifndef KKT_KERNELS_KKT_SOLVE_CLAIMS_REGISTERS_H
#define KKT_KERNELS_KKT_SOLVE_CLAIMS_REGISTERS_H

#include "kernels/kkt_solve/kkt_solve.h"

/* Couplings in registers: what both sides have, and the point that the others move from. */
#define NOT_SHARED                                                                                 \
    "block_pad=1,row_stride=16,transpose=0,negate_early=1,assemble_fused=1,share=key_head,"        \
    "warps_per_head=1,chunks_per_block=1,min_blocks=0,carveout=0,persistent=0,kload=cp_async,"     \
    "mma=mma_sync,heads_per_block=4,threads=128,"
#define REGISTERS NOT_SHARED "inverse=recursive,base=8,couple=fp16,store=tma_halves"
#define SMALL NOT_SHARED "inverse=recursive,base=8,couple=bf16x3,store=tma"

#define WAVEFRONTS_WITHIN 0.05 /* predicted against counted */
#define TIME_WITHIN 0.02       /* what counts as the same time */

/* At C = 64, to the point itself or away from it. */
#define TO_POINT(FROM, CONDITION)                                                                  \
    {                                                                                              \
        .chunk = 64, .from = REGISTERS ";" FROM, .to = REGISTERS, .expect = KKT_EXPECT_LOWER,      \
        .condition = (CONDITION)                                                                   \
    }
#define FROM_POINT(TO, EXPECT, WITHIN, CONDITION)                                                  \
    {                                                                                              \
        .chunk = 64, .from = REGISTERS, .to = REGISTERS ";" TO, .expect = (EXPECT),                \
        .within = (WITHIN), .condition = (CONDITION)                                               \
    }
#define FASTER(TO, CONDITION) FROM_POINT(TO, KKT_EXPECT_LOWER, 0, CONDITION)
#define MODELLED(TO) FROM_POINT(TO, KKT_EXPECT_AS_PREDICTED, WAVEFRONTS_WITHIN, TO)

static const kkt_comparison store_halves[] = {
    TO_POINT("store=direct", "against direct"),
    TO_POINT("store=staged", "against staged"),
    TO_POINT("store=tma", "against tma"),
};

static const kkt_comparison neumann[] = {
    {.chunk = 64,
     .from = REGISTERS ";base=16",
     .to = REGISTERS ";base=16,inverse=neumann",
     .expect = KKT_EXPECT_LOWER,
     .condition = "fp16"},
    {.chunk = 64,
     .from = REGISTERS ";base=16,couple=bf16x3",
     .to = REGISTERS ";base=16,inverse=neumann,couple=bf16x3",
     .expect = KKT_EXPECT_LOWER,
     .condition = "bf16x3"},
};

static const kkt_comparison five_blocks[] = {FASTER("min_blocks=5", "")};
static const kkt_comparison five_resident[] = {
    FROM_POINT("min_blocks=5", KKT_EXPECT_HIGHER, 0, ""),
};

static const kkt_comparison persistent[] = {
    {.chunk = 64,
     .from = REGISTERS ";mma=wgmma,min_blocks=4",
     .to = REGISTERS ";mma=wgmma,min_blocks=4,persistent=1",
     .expect = KKT_EXPECT_LOWER},
};

static const kkt_comparison persistent_resident[] = {
    {.chunk = 64,
     .from = REGISTERS ";mma=wgmma,store=tma",
     .to = REGISTERS ";mma=wgmma,store=tma,min_blocks=3,persistent=1",
     .expect = KKT_EXPECT_SAME,
     .condition = "whole tiles"},
    {.chunk = 64,
     .from = REGISTERS ";mma=wgmma,min_blocks=4",
     .to = REGISTERS ";mma=wgmma,min_blocks=4,persistent=1",
     .expect = KKT_EXPECT_SAME,
     .condition = "halves"},
};

static const kkt_comparison base_8[] = {TO_POINT("base=16", "")};

static const kkt_comparison precise[] = {
    FROM_POINT("couple=bf16x3", KKT_EXPECT_SAME, TIME_WITHIN, ""),
};

static const kkt_comparison kload_tma[] = {FASTER("kload=tma", "")};

static const kkt_comparison wgmma[] = {FASTER("mma=wgmma", "")};

static const kkt_comparison carveout[] = {FASTER("carveout=100", "")};

static const kkt_comparison share_key_head[] = {TO_POINT("share=value_head", "")};

static const kkt_comparison two_warps[] = {
    {.chunk = 64,
     .from = REGISTERS ";heads_per_block=2,threads=64",
     .to = REGISTERS ";heads_per_block=2,threads=128,warps_per_head=2",
     .expect = KKT_EXPECT_LOWER},
    {.chunk = 128,
     .from = REGISTERS ";heads_per_block=2,threads=64",
     .to = REGISTERS ";heads_per_block=2,threads=128,warps_per_head=2",
     .expect = KKT_EXPECT_LOWER},
};

static const kkt_comparison several_chunks[] = {
    {.chunk = 16,
     .from = SMALL,
     .to = SMALL ";chunks_per_block=4",
     .expect = KKT_EXPECT_LOWER,
     .condition = "4 chunks"},
    {.chunk = 32,
     .from = SMALL,
     .to = SMALL ";chunks_per_block=2",
     .expect = KKT_EXPECT_LOWER,
     .condition = "2 chunks"},
};

static const kkt_comparison registers_modelled[] = {
    MODELLED("base=16"),   MODELLED("couple=bf16x3"), MODELLED("kload=ldg"),
    MODELLED("mma=wgmma"), MODELLED("store=tma"),     MODELLED("store=staged"),
};

#endif
