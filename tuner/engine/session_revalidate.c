/* Revalidating: the candidates of a task that were run before take the place of a search's
 * proposals. What is fresh is reused and what is stale is measured again, as in any walk; then the
 * best are re-timed against each other. */
#include <math.h>
#include <stdlib.h>

#include "tuner/engine/session_internal.h"

struct kkt_search {
    session *s;
    const task *task;
    kkt_values *configs;
    size_t count, capacity, next;
};

static void close_search(kkt_search *search) {
    (void)search; /* it lives in the session's arena */
}

static bool propose(kkt_search *search, kkt_point *out) {
    char reason[240];
    while (search->next < search->count) {
        const kkt_values *config = &search->configs[search->next++];
        if (kkt_space_point(search->task->space, config, out, reason, sizeof reason)) {
            return true;
        }
    }
    return false;
}

static void tell(kkt_search *search, const kkt_values *config, double time_us) {
    (void)search;
    (void)config;
    (void)time_us;
}

static const kkt_search_type stored = {
    .name = "stored",
    .summary = "what was run before",
    .close = close_search,
    .propose = propose,
    .tell = tell,
};

/* A fresh replayed row is somebody else's: nothing is wrong with it, and it is not in the way. */
static kkt_status visit_run(void *context, const kkt_result *result, kkt_error *err) {
    (void)err;
    kkt_search *list = context;
    bool own = result->run.provenance == KKT_MEASURED;
    if (!result->has_run || (!own && result->stale_reason == NULL)) {
        return KKT_OK;
    }
    list->configs = kkt_arena_grow(list->s->arena, list->configs, list->count, &list->capacity,
                                   sizeof *list->configs);
    const kkt_param_table *table = &list->task->variant->params;
    kkt_params_defaults(table, &list->configs[list->count]);
    if (kkt_params_parse(table, result->id.config, &list->configs[list->count], NULL, NULL) ==
        KKT_OK) {
        list->count++;
    }
    return KKT_OK;
}

kkt_status session_revalidate_task(session *s, task *t, kkt_error *err) {
    kkt_search *list = kkt_arena_alloc(s->arena, sizeof *list);
    *list = (kkt_search){.s = s, .task = t};
    kkt_result_filter filter = {.kernel = t->kernel->name,
                                .style = kkt_style_get(t->variant->style)->name,
                                .arch = s->options->arch->name,
                                .device = s->options->device->name,
                                .problem = t->problem_text};
    kkt_status status = kkt_db_results(s->db, &filter, s->freshness, visit_run, list, err);
    if (status != KKT_OK) {
        return status;
    }
    s->strategy = &stored;
    s->to_try += t->free ? 0 : (int64_t)list->count;
    return session_walk_task(s, t, list, (int64_t)list->count, err);
}
