#include "reports/content.h"
#include "reports/export/exporters.h"

static void add_table(const kkt_block *block, kkt_text *out) {
    kkt_text_add(out, "**");
    kkt_text_add_markdown(out, block->text);
    kkt_text_add(out, "**\n\n|");
    for (size_t c = 0; c < block->columns; c++) {
        kkt_text_add(out, " ");
        kkt_text_add_markdown(out, block->headings[c]);
        kkt_text_add(out, " |");
    }
    kkt_text_add(out, "\n|");
    for (size_t c = 0; c < block->columns; c++)
        kkt_text_add(out, block->numeric[c] ? "---:|" : "---|");
    kkt_text_add(out, "\n");
    for (const kkt_row *row = block->rows; row != NULL; row = row->next) {
        kkt_text_add(out, "|");
        for (size_t c = 0; c < block->columns; c++) {
            bool strong = row->strong && c == 0 && row->cells[c] != NULL;
            kkt_text_add(out, strong ? " **" : " ");
            kkt_text_add_markdown(out, row->cells[c] != NULL ? row->cells[c] : "");
            kkt_text_add(out, strong ? "** |" : " |");
        }
        kkt_text_add(out, "\n");
    }
    kkt_text_add(out, "\n");
}

static void add_block(const kkt_block *block, kkt_text *out) {
    switch (block->kind) {
    case KKT_BLOCK_HEADING:
        kkt_text_printf(out, "%.*s ", block->level, "####");
        kkt_text_add_markdown(out, block->text);
        kkt_text_add(out, "\n\n");
        break;
    case KKT_BLOCK_PARAGRAPH:
        kkt_text_add_markdown(out, block->text);
        kkt_text_add(out, "\n\n");
        break;
    case KKT_BLOCK_ITEM:
        kkt_text_add(out, "- ");
        kkt_text_add_markdown(out, block->text);
        if (block->more != NULL) {
            kkt_text_add(out, ": ");
            kkt_text_add_markdown(out, block->more);
        }
        kkt_text_add(out,
                     block->next == NULL || block->next->kind != KKT_BLOCK_ITEM ? "\n\n" : "\n");
        break;
    case KKT_BLOCK_TABLE:
        add_table(block, out);
        break;
    case KKT_BLOCK_CHART: /* the tables hold its numbers */
    case KKT_BLOCK_SCATTER:
        break;
    }
}

void kkt_document_markdown(const kkt_document *document, kkt_text *out) {
    for (const kkt_block *block = document->blocks; block != NULL; block = block->next)
        add_block(block, out);
}

static kkt_status render(const kkt_view *view, kkt_text *out, kkt_error *err) {
    (void)err;
    kkt_arena *arena = kkt_arena_open();
    kkt_document document;
    kkt_content_make(view, arena, &document);
    kkt_document_markdown(&document, out);
    kkt_arena_close(arena);
    return KKT_OK;
}

const kkt_report_type kkt_report_markdown = {
    .name = "markdown",
    .summary = "the report as Markdown",
    .file_format = "report_%s.md",
    .render = render,
};
