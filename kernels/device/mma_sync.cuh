// Tensor-core products of one warp: mma.sync with fp32 accumulation, and ldmatrix.
#pragma once

#include "device/fragment.cuh"
#include "device/types.cuh"

// A 16 x 16 tile of 2-byte elements in the operand layout of m16n8k16, as ldmatrix.x4 gives it:
//
//     quarter[0]  rows 0..7,  columns 0..7      quarter[2]  rows 0..7,  columns 8..15
//     quarter[1]  rows 8..15, columns 0..7      quarter[3]  rows 8..15, columns 8..15
//
// In each quarter lane l holds the elements (l / 4, 2 (l % 4)) and (l / 4, 2 (l % 4) + 1). As the
// left operand the four words are A. As the right operand of X Y^T the same words of Y serve:
// quarters 0 and 2 are B of output columns 0..7, quarters 1 and 3 of columns 8..15.
struct OperandTile {
    u32 quarter[4];
};

// `row` is the address of row l % 16 of the tile, plus 8 columns for lanes 16..31 (16-byte
// aligned).
KKT_DEVICE OperandTile load_operand_tile(u32 row) {
    OperandTile t;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(t.quarter[0]), "=r"(t.quarter[1]), "=r"(t.quarter[2]), "=r"(t.quarter[3])
                 : "r"(row)
                 : "memory");
    return t;
}

// c += A B for one half (0 or 1) of the 16 output columns of X Y^T. The result is a new value, so
// that a sum that begins at 0 costs no instructions that set c.
template <bool BF16>
KKT_DEVICE void mma_x_yt(Fragment &c, const OperandTile &x, const OperandTile &y, int half) {
    Fragment d;
#define KKT_MMA_X_YT(TYPE)                                                                         \
    asm("mma.sync.aligned.m16n8k16.row.col.f32." TYPE "." TYPE ".f32 "                             \
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"                      \
        : "=f"(d.value[0]), "=f"(d.value[1]), "=f"(d.value[2]), "=f"(d.value[3])                   \
        : "r"(x.quarter[0]), "r"(x.quarter[1]), "r"(x.quarter[2]), "r"(x.quarter[3]),              \
          "r"(y.quarter[half]), "r"(y.quarter[half + 2]), "f"(c.value[0]), "f"(c.value[1]),        \
          "f"(c.value[2]), "f"(c.value[3]))
    if constexpr (BF16)
        KKT_MMA_X_YT("bf16");
    else
        KKT_MMA_X_YT("f16");
#undef KKT_MMA_X_YT
    c = d;
}

// c += X Y^T where X is two 8 x 8 matrices, one above the other, and Y is one: the upper half of c
// gets the product of `upper`, the lower half that of `lower`. Neighbouring registers are an
// operand as they are, so where only one product is wanted, what lies beside its X is the cheapest
// other.
template <bool BF16> KKT_DEVICE void mma_quarters_x_yt(Fragment &c, u32 upper, u32 lower, u32 y) {
    Fragment d;
#define KKT_MMA_QUARTERS(TYPE)                                                                     \
    asm("mma.sync.aligned.m16n8k8.row.col.f32." TYPE "." TYPE ".f32 "                              \
        "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %8, %9, %10};"                                     \
        : "=f"(d.value[0]), "=f"(d.value[1]), "=f"(d.value[2]), "=f"(d.value[3])                   \
        : "r"(upper), "r"(lower), "r"(y), "f"(c.value[0]), "f"(c.value[1]), "f"(c.value[2]),       \
          "f"(c.value[3]))
    if constexpr (BF16)
        KKT_MMA_QUARTERS("bf16");
    else
        KKT_MMA_QUARTERS("f16");
#undef KKT_MMA_QUARTERS
    c = d;
}

// Operands of m16n8k8 in tf32. Lane l, with r = l / 4 and k = l % 4, holds
//
//     A (16 x 8)   a[0] (r, k)   a[1] (r + 8, k)   a[2] (r, k + 4)   a[3] (r + 8, k + 4)
//     B (8 x 8)    b[0] (k, r)   b[1] (k + 4, r)
KKT_DEVICE void mma_tf32(Fragment &c, const float a[4], const float b[2]) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c.value[0]), "+f"(c.value[1]), "+f"(c.value[2]), "+f"(c.value[3])
        : "r"(__float_as_int(a[0])), "r"(__float_as_int(a[1])), "r"(__float_as_int(a[2])),
          "r"(__float_as_int(a[3])), "r"(__float_as_int(b[0])), "r"(__float_as_int(b[1])));
}
