/* Registers of the fragment and pipelined styles: what the compiler takes where nothing limits it,
 * and whether it spills. Where min_blocks or 255 is the limit it takes all of it. */
#include "kernels/gdn/mma_registers.h"

#include <math.h>

enum { CHUNKS = 4, STATES = 4, LIMITS = 3 };

/* ---- what it takes ---- */

/* As NVRTC 13.0 compiled 575 variants for sm_90a with dk = 128. Chunks and states that none of
 * them has follow their neighbours. */
typedef short table[CHUNKS][STATES];

/* A row a chunk of 16, 32, 64, 128; a column 16, 32, 64 or 128 registers of the state, fp32, a
 * thread. */
static const table chain = {
    {131, 156, 206, 250}, {150, 165, 214, 255}, {211, 236, 255, 255}, {255, 255, 255, 255}};

/* gdn_fwd, then gdn_fwd_t, which has T in registers instead of the system's table. */
static const table rows_in_registers[2] = {
    {{115, 130, 160, 230}, {146, 161, 191, 254}, {195, 210, 255, 255}, {255, 255, 255, 255}},
    {{150, 175, 206, 252}, {140, 156, 197, 255}, {182, 210, 255, 255}, {255, 255, 255, 255}}};

/* The same with tables in shared memory. */
static const table rows_in_shared[2] = {
    {{110, 124, 149, 220}, {135, 150, 180, 253}, {155, 182, 222, 255}, {242, 253, 255, 255}},
    {{100, 115, 141, 224}, {110, 126, 171, 252}, {134, 158, 220, 255}, {205, 222, 255, 255}}};

/* Between two columns in proportion; beyond the last one every register of the state counts. */
static double look_up(const table t, int64_t chunk, double state) {
    const int row = (int)log2((double)chunk / 16);
    const double at = log2(fmax(state, 16) / 16), beyond = fmax(0, state - 128);
    const int left = at < STATES - 1 ? (int)at : STATES - 1;
    const int right = left < STATES - 1 ? left + 1 : left;
    const double share = at < STATES - 1 ? at - left : 0;
    return t[row][left] + share * (t[row][right] - t[row][left]) + beyond;
}

static double state_of(const kkt_gdn_mma *m) {
    return (double)(m->dk * m->block_dv) / (double)m->threads;
}

/* ---- whether it spills ---- */

/* What must be left of the limit beside live registers so that nothing spills. The more it may
 * take, the more loads the compiler brings forward, and that is decided before registers are
 * assigned: then a few bytes go to memory that need not. Where less is left it may spill and may
 * not, as some address happens to be computed; where live registers are above the limit it does.
 * By those of 813 variants for sm_90a that came nearest. */
static const short limits[LIMITS] = {128, 168, 255};
static const short chain_spare[LIMITS] = {24, 36, 43}, rows_spare[LIMITS] = {24, 44, 65};

/* Registers that launch bounds leave, of the 65,536 that an SM has with cp.async. */
static int64_t limit_of(const kkt_gdn_mma *m) {
    const int64_t left = 65536 / ((m->min_blocks > 0 ? m->min_blocks : 1) * m->threads) / 8 * 8;
    return left < 255 ? left : 255;
}

static double spare_at(const short spare[LIMITS], int64_t limit) {
    int right = 1;
    while (right < LIMITS - 1 && limits[right] < limit)
        right++;
    const double share =
        (double)(limit - limits[right - 1]) / (double)(limits[right] - limits[right - 1]);
    return spare[right - 1] + fmax(share, 0) * (spare[right] - spare[right - 1]);
}

static void set_registers(kkt_footprint *fp, const kkt_gdn_mma *m, double taken, int64_t live,
                          const short spare[LIMITS]) {
    kkt_gdn_registers_taken(fp, 0, taken);
    fp->roles[0].least_registers = (double)live;
    fp->roles[0].enough_registers = (double)live + spare_at(spare, limit_of(m));
}

void kkt_gdn_mma_chain_demand(kkt_footprint *fp, const kkt_gdn_mma *m, int64_t stages,
                              bool substitute) {
    const double state = state_of(m);
    double taken = look_up(chain, m->chunk, state);
    /* Copies dealt out to the steps of a product keep their addresses. */
    if (m->chunk <= 32 && state <= 64 && m->threads == 128 && stages > 1)
        taken += 12;
    set_registers(fp, m, taken, kkt_gdn_mma_chain_live(m, stages, substitute), chain_spare);
}

void kkt_gdn_mma_row_demand(kkt_footprint *fp, const kkt_gdn_mma *m, bool in_shared,
                            bool substitute) {
    const double state = state_of(m);
    double taken = look_up(in_shared ? rows_in_shared[m->given_t] : rows_in_registers[m->given_t],
                           m->chunk, state);
    /* A warp with two strips; substitution, which keeps X where the inverse keeps T. */
    if (in_shared && m->chunk == 64 && state == 64 && m->threads == 64)
        taken += 22;
    else if (in_shared && substitute && m->chunk == 64 && state == 32 && m->threads == 128)
        taken += 29;
    set_registers(fp, m, taken, kkt_gdn_mma_rows_live(m, in_shared, substitute), rows_spare);
}
