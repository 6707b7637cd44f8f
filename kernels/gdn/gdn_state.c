/* The recurrence over chunks alone: the state before each chunk and V' = U - W S go to HBM, where
 * gdn_output finds them. */
#include "kernels/gdn/materialized.h"

static const kkt_gdn_tensors family = {
    .inputs = KKT_STATE_H,
    .count = KKT_STATE_TENSORS,
    .what = {KKT_GDN_TENSOR_K, KKT_GDN_TENSOR_W, KKT_GDN_TENSOR_U, KKT_GDN_TENSOR_G,
             KKT_GDN_TENSOR_H0, KKT_GDN_TENSOR_CU_SEQLENS, KKT_GDN_TENSOR_H, KKT_GDN_TENSOR_V_NEW,
             KKT_GDN_TENSOR_HT},
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
    kkt_gdn_part at;
    int count = 0;
    if (!kkt_gdn_part_at(problem, inputs, part, &at))
        return 0;
    out[count++] =
        kkt_gdn_slots_region(problem, config->v[KKT_GDN_CHUNK], inputs, &at, KKT_STATE_H);
    if (at.rows > 0)
        out[count++] = kkt_gdn_rows_region(problem, &at, KKT_STATE_V_NEW);
    out[count++] = kkt_gdn_state_region(problem, &at, KKT_STATE_HT);
    return count;
}

static const kkt_variant *const variants[] = {&kkt_gdn_state_materialized};

extern const kkt_kernel kkt_kernel_gdn_state;
const kkt_kernel kkt_kernel_gdn_state = {
    .name = "gdn_state",
    .summary = "the state before every chunk and V', written to HBM",
    .problem = {"problem key", kkt_gdn_keys, KKT_GDN_KEYS},
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
    .reference = kkt_gdn_state_reference,
    .score = kkt_gdn_score,
};
