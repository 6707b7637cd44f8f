/* What the report says of libraries: their calls beside the best of what was tuned. */
#include <math.h>
#include <string.h>

#include "reports/baseline.h"
#include "reports/content.h"
#include "reports/modelled.h"

/* What the calls are, in the words of the style's own parameters. */
static void add_meaning(const char *kernel, const char *style, kkt_document *document) {
    const kkt_kernel *family;
    const kkt_variant *variant;
    if (!kkt_modelled_find(kernel, style, &family, &variant))
        return;
    for (size_t p = 0; p < variant->params.count; p++) {
        const kkt_param *param = &variant->params.params[p];
        if (family->chunk_param == NULL || strcmp(param->name, family->chunk_param) != 0)
            kkt_document_item(document, "%s: %s.", param->name, param->help);
    }
}

static void add_row(const kkt_view *view, const kkt_baseline *baseline, kkt_document *document,
                    kkt_block *table) {
    const kkt_entry *call = &baseline->entry;
    kkt_row *row = kkt_document_row(document, table);
    char text[80];
    row->strong = kkt_content_stands(view, call);
    kkt_document_cell(document, row, "%s", kkt_content_problem(view, call, document->arena));
    kkt_content_chunk(document, row, call->chunk);
    kkt_document_cell(document, row, "%s", kkt_baseline_call(call, document->arena));
    kkt_document_cell(document, row, "%s%s", kkt_content_real(call->time_us, text),
                      call->noisy ? " (noisy)" : "");
    kkt_document_cell(document, row, "%s", kkt_content_interval(call->low_us, call->high_us, text));
    if (baseline->tuned != NULL) {
        kkt_document_cell(document, row, "%s", baseline->tuned->style);
        kkt_document_cell(document, row, "%s", kkt_content_real(baseline->tuned->time_us, text));
        kkt_document_cell(document, row, "%.2f%s", baseline->ratio, baseline->together ? "" : " *");
    } else {
        kkt_document_cell(document, row, "-");
        kkt_document_cell(document, row, "-");
        kkt_document_cell(document, row, "-");
    }
    kkt_document_cell(document, row, "%s", kkt_content_real(call->rel_fro, text));
    kkt_document_cell(document, row, "%s", kkt_entry_shown(call));
}

void kkt_content_baselines(const kkt_view *view, const char *kernel, kkt_document *document) {
    static const char *const headings[] = {
        "Problem",         "#C",         "Call",       "#Library, us",
        "#Interval, us",   "Style",      "#Tuned, us", "#Library / tuned",
        "#Relative error", "Provenance", NULL};
    kkt_block *table = NULL;
    const char *style = NULL;
    bool apart = false;
    for (size_t i = 0; i < view->baseline_count; i++) {
        const kkt_baseline *row = &view->baselines[i];
        if (strcmp(row->entry.kernel, kernel) != 0)
            continue;
        if (table == NULL) {
            kkt_document_heading(document, 3, "%s: beside a library", kernel);
            table = kkt_document_table(
                document,
                "The library's time over the best tuned one's; above 1 the library is slower",
                headings);
        }
        add_row(view, row, document, table);
        style = row->entry.style;
        apart = apart || (row->tuned != NULL && !row->together);
    }
    if (table == NULL)
        return;
    kkt_document_paragraph(document,
                           "The library's results pass the same check and are timed in the "
                           "same way; nothing of them is chosen or exported.");
    add_meaning(kernel, style, document);
    if (apart)
        kkt_document_item(document,
                          "*: the two were not measured on the same day, GPU and driver.");
}
