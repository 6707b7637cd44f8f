/* The chunk size over whole pipelines: curves, what a chunk size costs, and the statements of an
 * article held against them. */
#include <math.h>
#include <string.h>

#include "model/ledger.h"
#include "reports/canonical.h"
#include "reports/content.h"
#include "reports/curve.h"
#include "reports/statements_scene.h"

static void cell_us(kkt_document *document, kkt_row *row, double us) {
    char text[32];
    kkt_document_cell(document, row, "%s", kkt_content_real(us, text));
}

/* What tells a curve's problem from those of its pipeline's others. */
static const char *short_problem(const kkt_view *view, const kkt_curve *curve, kkt_arena *arena) {
    kkt_text out = {0};
    kkt_pair pair;
    const char *text = curve->problem;
    while (kkt_pair_next(&text, &pair)) {
        bool shared = true;
        for (size_t i = 0; i < view->curve_count && shared; i++)
            shared = view->curves[i].pipeline != curve->pipeline ||
                     kkt_pair_is(view->curves[i].problem, pair.key, pair.text);
        if (!shared)
            kkt_text_printf(&out, "%s%s=%s", out.length > 0 ? ", " : "", pair.key, pair.text);
    }
    const char *copy =
        kkt_arena_strdup(arena, out.length > 0 ? kkt_text_get(&out) : "the only problem");
    kkt_text_free(&out);
    return copy;
}

/* ---- curves ---- */

static void add_chart(const kkt_view *view, const kkt_curve *curve, kkt_document *document) {
    if (curve->count < 2)
        return;
    kkt_chart *chart = kkt_document_chart(document);
    chart->title =
        kkt_arena_printf(document->arena, "Time of the whole pipeline by chunk size: %s, %s",
                         curve->pipeline->name, short_problem(view, curve, document->arena));
    for (size_t i = 0; i < curve->count && chart->count < KKT_POINTS_MAX; i++) {
        const kkt_curve_point *point = &curve->points[i];
        int n = chart->count++;
        double bound = 0;
        for (size_t m = 0; m < curve->member_count; m++)
            bound += point->members[m]->lower_bound_us;
        chart->x[n] = point->chunk;
        chart->measured[n] = point->time_us;
        chart->low[n] = point->run != NULL ? point->run->low_us : point->time_us;
        chart->high[n] = point->run != NULL ? point->run->high_us : point->time_us;
        chart->predicted[n] = point->predicted_us;
        chart->bound[n] = bound;
    }
}

static void add_point(const kkt_view *view, const kkt_curve *curve, const kkt_curve_point *point,
                      kkt_document *document, kkt_block *table) {
    kkt_row *row = kkt_document_row(document, table);
    kkt_text styles = {0};
    char interval[80];
    row->strong = curve->best != NULL && point->chunk == curve->best->chunk;
    for (size_t m = 0, end; m < curve->member_count; m = end) {
        const char *style = point->members[m]->style;
        for (end = m + 1;
             end < curve->member_count && strcmp(point->members[end]->style, style) == 0;)
            end++;
        kkt_text_add(&styles, m > 0 ? " + " : "");
        if (end - m > 1)
            kkt_text_printf(&styles, "%zu ", end - m);
        kkt_text_add(&styles, kkt_content_words(style, document->arena));
    }
    kkt_document_cell(document, row, "%s", short_problem(view, curve, document->arena));
    kkt_content_chunk(document, row, point->chunk);
    kkt_document_cell(document, row, "%s%s%s", kkt_text_get(&styles),
                      point->form[0] != '\0' ? ", " : "", point->form);
    cell_us(document, row, point->predicted_us);
    cell_us(document, row, point->members_us);
    for (int order = 0; order < KKT_LAUNCH_ORDER_COUNT; order++)
        cell_us(document, row,
                point->runs[order] != NULL ? point->runs[order]->time_us : (double)NAN);
    kkt_document_cell(document, row, "%s",
                      point->run != NULL
                          ? kkt_content_interval(point->run->low_us, point->run->high_us, interval)
                          : "-");
    cell_us(document, row, point->hbm_bytes_per_token);
    kkt_document_cell(document, row, "%s", kkt_content_words(point->limiter, document->arena));
    kkt_document_cell(document, row, "%s", kkt_curve_shown(point));
    kkt_text_free(&styles);
}

static bool shown(const kkt_curve *curve) {
    return curve->count > 0 && (curve->device_code || curve->problem_rank == 0);
}

static void add_pipeline(const kkt_view *view, const kkt_pipeline *pipeline,
                         kkt_document *document) {
    static const char *const headings[] = {"Problem",
                                           "#C",
                                           "Styles, form",
                                           "#Predicted, us",
                                           "#Sum of the kernels, us",
                                           "#Timed together, us",
                                           "#Overlapped, us",
                                           "#Interval, us",
                                           "#HBM B per token",
                                           "Limiter",
                                           "Provenance",
                                           NULL};
    kkt_block *table = NULL;
    for (size_t i = 0; i < view->curve_count; i++) {
        const kkt_curve *curve = &view->curves[i];
        if (curve->pipeline != pipeline || !shown(curve))
            continue;
        if (table == NULL) {
            kkt_document_heading(document, 3, "%s", pipeline->name);
            kkt_document_paragraph(document, "%s%s.", pipeline->summary,
                                   curve->device_code
                                       ? ""
                                       : "; a kernel of it is known to the model alone, so all of "
                                         "this is predicted");
        }
        if (table == NULL || curve->measured > 0)
            add_chart(view, curve, document);
        if (table == NULL)
            table = kkt_document_table(
                document,
                kkt_arena_printf(document->arena,
                                 "%s: every chunk size with the best of each kernel",
                                 pipeline->name),
                headings);
        for (size_t c = 0; c < curve->count; c++)
            add_point(view, curve, &curve->points[c], document, table);
    }
    for (size_t i = 0; i < view->curve_count; i++)
        if (view->curves[i].pipeline == pipeline && view->curves[i].measured > 0)
            kkt_document_item(document, "%s: %s",
                              short_problem(view, &view->curves[i], document->arena),
                              kkt_curve_why(&view->curves[i], document->arena));
}

/* ---- what a chunk size costs ---- */

static bool is_member(const kkt_view *view, const char *kernel) {
    for (size_t i = 0; i < view->curve_count; i++)
        if (kkt_pipeline_has(view->curves[i].pipeline, kernel))
            return true;
    return false;
}

static void add_cost(const kkt_view *view, const kkt_entry *entry, kkt_document *document,
                     kkt_block *table) {
    const kkt_scene scene = {.view = view};
    kkt_row *row = kkt_document_row(document, table);
    bool compiled = entry->provenance != KKT_PREDICTED;
    int blocks;
    kkt_limiter limiter = kkt_scene_blocks(&scene, entry, &blocks);
    row->strong = kkt_content_stands(view, entry);
    kkt_document_cell(document, row, "%s, %s", entry->kernel,
                      kkt_content_words(entry->style, document->arena));
    kkt_content_chunk(document, row, entry->chunk);
    kkt_document_cell(document, row, "%d", entry->threads);
    if (compiled)
        kkt_document_cell(document, row, "%d / %d", entry->registers_predicted, entry->registers);
    else
        kkt_document_cell(document, row, "%d", entry->registers_predicted);
    if (entry->spill_bytes >= 0)
        kkt_document_cell(document, row, "%lld", (long long)entry->spill_bytes);
    else
        kkt_document_cell(document, row, "-");
    kkt_document_cell(document, row, "%lld", (long long)entry->smem_bytes);
    if (blocks >= 0)
        kkt_document_cell(document, row, "%d", blocks);
    else
        kkt_document_cell(document, row, "-");
    kkt_document_cell(
        document, row, "%s",
        kkt_content_words(blocks >= 0 ? kkt_limiter_name(limiter) : NULL, document->arena));
    cell_us(document, row, entry->hbm_bytes_per_token);
    cell_us(document, row,
            entry->hbm_bytes_counted / (double)kkt_pair_integer(entry->problem, "tokens", 1));
    cell_us(document, row, entry->predicted_us);
    cell_us(document, row, entry->time_us);
    kkt_document_cell(document, row, "%s", kkt_content_words(entry->limiter, document->arena));
    kkt_document_cell(document, row, "%s", kkt_entry_shown(entry));
}

static void add_costs(const kkt_view *view, kkt_document *document) {
    static const char *const headings[] = {"Kernel, style",
                                           "#C",
                                           "#Threads",
                                           "#Registers, predicted / compiled",
                                           "#Spilled, B",
                                           "#Shared memory, B",
                                           "#Blocks per SM",
                                           "What stops another",
                                           "#HBM B per token",
                                           "#Counted",
                                           "#Predicted, us",
                                           "#Measured, us",
                                           "What takes the time",
                                           "Provenance",
                                           NULL};
    kkt_document_heading(document, 3, "What a chunk size costs each write style");
    kkt_document_paragraph(document,
                           "The best configuration of each style at each chunk size, on the first "
                           "problem. Per token and value head a state that goes through HBM every "
                           "chunk costs 4 dk dv / C bytes (2 dk dv / C elements of two bytes, "
                           "written and read), and T 2C bytes to write and as many to read.");
    kkt_block *table = kkt_document_table(document, "Resources by style and chunk size", headings);
    for (size_t i = 0; i < view->entry_count; i++)
        if (view->entries[i].problem_rank == 0 && view->entries[i].chunk > 0 &&
            is_member(view, view->entries[i].kernel))
            add_cost(view, &view->entries[i], document, table);
}

/* ---- statements ---- */

static void add_statements(const kkt_view *view, kkt_document *document) {
    static const char *const headings[] = {"Section",    "Statement", "Verdict",
                                           "Decided by", "Figures",   NULL};
    size_t count;
    const kkt_statement *all = kkt_statements_make(view, document->arena, &count);
    kkt_document_heading(document, 3, "What an article says of the chunk size");
    kkt_document_paragraph(document,
                           "The statements of sections 2.4 and 2.5 of the blog post \"TileLang "
                           "实战：单位下三角矩阵求逆\" (in Chinese: inverting unit "
                           "lower-triangular matrices in TileLang), each decided by the figures "
                           "beside it: what was timed or counted here, else what the compiler "
                           "says, else the model alone.");
    kkt_block *table = kkt_document_table(document, "Statements and verdicts", headings);
    for (size_t i = 0; i < count; i++) {
        kkt_row *row = kkt_document_row(document, table);
        kkt_document_cell(document, row, "%s", all[i].section);
        kkt_document_cell(document, row, "%s", all[i].text);
        kkt_document_cell(document, row, "%s", kkt_statement_verdict_name(all[i].verdict));
        kkt_document_cell(document, row, "%s", all[i].decided_by);
        kkt_document_cell(document, row, "%s", all[i].figures);
    }
}

void kkt_content_pipelines(const kkt_view *view, kkt_document *document) {
    if (view->curve_count == 0)
        return;
    kkt_document_heading(document, 2, "The chunk size, end to end");
    kkt_document_paragraph(
        document, "A chunk size belongs to a pipeline of kernels that share it. At every C the "
                  "fastest configuration of each kernel is taken; 'timed together' is one graph of "
                  "all launches, 'overlapped' the same with each launch beginning while the one "
                  "before it ends. The bold C has the smallest total.");
    for (size_t i = 0; i < view->curve_count; i++)
        if (i == 0 || view->curves[i].pipeline != view->curves[i - 1].pipeline)
            add_pipeline(view, view->curves[i].pipeline, document);
    add_costs(view, document);
    add_statements(view, document);
}
