/* Trying again what failed: before the search begins, so that a candidate's second chance does not
 * depend on where the search goes. */
#include "tuner/engine/session_internal.h"

typedef struct failures {
    session *s;
    const task *task;
    kkt_values *configs;
    size_t count, capacity;
} failures;

static kkt_status visit_failed(void *context, const kkt_result *result, kkt_error *err) {
    (void)err;
    failures *list = context;
    bool tried = result->has_build || result->has_run;
    /* Rejected where it was run: the space rejects the others by itself. */
    if (!tried ||
        !(kkt_outcome_failed(result->outcome) || result->outcome == KKT_OUTCOME_REJECTED)) {
        return KKT_OK;
    }
    list->configs = kkt_arena_grow(list->s->arena, list->configs, list->count, &list->capacity,
                                   sizeof *list->configs);
    const kkt_param_table *table = &list->task->variant->params;
    kkt_values *config = &list->configs[list->count];
    kkt_params_defaults(table, config);
    if (kkt_params_parse(table, result->id.config, config, NULL, NULL) == KKT_OK) {
        list->count++;
    }
    return KKT_OK;
}

static kkt_status retry_one(session *s, const task *t, const kkt_values *config, kkt_error *err) {
    kkt_point point;
    char reason[240];
    double time_us;
    if (!kkt_space_point(t->space, config, &point, reason, sizeof reason)) {
        return KKT_OK; /* it is no longer in the space */
    }
    trial *slot = kkt_arena_alloc(s->arena, sizeof *slot);
    kkt_status status = session_slot_begin(s, t, &point, slot, err);
    if (status != KKT_OK || slot->known.settled) {
        return status;
    }
    if (session_needs_code(s, t->variant)) {
        status = session_submit(s, slot, err);
    }
    if (status == KKT_OK) {
        status = session_measure_slot(s, slot, &time_us, err);
    }
    kkt_compile_result_free(&slot->build);
    return status;
}

kkt_status session_retry_task(session *s, const task *t, kkt_error *err) {
    failures list = {.s = s, .task = t};
    kkt_result_filter filter = {.kernel = t->kernel->name,
                                .style = kkt_style_get(t->variant->style)->name,
                                .arch = s->options->arch->name,
                                .device = s->options->device->name,
                                .problem = t->problem_text};
    kkt_status status = kkt_db_results(s->db, &filter, s->freshness, visit_failed, &list, err);
    s->retrying = true;
    for (size_t i = 0;
         i < list.count && status == KKT_OK && !session_interrupted() && session_time_left(s);
         i++) {
        status = retry_one(s, t, &list.configs[i], err);
        session_progress(s, "retry", (int64_t)i + 1, (int64_t)list.count, t->problem_text);
    }
    s->retrying = false;
    return status;
}
