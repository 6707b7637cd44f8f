#include "reports/content.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reports/canonical.h"
#include "reports/curve.h"
#include "reports/modelled.h"

#define TIES_SHOWN 8

const char *kkt_content_real(double value, char out[32]) {
    if (!isfinite(value))
        snprintf(out, 32, "-");
    else if (fabs(value) >= 999.5) /* three digits of it are "1e+03" */
        snprintf(out, 32, "%.0f", value);
    else
        snprintf(out, 32, "%.3g", value);
    return out;
}

const char *kkt_content_words(const char *name, kkt_arena *arena) {
    char *copy = kkt_arena_strdup(arena, name != NULL ? name : "-");
    for (char *at = copy; *at != '\0'; at++)
        *at = *at == '_' ? ' ' : *at;
    return copy;
}

const char *kkt_content_interval(double low, double high, char out[80]) {
    enum { DIGITS = 7 }; /* what a sample, a 32-bit float, holds */
    char ends[2][32];
    if (!isfinite(low) || !isfinite(high)) {
        snprintf(out, 80, "-");
        return out;
    }
    kkt_content_real(low, ends[0]);
    kkt_content_real(high, ends[1]);
    for (int digits = 4; digits <= DIGITS && strcmp(ends[0], ends[1]) == 0; digits++) {
        if (fabs(low) >= pow(10, digits)) /* all digits before the point are there already */
            continue;
        snprintf(ends[0], sizeof ends[0], "%.*g", digits, low);
        snprintf(ends[1], sizeof ends[1], "%.*g", digits, high);
    }
    if (strcmp(ends[0], ends[1]) == 0)
        snprintf(out, 80, "%s", ends[0]);
    else
        snprintf(out, 80, "%s to %s", ends[0], ends[1]);
    return out;
}

bool kkt_content_stands(const kkt_view *view, const kkt_entry *entry) {
    return entry->chunk == kkt_view_chunk(view, entry->kernel, entry->problem)->chunk;
}

void kkt_content_chunk(kkt_document *document, kkt_row *row, int64_t chunk) {
    if (chunk > 0)
        kkt_document_cell(document, row, "%lld", (long long)chunk);
    else
        kkt_document_cell(document, row, "-");
}

void kkt_content_cell_real(kkt_document *document, kkt_row *row, double value) {
    char text[32];
    kkt_document_cell(document, row, "%s", kkt_content_real(value, text));
}

void kkt_content_cell_int(kkt_document *document, kkt_row *row, int64_t value) {
    if (value < 0)
        kkt_document_cell(document, row, "-");
    else
        kkt_document_cell(document, row, "%lld", (long long)value);
}

static const char *source_mark(kkt_source source) {
    return source == KKT_SOURCE_UNCONFIRMED ? "?" : "";
}

/* Which keys of a canonical text to leave out because all entries of a kernel agree on them. */
typedef enum text_kind { TEXT_PROBLEM, TEXT_CONFIG } text_kind;

static const char *text_of(const kkt_entry *entry, text_kind kind) {
    return kind == TEXT_PROBLEM ? entry->problem : entry->config;
}

static bool shared_pair(const kkt_view *view, const char *kernel, text_kind kind,
                        const kkt_pair *pair) {
    for (size_t i = 0; i < view->entry_count; i++)
        if (strcmp(view->entries[i].kernel, kernel) == 0 &&
            !kkt_pair_is(text_of(&view->entries[i], kind), pair->key, pair->text))
            return false;
    return true;
}

/* "k=v, k=v": the pairs that differ among a kernel's entries (`shared` false), or that do not. */
static const char *short_text(const kkt_view *view, const char *kernel, text_kind kind,
                              const char *text, bool shared, kkt_arena *arena) {
    kkt_text out = {0};
    kkt_pair pair;
    while (kkt_pair_next(&text, &pair))
        if (shared_pair(view, kernel, kind, &pair) == shared)
            kkt_text_printf(&out, "%s%s=%s", out.length > 0 ? ", " : "", pair.key, pair.text);
    static const char *const nothing[] = {
        [TEXT_PROBLEM] = "the only problem", [TEXT_CONFIG] = "the only configuration"};
    const char *copy = kkt_arena_strdup(arena, out.length > 0 ? kkt_text_get(&out)
                                               : shared       ? "nothing"
                                                              : nothing[kind]);
    kkt_text_free(&out);
    return copy;
}

const char *kkt_content_problem(const kkt_view *view, const kkt_entry *entry, kkt_arena *arena) {
    return short_text(view, entry->kernel, TEXT_PROBLEM, entry->problem, false, arena);
}

static const char *short_config(const kkt_view *view, const char *kernel, const char *config,
                                kkt_arena *arena) {
    return short_text(view, kernel, TEXT_CONFIG, config, false, arena);
}

const char *kkt_content_config(const kkt_view *view, const kkt_entry *entry, kkt_arena *arena) {
    return short_config(view, entry->kernel, entry->config, arena);
}

static void add_shared(const kkt_view *view, const kkt_entry *first, kkt_document *document) {
    const char *problem =
        short_text(view, first->kernel, TEXT_PROBLEM, first->problem, true, document->arena);
    const char *config =
        short_text(view, first->kernel, TEXT_CONFIG, first->config, true, document->arena);
    const bool same = strcmp(config, "nothing") != 0;
    kkt_document_paragraph(document, "Common to all problems below: %s.%s%s%s", problem,
                           same ? " Common to all configurations below: " : "", same ? config : "",
                           same ? "." : "");
}

static void add_summary(const kkt_view *view, kkt_document *document) {
    const kkt_device *device = view->device;
    kkt_document_paragraph(
        document,
        "%s (%s, compute capability %d.%d): %.0f%s SMs, %.0f%s GB/s of HBM at its theoretical "
        "peak, %d KiB of shared memory and %d registers an SM.",
        device->full_name, view->arch->generation, view->arch->major, view->arch->minor,
        device->sm_count.value, source_mark(device->sm_count.source), device->hbm_gbps.value,
        source_mark(device->hbm_gbps.source), view->arch->smem_per_sm_bytes / 1024,
        view->arch->registers_per_sm);
    kkt_document_paragraph(
        document,
        "The database holds %lld candidates for it: %lld %s, "
        "%lld replayed from recordings, %lld compiled and not timed; %lld of them are stale.",
        (long long)view->candidates, (long long)view->measured,
        view->made_up ? "with a fake time, made up by the fake backend" : "measured",
        (long long)view->replayed, (long long)view->compiled, (long long)view->stale);
    if (view->measured + view->replayed == 0)
        kkt_document_paragraph(document,
                               "Nothing was measured: every time below is a prediction of the "
                               "model. Registers and shared memory of compiled entries are the "
                               "compiler's.");
}

static int compare_reals(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* How far the predictions are from what was measured, over the entries. */
static void add_model_error(const kkt_view *view, kkt_document *document) {
    double *ratios = kkt_arena_array(document->arena, view->entry_count + 1, sizeof *ratios);
    size_t count = 0;
    for (size_t i = 0; i < view->entry_count; i++) {
        const kkt_entry *entry = &view->entries[i];
        if (kkt_entry_measured(entry) && entry->time_us > 0 && entry->predicted_us > 0)
            ratios[count++] = entry->predicted_us / entry->time_us;
    }
    if (count == 0)
        return;
    qsort(ratios, count, sizeof *ratios, compare_reals);
    kkt_document_paragraph(document,
                           "The model's error over the %zu %s with a time: predicted over "
                           "measured time is %.2f in the median, from %.2f to %.2f.",
                           count, count == 1 ? "entry" : "entries", ratios[count / 2], ratios[0],
                           ratios[count - 1]);
}

static void add_reading(kkt_document *document) {
    kkt_document_heading(document, 2, "How to read this");
    kkt_document_item(document,
                      "Provenance: 'measured' was timed here after its result was checked against "
                      "a double-precision reference; 'replayed' is such a measurement from a "
                      "recording that ships; 'fake' is a time that the fake backend made up to try "
                      "the program out; 'compiled' has registers and shared memory from the "
                      "compiler and a predicted time; 'predicted' is the model alone; 'stale' was "
                      "measured with another source, options or compiler than the present ones.");
    kkt_document_item(document,
                      "Times are medians in microseconds with their 95 %% confidence interval. "
                      "Configurations whose intervals overlap the best one's are ties: the choice "
                      "among them is by convention, not by speed.");
    kkt_document_item(document,
                      "The lower bound is what no implementation of the same configuration can "
                      "beat (bytes at peak bandwidth, work at peak rate, the dependent chain).");
    kkt_document_item(document,
                      "Chunk size is not chosen by one kernel's own time: small chunks write fewer "
                      "bytes here and cost more in the kernel that consumes the result. The whole "
                      "curve is shown; of the rows of a kernel those at the chunk size of the "
                      "fastest pipeline that uses it are bold, at C = %d until one is timed.",
                      KKT_DEFAULT_CHUNK);
    kkt_document_item(document, "A question mark after a figure: not confirmed from a source.");
}

/* Which entry of a problem: "C = 64"; a kernel without chunks has one. */
static const char *place_of(const kkt_entry *entry, kkt_arena *arena) {
    return entry->chunk > 0 ? kkt_arena_printf(arena, "C = %lld", (long long)entry->chunk)
                            : "the best configuration";
}

bool kkt_content_has_chunks(const kkt_view *view, const char *kernel) {
    for (size_t i = 0; i < view->entry_count; i++)
        if (view->entries[i].chunk > 0 && strcmp(view->entries[i].kernel, kernel) == 0)
            return true;
    return false;
}

/* Problems whose best time may be that of the style that happened to be timed. */
static void add_untimed(const kkt_view *view, const char *kernel, kkt_document *document) {
    for (size_t i = 0; i < view->entry_count; i++) {
        const kkt_entry *best = &view->entries[i];
        if (!best->best_of_problem || strcmp(best->kernel, kernel) != 0)
            continue;
        const kkt_entry *untimed = kkt_view_untimed(view, best);
        char time[32], predicted[32];
        if (untimed != NULL)
            kkt_document_item(
                document,
                "%s: the best time is %s us (%s, %s), but nothing of style %s was timed, which is "
                "predicted to take %s us (%s).",
                kkt_content_problem(view, best, document->arena),
                kkt_content_real(best->time_us, time), best->style, place_of(best, document->arena),
                untimed->style, kkt_content_real(untimed->predicted_us, predicted),
                place_of(untimed, document->arena));
    }
}

static void add_winners(const kkt_view *view, const char *kernel, kkt_document *document) {
    static const char *const headings[] = {
        "Problem",         "#C",         "Style",       "Configuration", "#Time, us", "#Ties",
        "#Relative error", "#Tolerance", "#Energy, mJ", "Provenance",    NULL};
    kkt_document_heading(document, 3, "%s: winners and ties", kernel);
    kkt_block *table =
        kkt_document_table(document,
                           kkt_content_has_chunks(view, kernel)
                               ? "The best configuration of each problem, chunk size and style"
                               : "The best configuration of each problem and style",
                           headings);
    for (size_t i = 0; i < view->entry_count; i++) {
        const kkt_entry *entry = &view->entries[i];
        if (strcmp(entry->kernel, kernel) != 0)
            continue;
        kkt_row *row = kkt_document_row(document, table);
        row->strong = kkt_content_stands(view, entry);
        kkt_document_cell(document, row, "%s", kkt_content_problem(view, entry, document->arena));
        kkt_content_chunk(document, row, entry->chunk);
        kkt_document_cell(document, row, "%s", entry->style);
        kkt_document_cell(document, row, "%s",
                          short_config(view, kernel, entry->config, document->arena));
        char time[32];
        if (kkt_entry_measured(entry))
            kkt_document_cell(document, row, "%s%s", kkt_content_real(entry->time_us, time),
                              entry->noisy       ? " (noisy)"
                              : entry->disturbed ? " (disturbed)"
                                                 : "");
        else
            kkt_document_cell(document, row, "%s predicted",
                              kkt_content_real(entry->predicted_us, time));
        kkt_content_cell_int(document, row, (int64_t)entry->tie_count);
        kkt_content_cell_real(document, row, entry->rel_fro);
        kkt_content_cell_real(document, row, entry->tolerance);
        kkt_content_cell_real(document, row, entry->energy_mj);
        kkt_document_cell(document, row, "%s", kkt_entry_shown(entry));
    }
    add_untimed(view, kernel, document);
    for (size_t i = 0; i < view->entry_count; i++) {
        const kkt_entry *entry = &view->entries[i];
        if (strcmp(entry->kernel, kernel) != 0 || entry->tie_count == 0)
            continue;
        kkt_text ties = {0};
        for (size_t t = 0; t < entry->tie_count && t < TIES_SHOWN; t++)
            kkt_text_printf(&ties, "%s%s", t == 0 ? "" : "; ",
                            short_config(view, kernel, entry->ties[t], document->arena));
        if (entry->tie_count > TIES_SHOWN)
            kkt_text_printf(&ties, "; and %zu more", entry->tie_count - TIES_SHOWN);
        const char *summary = kkt_arena_printf(document->arena, "Ties of %s, style %s, %s",
                                               kkt_content_problem(view, entry, document->arena),
                                               entry->style, place_of(entry, document->arena));
        kkt_document_folded(document, summary, "%s.", kkt_text_get(&ties));
        kkt_text_free(&ties);
    }
}

static void add_provenance(const kkt_view *view, kkt_document *document) {
    static const char *const headings[] = {"Kernel",     "Style",         "Problem",         "#C",
                                           "Provenance", "Measured on",   "Driver",          "Date",
                                           "#Samples",   "Kernel source", "Why it is stale", NULL};
    kkt_document_heading(document, 2, "Where every number comes from");
    kkt_document_paragraph(
        document, "Registers and shared memory: from the compiler where the provenance is not "
                  "'predicted', else from the model; blocks per SM follow from them. HBM bytes, "
                  "chain, share, "
                  "lower bound, predicted time and limiter: always from the model. Measured time, "
                  "interval and error: from the run named here.");
    kkt_block *table = kkt_document_table(document, "One row an entry", headings);
    for (size_t i = 0; i < view->entry_count; i++) {
        const kkt_entry *entry = &view->entries[i];
        if (entry->model_only)
            continue;
        kkt_row *row = kkt_document_row(document, table);
        kkt_document_cell(document, row, "%s", entry->kernel);
        kkt_document_cell(document, row, "%s", entry->style);
        kkt_document_cell(document, row, "%s", kkt_content_problem(view, entry, document->arena));
        kkt_content_chunk(document, row, entry->chunk);
        kkt_document_cell(document, row, "%s",
                          kkt_entry_made_up(entry) ? "fake"
                                                   : kkt_provenance_name(entry->provenance));
        kkt_document_cell(document, row, "%s", entry->gpu != NULL ? entry->gpu : "-");
        kkt_document_cell(document, row, "%s", entry->driver != NULL ? entry->driver : "-");
        kkt_document_cell(document, row, "%.10s", entry->date != NULL ? entry->date : "-");
        kkt_content_cell_int(document, row, kkt_entry_measured(entry) ? entry->samples : -1);
        kkt_document_cell(document, row, "%.16s",
                          entry->kernel_hash != NULL ? entry->kernel_hash : "-");
        kkt_document_cell(document, row, "%s",
                          entry->stale_reason != NULL ? entry->stale_reason : "-");
    }
    kkt_document_item(document, "SMs: %s; clock: %s; HBM bandwidth: %s; L2: %s.",
                      kkt_source_name(view->device->sm_count.source),
                      kkt_source_name(view->device->clock_ghz.source),
                      kkt_source_name(view->device->hbm_gbps.source),
                      kkt_source_name(view->device->l2_bytes.source));
}

/* Whether some style of the kernel has device code. */
static bool has_device_code(const kkt_view *view, const char *kernel) {
    for (size_t i = 0; i < view->entry_count; i++)
        if (!view->entries[i].model_only && strcmp(view->entries[i].kernel, kernel) == 0)
            return true;
    return false;
}

static void add_kernel(const kkt_view *view, const kkt_entry *first, bool device_code,
                       kkt_document *out) {
    const char *kernel = first->kernel;
    kkt_document_heading(out, 2, "%s", kernel);
    add_shared(view, first, out);
    if (!device_code)
        kkt_document_paragraph(out, "The model knows this kernel's styles; it has no device "
                                    "code yet, so nothing of it is measured or exported.");
    kkt_content_resources(view, kernel, out);
    if (!device_code)
        return;
    kkt_content_scatter(view, kernel, out);
    add_winners(view, kernel, out);
    kkt_content_baselines(view, kernel, out);
    kkt_content_counters(view, kernel, out);
    kkt_content_pareto(view, kernel, out);
    kkt_content_effects(view, kernel, out);
}

/* One part a kernel, wherever its entries are: those with device code, or those without. */
static void add_kernels(const kkt_view *view, bool device_code, kkt_document *out) {
    for (size_t i = 0, j; i < view->entry_count; i++) {
        const kkt_entry *entry = &view->entries[i];
        for (j = 0; j < i && strcmp(view->entries[j].kernel, entry->kernel) != 0; j++)
            ;
        if (j == i && has_device_code(view, entry->kernel) == device_code)
            add_kernel(view, entry, device_code, out);
    }
}

void kkt_content_make(const kkt_view *view, kkt_arena *arena, kkt_document *out) {
    memset(out, 0, sizeof *out);
    out->arena = arena;
    out->title = kkt_arena_printf(arena, "kkttune report: %s, %s", view->arch->name,
                                  view->device->full_name);
    kkt_document_heading(out, 1, "%s", out->title);
    add_summary(view, out);
    add_model_error(view, out);
    add_reading(out);
    kkt_content_objective(view, out);
    kkt_content_pipelines(view, out);
    add_kernels(view, true, out);
    add_kernels(view, false, out);
    kkt_content_claims(view, out);
    kkt_content_rejects(view, out);
    add_provenance(view, out);
}
