/* Every configuration, best prediction first, chunk sizes in turn. */
#include <stdlib.h>

#include "tuner/engine/pointset.h"
#include "tuner/engine/search.h"

struct kkt_search {
    kkt_space *space;
    kkt_pointset set;
    int64_t used[KKT_GROUPS_MAX];
    int turn;
};

static kkt_status open_search(kkt_space *space, const kkt_search_options *options, kkt_search **out,
                              kkt_error *err) {
    (void)options;
    kkt_search *search = calloc(1, sizeof *search);
    if (!search) {
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "out of memory");
    }
    search->space = space;
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

static bool propose(kkt_search *search, kkt_point *out) {
    for (int i = 0; i < search->set.groups; i++) {
        int group = (search->turn + i) % search->set.groups;
        int64_t at = search->set.first[group] + search->used[group];
        if (at < search->set.first[group + 1]) {
            search->used[group]++;
            search->turn = group + 1;
            return kkt_pointset_propose(search->space, &search->set.marks[at], out);
        }
    }
    return false;
}

static void tell(kkt_search *search, const kkt_values *config, double time_us) {
    (void)search;
    (void)config;
    (void)time_us;
}

const kkt_search_type kkt_search_exhaustive = {
    .name = "exhaustive",
    .summary = "every applicable configuration, best prediction first",
    .open = open_search,
    .close = close_search,
    .propose = propose,
    .tell = tell,
};
