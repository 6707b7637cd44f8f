/* The search on a backend: propose, compile ahead, check and time, store, tell.
 *
 * Proposals come in batches of fixed size, one batch ahead of what is measured, so that compiling
 * overlaps measuring and yet the order of proposals depends on nothing but earlier results: a
 * resumed run walks the same way. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tuner/engine/session_internal.h"

enum { BATCH = 8, FINALISTS = 5, CALLS = 2, CALLS_OF_TASK = 64 };
static const double COMPILE_WAIT_S = 3600.0; /* the pool has its own limit a job */

typedef struct batch {
    trial slots[BATCH];
    size_t count;
} batch;

/* Every slot that reached a verdict, for choosing the finalists. */
typedef struct record {
    trial slot; /* its cubin kept for re-timing */
    double time_us;
    double cost; /* what the objective goes by; NaN: unknown */
    bool finalist;
} record;

typedef struct history {
    record *rows;
    size_t count, capacity;
    trial *calls[CALLS_OF_TASK]; /* of a library, timed with the finalists */
    size_t call_count;
} history;

static kkt_status fill_batch(session *s, task *t, kkt_search *search, int64_t *budget, batch *out,
                             kkt_error *err) {
    out->count = 0;
    kkt_point point;
    while (out->count<BATCH && * budget> 0 && s->evals_left > 0 && session_time_left(s) &&
           !session_interrupted() && s->strategy->propose(search, &point)) {
        trial *slot = &out->slots[out->count];
        kkt_status status = session_slot_begin(s, t, &point, slot, err);
        if (status != KKT_OK) {
            return status;
        }
        out->count++;
        (*budget)--;
        s->evals_left--;
        if (!slot->known.settled && session_needs_code(s, t->variant)) {
            status = session_submit(s, slot, err);
            if (status != KKT_OK) {
                return status;
            }
        }
    }
    return KKT_OK;
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
        session_count_outcome(s, slot->build.timed_out ? KKT_OUTCOME_TIMED_OUT
                                                       : KKT_OUTCOME_BUILD_FAILED);
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
        session_count_outcome(s, result.run.outcome);
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

static kkt_status remember(const session *s, history *all, trial *slot, double time_us,
                           kkt_error *err) {
    if (all->count == all->capacity) {
        size_t capacity = all->capacity ? 2 * all->capacity : 64;
        record *grown = realloc(all->rows, capacity * sizeof *grown);
        if (!grown) {
            return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "out of memory");
        }
        all->rows = grown;
        all->capacity = capacity;
    }
    double cost =
        kkt_objective_cost(s->options->objective, time_us, slot->energy_mj, slot->rel_fro);
    all->rows[all->count++] = (record){.slot = *slot, .time_us = time_us, .cost = cost};
    memset(&slot->build, 0, sizeof slot->build);
    return KKT_OK;
}

/* The search is told the first time that a candidate got, even where it was re-timed as a finalist
 * since: a resumed run goes the way of the first. */
static kkt_status tell_search(session *s, kkt_search *search, const trial *slot, double time_us,
                              kkt_error *err) {
    const kkt_point *point = &slot->point;
    double first_us = slot->known.settled && time_us > 0 ? slot->known.first_time_us : time_us;
    s->strategy->tell(search, &point->config, first_us);
    return kkt_memory_add(&s->memory, &point->config, point->prediction.predicted_us, first_us,
                          err);
}

static kkt_status measure_batch(session *s, batch *now, kkt_search *search, history *all,
                                kkt_error *err) {
    for (size_t i = 0; i < now->count; i++) {
        trial *slot = &now->slots[i];
        double time_us = slot->known.time_us;
        kkt_status status = KKT_OK;
        if (slot->known.settled) {
            session_count_reused(s, slot);
        } else {
            if (session_interrupted()) {
                return KKT_OK;
            }
            status = session_measure_slot(s, slot, &time_us, err);
        }
        if (status != KKT_OK) {
            return status;
        }
        status = tell_search(s, search, slot, time_us, err);
        if (status == KKT_OK) {
            status = remember(s, all, slot, time_us, err);
        }
        if (status != KKT_OK) {
            return status;
        }
        s->tried++;
        session_progress(s, "measure", s->tried, s->to_try, slot->task->problem_text);
    }
    return KKT_OK;
}

static void free_batch(batch *b) {
    for (size_t i = 0; i < b->count; i++) {
        kkt_compile_result_free(&b->slots[i].build);
        memset(&b->slots[i].build, 0, sizeof b->slots[i].build);
    }
    b->count = 0;
}

/* ---- finalists: the best of each chunk, re-timed interleaved so that drift hits all alike ---- */

static int compare(double a, double b) {
    return (a > b) - (a < b);
}

/* What is unknown comes last, and goes by its time. */
static int by_cost(const void *left, const void *right) {
    const record *a = *(const record *const *)left;
    const record *b = *(const record *const *)right;
    int order = (isnan(a->cost) != 0) - (isnan(b->cost) != 0);
    if (order == 0) {
        order = isnan(a->cost) ? compare(a->time_us, b->time_us) : compare(a->cost, b->cost);
    }
    return order != 0 ? order : strcmp(a->slot.id.config, b->slot.id.config);
}

static int64_t chunk_of(const trial *slot) {
    const kkt_kernel *kernel = slot->task->kernel;
    return kernel->chunk_param ? kkt_params_get(&slot->task->variant->params, &slot->point.config,
                                                kernel->chunk_param)
                               : 0;
}

/* All or none: they were measured together, and half a group would be measured again. */
static kkt_status store_retimed(session *s, trial *const *slots, size_t count,
                                const kkt_measure_result *results, const char *const *suffixes,
                                kkt_error *err) {
    kkt_status status = kkt_db_begin(s->db, err);
    if (status != KKT_OK) {
        return status;
    }
    for (size_t i = 0; i < count && status == KKT_OK; i++) {
        status = session_store_run(s, slots[i], &results[i], suffixes[i], err);
    }
    if (status == KKT_OK) {
        return kkt_db_commit(s->db, err);
    }
    kkt_db_rollback(s->db);
    return status;
}

kkt_status session_ready_slot(session *s, trial *slot, kkt_error *err) {
    kkt_status status = KKT_OK;
    if (session_needs_code(s, slot->task->variant) && !slot->build.cubin) {
        status = session_submit(s, slot, err); /* reused: from the cubin cache */
        if (status == KKT_OK) {
            status = session_collect(s, slot, 60.0, err);
        }
    }
    if (status == KKT_OK && slot->build_id == 0) {
        status = session_store_build(s, slot, err);
    }
    return status;
}

kkt_status session_retime(session *s, trial *const *slots, size_t count,
                          const char *const *suffixes, kkt_error *err) {
    kkt_measure_request *requests = kkt_arena_array(s->arena, count, sizeof *requests);
    kkt_measure_result *results = kkt_arena_array(s->arena, count, sizeof *results);
    for (size_t i = 0; i < count; i++) {
        kkt_status status = session_ready_slot(s, slots[i], err);
        if (status != KKT_OK) {
            return status;
        }
        requests[i] = session_request(s, slots[i]);
    }
    kkt_status status = s->backend_type->retime(s->backend, requests, count, results, err);
    if (status == KKT_OK) {
        status = store_retimed(s, slots, count, results, suffixes, err);
    }
    for (size_t i = 0; i < count; i++) {
        kkt_measure_result_free(&results[i]);
    }
    return status;
}

/* The fastest calls of a library take their turns, too: how the two stand is then told by times of
 * the same minute, at the same clocks. */
static kkt_status retime(session *s, record **best, size_t count, history *all, kkt_error *err) {
    bool all_known = true;
    trial *slots[FINALISTS + CALLS];
    const char *suffixes[FINALISTS + CALLS];
    for (size_t i = 0; i < count; i++) {
        all_known = all_known && best[i]->slot.known.finalist && best[i]->slot.run_id == 0;
        slots[i] = &best[i]->slot;
    }
    size_t calls = 0;
    if (count == 0) {
        return KKT_OK;
    }
    kkt_status status = session_fastest_calls(s, best[0]->slot.task, chunk_of(&best[0]->slot),
                                              slots + count, CALLS, &calls, err);
    for (size_t i = 0; i < calls && all->call_count < CALLS_OF_TASK; i++) {
        all->calls[all->call_count++] = slots[count + i];
    }
    count += calls;
    for (size_t i = 0; i < count; i++) {
        suffixes[i] = ",finalist=1";
    }
    bool alone = count < 2 && !(s->options->policy.energy_seconds > 0);
    return status != KKT_OK || all_known || alone ? status
                                                  : session_retime(s, slots, count, suffixes, err);
}

/* How many groups of finalists there can be. */
static int64_t chunk_values(const task *t) {
    const kkt_param_table *table = &t->variant->params;
    int index = t->kernel->chunk_param ? kkt_params_find(table, t->kernel->chunk_param) : -1;
    return index < 0 ? 1 : (int64_t)table->params[index].count;
}

static kkt_status retime_finalists(session *s, history *all, kkt_error *err) {
    int64_t groups = 0;
    record **sorted = kkt_arena_array(s->arena, all->count + 1, sizeof *sorted);
    size_t count = 0;
    for (size_t i = 0; i < all->count; i++) {
        if (all->rows[i].time_us > 0) {
            sorted[count++] = &all->rows[i];
        }
    }
    qsort(sorted, count, sizeof *sorted, by_cost);
    for (size_t i = 0; i < count && !session_interrupted(); i++) {
        if (!sorted[i]) {
            continue;
        }
        const task *t = sorted[i]->slot.task;
        int64_t chunk = chunk_of(&sorted[i]->slot);
        record *best[FINALISTS];
        size_t chosen = 0;
        for (size_t j = i; j < count; j++) {
            if (sorted[j] && chunk_of(&sorted[j]->slot) == chunk) {
                if (chosen < FINALISTS) {
                    sorted[j]->finalist = true;
                    best[chosen++] = sorted[j];
                }
                sorted[j] = NULL;
            }
        }
        kkt_status status = s->backend_type->retime ? retime(s, best, chosen, all, err) : KKT_OK;
        if (status != KKT_OK) {
            return status;
        }
        session_progress(s, "finalists", ++groups, chunk_values(t), t->problem_text);
    }
    return KKT_OK;
}

/* Once nothing more of the task is timed: the counting worker ends before the next timing. */
static kkt_status count_chosen(session *s, const history *all, kkt_error *err) {
    kkt_status status = KKT_OK;
    for (size_t i = 0; i < all->count && status == KKT_OK; i++) {
        bool all_of_them = s->options->counters == KKT_COUNTERS_ALL && session_time_left(s);
        if (all->rows[i].finalist || all_of_them) {
            status = session_count(s, &all->rows[i].slot, err);
        }
    }
    for (size_t i = 0; i < all->call_count && status == KKT_OK; i++) {
        status = session_count(s, all->calls[i], err);
    }
    return status;
}

kkt_status session_measure_task(session *s, task *t, int64_t budget, kkt_error *err) {
    if (s->remembered != t->variant) {
        kkt_memory_free(&s->memory);
        s->remembered = t->variant;
    }
    kkt_search_options options = {.seed = s->options->seed,
                                  .budget = budget,
                                  .points = session_points(t),
                                  .memory = &s->memory};
    kkt_search *search = NULL;
    s->strategy = s->options->search;
    kkt_status status = s->strategy->open(t->space, &options, &search, err);
    return status == KKT_OK ? session_walk_task(s, t, search, budget, err) : status;
}

kkt_status session_walk_task(session *s, task *t, kkt_search *search, int64_t budget,
                             kkt_error *err) {
    batch *now = kkt_arena_alloc(s->arena, sizeof *now);
    batch *ahead = kkt_arena_alloc(s->arena, sizeof *ahead);
    history all = {0};
    kkt_memory_begin(&s->memory);
    kkt_status status = fill_batch(s, t, search, &budget, now, err);
    while (status == KKT_OK && now->count > 0) {
        status = fill_batch(s, t, search, &budget, ahead, err);
        if (status == KKT_OK) {
            status = measure_batch(s, now, search, &all, err);
        }
        free_batch(now);
        batch *swap = now;
        now = ahead;
        ahead = swap;
        if (session_interrupted()) {
            break;
        }
    }
    if (status == KKT_OK && !session_interrupted() && !session_stands_beside(s, t)) {
        status = retime_finalists(s, &all, err);
    }
    if (status == KKT_OK) {
        status = count_chosen(s, &all, err);
    }
    free_batch(now);
    free_batch(ahead);
    for (size_t i = 0; i < all.count; i++) {
        kkt_compile_result_free(&all.rows[i].slot.build);
    }
    for (size_t i = 0; i < all.call_count; i++) {
        kkt_compile_result_free(&all.calls[i]->build);
    }
    free(all.rows);
    s->strategy->close(search);
    return status;
}
