#include "tuner/engine/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

extern const kkt_search_type kkt_search_model;
extern const kkt_search_type kkt_search_random;
extern const kkt_search_type kkt_search_exhaustive;

/* The list; the first is the default. */
static const kkt_search_type *const searches[] = {
    &kkt_search_model,
    &kkt_search_random,
    &kkt_search_exhaustive,
};

const kkt_search_type *const *kkt_searches(size_t *count) {
    *count = sizeof searches / sizeof *searches;
    return searches;
}

kkt_status kkt_search_parse(const char *name, const kkt_search_type **out, kkt_error *err) {
    kkt_text known = {0};
    for (size_t i = 0; i < sizeof searches / sizeof *searches; i++) {
        if (strcmp(searches[i]->name, name) == 0) {
            kkt_text_free(&known);
            *out = searches[i];
            return KKT_OK;
        }
        kkt_text_printf(&known, "%s%s", i ? ", " : "", searches[i]->name);
    }
    kkt_status status = kkt_fail(err, KKT_ERR_INPUT, 0, "unknown strategy '%s'; known: %s", name,
                                 kkt_text_get(&known));
    kkt_text_free(&known);
    return status;
}

kkt_status kkt_search_points(kkt_space *space, const kkt_search_options *options, kkt_pointset *out,
                             kkt_error *err) {
    return options->points ? kkt_pointset_copy(options->points, out, err)
                           : kkt_pointset_make(space, NULL, NULL, out, err);
}

int kkt_memory_begin(kkt_search_memory *memory) {
    return ++memory->problems;
}

kkt_status kkt_memory_add(kkt_search_memory *memory, int problem, const kkt_values *config,
                          double predicted_us, double time_us, kkt_error *err) {
    if (memory->count == memory->capacity) {
        size_t capacity = memory->capacity ? 2 * memory->capacity : 128;
        kkt_memory_row *grown = realloc(memory->rows, capacity * sizeof *grown);
        if (!grown) {
            return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "out of memory");
        }
        memory->rows = grown;
        memory->capacity = capacity;
    }
    memory->rows[memory->count++] = (kkt_memory_row){
        .config = *config,
        .problem = problem,
        .predicted_us = predicted_us,
        .time_us = time_us > 0 ? time_us : (double)NAN,
    };
    return KKT_OK;
}

const kkt_memory_row *kkt_memory_best(const kkt_search_memory *memory, int problem, int param,
                                      int64_t value) {
    const kkt_memory_row *best = NULL;
    for (size_t i = 0; i < memory->count; i++) {
        const kkt_memory_row *row = &memory->rows[i];
        const bool asked = row->problem == problem && (param < 0 || row->config.v[param] == value);
        if (asked && row->time_us > 0 && (!best || row->time_us < best->time_us)) {
            best = row;
        }
    }
    return best;
}

void kkt_memory_free(kkt_search_memory *memory) {
    free(memory->rows);
    *memory = (kkt_search_memory){0};
}
