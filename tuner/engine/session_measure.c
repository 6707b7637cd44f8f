/* The search on a backend: propose, compile ahead, check and time, store, tell.
 *
 * A few proposals are ahead of what is measured, so that compiling overlaps measuring and yet the
 * order of proposals depends on nothing but earlier results: a resumed run walks the same way. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tuner/engine/session_internal.h"

/* Candidates from a proposal to its measurement. A search does not know their times yet when it
 * proposes the next, which costs moves from the best most; fewer would leave the GPU waiting for
 * compilers, which take about two measurements' time a candidate. */
enum { AHEAD = 6 };
static const double COMPILE_WAIT_S = 3600.0; /* the pool has its own limit a job */

/* A ring of them. */
typedef struct window {
    trial slots[AHEAD];
    size_t first, count;
} window;

static bool may_propose(const session *s, const task *t, int64_t budget) {
    return budget > 0 && (t->free || s->evals_left > 0) && session_time_left(s) &&
           !session_interrupted();
}

static kkt_status fill_window(session *s, task *t, kkt_search *search, int64_t *budget, window *w,
                              kkt_error *err) {
    kkt_point point;
    kkt_status status = KKT_OK;
    while (status == KKT_OK && w->count < AHEAD && may_propose(s, t, *budget) &&
           s->strategy->propose(search, &point)) {
        trial *slot = &w->slots[(w->first + w->count) % AHEAD];
        status = session_slot_begin(s, t, &point, slot, err);
        if (status != KKT_OK) {
            return status;
        }
        w->count++;
        t->tried++;
        (*budget)--;
        s->evals_left -= !t->free;
        if (!slot->known.settled && session_needs_code(s, t->variant)) {
            status = session_submit(s, slot, err);
        }
    }
    return status;
}

kkt_measure_request session_request(const session *s, const trial *slot) {
    return (kkt_measure_request){
        .kernel = slot->task->kernel,
        .variant = slot->task->variant,
        .arch = s->options->arch,
        .device = s->options->device,
        .problem = &slot->task->problem,
        .config = &slot->point.config,
        .cubin = slot->build.cubin,
        .cubin_size = slot->build.cubin_size,
        .prediction = &slot->point.prediction,
        .policy = &s->options->policy,
    };
}

/* Compiled (or not needing it): check and time. `*time_us` is NaN where it failed. */
static kkt_status measure_slot(session *s, trial *slot, double *time_us, kkt_error *err) {
    *time_us = (double)NAN;
    bool needs = session_needs_code(s, slot->task->variant);
    if (needs && !slot->compiled) {
        return KKT_OK; /* interrupted before it was built */
    }
    kkt_status status = session_store_build(s, slot, err);
    if (status != KKT_OK) {
        return status;
    }
    if (needs && !slot->build.ok) {
        session_count_outcome(
            s, slot, slot->build.timed_out ? KKT_OUTCOME_TIMED_OUT : KKT_OUTCOME_BUILD_FAILED);
        return KKT_OK;
    }
    s->out->counts.compiled += needs;
    kkt_measure_request request = session_request(s, slot);
    kkt_measure_result result;
    memset(&result, 0, sizeof result);
    status = s->backend_type->measure(s->backend, &request, &result, err);
    if (status != KKT_OK) {
        return status;
    }
    status = session_store_run(s, slot, &result, "", err);
    if (status == KKT_OK) {
        session_count_outcome(s, slot, result.run.outcome);
        if (result.run.outcome == KKT_OUTCOME_OK || result.run.outcome == KKT_OUTCOME_NOISY) {
            *time_us = result.run.time_us;
        }
    }
    kkt_measure_result_free(&result);
    return status;
}

kkt_status session_measure_slot(session *s, trial *slot, double *time_us, kkt_error *err) {
    kkt_status status = KKT_OK;
    if (slot->tag != 0) {
        status = session_collect(s, slot, COMPILE_WAIT_S, err);
    }
    return status == KKT_OK ? measure_slot(s, slot, time_us, err) : status;
}

/* The search is told the first time that a candidate got, even where it was re-timed as a finalist
 * since: a resumed run goes the way of the first. */
static kkt_status tell_search(session *s, kkt_search *search, const trial *slot, double time_us,
                              kkt_error *err) {
    const kkt_point *point = &slot->point;
    double first_us = slot->known.settled && time_us > 0 ? slot->known.first_time_us : time_us;
    s->strategy->tell(search, &point->config, first_us);
    return kkt_memory_add(session_memory(s, slot->task->variant), slot->task->memory,
                          &point->config, point->prediction.predicted_us, first_us, err);
}

static kkt_status measure_first(session *s, trial *slot, kkt_search *search, kkt_error *err) {
    double time_us = slot->known.time_us;
    kkt_status status = KKT_OK;
    if (slot->known.settled) {
        session_count_reused(s, slot);
    } else {
        status = session_measure_slot(s, slot, &time_us, err);
    }
    if (status == KKT_OK) {
        status = tell_search(s, search, slot, time_us, err);
    }
    if (status == KKT_OK) {
        status = session_enter(s, slot, time_us, err);
    }
    if (slot->task->free) {
        const int64_t calls = kkt_space_raw_size(slot->task->space);
        session_progress(s, "library", slot->point.ordinal + 1, calls, slot->task->problem_text);
    } else {
        s->tried++;
        session_progress(s, "measure", s->tried, s->to_try, slot->task->problem_text);
    }
    return status;
}

kkt_search_memory *session_memory(session *s, const kkt_variant *variant) {
    recollection *at = s->recollections;
    while (at && at->variant != variant) {
        at = at->next;
    }
    if (!at) {
        at = kkt_arena_alloc(s->arena, sizeof *at);
        *at = (recollection){.variant = variant, .next = s->recollections};
        s->recollections = at;
    }
    return &at->memory;
}

kkt_status session_measure_task(session *s, task *t, int64_t budget, int64_t later,
                                kkt_error *err) {
    kkt_search_options options = {.seed = s->options->seed,
                                  .budget = t->tried + budget + later,
                                  .points = session_points(t),
                                  .memory = session_memory(s, t->variant),
                                  .own = t->memory};
    kkt_search *search = NULL;
    if (!session_time_left(s)) {
        return KKT_OK; /* opening a search looks at every point */
    }
    s->strategy = s->options->search;
    kkt_status status = s->strategy->open(t->space, &options, &search, err);
    return status == KKT_OK ? session_walk_task(s, t, search, budget, err) : status;
}

kkt_status session_walk_task(session *s, task *t, kkt_search *search, int64_t budget,
                             kkt_error *err) {
    window *w = kkt_arena_alloc(s->arena, sizeof *w);
    *w = (window){0};
    if (t->memory == 0) {
        t->memory = kkt_memory_begin(session_memory(s, t->variant));
    }
    kkt_status status = fill_window(s, t, search, &budget, w, err);
    while (status == KKT_OK && w->count > 0 && !session_interrupted()) {
        trial *slot = &w->slots[w->first];
        status = measure_first(s, slot, search, err);
        kkt_compile_result_free(&slot->build);
        w->first = (w->first + 1) % AHEAD;
        w->count--;
        if (status == KKT_OK) {
            status = fill_window(s, t, search, &budget, w, err);
        }
    }
    for (size_t i = 0; i < w->count; i++) {
        kkt_compile_result_free(&w->slots[(w->first + i) % AHEAD].build);
    }
    s->strategy->close(search);
    return status;
}
