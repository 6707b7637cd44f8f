#include "tuner/engine/pointset.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A mark's place in the order. */
typedef struct placed {
    float predicted_us;
    uint32_t mark;
    uint8_t group;
} placed;

/* Marks are numbered by ordinal, so equals keep that order. */
static int by_group_and_prediction(const void *left, const void *right) {
    const placed *a = left;
    const placed *b = right;
    if (a->group != b->group) {
        return a->group < b->group ? -1 : 1;
    }
    if (a->predicted_us < b->predicted_us || a->predicted_us > b->predicted_us) {
        return a->predicted_us < b->predicted_us ? -1 : 1;
    }
    return a->mark < b->mark ? -1 : a->mark > b->mark;
}

static int by_ordinal(const void *left, const void *right) {
    const kkt_mark *a = left;
    const kkt_mark *b = right;
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

static kkt_status no_memory(kkt_pointset *set, kkt_error *err) {
    kkt_pointset_free(set);
    return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "out of memory");
}

static kkt_status put_in_order(kkt_pointset *set, kkt_error *err) {
    placed *places = malloc(((size_t)set->count + 1) * sizeof *places);
    set->order = malloc(((size_t)set->count + 1) * sizeof *set->order);
    if (!places || !set->order) {
        free(places);
        return no_memory(set, err);
    }
    for (int64_t i = 0; i < set->count; i++) {
        places[i] = (placed){set->marks[i].predicted_us, (uint32_t)i, set->marks[i].group};
    }
    qsort(places, (size_t)set->count, sizeof *places, by_group_and_prediction);
    for (int64_t i = 0; i < set->count; i++) {
        set->order[i] = places[i].mark;
        for (; set->groups <= places[i].group; set->groups++) {
            set->first[set->groups] = i;
        }
    }
    set->first[set->groups] = set->count;
    free(places);
    return KKT_OK;
}

kkt_status kkt_pointset_make(kkt_space *space, kkt_space_rejected rejected, void *context,
                             kkt_pointset *out, kkt_error *err) {
    memset(out, 0, sizeof *out);
    int64_t capacity = 0;
    kkt_point point;
    kkt_space_rewind(space);
    while (kkt_space_next(space, rejected, context, &point)) {
        if (out->count == capacity) {
            capacity = capacity ? 2 * capacity : 1024;
            kkt_mark *grown = realloc(out->marks, (size_t)capacity * sizeof *grown);
            if (!grown || capacity > UINT32_MAX) {
                out->marks = grown ? grown : out->marks;
                return no_memory(out, err);
            }
            out->marks = grown;
        }
        out->marks[out->count++] = (kkt_mark){.ordinal = point.ordinal,
                                              .predicted_us = (float)point.prediction.predicted_us,
                                              .time_us = NAN,
                                              .group = group_of(space, &point.config)};
    }
    return put_in_order(out, err);
}

kkt_status kkt_pointset_copy(const kkt_pointset *set, kkt_pointset *out, kkt_error *err) {
    size_t count = (size_t)set->count;
    *out = *set;
    out->marks = malloc((count + 1) * sizeof *out->marks);
    out->order = malloc((count + 1) * sizeof *out->order);
    if (!out->marks || !out->order) {
        return no_memory(out, err);
    }
    if (count > 0) {
        memcpy(out->marks, set->marks, count * sizeof *out->marks);
        memcpy(out->order, set->order, count * sizeof *out->order);
    }
    return KKT_OK;
}

void kkt_pointset_free(kkt_pointset *set) {
    free(set->marks);
    free(set->order);
    memset(set, 0, sizeof *set);
}

kkt_mark *kkt_pointset_find(const kkt_pointset *set, const kkt_space *space,
                            const kkt_values *config) {
    kkt_mark key = {0};
    if (set->count == 0 || !kkt_space_ordinal(space, config, &key.ordinal)) {
        return NULL;
    }
    return bsearch(&key, set->marks, (size_t)set->count, sizeof *set->marks, by_ordinal);
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
