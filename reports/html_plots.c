#include "reports/html_plots.h"

#include <stdlib.h>
#include <string.h>

#include "reports/html_files.h"

void kkt_html_plots_open(kkt_html_plots *plots) {
    *plots = (kkt_html_plots){.data = kkt_json_array()};
}

static void add_reals(kkt_json *plot, const char *key, const double *values, int count) {
    kkt_json *array = kkt_json_add_array(plot, key);
    for (int i = 0; i < count; i++)
        kkt_json_add_real(array, NULL, values[i]);
}

static void add_curve(kkt_json *plot, const kkt_chart *chart) {
    kkt_json *chunks = kkt_json_add_array(plot, "chunks");
    for (int i = 0; i < chart->count; i++)
        kkt_json_add_int(chunks, NULL, chart->x[i]);
    add_reals(plot, "measured", chart->measured, chart->count);
    add_reals(plot, "low", chart->low, chart->count);
    add_reals(plot, "high", chart->high, chart->count);
    add_reals(plot, "predicted", chart->predicted, chart->count);
    add_reals(plot, "bound", chart->bound, chart->count);
}

static void add_scatter(kkt_json *plot, const kkt_scatter *scatter) {
    kkt_json *all = kkt_json_add_array(plot, "series");
    kkt_json *points = NULL;
    for (size_t i = 0; i < scatter->count; i++) {
        const kkt_point *point = &scatter->points[i];
        if (i == 0 || point->chunk != scatter->points[i - 1].chunk) {
            kkt_json *series = kkt_json_add_object(all, NULL);
            kkt_json_add_int(series, "chunk", point->chunk);
            points = kkt_json_add_array(series, "points");
        }
        kkt_json *object = kkt_json_add_object(points, NULL);
        kkt_json_add_real(object, "x", point->measured);
        kkt_json_add_real(object, "y", point->predicted);
        kkt_json_add_string(object, "config", point->config);
    }
}

void kkt_html_plots_add(kkt_html_plots *plots, const kkt_block *block, kkt_text *out) {
    bool curve = block->kind == KKT_BLOCK_CHART;
    const char *kind = curve ? "curve" : "scatter";
    const char *title = curve ? block->chart.title : block->scatter.title;
    kkt_json *plot = kkt_json_add_object(plots->data, NULL);
    kkt_json_add_string(plot, "kind", kind);
    if (curve)
        add_curve(plot, &block->chart);
    else
        add_scatter(plot, &block->scatter);
    kkt_text_printf(out,
                    "<figure class=\"%s\"><div class=\"canvas\"><canvas id=\"plot-%d\" "
                    "role=\"img\" aria-label=\"",
                    kind, plots->count++);
    kkt_text_add_html(out, title);
    kkt_text_add(out, "\">The tables hold these numbers.</canvas></div>\n<figcaption>");
    kkt_text_add_html(out, title);
    kkt_text_add(out, "</figcaption></figure>\n");
}

/* JSON has '<' in strings alone, where an escape may stand for it: neither the end of the script
 * element nor the start of a comment can come out of the data. */
static void add_data(const kkt_json *data, kkt_text *out) {
    char *text = kkt_json_print(data, false);
    for (const char *at = text; *at != '\0';) {
        size_t plain = strcspn(at, "<>&");
        kkt_text_add_bytes(out, at, plain);
        at += plain;
        if (*at != '\0')
            kkt_text_printf(out, "\\u%04x", (unsigned)(unsigned char)*at++);
    }
    free(text);
}

static void add_script(const char *name, kkt_text *out) {
    for (const kkt_embedded_file *file = kkt_html_files; file->path != NULL; file++)
        if (strcmp(file->path, name) == 0) {
            kkt_text_add(out, "<script>\n");
            kkt_text_add_bytes(out, file->bytes, file->length);
            kkt_text_add(out, "</script>\n");
        }
}

void kkt_html_plots_close(kkt_html_plots *plots, kkt_text *out) {
    if (plots->count > 0) {
        kkt_text_add(out, "<script type=\"application/json\" id=\"plot-data\">");
        add_data(plots->data, out);
        kkt_text_add(out, "</script>\n");
        add_script("chart.js", out);
        add_script("plots.js", out);
    }
    kkt_json_close(plots->data);
    *plots = (kkt_html_plots){0};
}
