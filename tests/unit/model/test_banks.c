/* The bank rule, by accesses whose passes counters confirm (docs/model.md, section 9). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/banks.h"
#include "model/traffic.h"

static int load(int inner, int64_t outer, int64_t step, int words) {
    const kkt_lane_grid grid = {inner, outer, step, KKT_LANES};
    return kkt_grid_wavefronts(&grid, words, false);
}

static int store(int inner, int64_t outer, int64_t step, int words) {
    const kkt_lane_grid grid = {inner, outer, step, KKT_LANES};
    return kkt_grid_wavefronts(&grid, words, true);
}

static void lanes_side_by_side_take_their_bytes(void **state) {
    (void)state;
    for (int words = 1; words <= 4; words *= 2) {
        assert_int_equal(load(32, 0, words, words), words); /* 128 bytes a pass */
        assert_int_equal(store(32, 0, words, words), words);
    }
}

static void words_of_one_bank_take_turns(void **state) {
    (void)state;
    for (int64_t stride = 1; stride <= 32; stride *= 2)
        assert_int_equal(load(32, 0, stride, 1), stride);
    assert_int_equal(load(32, 0, 33, 1), 1);
    /* A fragment's rows of 16 words, 8 bytes a lane: half a warp has four rows, two of them in the
     * same banks. */
    assert_int_equal(store(4, 16, 2, 2), 4);
    assert_int_equal(store(4, 8, 2, 2), 2);
    assert_int_equal(store(4, 20, 2, 2), 4);
}

static void one_address_is_one_pass(void **state) {
    (void)state;
    assert_int_equal(load(32, 0, 0, 1), 1);
    assert_int_equal(load(32, 0, 0, 2), 1); /* the halves go together */
    assert_int_equal(load(32, 0, 0, 4), 2); /* quarters pair up, halves do not */
    assert_int_equal(store(32, 0, 0, 2), 2);
    assert_int_equal(store(32, 0, 0, 4), 4);
}

static void neighbours_with_one_address_merge_groups(void **state) {
    (void)state;
    assert_int_equal(load(4, 2, 0, 2), 1); /* a pair of words to each four lanes */
    assert_int_equal(load(2, 2, 0, 2), 1);
    assert_int_equal(load(4, 0, 2, 2), 2); /* four pairs, each to every fourth lane */
    assert_int_equal(load(4, 0, 4, 4), 4);
    /* Merged groups may collide where smaller ones do not: four rows of 16 words in a half. */
    assert_int_equal(load(4, 16, 0, 4), 4);
    assert_int_equal(load(4, 20, 0, 4), 2);
}

static void idle_lanes_ask_for_nothing(void **state) {
    (void)state;
    kkt_access access = {.words = 4};
    assert_int_equal(kkt_access_wavefronts(&access), 0);
    const kkt_lane_grid eight = {8, 0, 4, 8};
    assert_int_equal(kkt_grid_wavefronts(&eight, 4, false), 1);
    /* Every second lane alone: no neighbour contradicts it, so a half is one group. */
    for (int lane = 0; lane < KKT_LANES; ++lane)
        access.first[lane] = lane * 4;
    access.active = 0x55555555;
    assert_int_equal(kkt_access_wavefronts(&access), 4);
    access.active = 0x00000055;
    assert_int_equal(kkt_access_wavefronts(&access), 1);
    access.active = 0x00005555; /* eight lanes, units 0 2 4 6 0 2 4 6 */
    assert_int_equal(kkt_access_wavefronts(&access), 2);
}

/* For words, both forms of the rule agree. */
static void agrees_with_the_plain_rule(void **state) {
    (void)state;
    uint32_t random = 1;
    for (int round = 0; round < 2000; ++round) {
        int64_t word[KKT_LANES];
        kkt_access access = {.words = 1, .active = UINT32_MAX};
        for (int lane = 0; lane < KKT_LANES; ++lane) {
            random = random * 1664525 + 1013904223;
            word[lane] = access.first[lane] = (int32_t)(random >> (20 + round % 8));
        }
        assert_int_equal(kkt_access_wavefronts(&access), kkt_bank_wavefronts(word, KKT_LANES));
    }
}

static void overlaps_are_counted_by_bank(void **state) {
    (void)state;
    uint32_t sets[31] = {0};
    assert_int_equal(kkt_bank_overlap(sets, 0), 0);
    for (int n = 0; n < 31; ++n) {
        const int rest = (n + 1) % 8;
        sets[n] = kkt_banks_turned(0xff, n * 4); /* each bank has two of eight, over and over */
        assert_int_equal(kkt_bank_overlap(sets, n + 1), (n + 1) / 8 * 2 + (rest < 2 ? rest : 2));
    }
    for (int n = 0; n < 31; ++n)
        sets[n] = 1;
    assert_int_equal(kkt_bank_overlap(sets, 31), 31);
    assert_int_equal(kkt_banks_turned(0x80000001, 1), 3);
    assert_int_equal(kkt_banks_turned(0x80000001, 64), 0x80000001);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lanes_side_by_side_take_their_bytes),
        cmocka_unit_test(words_of_one_bank_take_turns),
        cmocka_unit_test(one_address_is_one_pass),
        cmocka_unit_test(neighbours_with_one_address_merge_groups),
        cmocka_unit_test(idle_lanes_ask_for_nothing),
        cmocka_unit_test(agrees_with_the_plain_rule),
        cmocka_unit_test(overlaps_are_counted_by_bank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
