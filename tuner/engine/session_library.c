/* Baselines of a session: variants that call a library's routines. */
#include <stdio.h>
#include <string.h>

#include "tuner/engine/freshness.h"
#include "tuner/engine/session_internal.h"

bool session_needs_code(const session *s, const kkt_variant *variant) {
    return s->backend_type->needs_cubin && variant->source;
}

static const called_library *find(const session *s, const char *name) {
    for (size_t i = 0; i < s->library_count; i++) {
        if (strcmp(s->libraries[i].name, name) == 0) {
            return &s->libraries[i];
        }
    }
    return NULL;
}

const char *session_tools(const session *s, const char *compiler, const kkt_variant *variant) {
    const char *out = compiler;
    for (size_t i = 0; i < s->library_count; i++) {
        const called_library *at = &s->libraries[i];
        bool called = !variant || (variant->library && strcmp(variant->library, at->name) == 0);
        if (called && at->version[0] != '\0') {
            out = kkt_arena_printf(s->arena, "%s%s%s %s", out ? out : "", out ? ", " : "", at->name,
                                   at->version);
        }
    }
    return out;
}

static void note_missing(const session *s, const char *name, const char *why) {
    if (s->options->note) {
        s->options->note(s->options->event_context,
                         kkt_arena_printf(s->arena, "what calls %s is left out: %s", name, why));
    }
}

/* Adds a library, with its version where it can be called. */
static const called_library *add(session *s, const char *name) {
    called_library *at = &s->libraries[s->library_count++];
    kkt_error why = {0};
    *at = (called_library){.name = name};
    if (!s->backend) {
        if (s->options->variant) { /* the others need not be told: nothing at all is timed */
            note_missing(s, name, "there is no GPU to time it on; recordings are shown");
        }
    } else if (s->backend_type->library &&
               s->backend_type->library(s->backend, s->options->arch, name, at->version, &why) !=
                   KKT_OK) {
        at->version[0] = '\0';
        note_missing(s, name, why.message);
    }
    return at;
}

void session_open_libraries(session *s) {
    for (size_t i = 0; i < s->task_count; i++) {
        task *t = &s->tasks[i];
        const char *name = t->variant->library;
        if (!name) {
            continue;
        }
        const called_library *library = find(s, name);
        if (!library && s->library_count < CALLED_LIBRARIES_MAX) {
            library = add(s, name);
        }
        bool calls = !s->backend || s->backend_type->library; /* the fake backend calls nothing */
        t->left_out = calls && (!library || library->version[0] == '\0');
    }
    if (s->library_count > 0) {
        s->freshness = kkt_freshness_make(s->arena, session_tools(s, s->freshness->compiler, NULL));
    }
}

/* ---- calls beside finalists ---- */

enum { CALLS_MOST = 4 };

typedef struct calls {
    const session *s;
    const task *task; /* of the baseline */
    int64_t chunk;
    size_t most, count;
    struct {
        kkt_values config;
        double time_us;
    } fastest[CALLS_MOST]; /* the fastest first */
} calls;

static kkt_status visit_call(void *context, const kkt_result *result, kkt_error *err) {
    calls *c = context;
    const kkt_param_table *table = &c->task->variant->params;
    const char *chunk = c->task->kernel->chunk_param;
    const bool made_up = !c->s->backend_type->needs_cubin;
    kkt_values config;
    (void)err;
    kkt_params_defaults(table, &config);
    if (!result->has_run || result->stale_reason || result->outcome != KKT_OUTCOME_OK ||
        result->run.provenance != KKT_MEASURED || kkt_run_made_up(&result->run) != made_up ||
        kkt_params_parse(table, result->id.config, &config, NULL, NULL) != KKT_OK ||
        (chunk && kkt_params_get(table, &config, chunk) != c->chunk)) {
        return KKT_OK;
    }
    size_t at = c->count < c->most ? c->count++ : c->most;
    for (; at > 0 && c->fastest[at - 1].time_us > result->run.time_us; at--) {
        if (at < c->most) {
            c->fastest[at] = c->fastest[at - 1];
        }
    }
    if (at < c->most) {
        c->fastest[at].config = config;
        c->fastest[at].time_us = result->run.time_us;
    }
    return KKT_OK;
}

/* The run's task of a library's calls on the same problem; NULL: there is none. */
static const task *baseline_of(const session *s, const task *t) {
    for (size_t i = 0; i < s->task_count; i++) {
        const task *other = &s->tasks[i];
        if (other->kernel == t->kernel && other->variant->library && !other->left_out &&
            strcmp(other->problem_text, t->problem_text) == 0) {
            return other;
        }
    }
    return NULL;
}

bool session_stands_beside(const session *s, const task *t) {
    for (size_t i = 0; t->variant->library && i < s->task_count; i++) {
        const task *other = &s->tasks[i];
        if (other->kernel == t->kernel && kkt_variant_tuned(other->variant) &&
            strcmp(other->problem_text, t->problem_text) == 0) {
            return true;
        }
    }
    return false;
}

kkt_status session_fastest_calls(session *s, const task *t, int64_t chunk, trial **out, size_t most,
                                 size_t *count, kkt_error *err) {
    calls c = {.s = s,
               .task = t->variant->library ? NULL : baseline_of(s, t),
               .chunk = chunk,
               .most = most < CALLS_MOST ? most : CALLS_MOST};
    *count = 0;
    if (!c.task) {
        return KKT_OK;
    }
    kkt_result_filter filter = {.kernel = t->kernel->name,
                                .style = kkt_style_get(c.task->variant->style)->name,
                                .arch = s->options->arch->name,
                                .device = s->options->device->name,
                                .problem = t->problem_text};
    kkt_status status = kkt_db_results(s->db, &filter, s->freshness, visit_call, &c, err);
    for (size_t i = 0; i < c.count && status == KKT_OK; i++) {
        kkt_point point;
        char reason[240];
        if (!kkt_space_point(c.task->space, &c.fastest[i].config, &point, reason, sizeof reason)) {
            continue;
        }
        trial *slot = kkt_arena_alloc(s->arena, sizeof *slot);
        status = session_slot_begin(s, c.task, &point, slot, err);
        out[(*count)++] = slot;
    }
    return status;
}
