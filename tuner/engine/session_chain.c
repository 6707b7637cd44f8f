/* Whole pipelines of a session: compiled, timed as one plan, stored. */
#include <math.h>
#include <string.h>

#include "tuner/engine/session_pipeline.h"

/* Parts of a pipeline's result that the reference is computed for: each member was checked on many
 * more, and of what the first pipeline of a problem gives every element serves the next ones. */
enum { PARTS_CHECKED = 8 };
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

/* A pipeline whose members do not fit is a mistake in its row: told at once, and once, beside being
 * stored. */
static void note_rejected(session *s, const char *pipeline, const kkt_measure_result *result) {
    if (result->run.outcome != KKT_OUTCOME_REJECTED || !s->options->note ||
        s->told_rejected == pipeline) {
        return;
    }
    s->told_rejected = pipeline;
    s->options->note(
        s->options->event_context,
        kkt_arena_printf(s->arena, "pipeline %s is rejected: %s", pipeline, result->reason));
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
    note_rejected(s, record.pipeline, result);
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
        c->found = false;
        if (order == KKT_OVERLAPPED && !can_overlap(s, c)) {
            continue;
        }
        status = kkt_db_pipeline_runs(s->db, &filter, s->freshness, visit_known, c, err);
        s->pipelines_known += c->found;
        if (status == KKT_OK && !c->found) {
            status = measure_chain(s, c, err);
        }
    }
    drop_chain(c);
    return status;
}

kkt_status session_time_chain(session *s, const kkt_pipeline_kernels *pipeline,
                              const char *problem_text, const kkt_values *problem, int64_t chunk,
                              const choice *members, kkt_error *err) {
    chain *c = kkt_arena_alloc(s->arena, sizeof *c);
    *c = (chain){.pipeline = pipeline,
                 .problem_text = problem_text,
                 .problem = problem,
                 .chunk = chunk,
                 .members = members,
                 .made_up = !s->backend_type->needs_cubin,
                 .retry = s->options->retry};
    return time_chain(s, c, err);
}
