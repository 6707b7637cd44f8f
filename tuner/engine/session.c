#include "tuner/engine/session.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "db/recording.h"
#include "tuner/engine/freshness.h"
#include "tuner/engine/session_internal.h"

/* The one piece of state that a signal handler can reach. */
static volatile sig_atomic_t interrupted;

void kkt_session_interrupt(void) {
    interrupted = 1;
}

bool session_interrupted(void) {
    return interrupted != 0;
}

double session_seconds(const session *s) {
    return kkt_clock_seconds() - s->start_s;
}

/* Shares of a budget of seconds are kept for the pipelines, which are timed last, and for finals
 * that wait until the last style was searched. */
static const double PIPELINES_SHARE = 0.15;
static const double FINALS_SHARE = 0.1;

bool session_time_left(const session *s) {
    bool pipelines_follow =
        s->backend_type && s->backend_type->chain && !s->options->kernel && !s->timing_pipelines;
    bool finals_follow = s->shared_finals && !s->holding_finals && !s->timing_pipelines;
    double part = 1 - (pipelines_follow ? PIPELINES_SHARE : 0) - (finals_follow ? FINALS_SHARE : 0);
    double seconds = s->options->budget_seconds;
    return seconds <= 0 || session_seconds(s) < seconds * part;
}

void session_progress(const session *s, const char *phase, int64_t done, int64_t total,
                      const char *detail) {
    if (s->options->progress) {
        s->options->progress(s->options->progress_context, phase, done, total, detail);
    }
}

const char *kkt_tier_name(kkt_tier tier) {
    static const char *const names[] = {
        [KKT_TIER_PREDICTED] = "predicted",
        [KKT_TIER_COMPILED] = "compiled",
        [KKT_TIER_REPLAYED] = "replayed",
        [KKT_TIER_MEASURED] = "measured",
    };
    return names[tier];
}

/* ---- tasks ---- */

kkt_status session_open_task(session *s, const kkt_kernel *kernel, const kkt_variant *variant,
                             const char *problem, const char *fixed, task *t, kkt_error *err) {
    char reason[240];
    memset(t, 0, sizeof *t);
    t->fixed = fixed;
    t->evals = EVALS_PER_TASK;
    t->best_us = (double)INFINITY;
    t->kernel = kernel;
    t->variant = variant;
    kkt_status status = kkt_kernel_problem_parse(kernel, problem, &t->problem, err);
    if (status != KKT_OK) {
        return status;
    }
    if (!kkt_kernel_problem_valid(kernel, &t->problem, reason, sizeof reason)) {
        return kkt_fail(err, KKT_ERR_INPUT, 0, "%s: %s", kernel->name, reason);
    }
    kkt_variant_hash(variant, t->hash);
    t->problem_text = kkt_params_text(s->arena, &kernel->problem, &t->problem);
    return kkt_space_open(kernel, variant, &t->problem, s->options->arch, s->options->device, fixed,
                          &t->space, err);
}

kkt_status session_add_task(session *s, const kkt_kernel *kernel, const kkt_variant *variant,
                            const char *problem, kkt_error *err) {
    kkt_status status = session_open_task(s, kernel, variant, problem, s->options->fixed,
                                          &s->tasks[s->task_count], err);
    s->task_count += status == KKT_OK;
    return status;
}

void session_close_task(task *t) {
    kkt_space_close(t->space);
    kkt_pointset_free(&t->walked);
}

static size_t count_problems(const kkt_kernel *kernel) {
    size_t count = 0;
    while (kernel->default_problems[count]) {
        count++;
    }
    return count;
}

/* Whether a run is about a variant. Parameters that are held are those of the styles to choose
 * from: a baseline that has no such parameter is none to stand beside them. */
static bool wanted(const session *s, const kkt_variant *variant) {
    kkt_values config;
    if (!kkt_variant_runs(variant) || (s->options->variant && s->options->variant != variant)) {
        return false; /* or known to the model alone: there is nothing to compile yet */
    }
    kkt_params_defaults(&variant->params, &config);
    return s->options->variant || !variant->library || !s->options->fixed ||
           kkt_params_parse(&variant->params, s->options->fixed, &config, NULL, NULL) == KKT_OK;
}

/* Baselines come first: finals of the other styles have their fastest calls beside them. */
static kkt_status add_problem(session *s, const kkt_kernel *kernel, const char *problem,
                              kkt_error *err) {
    kkt_status status = KKT_OK;
    for (int baselines = 1; baselines >= 0; baselines--) {
        for (size_t v = 0; v < kernel->variant_count && status == KKT_OK; v++) {
            const kkt_variant *variant = kernel->variants[v];
            if ((variant->library != NULL) == baselines && wanted(s, variant)) {
                status = session_add_task(s, kernel, variant, problem, err);
            }
        }
    }
    return status;
}

static kkt_status add_kernel(session *s, const kkt_kernel *kernel, kkt_error *err) {
    kkt_status status = KKT_OK;
    if (s->options->problem) {
        return add_problem(s, kernel, s->options->problem, err);
    }
    for (size_t p = 0; kernel->default_problems[p] && status == KKT_OK; p++) {
        status = add_problem(s, kernel, kernel->default_problems[p], err);
    }
    return status;
}

static kkt_status make_tasks(session *s, kkt_error *err) {
    if (s->options->pipeline) {
        return session_pipeline_tasks(s, err);
    }
    size_t count;
    size_t most = 0;
    const kkt_kernel *const *kernels = kkt_kernels(&count);
    for (size_t k = 0; k < count; k++) {
        most += kernels[k]->variant_count * (count_problems(kernels[k]) + 1);
    }
    s->tasks = kkt_arena_array(s->arena, most, sizeof *s->tasks);
    kkt_status status = KKT_OK;
    for (size_t k = 0; k < count && status == KKT_OK; k++) {
        if (!s->options->kernel || s->options->kernel == kernels[k]) {
            status = add_kernel(s, kernels[k], err);
        }
    }
    return status;
}

/* ---- phases ---- */

/* Of a budget of seconds so much may go into walking through the spaces, to each its part. */
static const double WALKING_SHARE = 0.5;

static void note_cut(const session *s) {
    if (s->walks_cut > 0 && s->options->note && !session_interrupted()) {
        s->options->note(
            s->options->event_context,
            kkt_arena_printf(s->arena,
                             "%zu of %zu spaces were read in part only, so as not to spend more "
                             "than half of the budget of seconds on it; the rest is not searched",
                             s->walks_cut, s->task_count));
    }
}

static kkt_status predict_all(session *s, kkt_error *err) {
    kkt_status status = kkt_db_begin(s->db, err);
    for (size_t i = 0; i < s->task_count && status == KKT_OK; i++) {
        s->walk_until_s =
            s->options->budget_seconds * WALKING_SHARE * (double)(i + 1) / (double)s->task_count;
        if (!s->nothing_left) {
            status = session_store_rejects(s, &s->tasks[i], err);
        }
        if (status == KKT_OK) {
            status = session_predict_known(s, &s->tasks[i], err);
        }
        session_progress(s, "predict", (int64_t)i + 1, (int64_t)s->task_count,
                         s->tasks[i].problem_text);
    }
    s->walk_until_s = s->options->budget_seconds;
    note_cut(s);
    if (status != KKT_OK) {
        kkt_db_rollback(s->db);
        return status;
    }
    return kkt_db_commit(s->db, err);
}

/* A search that has nothing to search is an answer, not a result. */
static kkt_status refuse_empty(const session *s, kkt_error *err) {
    const kkt_kernel *kernel = s->options->kernel;
    const task *first = NULL; /* that is no baseline: its style is the kernel's plainest */
    char reason[240] = "the space is empty";
    for (size_t i = 0; i < s->task_count; i++) {
        const task *t = &s->tasks[i];
        if (t->points > 0 || s->nothing_left || s->walks_cut > 0) {
            return KKT_OK; /* or not all of it was looked at */
        }
        first = !first && !t->variant->library ? t : first;
    }
    if (first) {
        kkt_space_why_empty(first->space, reason, sizeof reason);
    }
    if (!kernel && !s->options->pipeline) {
        return kkt_fail(err, KKT_ERR_MISSING, 0, "no kernel can run on %s; %s cannot because %s",
                        s->options->arch->name, first ? first->kernel->name : "a baseline", reason);
    }
    const char *name = kernel ? kernel->name : s->options->pipeline->name;
    if (s->task_count == 0) {
        return kkt_fail(
            err, KKT_ERR_INPUT, 0,
            "%s has no device code yet; 'kkttune model' shows what the model says of it", name);
    }
    return kkt_fail(err, KKT_ERR_MISSING, 0, "no configuration of %s can run here: %s", name,
                    reason);
}

/* How many candidates of a share there are when `gone` of them were tried. Baselines are none. */
static int64_t most_left(const task *t, int64_t gone, int64_t share) {
    const int64_t left = t->points > gone ? t->points - gone : 0;
    return t->free ? 0 : share < left ? share : left;
}

static int64_t most_of(const task *t, int64_t share) {
    return most_left(t, t->tried, share);
}

/* What is foreseen for the parts of a turn's search that come before it. */
static int64_t foreseen_before(const session *s, size_t index) {
    int64_t before = 0;
    for (size_t i = 0; i < index; i++) {
        before += s->turns[i].task == s->turns[index].task ? s->turns[i].foreseen : 0;
    }
    return before;
}

/* What is foreseen for the rest of a search that goes on later. */
static int64_t later_of(const session *s, size_t index) {
    int64_t later = 0;
    for (size_t i = index + 1; i < s->turn_count; i++) {
        const turn *other = &s->turns[i];
        later += other->task == s->turns[index].task ? other->share : 0;
    }
    return later;
}

static kkt_status search_turn(session *s, size_t index, kkt_error *err) {
    const turn *now = &s->turns[index];
    task *t = now->task;
    int64_t begun = s->tried;
    int64_t share = session_share(s, index); /* with what earlier turns left over */
    int64_t most = most_of(t, share);
    kkt_status status = KKT_OK;
    s->to_try += most - now->foreseen;
    if (s->options->retry && now->first) {
        status = session_retry_task(s, t, err);
    }
    if (status == KKT_OK) {
        status = session_measure_task(s, t, share, later_of(s, index), err);
    }
    s->to_try += s->tried - begun - most; /* a search may end early */
    return status;
}

static kkt_status take_turn(session *s, size_t index, kkt_error *err) {
    const turn *now = &s->turns[index];
    kkt_status status = s->options->revalidate ? session_revalidate_task(s, now->task, err)
                                               : search_turn(s, index, err);
    return status == KKT_OK && now->last ? session_gone_through(s, now->task, err) : status;
}

/* How many candidates each turn may try, as far as it can be foreseen. */
static void foresee(session *s) {
    const int64_t budget = s->evals_left;
    for (size_t i = 0; i < s->turn_count; i++) {
        turn *now = &s->turns[i];
        now->share = session_share(s, i);
        now->foreseen = most_left(now->task, foreseen_before(s, i), now->share);
        s->evals_left -= s->options->budget_evals > 0 ? now->foreseen : 0;
        s->to_try += now->foreseen;
    }
    s->evals_left = budget;
}

static kkt_status measure_all(session *s, kkt_error *err) {
    kkt_status status = KKT_OK;
    session_order_tasks(s);
    session_plan_turns(s);
    session_open_contests(s);
    if (!s->options->revalidate) {
        foresee(s);
    }
    for (size_t i = 0; i < s->turn_count && status == KKT_OK && !session_interrupted(); i++) {
        status = take_turn(s, i, err);
    }
    return status == KKT_OK ? session_time_pipelines(s, err) : status;
}

typedef struct tally {
    bool made_up; /* times of the fake backend count: it is the one that runs */
    int64_t measured, replayed, compiled;
} tally;

static kkt_status visit_tally(void *context, const kkt_result *result, kkt_error *err) {
    (void)err;
    tally *t = context;
    bool run = result->has_run && result->outcome == KKT_OUTCOME_OK &&
               (t->made_up || !kkt_run_made_up(&result->run));
    t->measured += run && result->run.provenance == KKT_MEASURED;
    t->replayed += run && result->run.provenance == KKT_REPLAYED;
    t->compiled += result->has_build && result->build.outcome == KKT_OUTCOME_COMPILED;
    return KKT_OK;
}

static kkt_status summarize(session *s, kkt_error *err) {
    tally t = {.made_up = s->backend && !s->backend_type->needs_cubin};
    kkt_result_filter filter = {
        .kernel = s->options->kernel ? s->options->kernel->name : NULL,
        .arch = s->options->arch->name,
        .device = s->options->device->name,
    };
    kkt_status status = kkt_db_results(s->db, &filter, s->freshness, visit_tally, &t, err);
    s->out->counts.replayed = t.replayed;
    s->out->tier = t.measured > 0   ? KKT_TIER_MEASURED
                   : t.replayed > 0 ? KKT_TIER_REPLAYED
                   : t.compiled > 0 ? KKT_TIER_COMPILED
                                    : KKT_TIER_PREDICTED;
    s->out->interrupted = session_interrupted();
    s->out->seconds = session_seconds(s);
    return status;
}

static kkt_status run_phases(session *s, kkt_error *err) {
    kkt_status status = KKT_OK;
    if (s->options->reference_folder) {
        int64_t rows = 0;
        status = kkt_recording_import_folder(s->db, s->options->reference_folder,
                                             s->options->arch->name, &rows, err);
        if (status == KKT_OK && rows > 0) {
            session_progress(s, "replay", rows, rows, "recorded rows");
        }
    }
    if (status == KKT_OK) {
        status = make_tasks(s, err);
    }
    if (status == KKT_OK) {
        session_open_libraries(s);
        status = session_mark_load(s, err);
    }
    if (status == KKT_OK) {
        status = predict_all(s, err);
    }
    if (status == KKT_OK) {
        status = refuse_empty(s, err);
    }
    if (status == KKT_OK) {
        status = s->backend ? measure_all(s, err) : session_compile_all(s, err);
    }
    if (status == KKT_OK) {
        status = kkt_db_mark_stale(s->db, s->freshness, err);
    }
    return status == KKT_OK ? summarize(s, err) : status;
}

void session_open(session *s) {
    bool compiles = s->pool && !kkt_compile_pool_unavailable(s->pool);
    s->start_s = kkt_clock_seconds();
    s->arena = kkt_arena_open();
    s->freshness =
        kkt_freshness_make(s->arena, compiles ? kkt_compile_pool_version(s->pool) : NULL);
}

void session_close(session *s) {
    for (size_t i = 0; i < s->task_count; i++) {
        session_close_task(&s->tasks[i]);
    }
    for (size_t i = 0; i < s->contest_count; i++) {
        session_drop_contest(s->contests[i]);
    }
    for (recollection *at = s->recollections; at; at = at->next) {
        kkt_memory_free(&at->memory);
    }
    kkt_arena_close(s->arena);
}

/* Of all kernels together: each style on each default problem, and each chunk size on the first. */
static const int64_t COMPILED_OF_ALL = 96;

/* Without a GPU a default run compiles a fixed number of candidates beside the recorded winners, so
 * that its repetition finds nothing left to do. */
static int64_t evals_of(const kkt_session_options *options, const kkt_backend *backend) {
    if (options->budget_evals > 0) {
        return options->budget_evals;
    }
    if (backend || options->exhaustive) {
        return INT64_MAX;
    }
    return options->kernel || options->pipeline ? EVALS_PER_TASK : COMPILED_OF_ALL;
}

kkt_status kkt_session_run(const kkt_session_options *options, kkt_db *db, kkt_compile_pool *pool,
                           const kkt_backend_type *backend_type, kkt_backend *backend,
                           kkt_session_summary *out, kkt_error *err) {
    memset(out, 0, sizeof *out);
    session s = {.options = options,
                 .db = db,
                 .pool = pool,
                 .backend_type = backend_type,
                 .backend = backend,
                 .out = out,
                 .evals_left = evals_of(options, backend)};
    session_open(&s);
    kkt_status status = run_phases(&s, err);
    session_close(&s);
    return status;
}
