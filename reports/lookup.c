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

kkt_lookup_rule kkt_lookup_rule_of(const kkt_param *param) {
    static const struct {
        const char *key;
        kkt_lookup_rule rule;
    } rules[] = {{"batch", {1, false}},
                 {"sequences", {1, false}},
                 {"dk", {8, true}},
                 {"dv", {8, true}},
                 {"gated", {8, true}}};
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (strcmp(rules[i].key, param->name) == 0)
            return rules[i].rule;
    return (kkt_lookup_rule){2, param->names != NULL};
}

const kkt_lookup_quotient kkt_lookup_quotients[] = {{"heads_v", "heads_k"}, {NULL, NULL}};

/* 4 to the power of the distance: products of quotients alone, so that the header, which has no
 * logarithm, compares the very same numbers. */
static double apart(const kkt_kernel *kernel, const kkt_values *a, const kkt_values *b) {
    double out = 1;
    for (size_t p = 0; p < kernel->problem.count; p++) {
        int64_t x = a->v[p], y = b->v[p];
        if (x == y)
            continue;
        if (kernel->problem.params[p].names != NULL)
            return (double)INFINITY;
        double ratio = x <= 0 || y <= 0 ? 2 : x > y ? (double)x / (double)y : (double)y / (double)x;
        int halves = x <= 0 || y <= 0 ? 8 : kkt_lookup_rule_of(&kernel->problem.params[p]).halves;
        double power = 1;
        for (; halves > 0; halves--)
            power *= ratio;
        out *= power;
    }
    return out;
}

double kkt_lookup_distance(const kkt_kernel *kernel, const kkt_values *a, const kkt_values *b) {
    return log2(apart(kernel, a, b)) / 2;
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

/* Whether a configuration of an entry's variant applies to the problem at hand and can launch. */
static bool usable(const search *s, const kkt_entry *entry, const char *text) {
    const kkt_variant *variant;
    kkt_values config;
    kkt_footprint footprint;
    kkt_prediction prediction;
    if (!read_config(entry, text, &variant, &config) ||
        !variant->applicable(s->problem, &config, s->arch, NULL, 0))
        return false;
    memset(&footprint, 0, sizeof footprint);
    variant->footprint(s->problem, &config, s->arch, &footprint);
    kkt_predict(&footprint, s->arch, s->device, NULL, &prediction);
    return prediction.infeasible == KKT_FEASIBLE;
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
    return isfinite(nearest);
}

/* Whether a style whose nearest result is farther than `near` is known to be faster. */
static bool known_faster(const search *s, const candidate *near, const candidate *far,
                         contest *at) {
    return near->distance > 0 && far->distance > near->distance && far->view == near->view &&
           common_ground(s, near->view, near->entry, far->entry, at) &&
           kkt_entry_known_faster(at->far, at->near);
}

/* The nearest of the candidates that are left, which is then taken out; false where none is. */
static bool take_nearest(const search *s, candidate *out) {
    candidate *next = NULL;
    for (size_t v = 0; v < s->kernel->variant_count; v++) {
        candidate *c = &s->nearest[v];
        if (c->entry != NULL &&
            (next == NULL || c->distance < next->distance ||
             (c->distance <= next->distance && kkt_entry_compare(c->entry, next->entry) < 0)))
            next = c;
    }
    if (next == NULL)
        return false;
    *out = *next;
    next->entry = NULL;
    return true;
}

/* Of each style's nearest result the nearest one, which may be of the problem asked itself; one
 * that is farther where its style is known to be faster than that one's. */
static candidate choose(const search *s, kkt_lookup *out) {
    candidate best = {0}, next;
    contest at = {NULL, NULL};
    if (!take_nearest(s, &best))
        return best;
    while (take_nearest(s, &next))
        if (known_faster(s, &best, &next, &at)) {
            out->passed = best.entry;
            out->passed_distance = best.distance;
            out->slower = at.near;
            out->faster = at.far;
            best = next;
        }
    return best;
}

static bool from_model(const search *s, kkt_arena *arena, kkt_entry *out) {
    bool found = false;
    for (size_t v = 0; v < s->kernel->variant_count; v++) {
        kkt_entry entry;
        if (s->kernel->variants[v]->library == NULL &&
            kkt_failures_modelled(s->failures, s->kernel, s->kernel->variants[v], s->arch,
                                  s->device, s->problem, s->chunk, arena, &entry) &&
            (!found || kkt_entry_compare(&entry, out) < 0)) {
            *out = entry;
            found = true;
        }
    }
    return found;
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

/* What a pipeline chose for the first problem of a kernel that has a view; else KKT_DEFAULT_CHUNK.
 */
static int64_t standing_chunk(const kkt_view *views, size_t count, const kkt_kernel *kernel) {
    for (size_t v = 0; v < count; v++)
        for (size_t i = 0; i < views[v].standing_count; i++)
            if (strcmp(views[v].standing[i].kernel, kernel->name) == 0)
                return views[v].standing[i].chunk;
    return KKT_DEFAULT_CHUNK;
}

/* The chunk to look for: the one asked, the standing one, or the kernel's own default. */
static kkt_status choose_chunk(const kkt_kernel *kernel, int64_t asked, int64_t standing,
                               int64_t *out, kkt_error *err) {
    *out = 0;
    if (kernel->chunk_param == NULL)
        return asked == 0 ? KKT_OK
                          : kkt_fail(err, KKT_ERR_INPUT, 0, "%s has no chunk size", kernel->name);
    const kkt_param_table *table = &kernel->variants[0]->params;
    int index = kkt_params_find(table, kernel->chunk_param);
    if (index < 0)
        return KKT_OK;
    const kkt_param *param = &table->params[index];
    int64_t wanted = asked == 0 ? standing : asked;
    kkt_text known = {0};
    for (size_t i = 0; i < param->count; i++) {
        if (param->values[i] == wanted)
            *out = wanted;
        kkt_text_printf(&known, "%s%lld", i == 0 ? "" : ", ", (long long)param->values[i]);
    }
    kkt_status status = KKT_OK;
    if (*out == 0 && asked == 0)
        *out = param->fallback;
    else if (*out == 0)
        status = kkt_fail(err, KKT_ERR_INPUT, 0, "%s has no chunk size %lld; known: %s",
                          kernel->name, (long long)asked, kkt_text_get(&known));
    kkt_text_free(&known);
    return status;
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
    kkt_status status =
        choose_chunk(kernel, chunk, standing_chunk(views, count, kernel), &s.chunk, err);
    if (status != KKT_OK)
        return status;
    for (size_t v = 0; v < count; v++)
        for (size_t i = 0; i < views[v].entry_count + views[v].row_count; i++)
            consider(&s, &views[v], result_at(&views[v], i));
    memset(out, 0, sizeof *out);
    out->failures = s.failures;
    candidate best = choose(&s, out);
    out->device = best.entry != NULL ? best.view->device : device;
    if (best.entry != NULL) {
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

kkt_status kkt_lookup_views(kkt_db *db, const kkt_freshness *freshness, const kkt_arch *arch,
                            const kkt_device *device, const char *kernel, kkt_arena *arena,
                            kkt_view **views, size_t *count, kkt_error *err) {
    size_t devices;
    const kkt_device *all = kkt_devices(&devices);
    *views = kkt_arena_array(arena, devices + 1, sizeof **views);
    kkt_status status =
        kkt_view_make(db, freshness, arch, device, kernel, arena, &(*views)[0], err);
    *count = 1;
    for (size_t i = 0; i < devices && status == KKT_OK; i++)
        if (&all[i] != device && strcmp(all[i].arch, arch->name) == 0)
            status = kkt_view_make(db, freshness, arch, &all[i], kernel, arena,
                                   &(*views)[(*count)++], err);
    return status;
}

const kkt_device *kkt_lookup_own_device(kkt_view *views, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (views[i].measured + views[i].replayed > 0) {
            kkt_view own = views[i];
            memmove(views + 1, views, i * sizeof *views);
            views[0] = own;
            break;
        }
    return views[0].device;
}
