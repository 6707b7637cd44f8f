/* What the styles that multiply with mma.sync share on the host: the sizes of a block's tile and of
 * its warps' shares, tables and tiles as buffers, and the work. */
#ifndef KKT_KERNELS_GEMM_MMA_H
#define KKT_KERNELS_GEMM_MMA_H

#include "kernels/gemm/gemm.h"

/* The parameters that follow the common ones. */
enum { KKT_GEMM_WARPS_M = KKT_GEMM_COMMON, KKT_GEMM_WARPS_N, KKT_GEMM_MMA_COMMON };

/* A block's sizes. */
typedef struct kkt_gemm_mma {
    int64_t bm, bn, bk;
    int64_t warps, threads;
    int64_t strips, columns; /* of 16 rows and of 16 columns, a warp */
    int64_t depth;           /* of 16 terms, a step */
    int64_t steps;           /* along k, a block */
    int64_t blocks;
    bool a_along_k, b_along_k;
} kkt_gemm_mma;

kkt_gemm_mma kkt_gemm_mma_sizes(const kkt_values *problem, const kkt_values *config);
/* Beyond kkt_gemm_applicable: whole operands a warp, and registers for its sums. */
bool kkt_gemm_mma_applicable(const kkt_values *problem, const kkt_values *config,
                             const kkt_arch *arch, char *reason, size_t size);
/* A table of 32-bit registers, so many a thread. */
void kkt_gemm_mma_registers(const kkt_gemm_mma *g, const char *name, int64_t registers,
                            kkt_footprint *out);
/* The tile of a (or b) in shared memory, its rows padded by 16 bytes unless swizzled. */
void kkt_gemm_mma_tile(const kkt_gemm_mma *g, bool is_a, bool swizzled, int64_t stages,
                       kkt_footprint *out);
/* How an operand's tile comes to the warps: from registers, or through shared memory. */
typedef enum kkt_gemm_way { KKT_GEMM_REGISTERS, KKT_GEMM_SWIZZLED, KKT_GEMM_PADDED } kkt_gemm_way;

/* Products; instructions and passes of the shared-memory pipe of operands that lie in shared
 * memory: copied there once a step, read by each warp. */
void kkt_gemm_mma_work(const kkt_gemm_mma *g, kkt_gemm_way a, kkt_gemm_way b, kkt_footprint *out);
/* Instructions and passes of the store of C (or of a part's sums): through shared memory, or from
 * registers. */
void kkt_gemm_mma_store(const kkt_gemm_mma *g, bool staged, kkt_footprint *out);
/* The dependent steps of one step along k, whose copies are asked for `stages` - 1 steps ahead:
 * what the products leave visible of a copy, barriers, the products. */
void kkt_gemm_mma_chain(const kkt_gemm_mma *g, const kkt_arch *arch, int64_t stages,
                        kkt_footprint *out);
/* Begins a plan with the launch of a style's product: `entry` with the operands as its arguments,
 * to which the caller adds where the sums go. */
kkt_launch *kkt_gemm_mma_plan(const kkt_values *problem, const kkt_footprint *footprint,
                              const char *entry, kkt_plan *out);

#endif
