/* The report's part on what was rejected or failed. */
#include "reports/content.h"

#define REJECTS_SHOWN 40

void kkt_content_rejects(const kkt_view *view, kkt_document *document) {
    static const char *const headings[] = {
        "Kernel", "Outcome", "#Configurations", "Reason (of the first)", "Example", NULL};
    kkt_document_heading(document, 2, "What was rejected, and why");
    if (view->reject_count == 0) {
        kkt_document_paragraph(document, "Nothing is stored as rejected or failed.");
        return;
    }
    kkt_block *table = kkt_document_table(
        document,
        "All problems together; reasons that differ in their numbers alone are counted as one",
        headings);
    for (size_t i = 0; i < view->reject_count && i < REJECTS_SHOWN; i++) {
        const kkt_reject_group *group = &view->rejects[i];
        kkt_row *row = kkt_document_row(document, table);
        kkt_document_cell(document, row, "%s", group->kernel);
        kkt_document_cell(document, row, "%s", group->outcome);
        kkt_document_cell(document, row, "%lld", (long long)group->count);
        kkt_document_cell(document, row, "%s", group->reason);
        kkt_document_cell(document, row, "%s on %s", group->example, group->problem);
    }
    if (view->reject_count > REJECTS_SHOWN)
        kkt_document_paragraph(document, "%zu more groups are in the database (view results).",
                               view->reject_count - REJECTS_SHOWN);
}
