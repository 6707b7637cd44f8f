/* What the families that go through HBM between their steps share. Each has one style, whose
 * descriptor is a file of its own. */
#ifndef KKT_KERNELS_GDN_MATERIALIZED_H
#define KKT_KERNELS_GDN_MATERIALIZED_H

#include "kernels/gdn/gdn.h"

/* As registers of a thread: more than any has, so that it spills or may; fewer than any has. */
enum { KKT_GDN_NEVER_ENOUGH = 256, KKT_GDN_ALWAYS_ENOUGH = 1 };

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

/* Warp instructions, of gdn_wu on an H200 by counters: of 32 units of 16 bytes that threads copy to
 * shared memory or write from there, with their addresses; of a warp for each chunk. */
#define KKT_GDN_UNIT_INSTRUCTIONS 33.0
#define KKT_GDN_CHUNK_INSTRUCTIONS 140.0
/* Cycles from one to the next of a warp in a block of `warps`, in kernels whose warps meet after
 * each of a few steps: the slowest of more warps is slower. Fitted to the times of gdn_wu. */
double kkt_gdn_meeting_cycles(int64_t warps);

/* A plan of one launch: the footprint's blocks, `x` of them side by side for each of the others,
 * and its threads and shared memory. Arguments are still to be added. */
kkt_launch *kkt_gdn_plan_begin(const char *entry, const kkt_footprint *footprint, int64_t x,
                               kkt_plan *out);

#endif
