/* Element types and their conversions on the host (round to nearest even; NaN stays NaN). */
#ifndef KKT_BASE_DTYPE_H
#define KKT_BASE_DTYPE_H

#include <stddef.h>
#include <stdint.h>

typedef enum kkt_dtype {
    KKT_BF16,
    KKT_FP16,
    KKT_FP32,
    KKT_FP64,
    KKT_I32,
    KKT_I64,
    KKT_DTYPE_COUNT
} kkt_dtype;

size_t kkt_dtype_bytes(kkt_dtype dtype);
const char *kkt_dtype_name(kkt_dtype dtype); /* "bf16", "fp16", "fp32", "fp64", "i32", "i64" */

double kkt_half_to_double(uint16_t bits);
double kkt_bf16_to_double(uint16_t bits);
uint16_t kkt_half_from_double(double value);
uint16_t kkt_bf16_from_double(double value);

/* Element `index` of an array of `dtype`, as a double; and the reverse, rounded. */
double kkt_dtype_load(kkt_dtype dtype, const void *data, size_t index);
void kkt_dtype_store(kkt_dtype dtype, void *data, size_t index, double value);

#endif
