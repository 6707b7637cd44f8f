#include "base/dtype.h"

#include <math.h>
#include <string.h>

#define DOUBLE_MANTISSA 52
#define DOUBLE_BIAS 1023

typedef struct type_row {
    const char *name;
    size_t bytes;
} type_row;

static const type_row TYPES[KKT_DTYPE_COUNT] = {
    [KKT_BF16] = {"bf16", 2}, [KKT_FP16] = {"fp16", 2}, [KKT_FP32] = {"fp32", 4},
    [KKT_FP64] = {"fp64", 8}, [KKT_I32] = {"i32", 4},   [KKT_I64] = {"i64", 8},
};

size_t kkt_dtype_bytes(kkt_dtype dtype) {
    return TYPES[dtype].bytes;
}

const char *kkt_dtype_name(kkt_dtype dtype) {
    return TYPES[dtype].name;
}

/* A 16-bit IEEE-like float with `mantissa` stored bits; 15 - mantissa bits of exponent. Rounds
 * the double once, to nearest even: going through fp32 would round twice. */
static uint16_t encode(double value, int mantissa) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    const int bias = (1 << (14 - mantissa)) - 1;
    const uint64_t infinity = (uint64_t)(2 * bias + 1) << mantissa;
    const uint64_t sign = (bits >> 63) << 15;
    const int exponent = (int)(bits >> DOUBLE_MANTISSA & 0x7FF) - DOUBLE_BIAS;
    uint64_t fraction = bits & (((uint64_t)1 << DOUBLE_MANTISSA) - 1);
    int shift = DOUBLE_MANTISSA - mantissa;
    if (isnan(value)) {
        uint64_t quiet = (uint64_t)1 << (mantissa - 1);
        return (uint16_t)(sign | infinity | quiet | fraction >> shift);
    }
    if (exponent > bias)
        return (uint16_t)(sign | infinity);
    uint64_t result = 0;
    if (exponent >= 1 - bias) {
        result = (uint64_t)(exponent + bias) << mantissa;
    } else { /* subnormal: the leading one is shifted in with the fraction */
        fraction |= (uint64_t)1 << DOUBLE_MANTISSA;
        shift += 1 - bias - exponent;
        if (shift > DOUBLE_MANTISSA + 1)
            return (uint16_t)sign;
    }
    result += fraction >> shift;
    const uint64_t rest = fraction & (((uint64_t)1 << shift) - 1);
    const uint64_t half = (uint64_t)1 << (shift - 1);
    if (rest > half || (rest == half && (result & 1)))
        result++; /* a carry into the exponent is right, up to infinity */
    return (uint16_t)(sign | result);
}

uint16_t kkt_half_from_double(double value) {
    return encode(value, 10);
}

uint16_t kkt_bf16_from_double(double value) {
    return encode(value, 7);
}

double kkt_half_to_double(uint16_t bits) {
    const int exponent = bits >> 10 & 0x1F;
    const uint64_t fraction = bits & 0x3FF;
    const uint64_t sign = (uint64_t)(bits >> 15) << 63;
    if (exponent == 0) {
        double magnitude = (double)fraction * 0x1p-24;
        return sign ? -magnitude : magnitude;
    }
    uint64_t wide = exponent == 0x1F ? 0x7FF : (uint64_t)(exponent - 15 + DOUBLE_BIAS);
    uint64_t whole = sign | wide << DOUBLE_MANTISSA | fraction << (DOUBLE_MANTISSA - 10);
    double value;
    memcpy(&value, &whole, sizeof value);
    return value;
}

double kkt_bf16_to_double(uint16_t bits) {
    uint32_t whole = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &whole, sizeof value);
    return (double)value;
}

double kkt_dtype_load(kkt_dtype dtype, const void *data, size_t index) {
    switch (dtype) {
    case KKT_BF16:
        return kkt_bf16_to_double(((const uint16_t *)data)[index]);
    case KKT_FP16:
        return kkt_half_to_double(((const uint16_t *)data)[index]);
    case KKT_FP32:
        return (double)((const float *)data)[index];
    case KKT_FP64:
        return ((const double *)data)[index];
    case KKT_I32:
        return (double)((const int32_t *)data)[index];
    case KKT_I64:
        return (double)((const int64_t *)data)[index];
    case KKT_DTYPE_COUNT:
        break;
    }
    return NAN;
}

/* Nearest integer within [low, high]; NaN gives 0. `high_edge` is the first double above. */
static int64_t to_integer(double value, int64_t low, int64_t high, double high_edge) {
    if (isnan(value))
        return 0;
    double rounded = nearbyint(value);
    if (rounded >= high_edge)
        return high;
    return rounded < (double)low ? low : (int64_t)rounded;
}

void kkt_dtype_store(kkt_dtype dtype, void *data, size_t index, double value) {
    switch (dtype) {
    case KKT_BF16:
        ((uint16_t *)data)[index] = kkt_bf16_from_double(value);
        break;
    case KKT_FP16:
        ((uint16_t *)data)[index] = kkt_half_from_double(value);
        break;
    case KKT_FP32:
        ((float *)data)[index] = (float)value;
        break;
    case KKT_FP64:
        ((double *)data)[index] = value;
        break;
    case KKT_I32:
        ((int32_t *)data)[index] = (int32_t)to_integer(value, INT32_MIN, INT32_MAX, 0x1p31);
        break;
    case KKT_I64:
        ((int64_t *)data)[index] = to_integer(value, INT64_MIN, INT64_MAX, 0x1p63);
        break;
    case KKT_DTYPE_COUNT:
        break;
    }
}
