/* W = T diag(beta e^G) K and U = T diag(beta) V of every chunk and value head, written to HBM: what
 * the recurrence over chunks then reads in place of k, v and T. */
#include "kernels/gdn/materialized.h"

static const kkt_gdn_tensors family = {
    .inputs = KKT_WU_W,
    .count = KKT_WU_TENSORS,
    .what = {KKT_GDN_TENSOR_K, KKT_GDN_TENSOR_V, KKT_GDN_TENSOR_BETA, KKT_GDN_TENSOR_G,
             KKT_GDN_TENSOR_T, KKT_GDN_TENSOR_CU_SEQLENS, KKT_GDN_TENSOR_W, KKT_GDN_TENSOR_U},
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
    return kkt_gdn_chunk_part_count(problem, config->v[KKT_GDN_CHUNK], inputs);
}

static int part_regions(const kkt_values *problem, const kkt_values *config,
                        kkt_host_tensors *inputs, int64_t part, kkt_region *out) {
    kkt_chunk_part at;
    const kkt_shape shape = kkt_gdn_shape(problem);
    if (!kkt_chunk_at(&shape, config->v[KKT_GDN_CHUNK], inputs, part, &at))
        return 0;
    out[0] = kkt_gdn_chunk_region(&shape, &at, KKT_WU_W, shape.dk);
    out[1] = kkt_gdn_chunk_region(&shape, &at, KKT_WU_U, shape.dv);
    return 2;
}

static const kkt_variant *const variants[] = {&kkt_gdn_wu_materialized};

extern const kkt_kernel kkt_kernel_gdn_wu;
const kkt_kernel kkt_kernel_gdn_wu = {
    .name = "gdn_wu",
    .summary = "W and U of every chunk from T, written to HBM",
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
    .reference = kkt_gdn_wu_reference,
    .score = kkt_gdn_score,
};
