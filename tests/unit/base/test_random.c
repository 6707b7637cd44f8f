/* Random numbers: the published sequence, and numbers within their bounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"

/* What the authors' program gives for this seed. */
static void test_sequence(void **state) {
    (void)state;
    static const uint64_t expected[] = {
        UINT64_C(6457827717110365317),  UINT64_C(3203168211198807973),
        UINT64_C(9817491932198370423),  UINT64_C(4593380528125082431),
        UINT64_C(16408922859458223821),
    };
    uint64_t at = 1234567;
    assert_true(kkt_random_mix(at) == expected[0]);
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
        assert_true(kkt_random_next(&at) == expected[i]);
}

static void test_unit(void **state) {
    (void)state;
    assert_true(kkt_random_unit(0) <= 0.0);
    assert_true(kkt_random_unit(UINT64_MAX) < 1.0);
    assert_true(kkt_random_unit(UINT64_C(1) << 63) == 0.5);
    uint64_t at = 0;
    double sum = 0;
    for (int i = 0; i < 10000; i++)
        sum += kkt_random_unit(kkt_random_next(&at));
    assert_true(sum > 4800 && sum < 5200);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sequence),
        cmocka_unit_test(test_unit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
