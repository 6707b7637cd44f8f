/* The warp-specialized gemm: what its constraints say, its shared memory by hand, and that plan and
 * traffic fit the tiles. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "kernels/gemm/gemm.h"
#include "model/predict.h"

static const kkt_variant *variant(void) {
    return &kkt_gemm_warp_specialized;
}

static kkt_values problem_of(const char *text) {
    const kkt_kernel *kernel = NULL;
    kkt_values values;
    kkt_error err = {0};
    assert_int_equal(kkt_kernel_parse("gemm", &kernel, &err), KKT_OK);
    kkt_params_defaults(&kernel->problem, &values);
    if (kkt_params_parse(&kernel->problem, text, &values, NULL, &err) != KKT_OK)
        fail_msg("%s", err.message);
    return values;
}

static kkt_values config_of(const char *text) {
    kkt_values values;
    kkt_error err = {0};
    kkt_params_defaults(&variant()->params, &values);
    if (kkt_params_parse(&variant()->params, text, &values, NULL, &err) != KKT_OK)
        fail_msg("%s", err.message);
    return values;
}

static kkt_footprint footprint_of(const char *problem, const char *config) {
    const kkt_values p = problem_of(problem), c = config_of(config);
    kkt_footprint footprint;
    variant()->footprint(&p, &c, kkt_arch_find("sm90"), &footprint);
    return footprint;
}

static kkt_plan plan_of(const char *problem, const char *config) {
    const kkt_values p = problem_of(problem), c = config_of(config);
    kkt_plan plan;
    variant()->plan(&p, &c, kkt_arch_find("sm90"), &plan);
    return plan;
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
        {"sm90", "", "bm=64", "has 32"},
        {"sm90", "", "bm=256", "256 sums a thread"},
        {"sm90", "", "consumers=ping_pong", "256 sums a thread"},
        {"sm90", "m=128,n=2048", "cluster_n=2,cluster_k=2", "cluster of 8"},
        {"sm90", "layout=nn", "bn=64,store_panels=1", "share of bn is no multiple of 64"},
        {"sm90", "layout=tn", "bm=64,consumers=ping_pong,cluster_n=2",
         "share of bm is no multiple of 64"},
        {"sm90", "", "bn=128,cluster_k=2", "needs persistent=0"},
        {"sm90", "m=128,n=8192", "bn=128,cluster_m=1,cluster_k=2,consumers=ping_pong",
         "needs both warpgroups"},
        {"sm90", "m=128,n=8192,k=64", "cluster_m=1,cluster_k=2", "k has 1 steps"},
        {"sm90", "m=128,n=2048", "bn=64,cluster_m=1,cluster_k=2", "no whole 64 of bn 64"},
        {"sm90", "m=128,n=1024", "persistent=0", "persistent=0 changes nothing"},
        {"sm90", "", "cluster_n=2,persistent=0", "120 blocks in clusters of 4"},
        {"sm90", "m=128,n=8192", "cluster_m=1,raster=16", "raster 16 does as 8"},
        {"sm90", "m=8192,n=256", "raster=4", "one column"},
        {"sm90", "", "bn=128,store_panels=4", "store_panels 4"},
        {"sm90", "", "split_k=2,store_panels=2", "store_panels 2"},
        {"sm90", "", "split_k=2,store=tma,store_panels=1", "are not staged"},
        {"sm90", "n=4095", "store=tma", "8190 bytes"},
    };
    (void)state;
    char reason[200];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *given = refused(rows[i].arch, rows[i].problem, rows[i].config, reason);
        if (!given)
            fail_msg("'%s' on '%s' is not refused", rows[i].config, rows[i].problem);
        if (!strstr(given, rows[i].part))
            fail_msg("'%s' instead of '%s'", given, rows[i].part);
    }
    static const char *const layouts[] = {"layout=nn", "layout=nt", "layout=tn", "layout=tt"};
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        assert_null(refused("sm90", layouts[i], "", reason));
        assert_null(refused("sm90", layouts[i],
                            "bn=128,consumers=ping_pong,stages=6,store_panels=2", reason));
    }
    assert_null(refused("sm90", "layout=nt", "bn=64,store_panels=1", reason));
    assert_null(
        refused("sm90", "m=128,n=8192", "bn=128,cluster_m=1,cluster_k=2,store_panels=1", reason));
    assert_null(refused("sm90", "m=1,n=1,k=1", "store=warps", reason));
}

/* Stages of 128 x 64 and 256 x 64, two warpgroups' panels of 8 KB, two barriers a stage and two
 * more. */
static void shared_memory_is_that_of_the_layout(void **state) {
    const int64_t kb = 1024;
    (void)state;
    kkt_footprint fp = footprint_of("", "stages=4,store_panels=1");
    assert_int_equal(kkt_footprint_smem_bytes(&fp), 4 * (16 + 32) * kb + 2 * 8 * kb + 10 * 8);
    /* With k split in the cluster half of the tile's sums come from the other block. */
    fp = footprint_of("m=128,n=8192", "bn=128,cluster_m=1,cluster_k=2,stages=4,store_panels=1");
    assert_int_equal(kkt_footprint_smem_bytes(&fp),
                     4 * (16 + 16) * kb + 2 * 8 * kb + 32 * kb + 10 * 8);
    /* Three stages: the barriers' 24 bytes each are rounded up to 16. */
    fp = footprint_of("", "");
    assert_int_equal(kkt_footprint_smem_bytes(&fp), 3 * (16 + 32) * kb + 2 * 4 * 8 * kb + 80);
}

static void registers_are_traded_within_the_launch(void **state) {
    (void)state;
    kkt_footprint fp = footprint_of("", "");
    kkt_prediction prediction;
    const kkt_arch *arch = kkt_arch_find("sm90");
    assert_int_equal(fp.role_count, 2);
    assert_int_equal(fp.roles[0].declared_registers, 232);
    assert_int_equal(fp.roles[1].declared_registers, 40);
    kkt_predict(&fp, arch, kkt_device_first(arch), NULL, &prediction);
    assert_int_equal(prediction.registers, 168);
    assert_true(prediction.table_registers == 128);
    assert_int_equal(prediction.infeasible, KKT_FEASIBLE);
    fp = footprint_of("", "consumer_registers=240");
    assert_int_equal(fp.roles[1].declared_registers, 24);
}

/* Every byte of both tiles a step, less what another block of the cluster loads. */
static void clusters_share_their_loads(void **state) {
    (void)state;
    const double tile_a = 128.0 * 64 * 2, tile_b = 256.0 * 64 * 2, steps = 32.0 * 16 * 64;
    kkt_footprint fp = footprint_of("", "cluster_m=2");
    assert_true(fp.l2_read_bytes == steps * (tile_a + tile_b / 2));
    fp = footprint_of("", "cluster_m=1,cluster_n=2");
    assert_true(fp.l2_read_bytes == steps * (tile_a / 2 + tile_b));
    fp = footprint_of("", "cluster_m=2,cluster_n=2");
    assert_true(fp.l2_read_bytes == steps * (tile_a / 2 + tile_b / 2));
    assert_true(fp.tensor_flop == 2.0 * 4096 * 4096 * 4096);
    assert_true(fp.hbm_write_bytes == 4096.0 * 4096 * 2);
}

/* Without clusters two SMs side by side have tiles below one another, and so one of b; one column
 * further where tiles come row by row, and then one of a. */
static void neighbours_are_answered_together(void **state) {
    (void)state;
    const double tile_a = 128.0 * 64 * 2, tile_b = 256.0 * 64 * 2, steps = 32.0 * 16 * 64;
    kkt_footprint fp = footprint_of("", "cluster_m=1");
    assert_true(fp.l2_read_bytes == steps * (tile_a + tile_b / 2));
    fp = footprint_of("", "cluster_m=1,raster=1");
    assert_true(fp.l2_read_bytes == steps * (tile_a / 2 + tile_b));
    fp = footprint_of("n=256", "cluster_m=1,raster=1");
    assert_true(fp.l2_read_bytes == 32.0 * 64 * (tile_a + tile_b / 2));
    fp = footprint_of("m=128", "cluster_m=1");
    assert_true(fp.l2_read_bytes == 16.0 * 64 * (tile_a / 2 + tile_b));
    fp = footprint_of("m=128,n=256", "cluster_m=1");
    assert_true(fp.l2_read_bytes == 64 * (tile_a + tile_b));
}

/* A block a tile: four rounds of 132 for 512, the last one not full; blocks that stay and take
 * tiles have as many turns. */
static void blocks_come_whole(void **state) {
    (void)state;
    kkt_footprint fp = footprint_of("", "persistent=0");
    assert_int_equal(fp.blocks, 512);
    assert_int_equal(fp.chunks_per_block, 64);
    assert_true(fp.all_chunks == 0);
    fp = footprint_of("", "");
    assert_int_equal(fp.blocks, 132);
    assert_true(fp.all_chunks == 512.0 * 64);
}

/* 256 tiles of 256 x 256, 66 at a time: four waves. Both matrices are more than L2 holds; at half
 * the size they are not. */
static void each_wave_reads_its_rows_and_columns(void **state) {
    (void)state;
    const double once = 2.0 * 4096 * 4096 * 2;
    kkt_footprint fp = footprint_of("", "");
    assert_true(fp.hbm_read_bytes > 2 * once && fp.hbm_read_bytes < 2.3 * once);
    assert_true(fp.hbm_again_bytes == fp.hbm_read_bytes - once);
    fp = footprint_of("m=2048,n=2048", "");
    assert_true(fp.hbm_read_bytes == once / 2);
    /* One wave. */
    fp = footprint_of("m=128,n=8192,k=8192", "bn=128,cluster_m=1,cluster_k=2,store_panels=1");
    assert_true(fp.hbm_read_bytes == (128.0 + 8192) * 8192 * 2);
}

static void the_grid_has_a_block_an_sm_or_a_tile(void **state) {
    (void)state;
    assert_int_equal(plan_of("", "").launches[0].grid[0], 132);
    assert_int_equal(plan_of("", "persistent=0").launches[0].grid[0], 512);
    kkt_plan plan = plan_of("m=128,n=8192,k=8192", "bn=128,cluster_m=1,cluster_k=2");
    assert_int_equal(plan.launches[0].grid[0], 128);
    assert_int_equal(plan.launches[0].cluster[0], 2);
    /* Four blocks to a cluster leave twelve SMs idle. */
    assert_int_equal(plan_of("", "cluster_n=2").launches[0].grid[0], 120);
    /* Parts of k through memory: a block for each, and a launch that adds them up. */
    plan = plan_of("m=128,n=8192,k=8192", "cluster_m=1,split_k=4");
    assert_int_equal(plan.launch_count, 2);
    assert_int_equal(plan.launches[0].grid[0], 128);
    assert_string_equal(plan.launches[1].entry, "gemm_reduce_parts");
    assert_int_equal(plan.launches[1].grid[0], 128 * 8192 / 4 / 256);
    plan = plan_of("m=100,n=96,k=64", "cluster_m=1");
    assert_int_equal(plan.launches[0].grid[0], 1);
    assert_int_equal(plan.launches[0].cluster[0], 0);
    kkt_footprint fp = footprint_of("", "");
    assert_int_equal(fp.chunks_per_block, 4 * 64); /* 512 tiles on 132 blocks */
}

static void boxes_are_a_block_s_share(void **state) {
    (void)state;
    const kkt_plan nn = plan_of("layout=nn", ""), tt = plan_of("layout=tt", "");
    const kkt_arg *a = &nn.launches[0].args[0], *b = &nn.launches[0].args[1];
    assert_int_equal(a->kind, KKT_ARG_TENSOR_MAP);
    assert_int_equal(a->map.box[0], 64);
    assert_int_equal(a->map.box[1], 128); /* rows of M */
    assert_int_equal(b->map.box[1], 64);  /* of K */
    assert_int_equal(nn.launches[0].args[2].tensor, KKT_GEMM_TENSOR_C);
    assert_int_equal(tt.launches[0].args[0].map.box[1], 64);  /* of K */
    assert_int_equal(tt.launches[0].args[1].map.box[1], 128); /* half of N */
}

/* Rows of 8,198 and 8,190 bytes: both operands are read from copies, one behind the other. */
static void odd_rows_are_read_from_copies(void **state) {
    (void)state;
    const kkt_plan plan = plan_of("m=4097,n=4095,k=4099", "cluster_m=1,cluster_n=2");
    assert_int_equal(plan.launch_count, 3);
    const kkt_launch *launch = &plan.launches[2];
    assert_string_equal(launch->entry, "gemm_warp_specialized");
    assert_int_equal(launch->args[0].tensor, KKT_GEMM_TENSOR_PADDED);
    assert_int_equal(launch->args[0].map.first, 0);
    assert_int_equal(launch->args[0].map.dims[0], 4099);
    assert_int_equal(launch->args[0].map.strides_bytes[1], 4104 * 2);
    assert_int_equal(launch->args[1].map.first, 4097 * 4104);
    assert_int_equal(launch->args[1].map.strides_bytes[1], 4096 * 2);
    assert_int_equal(launch->args[3].tensor, KKT_GEMM_TENSOR_C);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_why_a_configuration_is_refused),
        cmocka_unit_test(shared_memory_is_that_of_the_layout),
        cmocka_unit_test(registers_are_traded_within_the_launch),
        cmocka_unit_test(clusters_share_their_loads),
        cmocka_unit_test(neighbours_are_answered_together),
        cmocka_unit_test(blocks_come_whole),
        cmocka_unit_test(each_wave_reads_its_rows_and_columns),
        cmocka_unit_test(the_grid_has_a_block_an_sm_or_a_tile),
        cmocka_unit_test(boxes_are_a_block_s_share),
        cmocka_unit_test(odd_rows_are_read_from_copies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
