/* Strategies that learn nothing: every configuration in an order fixed beforehand. `exhaustive`
 * takes the best prediction first, chunk sizes in turn; `random` a uniform random order, the
 * yardstick of every other strategy. */
#include <stdlib.h>

#include "base/random.h"
#include "tuner/engine/pointset.h"
#include "tuner/engine/search.h"

struct kkt_search {
    kkt_space *space;
    kkt_pointset set;
    /* exhaustive */
    int64_t used[KKT_GROUPS_MAX];
    int turn;
    /* random */
    uint64_t state;
    int64_t next;
};

static kkt_status open_search(kkt_space *space, const kkt_search_options *options, kkt_search **out,
                              kkt_error *err) {
    kkt_search *search = calloc(1, sizeof *search);
    if (!search) {
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "out of memory");
    }
    search->space = space;
    search->state = options->seed;
    kkt_status status = kkt_search_points(space, options, &search->set, err);
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

static void tell(kkt_search *search, const kkt_values *config, double time_us) {
    (void)search;
    (void)config;
    (void)time_us;
}

static bool propose_best(kkt_search *search, kkt_point *out) {
    for (int i = 0; i < search->set.groups; i++) {
        int group = (search->turn + i) % search->set.groups;
        int64_t at = search->set.first[group] + search->used[group];
        if (at < search->set.first[group + 1]) {
            search->used[group]++;
            search->turn = group + 1;
            kkt_mark *mark = &search->set.marks[search->set.order[at]];
            return kkt_pointset_propose(search->space, mark, out);
        }
    }
    return false;
}

/* Fisher-Yates, one step a proposal. */
static bool propose_any(kkt_search *search, kkt_point *out) {
    int64_t left = search->set.count - search->next;
    if (left <= 0) {
        return false;
    }
    int64_t at = search->next + (int64_t)(kkt_random_next(&search->state) % (uint64_t)left);
    uint32_t chosen = search->set.order[at];
    search->set.order[at] = search->set.order[search->next];
    search->set.order[search->next++] = chosen;
    return kkt_pointset_propose(search->space, &search->set.marks[chosen], out);
}

const kkt_search_type kkt_search_exhaustive = {
    .name = "exhaustive",
    .summary = "every applicable configuration, best prediction first",
    .open = open_search,
    .close = close_search,
    .propose = propose_best,
    .tell = tell,
};

const kkt_search_type kkt_search_random = {
    .name = "random",
    .summary = "uniform random order over all applicable configurations",
    .open = open_search,
    .close = close_search,
    .propose = propose_any,
    .tell = tell,
};
