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
