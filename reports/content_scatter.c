/* How well the model ranks: predicted against measured time over all configurations. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "reports/canonical.h"
#include "reports/content.h"

static bool usable(const kkt_entry *row) {
    return kkt_entry_measured(row) && row->time_us > 0 && isfinite(row->predicted_us) &&
           row->predicted_us > 0;
}

static bool same_problem(const kkt_entry *a, const kkt_entry *b) {
    return strcmp(a->kernel, b->kernel) == 0 && strcmp(a->style, b->style) == 0 &&
           strcmp(a->problem, b->problem) == 0;
}

/* Whether all configurations have this pair. */
static bool shared(const kkt_entry *const *rows, size_t count, const kkt_pair *pair) {
    for (size_t i = 0; i < count; i++)
        if (!kkt_pair_is(rows[i]->config, pair->key, pair->text))
            return false;
    return true;
}

/* The pairs that all configurations agree on, as text ",k=v,k=v,": found once, so that a label
 * costs no pass over all of them. */
static const char *shared_pairs(const kkt_entry *const *rows, size_t count, kkt_arena *arena) {
    kkt_text out = {0};
    kkt_pair pair;
    for (const char *at = rows[0]->config; kkt_pair_next(&at, &pair);)
        if (shared(rows, count, &pair))
            kkt_text_printf(&out, ",%s=%s,", pair.key, pair.text);
    const char *copy = kkt_arena_strdup(arena, kkt_text_get(&out));
    kkt_text_free(&out);
    return copy;
}

static const char *label_of(const char *config, const char *agreed, kkt_arena *arena) {
    kkt_text out = {0};
    kkt_pair pair;
    while (kkt_pair_next(&config, &pair)) {
        char piece[2 * KKT_CANONICAL_TEXT + 4];
        snprintf(piece, sizeof piece, ",%s=%s,", pair.key, pair.text);
        if (strstr(agreed, piece) == NULL)
            kkt_text_printf(&out, "%s%s=%s", out.length > 0 ? ", " : "", pair.key, pair.text);
    }
    const char *copy = kkt_arena_strdup(arena, kkt_text_get(&out));
    kkt_text_free(&out);
    return copy;
}

static int compare_reals(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* `rows`: those of one chunk size. */
static void add_row(const kkt_view *view, const kkt_entry *const *rows, size_t count,
                    kkt_document *document, kkt_block *table) {
    double *times = kkt_arena_array(document->arena, count, sizeof *times);
    double *ratios = kkt_arena_array(document->arena, count, sizeof *ratios);
    const kkt_entry *favourite = rows[0];
    for (size_t i = 0; i < count; i++) {
        times[i] = rows[i]->time_us;
        ratios[i] = rows[i]->predicted_us / rows[i]->time_us;
        /* Of equal predictions the text decides, as a search without measurements would. */
        if (rows[i]->predicted_us < favourite->predicted_us ||
            (rows[i]->predicted_us <= favourite->predicted_us &&
             strcmp(rows[i]->config, favourite->config) < 0))
            favourite = rows[i];
    }
    qsort(times, count, sizeof *times, compare_reals);
    qsort(ratios, count, sizeof *ratios, compare_reals);
    kkt_row *row = kkt_document_row(document, table);
    char text[32];
    kkt_content_chunk(document, row, rows[0]->chunk);
    kkt_document_cell(document, row, "%zu", count);
    kkt_document_cell(document, row, "%s", kkt_content_real(times[0], text));
    kkt_document_cell(document, row, "%s", kkt_content_real(times[count / 2], text));
    kkt_document_cell(document, row, "%s", kkt_content_real(times[count - 1], text));
    kkt_document_cell(document, row, "%.2f", ratios[count / 2]);
    kkt_document_cell(document, row, "%.2f to %.2f", ratios[0], ratios[count - 1]);
    kkt_document_cell(document, row, "%.1f %%", 100.0 * (favourite->time_us / times[0] - 1.0));
    row->strong = kkt_content_stands(view, rows[0]);
}

static void add_group(const kkt_view *view, const kkt_entry *const *rows, size_t count,
                      kkt_document *document) {
    static const char *const headings[] = {"#C",
                                           "#Configurations",
                                           "#Fastest, us",
                                           "#Median, us",
                                           "#Slowest, us",
                                           "#Predicted / measured, median",
                                           "#Predicted / measured, range",
                                           "#The model's first choice is above the fastest by",
                                           NULL};
    kkt_arena *arena = document->arena;
    const char *problem = kkt_content_problem(view, rows[0], arena);
    const char *agreed = shared_pairs(rows, count, arena);
    kkt_scatter *scatter = kkt_document_scatter(document);
    scatter->title = kkt_arena_printf(arena, "Predicted against measured time: %s, %s, %s",
                                      rows[0]->kernel, rows[0]->style, problem);
    scatter->points = kkt_arena_array(arena, count, sizeof *scatter->points);
    scatter->count = count;
    size_t stale = 0;
    for (size_t i = 0; i < count; i++) {
        stale += rows[i]->stale_reason != NULL;
        scatter->points[i] = (kkt_point){rows[i]->chunk, rows[i]->predicted_us, rows[i]->time_us,
                                         label_of(rows[i]->config, agreed, arena)};
    }
    const char *caption =
        kkt_arena_printf(arena, "All %zu configurations with a time: %s, style %s, %s", count,
                         rows[0]->kernel, rows[0]->style, problem);
    kkt_block *table = kkt_document_table(document, caption, headings);
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && rows[end]->chunk == rows[i]->chunk;)
            end++;
        add_row(view, &rows[i], end - i, document, table);
    }
    if (stale > 0)
        kkt_document_paragraph(document, "%zu of them are stale.", stale);
}

void kkt_content_scatter(const kkt_view *view, const char *kernel, kkt_document *document) {
    const kkt_entry **rows =
        kkt_arena_array(document->arena, view->row_count + 1, sizeof(const kkt_entry *));
    const char *style = NULL; /* the last one that was shown */
    bool headed = false;
    for (size_t i = 0, end; i < view->row_count; i = end) {
        const kkt_entry *first = &view->rows[i];
        size_t count = 0;
        for (end = i; end < view->row_count && same_problem(first, &view->rows[end]); end++)
            if (usable(&view->rows[end]))
                rows[count++] = &view->rows[end];
        if (strcmp(first->kernel, kernel) != 0 || count < 2 ||
            (style != NULL && strcmp(style, first->style) == 0))
            continue;
        style = first->style;
        if (!headed)
            kkt_document_heading(document, 3, "%s: predicted against measured", kernel);
        headed = true;
        add_group(view, rows, count, document);
    }
}
