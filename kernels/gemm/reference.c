/* C = A B in double precision, tile by tile. Products of 16-bit values are exact in it. */
#include <stdlib.h>
#include <string.h>

#include "base/integer.h"
#include "kernels/gemm/gemm.h"

enum { ROWS = KKT_GEMM_PART_ROWS, COLUMNS = KKT_GEMM_PART_COLUMNS, DEPTH = 256 };

static int64_t parts_across(const kkt_values *problem) {
    return kkt_divide_up(problem->v[KKT_GEMM_N], COLUMNS);
}

int64_t kkt_gemm_part_count(const kkt_values *problem, const kkt_values *config,
                            kkt_host_tensors *inputs) {
    (void)config;
    (void)inputs;
    return kkt_divide_up(problem->v[KKT_GEMM_M], ROWS) * parts_across(problem);
}

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

int kkt_gemm_part_regions(const kkt_values *problem, const kkt_values *config,
                          kkt_host_tensors *inputs, int64_t part, kkt_region *out) {
    const int64_t m = problem->v[KKT_GEMM_M], n = problem->v[KKT_GEMM_N];
    const int64_t row = part / parts_across(problem) * ROWS;
    const int64_t column = part % parts_across(problem) * COLUMNS;
    (void)config;
    (void)inputs;
    *out = (kkt_region){.tensor = KKT_GEMM_TENSOR_C,
                        .offset = row * n + column,
                        .rows = least(m - row, ROWS),
                        .columns = least(n - column, COLUMNS),
                        .row_stride = n};
    return 1;
}

/* `count` lines of an operand along k, from line `first` on, of the terms `from` to `from + depth`:
 * out[term * count + line]. Values of a user's own may be of any type that kkt_dtype_load knows. */
static void load(const kkt_gemm_operand *o, const kkt_host_tensor *host, int64_t first,
                 int64_t count, int64_t from, int64_t depth, double *out) {
    for (int64_t term = 0; term < depth; term++) {
        for (int64_t line = 0; line < count; line++) {
            const int64_t row = o->along_k ? first + line : from + term;
            const int64_t column = o->along_k ? from + term : first + line;
            out[term * count + line] =
                kkt_dtype_load(host->tensor.dtype, host->data, (size_t)(row * o->columns + column));
        }
    }
}

kkt_status kkt_gemm_reference(const kkt_values *problem, const kkt_values *config,
                              kkt_host_tensors *inputs, int64_t part, double *out, size_t size,
                              kkt_error *err) {
    kkt_region region;
    kkt_gemm_part_regions(problem, config, inputs, part, &region);
    const int64_t rows = region.rows, columns = region.columns, k = problem->v[KKT_GEMM_K];
    if (size < (size_t)(rows * columns))
        return kkt_fail(err, KKT_ERR_INPUT, 0, "room for %zu values, %lld needed", size,
                        (long long)(rows * columns));
    double *left = malloc(sizeof *left * (size_t)(DEPTH * (rows + columns)));
    if (!left)
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "out of memory for a part of c");
    double *right = left + DEPTH * rows;
    const kkt_gemm_operand a = kkt_gemm_a(problem), b = kkt_gemm_b(problem);
    memset(out, 0, sizeof *out * (size_t)(rows * columns));
    for (int64_t from = 0; from < k; from += DEPTH) {
        const int64_t depth = least(k - from, DEPTH);
        load(&a, &inputs->t[KKT_GEMM_TENSOR_A], region.offset / problem->v[KKT_GEMM_N], rows, from,
             depth, left);
        load(&b, &inputs->t[KKT_GEMM_TENSOR_B], region.offset % problem->v[KKT_GEMM_N], columns,
             from, depth, right);
        for (int64_t term = 0; term < depth; term++)
            for (int64_t i = 0; i < rows; i++)
                for (int64_t j = 0; j < columns; j++)
                    out[i * columns + j] += left[term * rows + i] * right[term * columns + j];
    }
    free(left);
    return KKT_OK;
}
