/* A family for the tests of library calls: c = a b of fp32 matrices, by cuBLAS alone. */
#ifndef KKT_TESTS_PRODUCT_H
#define KKT_TESTS_PRODUCT_H

#include "kernels/kernel.h"

enum { PRODUCT_ROUTINE, PRODUCT_CHOICE, PRODUCT_AROUND, PRODUCT_PARAMS };
enum { PRODUCT_GEMM, PRODUCT_LT, PRODUCT_UNKNOWN };

extern const kkt_kernel product_kernel;
kkt_status product_lookup(const char *name, const kkt_kernel **out, kkt_error *err);

#endif
