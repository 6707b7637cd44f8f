/* Registers that the compiler takes for a variant of the fragment or pipelined style. */
#ifndef KKT_KERNELS_GDN_MMA_REGISTERS_H
#define KKT_KERNELS_GDN_MMA_REGISTERS_H

#include "kernels/gdn/mma.h"

/* Fill what the footprint's one role takes beyond the tables already listed. */
void kkt_gdn_mma_chain_demand(kkt_footprint *fp, const kkt_gdn_mma *m, int64_t stages);
void kkt_gdn_mma_row_demand(kkt_footprint *fp, const kkt_gdn_mma *m, bool in_shared,
                            bool substitute);

#endif
