/* Pipelines in a session: their members are tuned chunk size by chunk size, then the best of each
 * are timed together. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/pipeline.h"
#include "tuner/engine/session_pipeline.h"

enum {
    EVALS_PER_CHUNK = EVALS_PER_TASK / 4, /* of a member, problem and chunk size */
    EVALS_TO_FILL = 8 /* where the main job finds nothing measured at a chunk size */
};
_Static_assert(KKT_PIPELINE_MEMBERS_MAX == KKT_MEMBERS_MAX, "a run is stored with all members");

/* Forms whose members take so much more than the best one's are not timed end to end. */
static const double FORMS_WITHIN = 0.05;

static bool lists_chunk(const kkt_kernel *kernel, const kkt_variant *variant, int64_t chunk) {
    int index = kkt_params_find(&variant->params, kernel->chunk_param);
    for (size_t i = 0; index >= 0 && i < variant->params.params[index].count; i++) {
        if (variant->params.params[index].values[i] == chunk) {
            return true;
        }
    }
    return false;
}

/* The chunk sizes of a run: those that the members share, or the one that is held. */
static size_t chunks_of(const session *s, const kkt_pipeline_kernels *p, int64_t *out) {
    const kkt_kernel *whole = p->whole;
    kkt_values held;
    uint64_t given = 0;
    size_t count = 0;
    const kkt_param_table *table = &whole->variants[0]->params;
    kkt_params_defaults(table, &held);
    if (s->options->fixed) {
        kkt_params_parse(table, s->options->fixed, &held, &given, NULL);
    }
    for (size_t i = 0; i < p->chunk_count; i++) {
        if (given == 0 || p->chunks[i] == kkt_params_get(table, &held, whole->chunk_param)) {
            out[count++] = p->chunks[i];
        }
    }
    return count;
}

static const char *member_text(session *s, const kkt_pipeline_kernels *p, size_t member,
                               const kkt_values *problem, size_t form) {
    kkt_values own;
    kkt_pipeline_member_problem(p, member, problem, form, &own);
    return kkt_params_text(s->arena, &p->members[member]->problem, &own);
}

/* ---- tasks ---- */

static bool has_task(const session *s, const kkt_variant *variant, const char *problem,
                     const char *fixed) {
    for (size_t i = 0; i < s->task_count; i++) {
        const task *t = &s->tasks[i];
        if (t->variant == variant && strcmp(t->problem_text, problem) == 0 &&
            strcmp(t->fixed, fixed) == 0) {
            return true;
        }
    }
    return false;
}

static kkt_status add_member(session *s, const kkt_kernel *kernel, const char *problem,
                             int64_t chunk, kkt_error *err) {
    const char *fixed =
        kkt_arena_printf(s->arena, "%s=%lld", kernel->chunk_param, (long long)chunk);
    for (size_t v = 0; v < kernel->variant_count; v++) {
        const kkt_variant *variant = kernel->variants[v];
        if (!kkt_variant_tuned(variant) || !lists_chunk(kernel, variant, chunk) ||
            has_task(s, variant, problem, fixed)) {
            continue;
        }
        task *t = &s->tasks[s->task_count];
        kkt_status status = session_open_task(s, kernel, variant, problem, fixed, t, err);
        if (status != KKT_OK) {
            return status;
        }
        t->evals = EVALS_PER_CHUNK;
        s->task_count++;
    }
    return KKT_OK;
}

/* Problem number `index` of those of a pipeline that this run is about; NULL: there are no more. */
static const char *problem_text(const session *s, const kkt_pipeline *pipeline, size_t index) {
    if (s->options->problem) {
        return index == 0 ? s->options->problem : NULL;
    }
    for (size_t i = 0; i < index; i++) { /* the list may be shorter */
        if (!pipeline->problems[i]) {
            return NULL;
        }
    }
    bool beyond = !s->options->pipeline && index >= pipeline->main_problems;
    return beyond ? NULL : pipeline->problems[index];
}

static kkt_status parse_problem(const kkt_pipeline_kernels *p, const char *text, kkt_values *out,
                                kkt_error *err) {
    char reason[240];
    kkt_params_defaults(&p->whole->problem, out);
    kkt_status status = kkt_params_parse(&p->whole->problem, text, out, NULL, err);
    if (status == KKT_OK && !kkt_kernel_problem_valid(p->whole, out, reason, sizeof reason)) {
        status = kkt_fail(err, KKT_ERR_INPUT, 0, "%s: %s", p->pipeline->name, reason);
    }
    return status;
}

static kkt_status add_problem(session *s, const kkt_pipeline_kernels *p, const kkt_values *problem,
                              kkt_error *err) {
    int64_t chunks[KKT_CHOICES_MAX];
    size_t count = chunks_of(s, p, chunks);
    kkt_status status = KKT_OK;
    for (size_t m = 0; m < p->count; m++) {
        for (size_t f = 0; f < p->forms; f++) {
            const char *text = member_text(s, p, m, problem, f);
            for (size_t c = 0; c < count && status == KKT_OK; c++) {
                status = add_member(s, p->members[m], text, chunks[c], err);
            }
        }
    }
    return status;
}

kkt_status session_pipeline_tasks(session *s, kkt_error *err) {
    const kkt_pipeline *pipeline = s->options->pipeline;
    const char *missing = NULL;
    kkt_pipeline_kernels p;
    size_t problems = 1;
    size_t each = 0;
    if (!kkt_pipeline_open(pipeline, &p, &missing)) {
        return kkt_fail(err, KKT_ERR_INPUT, 0, "%s needs the kernel %s, which is not there yet",
                        pipeline->name, missing);
    }
    while (pipeline->problems[problems]) {
        problems++;
    }
    for (size_t m = 0; m < p.count; m++) {
        each += p.members[m]->variant_count;
    }
    s->tasks =
        kkt_arena_array(s->arena, each * p.forms * p.chunk_count * problems + 1, sizeof *s->tasks);
    kkt_status status = KKT_OK;
    const char *text;
    for (size_t i = 0; status == KKT_OK && (text = problem_text(s, pipeline, i)) != NULL; i++) {
        kkt_values problem;
        status = parse_problem(&p, text, &problem, err);
        if (status == KKT_OK) {
            status = add_problem(s, &p, &problem, err);
        }
    }
    return status;
}

/* ---- the best of each member ---- */

static kkt_status visit_best(void *context, const kkt_result *result, kkt_error *err) {
    (void)err;
    choice *c = context;
    bool fresh = result->has_run && result->stale_reason == NULL &&
                 result->run.provenance == KKT_MEASURED &&
                 kkt_run_made_up(&result->run) == c->made_up;
    if (!fresh || result->outcome != KKT_OUTCOME_OK || result->run.time_us >= c->time_us) {
        return KKT_OK; /* rows come sorted: of equal ones the first */
    }
    const kkt_style *style = kkt_style_find(result->id.style);
    const kkt_variant *variant = style ? kkt_kernel_variant(c->kernel, style->id) : NULL;
    kkt_values config;
    if (!variant || !kkt_variant_tuned(variant) || strlen(result->id.config) >= sizeof c->text) {
        return KKT_OK;
    }
    kkt_params_defaults(&variant->params, &config);
    if (kkt_params_parse(&variant->params, result->id.config, &config, NULL, NULL) != KKT_OK ||
        kkt_params_get(&variant->params, &config, c->kernel->chunk_param) != c->chunk) {
        return KKT_OK;
    }
    c->variant = variant;
    c->config = config;
    c->time_us = result->run.time_us;
    snprintf(c->text, sizeof c->text, "%s", result->id.config);
    return KKT_OK;
}

static kkt_status find_best(session *s, choice *c, kkt_error *err) {
    kkt_result_filter filter = {.kernel = c->kernel->name,
                                .arch = s->options->arch->name,
                                .device = s->options->device->name,
                                .problem = c->problem};
    c->variant = NULL;
    c->time_us = (double)INFINITY;
    c->made_up = !s->backend_type->needs_cubin;
    return kkt_db_results(s->db, &filter, s->freshness, visit_best, c, err);
}

/* A few candidates of a member at a chunk size at which nothing was measured yet. */
static kkt_status fill(session *s, const choice *c, kkt_error *err) {
    kkt_status status = KKT_OK;
    const char *fixed =
        kkt_arena_printf(s->arena, "%s=%lld", c->kernel->chunk_param, (long long)c->chunk);
    for (size_t v = 0; v < c->kernel->variant_count && status == KKT_OK; v++) {
        const kkt_variant *variant = c->kernel->variants[v];
        task *t = kkt_arena_alloc(s->arena, sizeof *t);
        if (!kkt_variant_tuned(variant) || !lists_chunk(c->kernel, variant, c->chunk)) {
            continue;
        }
        status = session_open_task(s, c->kernel, variant, c->problem, fixed, t, err);
        if (status != KKT_OK) {
            break;
        }
        status = session_store_rejects(s, t, err);
        if (status == KKT_OK) {
            int64_t most = t->points < EVALS_TO_FILL ? t->points : EVALS_TO_FILL;
            s->to_try += most;
            t->contest = session_own_contest(s, t);
            status = session_measure_task(s, t, most, 0, err);
            status = status == KKT_OK ? session_gone_through(s, t, err) : status;
            session_drop_contest(t->contest);
        }
        session_close_task(t);
        t->space = NULL;
    }
    return status;
}

/* Whether a few candidates may be tried for a member that has none. The main job compares forms on
 * a pipeline's first problem; elsewhere the default one does, and others where they are there. */
static bool may_fill(const session *s, const kkt_pipeline_kernels *p, const kkt_values *problem,
                     size_t form) {
    kkt_values first;
    kkt_params_defaults(&p->whole->problem, &first);
    kkt_params_parse(&p->whole->problem, p->pipeline->problems[0], &first, NULL, NULL);
    bool compares = s->options->pipeline || kkt_values_equal(&p->whole->problem, problem, &first);
    return (compares || form == 0) && s->evals_left > 0 && session_time_left(s) &&
           !session_interrupted() && !s->options->revalidate;
}

/* The members of one form at a chunk size; `*sum_us` is infinite where one has nothing. */
static kkt_status choose_members(session *s, const kkt_pipeline_kernels *p,
                                 const kkt_values *problem, size_t form, int64_t chunk, choice *out,
                                 double *sum_us, kkt_error *err) {
    kkt_status status = KKT_OK;
    *sum_us = 0;
    for (size_t m = 0; m < p->count && status == KKT_OK && isfinite(*sum_us); m++) {
        out[m] = (choice){.kernel = p->members[m],
                          .problem = member_text(s, p, m, problem, form),
                          .chunk = chunk};
        status = find_best(s, &out[m], err);
        if (status == KKT_OK && !out[m].variant && may_fill(s, p, problem, form)) {
            status = fill(s, &out[m], err);
            if (status == KKT_OK) {
                status = find_best(s, &out[m], err);
            }
        }
        *sum_us += out[m].time_us;
    }
    return status;
}

/* ---- end to end ---- */

static kkt_status time_chunk(session *s, const kkt_pipeline_kernels *p, const kkt_values *problem,
                             int64_t chunk, kkt_error *err) {
    choice(*members)[KKT_MEMBERS_MAX] = kkt_arena_array(s->arena, p->forms, sizeof *members);
    double *sums = kkt_arena_array(s->arena, p->forms, sizeof *sums);
    double best = (double)INFINITY;
    kkt_text text = {0};
    kkt_status status = KKT_OK;
    for (size_t f = 0; f < p->forms && status == KKT_OK; f++) {
        status = choose_members(s, p, problem, f, chunk, members[f], &sums[f], err);
        best = fmin(best, sums[f]);
    }
    kkt_params_format(&p->whole->problem, problem, &text);
    for (size_t f = 0; f < p->forms && status == KKT_OK && isfinite(best); f++) {
        if (sums[f] > best * (1 + FORMS_WITHIN)) {
            continue;
        }
        status = session_time_chain(s, p, kkt_text_get(&text), problem, chunk, members[f], err);
    }
    int64_t done = s->out->counts.pipelines + s->pipelines_known;
    session_progress(s, "pipelines", done, done, kkt_text_get(&text));
    kkt_text_free(&text);
    return status;
}

static kkt_status time_problem(session *s, const kkt_pipeline_kernels *p, const kkt_values *problem,
                               kkt_error *err) {
    int64_t chunks[KKT_CHOICES_MAX];
    size_t count = chunks_of(s, p, chunks);
    kkt_status status = KKT_OK;
    for (size_t c = 0; c < count && status == KKT_OK; c++) {
        if (session_interrupted() || !session_time_left(s)) {
            break;
        }
        status = time_chunk(s, p, problem, chunks[c], err);
    }
    return status;
}

/* One pipeline's problem number `index`; `*more` where it has such a one. */
static kkt_status time_numbered(session *s, const kkt_pipeline *pipeline, size_t index, bool *more,
                                kkt_error *err) {
    kkt_pipeline_kernels p;
    kkt_values problem;
    const char *text = problem_text(s, pipeline, index);
    if (!text || !kkt_pipeline_open(pipeline, &p, NULL) || !p.device_code) {
        return KKT_OK;
    }
    *more = true;
    kkt_status status = parse_problem(&p, text, &problem, err);
    return status == KKT_OK ? time_problem(s, &p, &problem, err) : status;
}

/* Problem by problem, so that pipelines of one problem find its inputs made. */
kkt_status session_time_pipelines(session *s, kkt_error *err) {
    const kkt_pipeline *only = s->options->pipeline;
    kkt_status status = KKT_OK;
    size_t count;
    bool more = s->backend_type->chain && !s->options->kernel;
    s->timing_pipelines = true;
    const kkt_pipeline *const *all = kkt_pipelines(&count);
    for (size_t i = 0; more && status == KKT_OK && !session_interrupted(); i++) {
        more = false;
        for (size_t p = 0; p < count && status == KKT_OK; p++) {
            if (!only || only == all[p]) {
                status = time_numbered(s, all[p], i, &more, err);
            }
        }
    }
    return status;
}
