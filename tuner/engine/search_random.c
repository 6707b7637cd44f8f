/* Uniform random order over the whole space: the yardstick of every other strategy. */
#include <stdlib.h>

#include "tuner/engine/pointset.h"
#include "tuner/engine/search.h"

struct kkt_search {
    kkt_space *space;
    kkt_pointset set;
    uint64_t state;
    int64_t next;
};

/* splitmix64 (Steele, Lea, Flood 2014). */
static uint64_t next_random(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static kkt_status open_search(kkt_space *space, const kkt_search_options *options, kkt_search **out,
                              kkt_error *err) {
    kkt_search *search = calloc(1, sizeof *search);
    if (!search) {
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "out of memory");
    }
    search->space = space;
    search->state = options->seed;
    kkt_status status = kkt_pointset_make(space, &search->set, err);
    if (status != KKT_OK) {
        free(search);
        return status;
    }
    *out = search;
    return KKT_OK;
}

static void close_search(kkt_search *search) {
    if (search) {
        kkt_pointset_free(&search->set);
        free(search);
    }
}

/* Fisher-Yates, one step a proposal. The set loses its order, so `tell` does not use it. */
static bool propose(kkt_search *search, kkt_point *out) {
    int64_t left = search->set.count - search->next;
    if (left <= 0) {
        return false;
    }
    int64_t at = search->next + (int64_t)(next_random(&search->state) % (uint64_t)left);
    kkt_mark chosen = search->set.marks[at];
    search->set.marks[at] = search->set.marks[search->next];
    search->set.marks[search->next++] = chosen;
    return kkt_pointset_propose(search->space, &chosen, out);
}

static void tell(kkt_search *search, const kkt_values *config, double time_us) {
    (void)search;
    (void)config;
    (void)time_us;
}

const kkt_search_type kkt_search_random = {
    .name = "random",
    .summary = "uniform random order over all applicable configurations",
    .open = open_search,
    .close = close_search,
    .propose = propose,
    .tell = tell,
};
