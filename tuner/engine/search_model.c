/* Model-guided search.
 *
 * Each chunk size has its own share of the budget (the winner of every chunk is kept). The first
 * proposals of a chunk cover: among the best-predicted points, the one that shows most parameter
 * values not seen yet. Then a Gaussian process (surrogate.h) learns from the measured times of all
 * chunks where the model is off, and the point of greatest expected improvement over the chunk's
 * best is next (Jones, Schonlau, Welch 1998). It is sought among the best predictions, a spread of
 * all points, and the neighbours of the best measured ones. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tuner/engine/pointset.h"
#include "tuner/engine/search.h"
#include "tuner/engine/surrogate.h"

enum {
    COVER_CANDIDATES = 512, /* best predictions among which a covering point is chosen */
    LOOK_FIRST = 1024,      /* best predictions that are always looked at */
    LOOK_SPREAD = 1024,     /* points at equal steps through the rest */
    LOOK_CENTERS = 3        /* best measured points whose neighbours are looked at */
};
static const double COVER_SHARE = 0.3; /* of a chunk's budget */
/* A failure counts as this much slower (in the logarithm) than the slowest seen: what fails is
 * mostly a parameter value, and its neighbours fail as well. */
static const double FAILURE_LOG = 0.5;
static const double TUNE_GROWTH = 1.3; /* of the observations, between choices of hyperparameters */

struct kkt_search {
    kkt_space *space;
    kkt_pointset set;
    kkt_surrogate *surrogate;
    int64_t budget_per_group;
    int64_t used[KKT_GROUPS_MAX];
    uint32_t seen[KKT_GROUPS_MAX][KKT_PARAMS_MAX]; /* bit per value index */
    int64_t told, tuned;                           /* `told` when the hyperparameters were chosen */
    double slowest_log;                            /* of what was told */
    int turn;
};

static uint8_t value_index(const kkt_param *param, int64_t value) {
    for (size_t i = 0; i < param->count; i++) {
        if (param->values[i] == value) {
            return (uint8_t)i;
        }
    }
    return 0;
}

static const kkt_param_table *table_of(const kkt_search *search) {
    return &kkt_space_variant(search->space)->params;
}

static void to_point(const kkt_search *search, const kkt_mark *mark, kkt_surrogate_point *out) {
    const kkt_param_table *table = table_of(search);
    kkt_values config;
    kkt_space_decode(search->space, mark->ordinal, &config);
    for (size_t p = 0; p < table->count; p++) {
        out->index[p] = value_index(&table->params[p], config.v[p]);
    }
    out->feature = log((double)mark->predicted_us);
}

static void close_search(kkt_search *search) {
    if (search) {
        kkt_pointset_free(&search->set);
        kkt_surrogate_close(search->surrogate);
        free(search);
    }
}

static kkt_status open_search(kkt_space *space, const kkt_search_options *options, kkt_search **out,
                              kkt_error *err) {
    kkt_search *search = calloc(1, sizeof *search);
    kkt_surrogate *surrogate = kkt_surrogate_open(&kkt_space_variant(space)->params);
    if (!search || !surrogate) {
        free(search);
        kkt_surrogate_close(surrogate);
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "out of memory");
    }
    search->space = space;
    search->surrogate = surrogate;
    kkt_status status = kkt_pointset_make(space, &search->set, err);
    if (status != KKT_OK) {
        close_search(search);
        return status;
    }
    int groups = 0;
    for (int g = 0; g < search->set.groups; g++) {
        groups += search->set.first[g + 1] > search->set.first[g];
    }
    search->budget_per_group = options->budget / (groups > 0 ? groups : 1);
    *out = search;
    return KKT_OK;
}

/* ---- covering ---- */

static int unseen_values(const kkt_search *search, int group, const kkt_surrogate_point *point) {
    int unseen = 0;
    for (size_t p = 0; p < table_of(search)->count; p++) {
        unseen += !((search->seen[group][p] >> point->index[p]) & 1);
    }
    return unseen;
}

static kkt_mark *pick_cover(kkt_search *search, int group) {
    kkt_mark *best = NULL;
    int best_unseen = -1;
    int64_t looked = 0;
    for (int64_t i = search->set.first[group]; i < search->set.first[group + 1]; i++) {
        kkt_mark *mark = &search->set.marks[i];
        if (mark->proposed) {
            continue;
        }
        if (looked++ == COVER_CANDIDATES) {
            break;
        }
        kkt_surrogate_point point;
        to_point(search, mark, &point);
        int unseen = unseen_values(search, group, &point);
        if (unseen > best_unseen) {
            best = mark;
            best_unseen = unseen;
        }
    }
    return best;
}

/* ---- expected improvement ---- */

/* The looking for the best next point of one group. */
typedef struct look {
    kkt_search *search;
    int group;
    double best_log; /* of the group's measured times; INFINITY: none */
    kkt_mark *found;
    double found_value;
} look;

static double expected_improvement(double best, double mean, double deviation) {
    if (!isfinite(best)) {
        return -mean;
    }
    if (deviation <= 0) {
        return fmax(best - mean, 0);
    }
    double z = (best - mean) / deviation;
    double density = exp(-0.5 * z * z) / sqrt(2 * acos(-1.0));
    return (best - mean) * 0.5 * erfc(-z / sqrt(2)) + deviation * density;
}

static void look_at(look *l, kkt_mark *mark) {
    if (mark->proposed || mark->group != l->group) {
        return;
    }
    kkt_surrogate_point point;
    double deviation;
    to_point(l->search, mark, &point);
    double mean = kkt_surrogate_predict(l->search->surrogate, &point, &deviation);
    double value = expected_improvement(l->best_log, mean, deviation);
    if (!l->found || value > l->found_value) {
        l->found = mark;
        l->found_value = value;
    }
}

/* Every point that differs from `center` in one parameter; the chunk stays. */
static void look_around(look *l, const kkt_mark *center) {
    const kkt_param_table *table = table_of(l->search);
    kkt_values config;
    kkt_space_decode(l->search->space, center->ordinal, &config);
    for (size_t p = 0; p < table->count; p++) {
        kkt_values moved = config;
        for (size_t v = 0; v < table->params[p].count; v++) {
            moved.v[p] = table->params[p].values[v];
            kkt_mark *mark = moved.v[p] == config.v[p]
                                 ? NULL
                                 : kkt_pointset_find(&l->search->set, l->search->space, &moved);
            if (mark) {
                look_at(l, mark);
            }
        }
    }
}

/* The best measured points of a group, best first; returns their number. */
static int best_told(const kkt_search *search, int group, const kkt_mark **out) {
    int count = 0;
    for (int64_t i = search->set.first[group]; i < search->set.first[group + 1]; i++) {
        const kkt_mark *mark = &search->set.marks[i];
        if (!mark->told || !(mark->time_us > 0)) {
            continue;
        }
        int at = count < LOOK_CENTERS ? count++ : LOOK_CENTERS;
        while (at > 0 && mark->time_us < out[at - 1]->time_us) {
            if (at < LOOK_CENTERS) {
                out[at] = out[at - 1];
            }
            at--;
        }
        if (at < LOOK_CENTERS) {
            out[at] = mark;
        }
    }
    return count;
}

static kkt_mark *pick_improvement(kkt_search *search, int group) {
    const kkt_mark *centers[LOOK_CENTERS];
    int count = best_told(search, group, centers);
    look l = {.search = search, .group = group, .best_log = INFINITY};
    if (count > 0) {
        l.best_log = log((double)centers[0]->time_us);
    }
    int64_t first = search->set.first[group];
    int64_t end = search->set.first[group + 1];
    int64_t middle = end - first > LOOK_FIRST ? first + LOOK_FIRST : end;
    int64_t step = (end - middle) / LOOK_SPREAD + 1;
    for (int64_t i = first; i < middle; i++) {
        look_at(&l, &search->set.marks[i]);
    }
    for (int64_t i = middle + search->used[group] % step; i < end; i += step) {
        look_at(&l, &search->set.marks[i]);
    }
    for (int c = 0; c < count; c++) {
        look_around(&l, centers[c]);
    }
    for (int64_t i = first; i < end && !l.found; i++) {
        look_at(&l, &search->set.marks[i]); /* the last few of a group */
    }
    return l.found;
}

/* The first unproposed point: the best prediction that is left. */
static kkt_mark *pick_predicted(const kkt_search *search, int group) {
    for (int64_t i = search->set.first[group]; i < search->set.first[group + 1]; i++) {
        if (!search->set.marks[i].proposed) {
            return &search->set.marks[i];
        }
    }
    return NULL;
}

static kkt_mark *pick(kkt_search *search, int group) {
    int64_t used = search->used[group];
    if (used < (int64_t)(COVER_SHARE * (double)search->budget_per_group) || used < 2) {
        return pick_cover(search, group);
    }
    if ((double)search->told >= TUNE_GROWTH * (double)search->tuned) {
        kkt_surrogate_tune(search->surrogate);
        search->tuned = search->told;
    }
    return kkt_surrogate_fit(search->surrogate) ? pick_improvement(search, group)
                                                : pick_predicted(search, group);
}

static void note_proposed(kkt_search *search, int group, const kkt_mark *mark) {
    kkt_surrogate_point point;
    to_point(search, mark, &point);
    for (size_t p = 0; p < table_of(search)->count; p++) {
        search->seen[group][p] |= 1u << point.index[p];
    }
    kkt_surrogate_assume(search->surrogate, &point);
    search->used[group]++;
    search->turn = group + 1;
}

static bool propose(kkt_search *search, kkt_point *out) {
    for (int i = 0; i < search->set.groups; i++) {
        int group = (search->turn + i) % search->set.groups;
        kkt_mark *mark = pick(search, group);
        if (mark && kkt_pointset_propose(search->space, mark, out)) {
            note_proposed(search, group, mark);
            return true;
        }
    }
    return false;
}

static void tell(kkt_search *search, const kkt_values *config, double time_us) {
    kkt_pointset_tell(&search->set, search->space, config, time_us);
    const kkt_mark *mark = kkt_pointset_find(&search->set, search->space, config);
    if (!mark) {
        return;
    }
    double value = log(time_us > 0 ? time_us : (double)mark->predicted_us);
    if (search->told == 0 || value > search->slowest_log) {
        search->slowest_log = value;
    }
    kkt_surrogate_point point;
    to_point(search, mark, &point);
    kkt_surrogate_add(search->surrogate, &point,
                      time_us > 0 ? value : search->slowest_log + FAILURE_LOG);
    search->told++;
}

const kkt_search_type kkt_search_model = {
    .name = "model",
    .summary = "best predictions first, corrected by what was measured",
    .open = open_search,
    .close = close_search,
    .propose = propose,
    .tell = tell,
};
