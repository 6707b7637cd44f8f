/* The family of candidates that misbehave on purpose. */
#ifndef KKT_TEST_FAULTY_H
#define KKT_TEST_FAULTY_H

#include "kernels/kernel.h"

extern const kkt_kernel kkt_kernel_faulty;

#endif
