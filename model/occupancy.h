/* Blocks per SM, exactly as the CUDA occupancy calculator gives them (docs/model.md, section 5;
 * checked against the toolkit's cuda_occupancy.h). */
#ifndef KKT_MODEL_OCCUPANCY_H
#define KKT_MODEL_OCCUPANCY_H

#include <stdint.h>

#include "base/error.h"
#include "model/arch.h"

typedef enum kkt_limiter {
    KKT_LIMIT_REGISTERS,
    KKT_LIMIT_SHARED_MEMORY,
    KKT_LIMIT_THREADS,
    KKT_LIMIT_BLOCKS,
    KKT_LIMIT_BARRIERS,
    KKT_LIMIT_HBM, /* from here: what takes the time */
    KKT_LIMIT_L2,
    KKT_LIMIT_SHARED_BANDWIDTH,
    KKT_LIMIT_TENSOR,
    KKT_LIMIT_FP32,
    KKT_LIMIT_ISSUE,
    KKT_LIMIT_LATENCY,
    KKT_LIMIT_COUNT
} kkt_limiter;

#define KKT_OCCUPANCY_LIMITS 5 /* registers .. barriers */

typedef struct kkt_occupancy_request {
    int threads;          /* per block, 1..1024 */
    int registers;        /* per thread, 1..255, as allocated at launch */
    int64_t dynamic_smem; /* bytes */
    int64_t static_smem;  /* bytes, the driver's reserve not included */
    int barriers;         /* named barriers per block; 0 counts as 1 */
} kkt_occupancy_request;

typedef struct kkt_occupancy {
    int blocks_per_sm;
    int warps_per_sm;
    kkt_limiter limiter;              /* the smallest; ties in the order of the enum */
    int limits[KKT_OCCUPANCY_LIMITS]; /* blocks per SM that each alone would allow */
} kkt_occupancy;

/* Never fails: what does not fit gives 0 blocks. The request must be within the ranges above. */
void kkt_occupancy_compute(const kkt_arch *arch, const kkt_occupancy_request *request,
                           kkt_occupancy *out);
/* The same with the ranges checked (KKT_ERR_INPUT names the value and its range). */
kkt_status kkt_occupancy_checked(const kkt_arch *arch, const kkt_occupancy_request *request,
                                 kkt_occupancy *out, kkt_error *err);
const char *kkt_limiter_name(kkt_limiter limiter); /* "shared_memory", "hbm", ... */

#endif
