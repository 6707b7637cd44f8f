/* Finals: the best of each style of a problem, and the fastest calls of a library beside them,
 * timed in turn so that drift hits all alike. They are held once the last style was searched. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tuner/engine/session_internal.h"

enum { FINALISTS = 5, CALLS = 2, CALLS_OF_CONTEST = 64 };

/* A candidate that reached a verdict. */
typedef struct record {
    trial slot; /* its cubin kept for re-timing */
    double time_us;
    double cost; /* what the objective goes by; NaN: unknown */
    bool finalist;
} record;

struct contest {
    const kkt_kernel *kernel;
    const char *problem_text, *fixed;
    int64_t tasks;  /* that belong to it */
    int64_t gone;   /* of them, those that were gone through */
    int64_t styles; /* of the tasks, those of tuned styles */
    record *rows;
    size_t count, capacity;
    trial *calls[CALLS_OF_CONTEST]; /* of a library, timed with the finalists */
    size_t call_count;
};

static bool same_text(const char *a, const char *b) {
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static contest *contest_of(session *s, const task *t) {
    for (size_t i = 0; i < s->contest_count; i++) {
        contest *at = s->contests[i];
        if (at->kernel == t->kernel && strcmp(at->problem_text, t->problem_text) == 0 &&
            same_text(at->fixed, t->fixed)) {
            return at;
        }
    }
    contest *added = kkt_arena_alloc(s->arena, sizeof *added);
    *added = (contest){.kernel = t->kernel, .problem_text = t->problem_text, .fixed = t->fixed};
    s->contests[s->contest_count++] = added;
    return added;
}

void session_open_contests(session *s) {
    s->contests = kkt_arena_array(s->arena, s->task_count + 1, sizeof(contest *));
    for (size_t i = 0; i < s->task_count; i++) {
        task *t = &s->tasks[i];
        if (!t->left_out) {
            t->contest = contest_of(s, t);
            t->contest->tasks++;
            t->contest->styles += kkt_variant_tuned(t->variant);
            s->shared_finals = s->shared_finals || t->contest->styles > 1;
        }
    }
}

contest *session_own_contest(session *s, const task *t) {
    contest *own = kkt_arena_alloc(s->arena, sizeof *own);
    *own = (contest){.kernel = t->kernel,
                     .problem_text = t->problem_text,
                     .fixed = t->fixed,
                     .tasks = 1,
                     .styles = 1};
    return own;
}

void session_drop_contest(contest *c) {
    for (size_t i = 0; i < c->count; i++) {
        kkt_compile_result_free(&c->rows[i].slot.build);
    }
    for (size_t i = 0; i < c->call_count; i++) {
        kkt_compile_result_free(&c->calls[i]->build);
    }
    free(c->rows);
    c->rows = NULL;
    c->count = c->capacity = c->call_count = 0;
}

kkt_status session_enter(const session *s, trial *slot, double time_us, kkt_error *err) {
    contest *all = slot->task->contest;
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

/* A call of this run stands in for its own copy from the database; others are kept for counting. */
static trial *call_in_turn(contest *all, trial *call) {
    for (size_t i = 0; i < all->count; i++) {
        if (all->rows[i].slot.candidate_id == call->candidate_id) {
            all->rows[i].finalist = true;
            return &all->rows[i].slot;
        }
    }
    if (all->call_count < CALLS_OF_CONTEST) {
        all->calls[all->call_count++] = call;
    }
    return call;
}

/* The fastest calls of a library take their turns, too: how the two stand is then told by times of
 * the same minute, at the same clocks. `slots` has room for them behind the `count` finalists. */
static kkt_status retime(session *s, contest *all, trial **slots, size_t count, kkt_error *err) {
    bool all_known = true;
    for (size_t i = 0; i < count; i++) {
        all_known = all_known && slots[i]->known.finalist && slots[i]->run_id == 0;
    }
    size_t calls = 0;
    kkt_status status = session_fastest_calls(s, slots[0]->task, chunk_of(slots[0]), slots + count,
                                              CALLS, &calls, err);
    for (size_t i = 0; i < calls; i++) {
        slots[count + i] = call_in_turn(all, slots[count + i]);
    }
    count += calls;
    const char **suffixes = kkt_arena_array(s->arena, count, sizeof *suffixes);
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

/* Of a chunk size's candidates that were chosen so far, those of one style. */
static size_t of_style(trial *const *slots, size_t count, const kkt_variant *variant) {
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        found += slots[i]->task->variant == variant;
    }
    return found;
}

/* Takes the candidates of the first one's chunk size out of those left, and chooses the best of
 * each style from them. */
static size_t choose(record **sorted, size_t count, trial **out) {
    const int64_t chunk = chunk_of(&sorted[0]->slot);
    size_t chosen = 0;
    for (size_t i = 0; i < count; i++) {
        if (!sorted[i] || chunk_of(&sorted[i]->slot) != chunk) {
            continue;
        }
        if (of_style(out, chosen, sorted[i]->slot.task->variant) < FINALISTS) {
            sorted[i]->finalist = true;
            out[chosen++] = &sorted[i]->slot;
        }
        sorted[i] = NULL;
    }
    return chosen;
}

static kkt_status retime_finalists(session *s, contest *all, kkt_error *err) {
    int64_t groups = 0;
    record **sorted = kkt_arena_array(s->arena, all->count + 1, sizeof *sorted);
    trial **slots = kkt_arena_array(s->arena, all->count + CALLS + 1, sizeof(trial *));
    size_t count = 0;
    kkt_status status = KKT_OK;
    for (size_t i = 0; i < all->count; i++) {
        const bool beside = all->styles > 0 && all->rows[i].slot.task->variant->library;
        if (all->rows[i].time_us > 0 && !beside) {
            sorted[count++] = &all->rows[i];
        }
    }
    qsort(sorted, count, sizeof *sorted, by_cost);
    for (size_t i = 0; i < count && status == KKT_OK && !session_interrupted(); i++) {
        if (!sorted[i]) {
            continue;
        }
        const task *t = sorted[i]->slot.task;
        size_t chosen = choose(sorted + i, count - i, slots);
        status = s->backend_type->retime ? retime(s, all, slots, chosen, err) : KKT_OK;
        if (status == KKT_OK) {
            session_progress(s, "finalists", ++groups, chunk_values(t), t->problem_text);
        }
    }
    return status;
}

/* Once nothing more of the problem is timed: the counting worker ends before the next timing. */
static kkt_status count_chosen(session *s, const contest *all, kkt_error *err) {
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

/* Where styles share finals, a run that is out of time would have those of all problems before it:
 * what its budget keeps for them has to do, and the same command holds the others. */
static bool may_retime(session *s, const contest *c) {
    s->holding_finals = true;
    bool may = !session_interrupted() && (c->styles < 2 || session_time_left(s));
    s->holding_finals = false;
    return may;
}

kkt_status session_gone_through(session *s, const task *t, kkt_error *err) {
    contest *c = t->contest;
    if (++c->gone < c->tasks) {
        return KKT_OK;
    }
    kkt_status status = may_retime(s, c) ? retime_finalists(s, c, err) : KKT_OK;
    if (status == KKT_OK) {
        status = count_chosen(s, c, err);
    }
    session_drop_contest(c);
    return status;
}
