/* The family's descriptor. */
#include "kernels/gemm/gemm.h"

static const kkt_variant *const variants[] = {
    &kkt_gemm_fragment,         &kkt_gemm_pipelined, &kkt_gemm_materialized,
    &kkt_gemm_warp_specialized, &kkt_gemm_library,
};

extern const kkt_kernel kkt_kernel_gemm;
const kkt_kernel kkt_kernel_gemm = {
    .name = "gemm",
    .summary = "C = A B in fp16 or bf16, summed in fp32",
    .problem = {"problem key", kkt_gemm_keys, KKT_GEMM_KEYS},
    .default_problems = kkt_gemm_default_problems,
    .variants = variants,
    .variant_count = sizeof variants / sizeof variants[0],
    .sizes_decide = true,
    .claims = kkt_gemm_claims,
    .claim_count = KKT_GEMM_CLAIM_COUNT,
    .problem_valid = kkt_gemm_problem_valid,
    .tensors = kkt_gemm_tensors,
    .cases = kkt_gemm_cases,
    .case_count = KKT_GEMM_CASES,
    .check_problem = kkt_gemm_check_problem,
    .make_inputs = kkt_gemm_make_inputs,
    .check_inputs = kkt_gemm_check_inputs,
    .part_count = kkt_gemm_part_count,
    .part_regions = kkt_gemm_part_regions,
    .reference = kkt_gemm_reference,
    .score = kkt_gemm_score,
};
