/* What the families that go through HBM between their steps share. Each has one style, whose
 * descriptor is a file of its own. */
#ifndef KKT_KERNELS_GDN_MATERIALIZED_H
#define KKT_KERNELS_GDN_MATERIALIZED_H

#include "kernels/gdn/gdn.h"

extern const kkt_variant kkt_gdn_wu_materialized;
extern const kkt_variant kkt_gdn_state_materialized;
extern const kkt_variant kkt_gdn_output_materialized;

/* Parts that are a chunk of a value head, and their region in w, u or o. */
int64_t kkt_gdn_chunk_part_count(const kkt_values *problem, int64_t chunk,
                                 kkt_host_tensors *inputs);
kkt_region kkt_gdn_chunk_region(const kkt_shape *shape, const kkt_chunk_part *part, int tensor,
                                int64_t columns);
/* The region of a sequence's slots in h. */
kkt_region kkt_gdn_slots_region(const kkt_values *problem, int64_t chunk, kkt_host_tensors *inputs,
                                const kkt_gdn_part *part, int tensor);

/* A plan of one launch: the footprint's blocks, `x` of them side by side for each of the others,
 * and its threads and shared memory. Arguments are still to be added. */
kkt_launch *kkt_gdn_plan_begin(const char *entry, const kkt_footprint *footprint, int64_t x,
                               kkt_plan *out);

#endif
