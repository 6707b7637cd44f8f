/* An ablation as a page. */
#include <math.h>
#include <string.h>

#include "reports/ablation.h"
#include "reports/content.h"

/* "+3.1 %", "0", or "-" where unknown. */
static const char *percent(double share, char out[32]) {
    if (!isfinite(share))
        snprintf(out, 32, "-");
    else if (fabs(share) < 5e-5)
        snprintf(out, 32, "0");
    else
        snprintf(out, 32, "%+.*f %%", fabs(share) < 0.1 ? 2 : 1, 100 * share);
    return out;
}

static void add_change(kkt_document *document, kkt_row *line, const kkt_ablation_row *row,
                       kkt_evidence evidence, kkt_figure figure) {
    char text[32];
    kkt_reading change = kkt_ablation_change(row, evidence, figure);
    kkt_document_cell(document, line, "%s", percent(change.value, text));
}

/* The change of time with what its intervals allow. */
static void add_time_change(kkt_document *document, kkt_row *line, const kkt_ablation_row *row) {
    char text[3][32];
    kkt_reading c = kkt_ablation_change(row, KKT_EVIDENCE_TIMED, KKT_FIGURE_TIME);
    if (!isfinite(c.value))
        kkt_document_cell(document, line, "-");
    else
        kkt_document_cell(document, line, "%s [%s, %s]", percent(c.value, text[0]),
                          percent(c.low, text[1]), percent(c.high, text[2]));
}

/* "40 -> 48", one number where it stays, "-" where unknown. */
static void add_pair(kkt_document *document, kkt_row *line, const kkt_ablation_row *row,
                     kkt_evidence evidence, kkt_figure figure) {
    double from = row->from->figures[evidence][figure].value;
    double to = row->to->figures[evidence][figure].value;
    if (!isfinite(from) || !isfinite(to))
        kkt_document_cell(document, line, "-");
    else if (from < to || from > to)
        kkt_document_cell(document, line, "%.0f -> %.0f", from, to);
    else
        kkt_document_cell(document, line, "%.0f", to);
}

/* What the model says takes the time: "hbm", or "shared_bandwidth -> hbm". */
static void add_limiters(kkt_document *document, kkt_row *line, const kkt_ablation_row *row) {
    const kkt_move_point *from = row->from->point, *to = row->to->point;
    const char *a = kkt_limiter_name(from->prediction.limiter);
    const char *b = kkt_limiter_name(to->prediction.limiter);
    if (!from->known || !to->known)
        kkt_document_cell(document, line, "-");
    else if (strcmp(a, b) == 0)
        kkt_document_cell(document, line, "%s", b);
    else
        kkt_document_cell(document, line, "%s -> %s", a, b);
}

/* The changes that both tables show, in the order of their headings. */
#define CHANGE_HEADINGS                                                                            \
    "#time predicted", "limited by", "#wavefronts predicted", "#wavefronts counted",               \
        "#instructions counted", "#registers compiled", "#blocks per SM", "#time"

static void add_changes(kkt_document *document, kkt_row *line, const kkt_ablation_row *row) {
    add_change(document, line, row, KKT_EVIDENCE_PREDICTED, KKT_FIGURE_TIME);
    add_limiters(document, line, row);
    add_change(document, line, row, KKT_EVIDENCE_PREDICTED, KKT_FIGURE_WAVEFRONTS);
    add_change(document, line, row, KKT_EVIDENCE_COUNTED, KKT_FIGURE_WAVEFRONTS);
    add_change(document, line, row, KKT_EVIDENCE_COUNTED, KKT_FIGURE_INSTRUCTIONS);
    add_pair(document, line, row, KKT_EVIDENCE_COMPILED, KKT_FIGURE_REGISTERS);
    add_pair(document, line, row, KKT_EVIDENCE_COMPILED, KKT_FIGURE_BLOCKS);
    add_time_change(document, line, row);
}

/* ---- claims ---- */

static void add_verdicts(const kkt_ablation_set *set, kkt_document *document) {
    static const char *const headings[] = {
        "claim", "what is claimed", "what the model says", "decided by", "verdict", "where", NULL};
    size_t count;
    kkt_claim_summary *claims = kkt_ablation_claims(set, document->arena, &count);
    kkt_document_heading(document, 2, "Claims");
    kkt_block *table = kkt_document_table(document, "Verdicts", headings);
    for (size_t i = 0; i < count; i++) {
        kkt_row *line = kkt_document_row(document, table);
        kkt_document_cell(document, line, "%s", claims[i].claim->name);
        kkt_document_cell(document, line, "%s", claims[i].claim->statement);
        kkt_document_cell(document, line, "%s", claims[i].claim->account);
        kkt_document_cell(document, line, "%s", kkt_figure_name(claims[i].claim->figure));
        kkt_document_cell(document, line, "%s", kkt_finding_words(claims[i].finding));
        kkt_document_cell(document, line, "%s", claims[i].where);
    }
}

static void add_comparisons(const kkt_ablation_set *set, kkt_document *document) {
    static const char *const headings[] = {"claim",         "#C",      "condition", "expected",
                                           CHANGE_HEADINGS, "verdict", "note",      NULL};
    kkt_block *table = kkt_document_table(document, "The comparisons behind them", headings);
    for (size_t c = 0; c < set->kernel->claim_count; c++) {
        for (size_t a = 0; a < set->count; a++) {
            const kkt_ablation *ablation = &set->ablations[a];
            for (size_t i = 0; i < ablation->row_count; i++) {
                const kkt_ablation_row *row = &ablation->rows[i];
                if (row->move->claim != &set->kernel->claims[c])
                    continue;
                kkt_row *line = kkt_document_row(document, table);
                kkt_document_cell(document, line, "%s", row->move->claim->name);
                kkt_content_chunk(document, line, ablation->chunk);
                kkt_document_cell(document, line, "%s", row->move->label);
                kkt_document_cell(document, line, "%s",
                                  kkt_expectation_name(row->move->comparison->expect));
                add_changes(document, line, row);
                kkt_document_cell(document, line, "%s", kkt_finding_words(row->finding));
                kkt_document_cell(document, line, "%s", row->reason ? row->reason : "");
            }
        }
    }
}

/* ---- one base ---- */

static void add_base(const kkt_ablation_set *set, const kkt_ablation *ablation,
                     kkt_document *document) {
    const kkt_ablation_point *base = &ablation->points[0];
    char time[32], low[32], high[32], predicted[32];
    kkt_text shown = {0};
    kkt_params_format_short(&set->variant->params, &base->point->config, &shown);
    const kkt_reading *timed = &base->figures[KKT_EVIDENCE_TIMED][KKT_FIGURE_TIME];
    kkt_document_paragraph(document, "Base: %s; what is not named has its default.",
                           kkt_text_get(&shown));
    kkt_text_free(&shown);
    kkt_content_real(base->figures[KKT_EVIDENCE_PREDICTED][KKT_FIGURE_TIME].value, predicted);
    if (kkt_reading_known(timed))
        kkt_document_paragraph(document, "%s us [%s, %s], predicted %s us; tier %s%s%s%s%s.",
                               kkt_content_real(timed->value, time),
                               kkt_content_real(timed->low, low),
                               kkt_content_real(timed->high, high), predicted, ablation->tier,
                               base->gpu ? ", " : "", base->gpu ? base->gpu : "",
                               base->driver ? ", driver " : "", base->driver ? base->driver : "");
    else
        kkt_document_paragraph(document, "Predicted %s us, not timed; tier %s.", predicted,
                               ablation->tier);
}

static void add_moves(const kkt_ablation *ablation, kkt_document *document) {
    static const char *const headings[] = {"move",   CHANGE_HEADINGS, "#shared memory",
                                           "effect", "note",          NULL};
    kkt_block *table = kkt_document_table(document, "One parameter moved, the rest kept", headings);
    for (size_t i = 0; i < ablation->row_count; i++) {
        const kkt_ablation_row *row = &ablation->rows[i];
        if (row->move->claim != NULL)
            continue;
        kkt_row *line = kkt_document_row(document, table);
        kkt_document_cell(document, line, "%s", row->move->label);
        add_changes(document, line, row);
        add_pair(document, line, row, KKT_EVIDENCE_PREDICTED, KKT_FIGURE_SMEM);
        kkt_document_cell(document, line, "%s", kkt_ablation_effect(row));
        kkt_document_cell(document, line, "%s", row->reason ? row->reason : "");
    }
}

static void add_head(const kkt_ablation_set *set, kkt_document *document) {
    kkt_text problem = {0};
    kkt_params_format(&set->kernel->problem, &set->problem, &problem);
    kkt_document_heading(document, 1, "Experiments: %s", set->kernel->name);
    if (set->command != NULL)
        kkt_document_paragraph(document, "Written by: %s. Edits are lost.", set->command);
    kkt_document_paragraph(document, "%s on %s (%s), problem %s.", set->kernel->summary,
                           set->device->full_name, set->arch->name, kkt_text_get(&problem));
    kkt_document_paragraph(
        document,
        "From a base, every parameter is moved to each of its other values, and the pairs that the "
        "claims compare are added. A change is that of the second configuration against the first. "
        "Times were taken interleaved, unless a note says otherwise; in brackets is what the "
        "intervals of both medians allow. "
        "Where those overlap, the difference is within noise and decides nothing. A prediction "
        "alone decides nothing either: what the model says, and what it says limits a "
        "configuration, stand beside for comparison.");
    kkt_text_free(&problem);
}

void kkt_ablation_markdown(const kkt_ablation_set *set, kkt_text *out) {
    kkt_arena *arena = kkt_arena_open();
    kkt_document document = {.arena = arena, .title = set->kernel->name};
    add_head(set, &document);
    if (set->kernel->claim_count > 0) {
        add_verdicts(set, &document);
        add_comparisons(set, &document);
    }
    for (size_t a = 0; a < set->count; a++) {
        if (set->ablations[a].chunk != 0)
            kkt_document_heading(&document, 2, "C = %lld", (long long)set->ablations[a].chunk);
        else
            kkt_document_heading(&document, 2, "Moves");
        add_base(set, &set->ablations[a], &document);
        add_moves(&set->ablations[a], &document);
    }
    kkt_document_markdown(&document, out);
    kkt_arena_close(arena);
}
