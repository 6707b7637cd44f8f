/* Problem keys and tensors of gemm, and the small problems on which candidates are checked. */
#include <stdio.h>

#include "base/integer.h"
#include "kernels/gemm/gemm.h"

static const char *const dtype_names[] = {"fp16", "bf16"};
static const char *const layout_names[] = {"nn", "nt", "tn", "tt"};

enum { EXTENT_MAX = 1 << 22 };

const kkt_param kkt_gemm_keys[KKT_GEMM_KEYS] = {
    [KKT_GEMM_M] =
        {.name = "m", .help = "rows of c", .low = 1, .high = EXTENT_MAX, .fallback = 4096},
    [KKT_GEMM_N] =
        {.name = "n", .help = "columns of c", .low = 1, .high = EXTENT_MAX, .fallback = 4096},
    [KKT_GEMM_K] =
        {.name = "k", .help = "terms of each sum", .low = 1, .high = EXTENT_MAX, .fallback = 4096},
    [KKT_GEMM_DTYPE] = {.name = "dtype",
                        .help = "of a, b and c; sums are fp32",
                        .count = 2,
                        .values = {KKT_FP16, KKT_BF16},
                        .names = dtype_names,
                        .fallback = KKT_FP16},
    [KKT_GEMM_LAYOUT] = {.name = "layout",
                         .help = "how a and b are stored, row-major: n as it is multiplied, t its "
                                 "transpose",
                         .count = 4,
                         .values = {KKT_GEMM_NN, KKT_GEMM_NT, KKT_GEMM_TN, KKT_GEMM_TT},
                         .names = layout_names,
                         .fallback = KKT_GEMM_NN},
};

const char *const kkt_gemm_default_problems[] = {
    "m=4096,n=4096,k=4096", "m=8192,n=8192,k=8192", "m=4097,n=4095,k=4099",
    "m=128,n=8192,k=8192",  "m=8192,n=128,k=8192",  NULL,
};

/* ---- operands ---- */

static int64_t whole_units(int64_t elements) {
    return kkt_divide_up(elements, KKT_GEMM_UNIT) * KKT_GEMM_UNIT;
}

static kkt_gemm_operand operand(int tensor, bool along_k, int64_t extent, int64_t k) {
    kkt_gemm_operand o = {.tensor = tensor,
                          .along_k = along_k,
                          .rows = along_k ? extent : k,
                          .columns = along_k ? k : extent};
    o.stride = whole_units(o.columns);
    o.padded = o.stride != o.columns;
    return o;
}

kkt_gemm_operand kkt_gemm_a(const kkt_values *problem) {
    const int64_t *p = problem->v;
    const bool transposed = p[KKT_GEMM_LAYOUT] == KKT_GEMM_TN || p[KKT_GEMM_LAYOUT] == KKT_GEMM_TT;
    return operand(KKT_GEMM_TENSOR_A, !transposed, p[KKT_GEMM_M], p[KKT_GEMM_K]);
}

kkt_gemm_operand kkt_gemm_b(const kkt_values *problem) {
    const int64_t *p = problem->v;
    const bool transposed = p[KKT_GEMM_LAYOUT] == KKT_GEMM_NT || p[KKT_GEMM_LAYOUT] == KKT_GEMM_TT;
    const kkt_gemm_operand a = kkt_gemm_a(problem);
    kkt_gemm_operand b = operand(KKT_GEMM_TENSOR_B, transposed, p[KKT_GEMM_N], p[KKT_GEMM_K]);
    b.at = a.padded ? a.rows * a.stride : 0;
    return b;
}

bool kkt_gemm_problem_valid(const kkt_values *problem, char *reason, size_t size) {
    const int64_t *p = problem->v;
    const int64_t largest = INT64_C(1) << 34;
    const struct {
        const char *name;
        int64_t rows, columns;
    } tensors[] = {{"a", p[KKT_GEMM_M], p[KKT_GEMM_K]},
                   {"b", p[KKT_GEMM_K], p[KKT_GEMM_N]},
                   {"c", p[KKT_GEMM_M], p[KKT_GEMM_N]}};
    for (int i = 0; i < 3; i++) {
        if (tensors[i].rows * tensors[i].columns <= largest)
            continue;
        kkt_reason(reason, size, "%s of %lld x %lld elements is above the limit of 2^34",
                   tensors[i].name, (long long)tensors[i].rows, (long long)tensors[i].columns);
        return false;
    }
    return true;
}

/* ---- tensors ---- */

static kkt_tensor matrix(const char *name, kkt_tensor_role role, int64_t dtype, int64_t rows,
                         int64_t columns) {
    return (kkt_tensor){
        .name = name, .role = role, .dtype = (kkt_dtype)dtype, .rank = 2, .dims = {rows, columns}};
}

int kkt_gemm_tensors(const kkt_values *problem, const kkt_values *config, kkt_tensor *out) {
    const int64_t *p = problem->v;
    const int64_t dtype = p[KKT_GEMM_DTYPE], m = p[KKT_GEMM_M], n = p[KKT_GEMM_N];
    const kkt_gemm_operand a = kkt_gemm_a(problem), b = kkt_gemm_b(problem);
    const int64_t sums = config ? config->v[KKT_GEMM_SPLIT_K] : 1;
    const int64_t padded = b.at + (b.padded ? b.rows * b.stride : 0);
    out[KKT_GEMM_TENSOR_A] = matrix("a", KKT_TENSOR_INPUT, dtype, a.rows, a.columns);
    out[KKT_GEMM_TENSOR_B] = matrix("b", KKT_TENSOR_INPUT, dtype, b.rows, b.columns);
    out[KKT_GEMM_TENSOR_C] = matrix("c", KKT_TENSOR_OUTPUT, dtype, m, n);
    out[KKT_GEMM_TENSOR_PARTIALS] = (kkt_tensor){.name = "partials",
                                                 .role = KKT_TENSOR_WORKSPACE,
                                                 .dtype = KKT_FP32,
                                                 .rank = 3,
                                                 .dims = {sums > 1 ? sums : 0, m, n}};
    out[KKT_GEMM_TENSOR_PADDED] = (kkt_tensor){.name = "padded",
                                               .role = KKT_TENSOR_WORKSPACE,
                                               .dtype = (kkt_dtype)dtype,
                                               .rank = 1,
                                               .dims = {padded}};
    return KKT_GEMM_TENSORS;
}

/* ---- small problems ---- */

typedef struct check_row {
    int64_t m, n, k; /* in whole units where the problem's are, else one less than so many */
    enum kkt_gemm_case input_case;
} check_row;

/* Sizes in units of 8. One tile that is not full; several with tails on every side, the last step
 * along k short; an exact result; a single unit. */
static const check_row check_rows[] = {
    {9, 13, 7, KKT_GEMM_RANDOM},  {67, 51, 26, KKT_GEMM_RANDOM}, {35, 33, 33, KKT_GEMM_INTEGERS},
    {18, 35, 17, KKT_GEMM_LARGE}, {1, 1, 1, KKT_GEMM_RANDOM},    {33, 1, 65, KKT_GEMM_INTEGERS},
    {1, 34, 70, KKT_GEMM_RANDOM}, {17, 16, 9, KKT_GEMM_ZEROS},
};

/* An extent of the same kind as the problem's: whole units, or not; for the latter 1 and odd ones.
 */
static int64_t extent(int64_t given, int64_t units) {
    if (given % KKT_GEMM_UNIT == 0)
        return units * KKT_GEMM_UNIT;
    return units == 1 ? 1 : units * KKT_GEMM_UNIT - 3;
}

bool kkt_gemm_check_problem(const kkt_values *problem, const kkt_values *config, int index,
                            kkt_values *small, int *input_case) {
    (void)config;
    if (index < 0 || index >= (int)(sizeof check_rows / sizeof check_rows[0]))
        return false;
    const check_row *row = &check_rows[index];
    *small = *problem;
    small->v[KKT_GEMM_M] = extent(problem->v[KKT_GEMM_M], row->m);
    small->v[KKT_GEMM_N] = extent(problem->v[KKT_GEMM_N], row->n);
    small->v[KKT_GEMM_K] = extent(problem->v[KKT_GEMM_K], row->k);
    *input_case = (int)row->input_case;
    return true;
}
