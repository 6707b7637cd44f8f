#include "reports/baseline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "model/style.h"
#include "reports/canonical.h"
#include "reports/modelled.h"

bool kkt_baseline_is(const kkt_entry *entry) {
    return strcmp(entry->style, kkt_style_get(KKT_STYLE_LIBRARY)->name) == 0;
}

void kkt_baselines_add(kkt_baselines *baselines, const kkt_entry *entry, kkt_arena *arena) {
    if (!kkt_entry_measured(entry))
        return;
    baselines->rows = kkt_arena_grow(arena, baselines->rows, baselines->count, &baselines->capacity,
                                     sizeof *baselines->rows);
    baselines->rows[baselines->count++] =
        (kkt_baseline){.entry = *entry, .ratio = KKT_UNKNOWN_REAL};
}

static int compare(const void *left, const void *right) {
    const kkt_entry *a = &((const kkt_baseline *)left)->entry;
    const kkt_entry *b = &((const kkt_baseline *)right)->entry;
    int order = kkt_entry_compare_problem(a, b);
    if (order == 0)
        order = (a->chunk > b->chunk) - (a->chunk < b->chunk);
    return order != 0 ? order : kkt_entry_compare(a, b);
}

static bool same_text(const char *a, const char *b, size_t length) {
    return strncmp(a != NULL ? a : "", b != NULL ? b : "", length) == 0;
}

/* The fastest entry by time, whatever the view goes by. */
static const kkt_entry *find_tuned(const kkt_view *view, const kkt_entry *call) {
    const kkt_entry *best = NULL;
    for (size_t i = 0; i < view->entry_count; i++) {
        const kkt_entry *entry = &view->entries[i];
        if (!kkt_entry_measured(entry) || entry->chunk != call->chunk ||
            strcmp(entry->kernel, call->kernel) != 0 || strcmp(entry->problem, call->problem) != 0)
            continue;
        kkt_rank rank = kkt_entry_rank(entry);
        if (best == NULL || rank > kkt_entry_rank(best) ||
            (rank == kkt_entry_rank(best) && entry->time_us < best->time_us))
            best = entry;
    }
    return best;
}

void kkt_baselines_finish(kkt_baselines *baselines, const char *kernel, kkt_view *view) {
    size_t kept = 0;
    for (size_t i = 0; i < baselines->count; i++) {
        kkt_baseline *row = &baselines->rows[i];
        if (kernel != NULL && strcmp(row->entry.kernel, kernel) != 0)
            continue;
        row->tuned = find_tuned(view, &row->entry);
        if (row->tuned != NULL) {
            enum { DAY = 10, WHOLE = 256 }; /* characters: of a date the day */
            row->ratio = row->entry.time_us / row->tuned->time_us;
            row->together = same_text(row->entry.date, row->tuned->date, DAY) &&
                            same_text(row->entry.gpu, row->tuned->gpu, WHOLE) &&
                            same_text(row->entry.driver, row->tuned->driver, WHOLE);
        }
        baselines->rows[kept++] = *row;
    }
    if (kept > 0)
        qsort(baselines->rows, kept, sizeof *baselines->rows, compare);
    view->baselines = baselines->rows;
    view->baseline_count = kept;
}

/* Whether a parameter matters to the call: not the chunk size, which is told apart, nor one that
 * its other parameters give no effect. */
static bool tells(const kkt_entry *entry, const char *key) {
    const kkt_kernel *kernel;
    const kkt_variant *variant;
    kkt_values config;
    if (!kkt_modelled_find(entry->kernel, entry->style, &kernel, &variant))
        return strcmp(key, "chunk") != 0;
    const kkt_param_table *table = &variant->params;
    const int at = kkt_params_find(table, key);
    kkt_params_defaults(table, &config);
    if (at < 0 || kkt_params_parse(table, entry->config, &config, NULL, NULL) != KKT_OK)
        return true;
    const kkt_param *param = &table->params[at];
    const bool effect = param->depends_on == 0 ||
                        ((param->depends_values >> config.v[param->depends_on - 1]) & 1) != 0;
    return effect && (kernel->chunk_param == NULL || strcmp(key, kernel->chunk_param) != 0);
}

const char *kkt_baseline_call(const kkt_entry *entry, kkt_arena *arena) {
    const char *text = entry->config;
    kkt_text out = {0};
    kkt_pair pair;
    while (kkt_pair_next(&text, &pair))
        if (tells(entry, pair.key))
            kkt_text_printf(&out, "%s%s=%s", out.length > 0 ? ", " : "", pair.key, pair.text);
    const char *copy = kkt_arena_strdup(arena, kkt_text_get(&out));
    kkt_text_free(&out);
    return copy;
}
