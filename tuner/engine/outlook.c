#include "tuner/engine/outlook.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of what works among what is most alike. No evidence makes a point certain to fail; yet what
 * mostly fails must stay behind the smallest gain of what works, hence the square. */
static const double LEAST_SHARE = 1e-4;

struct kkt_outlook {
    kkt_space *space;
    const kkt_pointset *set;
    kkt_surrogate_point *points; /* one a mark */
    /* 1 where a configuration failed, 0 where it worked, of this problem and those remembered.
     * Whether a result is right depends on the problem, if not much: each is a context. */
    kkt_surrogate *failures;
    int64_t failed, told, tuned; /* `told` when its hyperparameters were chosen */
    bool learned;                /* something since the last update */
    bool ready;                  /* `failures` can be asked */
};

static const kkt_param_table *table_of(const kkt_outlook *outlook) {
    return &kkt_space_variant(outlook->space)->params;
}

static void index_values(const kkt_param_table *table, const kkt_values *config, uint8_t *out) {
    for (size_t p = 0; p < table->count; p++) {
        const kkt_param *param = &table->params[p];
        out[p] = 0;
        for (size_t i = 0; i < param->count; i++) {
            if (param->values[i] == config->v[p]) {
                out[p] = (uint8_t)i;
                break;
            }
        }
    }
}

/* ---- what is remembered ---- */

static void learn_failure(kkt_outlook *outlook, const kkt_surrogate_point *point, bool failed) {
    kkt_surrogate_point bare = *point;
    bare.feature = 0;
    kkt_surrogate_add(outlook->failures, &bare, failed ? 1 : 0);
    outlook->told++;
    outlook->failed += failed;
    outlook->learned = true;
}

/* Corrects each point's expected time by how far the model was off on the other problems. */
static kkt_status remember(kkt_outlook *outlook, const kkt_search_memory *memory, int own,
                           kkt_error *err) {
    kkt_surrogate *errors = kkt_surrogate_open(table_of(outlook), KKT_SURROGATE_POINTS);
    if (!errors) {
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "out of memory");
    }
    for (size_t i = 0; i < memory->count; i++) {
        const kkt_memory_row *row = &memory->rows[i];
        if (row->problem == own) {
            continue;
        }
        kkt_surrogate_point point = {.context = (uint8_t)(1 + row->problem % UINT8_MAX)};
        index_values(table_of(outlook), &row->config, point.index);
        bool timed = row->time_us > 0;
        if (timed) {
            kkt_surrogate_add(errors, &point, log(row->time_us / row->predicted_us));
        }
        learn_failure(outlook, &point, !timed);
    }
    kkt_surrogate_tune(errors);
    if (kkt_surrogate_fit(errors)) {
        for (int64_t i = 0; i < outlook->set->count; i++) {
            kkt_surrogate_point bare = outlook->points[i];
            bare.feature = 0;
            outlook->points[i].feature += kkt_surrogate_predict(errors, &bare, NULL);
        }
    }
    kkt_surrogate_close(errors);
    return KKT_OK;
}

kkt_status kkt_outlook_open(kkt_space *space, const kkt_pointset *set,
                            const kkt_search_memory *memory, int own, kkt_outlook **out,
                            kkt_error *err) {
    kkt_outlook *outlook = calloc(1, sizeof *outlook);
    if (outlook) {
        outlook->space = space;
        outlook->set = set;
        outlook->points = calloc((size_t)set->count + 1, sizeof *outlook->points);
        outlook->failures = kkt_surrogate_open(table_of(outlook), KKT_SURROGATE_POINTS);
    }
    if (!outlook || !outlook->points || !outlook->failures) {
        kkt_outlook_close(outlook);
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "out of memory");
    }
    for (int64_t i = 0; i < set->count; i++) {
        kkt_values config;
        kkt_space_decode(space, set->marks[i].ordinal, &config);
        index_values(table_of(outlook), &config, outlook->points[i].index);
        outlook->points[i].feature = log((double)set->marks[i].predicted_us);
    }
    kkt_status status = memory && memory->count > 0 ? remember(outlook, memory, own, err) : KKT_OK;
    if (status != KKT_OK) {
        kkt_outlook_close(outlook);
        return status;
    }
    kkt_outlook_update(outlook);
    *out = outlook;
    return KKT_OK;
}

void kkt_outlook_close(kkt_outlook *outlook) {
    if (outlook) {
        kkt_surrogate_close(outlook->failures);
        free(outlook->points);
        free(outlook);
    }
}

/* ---- asking ---- */

const kkt_surrogate_point *kkt_outlook_point(const kkt_outlook *outlook, uint32_t at) {
    return &outlook->points[at];
}

void kkt_outlook_tell(kkt_outlook *outlook, uint32_t at, bool failed) {
    learn_failure(outlook, &outlook->points[at], failed);
}

void kkt_outlook_update(kkt_outlook *outlook) {
    if (!outlook->learned || outlook->failed == 0) {
        return; /* nothing failed: nothing is to be feared */
    }
    if ((double)outlook->told >= 1.3 * (double)outlook->tuned) {
        kkt_surrogate_tune(outlook->failures);
        outlook->tuned = outlook->told;
    }
    outlook->ready = kkt_surrogate_fit(outlook->failures);
    outlook->learned = false;
}

double kkt_outlook_chance(const kkt_outlook *outlook, uint32_t at) {
    if (!outlook->ready) {
        return 1;
    }
    kkt_surrogate_point bare = outlook->points[at];
    bare.feature = 0;
    double share = 1 - kkt_surrogate_predict(outlook->failures, &bare, NULL);
    double chance = fmin(fmax(share, LEAST_SHARE), 1);
    return chance * chance;
}

/* The parameter that tells groups apart; -1: there is one group only. */
static int group_param(const kkt_outlook *outlook) {
    const char *chunk = kkt_space_kernel(outlook->space)->chunk_param;
    return chunk ? kkt_params_find(table_of(outlook), chunk) : -1;
}

static double distance(const kkt_param_table *table, const uint8_t *a, const uint8_t *b) {
    double sum = 0;
    for (size_t p = 0; p < table->count; p++) {
        if (a[p] != b[p]) {
            const kkt_param *param = &table->params[p];
            sum += param->names || param->count < 2
                       ? 1
                       : (double)abs(a[p] - b[p]) / (double)(param->count - 1);
        }
    }
    return sum;
}

int64_t kkt_outlook_nearest(const kkt_outlook *outlook, int group, const kkt_values *config) {
    const kkt_param_table *table = table_of(outlook);
    const kkt_pointset *set = outlook->set;
    const int grouped = group_param(outlook);
    uint8_t wanted[KKT_PARAMS_MAX];
    index_values(table, config, wanted);
    int64_t nearest = -1;
    double least = INFINITY;
    for (int64_t i = set->first[group]; i < set->first[group + 1]; i++) {
        const kkt_surrogate_point *point = &outlook->points[set->order[i]];
        if (grouped >= 0) {
            wanted[grouped] = point->index[grouped];
        }
        double far = distance(table, wanted, point->index);
        if (far < least ||
            (far <= least && nearest >= 0 && point->feature < outlook->points[nearest].feature)) {
            least = far;
            nearest = set->order[i];
        }
    }
    return nearest;
}

int kkt_outlook_winners(const kkt_outlook *outlook, int group, const kkt_search_memory *memory,
                        int own, int most, int64_t *out) {
    const int grouped = group_param(outlook);
    const int64_t value = grouped < 0 ? 0 : table_of(outlook)->params[grouped].values[group];
    int count = 0;
    for (int problem = memory->problems; problem > 0 && count < most; problem--) {
        const kkt_memory_row *best =
            problem != own ? kkt_memory_best(memory, problem, grouped, value) : NULL;
        int64_t at = best ? kkt_outlook_nearest(outlook, group, &best->config) : -1;
        for (int i = 0; i < count; i++) {
            at = out[i] == at ? -1 : at;
        }
        if (at >= 0) {
            out[count++] = at;
        }
    }
    return count;
}
