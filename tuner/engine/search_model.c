/* Model-guided search.
 *
 * The winner of every chunk size is kept, so each is a search of its own, a group. A group begins
 * with what won it on other problems (kkt_search_memory), brought into this space, or, where
 * nothing did, with the parameters' defaults, which whoever wrote the kernel knows to be good
 * somewhere; and with points that cover: among those expected to be fastest the one that shows most
 * parameter values not seen yet. Then a Gaussian process (surrogate.h) learns from the measured
 * times of all groups where expectations are off, and the point of greatest expected improvement
 * over its group's best, times the chance that it works (outlook.h), is next (Jones, Schonlau,
 * Welch 1998). A third of the budget is shared alike; a little goes to whichever group has most to
 * gain. Half is for moves: each group's best with one parameter changed, parameters that were not
 * changed from it yet first. The process is sure of what it has seen no case of, and so would never
 * try those. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tuner/engine/moves.h"
#include "tuner/engine/outlook.h"
#include "tuner/engine/search.h"
#include "tuner/engine/surrogate.h"

enum {
    COVER_CANDIDATES = 512, /* points among which a covering one is chosen */
    MOST_SEEDS = 4,         /* of a group: from other problems, or the defaults */
    SCAN = 16384,      /* points of a group that are looked at, evenly spread if there are more */
    SHORTLIST = 256,   /* of those, whose uncertainty is worked out */
    SPREAD = 64,       /* and points at equal steps through all, however slow they seem */
    MODEL_POINTS = 192 /* observations that are kept: a proposal costs the square of it */
};
static const double COVER_SHARE = 0.2;  /* of a group's equal share, where nothing is remembered */
static const double EQUAL_SHARE = 0.35; /* of a group's equal share that it gets in any case */
static const double POLISH_SHARE = 0.5; /* of a group's equal share, for moves from its best */
static const double TUNE_GROWTH = 1.3; /* of the observations, between choices of hyperparameters */
static const double DOUBT_WEIGHT =
    1.0; /* of -log(chance) beside log(time) when points are ranked */

static const double NO_GAIN = 0.01; /* of the logarithm: less is a tie, and not looked for */
static const double TRIFLE = 1e-5;  /* a gain that is none */

/* A point of a shortlist. */
typedef struct look {
    uint32_t at; /* of the marks */
    float rank;  /* log(time), more where it may fail */
} look;

typedef struct group {
    int64_t used;
    uint32_t seen[KKT_PARAMS_MAX]; /* bit per value index */
    double best_log;               /* of its measured times; INFINITY: none */
    kkt_values best;               /* that configuration */
    uint32_t best_at;              /* its mark */
    int64_t polishes;          /* of its share, moves from its best that are still to be tried */
    int64_t seeds[MOST_SEEDS]; /* marks to begin with */
    int seed_count, seeds_used;
    int64_t favourites; /* of the model alone, whatever other problems showed, to begin with */
    int64_t covers;     /* covering points to begin with */
    look list[SHORTLIST + SPREAD + KKT_GROUPS_MAX];
    size_t listed;
    int64_t listed_at; /* `told` when the list was made; -1: never */
    int64_t scanned;   /* lists made so far */
} group;

struct kkt_search {
    kkt_space *space;
    kkt_pointset set;
    kkt_outlook *outlook;
    kkt_surrogate *surrogate;
    uint32_t *order; /* of marks: by group, then by what is expected at the start */
    look *scratch;   /* SCAN of them */
    kkt_moves *moves;
    int64_t share;            /* equal share of a group */
    int64_t used, unpolished; /* proposals so far; how many come before moves from the best */
    int64_t told, tuned;      /* `told` when the hyperparameters were chosen */
    int turn;
    group groups[KKT_GROUPS_MAX];
};

static size_t param_count(const kkt_search *search) {
    return kkt_space_variant(search->space)->params.count;
}

/* ---- opening ---- */

static int by_rank(const void *left, const void *right) {
    const look *a = left;
    const look *b = right;
    if (a->rank < b->rank || a->rank > b->rank) {
        return a->rank < b->rank ? -1 : 1;
    }
    return a->at < b->at ? -1 : a->at > b->at;
}

static float rank_of(const kkt_search *search, uint32_t at, double log_time) {
    return (float)(log_time - DOUBT_WEIGHT * log(kkt_outlook_chance(search->outlook, at)));
}

/* Sorts each group by what is expected of its points before anything was tried. */
static bool put_in_order(kkt_search *search) {
    const kkt_pointset *set = &search->set;
    look *all = malloc(((size_t)set->count + 1) * sizeof *all);
    search->order = malloc(((size_t)set->count + 1) * sizeof *search->order);
    if (!all || !search->order) {
        free(all);
        return false;
    }
    for (int64_t i = 0; i < set->count; i++) {
        uint32_t at = set->order[i];
        all[i] = (look){at, rank_of(search, at, kkt_outlook_point(search->outlook, at)->feature)};
    }
    for (int g = 0; g < set->groups; g++) {
        int64_t first = set->first[g];
        qsort(all + first, (size_t)(set->first[g + 1] - first), sizeof *all, by_rank);
    }
    for (int64_t i = 0; i < set->count; i++) {
        search->order[i] = all[i].at;
    }
    free(all);
    return true;
}

static void open_groups(kkt_search *search, const kkt_search_options *options) {
    int filled = 0;
    kkt_values defaults;
    kkt_params_defaults(&kkt_space_variant(search->space)->params, &defaults);
    for (int g = 0; g < search->set.groups; g++) {
        filled += search->set.first[g + 1] > search->set.first[g];
    }
    search->share = options->budget / (filled > 0 ? filled : 1);
    for (int g = 0; g < search->set.groups; g++) {
        group *now = &search->groups[g];
        now->best_log = INFINITY;
        now->listed_at = -1;
        now->polishes = (int64_t)(POLISH_SHARE * (double)search->share);
        now->seed_count = options->memory
                              ? kkt_outlook_winners(search->outlook, g, options->memory,
                                                    options->own, MOST_SEEDS, now->seeds)
                              : 0;
        int64_t covers = (int64_t)(COVER_SHARE * (double)search->share);
        covers = covers < 2 ? 2 : covers;
        search->unpolished = options->budget - filled * now->polishes;
        now->favourites = now->seed_count == 0 ? 0 : 1;
        now->covers = now->seed_count == 0 ? covers : 1;
        if (now->seed_count == 0) {
            int64_t usual = kkt_outlook_nearest(search->outlook, g, &defaults);
            if (usual >= 0) {
                now->seeds[now->seed_count++] = usual;
                now->covers--;
            }
        }
    }
}

/* ---- what became of the points ---- */

/* One more of a group is tried. */
static void count_tried(kkt_search *search, int number, uint32_t at) {
    group *now = &search->groups[number];
    const kkt_surrogate_point *point = kkt_outlook_point(search->outlook, at);
    for (size_t p = 0; p < param_count(search); p++) {
        now->seen[p] |= 1u << point->index[p];
    }
    now->used++;
    search->used++;
}

static void tell(kkt_search *search, const kkt_values *config, double time_us) {
    kkt_mark *mark = kkt_pointset_find(&search->set, search->space, config);
    if (!mark) {
        return;
    }
    uint32_t at = (uint32_t)(mark - search->set.marks);
    group *now = &search->groups[mark->group];
    mark->proposed = mark->told = true;
    mark->time_us = (float)time_us;
    search->told++;
    kkt_outlook_tell(search->outlook, at, !(time_us > 0));
    if (!(time_us > 0)) {
        kkt_surrogate_forget(search->surrogate, kkt_outlook_point(search->outlook, at));
        return;
    }
    double value = log(time_us);
    kkt_surrogate_add(search->surrogate, kkt_outlook_point(search->outlook, at), value);
    if (value < now->best_log) {
        now->best_log = value;
        now->best = *config;
        now->best_at = at;
    }
}

/* What an earlier search of the same problem tried; it stands for points to begin with. */
static void recall(kkt_search *search, const kkt_search_options *options) {
    for (size_t i = 0; options->memory && i < options->memory->count; i++) {
        const kkt_memory_row *row = &options->memory->rows[i];
        kkt_mark *mark = row->problem == options->own
                             ? kkt_pointset_find(&search->set, search->space, &row->config)
                             : NULL;
        if (!mark) {
            continue;
        }
        group *now = &search->groups[mark->group];
        count_tried(search, mark->group, (uint32_t)(mark - search->set.marks));
        tell(search, &row->config, row->time_us);
        now->favourites = 0;
        now->covers -= now->covers > 0;
    }
}

/* ---- opening and closing ---- */

static void close_search(kkt_search *search) {
    if (search) {
        kkt_moves_close(search->moves);
        kkt_outlook_close(search->outlook);
        kkt_surrogate_close(search->surrogate);
        kkt_pointset_free(&search->set);
        free(search->order);
        free(search->scratch);
        free(search);
    }
}

static kkt_status open_search(kkt_space *space, const kkt_search_options *options, kkt_search **out,
                              kkt_error *err) {
    kkt_search *search = calloc(1, sizeof *search);
    if (!search) {
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "out of memory");
    }
    search->space = space;
    kkt_status status = kkt_search_points(space, options, &search->set, err);
    if (status == KKT_OK) {
        status = kkt_outlook_open(space, &search->set, options->memory, options->own,
                                  &search->outlook, err);
    }
    if (status != KKT_OK) {
        close_search(search);
        return status;
    }
    search->surrogate = kkt_surrogate_open(&kkt_space_variant(space)->params, MODEL_POINTS);
    search->scratch = malloc(SCAN * sizeof *search->scratch);
    search->moves = kkt_moves_open(&kkt_space_variant(space)->params, &search->set, search->outlook,
                                   search->surrogate);
    if (!search->surrogate || !search->scratch || !search->moves || !put_in_order(search)) {
        close_search(search);
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "out of memory");
    }
    open_groups(search, options);
    recall(search, options);
    *out = search;
    return KKT_OK;
}

/* ---- covering ---- */

static int unseen_values(const kkt_search *search, const group *now, uint32_t at) {
    const kkt_surrogate_point *point = kkt_outlook_point(search->outlook, at);
    int unseen = 0;
    for (size_t p = 0; p < param_count(search); p++) {
        unseen += !((now->seen[p] >> point->index[p]) & 1);
    }
    return unseen;
}

static int64_t pick_cover(const kkt_search *search, int number) {
    int64_t best = -1;
    int best_unseen = -1;
    int64_t looked = 0;
    int64_t end = search->set.first[number + 1];
    for (int64_t i = search->set.first[number]; i < end && looked < COVER_CANDIDATES; i++) {
        uint32_t at = search->order[i];
        if (search->set.marks[at].proposed) {
            continue;
        }
        looked++;
        int unseen = unseen_values(search, &search->groups[number], at);
        if (unseen > best_unseen) {
            best = at;
            best_unseen = unseen;
        }
    }
    return best;
}

/* The model's best that is not known to fail; -1: none is left. */
static int64_t pick_favourite(const kkt_search *search, int number) {
    for (int64_t i = search->set.first[number]; i < search->set.first[number + 1]; i++) {
        uint32_t at = search->set.order[i];
        if (!search->set.marks[at].proposed && kkt_outlook_chance(search->outlook, at) > 0.25) {
            return at;
        }
    }
    return -1;
}

/* ---- expected improvement ---- */

/* Where nothing is to be gained any more, the fastest that are left come first. */
static double trifle(const group *now, double mean) {
    return isfinite(now->best_log) ? TRIFLE * exp(now->best_log - mean) : 0;
}

static void list_point(const kkt_search *search, group *now, int64_t at) {
    if (at >= 0 && !search->set.marks[at].proposed) {
        now->list[now->listed++] = (look){.at = (uint32_t)at};
    }
}

/* The points of a group that are worth a closer look, by all that is known now. */
static void make_list(kkt_search *search, int number) {
    group *now = &search->groups[number];
    int64_t first = search->set.first[number], end = search->set.first[number + 1];
    int64_t step = (end - first + SCAN - 1) / SCAN;
    size_t count = 0;
    for (int64_t i = first + (step > 1 ? now->scanned % step : 0); i < end; i += step) {
        uint32_t at = search->order[i];
        if (!search->set.marks[at].proposed) {
            const kkt_surrogate_point *point = kkt_outlook_point(search->outlook, at);
            double mean = kkt_surrogate_predict(search->surrogate, point, NULL);
            search->scratch[count++] = (look){at, (float)mean};
        }
    }
    qsort(search->scratch, count, sizeof *search->scratch, by_rank);
    size_t doubted = count < 4 * SHORTLIST ? count : 4 * SHORTLIST;
    for (size_t i = 0; i < doubted; i++) {
        look *item = &search->scratch[i];
        item->rank = rank_of(search, item->at, (double)item->rank);
    }
    qsort(search->scratch, doubted, sizeof *search->scratch, by_rank);
    now->listed = doubted < SHORTLIST ? doubted : SHORTLIST;
    memcpy(now->list, search->scratch, now->listed * sizeof *now->list);
    int64_t stride = (end - first) / SPREAD + 1;
    for (int64_t i = first + now->scanned % stride; i < end; i += stride) {
        list_point(search, now, search->order[i]);
    }
    for (int g = 0; g < search->set.groups; g++) { /* what is best with another chunk size */
        if (g != number && isfinite(search->groups[g].best_log)) {
            const kkt_values *best = &search->groups[g].best;
            list_point(search, now, kkt_outlook_nearest(search->outlook, number, best));
        }
    }
    now->scanned++;
    now->listed_at = search->told;
}

/* The best point of a group's list; -1: none is left. `*value` is its expected improvement. */
static int64_t pick_improvement(kkt_search *search, int number, double *value) {
    group *now = &search->groups[number];
    int64_t found = -1;
    *value = -1;
    if (now->listed_at != search->told) {
        make_list(search, number);
    }
    for (size_t i = 0; i < now->listed; i++) {
        uint32_t at = now->list[i].at;
        if (search->set.marks[at].proposed) {
            continue;
        }
        double deviation;
        double mean = kkt_surrogate_predict(search->surrogate,
                                            kkt_outlook_point(search->outlook, at), &deviation);
        double gain = kkt_outlook_chance(search->outlook, at) *
                      (kkt_expected_improvement(now->best_log - NO_GAIN, mean, deviation) +
                       trifle(now, mean));
        if (gain > *value) {
            found = at;
            *value = gain;
        }
    }
    return found;
}

/* The first unproposed point; -1: none. */
static int64_t pick_expected(const kkt_search *search, int number) {
    for (int64_t i = search->set.first[number]; i < search->set.first[number + 1]; i++) {
        if (!search->set.marks[search->order[i]].proposed) {
            return search->order[i];
        }
    }
    return -1;
}

/* ---- whose turn it is ---- */

/* Whether a point is expected to be slower than its group's best even with luck. */
static bool is_hopeless(const kkt_search *search, const group *now, uint32_t at) {
    double deviation;
    double mean = kkt_surrogate_predict(search->surrogate, kkt_outlook_point(search->outlook, at),
                                        &deviation);
    return isfinite(now->best_log) && mean - deviation > now->best_log;
}

/* A group's next seed that nothing measured here tells against; -1: none is left. */
static int64_t next_seed(const kkt_search *search, group *now, bool fitted) {
    for (; now->seeds_used < now->seed_count; now->seeds_used++) {
        int64_t at = now->seeds[now->seeds_used];
        if (!search->set.marks[at].proposed &&
            !(fitted && is_hopeless(search, now, (uint32_t)at))) {
            return at;
        }
    }
    return -1;
}

/* A group's next point while it gets its equal share; -1: it is exhausted. */
static int64_t pick_in_turn(kkt_search *search, int number, bool fitted) {
    group *now = &search->groups[number];
    double value;
    int64_t seed = next_seed(search, now, fitted);
    if (seed >= 0) {
        return seed;
    }
    if (now->favourites > 0) {
        now->favourites--;
        return pick_favourite(search, number);
    }
    if (now->covers > 0) {
        now->covers--;
        return pick_cover(search, number);
    }
    int64_t at = fitted ? pick_improvement(search, number, &value) : -1;
    return at >= 0 ? at : pick_expected(search, number);
}

static int64_t pick_most_promising(kkt_search *search) {
    int64_t best = -1;
    double most = -1;
    for (int g = 0; g < search->set.groups; g++) {
        double value;
        int64_t at = pick_improvement(search, g, &value);
        if (at >= 0 && value > most) {
            best = at;
            most = value;
        }
    }
    return best;
}

/* Each group's moves in turn. */
static int64_t pick_polish(kkt_search *search) {
    for (int i = 0; i < search->set.groups; i++) {
        int number = (search->turn + i) % search->set.groups;
        group *now = &search->groups[number];
        if (now->polishes > 0 && isfinite(now->best_log)) {
            now->polishes--;
            int64_t at =
                kkt_moves_pick(search->moves, number, now->best_at, now->best_log - NO_GAIN);
            if (at >= 0) {
                return at;
            }
        }
    }
    return -1;
}

static int64_t pick(kkt_search *search) {
    if ((double)search->told >= TUNE_GROWTH * (double)search->tuned) {
        kkt_surrogate_tune(search->surrogate);
        search->tuned = search->told;
    }
    kkt_outlook_update(search->outlook);
    bool fitted = kkt_surrogate_fit(search->surrogate);
    int groups = search->set.groups;
    double equal = EQUAL_SHARE * (double)search->share;
    for (int i = 0; i < groups; i++) {
        int number = (search->turn + i) % groups;
        group *now = &search->groups[number];
        bool beginning = now->favourites + now->covers > 0 || next_seed(search, now, fitted) >= 0;
        if (beginning || (double)now->used < equal || !fitted) {
            int64_t at = pick_in_turn(search, number, fitted);
            if (at >= 0) {
                return at;
            }
        }
    }
    int64_t at = fitted && search->used >= search->unpolished ? pick_polish(search) : -1;
    at = at < 0 && fitted ? pick_most_promising(search) : at;
    for (int g = 0; g < groups && at < 0; g++) {
        at = pick_expected(search, g);
    }
    return at;
}

static void note_proposed(kkt_search *search, const kkt_mark *mark, uint32_t at) {
    count_tried(search, mark->group, at);
    kkt_surrogate_assume(search->surrogate, kkt_outlook_point(search->outlook, at));
    search->turn = mark->group + 1;
}

static bool propose(kkt_search *search, kkt_point *out) {
    for (int64_t at = pick(search); at >= 0; at = pick(search)) {
        kkt_mark *mark = &search->set.marks[at];
        if (kkt_pointset_propose(search->space, mark, out)) {
            note_proposed(search, mark, (uint32_t)at);
            return true;
        }
    }
    return false;
}

const kkt_search_type kkt_search_model = {
    .name = "model",
    .summary = "best predictions first, corrected by what was measured",
    .remembers = true,
    .open = open_search,
    .close = close_search,
    .propose = propose,
    .tell = tell,
};
