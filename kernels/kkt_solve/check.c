/* What a candidate is checked on, what it may get wrong, and what inputs it may be given. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "kernels/kkt_solve/kkt_solve.h"
#include "kernels/kkt_solve/triangular.h"

/* ---- small problems ---- */

bool kkt_solve_check_problem(const kkt_values *problem, const kkt_values *config, int index,
                             kkt_values *small, int *input_case) {
    const kkt_check_row *row = kkt_check_row_at(problem->v[KKT_SOLVE_GATED] != 0, index);
    if (!row)
        return false;
    /* Two key heads where that stays small, so that a mixed-up head shows. */
    const int64_t ratio = problem->v[KKT_SOLVE_HEADS_V] / problem->v[KKT_SOLVE_HEADS_K];
    int64_t heads_k = problem->v[KKT_SOLVE_HEADS_K] > 1 && ratio <= 8 ? 2 : 1;
    if (config->v[KKT_SOLVE_SHARE] == KKT_SHARE_VALUE_HEAD) /* as many as a block takes */
        while (heads_k * ratio % config->v[KKT_SOLVE_HEADS_PER_BLOCK] != 0)
            heads_k++;
    *small = *problem;
    small->v[KKT_SOLVE_BATCH] = row->batch;
    small->v[KKT_SOLVE_SEQUENCES] = row->sequences;
    small->v[KKT_SOLVE_TOKENS] =
        row->batch * (row->chunks * config->v[KKT_SOLVE_CHUNK] + row->rest);
    small->v[KKT_SOLVE_HEADS_K] = heads_k;
    small->v[KKT_SOLVE_HEADS_V] = heads_k * ratio;
    *input_case = (int)row->input_case;
    return true;
}

/* ---- tolerances ---- */

/* Relative Frobenius error allowed on the strictly lower part.
 *
 * The output's own rounding: at most half a unit in the last place of each element, 2^-8 in bf16
 * and 2^-11 in fp16 (typically 1.7e-3 and 2.2e-4); no path in fp32 adds to that.
 * TF32 operands (11 bits) in the couplings matter where keys are correlated, for there T10 is
 * small against the products it is the sum of: an emulation of the couplings gives 1.5e-3 at
 * chunk 64 and 2.2e-3 at chunk 128, and 2e-4 at most on uncorrelated keys.
 * bf16x3 operands are two bf16 numbers, 16 bits: what they cost is a thirtieth of that and does not
 * show in bf16. fp16 operands have tf32's 11 bits and are judged as such; above 65504 they
 * overflow, which the inputs decide and the check shows. Long sums of a strong gate lose digits in
 * fp32 (|G| up to 4e4, unit 2^-8): the exponent's absolute error is an element's relative one. */
enum tolerance_class { CLASS_PLAIN, CLASS_CORRELATED, CLASS_CORRELATED_128, CLASS_GATE, CLASSES };

enum { COUPLES = KKT_COUPLE_BF16X3 + 1 };

static const double tolerances[2][COUPLES][CLASSES] = {
    /* bf16 */
    {
        /* fp32 couplings */ {4e-3, 4e-3, 4e-3, 6e-3},
        /* tf32 couplings */ {4e-3, 5e-3, 6e-3, 6e-3},
        /* fp16 */ {4e-3, 5e-3, 6e-3, 6e-3},
        /* bf16x3 */ {4e-3, 4e-3, 4e-3, 6e-3},
    },
    /* fp16 */
    {
        /* fp32 couplings */ {5e-4, 5e-4, 5e-4, 4e-3},
        /* tf32 couplings */ {1e-3, 2e-3, 4e-3, 4e-3},
        /* fp16 */ {1e-3, 2e-3, 4e-3, 4e-3},
        /* bf16x3 */ {5e-4, 5e-4, 5e-4, 4e-3},
    },
};

static enum tolerance_class class_of(int input_case, int64_t chunk) {
    switch (input_case) {
    case KKT_CASE_CORRELATED:
    case KKT_CASE_DUPLICATES:
    case KKT_CASE_GROWTH:
    case KKT_CASE_LONG_KEYS:
        return chunk > 64 ? CLASS_CORRELATED_128 : CLASS_CORRELATED;
    case KKT_CASE_STRONG_GATE:
    case KKT_CASE_STEEP_GATE:
        return CLASS_GATE;
    default:
        return CLASS_PLAIN;
    }
}

double kkt_solve_tolerance(const kkt_values *problem, const kkt_values *config, int input_case) {
    const int half = problem->v[KKT_SOLVE_DTYPE] == KKT_FP16;
    return tolerances[half][config->v[KKT_SOLVE_COUPLE]]
                     [class_of(input_case, config->v[KKT_SOLVE_CHUNK])];
}

double kkt_solve_rounding(const kkt_values *config) {
    static const double rounding[COUPLES] = {[KKT_COUPLE_FP32] = 0x1p-24,
                                             [KKT_COUPLE_TF32] = 0x1p-11,
                                             [KKT_COUPLE_FP16] = 0x1p-11,
                                             [KKT_COUPLE_BF16X3] = 0x1p-16};
    return rounding[config->v[KKT_SOLVE_COUPLE]];
}

/* Nothing is known of such matrices: the tolerance of hard ones. */
const kkt_from_lower kkt_solve_from_lower = {
    .tensor = "l",
    .result = "t",
    .input_case = KKT_CASE_CORRELATED,
    .solve = kkt_triangular_inverse,
    .condition = kkt_triangular_condition,
};

/* ---- scoring ---- */

/* What the diagonal must be to the bit: 1, or beta as the dtype has it. */
static double diagonal_of(const kkt_values *problem, double right) {
    const kkt_dtype dtype = (kkt_dtype)problem->v[KKT_SOLVE_DTYPE];
    uint16_t rounded = 0;
    if (problem->v[KKT_SOLVE_T_FORM] != KKT_T_BETA)
        return right;
    kkt_dtype_store(dtype, &rounded, 0, right);
    return kkt_dtype_load(dtype, &rounded, 0);
}

/* Strictly lower part by error; the diagonal must be exactly 1 (or beta, rounded once), and what is
 * above it or past the sequence's end exactly 0: the diagonal would hide errors in a norm over all.
 * An error that no value of the dtype avoids (half the spacing of its smallest numbers) counts as
 * none.
 *
 * No error is measured against less than fp16 resolves, whatever the dtype: behind a steep gate
 * the largest element below the diagonal may be 1e-6, of which operands in fp16 keep about four
 * bits (it is 16.8 times the spacing of their smallest numbers, 2^-24). What T is for does not
 * notice: T K is K's row plus the lower part's share, so that errors of up to 2^-25 are those of
 * the diagonal's 1 in a type with 25 bits. Measured against the lower part alone they would be 1e-1
 * in one draw and 1e-4 in the next. */
void kkt_solve_score(const kkt_values *problem, const kkt_region *region, const double *expected,
                     const double *actual, kkt_score *score) {
    const double unavoidable = problem->v[KKT_SOLVE_DTYPE] == KKT_FP16 ? 0x1p-25 : 0x1p-126;
    for (int64_t i = 0; i < region->rows; i++) {
        for (int64_t j = 0; j < region->columns; j++) {
            const double value = expected[i * region->columns + j];
            const double right = i == j ? diagonal_of(problem, value) : value;
            const double given = actual[i * region->columns + j];
            const double error = fabs(given - right), size = kkt_resolved_size(KKT_FP16, right);
            score->elements++;
            if (isfinite(right))
                score->growth = fmax(score->growth, fabs(right));
            else
                score->growth = INFINITY;
            if (error > score->max_abs)
                score->worst = kkt_region_misfit(region, i, j, given, right);
            if (!isfinite(given)) {
                if (isfinite(right) && score->not_finite++ == 0)
                    score->first_not_finite = kkt_region_misfit(region, i, j, given, right);
            } else if (j >= i) {
                if (given != right && score->inexact++ == 0)
                    score->first_inexact = kkt_region_misfit(region, i, j, given, right);
                score->max_abs = fmax(score->max_abs, error);
            } else if (isfinite(right)) {
                score->max_abs = fmax(score->max_abs, error);
                score->reference_sq[region->tensor] += size * size;
                if (error > unavoidable)
                    score->error_sq[region->tensor] += error * error;
            }
        }
    }
}

/* ---- inputs from outside ---- */

kkt_status kkt_solve_check_inputs(const kkt_values *problem, kkt_host_tensors *inputs,
                                  kkt_error *err) {
    const kkt_shape shape = kkt_solve_shape(problem);
    return kkt_check_all(&shape, inputs, err);
}
