/* Wavefronts of shared memory: how many passes one warp's access makes through the 32 banks of
 * four bytes. The rule is the hardware's as its counters show it (docs/model.md, section 9):
 *
 * - a pass serves a group of lanes: the warp where a lane takes 4 bytes, half a warp where it takes
 *   8, a quarter where it takes 16;
 * - lanes of a group that read the same words share them; a bank that is asked for several words
 *   takes as many passes;
 * - loads of 8 and 16 bytes in which each lane has the address of a neighbour one or two lanes away
 *   go with groups twice as large. */
#ifndef KKT_MODEL_BANKS_H
#define KKT_MODEL_BANKS_H

#include <stdbool.h>
#include <stdint.h>

#define KKT_LANES 32

/* What one warp touches. `first[lane]` is the lane's first 4-byte word, a multiple of `words`. */
typedef struct kkt_access {
    int words;       /* that a lane takes: 1, 2 or 4 */
    bool store;      /* else a load */
    uint32_t active; /* lanes, a bit each */
    int32_t first[KKT_LANES];
} kkt_access;

/* Passes of an access; 0 without an active lane. */
int kkt_access_wavefronts(const kkt_access *access);

/* Lanes in rows of `inner`, on a grid: lane l touches word
 * (l / inner) outer_step + (l % inner) inner_step. */
typedef struct kkt_lane_grid {
    int inner;
    int64_t outer_step, inner_step;
    int lanes; /* active ones, from lane 0 on */
} kkt_lane_grid;
int kkt_grid_wavefronts(const kkt_lane_grid *grid, int words, bool store);

/* The most of `count` sets of banks (a bit each) that have a bank in common: the passes of an
 * access whose lanes fall into groups with different banks inside and different words between. At
 * most 31 sets. */
int kkt_bank_overlap(const uint32_t *sets, int64_t count);
/* The same banks `by` words further. */
static inline uint32_t kkt_banks_turned(uint32_t banks, int64_t by) {
    const int64_t n = by & 31;
    return n == 0 ? banks : banks << n | banks >> (32 - n);
}

#endif
