/* Compiling: handing jobs to the pool, and the compile phase of a run without a GPU. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tuner/engine/session_internal.h"

/* A run without a GPU ends about a minute after it began, unless a budget says else: compiling
 * stops so early that the results are written by then, and where all before it took too long, it
 * goes on for long enough that repeating the command gets there. */
static const double COMPILE_UNTIL = 57.0;
static const double COMPILE_AT_LEAST = 10.0;
enum { WINNERS_MAX = 512 };

kkt_status session_submit(session *s, trial *slot, kkt_error *err) {
    s->in_flight = kkt_arena_grow(s->arena, s->in_flight, s->in_flight_count,
                                  &s->in_flight_capacity, sizeof *s->in_flight);
    kkt_text defines = {0};
    kkt_compile_job job;
    kkt_compile_job_fill(slot->task->kernel, slot->task->variant, &slot->task->problem,
                         &slot->point.config, s->options->arch, &defines, &job);
    slot->tag = ++s->next_tag;
    kkt_status status = kkt_compile_pool_submit(s->pool, slot->task->variant, &job, slot->tag, err);
    kkt_text_free(&defines);
    if (status == KKT_OK) {
        s->in_flight[s->in_flight_count++] = slot;
    }
    return status;
}

/* Gives a finished job to its slot; one that nobody waits for any more is dropped. */
static trial *deliver(session *s, int64_t tag, kkt_compile_result *result) {
    for (size_t i = 0; i < s->in_flight_count; i++) {
        trial *slot = s->in_flight[i];
        if (slot->tag == tag) {
            s->in_flight[i] = s->in_flight[--s->in_flight_count];
            slot->build = *result;
            kkt_compile_check_entries(slot->task->variant, &slot->task->problem,
                                      &slot->point.config, s->options->arch, &slot->build);
            slot->compiled = true;
            return slot;
        }
    }
    kkt_compile_result_free(result);
    return NULL;
}

/* Waits at most `seconds` for one job; `*out` NULL: none came. */
static kkt_status collect_one(session *s, double seconds, trial **out, kkt_error *err) {
    bool got = false;
    int64_t tag = 0;
    kkt_compile_result result;
    memset(&result, 0, sizeof result);
    *out = NULL;
    kkt_status status = kkt_compile_pool_next(s->pool, seconds, &got, &tag, &result, err);
    if (status == KKT_OK && got) {
        *out = deliver(s, tag, &result);
    }
    return status;
}

kkt_status session_collect(session *s, const trial *wanted, double seconds, kkt_error *err) {
    double end = session_seconds(s) + seconds;
    while (!wanted->compiled && !session_interrupted() && session_seconds(s) < end) {
        trial *got;
        kkt_status status = collect_one(s, 0.2, &got, err);
        if (status != KKT_OK) {
            return status;
        }
    }
    return KKT_OK;
}

/* ---- the compile phase ---- */

/* Slots in the order they are to be compiled. */
typedef struct queue {
    trial **slots;
    size_t count, capacity;
} queue;

static void enqueue(session *s, queue *q, trial *item) {
    q->slots = kkt_arena_grow(s->arena, q->slots, q->count, &q->capacity, sizeof *q->slots);
    q->slots[q->count++] = item;
}

static bool queued(const queue *q, const char *problem, const char *config) {
    for (size_t i = 0; i < q->count; i++) {
        if (strcmp(q->slots[i]->id.problem, problem) == 0 &&
            strcmp(q->slots[i]->id.config, config) == 0) {
            return true;
        }
    }
    return false;
}

typedef struct timed_row {
    int64_t chunk;
    double low, high, time;
    kkt_values config;
} timed_row;

typedef struct winners {
    const task *task;
    timed_row *rows;
    size_t count;
} winners;

static kkt_status visit_timed(void *context, const kkt_result *result, kkt_error *err) {
    (void)err;
    winners *w = context;
    if (!result->has_run || result->outcome != KKT_OUTCOME_OK || w->count == WINNERS_MAX) {
        return KKT_OK;
    }
    const kkt_param_table *table = &w->task->variant->params;
    timed_row *row = &w->rows[w->count];
    kkt_params_defaults(table, &row->config);
    if (kkt_params_parse(table, result->id.config, &row->config, NULL, NULL) != KKT_OK) {
        return KKT_OK;
    }
    const char *chunk = w->task->kernel->chunk_param;
    row->chunk = chunk ? kkt_params_get(table, &row->config, chunk) : 0;
    row->low = result->run.time_low_us;
    row->high = result->run.time_high_us;
    row->time = result->run.time_us;
    w->count++;
    return KKT_OK;
}

static bool is_winner(const winners *w, const timed_row *row) {
    for (size_t i = 0; i < w->count; i++) {
        const timed_row *other = &w->rows[i];
        if (other->chunk == row->chunk && other->time < row->time && other->high < row->low) {
            return false;
        }
    }
    return true;
}

static kkt_status enqueue_point(session *s, queue *q, const task *t, const kkt_point *point,
                                kkt_error *err) {
    trial *item = kkt_arena_alloc(s->arena, sizeof *item);
    kkt_status status = session_slot_begin(s, t, point, item, err);
    if (status == KKT_OK && !queued(q, item->id.problem, item->id.config)) {
        enqueue(s, q, item);
    }
    return status;
}

/* The best of each chunk and whatever ties with it come first: they are what gets exported. */
static kkt_status enqueue_winners(session *s, queue *q, const task *t, kkt_error *err) {
    winners w = {.task = t, .rows = kkt_arena_array(s->arena, WINNERS_MAX, sizeof(timed_row))};
    kkt_result_filter filter = {.kernel = t->kernel->name,
                                .style = kkt_style_get(t->variant->style)->name,
                                .arch = s->options->arch->name,
                                .device = s->options->device->name,
                                .problem = t->problem_text};
    kkt_status status = kkt_db_results(s->db, &filter, s->freshness, visit_timed, &w, err);
    for (size_t i = 0; i < w.count && status == KKT_OK; i++) {
        kkt_point point;
        char reason[240];
        if (s->evals_left > 0 && is_winner(&w, &w.rows[i]) &&
            kkt_space_point(t->space, &w.rows[i].config, &point, reason, sizeof reason)) {
            s->evals_left -= s->options->budget_evals > 0; /* a budget counts the whole run */
            status = enqueue_point(s, q, t, &point, err);
        }
    }
    return status;
}

/* Which chunk sizes of a task the queue has already, a bit each. */
static uint32_t chunks_queued(const queue *q, const task *t) {
    uint32_t bits = 0;
    for (size_t i = 0; i < q->count; i++) {
        const trial *item = q->slots[i];
        const kkt_mark *mark =
            item->task == t ? kkt_pointset_find(&t->walked, t->space, &item->point.config) : NULL;
        bits |= mark ? UINT32_C(1) << mark->group : 0;
    }
    return bits;
}

/* The model's best of the chunk size that it expects most of, among those whose bit is not set in
 * `*taken`; NULL: none is left. */
static kkt_mark *next_chunk(const task *t, uint32_t *taken) {
    const kkt_pointset *set = &t->walked;
    kkt_mark *best = NULL;
    for (int g = 0; g < set->groups; g++) {
        if (set->first[g] == set->first[g + 1] || ((*taken >> g) & 1)) {
            continue;
        }
        kkt_mark *first = &set->marks[set->order[set->first[g]]];
        if (!best || first->predicted_us < best->predicted_us) {
            best = first;
        }
    }
    *taken |= best ? UINT32_C(1) << best->group : 0;
    return best;
}

/* Whether a task is of the first problem that this run has of its variant. */
static bool is_first(const session *s, const task *t) {
    for (const task *other = s->tasks; other < t; other++) {
        if (other->variant == t->variant) {
            return false;
        }
    }
    return true;
}

/* Of each task of a first problem, or of each other one, the best of the chunk size that is
 * expected to be fastest, then of each that of the second, and so on. */
static kkt_status enqueue_rounds(session *s, queue *q, uint32_t *taken, bool first,
                                 kkt_error *err) {
    kkt_status status = KKT_OK;
    for (bool more = true; more && status == KKT_OK;) {
        more = false;
        for (size_t i = 0; i < s->task_count && status == KKT_OK && s->evals_left > 0; i++) {
            const task *t = &s->tasks[i];
            bool due = !t->left_out && is_first(s, t) == first;
            kkt_mark *mark = due ? next_chunk(t, &taken[i]) : NULL;
            kkt_point point;
            if (mark && kkt_pointset_propose(t->space, mark, &point)) {
                s->evals_left--;
                status = enqueue_point(s, q, t, &point, err);
            }
            more = more || mark;
        }
    }
    return status;
}

/* Before the search proposes anything, the model's best of each chunk size that has no recorded
 * winner: chunk sizes are compared on a kernel's first problem, which comes first. A strategy that
 * was asked for by name has its own order. */
static kkt_status enqueue_chunks(session *s, queue *q, kkt_error *err) {
    size_t types;
    if (s->options->search != kkt_searches(&types)[0]) {
        return KKT_OK;
    }
    uint32_t *taken = kkt_arena_array(s->arena, s->task_count + 1, sizeof *taken);
    for (size_t i = 0; i < s->task_count; i++) {
        taken[i] = chunks_queued(q, &s->tasks[i]);
    }
    kkt_status status = enqueue_rounds(s, q, taken, true, err);
    return status == KKT_OK ? enqueue_rounds(s, q, taken, false, err) : status;
}

/* Proposals of all tasks in turn, so that a short budget covers every problem. */
static kkt_status enqueue_proposals(session *s, queue *q, kkt_error *err) {
    const kkt_search_type *type = s->options->search;
    int64_t per_task = s->options->exhaustive ? INT64_MAX : EVALS_PER_TASK;
    kkt_search **searches = kkt_arena_array(s->arena, s->task_count + 1, sizeof(kkt_search *));
    kkt_status status = KKT_OK;
    size_t open = 0;
    for (; open < s->task_count && status == KKT_OK && session_time_left(s); open++) {
        kkt_search_options options = {.seed = s->options->seed,
                                      .budget = EVALS_PER_TASK,
                                      .points = session_points(&s->tasks[open])};
        status = type->open(s->tasks[open].space, &options, &searches[open], err);
    }
    bool more = true;
    for (int64_t round = 0; status == KKT_OK && more && round < per_task; round++) {
        more = false;
        for (size_t i = 0; i < open && status == KKT_OK && s->evals_left > 0; i++) {
            kkt_point point;
            if (!s->tasks[i].left_out && type->propose(searches[i], &point)) {
                more = true;
                s->evals_left--;
                status = enqueue_point(s, q, &s->tasks[i], &point, err);
            }
        }
    }
    for (size_t i = 0; i < open; i++) {
        type->close(searches[i]);
    }
    return status;
}

/* Files a finished build. */
static kkt_status settle(session *s, trial *item, kkt_error *err) {
    bool unavailable = kkt_compile_pool_unavailable(s->pool) != NULL;
    if (!item->build.ok && unavailable) {
        return KKT_OK; /* not in the cache: nothing is known about it, which is no failure */
    }
    /* A build that came with a recording does not stand for one made here: only a cubin in the
     * cache does. */
    bool reused = item->known.fresh_build && item->build.from_cache;
    kkt_status status = reused ? KKT_OK : session_store_build(s, item, err);
    if (reused) {
        session_count_reused(s, item);
    } else if (item->build.ok) {
        s->out->counts.compiled++;
    } else {
        session_count_outcome(
            s, item, item->build.timed_out ? KKT_OUTCOME_TIMED_OUT : KKT_OUTCOME_BUILD_FAILED);
    }
    kkt_compile_result_free(&item->build);
    memset(&item->build, 0, sizeof item->build);
    return status;
}

static void note_limit(const session *s, size_t done, const queue *q) {
    if (done >= q->count || session_interrupted() || !s->options->note) {
        return;
    }
    const char *line = kkt_arena_printf(
        s->arena, "stopped compiling after %.0f s: %zu of %zu are done; the same command goes on",
        session_seconds(s), done, q->count);
    s->options->note(s->options->event_context, line);
}

/* Until the run's budget of seconds is spent, or where it has none, until second `end` of it. */
static kkt_status run_queue(session *s, queue *q, double end, bool *all_done, kkt_error *err) {
    end = s->options->budget_seconds > 0 ? s->options->budget_seconds : end;
    size_t next = 0;
    size_t done = 0;
    size_t ahead = 32; /* jobs handed in: enough to feed every worker, few enough to stop soon */
    while (done < q->count && !session_interrupted() && session_seconds(s) < end) {
        while (next < q->count && next - done < ahead) {
            trial *item = q->slots[next++];
            if (item->known.fresh_build && item->known.build_outcome != KKT_OUTCOME_COMPILED) {
                session_count_reused(s, item); /* it failed before; --retry asks again */
                done++;
                continue;
            }
            kkt_status status = session_submit(s, item, err);
            if (status != KKT_OK) {
                return status;
            }
        }
        if (done >= q->count) {
            break;
        }
        trial *got = NULL;
        kkt_status status = collect_one(s, 0.2, &got, err);
        if (status == KKT_OK && got) {
            done++;
            status = settle(s, got, err);
            session_progress(s, "compile", (int64_t)done, (int64_t)q->count, got->id.problem);
        }
        if (status != KKT_OK) {
            return status;
        }
    }
    kkt_compile_pool_cancel(s->pool);
    note_limit(s, done, q);
    *all_done = done >= q->count;
    return KKT_OK;
}

kkt_status session_compile_slots(session *s, trial **slots, size_t count, kkt_error *err) {
    queue q = {.slots = slots, .count = count, .capacity = count};
    bool all_done;
    return run_queue(s, &q, (double)INFINITY, &all_done, err);
}

kkt_status session_compile_all(session *s, kkt_error *err) {
    queue q = {0};
    s->retrying = s->options->retry;
    kkt_status status = kkt_db_begin(s->db, err);
    for (size_t i = 0; i < s->task_count && status == KKT_OK; i++) {
        if (!s->tasks[i].left_out) {
            status = enqueue_winners(s, &q, &s->tasks[i], err);
        }
    }
    if (status == KKT_OK && !s->nothing_left) {
        status = enqueue_chunks(s, &q, err);
    }
    if (status == KKT_OK && !s->nothing_left) {
        status = enqueue_proposals(s, &q, err);
    }
    if (status != KKT_OK) {
        kkt_db_rollback(s->db);
        return status;
    }
    status = kkt_db_commit(s->db, err);
    bool all_done = false;
    if (status == KKT_OK) {
        double end = fmax(COMPILE_UNTIL, session_seconds(s) + COMPILE_AT_LEAST);
        status = run_queue(s, &q, end, &all_done, err);
    }
    return status == KKT_OK && all_done && !s->nothing_left ? session_mark_store(s, err) : status;
}
