#include "reports/document.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static const char *format_text(kkt_arena *arena, const char *format, va_list args) KKT_PRINTF(2, 0);

static const char *format_text(kkt_arena *arena, const char *format, va_list args) {
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    char *text = kkt_arena_alloc(arena, (size_t)(length < 0 ? 0 : length) + 1);
    if (length >= 0)
        vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

static kkt_block *add_block(kkt_document *document, kkt_block_kind kind) {
    kkt_block *block = kkt_arena_alloc(document->arena, sizeof *block);
    block->kind = kind;
    if (document->last == NULL)
        document->blocks = block;
    else
        document->last->next = block;
    document->last = block;
    return block;
}

void kkt_document_heading(kkt_document *document, int level, const char *format, ...) {
    va_list args;
    va_start(args, format);
    kkt_block *block = add_block(document, KKT_BLOCK_HEADING);
    block->level = level;
    block->text = format_text(document->arena, format, args);
    va_end(args);
}

void kkt_document_paragraph(kkt_document *document, const char *format, ...) {
    va_list args;
    va_start(args, format);
    add_block(document, KKT_BLOCK_PARAGRAPH)->text = format_text(document->arena, format, args);
    va_end(args);
}

void kkt_document_item(kkt_document *document, const char *format, ...) {
    va_list args;
    va_start(args, format);
    add_block(document, KKT_BLOCK_ITEM)->text = format_text(document->arena, format, args);
    va_end(args);
}

void kkt_document_folded(kkt_document *document, const char *summary, const char *format, ...) {
    va_list args;
    va_start(args, format);
    kkt_block *block = add_block(document, KKT_BLOCK_ITEM);
    block->text = kkt_arena_strdup(document->arena, summary);
    block->more = format_text(document->arena, format, args);
    va_end(args);
}

kkt_block *kkt_document_table(kkt_document *document, const char *caption,
                              const char *const *headings) {
    kkt_block *table = add_block(document, KKT_BLOCK_TABLE);
    table->text = kkt_arena_strdup(document->arena, caption);
    for (; headings[table->columns] != NULL && table->columns < KKT_COLUMNS_MAX; table->columns++) {
        const char *heading = headings[table->columns];
        table->numeric[table->columns] = heading[0] == '#';
        table->headings[table->columns] = heading + (heading[0] == '#');
    }
    return table;
}

kkt_row *kkt_document_row(kkt_document *document, kkt_block *table) {
    kkt_row *row = kkt_arena_alloc(document->arena, sizeof *row);
    if (table->last_row == NULL)
        table->rows = row;
    else
        table->last_row->next = row;
    table->last_row = row;
    return row;
}

void kkt_document_cell(kkt_document *document, kkt_row *row, const char *format, ...) {
    size_t at = 0;
    while (at < KKT_COLUMNS_MAX && row->cells[at] != NULL)
        at++;
    if (at == KKT_COLUMNS_MAX) /* a table of more columns than the type holds */
        abort();
    va_list args;
    va_start(args, format);
    row->cells[at] = format_text(document->arena, format, args);
    va_end(args);
}

kkt_chart *kkt_document_chart(kkt_document *document) {
    return &add_block(document, KKT_BLOCK_CHART)->chart;
}

kkt_scatter *kkt_document_scatter(kkt_document *document) {
    return &add_block(document, KKT_BLOCK_SCATTER)->scatter;
}
