/* Problem keys and tensors of gemv, and the small problems that candidates are checked on. */
#include "kernels/gemv/gemv.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const dtype_names[] = {"bf16", "fp16"};
static const char *const layout_names[] = {"n", "t"};

const kkt_param kkt_gemv_keys[KKT_GEMV_KEYS] = {
    [KKT_GEMV_M] =
        {.name = "m", .help = "elements of y", .low = 1, .high = 1 << 28, .fallback = 4096},
    [KKT_GEMV_K] =
        {.name = "k", .help = "elements of x", .low = 1, .high = 1 << 28, .fallback = 4096},
    [KKT_GEMV_LDA] = {.name = "lda",
                      .help = "elements from one stored row of A to the next; 0: no padding",
                      .low = 0,
                      .high = 1 << 28,
                      .fallback = 0},
    [KKT_GEMV_DTYPE] = {.name = "dtype",
                        .macro = "KKT_DTYPE",
                        .help = "of A, x and y; sums are fp32",
                        .count = 2,
                        .values = {KKT_BF16, KKT_FP16},
                        .names = dtype_names,
                        .fallback = KKT_FP16},
    [KKT_GEMV_LAYOUT] = {.name = "layout",
                         .macro = "KKT_TRANSPOSED",
                         .help = "n: A is stored row by row, [m, lda]; t: column by column, [k, "
                                 "lda]",
                         .count = 2,
                         .values = {KKT_GEMV_N, KKT_GEMV_T},
                         .names = layout_names,
                         .fallback = KKT_GEMV_N},
};

/* Two of them are ragged: rows that begin at any element, and rows so short that a block has
 * little to do. */
const char *const kkt_gemv_default_problems[] = {
    "m=4096,k=4096", "m=8192,k=8192", "m=16384,k=16384", "m=4097,k=4099", "m=16384,k=2048", NULL,
};

/* Elements of a stored row that are no padding. */
static int64_t row_elements(const kkt_values *problem) {
    return problem->v[problem->v[KKT_GEMV_LAYOUT] == KKT_GEMV_T ? KKT_GEMV_M : KKT_GEMV_K];
}

static int64_t stored_rows(const kkt_values *problem) {
    return problem->v[problem->v[KKT_GEMV_LAYOUT] == KKT_GEMV_T ? KKT_GEMV_K : KKT_GEMV_M];
}

int64_t kkt_gemv_lda(const kkt_values *problem) {
    const int64_t given = problem->v[KKT_GEMV_LDA];
    return given > 0 ? given : row_elements(problem);
}

void kkt_gemv_problem_canonical(kkt_values *problem) {
    if (problem->v[KKT_GEMV_LDA] == row_elements(problem))
        problem->v[KKT_GEMV_LDA] = 0;
}

bool kkt_gemv_problem_valid(const kkt_values *problem, char *reason, size_t size) {
    const int64_t lda = kkt_gemv_lda(problem), least = row_elements(problem);
    if (lda < least) {
        kkt_reason(reason, size,
                   "lda %" PRId64 " is below the %" PRId64
                   " elements of a stored row; 0 is no padding",
                   lda, least);
        return false;
    }
    /* Kept far from 2^63 so that byte counts and offsets cannot overflow. */
    if ((double)lda * (double)stored_rows(problem) > 0x1p44) {
        kkt_reason(reason, size, "A has more than 2^44 elements");
        return false;
    }
    return true;
}

int kkt_gemv_list(const kkt_values *problem, kkt_tensor *out) {
    const kkt_dtype dtype = (kkt_dtype)problem->v[KKT_GEMV_DTYPE];
    out[KKT_GEMV_A] = (kkt_tensor){.name = "a",
                                   .role = KKT_TENSOR_INPUT,
                                   .dtype = dtype,
                                   .rank = 2,
                                   .dims = {stored_rows(problem), kkt_gemv_lda(problem)}};
    out[KKT_GEMV_X] = (kkt_tensor){.name = "x",
                                   .role = KKT_TENSOR_INPUT,
                                   .dtype = dtype,
                                   .rank = 1,
                                   .dims = {problem->v[KKT_GEMV_K]}};
    out[KKT_GEMV_Y] = (kkt_tensor){.name = "y",
                                   .role = KKT_TENSOR_OUTPUT,
                                   .dtype = dtype,
                                   .rank = 1,
                                   .dims = {problem->v[KKT_GEMV_M]}};
    return KKT_GEMV_TENSORS;
}

/* One element; fewer rows than a block has; many blocks and a tail; rows shorter than what a block
 * takes at once, and longer than several times that. The two exact cases leave no room for an
 * element that is taken twice, left out or multiplied with its neighbour's factor; the cancelling
 * one's k keeps sums below 2^24 whatever their order. */
static const struct {
    int input_case;
    int64_t m, k;
} check_rows[] = {
    {KKT_GEMV_SPARSE, 1, 1},     {KKT_GEMV_SPARSE, 1043, 330}, {KKT_GEMV_CANCEL, 133, 1001},
    {KKT_GEMV_RANDOM, 77, 5003}, {KKT_GEMV_RANDOM, 9, 65601},
};

/* What begins where the problem's row begins: the least value from `least` on that leaves the same
 * rest modulo 8, the elements of the widest load. */
static int64_t aligned_alike(int64_t value, int64_t least) {
    return least + ((value - least) % 8 + 8) % 8;
}

bool kkt_gemv_check_problem(const kkt_values *problem, const kkt_values *config, int index,
                            kkt_values *small, int *input_case) {
    (void)config;
    if (index < 0 || (size_t)index >= sizeof check_rows / sizeof check_rows[0])
        return false;
    const bool transposed = problem->v[KKT_GEMV_LAYOUT] == KKT_GEMV_T;
    *small = *problem;
    small->v[KKT_GEMV_M] = check_rows[index].m;
    small->v[KKT_GEMV_K] = check_rows[index].k;
    int64_t *row = &small->v[transposed ? KKT_GEMV_M : KKT_GEMV_K];
    if (problem->v[KKT_GEMV_LDA] > 0) /* with room for padding */
        small->v[KKT_GEMV_LDA] = aligned_alike(problem->v[KKT_GEMV_LDA], *row);
    else
        *row = aligned_alike(kkt_gemv_lda(problem), *row);
    *input_case = check_rows[index].input_case;
    return true;
}
