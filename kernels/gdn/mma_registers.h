/* Registers that the compiler takes for a variant of the fragment or pipelined style. */
#ifndef KKT_KERNELS_GDN_MMA_REGISTERS_H
#define KKT_KERNELS_GDN_MMA_REGISTERS_H

#include "kernels/gdn/mma.h"

/* Most registers that are live at one point of a chunk, a thread (mma_live.c). */
int64_t kkt_gdn_mma_chain_live(const kkt_gdn_mma *m, int64_t stages, bool substitute);
int64_t kkt_gdn_mma_rows_live(const kkt_gdn_mma *m, bool in_shared, bool substitute);

/* Fill what the footprint's one role takes beyond the tables already listed, and with how many it
 * spills. */
void kkt_gdn_mma_chain_demand(kkt_footprint *fp, const kkt_gdn_mma *m, int64_t stages,
                              bool substitute);
void kkt_gdn_mma_row_demand(kkt_footprint *fp, const kkt_gdn_mma *m, bool in_shared,
                            bool substitute);

#endif
