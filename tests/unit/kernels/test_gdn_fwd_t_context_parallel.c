/* The context-parallel gdn_fwd_t: what its constraints say, the shared memory of each launch and
 * the workspace by hand, and that the launches fit each other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "kernels/gdn/warp_specialized.h"

static const kkt_kernel *family(void) {
    const kkt_kernel *kernel = NULL;
    kkt_error err = {0};
    assert_int_equal(kkt_kernel_parse("gdn_fwd_t", &kernel, &err), KKT_OK);
    return kernel;
}

static const kkt_variant *variant(void) {
    return &kkt_gdn_fwd_t_context_parallel;
}

static kkt_values values_in(const kkt_param_table *table, const char *text) {
    kkt_values values;
    kkt_error err = {0};
    kkt_params_defaults(table, &values);
    if (kkt_params_parse(table, text, &values, NULL, &err) != KKT_OK)
        fail_msg("%s", err.message);
    return values;
}

static kkt_values problem_of(const char *text) {
    return values_in(&family()->problem, text);
}

static kkt_values config_of(const char *text) {
    return values_in(&variant()->params, text);
}

static kkt_plan plan_of(const char *problem, const char *config) {
    const kkt_values p = problem_of(problem), c = config_of(config);
    kkt_plan plan;
    variant()->plan(&p, &c, kkt_arch_find("sm90"), &plan);
    return plan;
}

static kkt_footprint footprint_of(const char *problem, const char *config) {
    const kkt_values p = problem_of(problem), c = config_of(config);
    kkt_footprint footprint;
    variant()->footprint(&p, &c, kkt_arch_find("sm90"), &footprint);
    return footprint;
}

static void says_why_a_configuration_is_refused(void **state) {
    static const struct {
        const char *arch, *problem, *config, *part;
    } rows[] = {
        {"sm80", "", "", "sm80 has no wgmma"},
        {"sm90", "dk=96", "", "dk 96"},
        {"sm90", "dv=96", "", "dv 96"},
        {"sm90", "", "state_registers=176", "too few"},
        {"sm90", "", "chunk=16,narrow=1", "narrow=1 changes nothing"},
        {"sm90", "tokens=575", "", "segments 9 of 64 tokens: a sequence has 575"},
        {"sm90", "tokens=4096,sequences=4", "segments=17", "segments 17 of 64 tokens"},
    };
    (void)state;
    char reason[200];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const kkt_values p = problem_of(rows[i].problem), c = config_of(rows[i].config);
        assert_false(
            variant()->applicable(&p, &c, kkt_arch_find(rows[i].arch), reason, sizeof reason));
        if (!strstr(reason, rows[i].part))
            fail_msg("'%s' instead of '%s'", reason, rows[i].part);
    }
    const kkt_values p = problem_of("tokens=1728,sequences=3,dk=64,dv=64,dtype=fp16,gated=0"),
                     c = config_of("");
    assert_true(variant()->applicable(&p, &c, kkt_arch_find("sm90"), reason, sizeof reason));
}

/* chunk 64, dk 128: 16 KB of K, 8 KB of T and of each 64 columns of V a stage, 468 floats of gates
 * and two barriers; M three times in rows of 136 floats, and two states of 16 columns in two parts.
 */
static void shared_memory_is_that_of_the_layouts(void **state) {
    const int64_t kb = 1024, pass = 4 * 40 * kb + 4 * 468 * 4 + 8 * 8;
    (void)state;
    kkt_plan plan = plan_of("", "");
    kkt_footprint fp = footprint_of("", "");
    assert_int_equal(plan.launch_count, 3);
    assert_int_equal(plan.launches[0].dynamic_smem_bytes, kkt_footprint_smem_bytes(&fp));
    assert_int_equal(plan.launches[1].dynamic_smem_bytes, 3 * 128 * 136 * 4 + 4 * 16 * 136 * 2);
    assert_int_equal(plan.launches[2].dynamic_smem_bytes, kkt_footprint_smem_bytes(&fp));
    assert_int_equal(fp.launch, 2);
    assert_int_equal(fp.most_smem_bytes, plan.launches[1].dynamic_smem_bytes);
    /* With heads of 64 and a deep ring the pass takes more than the states. */
    plan = plan_of("dk=64,dv=64", "stages=2");
    fp = footprint_of("dk=64,dv=64", "stages=2");
    assert_int_equal(fp.most_smem_bytes, plan.launches[0].dynamic_smem_bytes);
    assert_true(plan.launches[0].dynamic_smem_bytes > plan.launches[1].dynamic_smem_bytes);
    /* With two stages of the rest the pass takes more. */
    plan = plan_of("", "stages=2");
    fp = footprint_of("", "stages=2");
    assert_true(kkt_footprint_smem_bytes(&fp) < pass);
    assert_int_equal(plan.launches[0].dynamic_smem_bytes, pass);
    assert_int_equal(plan.launches[2].dynamic_smem_bytes, kkt_footprint_smem_bytes(&fp));
}

/* The parameters that the launches with o share with the warp-specialized style are handed to it by
 * their places. */
static void parameters_are_those_of_the_warp_specialized_style(void **state) {
    static const char *const names[] = {"chunk",  "block_dv",        "outputs",
                                        "stages", "state_registers", "service_registers",
                                        "narrow", "units_per_block"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        assert_string_equal(kkt_gdn_ws_params[i].name, names[i]);
    const kkt_values p = problem_of("heads_k=2,heads_v=8");
    const kkt_values ws =
        values_in(&kkt_gdn_fwd_t_warp_specialized.params,
                  "outputs=1,stages=2,state_registers=208,service_registers=32,narrow=1");
    const kkt_footprint own =
        footprint_of("heads_k=2,heads_v=8",
                     "outputs=1,stages=2,state_registers=208,service_registers=32,narrow=1");
    kkt_footprint other;
    kkt_gdn_fwd_t_warp_specialized.footprint(&p, &ws, kkt_arch_find("sm90"), &other);
    assert_int_equal(own.threads, other.threads);
    assert_int_equal(own.role_count, other.role_count);
    for (int i = 0; i < own.role_count; i++)
        assert_int_equal(own.roles[i].declared_registers, other.roles[i].declared_registers);
    assert_int_equal(kkt_footprint_smem_bytes(&own), kkt_footprint_smem_bytes(&other));
}

/* Three sequences of eight value heads in five segments: the first with o in two halves of dv,
 * three that are passed over by 256 columns in blocks of 128, four that come last. */
static void launches_cover_all_segments(void **state) {
    (void)state;
    const char *problem = "tokens=4096,sequences=3,heads_k=2,heads_v=8";
    kkt_plan plan = plan_of(problem, "segments=5,narrow=1");
    const kkt_launch *first = &plan.launches[0], *rest = &plan.launches[2];
    assert_string_equal(first->entry, "gdn_fwd_t_first");
    assert_int_equal(first->grid[0], 3 * 8 * 2 + 3 * 8 * 3 * 2);
    assert_int_equal(first->block[0], 384);
    assert_int_equal(plan.launches[1].grid[0], 3 * 8 * 8);
    assert_int_equal(plan.launches[1].block[0], 256);
    assert_string_equal(rest->entry, "gdn_fwd_t_rest");
    assert_int_equal(rest->grid[0], 3 * 8 * 4 * 2);
    for (int i = 0; i < 3; i++)
        assert_true(plan.launches[i].waits);
    /* Both have the arguments of the warp-specialized kernel, then the workspace: how many blocks
     * have o is the third from there. */
    assert_int_equal(first->arg_count, rest->arg_count + 1);
    assert_int_equal(first->args[first->arg_count - 1].tensor, KKT_FWD_T_TENSORS + 1);
    assert_int_equal(rest->args[rest->arg_count - 1].tensor, KKT_FWD_T_TENSORS);
    assert_int_equal(first->args[first->arg_count - 4].integer, 3 * 8 * 2);
    assert_int_equal(rest->args[rest->arg_count - 3].integer, 3 * 8 * 4 * 2);
    for (int i = 0; i < 5; i++)
        assert_int_equal(first->args[i].map.dims[1], 4096);
    assert_int_equal(first->args[1].map.box[1], 16);
    /* Of 64 columns of V and of M one block; of 64 and 128 two, of which one warpgroup is idle. */
    plan = plan_of("tokens=4096,heads_k=2,heads_v=8,dk=64,dv=64", "segments=3");
    assert_int_equal(plan.launches[0].grid[0], 8 + 8);
    plan = plan_of("tokens=4096,heads_k=2,heads_v=8,dv=64", "segments=3");
    assert_int_equal(plan.launches[0].grid[0], 8 + 8 * 2);
}

static void workspace_has_starts_and_steps(void **state) {
    (void)state;
    const kkt_values p = problem_of("tokens=4096,batch=2,heads_k=2,heads_v=8,dk=64"),
                     c = config_of("segments=5");
    kkt_tensor all[KKT_TENSORS_MAX];
    assert_int_equal(kkt_variant_tensors(family(), variant(), &p, &c, all), KKT_FWD_T_TENSORS + 2);
    const kkt_tensor *own = all + KKT_FWD_T_TENSORS;
    for (int i = 0; i < 2; i++)
        assert_int_equal(own[i].role, KKT_TENSOR_WORKSPACE);
    assert_int_equal(kkt_tensor_bytes(&own[0]), 2 * 4 * 8 * 64 * 128 * 4);
    assert_int_equal(kkt_tensor_bytes(&own[1]), 2 * 3 * 8 * 64 * 64 * 4);
}

/* Of 512 chunks in three segments of 7, 8 and 8 eighths 178 are passed over: k, T, v and g of them
 * are read twice; two states and a matrix a head are written besides. */
static void what_is_passed_over_is_read_twice(void **state) {
    (void)state;
    const char *problem = "tokens=32768,heads_k=2,heads_v=8,t_form=t_beta";
    const kkt_footprint three = footprint_of(problem, "segments=3,first_eighths=7");
    const kkt_values p = problem_of(problem),
                     c = values_in(&kkt_gdn_fwd_t_warp_specialized.params, "");
    kkt_footprint one;
    kkt_gdn_fwd_t_warp_specialized.footprint(&p, &c, kkt_arch_find("sm90"), &one);
    const double again = 32768.0 * 8 / 23 * (2 * 2 * 128 + 8 * (2 * 64 + 2 * 128 + 4));
    assert_true(fabs(three.hbm_read_bytes - one.hbm_read_bytes - again) < 1);
    assert_true(three.hbm_write_bytes == one.hbm_write_bytes + 8 * (2 + 1) * 128 * 128 * 4);
    assert_int_equal(three.chunks_per_block, 179);
    assert_int_equal(three.blocks, 2 * one.blocks);
    assert_int_equal(three.launches, 3);
    assert_true(three.tensor_flop > one.tensor_flop);
    const kkt_footprint nine = footprint_of(problem, "segments=9");
    assert_true(nine.hbm_write_bytes == one.hbm_write_bytes + 8 * (8 + 7) * 128 * 128 * 4);
    assert_true(nine.tensor_flop > three.tensor_flop);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_why_a_configuration_is_refused),
        cmocka_unit_test(shared_memory_is_that_of_the_layouts),
        cmocka_unit_test(parameters_are_those_of_the_warp_specialized_style),
        cmocka_unit_test(launches_cover_all_segments),
        cmocka_unit_test(workspace_has_starts_and_steps),
        cmocka_unit_test(what_is_passed_over_is_read_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
