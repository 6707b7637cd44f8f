#include "cli/run_result.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/command.h"
#include "cli/header_print.h"
#include "cli/pipeline_print.h"
#include "cli/stale_print.h"
#include "reports/baseline.h"
#include "reports/curve.h"
#include "reports/report.h"

/* A database holds more than a run is about. */
static bool is_shown(const kkt_pipeline *pipeline, const char *kernel) {
    return !pipeline || kkt_pipeline_has(pipeline, kernel);
}

/* ---- the best of each problem ---- */

/* Walks through the best entries, of a pipeline those of its members: those of the problem that was
 * asked for first. */
typedef struct best_rows {
    const kkt_view *view;
    const kkt_pipeline *pipeline; /* NULL: of all kernels */
    const char *asked;            /* NULL: no problem was named */
    const kkt_entry **entries;    /* by kernel and problem */
    size_t count;
    bool others;
    size_t at;
} best_rows;

static int by_problem(const void *a, const void *b) {
    return kkt_entry_compare_problem(*(const kkt_entry *const *)a, *(const kkt_entry *const *)b);
}

static best_rows best_begin(const kkt_run_result *r) {
    best_rows rows = {.view = r->view, .pipeline = r->options->pipeline, .others = true};
    const kkt_kernel *kernel = r->options->kernel;
    if (kernel && r->options->problem) {
        kkt_values values;
        kkt_kernel_problem_parse(kernel, r->options->problem, &values, NULL);
        rows.asked = kkt_params_text(r->arena, &kernel->problem, &values);
        rows.others = false;
    }
    rows.entries = kkt_arena_array(r->arena, r->view->entry_count + 1, sizeof *rows.entries);
    for (size_t i = 0; i < r->view->entry_count; i++) {
        const kkt_entry *e = &r->view->entries[i];
        if (e->best_of_problem && is_shown(rows.pipeline, e->kernel)) {
            rows.entries[rows.count++] = e;
        }
    }
    qsort(rows.entries, rows.count, sizeof *rows.entries, by_problem);
    return rows;
}

static const kkt_entry *best_next(best_rows *rows) {
    for (;;) {
        while (rows->at < rows->count) {
            const kkt_entry *e = rows->entries[rows->at++];
            bool own = rows->asked && strcmp(e->problem, rows->asked) == 0;
            if (own == !rows->others) {
                return e;
            }
        }
        if (rows->others) {
            return NULL;
        }
        rows->others = true;
        rows->at = 0;
    }
}

/* A canonical text as a person would type it: without what is the default anyway. */
static void short_cell(kkt_table *out, const kkt_param_table *table, const char *canonical) {
    kkt_values values;
    kkt_text text = {0};
    kkt_params_defaults(table, &values);
    if (kkt_params_parse(table, canonical, &values, NULL, NULL) == KKT_OK) {
        kkt_params_format_short(table, &values, &text);
    } else {
        kkt_text_add(&text, canonical);
    }
    kkt_table_cell(out, "%s", kkt_text_get(&text));
    kkt_text_free(&text);
}

/* Beside the time: what the choice was made by, or what was expected. */
static void cell_figure(kkt_table *out, kkt_objective objective, const kkt_entry *e) {
    double cost = kkt_objective_cost(objective, e->predicted_us, e->energy_mj, e->rel_fro);
    if (!isfinite(cost)) {
        kkt_table_cell(out, "-");
    } else if (objective == KKT_OBJECTIVE_ERROR) {
        kkt_table_cell(out, "%.3g", cost);
    } else {
        kkt_table_cell(out, "%.1f", cost);
    }
}

static void cell_chunk(kkt_table *out, const kkt_entry *e) {
    if (e && e->chunk > 0) {
        kkt_table_cell(out, "%lld", (long long)e->chunk);
    } else {
        kkt_table_cell(out, "-");
    }
}

static void print_best(const kkt_run_result *r) {
    static const char *const figures[] = {[KKT_OBJECTIVE_TIME] = "predicted us",
                                          [KKT_OBJECTIVE_ENERGY] = "energy mJ",
                                          [KKT_OBJECTIVE_ERROR] = "relative error"};
    const char *const headings[] = {"kernel",
                                    "problem",
                                    "C",
                                    "exported C",
                                    "time us",
                                    "ties",
                                    figures[r->view->objective],
                                    "provenance",
                                    "style",
                                    "configuration (what is not the default)"};
    kkt_table *table = kkt_table_open(sizeof headings / sizeof *headings, headings);
    const kkt_entry *e;
    best_rows rows = best_begin(r);
    while ((e = best_next(&rows)) != NULL) {
        const kkt_kernel *kernel = NULL;
        const kkt_style *style = kkt_style_find(e->style);
        if (!style || kkt_kernel_parse(e->kernel, &kernel, NULL) != KKT_OK) {
            continue;
        }
        kkt_table_cell(table, "%s", e->kernel);
        short_cell(table, &kernel->problem, e->problem);
        const kkt_entry *taken =
            e->chunk > 0 ? kkt_view_standing(r->view, e->kernel, e->problem, 0) : NULL;
        cell_chunk(table, e);
        cell_chunk(table, taken);
        if (isfinite(e->time_us)) {
            kkt_table_cell(table, "%.1f", e->time_us);
        } else {
            kkt_table_cell(table, "-");
        }
        kkt_table_cell(table, "%zu", e->tie_count);
        cell_figure(table, r->view->objective, e);
        kkt_table_cell(table, "%s", kkt_entry_shown(e));
        kkt_table_cell(table, "%s", e->style);
        short_cell(table, &kkt_kernel_variant(kernel, style->id)->params, e->config);
    }
    kkt_table_print(table, stdout);
    kkt_table_close(table);
}

/* What is exported of a kernel is not the row above where another chunk size is the faster one by
 * itself: said for the first problem, which the header's macros are of. */
static void print_macros(const kkt_view *view, const kkt_pipeline *pipeline) {
    const char *kernel = NULL;
    for (size_t i = 0; i < view->entry_count; i++) {
        const kkt_entry *first = &view->entries[i];
        if (first->model_only || !is_shown(pipeline, first->kernel) ||
            (kernel && strcmp(kernel, first->kernel) == 0)) {
            continue;
        }
        kernel = first->kernel;
        const kkt_entry *taken = kkt_view_standing(view, kernel, first->problem, 0);
        if (!taken || taken->best_of_problem) {
            continue;
        }
        bool timed = isfinite(taken->time_us);
        const kkt_curve *curve = kkt_view_chunk(view, kernel, first->problem)->curve;
        printf("%s: exported at C = %lld (%.1f us%s on the first problem), ", kernel,
               (long long)taken->chunk, timed ? taken->time_us : taken->predicted_us,
               timed ? "" : " predicted");
        if (curve) {
            printf("at which the whole of %s is fastest; the header's table has every C\n",
                   curve->pipeline->name);
        } else {
            printf("the default, for no pipeline with it was timed there at several C; the "
                   "header's table has every C\n");
        }
    }
}

/* The best of what was timed is not the best there is where a style was left out. */
static void print_untimed(const kkt_run_result *r) {
    const kkt_entry *e;
    best_rows rows = best_begin(r);
    while ((e = best_next(&rows)) != NULL) {
        const kkt_entry *untimed = kkt_view_untimed(r->view, e);
        const kkt_kernel *kernel = NULL;
        kkt_values values;
        kkt_text problem = {0};
        if (!untimed || kkt_kernel_parse(e->kernel, &kernel, NULL) != KKT_OK ||
            kkt_kernel_problem_parse(kernel, e->problem, &values, NULL) != KKT_OK) {
            continue;
        }
        kkt_params_format_short(&kernel->problem, &values, &problem);
        printf("%s %s: nothing of style %s was timed, which is predicted to take %.1f us",
               e->kernel, kkt_text_get(&problem), untimed->style, untimed->predicted_us);
        if (untimed->chunk > 0) {
            printf(" at C = %lld", (long long)untimed->chunk);
        }
        printf(" (%s: %.1f us)\n", e->style, e->time_us);
        kkt_text_free(&problem);
    }
}

/* What libraries take for the same, at the chunk size that stands for its problem. */
static void print_baselines(const kkt_run_result *r) {
    static const char *const headings[] = {"beside a library", "problem",     "C",
                                           "library us",       "of the best", "call"};
    kkt_table *table = NULL;
    for (size_t i = 0; i < r->view->baseline_count; i++) {
        const kkt_baseline *row = &r->view->baselines[i];
        const kkt_kernel *kernel = NULL;
        const kkt_standing *standing =
            kkt_view_chunk(r->view, row->entry.kernel, row->entry.problem);
        if (!is_shown(r->options->pipeline, row->entry.kernel) ||
            (row->entry.chunk > 0 && row->entry.chunk != standing->chunk) ||
            kkt_kernel_parse(row->entry.kernel, &kernel, NULL) != KKT_OK) {
            continue;
        }
        if (!table) {
            table = kkt_table_open(sizeof headings / sizeof *headings, headings);
        }
        kkt_table_cell(table, "%s", row->entry.kernel);
        short_cell(table, &kernel->problem, row->entry.problem);
        cell_chunk(table, &row->entry);
        kkt_table_cell(table, "%.1f", row->entry.time_us);
        if (row->tuned) {
            kkt_table_cell(table, "%.2fx", row->ratio);
        } else {
            kkt_table_cell(table, "-");
        }
        kkt_table_cell(table, "%s", kkt_baseline_call(&row->entry, r->arena));
    }
    if (table) {
        kkt_table_print(table, stdout);
        kkt_table_close(table);
    }
}

static void add_counts(kkt_json *root, const kkt_session_counts *c) {
    const struct {
        const char *name;
        int64_t value;
    } rows[] = {
        {"enumerated", c->enumerated},
        {"rejected", c->rejected},
        {"compiled", c->compiled},
        {"build_failed", c->build_failed},
        {"verified", c->verified},
        {"wrong_result", c->wrong_result},
        {"racy", c->racy},
        {"launch_failed", c->launch_failed},
        {"timed_out", c->timed_out},
        {"crashed", c->crashed},
        {"noisy", c->noisy},
        {"measured", c->measured},
        {"replayed", c->replayed},
        {"reused", c->reused},
        {"quarantined", c->quarantined},
        {"counted", c->counted},
        {"disturbed", c->disturbed},
        {"pipelines", c->pipelines},
    };
    kkt_json *counts = kkt_json_add_object(root, "candidates");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kkt_json_add_int(counts, rows[i].name, rows[i].value);
    }
}

/* Old times alone stand behind a tier that says measured or replayed: why. */
static void print_staleness(const kkt_view *view) {
    const char *why = NULL;
    for (size_t i = 0; i < view->row_count; i++) {
        const kkt_entry *row = &view->rows[i];
        if (kkt_entry_measured(row) && row->stale_reason == NULL) {
            return;
        }
        if (kkt_entry_measured(row) && why == NULL) {
            why = row->stale_reason;
        }
    }
    if (why != NULL) {
        printf(", all of it stale (%s)", why);
    }
}

void kkt_run_result_print_json(const kkt_run_result *r) {
    kkt_json *root = kkt_json_object();
    kkt_json_add_string(root, "schema", "kkttune.run/1");
    kkt_json_add_string(root, "arch", r->options->arch->name);
    kkt_json_add_string(root, "device", r->options->device->full_name);
    kkt_json_add_string(root, "device_id", r->options->device->name);
    kkt_json_add_string(root, "tier", kkt_tier_name(r->summary->tier));
    add_counts(root, &r->summary->counts);
    kkt_json_add_int(root, "stale_times",
                     (int64_t)kkt_stale_times(
                         r->view, r->options->kernel != NULL ? r->options->kernel->name : NULL,
                         r->options->pipeline, NULL));
    kkt_json *best = kkt_json_add_array(root, "best");
    const kkt_entry *entry;
    best_rows rows = best_begin(r);
    while ((entry = best_next(&rows)) != NULL) {
        kkt_entry_add_json(entry, best, NULL);
    }
    kkt_baselines_add_json(r->view, root, "baselines");
    kkt_pipelines_add_json(r->view, r->options->pipeline, root);
    kkt_json_add_root(root, "files", r->files);
    kkt_json_add_real(root, "seconds", r->summary->seconds);
    kkt_json_add_bool(root, "interrupted", r->summary->interrupted);
    if (r->summary->counters_note[0] != '\0') {
        kkt_json_add_string(root, "counters_note", r->summary->counters_note);
    }
    kkt_print_json(root);
}

void kkt_run_result_print(const kkt_run_result *r) {
    const kkt_session_counts *c = &r->summary->counts;
    print_best(r);
    print_macros(r->view, r->options->pipeline);
    kkt_header_print_left_out(r->view, r->options->pipeline, stdout);
    print_untimed(r);
    print_baselines(r);
    if (!r->options->kernel) {
        kkt_pipelines_print(r->view, r->options->pipeline, r->options->problem);
    }
    kkt_stale_print(r->view, r->options->kernel != NULL ? r->options->kernel->name : NULL,
                    r->options->pipeline, stdout);
    const bool made_up = r->view->made_up && r->summary->tier == KKT_TIER_MEASURED;
    printf("tier %s", made_up ? "fake" : kkt_tier_name(r->summary->tier));
    if (r->summary->tier == KKT_TIER_MEASURED || r->summary->tier == KKT_TIER_REPLAYED) {
        print_staleness(r->view);
    }
    printf(": %lld configurations, %lld rejected, %lld compiled, %lld %s, %lld "
           "replayed, %lld reused in %.1f s\n",
           (long long)c->enumerated, (long long)c->rejected, (long long)c->compiled,
           (long long)c->measured, made_up ? "made up" : "measured", (long long)c->replayed,
           (long long)c->reused, r->summary->seconds);
    int64_t failed = c->build_failed + c->wrong_result + c->racy + c->launch_failed + c->timed_out +
                     c->crashed + c->noisy;
    if (failed > 0) {
        printf("%lld candidates failed: %lld build, %lld wrong, %lld racy, %lld launch, %lld "
               "timed out, %lld crashed, %lld noisy; the report says which and why\n",
               (long long)failed, (long long)c->build_failed, (long long)c->wrong_result,
               (long long)c->racy, (long long)c->launch_failed, (long long)c->timed_out,
               (long long)c->crashed, (long long)c->noisy);
    }
    if (c->quarantined > 0) {
        printf("%lld of the reused candidates failed in an earlier run and were not tried again; "
               "--retry does\n",
               (long long)c->quarantined);
    }
    if (c->pipelines > 0) {
        printf("%lld whole pipelines were timed end to end\n", (long long)c->pipelines);
    }
    if (c->disturbed > 0) {
        printf("%lld timings were disturbed by something else on the GPU; their rows say by what\n",
               (long long)c->disturbed);
    }
    for (const kkt_json *file = kkt_json_first(r->files); file; file = kkt_json_next(file)) {
        printf("%s\n", kkt_json_as_string(file));
    }
}
