/* One file that needs no network: style, library, script and data of the plots are inside, and the
 * tables say everything without them. */
#include <string.h>

#include "reports/content.h"
#include "reports/export/exporters.h"
#include "reports/html_files.h"
#include "reports/html_plots.h"

/* The policy lets nothing be fetched, whatever a name from a database might ask for. */
static const char *const head[] = {
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n",
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; ",
    "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n",
    "<noscript><style>figure { display: none; }</style></noscript>\n<style>\n",
};

static const char no_script[] =
    "<noscript><p>The plots need JavaScript. The tables hold their numbers.</p></noscript>\n";

static void add_style(kkt_text *out) {
    for (const kkt_embedded_file *file = kkt_html_files; file->path != NULL; file++)
        if (strcmp(file->path, "style.css") == 0)
            kkt_text_add_bytes(out, file->bytes, file->length);
}

/* "k=v,k=v" is one long word to a browser: it may be broken behind its commas. */
static void add_breakable(const char *text, kkt_arena *arena, kkt_text *out) {
    char *rest = kkt_arena_strdup(arena, text);
    for (char *comma; (comma = strchr(rest, ',')) != NULL; rest = comma + 1) {
        *comma = '\0';
        kkt_text_add_html(out, rest);
        kkt_text_add(out, comma[1] == ' ' ? "," : ",<wbr>");
    }
    kkt_text_add_html(out, rest);
}

static void add_table(const kkt_block *block, kkt_arena *arena, kkt_text *out) {
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
            const char *cell = row->cells[c] != NULL ? row->cells[c] : "";
            if (block->numeric[c])
                kkt_text_add_html(out, cell);
            else
                add_breakable(cell, arena, out);
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

static void add_item(const kkt_block *block, kkt_text *out) {
    if (block->more == NULL) {
        add_element("li", block->text, out);
        return;
    }
    kkt_text_add(out, "<li class=\"folded\"><details>");
    add_element("summary", block->text, out);
    kkt_text_add_html(out, block->more);
    kkt_text_add(out, "</details></li>\n");
}

static bool is_plot(const kkt_block *block) {
    return block != NULL && (block->kind == KKT_BLOCK_CHART || block->kind == KKT_BLOCK_SCATTER);
}

/* Neighbouring items are one list, neighbouring plots stand side by side. */
static void add_block(const kkt_block *before, const kkt_block *block, kkt_arena *arena,
                      kkt_html_plots *plots, kkt_text *out) {
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
        if (before == NULL || before->kind != KKT_BLOCK_ITEM)
            kkt_text_add(out, "<ul>\n");
        add_item(block, out);
        if (block->next == NULL || block->next->kind != KKT_BLOCK_ITEM)
            kkt_text_add(out, "</ul>\n");
        break;
    case KKT_BLOCK_TABLE:
        add_table(block, arena, out);
        break;
    case KKT_BLOCK_CHART:
    case KKT_BLOCK_SCATTER:
        if (!is_plot(before))
            kkt_text_add(out, "<div class=\"plots\">\n");
        kkt_html_plots_add(plots, block, out);
        if (!is_plot(block->next))
            kkt_text_add(out, "</div>\n");
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
    add_style(out);
    kkt_text_add(out, "</style>\n");
    add_element("title", document.title, out);
    kkt_text_add(out, "</head>\n<body>\n");
    kkt_text_add(out, no_script);
    kkt_html_plots plots;
    kkt_html_plots_open(&plots);
    const kkt_block *before = NULL;
    for (const kkt_block *block = document.blocks; block != NULL;
         before = block, block = block->next)
        add_block(before, block, arena, &plots, out);
    kkt_html_plots_close(&plots, out);
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
