/* What the report says of other objectives than time. */
#include <string.h>

#include "reports/content.h"

void kkt_content_objective(const kkt_view *view, kkt_document *document) {
    size_t disturbed = 0;
    const char *what = NULL;
    for (size_t i = 0; i < view->entry_count; i++) {
        if (view->entries[i].disturbed == NULL)
            continue;
        disturbed++;
        what = what == NULL ? view->entries[i].disturbed : what;
    }
    if (view->objective == KKT_OBJECTIVE_ENERGY)
        kkt_document_paragraph(document,
                               "Winners below are chosen by the energy of a launch, not by time; "
                               "energies within 2 %% of the least are ties. Results without an "
                               "energy come after those that have one.");
    if (view->objective == KKT_OBJECTIVE_ERROR)
        kkt_document_paragraph(document,
                               "Winners below are chosen by their relative error, not by time; of "
                               "equal errors the fastest wins, and the others are ties.");
    if (disturbed > 0)
        kkt_document_paragraph(document,
                               "The timings of %zu of the results below were disturbed (%s): "
                               "measure again when nothing else uses the GPU.",
                               disturbed, what);
}

static void real_cell(kkt_document *document, kkt_row *row, double value) {
    char text[32];
    kkt_document_cell(document, row, "%s", kkt_content_real(value, text));
}

void kkt_content_pareto(const kkt_view *view, const char *kernel, kkt_document *document) {
    static const char *const headings[] = {
        "Problem",         "#C",         "Style",         "#Time, us", "#Energy, mJ",
        "#Relative error", "Provenance", "Configuration", NULL};
    kkt_block *table = NULL;
    for (size_t i = 0; i < view->pareto_count; i++) {
        const kkt_entry *entry = view->pareto[i];
        if (strcmp(entry->kernel, kernel) != 0)
            continue;
        if (table == NULL) {
            kkt_document_heading(document, 3, "%s: time, energy and error", kernel);
            table = kkt_document_table(
                document, "No other measured result is better in one and not worse in the rest",
                headings);
        }
        kkt_row *row = kkt_document_row(document, table);
        kkt_document_cell(document, row, "%s", kkt_content_problem(view, entry, document->arena));
        kkt_content_chunk(document, row, entry->chunk);
        kkt_document_cell(document, row, "%s", entry->style);
        real_cell(document, row, entry->time_us);
        real_cell(document, row, entry->energy_mj);
        real_cell(document, row, entry->rel_fro);
        kkt_document_cell(document, row, "%s", kkt_entry_shown(entry));
        kkt_document_cell(document, row, "%s", entry->config);
    }
}
