/* A report as blocks, before any format: content.c fills it, markdown.c and html.c print it, so
 * that the two never say different things. All text is raw; the printers escape it. */
#ifndef KKT_REPORTS_DOCUMENT_H
#define KKT_REPORTS_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/text.h"

#define KKT_COLUMNS_MAX 16
#define KKT_POINTS_MAX 16

typedef enum kkt_block_kind {
    KKT_BLOCK_HEADING,
    KKT_BLOCK_PARAGRAPH,
    KKT_BLOCK_ITEM, /* of a list; neighbouring ones are one list */
    KKT_BLOCK_TABLE,
    KKT_BLOCK_CHART,
    KKT_BLOCK_SCATTER
} kkt_block_kind;

typedef struct kkt_row {
    struct kkt_row *next;
    const char *cells[KKT_COLUMNS_MAX]; /* NULL: empty */
    bool strong;                        /* a winner */
} kkt_row;

/* Times by chunk size; NaN where a value is unknown. */
typedef struct kkt_chart {
    const char *title;
    int count;
    int64_t x[KKT_POINTS_MAX];
    double measured[KKT_POINTS_MAX], low[KKT_POINTS_MAX], high[KKT_POINTS_MAX];
    double predicted[KKT_POINTS_MAX], bound[KKT_POINTS_MAX];
} kkt_chart;

/* Predicted against measured time: one point a configuration, sorted by chunk. */
typedef struct kkt_point {
    int64_t chunk;
    double predicted, measured; /* microseconds, both above 0 */
    const char *config;         /* what tells it from the others */
} kkt_point;

typedef struct kkt_scatter {
    const char *title;
    size_t count;
    kkt_point *points;
} kkt_scatter;

typedef struct kkt_block {
    struct kkt_block *next;
    kkt_block_kind kind;
    int level;        /* HEADING: 1..3 */
    const char *text; /* HEADING, PARAGRAPH, ITEM; TABLE: its caption */
    const char *more; /* ITEM: a long text that may be folded away under `text`; NULL: none */
    size_t columns;
    const char *headings[KKT_COLUMNS_MAX];
    bool numeric[KKT_COLUMNS_MAX]; /* aligned to the right */
    kkt_row *rows, *last_row;
    kkt_chart chart;
    kkt_scatter scatter;
} kkt_block;

typedef struct kkt_document {
    kkt_arena *arena; /* everything lives here */
    const char *title;
    kkt_block *blocks, *last;
} kkt_document;

void kkt_document_heading(kkt_document *document, int level, const char *format, ...)
    KKT_PRINTF(3, 4);
void kkt_document_paragraph(kkt_document *document, const char *format, ...) KKT_PRINTF(2, 3);
void kkt_document_item(kkt_document *document, const char *format, ...) KKT_PRINTF(2, 3);
/* An item whose text is long: `summary` is always shown, the rest may be folded away. */
void kkt_document_folded(kkt_document *document, const char *summary, const char *format, ...)
    KKT_PRINTF(3, 4);
/* `headings` ends with NULL; one that starts with '#' is a column of numbers. */
kkt_block *kkt_document_table(kkt_document *document, const char *caption,
                              const char *const *headings);
kkt_row *kkt_document_row(kkt_document *document, kkt_block *table);
/* Sets the next free cell of a row. */
void kkt_document_cell(kkt_document *document, kkt_row *row, const char *format, ...)
    KKT_PRINTF(3, 4);
kkt_chart *kkt_document_chart(kkt_document *document);
kkt_scatter *kkt_document_scatter(kkt_document *document);

/* Appends the document in Markdown; charts are left out, for the tables hold their numbers. */
void kkt_document_markdown(const kkt_document *document, kkt_text *out);

#endif
