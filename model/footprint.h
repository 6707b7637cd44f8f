/* A footprint is what a kernel says about one configuration on one problem, and all that the
 * model knows of a kernel: buffers, thread roles, dependent steps, traffic and work. The same
 * buffer list sizes the launch's dynamic shared memory, so nothing is encoded twice.
 *
 * Filling one is cheap (no allocation): the model makes a million predictions a second. */
#ifndef KKT_MODEL_FOOTPRINT_H
#define KKT_MODEL_FOOTPRINT_H

#include <stdbool.h>
#include <stdint.h>

#include "model/style.h"

#define KKT_FOOTPRINT_BUFFERS 24
#define KKT_FOOTPRINT_ROLES 6
#define KKT_FOOTPRINT_STEPS 12

typedef enum kkt_place { KKT_PLACE_REGISTER, KKT_PLACE_SHARED, KKT_PLACE_HBM } kkt_place;

typedef struct kkt_buffer {
    const char *name;
    kkt_place place;
    int64_t rows, columns; /* columns: with padding */
    int element_bytes;
    int stages;   /* copies of it (double buffering: 2); at least 1 */
    int role;     /* REGISTER: the role whose threads hold it, else 0 */
    int overlays; /* SHARED: 1 + index of the buffer whose space it reuses; 0: its own space */
} kkt_buffer;

/* Bytes of one buffer, all stages. */
static inline int64_t kkt_buffer_bytes(const kkt_buffer *buffer) {
    return buffer->rows * buffer->columns * buffer->element_bytes * buffer->stages;
}

typedef struct kkt_role {
    const char *name; /* "all", "producer", "state" */
    int threads;
    int declared_registers;  /* several roles: setmaxnreg; one: a compiler limit; 0: what the
                                compiler takes */
    double extra_registers;  /* beyond its tables and the style's overhead: unrolled operands */
    double least_registers;  /* with fewer it spills; 0: with fewer than it would take */
    double enough_registers; /* with as many it does not; with fewer, but the least, it may, by a
                                few bytes; 0: the least are enough */
} kkt_role;

typedef enum kkt_step_kind {
    KKT_STEP_GLOBAL_LOAD,  /* first use of a load from HBM */
    KKT_STEP_SUBSTITUTION, /* one row of forward substitution */
    KKT_STEP_COUPLING,     /* one block GEMM that the next step waits for (fp32 cores) */
    KKT_STEP_MMA,          /* the same on tensor cores */
    KKT_STEP_PRODUCT,      /* one dependent tensor-core product outside the inverse */
    KKT_STEP_BARRIER,      /* one block-wide barrier */
    KKT_STEP_STORE,        /* stores drained */
    KKT_STEP_KIND_COUNT
} kkt_step_kind;

typedef struct kkt_step {
    kkt_step_kind kind;
    double count;    /* how many of them depend on each other, per chunk */
    double elements; /* FMA of one step of one chain on one lane: its length in issue slots */
} kkt_step;

typedef struct kkt_footprint {
    kkt_style_id style;
    int chunk;                /* 0 where the kernel has none */
    int64_t tokens;           /* what per-token figures divide by; 1 where there are none */
    int64_t blocks;           /* of the grid, all launches */
    int64_t chunks_per_block; /* how often a block runs its chain; the one that does most often */
    double all_chunks;        /* how often all blocks do; 0: blocks x chunks_per_block */
    int threads;              /* per block */
    int cluster;              /* blocks of a cluster; 1: none */
    int barriers;             /* named barriers a block uses */
    int min_blocks;           /* __launch_bounds__' second argument; 0: none */
    int launches;
    int launch; /* of the plan: the one whose block the buffers, threads and roles below describe,
                   of which registers and occupancy are told */
    int64_t most_smem_bytes; /* dynamic, of the launch that takes most of it; 0: the buffers' */

    int buffer_count;
    kkt_buffer buffers[KKT_FOOTPRINT_BUFFERS];
    int role_count;
    kkt_role roles[KKT_FOOTPRINT_ROLES];
    int step_count;
    kkt_step steps[KKT_FOOTPRINT_STEPS];
    double wait_cycles; /* a chunk, of a warp that may not go on: for its own stores, for loads
                           that nothing hides, for a ring's refill; or of a block for a launch
                           that walks no chunks */
    double chain_wait_cycles;  /* of it, what lies in the chain of dependent steps, too */
    int64_t static_smem_bytes; /* beyond the buffers: barriers and small arrays declared static */

    /* Totals over the launch. */
    double hbm_read_bytes, hbm_write_bytes; /* each input once, or again where L2 cannot keep it;
                                               each output once */
    double hbm_again_bytes;                 /* of these, reads that are expected again: no bound */
    double run_bytes;                       /* that lie together of what a block reads at once; 0:
                                               too many to matter */
    double l2_read_bytes;                   /* what the blocks ask of L2, reuse included */
    double smem_wavefronts;                 /* 128-byte passes of the shared-memory pipe, all SMs */
    double wgmma_wavefronts;  /* the same by wgmma's operands, which no warp asks for */
    double global_wavefronts; /* its passes that counters of shared memory leave out: cp.async, and
                                 global loads and stores that touch several lines each */
    double l1_lines; /* of 128 bytes that loads keep a place in L1 for until they are there; those
                        that lie farther apart count as often as lines lie between */
    int carveout_percent;      /* of the SM's memory asked for as shared; 0: the driver's choice */
    double tensor_flop;        /* on tensor cores, bf16/fp16 rate */
    double mma_sync_flop;      /* the same, at the rate of mma.sync */
    double tf32_flop;          /* on tensor cores, tf32 rate (half of bf16) */
    double fp32_flop;          /* on CUDA cores, FMA counts two */
    double instructions;       /* warp instructions issued */
    double block_instructions; /* of the blocks that issue most, one launch after the other; 0: all
                                  blocks issue as many */
    int busy_warps;            /* of a block that issue nearly all of them; 0: all alike */
    double instruction_cycles; /* from one instruction of a warp to its next, where no other warp
                                  shares its partition of the SM: of kernels whose instructions
                                  were held against counters or times; 0: by registers */
} kkt_footprint;

/* Building blocks; they abort on overflow of the fixed arrays (a programming error). */
kkt_buffer *kkt_footprint_buffer(kkt_footprint *fp, kkt_place place, const char *name, int64_t rows,
                                 int64_t columns, int element_bytes);
kkt_role *kkt_footprint_role(kkt_footprint *fp, const char *name, int threads);
void kkt_footprint_step(kkt_footprint *fp, kkt_step_kind kind, double count, double elements);
/* Dynamic shared memory: the sum of the SHARED buffers that have their own space, each rounded
 * up to 16 bytes; an overlaying buffer needs no more than what it overlays (checked). */
int64_t kkt_footprint_smem_bytes(const kkt_footprint *fp);

#endif
