#include "reports/lookup.h"

#include <math.h>
#include <string.h>

#include "model/predict.h"
#include "reports/canonical.h"
#include "reports/curve.h"
#include "reports/failures.h"
#include "reports/modelled.h"

const char *kkt_lookup_tier_name(kkt_lookup_tier tier) {
    static const char *const names[] = {"exact", "nearest", "model", "default"};
    return names[tier];
}

/* A result that may be given out. `entry` NULL: there is none. */
typedef struct candidate {
    const kkt_entry *entry;
    const kkt_view *view;
    double distance;
} candidate;

typedef struct search {
    const kkt_kernel *kernel;
    const kkt_values *problem;
    const kkt_arch *arch;
    const kkt_device *device;
    int64_t chunk; /* 0: the kernel has none */
    const kkt_failures *failures;
    bool asked;         /* that chunk and no other; else each problem's own standing one */
    candidate *nearest; /* of each variant: its nearest result that can be used */
} search;

static bool read_config(const kkt_entry *entry, const char *text, const kkt_variant **variant,
                        kkt_values *config) {
    const kkt_kernel *kernel;
    if (!kkt_modelled_find(entry->kernel, entry->style, &kernel, variant))
        return false;
    kkt_params_defaults(&(*variant)->params, config);
    return kkt_params_parse(&(*variant)->params, text, config, NULL, NULL) == KKT_OK;
}

/* What a configuration of an entry's variant is predicted to take on a device and a problem, in us;
 * infinite where it does not apply to them or cannot launch. */
static double predicted_on(const kkt_arch *arch, const kkt_device *device, const kkt_entry *entry,
                           const char *text, const kkt_values *problem) {
    const kkt_variant *variant;
    kkt_values config;
    kkt_footprint footprint;
    kkt_prediction prediction;
    if (!read_config(entry, text, &variant, &config) ||
        !variant->applicable(problem, &config, arch, NULL, 0))
        return (double)INFINITY;
    memset(&footprint, 0, sizeof footprint);
    variant->footprint(problem, &config, arch, &footprint);
    kkt_predict(&footprint, arch, device, NULL, &prediction);
    return prediction.infeasible == KKT_FEASIBLE ? prediction.predicted_us : (double)INFINITY;
}

/* The same on the device and the problem at hand. */
static double predicted_us(const search *s, const kkt_entry *entry, const char *text) {
    return predicted_on(s->arch, s->device, entry, text, s->problem);
}

/* Whether a configuration of an entry's variant applies to the problem at hand and can launch. */
static bool usable(const search *s, const kkt_entry *entry, const char *text) {
    return isfinite(predicted_us(s, entry, text));
}

/* How far a measured entry's time is from the model's on its own problem and its view's device, as
 * a factor; 1 where that cannot be told. What the model says of the same style on another problem
 * is as far off, or so. */
static double correction(const search *s, const kkt_view *view, const kkt_entry *entry) {
    kkt_values problem;
    if (kkt_kernel_problem_parse(s->kernel, entry->problem, &problem, NULL) != KKT_OK)
        return 1;
    const double factor =
        entry->time_us / predicted_on(view->arch, view->device, entry, entry->config, &problem);
    return isfinite(factor) && factor > 0 ? factor : 1;
}

/* What a measured configuration is expected to take on the problem at hand. */
static double expected_us(const search *s, const candidate *of) {
    return correction(s, of->view, of->entry) * predicted_us(s, of->entry, of->entry->config);
}

/* The same options make the same binary, whose registers are then known. */
static bool same_binary(const search *s, const kkt_entry *entry, const kkt_variant *variant,
                        const kkt_values *config) {
    kkt_values problem;
    kkt_text asked = {0}, found = {0};
    if (variant->source == NULL ||
        kkt_kernel_problem_parse(s->kernel, entry->problem, &problem, NULL) != KKT_OK)
        return false;
    kkt_variant_defines(s->kernel, variant, s->problem, config, s->arch, &asked);
    kkt_variant_defines(s->kernel, variant, &problem, config, s->arch, &found);
    bool same = strcmp(kkt_text_get(&asked), kkt_text_get(&found)) == 0;
    kkt_text_free(&asked);
    kkt_text_free(&found);
    return same;
}

/* What an entry of another problem says of its launch and of the model is that problem's: fills in
 * what holds for the problem at hand. Time, error and energy stay those of `entry->problem`. */
static void adapt(const search *s, kkt_arena *arena, kkt_entry *entry) {
    const kkt_variant *variant;
    kkt_values config;
    int registers = entry->registers;
    int64_t spill_bytes = entry->spill_bytes;
    if (!read_config(entry, entry->config, &variant, &config))
        return;
    kkt_modelled_fill(variant, s->arch, s->device, s->problem, &config, arena, entry);
    bool same = same_binary(s, entry, variant, &config);
    if (same && registers > 0)
        entry->registers = registers;
    entry->spill_bytes = same ? spill_bytes : KKT_UNKNOWN_INT;
    entry->hbm_bytes_counted = KKT_UNKNOWN_REAL;
    entry->counters_note = NULL;
    const char **ties = kkt_arena_array(arena, entry->tie_count + 1, sizeof *ties);
    size_t count = 0;
    for (size_t i = 0; i < entry->tie_count; i++)
        if (usable(s, entry, entry->ties[i]))
            ties[count++] = entry->ties[i];
    entry->ties = ties;
    entry->tie_count = count;
}

static bool same_quotients(const kkt_kernel *kernel, const kkt_values *a, const kkt_values *b) {
    for (const kkt_lookup_quotient *q = kkt_lookup_quotients; q->above != NULL; q++) {
        int above = kkt_params_find(&kernel->problem, q->above);
        int below = kkt_params_find(&kernel->problem, q->below);
        if (above >= 0 && below >= 0 && a->v[above] * b->v[below] != b->v[above] * a->v[below])
            return false;
    }
    return true;
}

/* The chunk size that an entry must have: the one asked for, or the one that stands for its own
 * problem. */
static bool right_chunk(const search *s, const kkt_view *view, const kkt_entry *entry) {
    if (s->chunk == 0)
        return true;
    return entry->chunk ==
           (s->asked ? s->chunk : kkt_view_chunk(view, entry->kernel, entry->problem)->chunk);
}

/* How far an entry's problem is; infinite where the entry is no result that could be given out,
 * whatever its configuration. */
static double distance_of(const search *s, const kkt_view *view, const kkt_entry *entry) {
    double extra = view->device == s->device ? 0 : KKT_LOOKUP_OTHER_DEVICE;
    kkt_values problem;
    if (strcmp(entry->kernel, s->kernel->name) != 0 || entry->provenance == KKT_PREDICTED ||
        !right_chunk(s, view, entry))
        return (double)INFINITY;
    if (kkt_kernel_problem_parse(s->kernel, entry->problem, &problem, NULL) != KKT_OK)
        return (double)INFINITY;
    double distance = kkt_lookup_distance(s->kernel, s->problem, &problem) + extra +
                      (same_quotients(s->kernel, s->problem, &problem) ? 0 : KKT_LOOKUP_QUOTIENT);
    if (distance > 0 && (!kkt_entry_measured(entry) || distance > KKT_LOOKUP_FAR))
        return (double)INFINITY;
    return distance;
}

/* Place of an entry's style among the kernel's variants, or their number. */
static size_t variant_of(const search *s, const kkt_entry *entry) {
    size_t v = 0;
    while (v < s->kernel->variant_count &&
           strcmp(kkt_style_get(s->kernel->variants[v]->style)->name, entry->style) != 0)
        v++;
    return v;
}

/* Whether another result of the same style and problem is so much better that this one's
 * configuration is no guide. */
static bool poor(const kkt_view *view, const kkt_entry *entry) {
    for (size_t i = 0; i < view->entry_count; i++) {
        const kkt_entry *best = &view->entries[i];
        if (best->chunk == entry->chunk && strcmp(best->style, entry->style) == 0 &&
            strcmp(best->kernel, entry->kernel) == 0 &&
            strcmp(best->problem, entry->problem) == 0 &&
            entry->time_us > KKT_LOOKUP_POOR * best->time_us)
            return true;
    }
    return false;
}

static void consider(search *s, const kkt_view *view, const kkt_entry *entry) {
    double distance = distance_of(s, view, entry);
    size_t v = variant_of(s, entry);
    if (!isfinite(distance) || v == s->kernel->variant_count)
        return;
    candidate *best = &s->nearest[v];
    bool better = best->entry == NULL || distance < best->distance ||
                  (distance <= best->distance && kkt_entry_compare(entry, best->entry) < 0);
    if (better && !poor(view, entry) && usable(s, entry, entry->config))
        *best = (candidate){entry, view, distance};
}

/* Two styles' results on one problem. */
typedef struct contest {
    const kkt_entry *near, *far; /* of the style whose own nearest result is nearer, and farther */
} contest;

/* All results of a view: the best ones, then (of a database) every other one. */
static const kkt_entry *result_at(const kkt_view *view, size_t i) {
    return i < view->entry_count ? &view->entries[i] : &view->rows[i - view->entry_count];
}

/* The best measured result of a style on a problem whose configuration can be used for the problem
 * asked; NULL where there is none. */
static const kkt_entry *best_usable(const search *s, const kkt_view *view, const char *style,
                                    const char *problem) {
    const kkt_entry *best = NULL;
    for (size_t i = 0; i < view->entry_count + view->row_count; i++) {
        const kkt_entry *entry = result_at(view, i);
        if (strcmp(entry->style, style) == 0 && strcmp(entry->problem, problem) == 0 &&
            kkt_entry_measured(entry) && isfinite(distance_of(s, view, entry)) &&
            (best == NULL || kkt_entry_compare(entry, best) < 0) && usable(s, entry, entry->config))
            best = entry;
    }
    return best;
}

/* The results of two styles on the nearest problem on which both are measured, with configurations
 * that can be used for the problem asked and times that compare (not a stale one with a fresh one);
 * false where there is none. */
static bool common_ground(const search *s, const kkt_view *view, const kkt_entry *near,
                          const kkt_entry *far, contest *out) {
    double nearest = (double)INFINITY;
    *out = (contest){NULL, NULL};
    for (size_t i = 0; i < view->entry_count; i++) {
        const kkt_entry *entry = &view->entries[i];
        if (strcmp(entry->style, far->style) != 0 || !kkt_entry_measured(entry))
            continue;
        const double distance = distance_of(s, view, entry);
        if (distance >= nearest)
            continue;
        const contest at = {best_usable(s, view, near->style, entry->problem),
                            best_usable(s, view, far->style, entry->problem)};
        if (at.near != NULL && at.far != NULL &&
            kkt_entry_rank(at.near) == kkt_entry_rank(at.far)) {
            nearest = distance;
            *out = at;
        }
    }
    return out->near != NULL && out->far != NULL;
}

/* Whether what decides between two styles on the problem where both are measured decides the
 * problem at hand as well: by what the model says here of each style's nearest result, each times
 * what the model was off where both are measured. */
static bool holds_here(const search *s, const candidate *near, const candidate *far,
                       const contest *at) {
    return correction(s, far->view, at->far) * predicted_us(s, far->entry, far->entry->config) <
           correction(s, near->view, at->near) * predicted_us(s, near->entry, near->entry->config);
}

/* Whether a style whose nearest result is farther than `near` is known to be faster. */
static bool known_faster(const search *s, const candidate *near, const candidate *far,
                         contest *at) {
    return near->distance > 0 && far->distance > near->distance && far->view == near->view &&
           common_ground(s, near->view, near->entry, far->entry, at) &&
           kkt_entry_known_faster(at->far, at->near) && holds_here(s, near, far, at);
}

/* The nearest of the candidates that are left, which is then taken out; false where none is. */
static bool take_nearest(const search *s, bool *taken, candidate *out) {
    size_t next = s->kernel->variant_count;
    for (size_t v = 0; v < s->kernel->variant_count; v++) {
        const candidate *c = &s->nearest[v], *best = &s->nearest[next];
        if (c->entry != NULL && !taken[v] &&
            (next == s->kernel->variant_count || c->distance < best->distance ||
             (c->distance <= best->distance && kkt_entry_compare(c->entry, best->entry) < 0)))
            next = v;
    }
    if (next == s->kernel->variant_count)
        return false;
    *out = s->nearest[next];
    taken[next] = true;
    return true;
}

/* Of each style's nearest result the nearest one, which may be of the problem asked itself; one
 * that is farther where its style is known to be faster than that one's. */
static candidate choose(const search *s, kkt_arena *arena, kkt_lookup *out) {
    bool *taken = kkt_arena_array(arena, s->kernel->variant_count, sizeof *taken);
    candidate best = {0}, next;
    contest at = {NULL, NULL};
    if (!take_nearest(s, taken, &best))
        return best;
    while (take_nearest(s, taken, &next))
        if (known_faster(s, &best, &next, &at)) {
            out->passed = best.entry;
            out->passed_distance = best.distance;
            out->slower = at.near;
            out->faster = at.far;
            best = next;
        }
    return best;
}

/* What the model likes best of a style at a chunk size, of what is not known to fail. */
static bool modelled(const search *s, size_t variant, int64_t chunk, kkt_arena *arena,
                     kkt_entry *out) {
    return s->kernel->variants[variant]->library == NULL &&
           kkt_failures_modelled(s->failures, s->kernel, s->kernel->variants[variant], s->arch,
                                 s->device, s->problem, chunk, arena, out);
}

static bool from_model(const search *s, kkt_arena *arena, kkt_entry *out) {
    bool found = false;
    for (size_t v = 0; v < s->kernel->variant_count; v++) {
        kkt_entry entry;
        if (modelled(s, v, s->chunk, arena, &entry) &&
            (!found || kkt_entry_compare(&entry, out) < 0)) {
            *out = entry;
            found = true;
        }
    }
    return found;
}

/* What the model's choice of a style is expected to take on the problem at hand; infinite where
 * there is none. How far the model is off for another configuration counts within bounds. */
static double style_us(const search *s, size_t variant, int64_t chunk, kkt_arena *arena,
                       kkt_entry *pick) {
    const candidate *measured = &s->nearest[variant];
    if (!modelled(s, variant, chunk, arena, pick) || pick->model_only)
        return (double)INFINITY;
    const double factor =
        measured->entry != NULL ? correction(s, measured->view, measured->entry) : 1;
    return pick->predicted_us * fmin(fmax(factor, 1 / KKT_LOOKUP_STYLE), KKT_LOOKUP_STYLE);
}

/* Whether a style is measured to be no slower than another one on some problem. */
static bool seen_to_win(const search *s, const kkt_view *view, const char *style,
                        const char *than) {
    for (size_t i = 0; i < view->entry_count; i++) {
        const kkt_entry *a = &view->entries[i];
        if (strcmp(a->kernel, s->kernel->name) != 0 || strcmp(a->style, style) != 0 ||
            !kkt_entry_measured(a))
            continue;
        for (size_t j = 0; j < view->entry_count; j++) {
            const kkt_entry *b = &view->entries[j];
            if (b->chunk == a->chunk && strcmp(b->style, than) == 0 &&
                kkt_entry_compare_problem(a, b) == 0 && kkt_entry_rank(a) == kkt_entry_rank(b) &&
                !kkt_entry_known_faster(b, a))
                return true;
        }
    }
    return false;
}

/* Whether another style is expected to be so much faster on the problem at hand than the one of a
 * neighbour that this is not to be handed out: of it the model's choice (`pick`), and in `*v` its
 * variant. A configuration that the model would not take says nothing against its style. */
static bool other_style(const search *s, const candidate *neighbour, kkt_arena *arena,
                        kkt_entry *pick, size_t *v) {
    const kkt_entry *entry = neighbour->entry;
    const size_t own = variant_of(s, entry);
    double least = (double)INFINITY;
    bool found = false;
    kkt_entry other;
    for (size_t i = 0; i < s->kernel->variant_count; i++) {
        const double us = i == own ? (double)INFINITY : style_us(s, i, entry->chunk, arena, &other);
        if (us < least) {
            found = true;
            least = us;
            *pick = other;
            *v = i;
        }
    }
    if (!found)
        return false;
    const double factor = seen_to_win(s, neighbour->view, pick->style, entry->style)
                              ? KKT_LOOKUP_STYLE
                              : KKT_LOOKUP_STYLE_UNSEEN;
    return fmin(expected_us(s, neighbour), style_us(s, own, entry->chunk, arena, &other)) >
           factor * least;
}

/* A neighbour's style holds for its problem: whether it does here is the model's to say. What was
 * chosen is passed over where it does not: for the nearest result of the other style, where that
 * has about what the model would take, else for the model's own, which is then `*pick`. */
static bool overrule(const search *s, kkt_arena *arena, candidate *best, kkt_entry *pick,
                     kkt_lookup *out) {
    size_t v = 0;
    if (best->entry == NULL || best->distance <= 0 || !other_style(s, best, arena, pick, &v))
        return false;
    const candidate *other = &s->nearest[v];
    out->passed = best->entry;
    out->passed_distance = best->distance;
    out->slower = out->faster = NULL;
    out->passed_us = predicted_us(s, best->entry, best->entry->config);
    if (other->entry == NULL || other->entry->chunk != best->entry->chunk ||
        predicted_us(s, other->entry, other->entry->config) > KKT_LOOKUP_SLOW * pick->predicted_us)
        return true;
    *best = *other;
    return false;
}

static void from_defaults(const search *s, kkt_arena *arena, kkt_entry *out) {
    const kkt_variant *variant = s->kernel->variants[0];
    kkt_values config;
    char reason[320];
    kkt_entry_clear(out);
    kkt_params_defaults(&variant->params, &config);
    out->config = kkt_params_text(arena, &variant->params, &config);
    out->problem = kkt_params_text(arena, &s->kernel->problem, s->problem);
    out->kernel = s->kernel->name;
    out->style = kkt_style_get(variant->style)->name;
    out->chunk = s->kernel->chunk_param == NULL
                     ? 0
                     : kkt_pair_integer(out->config, s->kernel->chunk_param, 0);
    kkt_modelled_fill(variant, s->arch, s->device, s->problem, &config, arena, out);
    if (!variant->applicable(s->problem, &config, s->arch, reason, sizeof reason))
        out->reason = kkt_arena_strdup(arena, reason);
}

kkt_status kkt_lookup_find(const kkt_view *views, size_t count, const kkt_kernel *kernel,
                           const kkt_values *problem, int64_t chunk, const kkt_arch *arch,
                           const kkt_device *device, kkt_arena *arena, kkt_lookup *out,
                           kkt_error *err) {
    char reason[320] = "";
    if (!kkt_kernel_problem_valid(kernel, problem, reason, sizeof reason))
        return kkt_fail(err, KKT_ERR_INPUT, 0, "impossible problem: %s", reason);
    search s = {.kernel = kernel,
                .problem = problem,
                .arch = arch,
                .device = device,
                .asked = chunk != 0,
                .failures = count > 0 && views[0].device == device ? views[0].failures : NULL,
                .nearest = kkt_arena_array(arena, kernel->variant_count, sizeof *s.nearest)};
    kkt_status status = kkt_lookup_chunk(views, count, kernel, chunk, &s.chunk, err);
    if (status != KKT_OK)
        return status;
    for (size_t v = 0; v < count; v++)
        for (size_t i = 0; i < views[v].entry_count + views[v].row_count; i++)
            consider(&s, &views[v], result_at(&views[v], i));
    memset(out, 0, sizeof *out);
    out->failures = s.failures;
    kkt_entry pick;
    candidate best = choose(&s, arena, out);
    const bool by_model = overrule(&s, arena, &best, &pick, out);
    out->device = best.entry != NULL && !by_model ? best.view->device : device;
    if (by_model) {
        out->tier = KKT_LOOKUP_MODEL;
        out->entry = pick;
    } else if (best.entry != NULL) {
        out->tier = best.distance > 0 ? KKT_LOOKUP_NEAREST : KKT_LOOKUP_EXACT;
        out->distance = best.distance;
        out->entry = *best.entry;
        if (out->tier == KKT_LOOKUP_NEAREST)
            adapt(&s, arena, &out->entry);
    } else if (from_model(&s, arena, &out->entry)) {
        out->tier = KKT_LOOKUP_MODEL;
    } else {
        out->tier = KKT_LOOKUP_DEFAULT;
        from_defaults(&s, arena, &out->entry);
    }
    return KKT_OK;
}

bool kkt_lookup_model_pick(const kkt_lookup *found, const kkt_kernel *kernel,
                           const kkt_values *problem, const kkt_arch *arch,
                           const kkt_device *device, kkt_arena *arena, kkt_entry *out) {
    const search s = {.kernel = kernel,
                      .problem = problem,
                      .arch = arch,
                      .device = device,
                      .chunk = found->entry.chunk,
                      .failures = found->failures};
    return found->tier == KKT_LOOKUP_NEAREST && from_model(&s, arena, out) &&
           found->entry.predicted_us > KKT_LOOKUP_SLOW * out->predicted_us;
}
