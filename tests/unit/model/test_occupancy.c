#include "golden.h"

#include "model/occupancy.h"

static kkt_occupancy at(const char *arch, int threads, int registers, int64_t smem) {
    kkt_occupancy_request request = {
        .threads = threads, .registers = registers, .dynamic_smem = smem};
    kkt_occupancy out;
    kkt_occupancy_compute(kkt_arch_find(arch), &request, &out);
    return out;
}

/* 512 threads at the launch allocation of 128 registers fill the file: one block, whatever the
 * shared memory. Three blocks need at most 40 registers, two at most 64. */
static void test_warp_specialized_registers(void **state) {
    (void)state;
    kkt_occupancy o = at("sm90", 512, 128, 63 * 1024);
    assert_int_equal(o.limits[KKT_LIMIT_SHARED_MEMORY], 3);
    assert_int_equal(o.blocks_per_sm, 1);
    assert_int_equal(o.limiter, KKT_LIMIT_REGISTERS);
    assert_int_equal(at("sm90", 512, 40, 63 * 1024).blocks_per_sm, 3);
    assert_int_equal(at("sm90", 512, 41, 63 * 1024).blocks_per_sm, 2);
    assert_int_equal(at("sm90", 512, 64, 63 * 1024).blocks_per_sm, 2);
    assert_int_equal(at("sm90", 512, 65, 63 * 1024).blocks_per_sm, 1);
    assert_int_equal(at("sm90", 512, 129, 0).blocks_per_sm, 0);
}

static void test_each_limiter(void **state) {
    (void)state;
    assert_int_equal(at("sm90", 128, 255, 0).limiter, KKT_LIMIT_REGISTERS);
    assert_int_equal(at("sm90", 128, 32, 100 * 1024).limiter, KKT_LIMIT_SHARED_MEMORY);
    assert_int_equal(at("sm90", 1024, 16, 1024).limiter, KKT_LIMIT_THREADS);
    assert_int_equal(at("sm90", 32, 16, 1024).limiter, KKT_LIMIT_BLOCKS);
    kkt_occupancy_request request = {.threads = 32, .registers = 16, .barriers = 16};
    kkt_occupancy o;
    kkt_occupancy_compute(kkt_arch_find("sm90"), &request, &o);
    assert_int_equal(o.limiter, KKT_LIMIT_BARRIERS);
    assert_int_equal(o.blocks_per_sm, 4);
    kkt_occupancy_compute(kkt_arch_find("sm120"), &request, &o);
    assert_int_equal(o.limits[KKT_LIMIT_BARRIERS], 1);
    /* No such limit before Hopper. */
    kkt_occupancy_compute(kkt_arch_find("sm80"), &request, &o);
    assert_int_equal(o.limits[KKT_LIMIT_BARRIERS], 32);
}

static void test_shared_memory_limits(void **state) {
    (void)state;
    assert_int_equal(at("sm90", 128, 32, 232448).blocks_per_sm, 1);
    assert_int_equal(at("sm90", 128, 32, 232449).blocks_per_sm, 0);
    assert_int_equal(at("sm90", 128, 32, 232449).limiter, KKT_LIMIT_SHARED_MEMORY);
    assert_int_equal(at("sm89", 128, 32, 137 * 1024).blocks_per_sm, 0);
    /* Turing keeps no reserve: the whole 64 KB go to one block. */
    assert_int_equal(at("sm75", 128, 32, 65536).blocks_per_sm, 1);
    assert_int_equal(at("sm75", 32, 16, 0).blocks_per_sm, 16);
}

static void expect_error(kkt_occupancy_request request, const char *text) {
    kkt_occupancy out;
    kkt_error err = {0};
    assert_int_equal(kkt_occupancy_checked(kkt_arch_find("sm90"), &request, &out, &err),
                     KKT_ERR_INPUT);
    if (!strstr(err.message, text))
        fail_msg("'%s' does not say '%s'", err.message, text);
}

static void test_checked_ranges(void **state) {
    (void)state;
    expect_error((kkt_occupancy_request){.threads = 0, .registers = 32}, "threads 0");
    expect_error((kkt_occupancy_request){.threads = 1025, .registers = 32}, "1 to 1024");
    expect_error((kkt_occupancy_request){.threads = 32, .registers = 0}, "registers 0");
    expect_error((kkt_occupancy_request){.threads = 32, .registers = 256}, "1 to 255");
    expect_error((kkt_occupancy_request){.threads = 32, .registers = 32, .dynamic_smem = -1},
                 "shared memory bytes -1");
    expect_error((kkt_occupancy_request){.threads = 32, .registers = 32, .static_smem = -1},
                 "static shared memory bytes -1");
    expect_error((kkt_occupancy_request){.threads = 32, .registers = 32, .dynamic_smem = INT64_MAX},
                 "shared memory bytes 9223372036854775807");
    expect_error((kkt_occupancy_request){.threads = 32, .registers = 32, .barriers = 17},
                 "barriers 17");
    kkt_occupancy_request fine = {.threads = 1024, .registers = 255};
    kkt_occupancy out;
    assert_int_equal(kkt_occupancy_checked(kkt_arch_find("sm90"), &fine, &out, NULL), KKT_OK);
    assert_int_equal(out.blocks_per_sm, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_warp_specialized_registers),
        cmocka_unit_test(test_each_limiter),
        cmocka_unit_test(test_shared_memory_limits),
        cmocka_unit_test(test_checked_ranges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
