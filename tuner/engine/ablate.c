#include "tuner/engine/ablate.h"

#include <math.h>
#include <string.h>

#include "db/recording.h"
#include "tuner/engine/pointset.h"
#include "tuner/engine/session_internal.h"

/* Marks in the policy of a run that was timed together with the others of its ablation. Such a run
 * serves as one of the finalists' too. */
#define MARK_BASE ",finalist=1,ablation=base"
#define MARK_GIVEN ",finalist=1,ablation=given"
#define MARK_MOVE ",finalist=1,ablation=move"

const char *kkt_ablate_origin_name(kkt_ablate_origin origin) {
    static const char *const names[] = {
        [KKT_ABLATE_GIVEN] = "given",         [KKT_ABLATE_EARLIER] = "earlier",
        [KKT_ABLATE_MEASURED] = "measured",   [KKT_ABLATE_REPLAYED] = "replayed",
        [KKT_ABLATE_PREDICTED] = "predicted",
    };
    return names[origin];
}

/* ---- the base ---- */

/* The fastest of a kind. */
typedef struct fastest {
    bool found, replayed;
    kkt_values config;
    double low, time, high;
} fastest;

typedef struct base_search {
    const task *task;
    int64_t chunk;
    fastest any, earlier, tuned; /* `tuned`: without a mark of an ablation */
} base_search;

static int64_t chunk_of(const task *t, const kkt_values *config) {
    const char *chunk = t->kernel->chunk_param;
    return chunk ? kkt_params_get(&t->variant->params, config, chunk) : 0;
}

static void keep_fastest(fastest *best, const kkt_result *result, const kkt_values *config) {
    const kkt_run_record *run = &result->run;
    if (best->found && !(run->time_us < best->time)) {
        return; /* rows come sorted: of equal times the first text stays */
    }
    *best = (fastest){.found = true,
                      .replayed = run->provenance == KKT_REPLAYED,
                      .config = *config,
                      .low = run->time_low_us,
                      .time = run->time_us,
                      .high = run->time_high_us};
}

static kkt_status visit_base(void *context, const kkt_result *result, kkt_error *err) {
    (void)err;
    base_search *b = context;
    const kkt_param_table *table = &b->task->variant->params;
    kkt_values config;
    kkt_point point;
    char reason[240];
    if (!result->has_run || result->outcome != KKT_OUTCOME_OK || result->stale_reason ||
        !isfinite(result->run.time_us)) {
        return KKT_OK;
    }
    kkt_params_defaults(table, &config);
    if (kkt_params_parse(table, result->id.config, &config, NULL, NULL) != KKT_OK ||
        (b->chunk != 0 && chunk_of(b->task, &config) != b->chunk) ||
        !kkt_space_point(b->task->space, &config, &point, reason, sizeof reason)) {
        return KKT_OK;
    }
    const char *policy = result->run.policy ? result->run.policy : "";
    keep_fastest(&b->any, result, &config);
    if (strstr(policy, MARK_BASE)) {
        keep_fastest(&b->earlier, result, &config);
    } else if (!strstr(policy, "ablation=")) {
        keep_fastest(&b->tuned, result, &config);
    }
    return KKT_OK;
}

static kkt_result_filter filter_of(const session *s, const task *t) {
    return (kkt_result_filter){.kernel = t->kernel->name,
                               .style = kkt_style_get(t->variant->style)->name,
                               .arch = s->options->arch->name,
                               .device = s->options->device->name,
                               .problem = t->problem_text};
}

/* The model's best of a space; one that spills only where there is no other. False: it is empty. */
static bool find_best(kkt_space *space, kkt_values *out) {
    kkt_point point;
    bool found = false;
    bool spills = true;
    double best = 0;
    while (kkt_space_next(space, NULL, NULL, &point)) {
        bool worse = point.prediction.spills && !spills;
        bool better = spills && !point.prediction.spills;
        if (found && (worse || (!better && !(point.prediction.predicted_us < best)))) {
            continue;
        }
        found = true;
        spills = point.prediction.spills;
        best = point.prediction.predicted_us;
        *out = point.config;
    }
    return found;
}

/* The part of a space that has one chunk size (0: all of it). */
static kkt_status open_part(const kkt_session_options *options, const kkt_variant *variant,
                            const kkt_values *problem, int64_t chunk, kkt_space **out,
                            kkt_error *err) {
    const kkt_kernel *kernel = options->kernel;
    char fixed[64] = "";
    if (chunk != 0 && kernel->chunk_param) {
        snprintf(fixed, sizeof fixed, "%s=%lld", kernel->chunk_param, (long long)chunk);
    }
    return kkt_space_open(kernel, variant, problem, options->arch, options->device, fixed, out,
                          err);
}

/* The model's best of a chunk size (0: of all). */
static kkt_status best_predicted(const session *s, const task *t, int64_t chunk, kkt_values *out,
                                 kkt_error *err) {
    kkt_space *space = NULL;
    kkt_status status = open_part(s->options, t->variant, &t->problem, chunk, &space, err);
    if (status != KKT_OK) {
        return status;
    }
    char reason[240];
    if (!find_best(space, out)) {
        kkt_space_why_empty(space, reason, sizeof reason);
        status = kkt_fail(err, KKT_ERR_MISSING, 0,
                          "%s has no configuration that can be had on this problem and "
                          "architecture%s: %s",
                          t->kernel->name, chunk != 0 ? " with the chunk asked for" : "", reason);
    }
    kkt_space_close(space);
    return status;
}

static kkt_status parse_start(const kkt_ablate_options *options, const task *t, kkt_values *out,
                              kkt_error *err) {
    const kkt_param_table *table = &t->variant->params;
    kkt_params_defaults(table, out);
    int chunk = t->kernel->chunk_param ? kkt_params_find(table, t->kernel->chunk_param) : -1;
    if (chunk >= 0 && options->chunk != 0) {
        out->v[chunk] = options->chunk;
    }
    return kkt_params_parse(table, options->start, out, NULL, err);
}

static kkt_status choose_base(session *s, const task *t, const kkt_ablate_options *options,
                              kkt_ablate_result *out, kkt_error *err) {
    if (options->start) {
        out->origin = KKT_ABLATE_GIVEN;
        return parse_start(options, t, &out->base, err);
    }
    base_search *b = kkt_arena_alloc(s->arena, sizeof *b);
    *b = (base_search){.task = t, .chunk = options->chunk};
    kkt_result_filter filter = filter_of(s, t);
    kkt_status status = kkt_db_results(s->db, &filter, s->freshness, visit_base, b, err);
    if (status != KKT_OK) {
        return status;
    }
    bool beaten = b->tuned.found && b->tuned.high < b->earlier.low;
    if (b->earlier.found && !beaten) {
        out->origin = KKT_ABLATE_EARLIER;
        out->base = b->earlier.config;
        return KKT_OK;
    }
    if (b->any.found) {
        out->origin = b->any.replayed ? KKT_ABLATE_REPLAYED : KKT_ABLATE_MEASURED;
        out->base = b->any.config;
        return KKT_OK;
    }
    out->origin = KKT_ABLATE_PREDICTED;
    return best_predicted(s, t, options->chunk, &out->base, err);
}

/* ---- compiling, checking, timing ---- */

typedef struct marks {
    const char *const *configs; /* canonical texts of the slots */
    size_t count;
    bool *marked;     /* timed in an ablation */
    bool base_marked; /* ... as its base; slot 0 is the base */
    bool *timed;      /* checked, with a time */
} marks;

static kkt_status visit_marks(void *context, const kkt_result *result, kkt_error *err) {
    (void)err;
    marks *m = context;
    bool fresh = result->has_run && !result->stale_reason;
    for (size_t i = 0; i < m->count; i++) {
        if (fresh && strcmp(m->configs[i], result->id.config) == 0) {
            const char *policy = result->run.policy ? result->run.policy : "";
            m->timed[i] = result->outcome == KKT_OUTCOME_OK || result->outcome == KKT_OUTCOME_NOISY;
            m->marked[i] = strstr(policy, "ablation=") != NULL;
            if (i == 0) {
                m->base_marked = strstr(policy, MARK_BASE) || strstr(policy, MARK_GIVEN);
            }
        }
    }
    return KKT_OK;
}

/* Slots of all points that can be had, the base first. */
static kkt_status make_slots(session *s, const task *t, const kkt_move_set *set, trial ***out,
                             size_t *count, kkt_error *err) {
    trial **slots = kkt_arena_array(s->arena, set->point_count, sizeof *slots);
    kkt_status status = kkt_db_begin(s->db, err);
    *count = 0;
    for (size_t i = 0; i < set->point_count && status == KKT_OK; i++) {
        kkt_point point;
        char reason[240];
        if (set->points[i].reason ||
            !kkt_space_point(t->space, &set->points[i].config, &point, reason, sizeof reason)) {
            s->out->counts.rejected++;
            continue;
        }
        slots[*count] = kkt_arena_alloc(s->arena, sizeof **slots);
        status = session_slot_begin(s, t, &point, slots[(*count)++], err);
    }
    s->out->counts.enumerated = (int64_t)set->point_count;
    *out = slots;
    if (status != KKT_OK) {
        kkt_db_rollback(s->db);
        return status;
    }
    return kkt_db_commit(s->db, err);
}

static kkt_status check_slots(session *s, trial **slots, size_t count, kkt_error *err) {
    kkt_status status = KKT_OK;
    for (size_t i = 0; i < count && status == KKT_OK; i++) {
        if (!slots[i]->known.settled && session_needs_code(s, slots[i]->task->variant)) {
            status = session_submit(s, slots[i], err);
        }
    }
    for (size_t i = 0; i < count && status == KKT_OK; i++) {
        double time_us;
        if (session_interrupted() || !session_time_left(s)) {
            break;
        }
        if (slots[i]->known.settled) {
            session_count_reused(s, slots[i]);
        } else {
            status = session_measure_slot(s, slots[i], &time_us, err);
        }
        session_progress(s, "check", (int64_t)i + 1, (int64_t)count, slots[i]->id.config);
    }
    return status;
}

/* All at once, so that drift of clock and temperature hits the base and its moves alike. */
static kkt_status time_slots(session *s, const task *t, trial **slots, size_t count, bool given,
                             kkt_error *err) {
    const char **configs = kkt_arena_array(s->arena, count, sizeof *configs);
    for (size_t i = 0; i < count; i++) {
        configs[i] = slots[i]->id.config;
    }
    marks m = {.configs = configs,
               .count = count,
               .marked = kkt_arena_array(s->arena, count, sizeof(bool)),
               .timed = kkt_arena_array(s->arena, count, sizeof(bool))};
    kkt_result_filter filter = filter_of(s, t);
    kkt_status status = kkt_db_results(s->db, &filter, s->freshness, visit_marks, &m, err);
    trial **chosen = kkt_arena_array(s->arena, count, sizeof *chosen);
    const char **suffixes = kkt_arena_array(s->arena, count, sizeof *suffixes);
    size_t timed = 0;
    bool all = m.base_marked;
    for (size_t i = 0; i < count && status == KKT_OK; i++) {
        if (m.timed[i]) {
            all = all && m.marked[i];
            suffixes[timed] = i > 0 ? MARK_MOVE : given ? MARK_GIVEN : MARK_BASE;
            chosen[timed++] = slots[i];
        }
    }
    if (status == KKT_OK && !all && timed > 1 && m.timed[0]) {
        session_progress(s, "time", 0, (int64_t)timed, "interleaved");
        status = session_retime(s, chosen, timed, suffixes, err);
        session_progress(s, "time", (int64_t)timed, (int64_t)timed, "interleaved");
    }
    for (size_t i = 0; i < timed && status == KKT_OK && !session_interrupted(); i++) {
        status = session_count(s, chosen[i], err);
        session_progress(s, "count", (int64_t)i + 1, (int64_t)timed, chosen[i]->id.config);
    }
    return status;
}

static kkt_status work(session *s, const task *t, const kkt_move_set *set, bool given,
                       kkt_error *err) {
    trial **slots = NULL;
    size_t count = 0;
    kkt_status status = make_slots(s, t, set, &slots, &count, err);
    if (status == KKT_OK && s->backend) {
        status = check_slots(s, slots, count, err);
        if (status == KKT_OK && s->backend_type->retime && !session_interrupted() &&
            session_time_left(s)) {
            status = time_slots(s, t, slots, count, given, err);
        }
    } else if (status == KKT_OK && s->pool) {
        status = session_compile_slots(s, slots, count, err);
    }
    for (size_t i = 0; i < count; i++) {
        kkt_compile_result_free(&slots[i]->build);
    }
    return status;
}

/* ---- the whole ---- */

static kkt_status visit_tier(void *context, const kkt_result *result, kkt_error *err) {
    (void)err;
    kkt_tier *tier = context;
    if (result->has_run && !result->stale_reason) {
        *tier = result->run.provenance == KKT_MEASURED ? KKT_TIER_MEASURED : KKT_TIER_REPLAYED;
    } else if (result->has_build && result->build.registers >= 0) {
        *tier = KKT_TIER_COMPILED;
    }
    return KKT_OK;
}

static kkt_status base_tier(session *s, const task *t, const kkt_values *base, kkt_error *err) {
    kkt_text text = {0};
    kkt_params_format(&t->variant->params, base, &text);
    kkt_result_filter filter = filter_of(s, t);
    filter.config = kkt_text_get(&text);
    kkt_status status =
        kkt_db_results(s->db, &filter, s->freshness, visit_tier, &s->out->tier, err);
    kkt_text_free(&text);
    return status;
}

static kkt_status run(session *s, const kkt_ablate_options *options, kkt_ablate_result *out,
                      kkt_error *err) {
    const kkt_session_options *o = s->options;
    kkt_status status = KKT_OK;
    if (o->reference_folder) {
        int64_t rows = 0;
        status = kkt_recording_import_folder(s->db, o->reference_folder, o->arch->name, &rows, err);
    }
    if (status == KKT_OK) {
        const char *problem = o->problem ? o->problem : o->kernel->default_problems[0];
        status = session_add_task(s, o->kernel, out->variant, problem, err);
    }
    if (status != KKT_OK) {
        return status;
    }
    task *t = &s->tasks[0];
    out->problem = t->problem;
    status = choose_base(s, t, options, out, err);
    kkt_move_set *set = kkt_arena_alloc(s->arena, sizeof *set);
    if (status == KKT_OK) {
        status = kkt_moves_make(t->kernel, t->variant, &t->problem, &out->base, o->arch, o->device,
                                s->arena, set, err);
    }
    if (status == KKT_OK) {
        status = work(s, t, set, out->origin == KKT_ABLATE_GIVEN, err);
    }
    if (status == KKT_OK) {
        status = kkt_db_mark_stale(s->db, s->freshness, err);
    }
    return status == KKT_OK ? base_tier(s, t, &out->base, err) : status;
}

static const kkt_variant *first_variant(const kkt_kernel *kernel) {
    for (size_t i = 0; i < kernel->variant_count; i++) {
        if (kkt_variant_tuned(kernel->variants[i])) {
            return kernel->variants[i];
        }
    }
    return NULL;
}

kkt_status kkt_ablate_check_chunk(const kkt_ablate_options *options, kkt_error *err) {
    const kkt_session_options *o = &options->session;
    const kkt_kernel *kernel = o->kernel;
    const kkt_variant *variant = options->variant ? options->variant : first_variant(kernel);
    char reason[240] = "";
    kkt_values problem;
    kkt_space *space = NULL;
    kkt_point point;
    if (!variant || !kernel->chunk_param) {
        return kkt_fail(err, KKT_ERR_INPUT, 0, "%s has no device code or no chunk size to choose",
                        kernel->name);
    }
    kkt_status status = kkt_kernel_problem_parse(
        kernel, o->problem ? o->problem : kernel->default_problems[0], &problem, err);
    if (status != KKT_OK) {
        return status;
    }
    if (!kkt_kernel_problem_valid(kernel, &problem, reason, sizeof reason)) {
        return kkt_fail(err, KKT_ERR_INPUT, 0, "%s", reason);
    }
    status = open_part(o, variant, &problem, options->chunk, &space, err);
    if (status == KKT_OK && !kkt_space_next(space, NULL, NULL, &point)) {
        kkt_space_why_empty(space, reason, sizeof reason);
        status = kkt_fail(err, KKT_ERR_MISSING, 0,
                          "no configuration of %s in the style %s can be had at %s=%lld on this "
                          "problem: %s",
                          kernel->name, kkt_style_get(variant->style)->name, kernel->chunk_param,
                          (long long)options->chunk, reason);
    }
    kkt_space_close(space);
    return status;
}

kkt_status kkt_ablate_run(const kkt_ablate_options *options, kkt_db *db, kkt_compile_pool *pool,
                          const kkt_backend_type *backend_type, kkt_backend *backend,
                          kkt_ablate_result *out, kkt_error *err) {
    memset(out, 0, sizeof *out);
    const kkt_kernel *kernel = options->session.kernel;
    out->variant = options->variant ? options->variant : first_variant(kernel);
    if (!out->variant) {
        return kkt_fail(err, KKT_ERR_INPUT, 0,
                        "%s has no device code yet: there is nothing to compare", kernel->name);
    }
    task one;
    session s = {.options = &options->session,
                 .db = db,
                 .pool = pool,
                 .backend_type = backend_type,
                 .backend = backend,
                 .out = &out->summary,
                 .evals_left = INT64_MAX,
                 .tasks = &one};
    session_open(&s);
    s.retrying = options->session.retry;
    kkt_status status = run(&s, options, out, err);
    out->summary.seconds = session_seconds(&s);
    out->summary.interrupted = session_interrupted();
    session_close(&s);
    return status;
}
