/* Integer arithmetic that more than one file needs. */
#ifndef KKT_BASE_INTEGER_H
#define KKT_BASE_INTEGER_H

#include <stdint.h>

/* a / b, rounded up; a >= 0 and b > 0. */
static inline int64_t kkt_divide_up(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

#endif
