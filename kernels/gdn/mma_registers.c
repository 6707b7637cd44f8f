/* Registers of the fragment and pipelined styles: whether one spills, and what the footprint says
 * of both. */
#include "kernels/gdn/mma_registers.h"

#include <math.h>

enum { LIMITS = 3, MOST = 255 };

kkt_gdn_isa kkt_gdn_isa_of(const kkt_arch *arch) {
    return arch->major >= 12   ? KKT_GDN_ISA_120
           : arch->major >= 10 ? KKT_GDN_ISA_100
           : arch->major >= 9  ? KKT_GDN_ISA_90
                               : KKT_GDN_ISA_80;
}

/* Registers that launch bounds leave a thread, of the 65,536 that an SM has: with the numbers of
 * threads and blocks that there are, 128, 168 or none below MOST. */
static int64_t limit_of(const kkt_gdn_mma *m) {
    const int64_t left = 65536 / ((m->min_blocks > 0 ? m->min_blocks : 1) * m->threads) / 8 * 8;
    return left < MOST ? left : MOST;
}

/* What may be live (mma_live.c) at each limit: up to `fits` nothing spills, above `spills` it
 * does. Between the two some variants spill a few bytes and some do not: the more it may take, the
 * more loads the compiler brings forward, and it decides that before it assigns registers. */
typedef struct bounds {
    short fits[LIMITS], spills[LIMITS]; /* of 128, 168 and 255 registers */
} bounds;

/* The pipelined style by how V' comes of X; the fragment style by where its tables are, and whether
 * T is given. */
enum { INVERSE, SUBSTITUTION, GIVEN_T, REGISTERS, REGISTERS_T, SHARED, SHARED_T, KINDS };

/* By those that came nearest, of 2,339 variants for sm_90a, 680 for sm_80 and sm_89, and 1,260 for
 * sm_100 and sm_120, but for single ones far off. Where there are fewer, the solvers of the
 * pipelined style share theirs. */
static const bounds chain_before_90 = {.fits = {89, 118, 184}, .spills = {105, 133, 217}};
static const bounds chain_from_100 = {.fits = {96, 107, 178}, .spills = {105, 147, 223}};
static const bounds registers_t_to_90 = {.fits = {87, 138, 263}, .spills = {114, 145, 269}};
static const bounds shared_to_90 = {.fits = {98, 104, 175}, .spills = {119, 144, 215}};

static const bounds *const before_90[KINDS] = {
    [INVERSE] = &chain_before_90,
    [SUBSTITUTION] = &chain_before_90,
    [GIVEN_T] = &chain_before_90,
    [REGISTERS] = &(const bounds){.fits = {123, 162, 268}, .spills = {130, 173, 304}},
    [REGISTERS_T] = &registers_t_to_90,
    [SHARED] = &shared_to_90,
    [SHARED_T] = &(const bounds){.fits = {75, 111, 160}, .spills = {81, 119, 195}},
};
static const bounds *const of_90[KINDS] = {
    [INVERSE] = &(const bounds){.fits = {102, 128, 192}, .spills = {105, 133, 213}},
    [SUBSTITUTION] = &(const bounds){.fits = {102, 138, 187}, .spills = {105, 145, 216}},
    [GIVEN_T] = &(const bounds){.fits = {102, 110, 184}, .spills = {110, 132, 216}},
    [REGISTERS] = &(const bounds){.fits = {123, 162, 272}, .spills = {130, 173, 276}},
    [REGISTERS_T] = &registers_t_to_90,
    [SHARED] = &shared_to_90,
    [SHARED_T] = &(const bounds){.fits = {79, 111, 150}, .spills = {81, 119, 195}},
};
static const bounds *const from_100[KINDS] = {
    [INVERSE] = &chain_from_100,
    [SUBSTITUTION] = &chain_from_100,
    [GIVEN_T] = &chain_from_100,
    [REGISTERS] = &(const bounds){.fits = {123, 160, 278}, .spills = {150, 212, 297}},
    [REGISTERS_T] = &(const bounds){.fits = {87, 137, 274}, .spills = {122, 185, 300}},
    [SHARED] = &(const bounds){.fits = {65, 104, 162}, .spills = {119, 147, 215}},
    [SHARED_T] = &(const bounds){.fits = {49, 111, 160}, .spills = {92, 128, 195}},
};
static const bounds *const *const bounds_of[KKT_GDN_ISA_COUNT] = {
    [KKT_GDN_ISA_80] = before_90,
    [KKT_GDN_ISA_90] = of_90,
    [KKT_GDN_ISA_100] = from_100,
    [KKT_GDN_ISA_120] = from_100,
};

/* What would take so many of 255 registers may spill, however little is live, in the pipelined
 * style; from sm_100 on nothing is expected to take so many. */
enum { FAR_ABOVE_THE_MOST = 264 };

static bool is_chain(int kind) {
    return kind == INVERSE || kind == SUBSTITUTION || kind == GIVEN_T;
}

static void set_registers(kkt_footprint *fp, const kkt_gdn_mma *m, const kkt_gdn_mma_form *f,
                          int kind, double live, double taken) {
    const bounds *b = bounds_of[f->isa][kind];
    const int64_t limit = limit_of(m);
    const int at = limit < 168 ? 0 : limit < MOST ? 1 : 2;
    kkt_role *role = &fp->roles[0];
    role->least_registers = (double)limit + live - b->spills[at];
    role->enough_registers = (double)limit + live - b->fits[at];
    if (is_chain(kind) && at == 2 && taken >= FAR_ABOVE_THE_MOST)
        role->enough_registers = fmax(role->enough_registers, MOST + 1);
    const bool spills = role->least_registers > (double)limit; /* then it has taken all there is */
    kkt_gdn_registers_taken(fp, 0, spills ? fmax(taken, role->least_registers) : taken);
}

void kkt_gdn_mma_chain_demand(kkt_footprint *fp, const kkt_gdn_mma *m, const kkt_gdn_mma_form *f) {
    const int kind = m->given_t ? GIVEN_T : f->substitute ? SUBSTITUTION : INVERSE;
    set_registers(fp, m, f, kind, kkt_gdn_mma_chain_live(m, f), kkt_gdn_mma_chain_taken(m, f));
}

void kkt_gdn_mma_rows_demand(kkt_footprint *fp, const kkt_gdn_mma *m, const kkt_gdn_mma_form *f) {
    const int in_registers = m->given_t ? REGISTERS_T : REGISTERS;
    const int in_shared = m->given_t ? SHARED_T : SHARED;
    const int kind = f->in_shared ? in_shared : in_registers;
    set_registers(fp, m, f, kind, kkt_gdn_mma_rows_live(m, f), kkt_gdn_mma_rows_taken(m, f));
}
