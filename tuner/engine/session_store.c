/* A session's side of the database: what is known of a candidate, and storing what became of it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/version.h"
#include "tuner/engine/session_internal.h"

static kkt_status visit_known(void *context, const kkt_result *result, kkt_error *err) {
    (void)err;
    known *out = context;
    bool fresh = result->stale_reason == NULL;
    bool overruled = result->has_run && result->outcome == KKT_OUTCOME_WRONG_RESULT &&
                     kkt_policy_gate(result->run.policy) < KKT_GATE_REVISION;
    out->found = true;
    out->has_prediction = result->has_prediction;
    out->predicted_us = result->prediction.predicted_us;
    out->fresh_build = fresh && result->has_build && result->build.compiler != NULL;
    out->build_outcome = result->build.outcome;
    out->fresh_run = fresh && !overruled && result->has_run &&
                     result->run.provenance == KKT_MEASURED &&
                     kkt_run_made_up(&result->run) == out->made_up;
    out->outcome = result->outcome;
    bool timed = result->outcome == KKT_OUTCOME_OK || result->outcome == KKT_OUTCOME_NOISY;
    out->build_id = result->build_id;
    out->time_us = out->fresh_run && timed ? result->run.time_us : (double)NAN;
    out->energy_mj = out->fresh_run ? result->run.energy_mj : (double)NAN;
    out->rel_fro = out->fresh_run ? result->run.rel_fro : (double)NAN;
    out->stale_run = result->has_run && (overruled || result->stale_reason != NULL);
    out->finalist = out->fresh_run && result->run.policy && strstr(result->run.policy, "finalist");
    const char *policy = out->fresh_run ? result->run.policy : NULL;
    out->energetic = policy && strstr(policy, "energy_seconds=") &&
                     !strstr(policy, "energy_seconds=0,") &&
                     (out->finalist || strstr(policy, "energy_each=1"));
    bool failed_build = out->fresh_build && out->build_outcome != KKT_OUTCOME_COMPILED;
    bool failed_run =
        out->fresh_run && out->outcome != KKT_OUTCOME_OK && out->outcome != KKT_OUTCOME_NOISY;
    out->settled = out->fresh_run || failed_build;
    out->failed = failed_build || failed_run;
    out->run_id = out->fresh_run ? result->run_id : 0;
    out->counted =
        isfinite(result->run.hbm_bytes_counted) || session_count_settled(result->run.counters_note);
    return KKT_OK;
}

/* A failure that is to be tried again counts as unknown. */
static void forget_failure(known *what) {
    if (what->failed) {
        what->settled = what->failed = what->fresh_run = false;
        what->fresh_build = what->fresh_build && what->build_outcome == KKT_OUTCOME_COMPILED;
    }
}

static kkt_status put_prediction(session *s, trial *slot, kkt_error *err) {
    const kkt_prediction *p = &slot->point.prediction;
    if (slot->known.has_prediction &&
        fabs(slot->known.predicted_us - p->predicted_us) <= 1e-9 * p->predicted_us) {
        return KKT_OK; /* the model says what it said before */
    }
    char reason[240];
    kkt_footprint footprint;
    memset(&footprint, 0, sizeof footprint);
    slot->task->variant->footprint(&slot->task->problem, &slot->point.config, s->options->arch,
                                   &footprint);
    kkt_prediction_reason(&footprint, s->options->arch, s->options->device, p, reason,
                          sizeof reason);
    kkt_prediction_record record = {
        .model_version = KKT_VERSION,
        .registers = p->registers,
        .smem_bytes = p->smem_bytes,
        .hbm_bytes = p->hbm_bytes,
        .hbm_bytes_per_token = p->hbm_bytes_per_token,
        .blocks_per_sm = p->occupancy.blocks_per_sm,
        .feasible = p->infeasible == KKT_FEASIBLE,
        .spills = p->spills,
        .calibrated = p->calibrated,
        .limiter = kkt_limiter_name(p->limiter),
        .reason = reason,
        .chain_steps = p->chain_steps,
        .lower_bound_us = p->lower_bound_us,
        .predicted_us = p->predicted_us,
    };
    return kkt_db_put_prediction(s->db, slot->candidate_id, &record, err);
}

/* How long a compile takes is the machine's doing: one that took too long in another run is no
 * final answer. */
static bool is_late_of_another_run(const session *s, const trial *slot) {
    const known *what = &slot->known;
    if (!what->fresh_build || what->build_outcome != KKT_OUTCOME_TIMED_OUT || what->fresh_run) {
        return false;
    }
    for (size_t i = 0; i < s->late_count; i++) {
        if (s->late[i] == slot->candidate_id) {
            return false;
        }
    }
    return true;
}

static void remember_late(session *s, int64_t candidate_id) {
    s->late = kkt_arena_grow(s->arena, s->late, s->late_count, &s->late_capacity, sizeof *s->late);
    s->late[s->late_count++] = candidate_id;
}

kkt_status session_slot_begin(session *s, const task *t, const kkt_point *point, trial *out,
                              kkt_error *err) {
    memset(out, 0, sizeof *out);
    out->known.time_us = out->known.energy_mj = out->known.rel_fro = (double)NAN;
    out->task = t;
    out->point = *point;
    out->id = (kkt_identity){
        .kernel = t->kernel->name,
        .style = kkt_style_get(t->variant->style)->name,
        .arch = s->options->arch->name,
        .device = s->options->device->name,
        .problem = t->problem_text,
        .config = kkt_params_text(s->arena, &t->variant->params, &point->config),
    };
    kkt_result_filter filter = {out->id.kernel, out->id.style,   out->id.arch,
                                out->id.device, out->id.problem, out->id.config};
    out->known.made_up = s->backend_type && !s->backend_type->needs_cubin;
    kkt_status status = kkt_db_results(s->db, &filter, s->freshness, visit_known, &out->known, err);
    if (status == KKT_OK && out->known.time_us > 0) {
        status = kkt_db_first_time(s->db, out->known.build_id, &out->known.first_time_us, err);
    }
    if (status != KKT_OK) {
        return status;
    }
    status = kkt_db_candidate(s->db, &out->id, &out->candidate_id, err);
    if (status != KKT_OK) {
        return status;
    }
    if (s->retrying || is_late_of_another_run(s, out)) {
        forget_failure(&out->known);
    }
    bool wants_energy = s->backend && s->options->policy.energy_each;
    if (wants_energy && out->known.fresh_run && !out->known.failed && !out->known.energetic) {
        out->known.settled = out->known.fresh_run = false; /* timed, but without its energy */
    }
    out->energy_mj = out->known.energy_mj;
    out->rel_fro = out->known.rel_fro;
    return put_prediction(s, out, err);
}

/* The build of a slot whose cubin was not needed (the fake backend) says so by a NULL compiler. */
kkt_status session_store_build(session *s, trial *slot, kkt_error *err) {
    const kkt_compile_result *build = &slot->build;
    kkt_text defines = {0};
    kkt_text options = {0};
    kkt_compile_job job;
    const kkt_variant *variant = slot->task->variant;
    if (variant->source) {
        kkt_compile_job_fill(slot->task->kernel, variant, &slot->task->problem, &slot->point.config,
                             s->options->arch, &defines, &job);
        kkt_compile_options(&job, &options);
    }
    /* What a library's own kernels take is not known. */
    bool read = slot->compiled && build->ok && !variant->library;
    kkt_build_record record = {
        .kernel_hash = slot->task->hash,
        .options = kkt_text_get(&options),
        .compiler =
            session_tools(s, slot->compiled ? kkt_compile_pool_version(s->pool) : NULL, variant),
        .outcome = !slot->compiled || build->ok ? KKT_OUTCOME_COMPILED
                   : build->timed_out           ? KKT_OUTCOME_TIMED_OUT
                                                : KKT_OUTCOME_BUILD_FAILED,
        .log = slot->compiled && !build->ok ? build->log : NULL,
        .registers = read ? build->info.registers : KKT_UNKNOWN_INT,
        .static_smem_bytes = read ? build->info.static_smem_bytes : KKT_UNKNOWN_INT,
        .dynamic_smem_bytes =
            variant->library ? KKT_UNKNOWN_INT : slot->point.prediction.dynamic_smem_bytes,
        .spill_store_bytes = read ? build->info.spill_store_bytes : KKT_UNKNOWN_INT,
        .spill_load_bytes = read ? build->info.spill_load_bytes : KKT_UNKNOWN_INT,
        .stack_bytes = read ? build->info.stack_bytes : KKT_UNKNOWN_INT,
        .barriers = read ? build->info.barriers : KKT_UNKNOWN_INT,
        .cubin_bytes = read ? build->info.cubin_bytes : KKT_UNKNOWN_INT,
        .compile_ms = slot->compiled ? build->compile_ms : KKT_UNKNOWN_REAL,
    };
    kkt_status status = kkt_db_put_build(s->db, slot->candidate_id, &record, &slot->build_id, err);
    if (status == KKT_OK && record.outcome == KKT_OUTCOME_TIMED_OUT) {
        remember_late(s, slot->candidate_id);
    }
    if (status == KKT_OK && slot->compiled && !(build->ok && s->backend)) {
        session_tell(s, slot, "compile", record.outcome, record.log, NULL);
    }
    kkt_text_free(&options);
    kkt_text_free(&defines);
    return status;
}

/* Said once a run: the rows say it each for itself. */
static void note_disturbance(session *s, const kkt_run_record *record) {
    if (!record->disturbed) {
        return;
    }
    s->out->counts.disturbed++;
    if (!s->disturbance_told && s->options->note) {
        const char *line = kkt_arena_printf(
            s->arena,
            "timings are disturbed (%s): stop what else uses the GPU; such rows are marked",
            record->disturbed);
        s->options->note(s->options->event_context, line);
        s->disturbance_told = true;
    }
}

kkt_status session_store_run(session *s, trial *slot, const kkt_measure_result *result,
                             const char *policy_suffix, kkt_error *err) {
    kkt_run_record record = result->run;
    record.provenance = KKT_MEASURED;
    record.tool_version = KKT_VERSION;
    record.policy =
        kkt_arena_printf(s->arena, "%s%s", record.policy ? record.policy : "", policy_suffix);
    slot->run_outcome = record.outcome;
    slot->counted = false;
    slot->energy_mj = record.energy_mj;
    slot->rel_fro = record.rel_fro;
    kkt_status status = kkt_db_put_run(s->db, slot->build_id, &record, &slot->run_id, err);
    if (status == KKT_OK) {
        note_disturbance(s, &record);
        session_tell(s, slot, policy_suffix[0] != '\0' ? "finalist" : "measure", record.outcome,
                     record.reason, &record);
    }
    return status;
}

void session_tell(const session *s, const trial *slot, const char *step, kkt_outcome outcome,
                  const char *reason, const kkt_run_record *run) {
    kkt_session_event event = {
        .step = step,
        .id = &slot->id,
        .outcome = outcome,
        .reason = reason,
        .run = run,
        .time_us = run ? run->time_us : slot->known.time_us,
        .predicted_us = slot->point.prediction.predicted_us,
    };
    if (s->options->event) {
        s->options->event(s->options->event_context, &event);
    }
}

void session_count_reused(session *s, const trial *slot) {
    s->out->counts.reused += !slot->task->free;
    s->out->counts.quarantined += !slot->task->free && slot->known.failed;
    session_tell(s, slot, "reuse",
                 slot->known.fresh_run ? slot->known.outcome : slot->known.build_outcome, NULL,
                 NULL);
}

void session_count_outcome(session *s, const trial *slot, kkt_outcome outcome) {
    kkt_session_counts *counts = &s->out->counts;
    if (slot->task->free) {
        return; /* a yardstick, no candidate */
    }
    switch (outcome) {
    case KKT_OUTCOME_OK:
        counts->verified++;
        counts->measured++;
        break;
    case KKT_OUTCOME_NOISY:
        counts->verified++;
        counts->noisy++;
        break;
    case KKT_OUTCOME_REJECTED:
        counts->rejected++;
        break;
    case KKT_OUTCOME_BUILD_FAILED:
        counts->build_failed++;
        break;
    case KKT_OUTCOME_LAUNCH_FAILED:
        counts->launch_failed++;
        break;
    case KKT_OUTCOME_WRONG_RESULT:
        counts->wrong_result++;
        break;
    case KKT_OUTCOME_RACY:
        counts->racy++;
        break;
    case KKT_OUTCOME_TIMED_OUT:
        counts->timed_out++;
        break;
    case KKT_OUTCOME_CRASHED:
        counts->crashed++;
        break;
    case KKT_OUTCOME_PREDICTED:
    case KKT_OUTCOME_COMPILED:
    case KKT_OUTCOME_COUNT:
        break;
    }
}

/* ---- rejected configurations: one example a reason is stored, with how many share it ---- */

enum { REASONS_MAX = 64 };

typedef struct reject_list {
    session *session;
    size_t count;
    uint64_t hashes[REASONS_MAX]; /* of the reasons: millions are looked up */
    struct {
        char reason[240];
        kkt_values example;
        int64_t rows;
    } reasons[REASONS_MAX];
    int64_t total;
    size_t last; /* the reason of the last one */
} reject_list;

/* Eight bytes at a time: byte by byte would take longer than what it saves. */
static uint64_t hash_of(const char *text) {
    size_t length = strlen(text);
    uint64_t hash = length;
    for (size_t at = 0; at < length; at += sizeof hash) {
        uint64_t word = 0;
        memcpy(&word, text + at, length - at < sizeof word ? length - at : sizeof word);
        hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
    }
    return hash;
}

static void note_reject(void *context, const kkt_values *config, const char *reason) {
    reject_list *list = context;
    list->total++;
    /* Neighbours in the space are mostly turned down for the same reason. */
    if (list->count > 0 && strcmp(list->reasons[list->last].reason, reason) == 0) {
        list->reasons[list->last].rows++;
        return;
    }
    uint64_t hash = hash_of(reason);
    for (size_t i = 0; i < list->count; i++) {
        if (list->hashes[i] == hash && strcmp(list->reasons[i].reason, reason) == 0) {
            list->reasons[i].rows++;
            list->last = i;
            return;
        }
    }
    if (list->count < REASONS_MAX) {
        snprintf(list->reasons[list->count].reason, sizeof list->reasons[0].reason, "%s", reason);
        list->hashes[list->count] = hash;
        list->reasons[list->count].example = *config;
        list->reasons[list->count++].rows = 1;
    }
}

static kkt_status store_reject(session *s, const task *t, const kkt_values *config,
                               const char *reason, int64_t rows, kkt_error *err) {
    kkt_identity id = {
        .kernel = t->kernel->name,
        .style = kkt_style_get(t->variant->style)->name,
        .arch = s->options->arch->name,
        .device = s->options->device->name,
        .problem = t->problem_text,
        .config = kkt_params_text(s->arena, &t->variant->params, config),
    };
    int64_t candidate;
    kkt_status status = kkt_db_candidate(s->db, &id, &candidate, err);
    if (status != KKT_OK) {
        return status;
    }
    const char *text =
        kkt_arena_printf(s->arena, "%s (%lld configurations)", reason, (long long)rows);
    return kkt_db_set_outcome(s->db, candidate, KKT_OUTCOME_REJECTED, text, err);
}

static bool walk_on(void *context) {
    const session *s = context;
    return !session_interrupted() &&
           (s->options->budget_seconds <= 0 || session_seconds(s) < s->walk_until_s);
}

kkt_status session_store_rejects(session *s, task *t, kkt_error *err) {
    reject_list *list = kkt_arena_alloc(s->arena, sizeof *list);
    kkt_space_limit(t->space, walk_on, s);
    kkt_status status = kkt_pointset_make(t->space, note_reject, list, &t->walked, err);
    kkt_space_limit(t->space, NULL, NULL);
    if (status != KKT_OK) {
        return status;
    }
    bool cut = kkt_space_cut(t->space);
    s->walks_cut += cut;
    t->points = t->walked.count;
    for (int64_t i = 0; i < t->walked.count; i++) {
        t->best_us = fmin(t->best_us, (double)t->walked.marks[i].predicted_us);
    }
    s->out->counts.enumerated += t->points + list->total;
    s->out->counts.rejected += list->total;
    for (size_t i = 0; i < list->count && !cut; i++) { /* how many there are is not known then */
        status = store_reject(s, t, &list->reasons[i].example, list->reasons[i].reason,
                              list->reasons[i].rows, err);
        if (status != KKT_OK) {
            return status;
        }
    }
    return KKT_OK;
}

/* ---- predictions of recorded rows ---- */

typedef struct unpredicted {
    session *session;
    const task *task;
    kkt_values *configs;
    size_t count, capacity;
} unpredicted;

static kkt_status visit_unpredicted(void *context, const kkt_result *result, kkt_error *err) {
    (void)err;
    unpredicted *u = context;
    const kkt_param_table *table = &u->task->variant->params;
    kkt_values config;
    kkt_params_defaults(table, &config);
    if (result->has_prediction ||
        kkt_params_parse(table, result->id.config, &config, NULL, NULL) != KKT_OK) {
        return KKT_OK;
    }
    u->configs =
        kkt_arena_grow(u->session->arena, u->configs, u->count, &u->capacity, sizeof *u->configs);
    u->configs[u->count++] = config;
    return KKT_OK;
}

kkt_status session_predict_known(session *s, const task *t, kkt_error *err) {
    unpredicted u = {.session = s, .task = t};
    kkt_result_filter filter = {.kernel = t->kernel->name,
                                .style = kkt_style_get(t->variant->style)->name,
                                .arch = s->options->arch->name,
                                .device = s->options->device->name,
                                .problem = t->problem_text};
    kkt_status status = kkt_db_results(s->db, &filter, NULL, visit_unpredicted, &u, err);
    for (size_t i = 0; i < u.count && status == KKT_OK; i++) {
        kkt_point point;
        char reason[240];
        trial slot;
        if (kkt_space_point(t->space, &u.configs[i], &point, reason, sizeof reason)) {
            status = session_slot_begin(s, t, &point, &slot, err);
        }
    }
    return status;
}
