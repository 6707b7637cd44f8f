/* `kkttune.config/1`: docs/formats.md, docs/schemas/kkttune.config-1.schema.json. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/version.h"
#include "reports/canonical.h"
#include "reports/curve.h"
#include "reports/export/exporters.h"

/* "k=v,..." as an object: integers as numbers, names as strings. */
static void add_pairs(kkt_json *object, const char *text) {
    kkt_pair pair;
    while (kkt_pair_next(&text, &pair)) {
        if (pair.is_integer)
            kkt_json_add_int(object, pair.key, pair.integer);
        else
            kkt_json_add_string(object, pair.key, pair.text);
    }
}

/* Unknown reals are left out: a reader sees no member rather than null. */
static void add_known_real(kkt_json *object, const char *key, double value) {
    if (isfinite(value))
        kkt_json_add_real(object, key, value);
}

static void add_known_int(kkt_json *object, const char *key, int64_t value) {
    if (value >= 0)
        kkt_json_add_int(object, key, value);
}

static void add_time(kkt_json *object, const kkt_entry *entry) {
    kkt_json *time = kkt_json_add_object(object, "time_us");
    kkt_json_add_real(time, "median", entry->time_us);
    kkt_json_add_real(time, "low", entry->low_us);
    kkt_json_add_real(time, "high", entry->high_us);
    kkt_json_add_int(time, "samples", entry->samples);
}

/* Where and when a time was taken. The day alone: runs that differ in nothing else give the same
 * file, as they do in the reports. */
static void add_measured_on(kkt_json *object, const kkt_entry *entry) {
    char day[11];
    snprintf(day, sizeof day, "%s", entry->date != NULL ? entry->date : "");
    const struct {
        const char *key, *value;
    } known[] = {{"gpu", entry->gpu}, {"driver", entry->driver}, {"date", day}};
    kkt_json *out = kkt_json_add_object(object, "measured_on");
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].value != NULL && known[i].value[0] != '\0')
            kkt_json_add_string(out, known[i].key, known[i].value);
}

void kkt_entry_add_json(const kkt_entry *entry, struct kkt_json *parent, const char *key) {
    kkt_json *object = kkt_json_add_object(parent, key);
    kkt_json_add_string(object, "kernel", entry->kernel);
    kkt_json_add_string(object, "style", entry->style);
    add_pairs(kkt_json_add_object(object, "problem"), entry->problem);
    add_pairs(kkt_json_add_object(object, "config"), entry->config);
    kkt_json *launch = kkt_json_add_object(object, "launch");
    add_known_int(launch, "threads", entry->threads);
    add_known_int(launch, "smem_bytes", entry->smem_bytes);
    add_known_int(launch, "registers", entry->registers);
    kkt_json_add_string(object, "provenance", kkt_entry_provenance(entry));
    if (entry->stale_reason != NULL)
        kkt_json_add_string(object, "stale_reason", entry->stale_reason);
    if (kkt_entry_measured(entry)) {
        add_time(object, entry);
        add_measured_on(object, entry);
    }
    if (kkt_entry_measured(entry) && entry->noisy)
        kkt_json_add_bool(object, "noisy", true);
    add_known_real(object, "predicted_us", entry->predicted_us);
    kkt_json_add_bool(object, "predicted_calibrated", entry->calibrated);
    add_known_real(object, "lower_bound_us", entry->lower_bound_us);
    if (entry->limiter != NULL)
        kkt_json_add_string(object, "limiter", entry->limiter);
    if (kkt_entry_measured(entry)) {
        kkt_json *error = kkt_json_add_object(object, "error");
        add_known_real(error, "rel_fro", entry->rel_fro);
        add_known_real(error, "max_abs", entry->max_abs);
        add_known_real(error, "tolerance", entry->tolerance);
        add_known_real(object, "energy_mj", entry->energy_mj);
        if (entry->disturbed != NULL)
            kkt_json_add_string(object, "disturbed", entry->disturbed);
    }
    kkt_json *ties = kkt_json_add_array(object, "ties");
    for (size_t i = 0; i < entry->tie_count; i++)
        add_pairs(kkt_json_add_object(ties, NULL), entry->ties[i]);
    if (entry->kernel_hash != NULL)
        kkt_json_add_string(object, "kernel_hash", entry->kernel_hash);
}

void kkt_baselines_add_json(const kkt_view *view, struct kkt_json *parent, const char *key) {
    kkt_json *array = view->baseline_count > 0 ? kkt_json_add_array(parent, key) : NULL;
    for (size_t i = 0; i < view->baseline_count; i++) {
        const kkt_baseline *row = &view->baselines[i];
        kkt_json *object = kkt_json_add_object(array, NULL);
        kkt_json_add_string(object, "kernel", row->entry.kernel);
        add_pairs(kkt_json_add_object(object, "problem"), row->entry.problem);
        if (row->entry.chunk > 0)
            kkt_json_add_int(object, "chunk", row->entry.chunk);
        add_pairs(kkt_json_add_object(object, "call"), row->entry.config);
        kkt_json_add_string(object, "provenance", kkt_entry_provenance(&row->entry));
        if (row->entry.stale_reason != NULL)
            kkt_json_add_string(object, "stale_reason", row->entry.stale_reason);
        add_time(object, &row->entry);
        add_measured_on(object, &row->entry);
        if (row->entry.noisy)
            kkt_json_add_bool(object, "noisy", true);
        add_known_real(object, "rel_fro", row->entry.rel_fro);
        add_known_real(object, "tolerance", row->entry.tolerance);
        if (row->tuned == NULL)
            continue;
        kkt_json *tuned = kkt_json_add_object(object, "tuned");
        kkt_json_add_string(tuned, "style", row->tuned->style);
        add_pairs(kkt_json_add_object(tuned, "config"), row->tuned->config);
        kkt_json_add_string(tuned, "provenance", kkt_entry_provenance(row->tuned));
        kkt_json_add_real(tuned, "time_us", row->tuned->time_us);
        kkt_json_add_real(object, "ratio", kkt_figure_round(row->ratio));
        kkt_json_add_bool(object, "together", row->together);
    }
}

static double curve_time(const kkt_entry *entry) {
    return kkt_entry_measured(entry) ? entry->time_us : entry->predicted_us;
}

static void add_curve_point(kkt_json *curve, const kkt_entry *entry) {
    kkt_json *point = kkt_json_add_object(curve, NULL);
    kkt_json_add_int(point, "chunk", entry->chunk);
    kkt_json_add_string(point, "style", entry->style);
    if (kkt_entry_measured(entry))
        kkt_json_add_real(point, "time_us", entry->time_us);
    add_known_real(point, "predicted_us", entry->predicted_us);
    kkt_json_add_string(point, "provenance", kkt_entry_provenance(entry));
    if (entry->limiter != NULL)
        kkt_json_add_string(point, "limiter", entry->limiter);
}

static void add_end_to_end(kkt_json *point, const kkt_curve_run *run) {
    kkt_json *object = kkt_json_add_object(point, "end_to_end_us");
    kkt_json_add_real(object, "median", run->time_us);
    kkt_json_add_real(object, "low", run->low_us);
    kkt_json_add_real(object, "high", run->high_us);
    kkt_json_add_int(object, "samples", run->samples);
    kkt_json_add_string(object, "launch", kkt_launch_order_name(run->order));
    if (run->noisy)
        kkt_json_add_bool(object, "noisy", true);
    add_known_real(object, "rel_fro", run->rel_fro);
    add_known_real(object, "tolerance", run->tolerance);
    if (run->disturbed != NULL)
        kkt_json_add_string(object, "disturbed", run->disturbed);
}

static void add_pipeline_point(kkt_json *curve, const kkt_curve_point *point, size_t members) {
    kkt_json *object = kkt_json_add_object(curve, NULL);
    kkt_json_add_int(object, "chunk", point->chunk);
    add_known_real(object, "time_us", point->time_us);
    add_known_real(object, "predicted_us", point->predicted_us);
    kkt_json_add_string(object, "provenance", kkt_curve_provenance(point));
    if (point->stale_reason != NULL)
        kkt_json_add_string(object, "stale_reason", point->stale_reason);
    if (point->limiter != NULL)
        kkt_json_add_string(object, "limiter", point->limiter);
    if (point->form[0] != '\0')
        kkt_json_add_string(object, "form", point->form);
    add_known_real(object, "members_us", point->members_us);
    if (point->run != NULL)
        add_end_to_end(object, point->run);
    kkt_json *array = kkt_json_add_array(object, "members");
    for (size_t i = 0; i < members; i++) {
        const kkt_entry *entry = point->members[i];
        kkt_json *member = kkt_json_add_object(array, NULL);
        kkt_json_add_string(member, "kernel", entry->kernel);
        kkt_json_add_string(member, "style", entry->style);
        add_pairs(kkt_json_add_object(member, "config"), entry->config);
        kkt_json_add_string(member, "provenance", kkt_entry_provenance(entry));
        add_known_real(member, "time_us", entry->time_us);
        add_known_real(member, "predicted_us", entry->predicted_us);
        if (entry->limiter != NULL)
            kkt_json_add_string(member, "limiter", entry->limiter);
    }
}

void kkt_curve_add_json(const kkt_curve *curve, struct kkt_json *parent, const char *key) {
    kkt_arena *arena = kkt_arena_open();
    kkt_json *choice = kkt_json_add_object(parent, key);
    kkt_json_add_string(choice, "pipeline", curve->pipeline->name);
    add_pairs(kkt_json_add_object(choice, "problem"), curve->problem);
    kkt_json_add_int(choice, "best", kkt_curve_chunk(curve));
    kkt_json *points = kkt_json_add_array(choice, "curve");
    for (size_t i = 0; i < curve->count; i++)
        add_pipeline_point(points, &curve->points[i], curve->member_count);
    kkt_json_add_string(choice, "why", kkt_curve_why(curve, arena));
    kkt_arena_close(arena);
}

/* The C curve of one kernel and problem: `first` is its first entry in the view. */
static void add_choice(const kkt_view *view, const kkt_entry *first, kkt_json *choices) {
    const kkt_entry *best = NULL, *standing;
    standing = kkt_view_standing(view, first->kernel, first->problem, 0);
    kkt_json *choice = kkt_json_add_object(choices, NULL);
    kkt_json_add_string(choice, "pipeline", first->kernel);
    add_pairs(kkt_json_add_object(choice, "problem"), first->problem);
    kkt_json_add_int(choice, "best", standing->chunk);
    kkt_json *curve = kkt_json_add_array(choice, "curve");
    int64_t last = 0;
    for (;;) { /* ascending chunk, the best style of each */
        const kkt_entry *next = NULL;
        for (size_t i = 0; i < view->entry_count; i++) {
            const kkt_entry *entry = &view->entries[i];
            if (strcmp(entry->kernel, first->kernel) != 0 ||
                strcmp(entry->problem, first->problem) != 0 || entry->chunk <= last)
                continue;
            if (next == NULL || entry->chunk < next->chunk ||
                (entry->chunk == next->chunk && kkt_entry_compare(entry, next) < 0))
                next = entry;
        }
        if (next == NULL)
            break;
        add_curve_point(curve, next);
        last = next->chunk;
        if (next->best_of_problem)
            best = next;
    }
    kkt_text why = {0};
    const kkt_curve *chosen = kkt_view_chunk(view, first->kernel, first->problem)->curve;
    if (chosen != NULL)
        kkt_text_printf(&why,
                        "%s is one part of a pipeline that shares the chunk size: %s is fastest at "
                        "C = %lld",
                        first->kernel, chosen->pipeline->name, (long long)chosen->best->chunk);
    else
        kkt_text_printf(
            &why,
            "%s is one part of a pipeline that shares the chunk size, so its own time does "
            "not choose it: C = %lld stands until a whole pipeline is timed at several C",
            first->kernel, (long long)standing->chunk);
    if (best != NULL && isfinite(curve_time(best)))
        kkt_text_printf(&why, "; alone it is fastest at C = %lld (%.4g us, %s)",
                        (long long)best->chunk, curve_time(best), kkt_entry_provenance(best));
    kkt_text_add(&why, ".");
    kkt_json_add_string(choice, "why", kkt_text_get(&why));
    kkt_text_free(&why);
}

static bool first_of_problem(const kkt_view *view, size_t index) {
    for (size_t i = 0; i < index; i++)
        if (strcmp(view->entries[i].kernel, view->entries[index].kernel) == 0 &&
            strcmp(view->entries[i].problem, view->entries[index].problem) == 0)
            return false;
    return true;
}

static kkt_status render(const kkt_view *view, kkt_text *out, kkt_error *err) {
    (void)err;
    kkt_json *root = kkt_json_object();
    kkt_json_add_string(root, "schema", "kkttune.config/1");
    kkt_json *tool = kkt_json_add_object(root, "tool");
    kkt_json_add_string(tool, "name", "kkttune");
    kkt_json_add_string(tool, "version", KKT_VERSION);
    kkt_json_add_string(root, "arch", view->arch->name);
    kkt_json *device = kkt_json_add_object(root, "device");
    kkt_json_add_string(device, "name", view->device->full_name);
    kkt_json_add_string(device, "id", view->device->name);
    kkt_json_add_int(device, "sm_count", (int64_t)view->device->sm_count.value);
    if (view->objective != KKT_OBJECTIVE_TIME)
        kkt_json_add_string(root, "objective", kkt_objective_name(view->objective));
    kkt_json *entries = kkt_json_add_array(root, "entries");
    for (size_t i = 0; i < view->entry_count; i++)
        if (!view->entries[i].model_only)
            kkt_entry_add_json(&view->entries[i], entries, NULL);
    kkt_json *choices = kkt_json_add_array(root, "chunk_choice");
    for (size_t i = 0; i < view->entry_count; i++)
        if (view->entries[i].chunk > 0 && !view->entries[i].model_only && first_of_problem(view, i))
            add_choice(view, &view->entries[i], choices);
    for (size_t i = 0; i < view->curve_count; i++)
        if (view->curves[i].device_code && view->curves[i].count > 0)
            kkt_curve_add_json(&view->curves[i], choices, NULL);
    kkt_json *pareto = view->pareto != NULL ? kkt_json_add_array(root, "pareto") : NULL;
    for (size_t i = 0; pareto != NULL && i < view->pareto_count; i++)
        kkt_entry_add_json(view->pareto[i], pareto, NULL);
    kkt_baselines_add_json(view, root, "baselines");
    char *text = kkt_json_print(root, true);
    kkt_text_add(out, text);
    kkt_text_add(out, "\n");
    free(text);
    kkt_json_close(root);
    return KKT_OK;
}

const kkt_report_type kkt_report_json = {
    .name = "json",
    .summary = "best configurations, schema kkttune.config/1",
    .file_format = "kkttune_%s.json",
    .render = render,
};
