/* What the write styles of gdn_fwd and gdn_fwd_t share: a block takes one sequence, one value head
 * and block_dv columns of the state, and walks the chunks one after the other. What differs between
 * the styles is where the C x C tables live:
 *
 *   fragment          Gamma, A and its masked copy in registers (C^2/threads each), the state too
 *   pipelined         operands in a shared ring, one C x C table and the accumulators in registers
 *   warp_specialized  everything in shared memory, double-buffered; four warpgroups by role
 *
 * Each style of each family is a file of its own and exports its descriptor. */
#ifndef KKT_KERNELS_GDN_FUSED_H
#define KKT_KERNELS_GDN_FUSED_H

#include "kernels/gdn/gdn.h"

extern const kkt_variant kkt_gdn_fwd_fragment;
extern const kkt_variant kkt_gdn_fwd_pipelined;
extern const kkt_variant kkt_gdn_fwd_warp_specialized;
extern const kkt_variant kkt_gdn_fwd_t_fragment;
extern const kkt_variant kkt_gdn_fwd_t_pipelined;
extern const kkt_variant kkt_gdn_fwd_t_warp_specialized;
extern const kkt_variant kkt_gdn_fwd_t_context_parallel;

/* What a style says of itself to the model's common part. */
typedef struct kkt_gdn_style {
    kkt_style_id style;
    bool given_t;     /* gdn_fwd_t: T is read, not computed */
    int64_t block_dv; /* columns of a block */
    int64_t threads;
    int products; /* of a chunk that wait for one another on the longest path */
} kkt_gdn_style;

/* Grid, traffic, work and dependent steps, the same in all styles. Buffers, roles and counts of
 * instructions are the style's. */
void kkt_gdn_fused_footprint(const kkt_values *problem, int64_t chunk, const kkt_gdn_style *style,
                             kkt_footprint *out);
/* Shared-memory passes and instructions, estimated from the tiles: for styles without counts. */
void kkt_gdn_estimate_instructions(kkt_footprint *fp, bool wgmma);

#endif
