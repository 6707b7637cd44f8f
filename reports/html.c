/* One file, no script and no network: plots are inline SVG, so that the page is the same on screen,
 * on paper and in an archive. */
#include <math.h>
#include <stdio.h>

#include "reports/content.h"
#include "reports/export/exporters.h"

static const char *const head[] = {
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n",
    "<meta name=\"color-scheme\" content=\"light dark\">\n",
};

static const char *const style[] = {
    "<style>\n:root { --text: #1c2024; --soft: #60646c; --line: #d9dbe0; --page: #fff; ",
    "--band: #f4f5f7; --strong: #e3efff; --measured: #0b62d6; --predicted: #b4530a; ",
    "--bound: #6f7680; }\n",
    "@media (prefers-color-scheme: dark) { :root { --text: #e8eaed; --soft: #a7adb5; ",
    "--line: #3a3f46; --page: #16181b; --band: #1f2226; --strong: #17304f; --measured: #6aaeff; ",
    "--predicted: #ffa057; --bound: #9aa1aa; } }\n",
    "@media print { :root { --page: #fff; --text: #000; } body { max-width: none; } ",
    "figure, table { break-inside: avoid; } .wide { overflow: visible; } }\n",
    "body { font: 15px/1.55 system-ui, sans-serif; color: var(--text); background: var(--page); ",
    "max-width: 84rem; margin: 2rem auto; padding: 0 1.2rem; }\n",
    "h1 { font-size: 1.7rem; } h2 { margin-top: 2.6rem; padding-bottom: .3rem; ",
    "border-bottom: 2px solid var(--line); } h3 { margin-top: 1.8rem; }\n",
    "p, li { max-width: 60rem; overflow-wrap: anywhere; }\n",
    ".wide { overflow-x: auto; margin: 1rem 0 1.6rem; }\n",
    "table { border-collapse: collapse; font-size: .86rem; font-variant-numeric: tabular-nums; }\n",
    "caption { text-align: left; font-weight: 600; padding: .3rem 0; }\n",
    "th, td { padding: .32rem .6rem; border-bottom: 1px solid var(--line); text-align: left; ",
    "vertical-align: top; } th { background: var(--band); vertical-align: bottom; }\n",
    "td { overflow-wrap: break-word; } .n { text-align: right; white-space: nowrap; ",
    "overflow-wrap: normal; } th.n { white-space: normal; }\n",
    "tr.strong td { background: var(--strong); }\n",
    "figure { margin: 1.2rem 0 .4rem; } svg { max-width: 100%; height: auto; }\n",
    "svg text { fill: var(--text); font: 12px system-ui, sans-serif; } ",
    "svg .soft { fill: var(--soft); }\n",
    ".grid { stroke: var(--line); } .measured { stroke: var(--measured); } ",
    ".predicted { stroke: var(--predicted); stroke-dasharray: 6 4; } ",
    ".bound { stroke: var(--bound); stroke-dasharray: 1 4; }\n",
    "path { fill: none; stroke-width: 2; } circle.measured { fill: var(--measured); } ",
    "circle.predicted { fill: var(--page); stroke-dasharray: none; stroke-width: 2; } ",
    "circle.bound { fill: var(--bound); stroke: none; }\n</style>\n</head>\n<body>\n",
};

enum { WIDTH = 640, HEIGHT = 300, LEFT = 64, RIGHT = 24, TOP = 16, BOTTOM = 64, TICKS = 5 };

typedef struct plot {
    const kkt_chart *chart;
    double top; /* value at the upper edge */
} plot;

static double at_x(const plot *p, int index) {
    double room = WIDTH - LEFT - RIGHT;
    return LEFT + room * ((double)index + 0.5) / p->chart->count;
}

static double at_y(const plot *p, double value) {
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / p->top;
}

/* A round number at or above `value`: 1, 2, 2.5 or 5 times a power of ten for each tick. */
static double round_top(double value) {
    static const double steps[] = {1, 2, 2.5, 5, 10};
    if (!(value > 0))
        return TICKS;
    double scale = pow(10, floor(log10(value / TICKS)));
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        if (steps[i] * scale * TICKS >= value)
            return steps[i] * scale * TICKS;
    return 10 * scale * TICKS;
}

static void add_axes(const plot *p, kkt_text *out) {
    char text[32];
    for (int t = 0; t <= TICKS; t++) {
        double value = p->top * t / TICKS, y = at_y(p, value);
        kkt_text_printf(out, "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>",
                        LEFT, WIDTH - RIGHT, y, y);
        kkt_text_printf(out,
                        "<text class=\"soft\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
                        LEFT - 8, y + 4, t == 0 ? "0" : kkt_content_real(value, text));
    }
    for (int i = 0; i < p->chart->count; i++)
        kkt_text_printf(out,
                        "<text class=\"soft\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">C = "
                        "%lld</text>\n",
                        at_x(p, i), HEIGHT - BOTTOM + 20, (long long)p->chart->x[i]);
    kkt_text_printf(out,
                    "<text class=\"soft\" x=\"14\" y=\"%d\" transform=\"rotate(-90 14 %d)\" "
                    "text-anchor=\"middle\">microseconds</text>\n",
                    (HEIGHT - BOTTOM + TOP) / 2, (HEIGHT - BOTTOM + TOP) / 2);
}

static void add_series(const plot *p, const double *values, const char *name, const char *label,
                       kkt_text *out) {
    bool pen = false;
    char text[32];
    kkt_text_printf(out, "<path class=\"%s\" d=\"", name);
    for (int i = 0; i < p->chart->count; i++) {
        if (isfinite(values[i]))
            kkt_text_printf(out, "%c%.1f %.1f", pen ? 'L' : 'M', at_x(p, i), at_y(p, values[i]));
        pen = isfinite(values[i]) != 0;
    }
    kkt_text_add(out, "\"/>\n");
    for (int i = 0; i < p->chart->count; i++)
        if (isfinite(values[i]))
            kkt_text_printf(
                out,
                "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"><title>C = %lld: %s "
                "us %s</title></circle>\n",
                name, at_x(p, i), at_y(p, values[i]), (long long)p->chart->x[i],
                kkt_content_real(values[i], text), label);
}

static void add_intervals(const plot *p, kkt_text *out) {
    const kkt_chart *chart = p->chart;
    char text[32];
    for (int i = 0; i < chart->count; i++) {
        if (!isfinite(chart->measured[i]))
            continue;
        double x = at_x(p, i), low = at_y(p, chart->low[i]), high = at_y(p, chart->high[i]);
        kkt_text_printf(
            out, "<path class=\"measured\" d=\"M%.1f %.1fV%.1fM%.1f %.1fh12M%.1f %.1fh12\"/>\n", x,
            low, high, x - 6, low, x - 6, high);
        kkt_text_printf(out, "<text x=\"%.1f\" y=\"%.1f\">%s</text>\n", x + 9,
                        at_y(p, chart->measured[i]) - 7,
                        kkt_content_real(chart->measured[i], text));
    }
}

static void add_legend(bool measured, kkt_text *out) {
    static const char *const names[] = {"measured", "predicted", "bound"};
    static const char *const labels[] = {"measured, with interval", "predicted", "lower bound"};
    int x = LEFT;
    for (size_t i = measured ? 0 : 1; i < 3; i++, x += 200) {
        kkt_text_printf(out,
                        "<path class=\"%s\" d=\"M%d %dh28\"/><circle class=\"%s\" cx=\"%d\" "
                        "cy=\"%d\" r=\"4\"/><text x=\"%d\" y=\"%d\">%s</text>\n",
                        names[i], x, HEIGHT - 18, names[i], x + 14, HEIGHT - 18, x + 36,
                        HEIGHT - 14, labels[i]);
    }
}

static void add_chart(const kkt_chart *chart, kkt_text *out) {
    plot p = {chart, 0};
    bool measured = false;
    for (int i = 0; i < chart->count; i++) {
        const double values[] = {chart->high[i], chart->measured[i], chart->predicted[i],
                                 chart->bound[i]};
        for (size_t v = 0; v < 4; v++)
            if (isfinite(values[v]) && values[v] > p.top)
                p.top = values[v];
        measured = measured || isfinite(chart->measured[i]);
    }
    p.top = round_top(p.top * 1.06);
    kkt_text_printf(out,
                    "<figure>\n<svg viewBox=\"0 0 %d %d\" width=\"%d\" role=\"img\" aria-label=\"",
                    WIDTH, HEIGHT, WIDTH);
    kkt_text_add_html(out, chart->title);
    kkt_text_add(out, "\">\n");
    add_axes(&p, out);
    add_series(&p, chart->bound, "bound", "lower bound", out);
    add_series(&p, chart->predicted, "predicted", "predicted", out);
    add_series(&p, chart->measured, "measured", "measured", out);
    add_intervals(&p, out);
    add_legend(measured, out);
    kkt_text_add(out, "</svg>\n<figcaption>");
    kkt_text_add_html(out, chart->title);
    kkt_text_add(out, "</figcaption>\n</figure>\n");
}

static void add_table(const kkt_block *block, kkt_text *out) {
    kkt_text_add(out, "<div class=\"wide\"><table>\n<caption>");
    kkt_text_add_html(out, block->text);
    kkt_text_add(out, "</caption>\n<thead><tr>");
    for (size_t c = 0; c < block->columns; c++) {
        kkt_text_printf(out, "<th scope=\"col\"%s>", block->numeric[c] ? " class=\"n\"" : "");
        kkt_text_add_html(out, block->headings[c]);
        kkt_text_add(out, "</th>");
    }
    kkt_text_add(out, "</tr></thead>\n<tbody>\n");
    for (const kkt_row *row = block->rows; row != NULL; row = row->next) {
        kkt_text_add(out, row->strong ? "<tr class=\"strong\">" : "<tr>");
        for (size_t c = 0; c < block->columns; c++) {
            kkt_text_add(out, block->numeric[c] ? "<td class=\"n\">" : "<td>");
            kkt_text_add_html(out, row->cells[c] != NULL ? row->cells[c] : "");
            kkt_text_add(out, "</td>");
        }
        kkt_text_add(out, "</tr>\n");
    }
    kkt_text_add(out, "</tbody></table></div>\n");
}

static void add_element(const char *name, const char *text, kkt_text *out) {
    kkt_text_printf(out, "<%s>", name);
    kkt_text_add_html(out, text);
    kkt_text_printf(out, "</%s>\n", name);
}

static void add_block(const kkt_block *block, bool first_item, kkt_text *out) {
    char heading[] = "h1";
    switch (block->kind) {
    case KKT_BLOCK_HEADING:
        heading[1] = (char)('0' + block->level);
        add_element(heading, block->text, out);
        break;
    case KKT_BLOCK_PARAGRAPH:
        add_element("p", block->text, out);
        break;
    case KKT_BLOCK_ITEM:
        if (first_item)
            kkt_text_add(out, "<ul>\n");
        add_element("li", block->text, out);
        if (block->next == NULL || block->next->kind != KKT_BLOCK_ITEM)
            kkt_text_add(out, "</ul>\n");
        break;
    case KKT_BLOCK_TABLE:
        add_table(block, out);
        break;
    case KKT_BLOCK_CHART:
        add_chart(&block->chart, out);
        break;
    }
}

static kkt_status render(const kkt_view *view, kkt_text *out, kkt_error *err) {
    (void)err;
    kkt_arena *arena = kkt_arena_open();
    kkt_document document;
    kkt_content_make(view, arena, &document);
    for (size_t i = 0; i < sizeof head / sizeof head[0]; i++)
        kkt_text_add(out, head[i]);
    add_element("title", document.title, out);
    for (size_t i = 0; i < sizeof style / sizeof style[0]; i++)
        kkt_text_add(out, style[i]);
    const kkt_block *before = NULL;
    for (const kkt_block *block = document.blocks; block != NULL;
         before = block, block = block->next)
        add_block(block, before == NULL || before->kind != KKT_BLOCK_ITEM, out);
    kkt_text_add(out, "</body>\n</html>\n");
    kkt_arena_close(arena);
    return KKT_OK;
}

const kkt_report_type kkt_report_html = {
    .name = "html",
    .summary = "the report as one self-contained page with plots",
    .file_format = "report_%s.html",
    .render = render,
};
