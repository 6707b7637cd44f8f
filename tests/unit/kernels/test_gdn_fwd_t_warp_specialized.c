/* The warp-specialized gdn_fwd_t: what its constraints say, its shared memory by hand, and that the
 * launch plan fits the footprint and the kernel's boxes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "kernels/gdn/warp_specialized.h"

static const kkt_variant *variant(void) {
    return &kkt_gdn_fwd_t_warp_specialized;
}

static kkt_values problem_of(const char *text) {
    const kkt_kernel *kernel = NULL;
    kkt_values values;
    kkt_error err = {0};
    assert_int_equal(kkt_kernel_parse("gdn_fwd_t", &kernel, &err), KKT_OK);
    kkt_params_defaults(&kernel->problem, &values);
    if (kkt_params_parse(&kernel->problem, text, &values, NULL, &err) != KKT_OK)
        fail_msg("%s", err.message);
    return values;
}

static kkt_values config_in(const kkt_param_table *table, const char *text) {
    kkt_values values;
    kkt_error err = {0};
    kkt_params_defaults(table, &values);
    if (kkt_params_parse(table, text, &values, NULL, &err) != KKT_OK)
        fail_msg("%s", err.message);
    return values;
}

static kkt_values config_of(const char *text) {
    return config_in(&variant()->params, text);
}

/* Of gdn_fwd. */
static kkt_values fused_config_of(const char *text) {
    return config_in(&kkt_gdn_fwd_warp_specialized.params, text);
}

static kkt_footprint footprint_of(const char *problem, const char *config) {
    const kkt_values p = problem_of(problem), c = config_of(config);
    kkt_footprint footprint;
    variant()->footprint(&p, &c, kkt_arch_find("sm90"), &footprint);
    return footprint;
}

static kkt_launch launch_of(const char *problem, const char *config) {
    const kkt_values p = problem_of(problem), c = config_of(config);
    kkt_plan plan;
    variant()->plan(&p, &c, kkt_arch_find("sm90"), &plan);
    assert_int_equal(plan.launch_count, 1);
    return plan.launches[0];
}

/* NULL where it is applicable. */
static const char *refused(const char *arch, const char *problem, const char *config,
                           char reason[200]) {
    const kkt_values p = problem_of(problem), c = config_of(config);
    return variant()->applicable(&p, &c, kkt_arch_find(arch), reason, 200) ? NULL : reason;
}

static void says_why_a_configuration_is_refused(void **state) {
    static const struct {
        const char *arch, *problem, *config, *part;
    } rows[] = {
        {"sm80", "", "", "sm80 has no wgmma"},
        {"sm90", "", "chunk=128", "the state holds 320 registers, one of the scores 160, and 240"},
        {"sm90", "dk=64", "chunk=128,block_dv=32,outputs=2", "one of the scores 272"},
        {"sm90", "", "block_dv=32", "block_dv 32 with outputs=0"},
        {"sm90", "", "block_dv=32,outputs=1,narrow=1", "block_dv 32 with narrow=1"},
        {"sm90", "dk=96", "", "dk 96"},
        {"sm90", "dv=96", "", "dv 96"},
        {"sm90", "dv=64", "block_dv=128,state_registers=208", "does not divide dv"},
        {"sm90", "", "block_dv=128,outputs=2,state_registers=176", "640 threads have 96 registers"},
        {"sm90", "", "block_dv=128,state_registers=240", "too few"},
        {"sm90", "", "state_registers=176", "too few"},
        {"sm90", "", "chunk=16,narrow=1", "narrow=1 changes nothing"},
        {"sm90", "heads_k=1,heads_v=2", "units_per_block=8", "more than there are: 4"},
    };
    (void)state;
    char reason[200];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *given = refused(rows[i].arch, rows[i].problem, rows[i].config, reason);
        assert_non_null(given);
        if (!strstr(given, rows[i].part))
            fail_msg("'%s' instead of '%s'", given, rows[i].part);
    }
    assert_null(refused("sm90", "", "", reason));
    assert_null(refused("sm90", "dk=64,dv=64,dtype=fp16,gated=0", "chunk=16", reason));
    assert_null(refused("sm90", "", "outputs=2,state_registers=208", reason));
    assert_null(
        refused("sm90", "", "block_dv=128,state_registers=208,service_registers=32", reason));
}

/* chunk 64, dk 128, three stages: 2 x 16 KB, 8 KB of T and 8 KB for 64 columns of V a stage; then
 * two tiles of P and of o, or of S and V'; 468 floats of gates a stage; 23 barriers. */
static void shared_memory_is_that_of_the_layout(void **state) {
    const int64_t kb = 1024, gates = 3 * 468 * 4, barriers = 24 * 8;
    (void)state;
    kkt_footprint fp = footprint_of("", "");
    assert_int_equal(kkt_footprint_smem_bytes(&fp), 3 * 48 * kb + 4 * 8 * kb + gates + barriers);
    fp = footprint_of("", "outputs=2,state_registers=208");
    assert_int_equal(kkt_footprint_smem_bytes(&fp), 3 * 48 * kb + 2 * 24 * kb + gates + barriers);
    fp = footprint_of("", "block_dv=128,state_registers=208,service_registers=32");
    assert_int_equal(kkt_footprint_smem_bytes(&fp), 3 * 56 * kb + 6 * 8 * kb + gates + barriers);
    /* 32 columns: 4 KB of V a stage, and two tiles more, for X and for V' on its way to the state.
     */
    fp = footprint_of("", "block_dv=32,outputs=2,state_registers=176");
    assert_int_equal(kkt_footprint_smem_bytes(&fp),
                     3 * 44 * kb + 2 * 12 * kb + 2 * 4 * kb + gates + barriers);
    /* A tile of 16 x 16 takes a whole unit of 1,024 bytes. */
    fp = footprint_of("dk=64", "chunk=16,stages=2");
    assert_int_equal(kkt_footprint_smem_bytes(&fp),
                     2 * (2 * 2 * kb + kb + 2 * kb) + 2 * kb + 4 * kb + 2 * 180 * 4 + 20 * 8);
}

static void registers_are_traded_within_the_launch(void **state) {
    (void)state;
    kkt_footprint fp = footprint_of("", "outputs=2,state_registers=208");
    assert_int_equal(fp.role_count, 3);
    assert_int_equal(fp.threads, 512);
    assert_int_equal(fp.roles[0].declared_registers, 208);
    assert_int_equal(fp.roles[1].threads, 256);
    assert_int_equal(fp.roles[1].declared_registers, 128);
    assert_int_equal(fp.roles[2].declared_registers, 40);
}

static void the_plan_covers_all_units(void **state) {
    (void)state;
    kkt_launch launch = launch_of("tokens=4096,sequences=3,heads_k=2,heads_v=8", "narrow=1");
    assert_int_equal(launch.grid[0], 3 * 8 * 2);
    assert_int_equal(launch.block[0], 384);
    assert_true(launch.waits);
    /* The tensor maps come first, in the order q k v t o; q, k and t in boxes of 16
     * rows where products are narrow. */
    const int rows[] = {16, 16, 64, 16, 64};
    const int64_t columns[] = {2 * 128, 2 * 128, 8 * 128, 8 * 64, 8 * 128};
    for (int i = 0; i < 5; i++) {
        assert_int_equal(launch.args[i].kind, KKT_ARG_TENSOR_MAP);
        assert_int_equal(launch.args[i].map.box[0], 64);
        assert_int_equal(launch.args[i].map.box[1], rows[i]);
        assert_int_equal(launch.args[i].map.dims[0], columns[i]);
        assert_int_equal(launch.args[i].map.dims[1], 4096);
    }
    launch = launch_of("tokens=4096,sequences=3,heads_k=2,heads_v=8",
                       "block_dv=32,outputs=1,state_registers=176");
    assert_int_equal(launch.grid[0], 3 * 8 * 4);
    assert_int_equal(launch.args[2].map.box[0], 32);
    assert_int_equal(launch.args[2].map.swizzle_bytes, 64);
    assert_int_equal(launch.args[4].map.box[0], 32);
    launch = launch_of("tokens=4096,sequences=3,heads_k=2,heads_v=8", "chunk=32,units_per_block=4");
    assert_int_equal(launch.grid[0], 12);
    assert_int_equal(launch.args[3].map.box[0], 32);
    assert_int_equal(launch.args[3].map.box[1], 32);
    assert_int_equal(launch.args[3].map.swizzle_bytes, 64);
}

/* gdn_fwd has one more warpgroup, four diagonal blocks of 16 x 20 floats (5 KB) and to invert T's
 * blocks (8 KB), beta by rows and a barrier a stage (to an even number), and no map of T. */
static void the_solver_adds_a_warpgroup(void **state) {
    (void)state;
    const kkt_values p = problem_of("heads_k=4,heads_v=8"), t = config_of(""),
                     s = fused_config_of("solve=substitute"), c = fused_config_of("solve=invert");
    kkt_footprint with, without;
    kkt_gdn_ws_footprint(&p, &s, true, &with);
    kkt_gdn_ws_footprint(&p, &t, false, &without);
    assert_int_equal(kkt_footprint_smem_bytes(&with) - kkt_footprint_smem_bytes(&without),
                     5 * 1024 + 3 * 64 * 4 + 2 * 8);
    kkt_gdn_ws_footprint(&p, &c, true, &with);
    assert_int_equal(with.threads, without.threads + 128);
    assert_int_equal(with.role_count, 4);
    assert_int_equal(kkt_footprint_smem_bytes(&with) - kkt_footprint_smem_bytes(&without),
                     13 * 1024 + 3 * 64 * 4 + 2 * 8);
    const kkt_gdn_ws_tensors tensors = {.entry = "gdn_fwd", .t = -1};
    kkt_plan plan;
    kkt_gdn_ws_plan(&p, &c, &tensors, &plan);
    assert_int_equal(plan.launches[0].args[3].kind, KKT_ARG_TENSOR_MAP);
    assert_int_equal(plan.launches[0].args[4].kind, KKT_ARG_TENSOR);
    assert_false(plan.launches[0].waits);
    char reason[200];
    const kkt_values wide = fused_config_of("block_dv=128,state_registers=208"),
                     narrow = fused_config_of("narrow=1"),
                     slim = fused_config_of("block_dv=32,outputs=1,solve=substitute");
    assert_false(
        kkt_gdn_ws_applicable(&p, &wide, kkt_arch_find("sm90"), true, reason, sizeof reason));
    assert_non_null(strstr(reason, "640 threads"));
    assert_false(
        kkt_gdn_ws_applicable(&p, &narrow, kkt_arch_find("sm90"), true, reason, sizeof reason));
    assert_non_null(strstr(reason, "solver"));
    assert_false(
        kkt_gdn_ws_applicable(&p, &slim, kkt_arch_find("sm90"), true, reason, sizeof reason));
    assert_non_null(strstr(reason, "solve=substitute"));
    assert_true(kkt_gdn_ws_applicable(&p, &c, kkt_arch_find("sm90"), true, reason, sizeof reason));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_why_a_configuration_is_refused),
        cmocka_unit_test(shared_memory_is_that_of_the_layout),
        cmocka_unit_test(registers_are_traded_within_the_launch),
        cmocka_unit_test(the_plan_covers_all_units),
        cmocka_unit_test(the_solver_adds_a_warpgroup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
