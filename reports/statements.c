#include "reports/statements.h"

#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "model/ledger.h"
#include "reports/canonical.h"
#include "reports/statements_scene.h"

const char *kkt_statement_verdict_name(kkt_statement_verdict verdict) {
    static const char *const names[] = {
        [KKT_STATEMENT_UNDECIDED] = "undecided",
        [KKT_STATEMENT_CONFIRMED] = "confirmed",
        [KKT_STATEMENT_REFUTED] = "refuted",
        [KKT_STATEMENT_CONDITIONAL] = "only under a condition",
    };
    return names[verdict];
}

/* ---- helpers ---- */

void kkt_decision_say(kkt_decision *decision, const char *format, ...) {
    char piece[400];
    va_list list;
    va_start(list, format);
    vsnprintf(piece, sizeof piece, format, list);
    va_end(list);
    kkt_text_printf(&decision->figures, "%s%s", decision->figures.length > 0 ? "; " : "", piece);
}

void kkt_decision_count(kkt_decision *decision, size_t hits, size_t total) {
    if (total == 0)
        return;
    decision->verdict = hits == total ? KKT_STATEMENT_CONFIRMED
                        : hits == 0   ? KKT_STATEMENT_REFUTED
                                      : KKT_STATEMENT_CONDITIONAL;
}

const char *kkt_scene_solver(const kkt_curve *curve) {
    return curve == NULL || curve->member_count < 2 ? NULL : curve->pipeline->members[0];
}

const char *kkt_scene_consumer(const kkt_curve *curve) {
    return curve == NULL ? NULL : curve->pipeline->members[curve->member_count - 1];
}

static bool is_of(const kkt_entry *entry, const char *kernel, const char *style) {
    return strcmp(entry->kernel, kernel) == 0 &&
           (style == NULL || strcmp(entry->style, style) == 0);
}

/* At how many chunk sizes an entry's kernel is measured on its problem, in one style or (NULL) in
 * any: one alone is no choice. */
static size_t measured_chunks(const kkt_scene *scene, const kkt_entry *like, const char *style) {
    size_t count = 0;
    int64_t seen[KKT_CHOICES_MAX];
    for (size_t i = 0; i < scene->view->entry_count && count < KKT_CHOICES_MAX; i++) {
        const kkt_entry *entry = &scene->view->entries[i];
        bool counts = kkt_entry_measured(entry) && is_of(entry, like->kernel, style) &&
                      strcmp(entry->problem, like->problem) == 0;
        for (size_t j = 0; j < count && counts; j++)
            counts = seen[j] != entry->chunk;
        if (counts)
            seen[count++] = entry->chunk;
    }
    return count;
}

/* The default problem on which the kernel and style are measured at the most chunk sizes, the first
 * of equals: chunk sizes are compared on one problem. */
static int told_problem(const kkt_scene *scene, const char *kernel, const char *style) {
    int rank = 0;
    size_t most = 0;
    for (size_t i = 0; i < scene->view->entry_count; i++) {
        const kkt_entry *entry = &scene->view->entries[i];
        if (entry->problem_rank == INT_MAX || !is_of(entry, kernel, style))
            continue;
        const size_t count = measured_chunks(scene, entry, style);
        if (count > most || (count > 0 && count == most && entry->problem_rank < rank)) {
            rank = entry->problem_rank;
            most = count;
        }
    }
    return rank;
}

const kkt_entry *kkt_scene_entry(const kkt_scene *scene, const char *kernel, const char *style,
                                 int64_t chunk) {
    const kkt_entry *best = NULL;
    const int rank = kernel != NULL ? told_problem(scene, kernel, style) : 0;
    for (size_t i = 0; kernel != NULL && i < scene->view->entry_count; i++) {
        const kkt_entry *entry = &scene->view->entries[i];
        if (entry->problem_rank == rank && entry->chunk == chunk && is_of(entry, kernel, style) &&
            (best == NULL || kkt_entry_compare(entry, best) < 0))
            best = entry;
    }
    return best;
}

static const kkt_curve_point *point_at(const kkt_curve *curve, int64_t chunk) {
    for (size_t i = 0; curve != NULL && i < curve->count; i++)
        if (curve->points[i].chunk == chunk)
            return &curve->points[i];
    return NULL;
}

/* HBM bytes per token and value head of a whole pipeline; NaN where it has no such point. */
static double bytes_per_head(const kkt_curve *curve, int64_t chunk) {
    const kkt_curve_point *point = point_at(curve, chunk);
    return point == NULL ? (double)NAN
                         : point->hbm_bytes_per_token /
                               (double)kkt_pair_integer(curve->problem, "heads_v", 1);
}

/* The same as counted; NaN where a member was not counted. */
static double counted_per_head(const kkt_curve *curve, int64_t chunk) {
    const kkt_curve_point *point = point_at(curve, chunk);
    double sum = point == NULL ? (double)NAN : 0;
    for (size_t i = 0; point != NULL && i < curve->member_count; i++)
        sum += point->members[i]->hbm_bytes_counted;
    return sum / (double)kkt_pair_integer(curve->problem, "tokens", 1) /
           (double)kkt_pair_integer(curve->problem, "heads_v", 1);
}

/* ---- section 2.4 ---- */

/* The article's own shares, of its own count; and what a full count makes of them. */
static void decide_inverse_share(const kkt_scene *scene, kkt_decision *out) {
    static const struct {
        int64_t chunk;
        double share;
    } said[] = {{32, 0.007}, {64, 0.026}, {128, 0.076}};
    size_t as_said = 0, in_full = 0, count = sizeof said / sizeof said[0];
    (void)scene;
    for (size_t i = 0; i < count; i++) {
        kkt_ledger ledger;
        if (kkt_ledger_compute(said[i].chunk, 16, 128, 128, 2, &ledger, NULL) != KKT_OK)
            return;
        as_said += fabs(ledger.inverse_share_seed - said[i].share) < 0.0005;
        in_full += fabs(ledger.inverse_share_full - said[i].share) < 0.0005;
        kkt_decision_say(out, "C = %lld: %.1f %% as counted there, %.1f %% with K S, T W and K K^T",
                         (long long)said[i].chunk, 100 * ledger.inverse_share_seed,
                         100 * ledger.inverse_share_full);
    }
    kkt_decision_count(out, as_said + in_full, 2 * count);
}

/* What doubling C saves of HBM traffic, in each pipeline. */
static void say_saving(const kkt_curve *curve, int64_t from, kkt_decision *out, double *saved) {
    *saved = bytes_per_head(curve, from) - bytes_per_head(curve, 2 * from);
    if (!isfinite(*saved))
        return;
    double counted = counted_per_head(curve, from) - counted_per_head(curve, 2 * from);
    if (isfinite(counted)) {
        kkt_decision_say(out, "%s: %+.0f B per token and value head (%+.0f counted)",
                         curve->pipeline->name, 0.0 - *saved, 0.0 - counted);
        out->measured = true;
    } else {
        kkt_decision_say(out, "%s: %+.0f B per token and value head", curve->pipeline->name,
                         0.0 - *saved);
    }
}

static void decide_state_traffic(const kkt_scene *scene, kkt_decision *out) {
    const kkt_curve *const curves[] = {scene->fused, scene->with_t, scene->with_state};
    size_t falls = 0, total = 0;
    for (size_t i = 0; i < sizeof curves / sizeof curves[0]; i++) {
        double saved = (double)NAN;
        if (curves[i] != NULL)
            say_saving(curves[i], 32, out, &saved);
        total += isfinite(saved) ? 1 : 0;
        falls += isfinite(saved) && saved >= 0.5 * 1024; /* of the 1024 B that the article has */
    }
    kkt_decision_count(out, falls, total);
}

/* T's 2C bytes per token, written and read again: how the traffic of the pipeline with T grows. */
static void decide_t_traffic(const kkt_scene *scene, kkt_decision *out) {
    size_t hits = 0, total = 0;
    if (scene->with_t == NULL || scene->fused == NULL)
        return;
    for (int64_t chunk = 16; chunk <= 64; chunk *= 2) {
        double grown =
            bytes_per_head(scene->with_t, 2 * chunk) - bytes_per_head(scene->with_t, chunk) -
            (bytes_per_head(scene->fused, 2 * chunk) - bytes_per_head(scene->fused, chunk));
        double counted =
            counted_per_head(scene->with_t, 2 * chunk) - counted_per_head(scene->with_t, chunk);
        if (!isfinite(grown))
            continue;
        total++;
        hits += fabs(grown - 4.0 * (double)chunk) <= 0.05 * 4.0 * (double)chunk;
        kkt_decision_say(out, "from C = %lld to %lld: %+.0f B per token and value head, of 4C more",
                         (long long)chunk, (long long)(2 * chunk), grown);
        if (isfinite(counted)) {
            kkt_decision_say(out, "counted %+.0f", counted);
            out->measured = true;
        }
    }
    kkt_decision_count(out, hits, total);
}

/* The chunk size with the smallest prediction; 0: there is none. */
static int64_t predicted_choice(const kkt_curve *curve) {
    const kkt_curve_point *best = NULL;
    for (size_t i = 0; i < curve->count; i++)
        if (best == NULL || curve->points[i].predicted_us < best->predicted_us)
            best = &curve->points[i];
    return best == NULL ? 0 : best->chunk;
}

/* On how many problems a pipeline chose `chunk`; without a measured choice what the model would
 * choose is said, and decides nothing. */
static void count_choices(const kkt_scene *scene, const kkt_curve *like, int64_t chunk,
                          kkt_decision *out, size_t *hits, size_t *total) {
    size_t own = 0, own_total = 0, predicted = 0, curves = 0;
    kkt_text others = {0};
    for (size_t i = 0; like != NULL && i < scene->view->curve_count; i++) {
        const kkt_curve *curve = &scene->view->curves[i];
        if (curve->pipeline != like->pipeline || curve->count == 0)
            continue;
        curves++;
        predicted += predicted_choice(curve) == chunk;
        if (curve->best == NULL)
            continue;
        own_total++;
        own += curve->best->chunk == chunk;
        if (curve->best->chunk != chunk)
            kkt_text_printf(&others, "%s%lld", others.length > 0 ? ", " : "",
                            (long long)curve->best->chunk);
    }
    if (own_total > 0)
        kkt_decision_say(out, "%s end to end: C = %lld on %zu of %zu problems%s%s",
                         like->pipeline->name, (long long)chunk, own, own_total,
                         others.length > 0 ? ", else " : "", kkt_text_get(&others));
    else if (curves > 0)
        kkt_decision_say(out,
                         "%s is not measured; the model would take C = %lld on %zu of %zu "
                         "problems",
                         like->pipeline->name, (long long)chunk, predicted, curves);
    kkt_text_free(&others);
    *hits += own;
    *total += own_total;
}

static void decide_fused_64(const kkt_scene *scene, kkt_decision *out) {
    size_t hits = 0, total = 0;
    count_choices(scene, scene->fused, 64, out, &hits, &total);
    count_choices(scene, scene->with_t, 64, out, &hits, &total);
    out->measured = total > 0;
    kkt_decision_count(out, hits, total);
}

/* One style at C = 128 beside C = 64: whether it is ruled out there. */
static void judge_128(const kkt_scene *scene, const char *kernel, const char *style,
                      kkt_decision *out, size_t *hits, size_t *total, bool *all_known) {
    const kkt_entry *small = kkt_scene_entry(scene, kernel, style, 64);
    const kkt_entry *large = kkt_scene_entry(scene, kernel, style, 128);
    if (small == NULL)
        return;
    (*total)++;
    if (large == NULL) {
        (*hits)++;
        kkt_decision_say(out, "%s %s: nothing can run at C = 128", kernel, style);
        return;
    }
    bool timed = kkt_entry_measured(small) && kkt_entry_measured(large);
    bool spills = large->spill_bytes > 0;
    bool slower = timed && large->time_us > small->time_us;
    kkt_text resources = {0};
    kkt_scene_resources(scene, large, &resources);
    kkt_decision_say(out, "%s %s at 128: %s, %s%s", kernel, style, kkt_text_get(&resources),
                     large->spill_bytes < 0 ? "not compiled"
                     : spills               ? "spills"
                                            : "no spills",
                     !timed   ? ""
                     : slower ? ", slower than at 64"
                              : ", faster than at 64");
    kkt_text_free(&resources);
    *hits += spills || slower;
    *all_known = *all_known && (spills || timed);
}

static void decide_cap_128(const kkt_scene *scene, kkt_decision *out) {
    size_t hits = 0, total = 0, styles;
    bool all_known = true;
    const kkt_style *all = kkt_styles(&styles);
    const char *const kernels[] = {kkt_scene_consumer(scene->fused),
                                   kkt_scene_consumer(scene->with_t)};
    for (size_t k = 0; k < sizeof kernels / sizeof kernels[0]; k++)
        for (size_t s = 0; s < styles; s++)
            judge_128(scene, kernels[k], all[s].name, out, &hits, &total, &all_known);
    out->compiled = all_known;
    if (all_known)
        kkt_decision_count(out, hits, total);
}

/* Alone and in its pipeline. */
static void decide_solver_32(const kkt_scene *scene, kkt_decision *out) {
    const char *solver = kkt_scene_solver(scene->with_t);
    size_t alone = 0, alone_total = 0, hits = 0, total = 0;
    kkt_text others = {0};
    for (size_t i = 0; solver != NULL && i < scene->view->entry_count; i++) {
        const kkt_entry *entry = &scene->view->entries[i];
        if (strcmp(entry->kernel, solver) != 0 || !entry->best_of_problem ||
            !kkt_entry_measured(entry) || measured_chunks(scene, entry, NULL) < 2)
            continue;
        alone_total++;
        alone += entry->chunk == 32;
        if (entry->chunk != 32)
            kkt_text_printf(&others, "%s%lld", others.length > 0 ? ", " : "",
                            (long long)entry->chunk);
    }
    if (alone_total > 0)
        kkt_decision_say(out, "%s alone: C = 32 on %zu of %zu problems%s%s", solver, alone,
                         alone_total, others.length > 0 ? ", else " : "", kkt_text_get(&others));
    kkt_text_free(&others);
    count_choices(scene, scene->with_t, 32, out, &hits, &total);
    out->measured = alone_total + total > 0;
    kkt_decision_count(out, alone + hits, alone_total + total);
}

/* ---- the list ---- */

static const struct {
    const char *section, *text;
    kkt_decide decide;
} statements[] = {
    {"2.4", "The inverse takes 0.7, 2.6 and 7.6 % of a chunk's multiply-adds at C = 32, 64, 128",
     decide_inverse_share},
    {"2.4",
     "From C = 32 to 64 the state's HBM traffic halves, 1024 B less per token and head: the "
     "largest saving there is",
     decide_state_traffic},
    {"2.4",
     "A T that goes through HBM costs 2C bytes per token and head to write, and as many to "
     "read again",
     decide_t_traffic},
    {"2.4", "Kernels that fuse the forward are fastest at C = 64", decide_fused_64},
    {"2.4", "C = 128 is ruled out: the C x C tables burst registers or shared memory",
     decide_cap_128},
    {"2.4", "The solver that writes T is best at C = 32: twice the C writes twice the bytes",
     decide_solver_32},
    {"2.5",
     "One warpgroup with its tables in registers is stopped by 255 registers a thread: three "
     "C x C tables take 96 at C = 64 and 384 at C = 128",
     kkt_decide_register_cap},
    {"2.5",
     "Warp-specialized, by shared memory: as many blocks an SM at C = 32 and at C = 64 as the "
     "double-buffered layout leaves room for",
     kkt_decide_shared_blocks},
    {"2.5",
     "That layout runs with 1, 2, 3 blocks at C = 32 and not at all, 1, 1 at C = 64 on cards "
     "of 100, 164 and 228 KB",
     kkt_decide_small_cards},
    {"2.5", "Its shared memory grows about linearly with C, for dk is larger than C",
     kkt_decide_linear_growth},
    {"2.5", "The solver that writes T is stopped by HBM bandwidth", kkt_decide_solver_bandwidth},
    {"2.5", "The best C of all three styles lies between 32 and 64", kkt_decide_range},
    {"2.5", "Three different resources stop the three styles: registers, shared memory, HBM",
     kkt_decide_three_resources},
};

static const kkt_curve *first_curve(const kkt_view *view, size_t least, size_t most) {
    for (size_t i = 0; i < view->curve_count; i++) {
        const kkt_curve *curve = &view->curves[i];
        if (curve->member_count >= least && curve->member_count <= most && curve->count > 0)
            return curve;
    }
    return NULL;
}

const kkt_statement *kkt_statements_make(const kkt_view *view, kkt_arena *arena, size_t *count) {
    const kkt_scene scene = {.view = view,
                             .fused = first_curve(view, 1, 1),
                             .with_t = first_curve(view, 2, 2),
                             .with_state = first_curve(view, 3, KKT_MEMBERS_MAX)};
    *count = sizeof statements / sizeof statements[0];
    kkt_statement *out = kkt_arena_array(arena, *count, sizeof *out);
    for (size_t i = 0; i < *count; i++) {
        kkt_decision decision = {.arena = arena};
        statements[i].decide(&scene, &decision);
        bool empty = decision.figures.length == 0;
        out[i] = (kkt_statement){
            .section = statements[i].section,
            .text = statements[i].text,
            .verdict = decision.verdict,
            .decided_by = decision.measured   ? "measured"
                          : decision.compiled ? "compiled"
                                              : "model",
            .figures = empty ? "nothing to decide it by is there yet"
                             : kkt_arena_strdup(arena, kkt_text_get(&decision.figures)),
        };
        kkt_text_free(&decision.figures);
    }
    return out;
}
