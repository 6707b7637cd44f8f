/* Model-guided search.
 *
 * Each chunk size has its own share of the budget (the winner of every chunk is kept). Within a
 * chunk the first proposals cover: among the best-predicted points, the one that shows most
 * parameter values not seen yet. Then the measured times correct the model:
 *
 *     log time = log predicted + sum over parameters of effect[parameter][value]
 *
 * with the effects fitted by ridge-regularised backfitting over all told points of the space, and
 * the point of least corrected time is next. One proposal in four is instead the best-corrected
 * neighbour (one parameter moved) of the best measured point, for effects that do not add up. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tuner/engine/pointset.h"
#include "tuner/engine/search.h"

enum { COVER_CANDIDATES = 512, FIT_ROUNDS = 12 };
static const double RIDGE = 1.5;       /* pseudo-observations that pull an effect to zero */
static const double COVER_SHARE = 0.4; /* of a chunk's budget */

typedef struct observation {
    kkt_values config;
    double log_ratio; /* log(measured / predicted) */
} observation;

struct kkt_search {
    kkt_space *space;
    kkt_pointset set;
    int64_t budget_per_group;
    int64_t used[KKT_GROUPS_MAX];
    uint32_t seen[KKT_GROUPS_MAX][KKT_PARAMS_MAX]; /* bit per value index */
    double effect[KKT_PARAMS_MAX][KKT_CHOICES_MAX];
    observation *told; /* successful measurements only */
    int64_t told_count, told_capacity;
    int64_t fitted; /* `told_count` when the effects were fitted */
    int turn;
};

static size_t value_index(const kkt_param *param, int64_t value) {
    for (size_t i = 0; i < param->count; i++) {
        if (param->values[i] == value) {
            return i;
        }
    }
    return 0;
}

static kkt_status open_search(kkt_space *space, const kkt_search_options *options, kkt_search **out,
                              kkt_error *err) {
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
    int groups = 0;
    for (int g = 0; g < search->set.groups; g++) {
        groups += search->set.first[g + 1] > search->set.first[g];
    }
    search->budget_per_group = options->budget / (groups > 0 ? groups : 1);
    *out = search;
    return KKT_OK;
}

static void close_search(kkt_search *search) {
    if (search) {
        kkt_pointset_free(&search->set);
        free(search->told);
        free(search);
    }
}

static int unseen_values(const kkt_search *search, int group, const kkt_values *config) {
    const kkt_param_table *table = &kkt_space_variant(search->space)->params;
    int unseen = 0;
    for (size_t p = 0; p < table->count; p++) {
        size_t index = value_index(&table->params[p], config->v[p]);
        unseen += !((search->seen[group][p] >> index) & 1);
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
        kkt_values config;
        kkt_space_decode(search->space, mark->ordinal, &config);
        int unseen = unseen_values(search, group, &config);
        if (unseen > best_unseen) {
            best = mark;
            best_unseen = unseen;
        }
    }
    return best;
}

/* What the parameters of a told point explain of log(time / predicted), the `skip`-th left out. */
static double explained(const kkt_search *search, const kkt_values *config, size_t skip) {
    const kkt_param_table *table = &kkt_space_variant(search->space)->params;
    double sum = 0;
    for (size_t p = 0; p < table->count; p++) {
        if (p != skip) {
            sum += search->effect[p][value_index(&table->params[p], config->v[p])];
        }
    }
    return sum;
}

/* One backfitting step: the effects of parameter `p` from what the others leave unexplained. */
static void fit_parameter(kkt_search *search, size_t p) {
    const kkt_param *param = &kkt_space_variant(search->space)->params.params[p];
    double sum[KKT_CHOICES_MAX] = {0};
    double weight[KKT_CHOICES_MAX] = {0};
    for (int64_t i = 0; i < search->told_count; i++) {
        const observation *seen = &search->told[i];
        size_t index = value_index(param, seen->config.v[p]);
        sum[index] += seen->log_ratio - explained(search, &seen->config, p);
        weight[index] += 1;
    }
    for (size_t v = 0; v < param->count; v++) {
        search->effect[p][v] = sum[v] / (weight[v] + RIDGE);
    }
}

static void fit(kkt_search *search) {
    if (search->fitted == search->told_count) {
        return;
    }
    memset(search->effect, 0, sizeof search->effect);
    for (int round = 0; round < FIT_ROUNDS; round++) {
        for (size_t p = 0; p < kkt_space_variant(search->space)->params.count; p++) {
            fit_parameter(search, p);
        }
    }
    search->fitted = search->told_count;
}

static double corrected(const kkt_search *search, const kkt_mark *mark, const kkt_values *config) {
    return log((double)mark->predicted_us) + explained(search, config, KKT_PARAMS_MAX);
}

static const kkt_mark *best_told(const kkt_search *search, int group) {
    const kkt_mark *best = NULL;
    for (int64_t i = search->set.first[group]; i < search->set.first[group + 1]; i++) {
        const kkt_mark *mark = &search->set.marks[i];
        if (mark->told && mark->time_us > 0 && (!best || mark->time_us < best->time_us)) {
            best = mark;
        }
    }
    return best;
}

static int differing(const kkt_param_table *table, const kkt_values *a, const kkt_values *b) {
    int count = 0;
    for (size_t p = 0; p < table->count; p++) {
        count += a->v[p] != b->v[p];
    }
    return count;
}

/* The unproposed point of least corrected time; with `near`, only neighbours of that point. */
static kkt_mark *pick_corrected(kkt_search *search, int group, const kkt_mark *near) {
    const kkt_param_table *table = &kkt_space_variant(search->space)->params;
    kkt_values center;
    if (near) {
        kkt_space_decode(search->space, near->ordinal, &center);
    }
    kkt_mark *best = NULL;
    double best_value = 0;
    for (int64_t i = search->set.first[group]; i < search->set.first[group + 1]; i++) {
        kkt_mark *mark = &search->set.marks[i];
        if (mark->proposed) {
            continue;
        }
        if (search->told_count == 0) {
            return mark; /* nothing to correct by: the order of the predictions stands */
        }
        kkt_values config;
        kkt_space_decode(search->space, mark->ordinal, &config);
        if (near && differing(table, &center, &config) != 1) {
            continue;
        }
        double value = corrected(search, mark, &config);
        if (!best || value < best_value) {
            best = mark;
            best_value = value;
        }
    }
    return best;
}

static kkt_mark *pick(kkt_search *search, int group) {
    int64_t used = search->used[group];
    if (used < (int64_t)(COVER_SHARE * (double)search->budget_per_group) || used < 2) {
        return pick_cover(search, group);
    }
    fit(search);
    kkt_mark *mark = NULL;
    const kkt_mark *best = best_told(search, group);
    if (best && used % 4 == 3) {
        mark = pick_corrected(search, group, best);
    }
    return mark ? mark : pick_corrected(search, group, NULL);
}

static bool propose(kkt_search *search, kkt_point *out) {
    for (int i = 0; i < search->set.groups; i++) {
        int group = (search->turn + i) % search->set.groups;
        kkt_mark *mark = pick(search, group);
        if (mark && kkt_pointset_propose(search->space, mark, out)) {
            const kkt_param_table *table = &kkt_space_variant(search->space)->params;
            for (size_t p = 0; p < table->count; p++) {
                size_t index = value_index(&table->params[p], out->config.v[p]);
                search->seen[group][p] |= 1u << index;
            }
            search->used[group]++;
            search->turn = group + 1;
            return true;
        }
    }
    return false;
}

static void tell(kkt_search *search, const kkt_values *config, double time_us) {
    kkt_pointset_tell(&search->set, search->space, config, time_us);
    const kkt_mark *mark = kkt_pointset_find(&search->set, search->space, config);
    if (!mark || !(time_us > 0)) {
        return;
    }
    if (search->told_count == search->told_capacity) {
        int64_t capacity = search->told_capacity ? 2 * search->told_capacity : 64;
        observation *grown = realloc(search->told, (size_t)capacity * sizeof *grown);
        if (!grown) {
            return; /* the search goes on with what it knows */
        }
        search->told = grown;
        search->told_capacity = capacity;
    }
    search->told[search->told_count++] =
        (observation){.config = *config, .log_ratio = log(time_us / (double)mark->predicted_us)};
}

const kkt_search_type kkt_search_model = {
    .name = "model",
    .summary = "best predictions first, corrected by what was measured",
    .open = open_search,
    .close = close_search,
    .propose = propose,
    .tell = tell,
};
