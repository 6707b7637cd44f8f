/* The warp-specialized style of gemm on the host: its parameters, what may be combined, and the
 * sizes that follow. gemm_warp_specialized.cu draws the roles, ws_layout.cuh the shared memory. */
#ifndef KKT_KERNELS_GEMM_WARP_SPECIALIZED_H
#define KKT_KERNELS_GEMM_WARP_SPECIALIZED_H

#include "kernels/gemm/gemm.h"

/* Parameters that follow the common ones. */
enum {
    KKT_GEMM_WS_STAGES = KKT_GEMM_COMMON,
    KKT_GEMM_WS_CLUSTER_M,
    KKT_GEMM_WS_CLUSTER_N,
    KKT_GEMM_WS_CLUSTER_K,
    KKT_GEMM_WS_CONSUMERS,
    KKT_GEMM_WS_STORE,
    KKT_GEMM_WS_STORE_PANELS,
    KKT_GEMM_WS_RASTER,
    KKT_GEMM_WS_PROMOTION,
    KKT_GEMM_WS_PERSISTENT,
    KKT_GEMM_WS_REGISTERS,
    KKT_GEMM_WS_PARAMS
};

enum {
    KKT_GEMM_WARPGROUP = 128,
    KKT_GEMM_WS_GROUPS = 2, /* warpgroups that multiply; one more loads */
    KKT_GEMM_WS_THREADS = KKT_GEMM_WARPGROUP * (KKT_GEMM_WS_GROUPS + 1),
    KKT_GEMM_PANEL = 64 /* columns of 2 bytes in a swizzled row of 128 bytes; wgmma's rows */
};

/* A configuration's derived sizes. */
typedef struct kkt_gemm_ws {
    int64_t bm, bn, bk, stages, store_panels, promotion, raster;
    int64_t registers, load_registers; /* of a thread that multiplies, and of one that loads */
    int64_t split_k, cluster_m, cluster_n, cluster_k, cluster;
    bool ping_pong, bulk_store, persistent, a_along_k, b_along_k;
    int64_t group_rows;    /* of the tile, a warpgroup's */
    int64_t rows, columns; /* of tiles of a cluster */
    int64_t resident;      /* blocks that the device holds at a time, in whole clusters */
    int64_t tiles;         /* of a block, in the whole grid, part after part of split_k */
    int64_t grid;          /* blocks */
    int64_t k_steps;       /* along all of k */
    int64_t steps;         /* of a block's tile */
} kkt_gemm_ws;

extern const kkt_param kkt_gemm_ws_params[KKT_GEMM_WS_PARAMS];

kkt_gemm_ws kkt_gemm_ws_sizes(const kkt_values *problem, const kkt_values *config,
                              const kkt_arch *arch);
bool kkt_gemm_ws_applicable(const kkt_values *problem, const kkt_values *config,
                            const kkt_arch *arch, char *reason, size_t size);

#endif
