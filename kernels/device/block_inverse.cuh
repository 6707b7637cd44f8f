// Inverses of 16 x 16 unit lower triangular blocks as operands of register_blocks.cuh. A warp
// inverts all diagonal blocks of its head together; they come as blocks of N = -L in fragments, of
// which only what is below the diagonal counts.
//
// Substitution goes through shared memory, because lanes own columns there:
//
//     put          fragments to fp32 blocks of BASE x BASE, BASE 8 or 16
//     substitute   x_i = [i = j] + sum of N_ik x_k over k < i, in registers; each column of the
//                  inverse is rounded and written as a row of its transpose, in 8 x 8 matrices
//     take         those matrices as operands, straight (ldmatrix transposes) or transposed
//
// With BASE 8 the quarter below the two inverted ones is coupled on tensor cores when it is taken:
// for (A, 0; B, E) with inverses A' and E' it is E' B A', where (E' B A') = E' M, M^T = A'^T B^T.
#pragma once

#include "device/convert.cuh"
#include "device/fragment.cuh"
#include "device/matrix_move.cuh"
#include "device/register_blocks.cuh"
#include "device/types.cuh"

// Shared memory of one head's diagonal blocks: STRIPS blocks of 16 rows.
template <int STRIPS, int BASE, int PARTS> struct BlockScratch {
    static_assert(BASE == 8 || BASE == 16, "blocks are 16 x 16, or 8 x 8 and a coupling");
    static constexpr int blocks = STRIPS * 16 / BASE;
    // The four blocks that a warp reads in step start in different banks.
    static constexpr int block_words = BASE * BASE + 8;
    static constexpr int blocks_bytes = blocks * block_words * 4;
    // Inverses: of each strip the 8 x 8 matrices, with BASE 8 two and a row of zeros, with 16 four.
    static constexpr int matrix_bytes = 128;
    static constexpr int zeros_at = 2 * matrix_bytes;
    static constexpr int strip_bytes = BASE == 8 ? zeros_at + 16 : 4 * matrix_bytes;
    static constexpr int part_bytes = STRIPS * strip_bytes;
    // Where all blocks are read in one go, their inverses take their place.
    static constexpr bool in_place = STRIPS <= 4;
    static constexpr int inverse_at = in_place ? 0 : blocks_bytes;
    static constexpr int bytes =
        in_place ? larger(blocks_bytes, PARTS *part_bytes) : blocks_bytes + PARTS * part_bytes;
};

// Word of element (i, k) of a block. With BASE 16 the halves of rows 2, 3, 6, 7, ... change places,
// so that four rows of a half cover all banks.
template <int BASE> KKT_DEVICE int block_word(int i, int k) {
    return BASE == 8 ? i * 8 + k : i * 16 + (k / 8 ^ i / 2 % 2) * 8 + k % 8;
}

// Writes what substitution reads of diagonal block `strip`.
template <int STRIPS, int BASE, int PARTS>
KKT_DEVICE void put_block(u8 *scratch, const Accumulator &a, int strip, int lane) {
    using S = BlockScratch<STRIPS, BASE, PARTS>;
    float *words = (float *)scratch + (BASE == 8 ? 2 * strip : strip) * S::block_words;
    const int row = fragment_row(lane), column = fragment_column(lane);
    float *upper = words + block_word<BASE>(row, column);
    float *lower =
        BASE == 8 ? upper + S::block_words : words + block_word<BASE>(row + 8, column + 8);
    *(float2 *)upper = make_float2(a.half[0].value[0], a.half[0].value[1]);
    *(float2 *)lower = make_float2(a.half[1].value[2], a.half[1].value[3]);
    if (BASE == 16)
        *(float2 *)(upper + 8 * BASE) = make_float2(a.half[0].value[2], a.half[0].value[3]);
}

// Eight elements of a column of an inverse, rounded, as a row of a matrix.
template <int PARTS> KKT_DEVICE void write_row(u8 *row, int part_bytes, const float *x) {
    SubOperand<PARTS> pair[4];
#pragma unroll
    for (int n = 0; n < 4; ++n)
        pair[n] = round_pair<PARTS>(x[2 * n], x[2 * n + 1]);
#pragma unroll
    for (int p = 0; p < PARTS; ++p)
        *(uint4 *)(row + p * part_bytes) =
            make_uint4(pair[0].part[p], pair[1].part[p], pair[2].part[p], pair[3].part[p]);
}

// x += sum of n[0..3] y[0..3], as far as `count` goes.
KKT_DEVICE void add_products(float &x, const float4 &n, const float *y, int count) {
    x += n.x * y[0];
    if (count > 1)
        x += n.y * y[1];
    if (count > 2)
        x += n.z * y[2];
    if (count > 3)
        x += n.w * y[3];
}

// BASE 8: eight lanes a block, a column each; two groups of four blocks at a time.
template <int STRIPS, int PARTS> KKT_DEVICE void substitute_8(u8 *scratch, int lane) {
    using S = BlockScratch<STRIPS, 8, PARTS>;
    constexpr int rounds = divide_up(S::blocks, 4);
    constexpr int chains = rounds % 2 == 0 ? 2 : 1;
    const int column = lane % 8;
    const bool busy = S::blocks % 4 == 0 || lane / 8 < S::blocks;
#pragma unroll
    for (int round = 0; round < rounds; round += chains) {
        const int block = round * 4 + (busy ? lane / 8 : 0);
        const float *words = (const float *)scratch + block * S::block_words;
        float x[chains][8];
#pragma unroll
        for (int i = 0; i < 8; ++i) {
#pragma unroll
            for (int c = 0; c < chains; ++c) {
                x[c][i] = column == i ? 1.0f : 0.0f;
#pragma unroll
                for (int k = 0; k < i; k += 4)
                    add_products(x[c][i],
                                 *(const float4 *)(words + c * 4 * S::block_words + i * 8 + k),
                                 x[c] + k, i - k);
            }
        }
        __syncwarp();
#pragma unroll
        for (int c = 0; c < chains; ++c)
            if (busy)
                write_row<PARTS>(scratch + S::inverse_at + (block / 2 + 2 * c) * S::strip_bytes +
                                     block % 2 * S::matrix_bytes + column * 16,
                                 S::part_bytes, x[c]);
    }
    if (lane < STRIPS * PARTS)
        *(uint4 *)(scratch + S::inverse_at + lane * S::strip_bytes + S::zeros_at) =
            make_uint4(0, 0, 0, 0);
}

// BASE 16: eight lanes a block, four blocks at a time. A lane takes column c of the left half and
// column c + 8, which starts eight rows later and reads the same rows of N.
template <int STRIPS, int PARTS> KKT_DEVICE void substitute_16(u8 *scratch, int lane) {
    using S = BlockScratch<STRIPS, 16, PARTS>;
    const int column = lane % 8;
    const bool busy = STRIPS % 4 == 0 || lane / 8 < STRIPS;
#pragma unroll
    for (int round = 0; round < divide_up(STRIPS, 4); ++round) {
        const int block = round * 4 + (busy ? lane / 8 : 0);
        const float *words = (const float *)scratch + block * S::block_words;
        float left[16], right[8];
#pragma unroll
        for (int i = 0; i < 16; ++i) {
            left[i] = column == i ? 1.0f : 0.0f;
            if (i >= 8)
                right[i - 8] = column == i - 8 ? 1.0f : 0.0f;
#pragma unroll
            for (int k = 0; k < i; k += 4) {
                const float4 n = *(const float4 *)(words + block_word<16>(i, k));
                add_products(left[i], n, left + k, i - k);
                if (k >= 8)
                    add_products(right[i - 8], n, right + k - 8, i - k);
            }
        }
        __syncwarp();
        const float zeros[8] = {};
        u8 *matrix = scratch + S::inverse_at + block * S::strip_bytes + column * 16;
        if (busy) {
            write_row<PARTS>(matrix, S::part_bytes, left);
            write_row<PARTS>(matrix + S::matrix_bytes, S::part_bytes, zeros);
            write_row<PARTS>(matrix + 2 * S::matrix_bytes, S::part_bytes, left + 8);
            write_row<PARTS>(matrix + 3 * S::matrix_bytes, S::part_bytes, right);
        }
    }
}

// Inverts all blocks that were put.
template <int STRIPS, int BASE, int PARTS> KKT_DEVICE void substitute(u8 *scratch, int lane) {
    if constexpr (BASE == 8)
        substitute_8<STRIPS, PARTS>(scratch, lane);
    else
        substitute_16<STRIPS, PARTS>(scratch, lane);
}

template <int PARTS> struct BlockInverse { Operand<PARTS> plain, transposed; };

// The forms that are asked for of an inverse, as a sum; others are left undefined.
enum Form { kPlain = 1, kTransposed = 2 };

// BASE 16: matrix q of a block is quarter q of the transposed inverse.
template <int STRIPS, int PARTS>
KKT_DEVICE BlockInverse<PARTS> take_block_16(const u8 *scratch, int strip, int lane) {
    using S = BlockScratch<STRIPS, 16, PARTS>;
    BlockInverse<PARTS> t;
#pragma unroll
    for (int p = 0; p < PARTS; ++p) {
        const u32 first =
            shared_address(scratch + S::inverse_at + p * S::part_bytes + strip * S::strip_bytes);
        t.transposed.part[p] = load_operand_tile(first + lane * 16);
        t.plain.part[p] = load_transposed_tile(first + swap_middle_matrices(lane) * 16);
    }
    return t;
}

// BASE 8: matrices 0 and 1 of a strip are A'^T and E'^T; `below` is the quarter B of N. An operand
// is loaded whole, with the row of zeros for all eight of a zero matrix: put together from
// registers it would be copied for each product. The quarter that is coupled takes its place
// afterwards. Of a form that is not asked for only what the coupling reads is loaded.
template <int STRIPS, int PARTS, int FORMS = kPlain | kTransposed>
KKT_DEVICE BlockInverse<PARTS> take_block_8(const u8 *scratch, const SubOperand<PARTS> &below,
                                            int strip, int lane) {
    using S = BlockScratch<STRIPS, 8, PARTS>;
    const int matrix = lane / 8; // whose row this lane names
    const int row = lane % 8 * 16;
    const u32 inverses = shared_address(scratch + S::inverse_at);
    BlockInverse<PARTS> t;
#pragma unroll
    for (int p = 0; p < PARTS; ++p) {
        const int at = p * S::part_bytes + strip * S::strip_bytes;
        OperandTile &plain = t.plain.part[p], &transposed = t.transposed.part[p];
        if (FORMS & kTransposed)
            transposed = load_operand_tile(
                inverses + (matrix == 1 ? S::zeros_at : matrix / 2 * S::matrix_bytes + row) + at);
        else
            transposed.quarter[0] = transposed.quarter[1] = load_matrix<false>(inverses + row + at);
        if (FORMS & kPlain)
            plain = load_transposed_tile(
                inverses + (matrix == 2 ? S::zeros_at : matrix % 2 * S::matrix_bytes + row) + at);
        else
            plain.quarter[3] = load_matrix<true>(inverses + row + S::matrix_bytes + at);
    }
    const SubOperand<PARTS> lower = quarter_of(t.plain, 3); // E'
    const SubOperand<PARTS> m_t =
        multiply_quarters<kUpper>(quarter_of(t.transposed, 0), quarter_of(t.transposed, 1), below);
    if constexpr (FORMS & kPlain) {
        const SubOperand<PARTS> coupled =
            multiply_quarters<kLower>(quarter_of(t.plain, 2), lower, m_t);
#pragma unroll
        for (int p = 0; p < PARTS; ++p)
            t.plain.part[p].quarter[1] = coupled.part[p];
    }
    if constexpr (FORMS & kTransposed) {
        const SubOperand<PARTS> coupled = multiply_parts(m_t, lower);
#pragma unroll
        for (int p = 0; p < PARTS; ++p)
            t.transposed.part[p].quarter[2] = coupled.part[p];
    }
    return t;
}

// Zeros on and above the diagonal of a 16 x 16 block.
KKT_DEVICE void keep_strictly_lower(Accumulator &a, int lane) {
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            const int row = fragment_row(lane) + e / 2 * 8;
            const int column = half * 8 + fragment_column(lane) + e % 2;
            a.half[half].value[e] = row > column ? a.half[half].value[e] : 0.0f;
        }
}

// Without shared memory: (I - N)^-1 = (I + N)(I + N^2)(I + N^4)(I + N^8), all on tensor cores. As
// short a chain as any, but the powers grow binomially where keys are alike, and their rounding
// with them: up to 3e3 times the result's size for equal keys.
template <int PARTS> KKT_DEVICE BlockInverse<PARTS> double_powers(Accumulator n, int lane) {
    keep_strictly_lower(n, lane);
    Operand<PARTS> power = round_block<PARTS>(n);
    Operand<PARTS> power_t = transpose_block(power);
    Accumulator sum = n;
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int e = 0; e < 4; ++e)
            if (fragment_row(lane) + e / 2 * 8 == half * 8 + fragment_column(lane) + e % 2)
                sum.half[half].value[e] = 1.0f;
#pragma unroll
    for (int step = 0; step < 3; ++step) {
        Accumulator square;
        accumulator_clear(square);
        multiply_blocks(square, power, power_t);
        power = round_block<PARTS>(square);
        power_t = transpose_block(power);
        const Operand<PARTS> left = round_block<PARTS>(sum);
        multiply_blocks(sum, left, power_t); // sum (I + N^2), in place
    }
    BlockInverse<PARTS> t;
    t.plain = round_block<PARTS>(sum);
    t.transposed = transpose_block(t.plain);
    return t;
}
