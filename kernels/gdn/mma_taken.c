/* Registers that the compiler takes for the fragment and pipelined styles where nothing limits it:
 * what stays (the state) and what a chunk makes (values), each about once, and beside them, by the
 * chunk, tables, operands in flight, addresses and factors. The numbers were fitted, by the least
 * sum of errors, to what NVRTC 13.0 compiled without a limit, for heads of 64, 96, 128 and 256:
 * 1,158 variants for sm_90a, 443 for sm_80 and sm_89, about 450 each for sm_100 and sm_120. */
#include "kernels/gdn/mma_registers.h"

#include <math.h>

enum { CHUNKS = KKT_GDN_CHUNKS, NEAR_THE_MOST = 249 };

/* Of the fragment style. Arrays: at chunks of 16, 32, 64, 128. */
typedef struct rows_fit {
    double state, values;      /* registers for one of the state, and of V' */
    short at[CHUNKS];          /* beside them */
    short substitute[CHUNKS];  /* more (or fewer) where V' is substituted */
    short two_warps[CHUNKS];   /* where two warps share the rows, ... */
    short eight_warps[CHUNKS]; /* ... or eight: of scores or tables each has more, or fewer */
    short least;               /* that any takes, for its copies; 0: not known */
} rows_fit;

/* Of the pipelined style; chunks of 128 take all that there is. */
typedef struct chain_fit {
    double state[CHUNKS], values;
    short at[CHUNKS], substitute[CHUNKS], given_t[CHUNKS], one_stage[CHUNKS];
    short two_warps[CHUNKS], eight_warps[CHUNKS];
    short two_warps_ahead; /* two warps at chunk 32, each of which makes two blocks of scores, and
                              loads a chunk ahead meanwhile */
    short two_warps_t;     /* these with T given, a ring of two slots and long heads: T's copies
                              come on top, all at once (four variants in tests/golden); 0
                              where one address and offsets do */
} chain_fit;

/* [given T] */
typedef struct fits {
    chain_fit chain;
    rows_fit in_registers[2], in_shared[2];
} fits;

static const fits table[KKT_GDN_ISA_COUNT] = {
    [KKT_GDN_ISA_80] = {.chain = {.state = {1.32, 1.36, 0.79, 1},
                                  .values = 1.05,
                                  .at = {84, 108, 175, 400},
                                  .given_t = {33, 14, 0, 0},
                                  .one_stage = {0, -16, -5, 0},
                                  .two_warps = {-16, -4, 0, 0},
                                  .eight_warps = {0, 0, -9, 0},
                                  .two_warps_ahead = 13,
                                  .two_warps_t = 40},
                        .in_registers = {{.state = 1.07,
                                          .values = 1.05,
                                          .at = {92, 121, 167, 233},
                                          .substitute = {0, -8, -7, 0},
                                          .two_warps = {0, 0, 19, 0}},
                                         {.state = 1.17,
                                          .values = 1.34,
                                          .at = {132, 111, 150, 224},
                                          .two_warps = {0, 0, 13, 0}}},
                        .in_shared = {{.state = 1.07,
                                       .values = 1.18,
                                       .at = {81, 107, 140, 219},
                                       .two_warps = {0, 0, 17, 0},
                                       .eight_warps = {-4, -5, -16, 0}},
                                      {.state = 1.11,
                                       .values = 1.9,
                                       .at = {70, 85, 103, 215},
                                       .two_warps = {0, 0, 16, 0},
                                       .eight_warps = {0, -6, -5, -26}}}},
    [KKT_GDN_ISA_90] = {.chain = {.state = {1.1, 1.15, 0.69, 1},
                                  .values = 0.88,
                                  .at = {89, 116, 195, 400},
                                  .substitute = {16, 11, 0, 0},
                                  .given_t = {25, 16, 0, 0},
                                  .one_stage = {-6, -12, -8, 0},
                                  .two_warps = {-4, 7, 0, 0},
                                  .eight_warps = {0, -4, -15, 0},
                                  .two_warps_ahead = 10,
                                  .two_warps_t = 18},
                        .in_registers = {{.state = 0.9,
                                          .values = 0.94,
                                          .at = {96, 120, 169, 233},
                                          .substitute = {4, -4, -4, 0},
                                          .two_warps = {0, 0, 20, 0},
                                          .least = 132},
                                         {.state = 1,
                                          .values = 1.43,
                                          .at = {120, 112, 155, 224},
                                          .two_warps = {0, 0, 13, 0}}},
                        .in_shared = {{.state = 0.98,
                                       .values = 0.56,
                                       .at = {83, 112, 146, 219},
                                       .substitute = {0, 0, 4, 0},
                                       .two_warps = {0, 0, 13, 0},
                                       .eight_warps = {-4, 0, -16, 0},
                                       .least = 122},
                                      {.state = 1.06,
                                       .values = 1.63,
                                       .at = {61, 79, 102, 215},
                                       .two_warps = {0, 0, 16, 0},
                                       .eight_warps = {5, 0, -5, -26},
                                       .least = 118}}},
    [KKT_GDN_ISA_100] =
        {.chain = {.state = {0.69, 0.74, 0.61, 1},
                   .values = 0.36,
                   .at = {145, 211, 214, 400},
                   .substitute = {5, 0, 13, 0},
                   .one_stage = {-12, -10, -14, 0},
                   .two_warps = {7, -19, 0, 0},
                   .two_warps_ahead = 11},
         .in_registers = {{.state = 0.55,
                           .values = 0.91,
                           .at = {142, 152, 176, 213},
                           .substitute = {-9, 0, 0, 0},
                           .two_warps = {0, 0, 26, 0}},
                          {.state = 1.06, .values = 1.16, .at = {152, 145, 190, 189}}},
         .in_shared = {{.state = 0.5,
                        .values = 0.47,
                        .at = {152, 175, 177, 205},
                        .substitute = {0, 4, 0, 0},
                        .two_warps = {5, -8, 14, 0}},
                       {.state = 0.67,
                        .values = 1.15,
                        .at = {119, 174, 157, 210},
                        .two_warps = {0, -16, 0, 0},
                        .eight_warps = {5, -14, -9, 0}}}},
    [KKT_GDN_ISA_120] = {.chain = {.state = {0.92, 0.85, 0.65, 1},
                                   .values = 0.22,
                                   .at = {115, 196, 218, 400},
                                   .substitute = {8, 0, 17, 0},
                                   .given_t = {7, 0, 11, 0},
                                   .one_stage = {-15, -15, -12, 0},
                                   .two_warps = {11, -11, -8, 0},
                                   .eight_warps = {0, -8, 0, 0},
                                   .two_warps_ahead = 3},
                         .in_registers = {{.state = 0.75,
                                           .values = 0.41,
                                           .at = {116, 145, 180, 213},
                                           .two_warps = {0, 0, 28, 0}},
                                          {.state = 1, .values = 0.97, .at = {142, 147, 195, 189}}},
                         .in_shared = {{.state = 0.78,
                                        .values = 0.37,
                                        .at = {113, 156, 160, 198},
                                        .substitute = {0, -7, 0, 0},
                                        .two_warps = {0, -7, 0, 0},
                                        .eight_warps = {0, -8, 4, 0}},
                                       {.state = 0.77,
                                        .values = 1.13,
                                        .at = {108, 162, 156, 209},
                                        .two_warps = {4, -18, -6, 0},
                                        .eight_warps = {6, -6, -7, 0}}}},
};

static short of_warps(const kkt_gdn_mma *m, const short *two, const short *eight) {
    const int at = kkt_gdn_chunk_index(m->chunk);
    return m->warps == 2 ? two[at] : m->warps == 8 ? eight[at] : (short)0;
}

/* From sm_100 on what does not spill stays a little below the most. */
static double below_the_most(const kkt_gdn_mma_form *f, double taken) {
    return f->isa >= KKT_GDN_ISA_100 ? fmin(taken, NEAR_THE_MOST) : taken;
}

/* ---- pipelined ---- */

/* The transposed state on its way from and to memory: an address of two registers beside each
 * element, as the compiler lays it out up to sm_90; later it has one address and offsets. */
enum { WITH_ADDRESS = 3, BESIDE_ADDRESSES = 9 };

/* 64 registers of the state take 201, the next larger states 297 and 393, more than there is: they
 * go in parts, and take what they do at the least by how V' comes of X. Of 143 variants for sm_80
 * to sm_90 with a state of 128, in tests/golden: 49 with T given, 54 substituted, 40 with the
 * inverse. */
enum { WHOLE_AT_MOST = 210, PARTS_GIVEN_T = 252, PARTS_SUBSTITUTE = 248, PARTS_INVERSE = 247 };

/* What comes beside the whole state on sm_90, small chunks and no inverse, hangs on how the output
 * of the last chunk is addressed. In tests/golden, states of 48 and 64: 24 variants with all
 * columns in a block, 22 with some, of more than 32, and 23 with 32 or fewer. */
enum { ALL_COLUMNS = 9, WIDE_COLUMNS = 21, NARROW = 32 };

static double state_addresses(const kkt_gdn_mma *m, const kkt_gdn_mma_form *f) {
    const double all = WITH_ADDRESS * kkt_gdn_mma_state(m) + BESIDE_ADDRESSES;
    if (f->isa >= KKT_GDN_ISA_100)
        return 0;
    if (all > WHOLE_AT_MOST)
        return fmin(all, m->given_t      ? PARTS_GIVEN_T
                         : f->substitute ? PARTS_SUBSTITUTE
                                         : PARTS_INVERSE);
    const bool small = m->chunk == 16 || (m->chunk == 32 && f->stages > 1);
    if (f->isa < KKT_GDN_ISA_90 || !small || !(m->given_t || f->substitute))
        return all;
    return all + (m->block_dv == m->dv ? ALL_COLUMNS : m->block_dv > NARROW ? WIDE_COLUMNS : 0);
}

double kkt_gdn_mma_chain_taken(const kkt_gdn_mma *m, const kkt_gdn_mma_form *f) {
    const chain_fit *c = &table[f->isa].chain;
    const int at = kkt_gdn_chunk_index(m->chunk);
    double chunk = c->at[at] + c->state[at] * kkt_gdn_mma_state(m) +
                   c->values * kkt_gdn_mma_values(m) + (f->substitute ? c->substitute[at] : 0) +
                   (m->given_t ? c->given_t[at] : 0) + (f->stages == 1 ? c->one_stage[at] : 0) +
                   of_warps(m, c->two_warps, c->eight_warps);
    if (m->warps == 2 && m->chunk == 32 && f->stages > 1)
        chunk += c->two_warps_ahead;
    if (m->warps == 2 && m->chunk == 32 && f->stages == 2 && m->given_t && m->dk >= 128)
        chunk += c->two_warps_t;
    if (m->chunk == 16)
        chunk = fmin(chunk, NEAR_THE_MOST);
    return below_the_most(f, fmax(chunk, state_addresses(m, f)));
}

/* ---- fragment ---- */

/* On sm_90, where T's rows are kept in registers at chunk 16: the state on its way with an address
 * of two registers for each pair of elements, and what goes beside it; all of it, or near. 20
 * variants in tests/golden. */
enum { WITH_HALF_ADDRESS = 2, BESIDE_HALF = 80, HALF_AT_MOST = 251 };

static double rows_addresses(const kkt_gdn_mma *m, const kkt_gdn_mma_form *f) {
    if (f->isa != KKT_GDN_ISA_90 || f->in_shared || !m->given_t || m->chunk != 16)
        return 0;
    return fmin(WITH_HALF_ADDRESS * kkt_gdn_mma_state(m) + BESIDE_HALF, HALF_AT_MOST);
}

double kkt_gdn_mma_rows_taken(const kkt_gdn_mma *m, const kkt_gdn_mma_form *f) {
    const rows_fit *r =
        &(f->in_shared ? table[f->isa].in_shared : table[f->isa].in_registers)[m->given_t];
    const int at = kkt_gdn_chunk_index(m->chunk);
    /* At chunk 128 with T given most is live while the scores are made, before V'. */
    const bool before_values = f->in_shared && m->given_t && m->chunk == 128;
    const double chunk = r->at[at] + r->state * kkt_gdn_mma_state(m) +
                         (before_values ? 0 : r->values * kkt_gdn_mma_values(m)) +
                         (f->substitute ? r->substitute[at] : 0) +
                         of_warps(m, r->two_warps, r->eight_warps);
    return below_the_most(f, fmax(chunk, fmax(r->least, rows_addresses(m, f))));
}
