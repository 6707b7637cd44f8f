/* Pipelines in a session: their members are tuned chunk size by chunk size, then the best of each
 * are timed together. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/pipeline.h"
#include "tuner/engine/session_internal.h"

enum {
    EVALS_PER_CHUNK = EVALS_PER_TASK / 4, /* of a member, problem and chunk size */
    EVALS_TO_FILL = 8 /* where the main job finds nothing measured at a chunk size */
};
/* Parts of a pipeline's result that the reference is computed for: each member was checked on many
 * more, and of what the first pipeline of a problem gives every element serves the next ones. */
enum { PARTS_CHECKED = 8 };
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
    kkt_text text = {0};
    kkt_pipeline_member_problem(p, member, problem, form, &own);
    kkt_params_format(&p->members[member]->problem, &own, &text);
    const char *copy = kkt_arena_strdup(s->arena, kkt_text_get(&text));
    kkt_text_free(&text);
    return copy;
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
        if (!variant->source || !lists_chunk(kernel, variant, chunk) ||
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

/* Calls `each` for the problems of a pipeline that this run is about. */
static kkt_status each_problem(session *s, const kkt_pipeline_kernels *p,
                               kkt_status (*each)(session *s, const kkt_pipeline_kernels *p,
                                                  const kkt_values *problem, kkt_error *err),
                               kkt_error *err) {
    const kkt_pipeline *pipeline = p->pipeline;
    kkt_status status = KKT_OK;
    for (size_t i = 0; status == KKT_OK && !session_interrupted(); i++) {
        const char *text = s->options->problem ? s->options->problem : pipeline->problems[i];
        bool last = s->options->problem ? i > 0 : text == NULL;
        if (last || (!s->options->pipeline && i == pipeline->main_problems)) {
            break;
        }
        kkt_values problem;
        char reason[240];
        kkt_params_defaults(&p->whole->problem, &problem);
        status = kkt_params_parse(&p->whole->problem, text, &problem, NULL, err);
        if (status == KKT_OK &&
            !kkt_kernel_problem_valid(p->whole, &problem, reason, sizeof reason)) {
            status = kkt_fail(err, KKT_ERR_INPUT, 0, "%s: %s", pipeline->name, reason);
        }
        if (status == KKT_OK) {
            status = each(s, p, &problem, err);
        }
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
    return each_problem(s, &p, add_problem, err);
}

/* ---- the best of each member ---- */

/* What a member runs with at a chunk size. */
typedef struct choice {
    const kkt_kernel *kernel;
    const kkt_variant *variant; /* NULL: nothing is measured */
    const char *problem;        /* canonical */
    int64_t chunk;
    bool made_up;
    kkt_values config;
    double time_us;
    char text[1024]; /* canonical configuration */
} choice;

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
    if (!variant || !variant->source || strlen(result->id.config) >= sizeof c->text) {
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
        if (!variant->source || !lists_chunk(c->kernel, variant, c->chunk)) {
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
            status = session_measure_task(s, t, most, err);
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

/* One timing of a pipeline. */
typedef struct chain {
    const kkt_pipeline_kernels *pipeline;
    const char *problem_text; /* of the pipeline, canonical */
    const kkt_values *problem;
    int64_t chunk;
    kkt_launch_order order;
    const choice *members;
    bool made_up, retry;
    bool found; /* visited: the same was timed before, by what is there now */
    trial slots[KKT_MEMBERS_MAX];
    task tasks[KKT_MEMBERS_MAX];
} chain;

static kkt_status visit_known(void *context, const kkt_pipeline_record *record, kkt_error *err) {
    (void)err;
    chain *c = context;
    bool same = record->chunk == c->chunk && record->order == c->order &&
                record->member_count == c->pipeline->count &&
                record->run.provenance == KKT_MEASURED &&
                kkt_run_made_up(&record->run) == c->made_up;
    bool good = record->run.outcome == KKT_OUTCOME_OK || record->run.outcome == KKT_OUTCOME_NOISY;
    same = same && (good || !c->retry);
    for (size_t m = 0; m < c->pipeline->count && same; m++) {
        const kkt_member_record *member = &record->members[m];
        const choice *own = &c->members[m];
        same = member->stale_reason == NULL && strcmp(member->id.kernel, own->kernel->name) == 0 &&
               strcmp(member->id.style, kkt_style_get(own->variant->style)->name) == 0 &&
               strcmp(member->id.problem, own->problem) == 0 &&
               strcmp(member->id.config, own->text) == 0;
    }
    c->found = c->found || same;
    return KKT_OK;
}

/* Compiles the members (from the cache, as a rule). `*ready` false: one could not be. */
static kkt_status ready_members(session *s, chain *c, bool *ready, kkt_error *err) {
    char reason[240];
    *ready = true;
    for (size_t m = 0; m < c->pipeline->count && *ready; m++) {
        const choice *own = &c->members[m];
        task *t = &c->tasks[m];
        trial *slot = &c->slots[m];
        kkt_point point;
        kkt_status status =
            session_open_task(s, own->kernel, own->variant, own->problem, NULL, t, err);
        if (status == KKT_OK) {
            *ready = kkt_space_point(t->space, &own->config, &point, reason, sizeof reason);
            status = *ready ? session_slot_begin(s, t, &point, slot, err) : KKT_OK;
        }
        if (status == KKT_OK && *ready) {
            status = session_ready_slot(s, slot, err);
        }
        if (status != KKT_OK) {
            return status;
        }
        *ready = *ready && (!s->backend_type->needs_cubin || slot->build.cubin);
    }
    return KKT_OK;
}

static kkt_status store_chain(session *s, const chain *c, const kkt_measure_result *result,
                              kkt_error *err) {
    kkt_pipeline_record record = {.pipeline = c->pipeline->pipeline->name,
                                  .arch = s->options->arch->name,
                                  .device = s->options->device->name,
                                  .problem = c->problem_text,
                                  .chunk = c->chunk,
                                  .order = c->order,
                                  .member_count = c->pipeline->count,
                                  .run = result->run};
    int64_t run_id = 0;
    for (size_t m = 0; m < c->pipeline->count; m++) {
        record.members[m].build_id = c->slots[m].build_id;
    }
    record.run.provenance = KKT_MEASURED;
    kkt_status status = kkt_db_put_pipeline_run(s->db, &record, &run_id, err);
    if (status != KKT_OK) {
        return status;
    }
    s->out->counts.pipelines++;
    const kkt_identity id = {.kernel = record.pipeline,
                             .style = kkt_launch_order_name(c->order),
                             .arch = record.arch,
                             .device = record.device,
                             .problem = record.problem,
                             .config = kkt_arena_printf(s->arena, "%s=%lld",
                                                        c->pipeline->whole->chunk_param,
                                                        (long long)c->chunk)};
    const kkt_session_event event = {.step = "pipeline",
                                     .id = &id,
                                     .outcome = record.run.outcome,
                                     .reason = record.run.reason,
                                     .run = &record.run,
                                     .time_us = record.run.time_us,
                                     .predicted_us = (double)NAN};
    if (s->options->event) {
        s->options->event(s->options->event_context, &event);
    }
    return KKT_OK;
}

static kkt_status measure_chain(session *s, chain *c, kkt_error *err) {
    const kkt_kernel *whole = c->pipeline->whole;
    const kkt_variant *variant = whole->variants[0];
    kkt_measure_request members[KKT_MEMBERS_MAX];
    kkt_measure_result result;
    kkt_values config;
    kkt_params_defaults(&variant->params, &config);
    config.v[kkt_params_find(&variant->params, whole->chunk_param)] = c->chunk;
    for (size_t m = 0; m < c->pipeline->count; m++) {
        members[m] = session_request(s, &c->slots[m]);
    }
    kkt_chain_request request = {
        .whole = members[0], .members = members, .count = c->pipeline->count, .order = c->order};
    kkt_policy policy = s->options->policy;
    policy.large_parts = policy.large_parts < PARTS_CHECKED ? policy.large_parts : PARTS_CHECKED;
    request.whole.policy = &policy;
    request.whole.kernel = whole;
    request.whole.variant = variant;
    request.whole.problem = c->problem;
    request.whole.config = &config;
    request.whole.cubin = NULL;
    request.whole.cubin_size = 0;
    memset(&result, 0, sizeof result);
    kkt_status status = s->backend_type->chain(s->backend, &request, &result, err);
    if (status == KKT_OK) {
        status = store_chain(s, c, &result, err);
        kkt_measure_result_free(&result);
    }
    return status;
}

/* Whether some launch behind the first waits for the one before it by itself. */
static bool can_overlap(const session *s, const chain *c) {
    for (size_t m = 0; m < c->pipeline->count; m++) {
        const choice *own = &c->members[m];
        kkt_plan plan = {0};
        own->variant->plan(&c->tasks[m].problem, &own->config, s->options->arch, &plan);
        for (int l = m == 0 ? 1 : 0; l < plan.launch_count; l++) {
            if (plan.launches[l].waits) {
                return true;
            }
        }
    }
    return false;
}

static void drop_chain(chain *c) {
    for (size_t m = 0; m < KKT_MEMBERS_MAX; m++) {
        kkt_compile_result_free(&c->slots[m].build);
        session_close_task(&c->tasks[m]);
    }
}

/* Both orders of one choice of members, where there are two. */
static kkt_status time_chain(session *s, chain *c, kkt_error *err) {
    kkt_pipeline_filter filter = {c->pipeline->pipeline->name, s->options->arch->name,
                                  s->options->device->name, c->problem_text};
    bool ready = false;
    kkt_status status = ready_members(s, c, &ready, err);
    for (int order = 0; order < KKT_LAUNCH_ORDER_COUNT && status == KKT_OK && ready; order++) {
        if (session_interrupted() || !session_time_left(s)) {
            break;
        }
        c->order = (kkt_launch_order)order;
        c->found = order == KKT_OVERLAPPED && !can_overlap(s, c);
        status = kkt_db_pipeline_runs(s->db, &filter, s->freshness, visit_known, c, err);
        if (status == KKT_OK && !c->found) {
            status = measure_chain(s, c, err);
        }
    }
    drop_chain(c);
    return status;
}

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
        chain *c = kkt_arena_alloc(s->arena, sizeof *c);
        *c = (chain){.pipeline = p,
                     .problem_text = kkt_text_get(&text),
                     .problem = problem,
                     .chunk = chunk,
                     .members = members[f],
                     .made_up = !s->backend_type->needs_cubin,
                     .retry = s->options->retry};
        status = time_chain(s, c, err);
    }
    session_progress(s, "pipelines", s->out->counts.pipelines, s->out->counts.pipelines,
                     kkt_text_get(&text));
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

kkt_status session_time_pipelines(session *s, kkt_error *err) {
    const kkt_pipeline *only = s->options->pipeline;
    kkt_status status = KKT_OK;
    size_t count;
    const kkt_pipeline *const *all = kkt_pipelines(&count);
    if (!s->backend_type->chain || s->options->kernel) {
        return KKT_OK;
    }
    for (size_t i = 0; i < count && status == KKT_OK; i++) {
        kkt_pipeline_kernels p;
        if ((only && only != all[i]) || !kkt_pipeline_open(all[i], &p, NULL) || !p.device_code) {
            continue;
        }
        status = each_problem(s, &p, time_problem, err);
    }
    return status;
}
