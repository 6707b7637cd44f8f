/* Conversions of the 16-bit types: every value, and every rounding boundary between neighbours,
 * against the formats' definition. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/dtype.h"

/* Value of a 16-bit float by its definition, with pow instead of bit shifts. */
static double by_definition(uint16_t bits, int mantissa) {
    int bias = (1 << (14 - mantissa)) - 1;
    int exponent = (bits & 0x7FFF) >> mantissa;
    double fraction = (double)(bits & ((1 << mantissa) - 1)) / (double)(1 << mantissa);
    double sign = bits & 0x8000 ? -1.0 : 1.0;
    if (exponent == 2 * bias + 1)
        return fraction == 0.0 ? sign * INFINITY : NAN;
    if (exponent == 0)
        return sign * fraction * pow(2.0, 1 - bias);
    return sign * (1.0 + fraction) * pow(2.0, exponent - bias);
}

typedef struct format {
    int mantissa;
    uint16_t infinity;
    double (*decode)(uint16_t);
    uint16_t (*encode)(double);
} format;

static const format FORMATS[] = {{10, 0x7C00, kkt_half_to_double, kkt_half_from_double},
                                 {7, 0x7F80, kkt_bf16_to_double, kkt_bf16_from_double}};

static void test_all_values(void **state) {
    (void)state;
    for (size_t f = 0; f < 2; f++) {
        const format *type = &FORMATS[f];
        for (uint32_t bits = 0; bits <= 0xFFFF; bits++) {
            double expected = by_definition((uint16_t)bits, type->mantissa);
            double value = type->decode((uint16_t)bits);
            if (isnan(expected)) {
                assert_true(isnan(value));
                assert_true(isnan(type->decode(type->encode(value))));
                continue;
            }
            assert_memory_equal(&value, &expected, sizeof value); /* -0 is not +0 */
            assert_int_equal(type->encode(value), bits);
        }
    }
}

/* Between every pair of neighbours: just below, at, and just above the middle. */
static void test_all_roundings(void **state) {
    (void)state;
    for (size_t f = 0; f < 2; f++) {
        const format *type = &FORMATS[f];
        for (uint16_t bits = 0; bits < type->infinity; bits++) {
            double low = by_definition(bits, type->mantissa);
            /* Above the largest finite value the format goes on as if it had more exponents. */
            double high = by_definition((uint16_t)(bits + 1), type->mantissa);
            if (isinf(high))
                high = low + (low - by_definition((uint16_t)(bits - 1), type->mantissa));
            double middle = low + (high - low) / 2;
            uint16_t even = bits & 1 ? (uint16_t)(bits + 1) : bits;
            assert_int_equal(type->encode(middle), even);
            assert_int_equal(type->encode(nextafter(middle, 0.0)), bits);
            assert_int_equal(type->encode(nextafter(middle, INFINITY)), bits + 1);
            assert_int_equal(type->encode(-middle), even | 0x8000);
            assert_int_equal(type->encode(-nextafter(middle, 0.0)), bits | 0x8000);
        }
    }
}

static void test_extremes(void **state) {
    (void)state;
    for (size_t f = 0; f < 2; f++) {
        const format *type = &FORMATS[f];
        assert_int_equal(type->encode(INFINITY), type->infinity);
        assert_int_equal(type->encode(-INFINITY), type->infinity | 0x8000);
        assert_int_equal(type->encode(1e300), type->infinity);
        assert_int_equal(type->encode(5e-324), 0);
        assert_int_equal(type->encode(-5e-324), 0x8000);
        assert_int_equal(type->encode(-0.0), 0x8000);
        assert_true(isnan(type->decode(type->encode(NAN))));
    }
    /* 1 + 2^-11 + 2^-40 rounds up; through fp32 it would become a tie and round down. */
    assert_int_equal(kkt_half_from_double(1.0 + 0x1p-11 + 0x1p-40), 0x3C01);
    assert_int_equal(kkt_bf16_from_double(1.0 + 0x1p-8 + 0x1p-40), 0x3F81);
}

static void test_names_and_bytes(void **state) {
    (void)state;
    const char *names[] = {"bf16", "fp16", "fp32", "fp64", "i32", "i64"};
    const size_t bytes[] = {2, 2, 4, 8, 4, 8};
    for (int i = 0; i < KKT_DTYPE_COUNT; i++) {
        assert_string_equal(kkt_dtype_name((kkt_dtype)i), names[i]);
        assert_int_equal(kkt_dtype_bytes((kkt_dtype)i), bytes[i]);
    }
}

static void test_load_store(void **state) {
    (void)state;
    for (int i = 0; i < KKT_DTYPE_COUNT; i++) {
        double storage[4] = {0};
        kkt_dtype dtype = (kkt_dtype)i;
        kkt_dtype_store(dtype, storage, 2, -3.0);
        kkt_dtype_store(dtype, storage, 1, 12.0);
        assert_true(kkt_dtype_load(dtype, storage, 2) == -3.0);
        assert_true(kkt_dtype_load(dtype, storage, 1) == 12.0);
        assert_true(kkt_dtype_load(dtype, storage, 0) == 0.0);
    }
    int32_t narrow[4];
    int64_t wide[4];
    const double values[] = {2.5, -1e300, 1e300, NAN};
    for (size_t i = 0; i < 4; i++) {
        kkt_dtype_store(KKT_I32, narrow, i, values[i]);
        kkt_dtype_store(KKT_I64, wide, i, values[i]);
    }
    const int32_t narrow_expected[] = {2, INT32_MIN, INT32_MAX, 0};
    const int64_t wide_expected[] = {2, INT64_MIN, INT64_MAX, 0};
    assert_memory_equal(narrow, narrow_expected, sizeof narrow);
    assert_memory_equal(wide, wide_expected, sizeof wide);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_values), cmocka_unit_test(test_all_roundings),
        cmocka_unit_test(test_extremes),   cmocka_unit_test(test_names_and_bytes),
        cmocka_unit_test(test_load_store),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
