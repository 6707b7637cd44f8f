// Step 3 of the register path: what one warp inverts of a head, in fragments.
//
// Couplings of (A, 0; L, D), A and D inverted already, are two products of the kind X Y^T:
//
//     M^T = A^T (-L)^T        X = A^T and Y = -L, which K K^T fragments give directly
//     T   = D M               X = D and Y = M^T; with X and Y swapped it is T^T
//
// so the upper half of a matrix is wanted transposed and the lower half as it is: of each half only
// the forms that the level above asks for are made.
#pragma once

#include "device/block_inverse.cuh"
#include "device/gate_factors.cuh"
#include "kkt_solve/register_layout.cuh"
#include "kkt_solve/register_product.cuh"

// The inverse of N strips, in one or both forms: block (i, j), i >= j, and its transpose.
template <int N> struct LowerOperands {
    Block plain[N * (N + 1) / 2], transposed[N * (N + 1) / 2];

    KKT_DEVICE int at(int i, int j) {
        return i * (i + 1) / 2 + j;
    }
};

// What a lane multiplies its elements of the diagonal blocks of K K^T by to have those of -L. Where
// each warp has one head and waits for K with it, it makes them meanwhile, in registers: nothing
// but a product is left to do between K K^T and substitution.
struct LaneGate {
    static constexpr bool early = P::kload == kTmaLoad && P::mma == kWgmma &&
                                  P::heads == P::warps && P::team == 1 && kStrips <= 4;

    Accumulator diagonal[kStrips];

    __device__ __forceinline__ void make(const Factors &factors, int lane) {
#pragma unroll
        for (int i = 0; i < kStrips; ++i)
            diagonal[i] = factors.diagonal(i, lane);
    }
};

// A head, or a team's half of it, as its warp sees it.
struct Head {
    const u8 *k_kt;
    Factors factors;
    const LaneGate *gate; // where it was made early
    u8 *scratch;
    int lane;
    Quarter below[kStrips]; // base 8: the lower left quarter of each diagonal block

    // Decay over the strips strictly between two.
    __device__ __forceinline__ float between(int i, int j) const {
        float product = 1.0f;
#pragma unroll
        for (int strip = j + 1; strip < i; ++strip)
            if (P::gated)
                product *= factors.across(strip);
        return product;
    }

    // Block (i, j) of -L, i > j, with the decay over the strips between.
    __device__ __forceinline__ Block lower(int i, int j, float decay) const {
        Accumulator a = load_k_kt(k_kt, i, j, lane);
        factors.below(a, i, j, decay, lane);
        return round_block<P::parts>(a);
    }

    __device__ __forceinline__ Accumulator diagonal(int i) const {
        Accumulator a = load_k_kt(k_kt, i, i, lane);
        multiply_elements(a, LaneGate::early ? gate->diagonal[i] : factors.diagonal(i, lane));
        return a;
    }

    // Inverts the diagonal blocks, into scratch.
    __device__ __forceinline__ void substitute_diagonal() {
        if constexpr (P::inverse != kNeumann) {
            constexpr int group = LaneGate::early ? kStrips : 1; // loaded before any is stored
#pragma unroll
            for (int first = 0; first < kStrips; first += group) {
                Accumulator blocks[group];
#pragma unroll
                for (int n = 0; n < group; ++n)
                    blocks[n] = diagonal(first + n);
#pragma unroll
                for (int n = 0; n < group; ++n) {
                    const Accumulator &a = blocks[n];
                    put_block<kStrips, P::block, P::parts>(scratch, a, first + n, lane);
                    below[first + n] = round_pair<P::parts>(a.half[0].value[2], a.half[0].value[3]);
                }
            }
            __syncwarp();
            substitute<kStrips, P::block, P::parts>(scratch, lane);
            __syncwarp();
        }
    }

    template <int FORMS> __device__ __forceinline__ BlockInverse<P::parts> take(int i) const {
        if constexpr (P::inverse == kNeumann)
            return double_powers<P::parts>(diagonal(i), lane);
        else if constexpr (P::block == 8)
            return take_block_8<kStrips, P::parts, FORMS>(scratch, below[i], i, lane);
        else
            return take_block_16<kStrips, P::parts>(scratch, i, lane);
    }
};

// m[r][c] = (M^T)_cr of the coupling of SIZE strips above and as many below, from strip FIRST on.
template <int FIRST, int SIZE>
KKT_DEVICE void multiply_upper(Block (&m)[SIZE][SIZE], const Head &head,
                               const LowerOperands<SIZE> &upper) {
#pragma unroll
    for (int r = 0; r < SIZE; ++r) {
        Block row[SIZE];
#pragma unroll
        for (int c = 0; c < SIZE; ++c) {
            const int i = FIRST + SIZE + r;
            row[c] = head.lower(i, FIRST + c, head.between(i, FIRST + c));
        }
#pragma unroll
        for (int j = 0; j < SIZE; ++j) {
            Accumulator a;
            accumulator_clear(a);
#pragma unroll
            for (int c = j; c < SIZE; ++c)
                multiply_blocks(a, upper.transposed[upper.at(c, j)], row[c]);
            m[r][j] = round_block<P::parts>(a);
        }
    }
}

// Block (i, j) of D M, or its transpose.
template <bool TRANSPOSED, int SIZE>
KKT_DEVICE Accumulator multiply_lower(const LowerOperands<SIZE> &lower,
                                      const Block (&m)[SIZE][SIZE], int i, int j) {
    Accumulator a;
    accumulator_clear(a);
#pragma unroll
    for (int r = 0; r <= i; ++r) {
        const Block &d = lower.plain[lower.at(i, r)];
        if (TRANSPOSED)
            multiply_blocks(a, m[r][j], d);
        else
            multiply_blocks(a, d, m[r][j]);
    }
    return a;
}

// The inverse of N strips from FIRST on, in the forms that are asked for.
template <int FIRST, int N, int FORMS>
KKT_DEVICE void invert(LowerOperands<N> &t, const Head &head) {
    if constexpr (N == 1) {
        const BlockInverse<P::parts> block = head.take<FORMS>(FIRST);
        t.plain[0] = block.plain;
        t.transposed[0] = block.transposed;
    } else {
        constexpr int half = N / 2;
        LowerOperands<half> upper, lower;
        invert<FIRST, half, FORMS | kTransposed>(upper, head);
        invert<FIRST + half, half, FORMS | kPlain>(lower, head);
        Block m[half][half];
        multiply_upper<FIRST, half>(m, head, upper);
#pragma unroll
        for (int i = 0; i < half; ++i) {
#pragma unroll
            for (int j = 0; j < half; ++j) {
                const int at = t.at(half + i, j);
                if (FORMS & kPlain)
                    t.plain[at] = round_block<P::parts>(multiply_lower<false>(lower, m, i, j));
                if (FORMS & kTransposed)
                    t.transposed[at] = round_block<P::parts>(multiply_lower<true>(lower, m, i, j));
                if (j <= i) {
                    t.plain[t.at(i, j)] = upper.plain[upper.at(i, j)];
                    t.transposed[t.at(i, j)] = upper.transposed[upper.at(i, j)];
                    t.plain[t.at(half + i, half + j)] = lower.plain[lower.at(i, j)];
                    t.transposed[t.at(half + i, half + j)] = lower.transposed[lower.at(i, j)];
                }
            }
        }
    }
}
