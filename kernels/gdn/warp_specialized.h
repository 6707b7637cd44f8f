/* The warp-specialized style of gdn_fwd_t and gdn_fwd: one kernel, but that the latter (`fused`)
 * has a warpgroup which solves for T. Parameters, constraints, footprint and plan are the same
 * functions.
 */
#ifndef KKT_KERNELS_GDN_WARP_SPECIALIZED_H
#define KKT_KERNELS_GDN_WARP_SPECIALIZED_H

#include "kernels/gdn/fused.h"

/* `solve`, the last, is gdn_fwd's alone. */
enum { KKT_GDN_WS_PARAMS = 9 };
extern const kkt_param kkt_gdn_ws_params[KKT_GDN_WS_PARAMS];

/* A family's tensors by index, and its entry. */
typedef struct kkt_gdn_ws_tensors {
    const char *entry;
    int q, k, v, beta, g, h0, cu_seqlens, o, ht;
    int t; /* below 0: T is computed */
} kkt_gdn_ws_tensors;
/* Those of gdn_fwd_t, which both of its styles hand to such a launch. */
extern const kkt_gdn_ws_tensors kkt_gdn_fwd_t_ws_tensors;

/* The device headers that both include, for lists of sources. */
#define KKT_GDN_WS_HEADERS                                                                         \
    "device/convert.cuh", "device/dependent_launch.cuh", "device/fragment.cuh", "device/gate.cuh", \
        "device/matrix_move.cuh", "device/mbarrier.cuh", "device/mma_sync.cuh",                    \
        "device/swizzle.cuh", "device/tensor_map.cuh", "device/types.cuh",                         \
        "device/warp_roles.cuh", "device/wgmma.cuh", "device/wgmma_registers.cuh",                 \
        "gdn/ws_block.cuh", "gdn/ws_layout.cuh", "gdn/ws_output.cuh", "gdn/ws_parameters.cuh",     \
        "gdn/ws_scores.cuh", "gdn/ws_service.cuh", "gdn/ws_state.cuh", "gdn/ws_state_chain.cuh",   \
        "gdn/ws_state_output.cuh", "gdn/ws_state_shared.cuh", "gdn/ws_work.cuh"

extern const char *const kkt_gdn_ws_row_needs[]; /* kkt_variant.row_needs */
bool kkt_gdn_ws_applicable(const kkt_values *problem, const kkt_values *config,
                           const kkt_arch *arch, bool fused, char *reason, size_t size);
void kkt_gdn_ws_footprint(const kkt_values *problem, const kkt_values *config, bool fused,
                          kkt_footprint *out);
void kkt_gdn_ws_defines(const kkt_values *problem, const kkt_values *config, bool fused,
                        kkt_text *out);
void kkt_gdn_ws_plan(const kkt_values *problem, const kkt_values *config,
                     const kkt_gdn_ws_tensors *tensors, kkt_plan *out);

#endif
