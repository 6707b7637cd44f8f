/* Bytes of device memory: what the model predicts beside what hardware counters say. */
#include <math.h>
#include <string.h>

#include "reports/content.h"

/* From this size on a prediction should be within this share of the count. */
#define LARGE_BYTES 50e6
#define AGREEMENT 0.05

static bool counted(const kkt_entry *entry) {
    return isfinite(entry->hbm_bytes_counted) && entry->hbm_bytes_counted > 0 &&
           isfinite(entry->hbm_bytes);
}

static double difference(const kkt_entry *entry) {
    return entry->hbm_bytes / entry->hbm_bytes_counted - 1.0;
}

static void add_row(const kkt_view *view, const kkt_entry *entry, kkt_document *document,
                    kkt_block *table) {
    char predicted[32], bytes[32];
    kkt_row *row = kkt_document_row(document, table);
    kkt_document_cell(document, row, "%s", kkt_content_problem(view, entry, document->arena));
    kkt_content_chunk(document, row, entry->chunk);
    kkt_document_cell(document, row, "%s", entry->style);
    kkt_document_cell(document, row, "%s", kkt_content_config(view, entry, document->arena));
    kkt_document_cell(document, row, "%s", kkt_content_real(entry->hbm_bytes / 1e6, predicted));
    kkt_document_cell(document, row, "%s", kkt_content_real(entry->hbm_bytes_counted / 1e6, bytes));
    kkt_document_cell(document, row, "%+.1f", 100.0 * difference(entry));
    kkt_document_cell(document, row, "%s", entry->counters_note ? entry->counters_note : "-");
}

/* How many large ones there are, and how many of them disagree. */
static void add_verdict(const kkt_view *view, const char *kernel, kkt_document *document) {
    int large = 0, apart = 0;
    double worst = 0;
    for (size_t i = 0; i < view->entry_count; i++) {
        const kkt_entry *entry = &view->entries[i];
        if (strcmp(entry->kernel, kernel) != 0 || !counted(entry) ||
            entry->hbm_bytes_counted < LARGE_BYTES)
            continue;
        large++;
        apart += fabs(difference(entry)) > AGREEMENT;
        worst = fmax(worst, fabs(difference(entry)));
    }
    if (large > 0)
        kkt_document_paragraph(document,
                               "Of %d from %.0f MB up, %d differ by more than %.0f %%; the largest "
                               "difference is %.1f %%.",
                               large, LARGE_BYTES / 1e6, apart, 100.0 * AGREEMENT, 100.0 * worst);
}

/* Nothing counted: why, once. */
static void add_reason(const kkt_view *view, const char *kernel, kkt_document *document) {
    for (size_t i = 0; i < view->entry_count; i++) {
        const kkt_entry *entry = &view->entries[i];
        if (strcmp(entry->kernel, kernel) == 0 && entry->counters_note != NULL) {
            kkt_document_paragraph(document, "Bytes of device memory were not counted: %s.",
                                   entry->counters_note);
            return;
        }
    }
}

void kkt_content_counters(const kkt_view *view, const char *kernel, kkt_document *document) {
    static const char *const headings[] = {
        "Problem",       "#C",   "Style", "Configuration", "#Predicted MB", "#Counted MB",
        "#Difference %", "Note", NULL};
    kkt_block *table = NULL;
    for (size_t i = 0; i < view->entry_count; i++) {
        const kkt_entry *entry = &view->entries[i];
        if (strcmp(entry->kernel, kernel) != 0 || !counted(entry))
            continue;
        if (table == NULL) {
            kkt_document_heading(document, 3, "Bytes of device memory, predicted and counted");
            kkt_document_paragraph(document,
                                   "Counted by the GPU's own counters in a run apart from the "
                                   "timing, with an empty L2 at the start and what it still holds "
                                   "at the end written back.");
            table = kkt_document_table(document, "Best configurations that were counted", headings);
        }
        add_row(view, entry, document, table);
    }
    if (table != NULL)
        add_verdict(view, kernel, document);
    else
        add_reason(view, kernel, document);
}
