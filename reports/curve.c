#include "reports/curve.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "reports/failures.h"
#include "reports/modelled.h"

typedef struct maker {
    kkt_arena *arena;
    kkt_view *view;
    bool real;
    kkt_curve *curves;
    size_t count, capacity;
    /* The pipeline at hand. */
    kkt_pipeline_kernels p;
} maker;

/* ---- members ---- */

/* The best style of a kernel at a problem and chunk size. Where the kernel has device code, what
 * the model alone knows of does not stand in for it. */
static const kkt_entry *stored_entry(const maker *m, const kkt_kernel *kernel, const char *problem,
                                     int64_t chunk) {
    const kkt_entry *best = NULL;
    for (size_t i = 0; i < m->view->entry_count; i++) {
        const kkt_entry *entry = &m->view->entries[i];
        if (entry->chunk != chunk || strcmp(entry->kernel, kernel->name) != 0 ||
            strcmp(entry->problem, problem) != 0 || (entry->model_only && m->p.device_code))
            continue;
        if (best == NULL || kkt_entry_compare(entry, best) < 0)
            best = entry;
    }
    return best;
}

/* What the model likes best where the view has no entry: an entry of a problem that is no default
 * one. */
static const kkt_entry *modelled_entry(const maker *m, const kkt_kernel *kernel,
                                       const kkt_values *problem, int64_t chunk) {
    kkt_entry *best = NULL;
    for (size_t v = 0; v < kernel->variant_count; v++) {
        const kkt_variant *variant = kernel->variants[v];
        kkt_entry *entry = kkt_arena_alloc(m->arena, sizeof *entry);
        if (variant->library != NULL || (variant->source == NULL && m->p.device_code) ||
            !kkt_failures_modelled(m->view->failures, kernel, variant, m->view->arch,
                                   m->view->device, problem, chunk, m->arena, entry))
            continue;
        if (best == NULL || kkt_entry_compare(entry, best) < 0)
            best = entry;
    }
    return best;
}

/* Entries of a form at a chunk size; false where a member cannot run. */
static bool find_members(const maker *m, const kkt_values *problem, size_t form, int64_t chunk,
                         const kkt_entry *out[KKT_MEMBERS_MAX]) {
    for (size_t i = 0; i < m->p.count; i++) {
        kkt_values own;
        kkt_pipeline_member_problem(&m->p, i, problem, form, &own);
        const kkt_kernel *kernel = m->p.members[i];
        const kkt_entry *entry =
            stored_entry(m, kernel, kkt_params_text(m->arena, &kernel->problem, &own), chunk);
        if (entry == NULL)
            entry = modelled_entry(m, kernel, &own, chunk);
        if (entry == NULL)
            return false;
        kkt_entry *copy = kkt_arena_alloc(m->arena, sizeof *copy); /* the view's may move */
        *copy = *entry;
        out[i] = copy;
    }
    return true;
}

static int weight(const kkt_entry *entry) {
    static const int order[] = {
        [KKT_PREDICTED] = 0, [KKT_COMPILED] = 1, [KKT_REPLAYED] = 2, [KKT_MEASURED] = 3};
    return order[entry->provenance];
}

/* Sums, the weakest provenance, and what limits the slowest member. */
static void add_up(kkt_curve_point *point, size_t count) {
    double longest = -1;
    int least = 0;
    point->members_us = point->predicted_us = point->hbm_bytes_per_token = 0;
    for (size_t i = 0; i < count; i++) {
        const kkt_entry *entry = point->members[i];
        double time = kkt_entry_measured(entry) ? entry->time_us : entry->predicted_us;
        point->members_us += entry->time_us; /* NaN where there is none */
        point->predicted_us += entry->predicted_us;
        point->hbm_bytes_per_token += entry->hbm_bytes_per_token;
        if (i == 0 || weight(entry) < least) {
            least = weight(entry);
            point->provenance = entry->provenance;
        }
        if (point->stale_reason == NULL)
            point->stale_reason = entry->stale_reason;
        if (time > longest) {
            longest = time;
            point->limiter = entry->limiter;
        }
    }
}

/* Measured before not, then the smaller sum. */
static bool better_members(const kkt_curve_point *a, const kkt_curve_point *b) {
    bool timed_a = isfinite(a->members_us), timed_b = isfinite(b->members_us);
    if (timed_a != timed_b)
        return timed_a;
    return timed_a ? a->members_us < b->members_us : a->predicted_us < b->predicted_us;
}

/* ---- points ---- */

static void make_points(const maker *m, const kkt_values *problem, kkt_curve *curve) {
    char buffer[24];
    for (size_t c = 0; c < m->p.chunk_count; c++) {
        kkt_curve_point best = {0};
        for (size_t f = 0; f < m->p.forms; f++) {
            kkt_curve_point point = {.chunk = m->p.chunks[c], .time_us = (double)NAN};
            point.form = kkt_arena_strdup(m->arena, kkt_pipeline_form_name(&m->p, f, buffer));
            if (!find_members(m, problem, f, point.chunk, point.members))
                continue;
            add_up(&point, m->p.count);
            if (best.chunk == 0 || better_members(&point, &best))
                best = point;
        }
        if (best.chunk != 0)
            curve->points[curve->count++] = best;
    }
}

static kkt_curve *new_curve(maker *m, const char *problem, int rank) {
    m->curves = kkt_arena_grow(m->arena, m->curves, m->count, &m->capacity, sizeof *m->curves);
    kkt_curve *curve = &m->curves[m->count++];
    *curve = (kkt_curve){.pipeline = m->p.pipeline,
                         .problem = problem,
                         .problem_rank = rank,
                         .member_count = m->p.count,
                         .device_code = m->p.device_code};
    return curve;
}

static kkt_curve *find_curve(maker *m, const char *problem) {
    for (size_t i = 0; i < m->count; i++)
        if (m->curves[i].pipeline == m->p.pipeline && strcmp(m->curves[i].problem, problem) == 0)
            return &m->curves[i];
    return NULL;
}

/* Whether every member has a time at some chunk size. */
static bool is_measured(const maker *m, const kkt_values *problem) {
    for (size_t c = 0; c < m->p.chunk_count; c++)
        for (size_t f = 0; f < m->p.forms; f++) {
            bool all = true;
            for (size_t i = 0; i < m->p.count && all; i++) {
                kkt_values own;
                kkt_pipeline_member_problem(&m->p, i, problem, f, &own);
                const kkt_kernel *kernel = m->p.members[i];
                const kkt_entry *entry = stored_entry(
                    m, kernel, kkt_params_text(m->arena, &kernel->problem, &own), m->p.chunks[c]);
                all = entry != NULL && kkt_entry_measured(entry);
            }
            if (all)
                return true;
        }
    return false;
}

static bool parse_problem(const maker *m, const char *text, kkt_values *out) {
    char reason[320];
    kkt_params_defaults(&m->p.whole->problem, out);
    return kkt_params_parse(&m->p.whole->problem, text, out, NULL, NULL) == KKT_OK &&
           kkt_kernel_problem_valid(m->p.whole, out, reason, sizeof reason);
}

static int rank_of(const maker *m, const char *problem) {
    kkt_values values;
    for (int i = 0; m->p.pipeline->problems[i] != NULL; i++)
        if (parse_problem(m, m->p.pipeline->problems[i], &values) &&
            strcmp(kkt_params_text(m->arena, &m->p.whole->problem, &values), problem) == 0)
            return i;
    return INT_MAX;
}

/* The problems of the main job, predicted at least; of the others those that are measured. */
static void add_listed(maker *m) {
    kkt_values problem;
    for (size_t i = 0; m->p.pipeline->problems[i] != NULL; i++) {
        if (!parse_problem(m, m->p.pipeline->problems[i], &problem) ||
            (i >= m->p.pipeline->main_problems && !is_measured(m, &problem)))
            continue;
        const char *text = kkt_params_text(m->arena, &m->p.whole->problem, &problem);
        make_points(m, &problem, new_curve(m, text, (int)i));
    }
}

/* ---- timings ---- */

static bool good(const kkt_pipeline_record *record) {
    return (record->run.outcome == KKT_OUTCOME_OK || record->run.outcome == KKT_OUTCOME_NOISY) &&
           isfinite(record->run.time_us);
}

static const char *stale_member(const kkt_pipeline_record *record) {
    for (size_t i = 0; i < record->member_count; i++)
        if (record->members[i].stale_reason != NULL)
            return record->members[i].stale_reason;
    return NULL;
}

/* The form whose member problems are those of a run; SIZE_MAX: none, it is of another list. */
static size_t form_of(const maker *m, const kkt_pipeline_record *record,
                      const kkt_values *problem) {
    if (record->member_count != m->p.count)
        return SIZE_MAX;
    for (size_t f = 0; f < m->p.forms; f++) {
        bool same = true;
        for (size_t i = 0; i < m->p.count && same; i++) {
            kkt_values own;
            kkt_pipeline_member_problem(&m->p, i, problem, f, &own);
            const kkt_kernel *kernel = m->p.members[i];
            same = strcmp(record->members[i].id.kernel, kernel->name) == 0 &&
                   strcmp(record->members[i].id.problem,
                          kkt_params_text(m->arena, &kernel->problem, &own)) == 0;
        }
        if (same)
            return f;
    }
    return SIZE_MAX;
}

static kkt_curve_run *copy_run(const maker *m, const kkt_pipeline_record *record, size_t form) {
    const kkt_run_record *run = &record->run;
    kkt_curve_run *out = kkt_arena_alloc(m->arena, sizeof *out);
    *out = (kkt_curve_run){
        .order = record->order,
        .time_us = kkt_figure_round(run->time_us),
        .low_us = kkt_figure_round(isfinite(run->time_low_us) ? run->time_low_us : run->time_us),
        .high_us = kkt_figure_round(isfinite(run->time_high_us) ? run->time_high_us : run->time_us),
        .samples = run->sample_count,
        .rel_fro = kkt_figure_round(run->rel_fro),
        .tolerance = run->tolerance,
        .energy_mj = kkt_figure_round(run->energy_mj),
        .provenance = run->provenance,
        .stale_reason = kkt_arena_strdup(m->arena, stale_member(record)),
        .disturbed = kkt_arena_strdup(m->arena, run->disturbed),
        .gpu = kkt_arena_strdup(m->arena, run->gpu),
        .driver = kkt_arena_strdup(m->arena, run->driver),
        .date = kkt_arena_strdup(m->arena, run->date),
        .form = form,
        .noisy = run->outcome == KKT_OUTCOME_NOISY,
    };
    for (size_t i = 0; i < record->member_count; i++)
        out->configs[i] = kkt_arena_printf(m->arena, "%s: %s", record->members[i].id.style,
                                           record->members[i].id.config);
    return out;
}

static int run_rank(const kkt_curve_run *run) {
    return 4 * (run->stale_reason == NULL) + 2 * !run->noisy + (run->provenance == KKT_MEASURED);
}

static bool better_run(const kkt_curve_run *a, const kkt_curve_run *b) {
    if (b == NULL || run_rank(a) != run_rank(b))
        return b == NULL || run_rank(a) > run_rank(b);
    return a->time_us < b->time_us;
}

static kkt_status look_for_real(void *context, const kkt_pipeline_record *record, kkt_error *err) {
    (void)err;
    maker *m = context;
    m->real = m->real || !kkt_run_made_up(&record->run);
    return KKT_OK;
}

/* Of runs of one chunk size and order the best stays. */
static kkt_status visit(void *context, const kkt_pipeline_record *record, kkt_error *err) {
    (void)err;
    maker *m = context;
    kkt_values problem;
    if (!good(record) || (m->real && kkt_run_made_up(&record->run)) ||
        !parse_problem(m, record->problem, &problem))
        return KKT_OK;
    size_t form = form_of(m, record, &problem);
    if (form == SIZE_MAX)
        return KKT_OK;
    kkt_curve *curve = find_curve(m, record->problem);
    if (curve == NULL) {
        const char *text = kkt_arena_strdup(m->arena, record->problem);
        curve = new_curve(m, text, rank_of(m, text));
        make_points(m, &problem, curve);
    }
    kkt_curve_run *run = copy_run(m, record, form);
    for (size_t i = 0; i < curve->count; i++) {
        kkt_curve_point *point = &curve->points[i];
        if (point->chunk == record->chunk && better_run(run, point->runs[run->order]))
            point->runs[run->order] = run;
    }
    return KKT_OK;
}

/* The total of a point; its members follow the form that was timed. */
static void settle_point(const maker *m, const kkt_values *problem, kkt_curve_point *point) {
    char buffer[24];
    for (int i = 0; i < KKT_LAUNCH_ORDER_COUNT; i++)
        if (point->runs[i] != NULL && better_run(point->runs[i], point->run))
            point->run = point->runs[i];
    point->time_us = point->members_us;
    if (point->run == NULL)
        return;
    const char *form = kkt_pipeline_form_name(&m->p, point->run->form, buffer);
    kkt_curve_point other = *point;
    if (strcmp(form, point->form) != 0 &&
        find_members(m, problem, point->run->form, point->chunk, other.members)) {
        other.stale_reason = NULL;
        add_up(&other, m->p.count);
        other.form = kkt_arena_strdup(m->arena, form);
        *point = other;
    }
    point->time_us = point->run->time_us;
    point->provenance = point->run->provenance;
    point->stale_reason = point->run->stale_reason;
}

/* ---- choosing ---- */

double kkt_curve_figure(const kkt_curve *curve, const kkt_curve_point *point) {
    return curve->by_members ? point->members_us : point->time_us;
}

/* Like is compared with like: totals where every point with a time was timed end to end, else the
 * members' sums. Fresh ones alone, where there are any. */
static void choose(kkt_curve *curve) {
    bool all_timed = true, fresh = false, any_sum = false;
    for (size_t i = 0; i < curve->count; i++) {
        const kkt_curve_point *point = &curve->points[i];
        all_timed = all_timed && (point->run != NULL || isnan(point->time_us));
        any_sum = any_sum || isfinite(point->members_us);
        curve->measured += isfinite(point->time_us) != 0;
    }
    if (curve->measured < 2 && curve->count > 1)
        return;
    curve->by_members = !all_timed && any_sum;
    for (size_t i = 0; i < curve->count; i++)
        fresh = fresh || (isfinite(kkt_curve_figure(curve, &curve->points[i])) &&
                          curve->points[i].stale_reason == NULL);
    double least = (double)INFINITY;
    for (size_t i = 0; i < curve->count; i++) {
        const kkt_curve_point *point = &curve->points[i];
        double time = kkt_curve_figure(curve, point);
        if ((fresh && point->stale_reason != NULL) || !(time < least))
            continue;
        least = time;
        curve->best = point;
    }
}

static int compare_curves(const void *left, const void *right) {
    const kkt_curve *a = left, *b = right;
    int order = (a->problem_rank > b->problem_rank) - (a->problem_rank < b->problem_rank);
    return order != 0 ? order : strcmp(a->problem, b->problem);
}

static kkt_status make_pipeline(maker *m, kkt_db *db, const kkt_freshness *freshness,
                                kkt_error *err) {
    size_t first = m->count;
    kkt_status status = KKT_OK;
    add_listed(m);
    if (db != NULL) {
        const kkt_pipeline_filter filter = {.pipeline = m->p.pipeline->name,
                                            .arch = m->view->arch->name,
                                            .device = m->view->device->name};
        status = kkt_db_pipeline_runs(db, &filter, NULL, look_for_real, m, err);
        if (status == KKT_OK)
            status = kkt_db_pipeline_runs(db, &filter, freshness, visit, m, err);
    }
    for (size_t i = first; i < m->count; i++) {
        kkt_values problem;
        if (!parse_problem(m, m->curves[i].problem, &problem))
            continue;
        for (size_t c = 0; c < m->curves[i].count; c++)
            settle_point(m, &problem, &m->curves[i].points[c]);
    }
    if (m->count > first)
        qsort(m->curves + first, m->count - first, sizeof *m->curves, compare_curves);
    return status;
}

static bool has_member(const kkt_pipeline *pipeline, const char *kernel) {
    for (const char *const *member = pipeline->members; *member != NULL; member++)
        if (strcmp(*member, kernel) == 0)
            return true;
    return false;
}

kkt_status kkt_curves_make(kkt_db *db, const kkt_freshness *freshness, const char *only, bool real,
                           kkt_arena *arena, kkt_view *view, kkt_error *err) {
    maker m = {.arena = arena, .view = view, .real = real};
    size_t count;
    kkt_status status = KKT_OK;
    const kkt_pipeline *const *all = kkt_pipelines(&count);
    for (size_t i = 0; i < count && status == KKT_OK; i++)
        if ((only == NULL || has_member(all[i], only)) && kkt_pipeline_open(all[i], &m.p, NULL))
            status = make_pipeline(&m, db, freshness, err);
    for (size_t i = 0; i < m.count; i++)
        choose(&m.curves[i]);
    view->curves = m.curves;
    view->curve_count = m.count;
    if (status == KKT_OK)
        kkt_view_add_standing(view, arena);
    return status;
}

const char *kkt_curve_provenance(const kkt_curve_point *point) {
    return point->stale_reason != NULL ? "stale" : kkt_provenance_name(point->provenance);
}

const char *kkt_curve_shown(const kkt_curve_point *point) {
    bool made_up = false;
    if (point->run != NULL) {
        const kkt_run_record run = {.gpu = point->run->gpu};
        made_up = kkt_run_made_up(&run);
    } else if (point->provenance == KKT_MEASURED) {
        for (size_t i = 0; i < KKT_MEMBERS_MAX && point->members[i] != NULL; i++)
            made_up = made_up || kkt_entry_made_up(point->members[i]);
    }
    return made_up ? "fake" : kkt_curve_provenance(point);
}

int64_t kkt_curve_chunk(const kkt_curve *curve) {
    if (curve->best != NULL)
        return curve->best->chunk;
    for (size_t i = 0; i < curve->count; i++)
        if (curve->points[i].chunk == KKT_DEFAULT_CHUNK)
            return KKT_DEFAULT_CHUNK;
    return curve->count > 0 ? curve->points[0].chunk : KKT_DEFAULT_CHUNK;
}

const char *kkt_curve_why(const kkt_curve *curve, kkt_arena *arena) {
    const kkt_curve_point *best = curve->best;
    if (best == NULL && curve->measured > 0)
        return kkt_arena_printf(arena,
                                "%s was measured at one chunk size alone, which is no choice: "
                                "C = %d stands until there are others.",
                                curve->pipeline->name, KKT_DEFAULT_CHUNK);
    if (best == NULL)
        return kkt_arena_printf(arena,
                                "not every kernel of %s was measured at any chunk size: "
                                "C = %d stands until they are.",
                                curve->pipeline->name, KKT_DEFAULT_CHUNK);
    const kkt_curve_point *next = NULL;
    for (size_t i = 0; i < curve->count; i++) { /* of those that the best one was chosen from */
        const kkt_curve_point *point = &curve->points[i];
        double time = kkt_curve_figure(curve, point);
        if (point != best && isfinite(time) &&
            (best->stale_reason != NULL || point->stale_reason == NULL) &&
            (next == NULL || time < kkt_curve_figure(curve, next)))
            next = point;
    }
    const char *how =
        curve->by_members ? "its kernels' own times added up" : "its launches timed together";
    if (next == NULL)
        return kkt_arena_printf(arena,
                                "%s takes %.4g us at C = %lld, the only chunk size that was "
                                "measured (%s; %s).",
                                curve->pipeline->name, kkt_curve_figure(curve, best),
                                (long long)best->chunk, how, kkt_curve_shown(best));
    return kkt_arena_printf(
        arena, "%s takes %.4g us at C = %lld against %.4g us at C = %lld, the next best (%s; %s).",
        curve->pipeline->name, kkt_curve_figure(curve, best), (long long)best->chunk,
        kkt_curve_figure(curve, next), (long long)next->chunk, how, kkt_curve_shown(best));
}
