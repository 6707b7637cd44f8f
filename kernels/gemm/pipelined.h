/* The parameters and the footprint that the pipelined and the materialized style share: a ring of
 * tiles in shared memory (mainloop.cuh). */
#ifndef KKT_KERNELS_GEMM_PIPELINED_H
#define KKT_KERNELS_GEMM_PIPELINED_H

#include "kernels/gemm/mma.h"

enum {
    KKT_GEMM_STAGES = KKT_GEMM_MMA_COMMON,
    KKT_GEMM_SWIZZLE,
    KKT_GEMM_RASTER,
    KKT_GEMM_MIN_BLOCKS,
    KKT_GEMM_RING_PARAMS
};

enum { KKT_GEMM_STORE_DIRECT, KKT_GEMM_STORE_STAGED };

bool kkt_gemm_ring_applicable(const kkt_values *problem, const kkt_values *config,
                              const kkt_arch *arch, char *reason, size_t size);
/* Everything but how c is stored. */
void kkt_gemm_ring_footprint(const kkt_values *problem, const kkt_values *config,
                             const kkt_arch *arch, kkt_style_id style, kkt_footprint *out);

#endif
