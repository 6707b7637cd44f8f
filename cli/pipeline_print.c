#include "cli/pipeline_print.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void cell_us(kkt_table *table, double us) {
    if (isfinite(us)) {
        kkt_table_cell(table, "%.1f", us);
    } else {
        kkt_table_cell(table, "-");
    }
}

/* The problem as a person would type it. */
static void short_problem(const kkt_curve *curve, kkt_text *out) {
    const kkt_kernel *whole = NULL;
    kkt_values values;
    if (kkt_kernel_parse(curve->pipeline->whole, &whole, NULL) == KKT_OK) {
        kkt_params_defaults(&whole->problem, &values);
        kkt_params_parse(&whole->problem, curve->problem, &values, NULL, NULL);
        kkt_params_format_short(&whole->problem, &values, out);
    }
}

static void add_styles(const kkt_curve *curve, const kkt_curve_point *point, kkt_text *out) {
    for (size_t i = 0; i < curve->member_count; i++) {
        kkt_text_printf(out, "%s%s", i > 0 ? " + " : "", point->members[i]->style);
    }
}

void kkt_curve_print(const kkt_curve *curve) {
    static const char *const headings[] = {
        "C",       "total us",   "launch", "sum of kernels us", "predicted us", "form",
        "limiter", "provenance", "styles"};
    kkt_table *table = kkt_table_open(sizeof headings / sizeof *headings, headings);
    kkt_text text = {0};
    short_problem(curve, &text);
    printf("%s, %s\n", curve->pipeline->name, kkt_text_get(&text));
    for (size_t i = 0; i < curve->count; i++) {
        const kkt_curve_point *point = &curve->points[i];
        kkt_table_cell(table, "%lld", (long long)point->chunk);
        cell_us(table, point->time_us);
        kkt_table_cell(table, "%s", point->run ? kkt_launch_order_name(point->run->order) : "-");
        cell_us(table, point->members_us);
        cell_us(table, point->predicted_us);
        kkt_table_cell(table, "%s", point->form[0] != '\0' ? point->form : "-");
        kkt_table_cell(table, "%s", point->limiter ? point->limiter : "-");
        kkt_table_cell(table, "%s", kkt_curve_shown(point));
        kkt_text_free(&text);
        add_styles(curve, point, &text);
        kkt_table_cell(table, "%s", kkt_text_get(&text));
    }
    kkt_table_print(table, stdout);
    kkt_table_close(table);
    kkt_text_free(&text);
    kkt_arena *arena = kkt_arena_open();
    printf("%s\n", kkt_curve_why(curve, arena));
    kkt_arena_close(arena);
}

static bool wanted(const kkt_curve *curve, const kkt_pipeline *only) {
    return curve->device_code && curve->count > 0 && (!only || curve->pipeline == only);
}

/* "16: 310.2, 32: 250.0, 64: 201.7" */
static void cell_totals(kkt_table *table, const kkt_curve *curve) {
    kkt_text text = {0};
    for (size_t i = 0; i < curve->count; i++) {
        const kkt_curve_point *point = &curve->points[i];
        double us = kkt_curve_figure(curve, point);
        if (isfinite(us)) {
            kkt_text_printf(&text, "%s%lld: %.1f", text.length > 0 ? ", " : "",
                            (long long)point->chunk, us);
        }
    }
    kkt_table_cell(table, "%s", text.length > 0 ? kkt_text_get(&text) : "-");
    kkt_text_free(&text);
}

/* The point of the chunk size that a curve stands for; NULL: it has none. */
static const kkt_curve_point *standing_point(const kkt_curve *curve) {
    for (size_t i = 0; i < curve->count && !curve->best; i++) {
        if (curve->points[i].chunk == kkt_curve_chunk(curve)) {
            return &curve->points[i];
        }
    }
    return curve->best;
}

/* Why it is that chunk size: a single one that has a time was not chosen by it. */
static const char *why_chunk(const kkt_curve *curve) {
    return !curve->best          ? "default: measured at one C alone"
           : curve->measured < 2 ? "there is no other"
                                 : "fastest";
}

static void print_rows(const kkt_view *view) {
    static const char *const headings[] = {"pipeline",   "problem",      "C", "why C", "total us",
                                           "provenance", "total us by C"};
    kkt_table *table = kkt_table_open(sizeof headings / sizeof *headings, headings);
    size_t rows = 0;
    for (size_t i = 0; i < view->curve_count; i++) {
        const kkt_curve *curve = &view->curves[i];
        kkt_text problem = {0};
        if (!wanted(curve, NULL) || curve->measured == 0) {
            continue;
        }
        const kkt_curve_point *point = standing_point(curve);
        double total = point ? kkt_curve_figure(curve, point) : (double)NAN;
        rows++;
        short_problem(curve, &problem);
        kkt_table_cell(table, "%s", curve->pipeline->name);
        kkt_table_cell(table, "%s", kkt_text_get(&problem));
        kkt_table_cell(table, "%lld", (long long)kkt_curve_chunk(curve));
        kkt_table_cell(table, "%s", why_chunk(curve));
        cell_us(table, total);
        kkt_table_cell(table, "%s", isfinite(total) ? kkt_curve_shown(point) : "-");
        cell_totals(table, curve);
        kkt_text_free(&problem);
    }
    if (rows > 0) {
        kkt_table_print(table, stdout);
    }
    kkt_table_close(table);
}

/* Whether a curve is of the problem; a text that is none has been refused long before. */
static bool is_of(const kkt_curve *curve, const char *problem) {
    const kkt_kernel *whole = NULL;
    kkt_values values;
    kkt_text text = {0};
    if (!problem || kkt_kernel_parse(curve->pipeline->whole, &whole, NULL) != KKT_OK) {
        return true;
    }
    kkt_params_defaults(&whole->problem, &values);
    kkt_params_parse(&whole->problem, problem, &values, NULL, NULL);
    kkt_params_format(&whole->problem, &values, &text);
    bool same = strcmp(kkt_text_get(&text), curve->problem) == 0;
    kkt_text_free(&text);
    return same;
}

bool kkt_pipelines_measured(const kkt_view *view, const kkt_pipeline *pipeline,
                            const char *problem) {
    for (size_t i = 0; i < view->curve_count; i++) {
        const kkt_curve *curve = &view->curves[i];
        for (size_t c = 0; c < curve->count && wanted(curve, pipeline); c++) {
            const kkt_curve_point *point = &curve->points[c];
            if (isfinite(point->time_us) && !point->stale_reason && is_of(curve, problem)) {
                return true;
            }
        }
    }
    return false;
}

void kkt_pipelines_print(const kkt_view *view, const kkt_pipeline *only, const char *problem) {
    if (!only) {
        print_rows(view);
        return;
    }
    for (size_t i = 0; i < view->curve_count; i++) {
        if (wanted(&view->curves[i], only) && is_of(&view->curves[i], problem)) {
            kkt_curve_print(&view->curves[i]);
        }
    }
}

void kkt_pipelines_add_json(const kkt_view *view, const kkt_pipeline *only, kkt_json *root) {
    kkt_json *choices = kkt_json_add_array(root, "chunk_choice");
    for (size_t i = 0; i < view->curve_count; i++) {
        if (wanted(&view->curves[i], only)) {
            kkt_curve_add_json(&view->curves[i], choices, NULL);
        }
    }
}
