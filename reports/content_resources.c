/* What the report says of resources and time: of a kernel with chunk sizes a table a problem, a row
 * a chunk size; of the others a row a problem. */
#include <math.h>
#include <string.h>

#include "reports/content.h"
#include "reports/ledger_share.h"

/* A kernel's entries of one style, and of one problem where they have chunk sizes. */
static bool same_group(const kkt_entry *a, const kkt_entry *b) {
    return strcmp(a->kernel, b->kernel) == 0 && strcmp(a->style, b->style) == 0 &&
           (a->chunk == 0 || strcmp(a->problem, b->problem) == 0);
}

static size_t group_end(const kkt_view *view, size_t at) {
    size_t end = at + 1;
    while (end < view->entry_count && same_group(&view->entries[at], &view->entries[end]))
        end++;
    return end;
}

static void cell_predicted_compiled(kkt_document *document, kkt_row *row, int64_t predicted,
                                    int64_t compiled, bool is_compiled) {
    if (!is_compiled || predicted < 0)
        kkt_content_cell_int(document, row, is_compiled ? compiled : predicted);
    else
        kkt_document_cell(document, row, "%lld / %lld", (long long)predicted, (long long)compiled);
}

/* Threads, registers, bytes, blocks. */
static void add_taken(const kkt_entry *entry, double hbm_bytes, kkt_document *document,
                      kkt_row *row) {
    kkt_content_cell_int(document, row, entry->threads);
    cell_predicted_compiled(document, row, entry->registers_predicted, entry->registers,
                            entry->provenance != KKT_PREDICTED);
    kkt_content_cell_int(document, row, entry->smem_bytes);
    kkt_content_cell_real(document, row, hbm_bytes);
    kkt_content_cell_int(document, row, entry->blocks_per_sm);
}

/* Bound, prediction, time, what of HBM that is, and what limits it. */
static void add_times(const kkt_entry *entry, kkt_document *document, kkt_row *row) {
    const bool measured = kkt_entry_measured(entry);
    char interval[80] = "-";
    kkt_content_cell_real(document, row, entry->lower_bound_us);
    kkt_content_cell_real(document, row, entry->predicted_us);
    kkt_content_cell_real(document, row, entry->time_us);
    if (measured)
        kkt_content_interval(entry->low_us, entry->high_us, interval);
    kkt_document_cell(document, row, "%s", interval);
    kkt_content_cell_real(document, row,
                          measured ? entry->hbm_bytes / entry->time_us / 1e3 : (double)NAN);
    kkt_document_cell(document, row, "%s", kkt_content_words(entry->limiter, document->arena));
    kkt_document_cell(document, row, "%s", kkt_entry_shown(entry));
}

static void add_chunk_row(const kkt_view *view, kkt_document *document, kkt_block *table,
                          const kkt_entry *entry) {
    kkt_row *row = kkt_document_row(document, table);
    const double share = kkt_ledger_share(entry->config, entry->problem);
    row->strong = kkt_content_stands(view, entry);
    kkt_content_chunk(document, row, entry->chunk);
    add_taken(entry, entry->hbm_bytes_per_token, document, row);
    kkt_content_cell_real(document, row, entry->chain_steps);
    if (isfinite(share))
        kkt_document_cell(document, row, "%.1f %%", 100.0 * share);
    else
        kkt_document_cell(document, row, "-");
    add_times(entry, document, row);
}

/* The style that is the fastest on the problem stands out. */
static void add_problem_row(const kkt_view *view, kkt_document *document, kkt_block *table,
                            const kkt_entry *entry) {
    kkt_row *row = kkt_document_row(document, table);
    row->strong = entry->best_of_problem;
    kkt_document_cell(document, row, "%s", kkt_content_problem(view, entry, document->arena));
    add_taken(entry, entry->hbm_bytes, document, row);
    add_times(entry, document, row);
}

/* Which entry of a table. */
static const char *place_of(const kkt_view *view, const kkt_entry *entry, kkt_arena *arena) {
    return entry->chunk > 0 ? kkt_arena_printf(arena, "C = %lld", (long long)entry->chunk)
                            : kkt_content_problem(view, entry, arena);
}

static void fill_chart(const kkt_view *view, size_t at, size_t end, kkt_document *document) {
    if (end - at < 2) /* a curve needs two points */
        return;
    kkt_chart *chart = kkt_document_chart(document);
    chart->title = kkt_arena_printf(document->arena, "Time by chunk size: %s, %s, %s",
                                    view->entries[at].kernel, view->entries[at].style,
                                    kkt_content_problem(view, &view->entries[at], document->arena));
    for (size_t i = at; i < end && chart->count < KKT_POINTS_MAX; i++) {
        const kkt_entry *entry = &view->entries[i];
        int n = chart->count++;
        chart->x[n] = entry->chunk;
        chart->measured[n] = entry->time_us;
        chart->low[n] = entry->low_us;
        chart->high[n] = entry->high_us;
        chart->predicted[n] = entry->predicted_us;
        chart->bound[n] = entry->lower_bound_us;
    }
}

/* A lower bound above a measured time is a fault of the model: said, not hidden. */
static void add_broken_bounds(const kkt_view *view, size_t at, size_t end, kkt_document *document) {
    char bound[32], time[32];
    for (size_t i = at; i < end; i++) {
        const kkt_entry *entry = &view->entries[i];
        if (kkt_entry_measured(entry) && entry->lower_bound_us > entry->high_us)
            kkt_document_item(document,
                              "At %s the lower bound (%s us) is above the measured time "
                              "(%s us): the model is wrong about this configuration.",
                              place_of(view, entry, document->arena),
                              kkt_content_real(entry->lower_bound_us, bound),
                              kkt_content_real(entry->time_us, time));
    }
}

/* Whether a group of entries has a table: of what is modelled alone the first problem says enough.
 */
static bool shown(const kkt_entry *first, const char *kernel) {
    return strcmp(first->kernel, kernel) == 0 && !(first->model_only && first->problem_rank != 0);
}

#define TAKEN(HBM)                                                                                 \
    "#Threads", "#Registers, predicted / compiled", "#Shared memory, B", HBM, "#Blocks per SM"
#define TIMES                                                                                      \
    "#Lower bound, us", "#Predicted, us", "#Measured, us", "#Interval, us", "#GB/s", "Limiter",    \
        "Provenance"

static const char *const chunk_headings[] = {
    "#C", TAKEN("#HBM B per token"), "#Chain, steps", "#Share of the inverse", TIMES, NULL};
static const char *const problem_headings[] = {"Problem", TAKEN("#HBM B"), TIMES, NULL};

static void add_group(const kkt_view *view, size_t at, size_t end, kkt_document *document) {
    const kkt_entry *first = &view->entries[at];
    const bool chunks = first->chunk > 0;
    const char *caption = kkt_arena_printf(
        document->arena, "%s, style %s%s%s", first->kernel, first->style, chunks ? ", " : "",
        chunks ? kkt_content_problem(view, first, document->arena) : "");
    kkt_block *table =
        kkt_document_table(document, caption, chunks ? chunk_headings : problem_headings);
    for (size_t i = at; i < end; i++) {
        if (chunks)
            add_chunk_row(view, document, table, &view->entries[i]);
        else if (shown(&view->entries[i], first->kernel))
            add_problem_row(view, document, table, &view->entries[i]);
    }
    add_broken_bounds(view, at, end, document);
    for (size_t i = at; i < end; i++) {
        const kkt_entry *entry = &view->entries[i];
        if (chunks && kkt_content_stands(view, entry) && entry->reason != NULL)
            kkt_document_paragraph(document, "The model at %s: %s.",
                                   place_of(view, entry, document->arena), entry->reason);
        else if (!chunks && shown(entry, first->kernel) && entry->reason != NULL)
            kkt_document_item(document, "The model at %s: %s.",
                              place_of(view, entry, document->arena), entry->reason);
    }
}

void kkt_content_resources(const kkt_view *view, const char *kernel, kkt_document *document) {
    kkt_document_heading(document, 3, "%s: %s", kernel,
                         kkt_content_has_chunks(view, kernel) ? "the chunk-size trade-off"
                                                              : "resources and time");
    for (size_t i = 0, end; i < view->entry_count; i = end) {
        end = group_end(view, i);
        if (shown(&view->entries[i], kernel) && view->entries[i].chunk > 0)
            fill_chart(view, i, end, document);
    }
    for (size_t i = 0, end; i < view->entry_count; i = end) {
        end = group_end(view, i);
        if (shown(&view->entries[i], kernel))
            add_group(view, i, end, document);
    }
}
