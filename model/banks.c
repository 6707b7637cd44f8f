#include "model/banks.h"

#include <string.h>

#define BANKS 32
#define NONE 0xff

/* Whether each active lane of a range has the address of the lane `distance` away. */
static bool shared_pairwise(const kkt_access *a, int from, int to, int distance) {
    for (int lane = from; lane < to; ++lane) {
        const int other = lane ^ distance;
        const bool both = (a->active >> lane & 1) != 0 && (a->active >> other & 1) != 0;
        if (both && a->first[lane] != a->first[other])
            return false;
    }
    return true;
}

static bool merges(const kkt_access *a, int from, int to) {
    return !a->store && (shared_pairwise(a, from, to, 1) || shared_pairwise(a, from, to, 2));
}

/* Passes of the lanes of one group. Lanes take whole units of `words`, so that units and their
 * banks stand for words; units of one bank are chained. */
static int group_passes(const kkt_access *a, int from, int to) {
    const int banks = BANKS / a->words;
    const int shift = a->words == 4 ? 2 : a->words - 1;
    uint8_t head[BANKS], next[KKT_LANES]; /* lanes; NONE ends a chain */
    uint8_t distinct[BANKS] = {0};
    int most = 0;
    memset(head, NONE, sizeof head);
    for (int lane = from; lane < to; ++lane) {
        if ((a->active >> lane & 1) == 0)
            continue;
        const int bank = (a->first[lane] >> shift) & (banks - 1);
        int other = head[bank];
        while (other != NONE && a->first[other] != a->first[lane])
            other = next[other];
        if (other != NONE)
            continue;
        next[lane] = head[bank];
        head[bank] = (uint8_t)lane;
        if (++distinct[bank] > most)
            most = distinct[bank];
    }
    return most;
}

int kkt_access_wavefronts(const kkt_access *a) {
    if (a->words == 1)
        return group_passes(a, 0, KKT_LANES);
    if (a->words == 2 && merges(a, 0, KKT_LANES))
        return group_passes(a, 0, KKT_LANES);
    int passes = 0;
    for (int half = 0; half < KKT_LANES; half += 16) {
        if (a->words == 2 || merges(a, half, half + 16)) {
            passes += group_passes(a, half, half + 16);
        } else {
            passes += group_passes(a, half, half + 8);
            passes += group_passes(a, half + 8, half + 16);
        }
    }
    return passes;
}

int kkt_grid_wavefronts(const kkt_lane_grid *grid, int words, bool store) {
    kkt_access access = {.words = words, .store = store};
    int64_t row = 0, word = 0;
    int column = 0;
    access.active = grid->lanes >= KKT_LANES ? UINT32_MAX : ((uint32_t)1 << grid->lanes) - 1;
    for (int lane = 0; lane < grid->lanes; ++lane) {
        access.first[lane] = (int32_t)word;
        word += grid->inner_step;
        if (++column == grid->inner) {
            column = 0;
            row += grid->outer_step;
            word = row;
        }
    }
    return kkt_access_wavefronts(&access);
}

int kkt_bank_overlap(const uint32_t *sets, int64_t count) {
    /* How many sets have each bank, as binary digits: digit d of bank b is bit b of digits[d]. */
    uint32_t digits[5] = {0};
    for (int64_t i = 0; i < count; ++i) {
        uint32_t carry = sets[i];
        for (int d = 0; carry != 0 && d < 5; ++d) {
            const uint32_t sum = digits[d] ^ carry;
            carry &= digits[d];
            digits[d] = sum;
        }
    }
    uint32_t banks = UINT32_MAX;
    int most = 0;
    for (int d = 4; d >= 0; --d) {
        if ((digits[d] & banks) == 0)
            continue;
        banks &= digits[d];
        most |= 1 << d;
    }
    return most;
}
