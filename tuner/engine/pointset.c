#include "tuner/engine/pointset.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int by_group_and_prediction(const void *left, const void *right) {
    const kkt_mark *a = left;
    const kkt_mark *b = right;
    if (a->group != b->group) {
        return a->group < b->group ? -1 : 1;
    }
    if (a->predicted_us < b->predicted_us || a->predicted_us > b->predicted_us) {
        return a->predicted_us < b->predicted_us ? -1 : 1;
    }
    return a->ordinal < b->ordinal ? -1 : a->ordinal > b->ordinal;
}

/* Index of the point's chunk among the parameter's values; 0 where the kernel has no chunk. */
static uint8_t group_of(const kkt_space *space, const kkt_values *config) {
    const char *chunk = kkt_space_kernel(space)->chunk_param;
    const kkt_param_table *table = &kkt_space_variant(space)->params;
    int index = chunk ? kkt_params_find(table, chunk) : -1;
    if (index < 0) {
        return 0;
    }
    const kkt_param *param = &table->params[index];
    for (uint8_t i = 0; i < param->count && i < KKT_GROUPS_MAX; i++) {
        if (param->values[i] == config->v[index]) {
            return i;
        }
    }
    return 0;
}

kkt_status kkt_pointset_make(kkt_space *space, kkt_pointset *out, kkt_error *err) {
    memset(out, 0, sizeof *out);
    int64_t capacity = 0;
    kkt_point point;
    kkt_space_rewind(space);
    while (kkt_space_next(space, NULL, NULL, &point)) {
        if (out->count == capacity) {
            capacity = capacity ? 2 * capacity : 1024;
            kkt_mark *grown = realloc(out->marks, (size_t)capacity * sizeof *grown);
            if (!grown) {
                kkt_pointset_free(out);
                return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "out of memory");
            }
            out->marks = grown;
        }
        out->marks[out->count++] = (kkt_mark){.ordinal = point.ordinal,
                                              .predicted_us = (float)point.prediction.predicted_us,
                                              .time_us = NAN,
                                              .group = group_of(space, &point.config)};
    }
    if (out->count > 0) {
        qsort(out->marks, (size_t)out->count, sizeof *out->marks, by_group_and_prediction);
    }
    for (int64_t i = 0; i < out->count; i++) {
        if (out->marks[i].group >= out->groups) {
            for (int g = out->groups; g <= out->marks[i].group; g++) {
                out->first[g] = i;
            }
            out->groups = out->marks[i].group + 1;
        }
    }
    out->first[out->groups] = out->count;
    return KKT_OK;
}

void kkt_pointset_free(kkt_pointset *set) {
    free(set->marks);
    memset(set, 0, sizeof *set);
}

kkt_mark *kkt_pointset_find(const kkt_pointset *set, const kkt_space *space,
                            const kkt_values *config) {
    kkt_point point;
    char reason[240];
    if (!kkt_space_point(space, config, &point, reason, sizeof reason)) {
        return NULL;
    }
    kkt_mark key = {.ordinal = point.ordinal,
                    .predicted_us = (float)point.prediction.predicted_us,
                    .group = group_of(space, config)};
    return set->count == 0 ? NULL
                           : bsearch(&key, set->marks, (size_t)set->count, sizeof *set->marks,
                                     by_group_and_prediction);
}

bool kkt_pointset_propose(kkt_space *space, kkt_mark *mark, kkt_point *out) {
    kkt_values config;
    char reason[240];
    mark->proposed = true;
    kkt_space_decode(space, mark->ordinal, &config);
    return kkt_space_point(space, &config, out, reason, sizeof reason);
}

void kkt_pointset_tell(kkt_pointset *set, const kkt_space *space, const kkt_values *config,
                       double time_us) {
    kkt_mark *mark = kkt_pointset_find(set, space, config);
    if (mark) {
        mark->proposed = true;
        mark->told = true;
        mark->time_us = (float)time_us;
    }
}
