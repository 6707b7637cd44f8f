/* Registers of the fragment and pipelined styles: what the compiler takes where nothing limits it,
 * and the least with which it does not spill. Where min_blocks or 255 is the limit it takes all of
 * it. */
#include "kernels/gdn/mma_registers.h"

#include <math.h>

enum { CHUNKS = 4, STATES = 4, SPILLS = 256 };

/* As NVRTC 13.0 compiled 575 variants for sm_90a with dk = 128. ptxas is kept to 128, 168 or 255
 * registers, so that the least is known no closer than: 128, 150 (between 128 and 168), 220, and
 * 256 where even 255 spill. Chunks and states that no variant with dk = 128 has follow their
 * neighbours. */
typedef struct cell {
    short taken, least;
} cell;

typedef cell table[CHUNKS][STATES];

/* A row a chunk of 16, 32, 64, 128; a column 16, 32, 64 or 128 registers of the state, fp32, a
 * thread. */
static const table chain = {{{131, 128}, {156, 128}, {206, 128}, {250, 220}},
                            {{150, 128}, {165, 128}, {214, 150}, {255, 256}},
                            {{211, 150}, {236, 150}, {255, 220}, {255, 256}},
                            {{255, 220}, {255, 256}, {255, 256}, {255, 256}}};

/* gdn_fwd, then gdn_fwd_t, which has T in registers instead of the system's table. */
static const table rows_in_registers[2] = {{{{115, 128}, {130, 128}, {160, 128}, {230, 220}},
                                            {{146, 128}, {161, 128}, {191, 150}, {254, 220}},
                                            {{195, 150}, {210, 220}, {255, 256}, {255, 256}},
                                            {{255, 256}, {255, 256}, {255, 256}, {255, 256}}},
                                           {{{150, 128}, {175, 128}, {206, 128}, {252, 220}},
                                            {{140, 128}, {156, 150}, {197, 220}, {255, 220}},
                                            {{182, 150}, {210, 220}, {255, 220}, {255, 256}},
                                            {{255, 256}, {255, 256}, {255, 256}, {255, 256}}}};

/* The same with tables in shared memory. */
static const table rows_in_shared[2] = {{{{110, 128}, {124, 128}, {149, 128}, {220, 220}},
                                         {{135, 128}, {150, 128}, {180, 150}, {253, 220}},
                                         {{155, 128}, {182, 128}, {222, 150}, {255, 220}},
                                         {{242, 150}, {253, 220}, {255, 256}, {255, 256}}},
                                        {{{100, 128}, {115, 128}, {141, 128}, {224, 220}},
                                         {{110, 128}, {126, 128}, {171, 150}, {252, 220}},
                                         {{134, 128}, {158, 128}, {220, 150}, {255, 220}},
                                         {{205, 150}, {222, 220}, {255, 256}, {255, 256}}}};

/* Between two columns in proportion; beyond the last one every register of the state counts. */
static void look_up(const table t, int64_t chunk, double state, double *taken, double *least) {
    const int row = (int)log2((double)chunk / 16);
    const double at = log2(fmax(state, 16) / 16), beyond = fmax(0, state - 128);
    const int left = at < STATES - 1 ? (int)at : STATES - 1;
    const int right = left < STATES - 1 ? left + 1 : left;
    const double share = at < STATES - 1 ? at - left : 0;
    *taken = t[row][left].taken + share * (t[row][right].taken - t[row][left].taken) + beyond;
    *least = t[row][left].least + share * (t[row][right].least - t[row][left].least) + beyond;
}

static void set_registers(kkt_footprint *fp, double taken, double least) {
    kkt_gdn_registers_taken(fp, 0, taken);
    fp->roles[0].least_registers = least;
}

static double state_of(const kkt_gdn_mma *m) {
    return (double)(m->dk * m->block_dv) / (double)m->threads;
}

void kkt_gdn_mma_chain_demand(kkt_footprint *fp, const kkt_gdn_mma *m, int64_t stages) {
    const double state = state_of(m);
    double taken, least;
    look_up(chain, m->chunk, state, &taken, &least);
    /* Copies dealt out to the steps of a product keep their addresses. */
    if (m->chunk <= 32 && state <= 64 && m->threads == 128 && stages > 1)
        taken += 12;
    if (m->chunk == 64 && state <= 64 && m->threads < 256 && stages > 1)
        least = SPILLS;
    if (m->chunk == 32 && state == 128 && m->threads == 128 && stages == 2)
        least = 220;
    set_registers(fp, taken, least);
}

/* What a cell does not say: a warp with two strips at 64 threads, and in gdn_fwd substitution,
 * which keeps X where the inverse keeps T. */
static void correct_rows(const kkt_gdn_mma *m, bool in_shared, bool substitute, double *taken,
                         double *least) {
    const double state = state_of(m);
    const int64_t chunk = m->chunk, threads = m->threads;
    if (in_shared && chunk == 64 && state == 64 && threads == 64) {
        *taken += 22;
        *least = 170;
    } else if (in_shared && chunk == 64 && state == 128 && threads == 128) {
        *least = SPILLS;
    } else if (in_shared && substitute && chunk == 64 && state == 32 && threads == 128) {
        *taken += 29;
        *least = 170;
    } else if (!in_shared && substitute && chunk == 32 && state == 64 && threads < 256) {
        *least = 170;
    } else if (!in_shared && chunk == 64 && state == 64) {
        *least = threads > 64 && (substitute || m->given_t) ? 255 : SPILLS;
    }
}

void kkt_gdn_mma_row_demand(kkt_footprint *fp, const kkt_gdn_mma *m, bool in_shared,
                            bool substitute) {
    const double state = state_of(m);
    double taken, least;
    look_up(in_shared ? rows_in_shared[m->given_t] : rows_in_registers[m->given_t], m->chunk, state,
            &taken, &least);
    correct_rows(m, in_shared, substitute, &taken, &least);
    set_registers(fp, taken, least);
}
