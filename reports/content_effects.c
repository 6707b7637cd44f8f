/* What each parameter is worth: pairs of measured results that differ in it alone. */
#include <math.h>
#include <string.h>

#include "reports/canonical.h"
#include "reports/content.h"
#include "reports/contrast.h"
#include "reports/modelled.h"

/* The table of one kernel and style, made with its first row. */
typedef struct effects {
    const kkt_view *view;
    const kkt_entry *best; /* what stands for the kernel: the values compared with are its own */
    kkt_document *document;
    kkt_block *table;
} effects;

static void cell_gain(kkt_document *document, kkt_row *row, double gain) {
    if (isfinite(gain)) /* as a change of time: above 0 is slower */
        kkt_document_cell(document, row, "%+.1f %%", 100.0 * (1.0 / (1.0 + gain) - 1.0));
    else
        kkt_document_cell(document, row, "-");
}

/* The gain of the pair whose other half is the winner itself; NaN: not measured. */
static double gain_on(const kkt_contrasts *contrasts, const kkt_entry *best) {
    for (size_t i = 0; i < contrasts->count; i++)
        if (strcmp(contrasts->pairs[i].without->config, best->config) == 0)
            return contrasts->pairs[i].gain;
    return (double)NAN;
}

static kkt_block *make_table(const effects *e) {
    static const char *const headings[] = {
        "#C",      "Parameter", "Value",          "Against", "#Pairs", "#Least",
        "#Median", "#Most",     "#On the winner", "Finding", NULL};
    kkt_document_heading(e->document, 3, "%s: what each parameter is worth", e->best->kernel);
    kkt_document_paragraph(
        e->document,
        "The change of time from the winner's value to another, over pairs of measured results "
        "that "
        "differ in this parameter alone; 'kkttune ablate %s' measures such pairs from the winner.",
        e->best->kernel);
    return kkt_document_table(
        e->document,
        kkt_arena_printf(e->document->arena, "Change of time, %s, style %s",
                         kkt_content_problem(e->view, e->best, e->document->arena), e->best->style),
        headings);
}

/* Whether anything was measured with this value. */
static bool was_measured(const effects *e, const char *param, const char *value) {
    for (size_t i = 0; i < e->view->row_count; i++) {
        const kkt_entry *row = &e->view->rows[i];
        if (row->chunk == e->best->chunk && kkt_entry_measured(row) &&
            strcmp(row->kernel, e->best->kernel) == 0 && strcmp(row->style, e->best->style) == 0 &&
            strcmp(row->problem, e->best->problem) == 0 && kkt_pair_is(row->config, param, value))
            return true;
    }
    return false;
}

static void add_value(effects *e, const char *param, const char *value, const char *against) {
    kkt_document *document = e->document;
    const kkt_contrast_query query = {.kernel = e->best->kernel,
                                      .style = e->best->style,
                                      .problem = e->best->problem,
                                      .chunk = e->best->chunk,
                                      .param = param,
                                      .with = value,
                                      .without = against};
    kkt_contrasts contrasts;
    if (!was_measured(e, param, value))
        return;
    kkt_contrasts_find(e->view, &query, document->arena, &contrasts);
    if (e->table == NULL)
        e->table = make_table(e);
    kkt_row *row = kkt_document_row(document, e->table);
    kkt_content_chunk(document, row, e->best->chunk);
    kkt_document_cell(document, row, "%s", param);
    kkt_document_cell(document, row, "%s", value);
    kkt_document_cell(document, row, "%s", against);
    kkt_document_cell(document, row, "%zu", contrasts.count);
    size_t last = contrasts.count > 0 ? contrasts.count - 1 : 0;
    cell_gain(document, row, contrasts.count > 0 ? contrasts.pairs[0].gain : (double)NAN);
    cell_gain(document, row, kkt_contrasts_median(&contrasts));
    cell_gain(document, row, contrasts.count > 0 ? contrasts.pairs[last].gain : (double)NAN);
    cell_gain(document, row, gain_on(&contrasts, e->best));
    kkt_document_cell(document, row, "%s", kkt_contrasts_finding(&contrasts, document->arena));
}

static void add_parameter(effects *e, const kkt_param *param) {
    char buffer[24], own[24];
    const char *against = NULL;
    for (size_t v = 0; v < param->count && against == NULL; v++) {
        const char *value = kkt_param_value_text(param, param->values[v], own);
        if (kkt_pair_is(e->best->config, param->name, value))
            against = value;
    }
    for (size_t v = 0; v < param->count && against != NULL; v++) {
        const char *value = kkt_param_value_text(param, param->values[v], buffer);
        if (strcmp(value, against) != 0)
            add_value(e, param->name, value, against);
    }
}

void kkt_content_effects(const kkt_view *view, const char *kernel_name, kkt_document *document) {
    const kkt_kernel *kernel;
    const kkt_variant *variant;
    for (size_t i = 0; i < view->entry_count; i++) {
        const kkt_entry *first = &view->entries[i];
        if (strcmp(first->kernel, kernel_name) != 0)
            continue;
        /* The first problem alone: the default one. */
        effects e = {view, kkt_view_standing(view, kernel_name, first->problem, 0), document, NULL};
        if (e.best != NULL && kkt_entry_measured(e.best) &&
            kkt_modelled_find(kernel_name, e.best->style, &kernel, &variant))
            for (size_t p = 0; p < variant->params.count; p++)
                if (kernel->chunk_param == NULL ||
                    strcmp(variant->params.params[p].name, kernel->chunk_param) != 0)
                    add_parameter(&e, &variant->params.params[p]);
        return;
    }
}
