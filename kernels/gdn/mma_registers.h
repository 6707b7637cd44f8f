/* Registers that the compiler takes for a variant of the fragment or pipelined style, and whether
 * it spills. */
#ifndef KKT_KERNELS_GDN_MMA_REGISTERS_H
#define KKT_KERNELS_GDN_MMA_REGISTERS_H

#include "kernels/gdn/mma.h"

/* Instruction sets for which the compiler keeps different things in registers. */
typedef enum kkt_gdn_isa {
    KKT_GDN_ISA_80,  /* sm_80 to sm_89 */
    KKT_GDN_ISA_90,  /* sm_90 */
    KKT_GDN_ISA_100, /* sm_100, sm_103 */
    KKT_GDN_ISA_120, /* sm_120 and later */
    KKT_GDN_ISA_COUNT
} kkt_gdn_isa;

kkt_gdn_isa kkt_gdn_isa_of(const kkt_arch *arch);

/* What a variant is compiled for, beside its sizes. */
typedef struct kkt_gdn_mma_form {
    kkt_gdn_isa isa;
    int64_t stages;  /* pipelined: slots of the ring */
    bool in_shared;  /* fragment: tables in shared memory */
    bool substitute; /* V' by substitution; not where T is given */
} kkt_gdn_mma_form;

/* Registers of a thread (fp32) that hold the state, and those that hold V' or O. */
double kkt_gdn_mma_state(const kkt_gdn_mma *m);
double kkt_gdn_mma_values(const kkt_gdn_mma *m);

/* How hard a chunk presses on a thread's registers: what is live at its worst point, weighed
 * (mma_live.c). */
double kkt_gdn_mma_chain_live(const kkt_gdn_mma *m, const kkt_gdn_mma_form *f);
double kkt_gdn_mma_rows_live(const kkt_gdn_mma *m, const kkt_gdn_mma_form *f);

/* Registers that the compiler takes where nothing limits it (mma_taken.c). Up to sm_90 that is
 * above 255 where it would take more; from sm_100 on it is never above 249. */
double kkt_gdn_mma_chain_taken(const kkt_gdn_mma *m, const kkt_gdn_mma_form *f);
double kkt_gdn_mma_rows_taken(const kkt_gdn_mma *m, const kkt_gdn_mma_form *f);

/* Fill what the footprint's one role takes beyond the tables already listed, and with how many it
 * spills. */
void kkt_gdn_mma_chain_demand(kkt_footprint *fp, const kkt_gdn_mma *m, const kkt_gdn_mma_form *f);
void kkt_gdn_mma_rows_demand(kkt_footprint *fp, const kkt_gdn_mma *m, const kkt_gdn_mma_form *f);

#endif
