/* The family gemv: see gemv.h. */
#include "kernels/gemv/gemv.h"

#include "kernels/gemv/space.h"

static int tensors(const kkt_values *problem, const kkt_values *config, kkt_tensor *out) {
    const int count = kkt_gemv_list(problem, out);
    const int64_t splits = config ? config->v[KKT_GEMV_SPLIT_K] : 0; /* 0 in the fragment style */
    if (splits == 0)
        return count;
    out[KKT_GEMV_PARTIALS] = (kkt_tensor){.name = "partials",
                                          .role = KKT_TENSOR_WORKSPACE,
                                          .dtype = KKT_FP32,
                                          .rank = 2,
                                          .dims = {splits, problem->v[KKT_GEMV_M]}};
    return count + 1;
}

static const kkt_variant *const variants[] = {&kkt_gemv_fragment, &kkt_gemv_materialized,
                                              &kkt_gemv_library};

extern const kkt_kernel kkt_kernel_gemv;
const kkt_kernel kkt_kernel_gemv = {
    .name = "gemv",
    .summary = "a matrix times a vector, A x",
    .problem = {"problem key", kkt_gemv_keys, KKT_GEMV_KEYS},
    .default_problems = kkt_gemv_default_problems,
    .variants = variants,
    .variant_count = sizeof variants / sizeof variants[0],
    .sizes_decide = true,
    .claims = kkt_gemv_claims,
    .claim_count = KKT_GEMV_CLAIM_COUNT,
    .problem_valid = kkt_gemv_problem_valid,
    .problem_canonical = kkt_gemv_problem_canonical,
    .tensors = tensors,
    .cases = kkt_gemv_cases,
    .case_count = KKT_GEMV_CASES,
    .check_problem = kkt_gemv_check_problem,
    .make_inputs = kkt_gemv_make_inputs,
    .check_inputs = kkt_gemv_check_inputs,
    .part_count = kkt_gemv_part_count,
    .part_regions = kkt_gemv_part_regions,
    .reference = kkt_gemv_reference,
    .score = kkt_gemv_score,
};
