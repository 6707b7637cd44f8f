/* A footprint and an architecture in, resources, occupancy, limiter, lower bound and time out.
 * Formulas: docs/model.md, sections 4 to 7. Pure arithmetic: no allocation, no state. */
#ifndef KKT_MODEL_PREDICT_H
#define KKT_MODEL_PREDICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/arch.h"
#include "model/footprint.h"
#include "model/occupancy.h"

typedef enum kkt_infeasible {
    KKT_FEASIBLE,
    KKT_TOO_MUCH_SMEM,     /* above the opt-in limit of a block */
    KKT_TOO_MANY_THREADS,  /* above 1024 */
    KKT_TOO_MANY_REGISTERS /* declared registers x threads above the SM's file */
} kkt_infeasible;

/* Most that a thread spills, bytes of stores, where it has about as many registers as it wants: in
 * compiled variants (docs/model.md, section 4). */
#define KKT_CAP_SPILL_BYTES 200

typedef struct kkt_prediction {
    double table_registers; /* per thread, the register tables alone (not rounded); the largest
                               of the roles */
    double register_demand; /* per thread: tables, operands in flight, the style's overhead */
    int registers;          /* per thread as allocated at launch; at most 255 */
    bool spills;            /* it wants more than a thread may have (255, or less by the launch
                               bounds or a role's declaration) */
    bool at_the_cap;        /* it has about what it wants: it spills KKT_CAP_SPILL_BYTES at most, or
                               nothing; which of them no footprint tells */
    int64_t smem_bytes;     /* static + dynamic, the driver's reserve not included */
    int64_t dynamic_smem_bytes;
    int64_t most_smem_bytes; /* smem_bytes, or of another launch of the plan that takes more: what
                                a block must be allowed */
    double hbm_bytes;        /* read + written */
    double hbm_bytes_per_token; /* all heads */
    kkt_occupancy occupancy;
    kkt_infeasible infeasible;
    kkt_limiter limiter;   /* what takes the time; for an infeasible one what stops it */
    double chain_steps;    /* dependent steps of a chunk's inverse: substitution and couplings */
    double lower_bound_us; /* never above a measured time; infinite for an infeasible one */
    double predicted_us;   /* infinite for an infeasible one */
    bool calibrated;       /* the constants were fitted on measurements of this device */
} kkt_prediction;

/* Constants of the time model: what is reached of each peak, and latencies. */
typedef struct kkt_time_constants {
    double hbm_efficiency;   /* share of the theoretical peak that a copy reaches */
    double l2_efficiency;    /* of the SMs' ports to L2 */
    double wgmma_efficiency; /* of the shared-memory pipe, by wgmma alone */
    double smem_efficiency, tensor_efficiency, fp32_efficiency, issue_efficiency;
    double counted_issue_efficiency; /* where a footprint says instruction_cycles */
    double launch_us;      /* an empty launch, and what starting and draining the SMs adds */
    double start_share;    /* of the first round of blocks that come and go, four an SM */
    double run_cost_bytes; /* what beginning a run of neighbouring bytes costs memory, in bytes */
    double load_latency_cycles;
    double line_cycles; /* that a line's place in L1 is taken until it is there, all SMs loading */
    double step_cycles[KKT_STEP_KIND_COUNT]; /* latency of one dependent step */
    double fma_cycles;                       /* of each element of a step's chain */
    double instruction_cycles; /* from one instruction of a warp to its next, at 64 registers a
                                  thread; with more registers more of them are independent */
    double partition_exponent; /* n warps of a partition take n to this from one instruction to the
                                  next, where a footprint says instruction_cycles */
    double spill_instructions; /* of a register that does not fit, a chunk, waiting counted in */
    double squeeze_instructions; /* the same of one that the compiler does without where it is held
                                    to fewer, and yet does not spill */
    double overlap;              /* exponent p of (sum of t^p)^(1/p): infinite where resources
                                    overlap wholly, 1 where each waits for the others */
    bool calibrated;             /* fitted on measurements of this very device */
    const char *source;          /* one line: where they come from */
} kkt_time_constants;

void kkt_time_defaults(const kkt_arch *arch, const kkt_device *device, kkt_time_constants *out);

/* `constants` NULL: the defaults. */
void kkt_predict(const kkt_footprint *footprint, const kkt_arch *arch, const kkt_device *device,
                 const kkt_time_constants *constants, kkt_prediction *out);

/* The two times alone, from a prediction whose resources are already filled in (time.c). */
void kkt_time_predict(const kkt_footprint *footprint, const kkt_arch *arch,
                      const kkt_device *device, const kkt_time_constants *constants,
                      kkt_prediction *prediction);

/* One sentence with the numbers: why it cannot launch, or what limits it and by how much. */
void kkt_prediction_reason(const kkt_footprint *footprint, const kkt_arch *arch,
                           const kkt_device *device, const kkt_prediction *prediction, char *out,
                           size_t size);

#endif
