/* What the fragment and pipelined styles of gdn_fwd and gdn_fwd_t share on the host: how a block's
 * work is cut into 16 x 16 operands of mma.sync, the tiles in shared memory, the launch. Device
 * code asserts that it lays out as many bytes as the buffers listed here. */
#ifndef KKT_KERNELS_GDN_MMA_H
#define KKT_KERNELS_GDN_MMA_H

#include "kernels/gdn/fused.h"

/* A block's sizes. */
typedef struct kkt_gdn_mma {
    int64_t chunk, dk, dv, block_dv, threads, min_blocks;
    int64_t warps;
    int64_t strips; /* of 16 tokens, a chunk */
    int64_t blocks; /* 16 x 16, on and below the diagonal of a chunk's tables */
    bool given_t;
} kkt_gdn_mma;

kkt_gdn_mma kkt_gdn_mma_sizes(const kkt_values *problem, int64_t chunk, int64_t block_dv,
                              int64_t threads, int64_t min_blocks, bool given_t);

/* Of warps that share `strips` of 16 rows in the fragment style, how many have rows of their own;
 * the others have other columns of these. */
int64_t kkt_gdn_mma_row_warps(const kkt_gdn_mma *m, int64_t strips);
/* Whether the architecture has the instructions and block_dv divides dv. */
bool kkt_gdn_mma_applicable(const kkt_values *problem, const kkt_gdn_mma *m, const kkt_arch *arch,
                            char *reason, size_t size);
/* Whether the pipelined style's warps have whole rows of the transposed state, and registers for
 * them. */
bool kkt_gdn_mma_chain_fits(const kkt_gdn_mma *m, char *reason, size_t size);
/* Whether the fragment style's warps have whole operands, and registers for the state and for a
 * table. */
bool kkt_gdn_mma_rows_fit(const kkt_gdn_mma *m, char *reason, size_t size);
/* Grid, traffic and dependent steps; T counts as far as it is read, on and below the diagonal. */
void kkt_gdn_mma_footprint(const kkt_values *problem, const kkt_gdn_mma *m, kkt_style_id style,
                           kkt_footprint *out);
/* Buffers: a chunk x columns tile with its rows padded, as many copies as stages. */
void kkt_gdn_mma_tile(kkt_footprint *fp, const char *name, int64_t rows, int64_t columns,
                      int64_t stages);
/* Blocks on and below the diagonal. */
void kkt_gdn_mma_blocks(kkt_footprint *fp, const kkt_gdn_mma *m, const char *name, int64_t stages);
void kkt_gdn_mma_gates(kkt_footprint *fp, const kkt_gdn_mma *m, int64_t copies);
/* The triangular system: blocks below the diagonal, diagonal inverses, scratch a warp. */
void kkt_gdn_mma_triangle(kkt_footprint *fp, const kkt_gdn_mma *m);
/* The fragment style's tiles. */
void kkt_gdn_mma_row_tiles(kkt_footprint *fp, const kkt_gdn_mma *m);
/* Tables in registers, and what the compiler takes beyond them. */
void kkt_gdn_mma_chain_registers(kkt_footprint *fp, const kkt_gdn_mma *m, const kkt_arch *arch,
                                 int64_t stages, bool substitute);
void kkt_gdn_mma_row_registers(kkt_footprint *fp, const kkt_gdn_mma *m, const kkt_arch *arch,
                               bool in_shared, bool substitute);
/* -D options and the launch of the entry point, whose arguments are the same in both styles. */
void kkt_gdn_mma_defines(const kkt_values *problem, const kkt_footprint *fp, bool given_t,
                         kkt_text *out);
void kkt_gdn_mma_plan(const kkt_values *problem, const kkt_footprint *fp, bool given_t,
                      kkt_plan *out);

/* The two styles. `given_t`: gdn_fwd_t, whose parameters are all but the last, `solve`. */
enum { KKT_GDN_MMA_PARAMS = 6 };
extern const kkt_param kkt_gdn_fragment_params[KKT_GDN_MMA_PARAMS];
extern const kkt_param kkt_gdn_pipelined_params[KKT_GDN_MMA_PARAMS];

bool kkt_gdn_fragment_applicable(const kkt_values *problem, const kkt_values *config,
                                 const kkt_arch *arch, bool given_t, char *reason, size_t size);
void kkt_gdn_fragment_footprint(const kkt_values *problem, const kkt_values *config,
                                const kkt_arch *arch, bool given_t, kkt_footprint *out);
bool kkt_gdn_pipelined_applicable(const kkt_values *problem, const kkt_values *config,
                                  const kkt_arch *arch, bool given_t, char *reason, size_t size);
void kkt_gdn_pipelined_footprint(const kkt_values *problem, const kkt_values *config,
                                 const kkt_arch *arch, bool given_t, kkt_footprint *out);

#endif
