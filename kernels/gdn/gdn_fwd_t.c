/* The forward of Gated DeltaNet fused but for T, which kkt_solve wrote: q, k, v, beta, g, T and the
 * incoming state to o and the outgoing state in one kernel. */
#include "kernels/gdn/fused.h"

static const kkt_gdn_tensors family = {
    .inputs = KKT_FWD_T_O,
    .count = KKT_FWD_T_TENSORS,
    .what = {KKT_GDN_TENSOR_Q, KKT_GDN_TENSOR_K, KKT_GDN_TENSOR_V, KKT_GDN_TENSOR_BETA,
             KKT_GDN_TENSOR_G, KKT_GDN_TENSOR_T, KKT_GDN_TENSOR_H0, KKT_GDN_TENSOR_CU_SEQLENS,
             KKT_GDN_TENSOR_O, KKT_GDN_TENSOR_HT},
};

static int tensors(const kkt_values *problem, const kkt_values *config, kkt_tensor *out) {
    return kkt_gdn_list(&family, problem, config->v[KKT_GDN_CHUNK], out);
}

static kkt_status make_inputs(const kkt_values *problem, int input_case, uint64_t seed,
                              kkt_host_tensors *inputs, kkt_error *err) {
    return kkt_gdn_make_inputs(&family, problem, input_case, seed, inputs, err);
}

static kkt_status make_chunk_inputs(const kkt_values *problem, const kkt_values *config,
                                    int input_case, uint64_t seed, kkt_host_tensors *inputs,
                                    kkt_error *err) {
    return kkt_gdn_make_chunk_inputs(&family, problem, config->v[KKT_GDN_CHUNK], input_case, seed,
                                     inputs, err);
}

static int64_t part_count(const kkt_values *problem, const kkt_values *config,
                          kkt_host_tensors *inputs) {
    (void)config;
    (void)inputs;
    return kkt_gdn_part_count(problem);
}

static int part_regions(const kkt_values *problem, const kkt_values *config,
                        kkt_host_tensors *inputs, int64_t part, kkt_region *out) {
    (void)config;
    return kkt_gdn_recurrence_regions(problem, inputs, part, KKT_FWD_T_O, KKT_FWD_T_HT, out);
}

static kkt_status reference(const kkt_values *problem, const kkt_values *config,
                            kkt_host_tensors *inputs, int64_t part, double *out, size_t size,
                            kkt_error *err) {
    (void)config;
    return kkt_gdn_recurrence(problem, inputs, part, out, size, err);
}

static const kkt_variant *const variants[] = {
    &kkt_gdn_fwd_t_fragment,
    &kkt_gdn_fwd_t_pipelined,
    &kkt_gdn_fwd_t_warp_specialized,
    &kkt_gdn_fwd_t_context_parallel,
};

extern const kkt_kernel kkt_kernel_gdn_fwd_t;
const kkt_kernel kkt_kernel_gdn_fwd_t = {
    .name = "gdn_fwd_t",
    .summary = "Gated DeltaNet forward fused but for T, which is read",
    .problem = {"problem key", kkt_gdn_keys, KKT_GDN_T_KEYS},
    .default_problems = kkt_gdn_default_problems,
    .variants = variants,
    .variant_count = sizeof variants / sizeof variants[0],
    .chunk_param = "chunk",
    .problem_valid = kkt_gdn_problem_valid,
    .tensors = tensors,
    .cases = kkt_cases,
    .case_count = KKT_CASE_COUNT,
    .check_problem = kkt_gdn_check_problem,
    .make_inputs = make_inputs,
    .make_chunk_inputs = make_chunk_inputs,
    .check_inputs = kkt_gdn_check_inputs,
    .part_count = part_count,
    .part_regions = part_regions,
    .reference = reference,
    .score = kkt_gdn_score,
};
