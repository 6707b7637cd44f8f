/* What is claimed of such kernels in print, held against the model and against what was measured.
 * The claims are data; no kernel is named: a claim about a parameter is held against every kernel
 * that has it. */
#include <math.h>
#include <string.h>

#include "model/occupancy.h"
#include "reports/canonical.h"
#include "reports/content.h"
#include "reports/contrast.h"

/* "A configuration with `param` = `better` beats the same one with `worse`." */
typedef struct claim {
    const char *text;
    int64_t chunk;
    const char *param, *better, *worse;
} claim;

static const claim claims[] = {
    {
        .text = "blocked recursion (chain 31 -> 17, 1.88 times the arithmetic) beats row-wise "
                "substitution",
        .chunk = 32,
        .param = "inverse",
        .better = "recursive",
        .worse = "row",
    },
    {
        .text = "blocked recursion (chain 63 -> 19, 2.02 times the arithmetic) beats row-wise "
                "substitution",
        .chunk = 64,
        .param = "inverse",
        .better = "recursive",
        .worse = "row",
    },
    {
        .text = "recursion (19 steps) beats the flat block form (21 steps, less arithmetic)",
        .chunk = 64,
        .param = "inverse",
        .better = "recursive",
        .worse = "flat",
    },
    {
        .text = "recursion (21 steps) beats the flat block form (29 steps, less arithmetic)",
        .chunk = 128,
        .param = "inverse",
        .better = "recursive",
        .worse = "flat",
    },
    {
        .text = "a block stride of 17 x 16 removes the 2-way bank conflict",
        .chunk = 64,
        .param = "block_pad",
        .better = "1",
        .worse = "0",
    },
    {
        .text = "the intermediate must be transposed in shared memory",
        .chunk = 64,
        .param = "transpose",
        .better = "1",
        .worse = "0",
    },
    {
        .text = "negating at extraction saves a pass",
        .chunk = 64,
        .param = "negate_early",
        .better = "1",
        .worse = "0",
    },
    {
        .text = "one fused assembly loop saves three barriers",
        .chunk = 64,
        .param = "assemble_fused",
        .better = "1",
        .worse = "0",
    },
};

static void add_time(kkt_document *document, kkt_row *row, const kkt_entry *entry) {
    char time[32], interval[80];
    kkt_document_cell(document, row, "%s us [%s] (%s)", kkt_content_real(entry->time_us, time),
                      kkt_content_interval(entry->low_us, entry->high_us, interval),
                      kkt_entry_shown(entry));
}

static void add_gain(kkt_document *document, kkt_row *row, const kkt_contrasts *contrasts) {
    if (contrasts->count == 0) {
        kkt_document_cell(document, row, "-");
        return;
    }
    double most = 100.0 * contrasts->pairs[0].gain;
    double least = 100.0 * contrasts->pairs[contrasts->count - 1].gain;
    if (contrasts->count == 1)
        kkt_document_cell(document, row, "%+.1f %%", most);
    else
        kkt_document_cell(document, row, "%+.1f to %+.1f %%", least, most);
}

/* The verdict on "faster with it"; the numbers of pairs stand behind what only some of them say. */
static void add_verdict(kkt_document *document, kkt_row *row, const kkt_contrasts *contrasts) {
    const char *finding = kkt_contrasts_finding(contrasts, document->arena);
    if (contrasts->count == 0)
        kkt_document_cell(document, row, "%s", finding);
    else if (contrasts->faster > 0 && contrasts->slower > 0)
        kkt_document_cell(document, row, "only under conditions: %s", finding);
    else if (contrasts->faster > 0)
        kkt_document_cell(document, row, "holds: %s", finding);
    else if (contrasts->slower > 0)
        kkt_document_cell(document, row, "does not hold: %s", finding);
    else
        kkt_document_cell(document, row, "no difference beyond the noise");
}

/* The pair with the fastest result of all. */
static const kkt_contrast *fastest(const kkt_contrasts *contrasts) {
    const kkt_contrast *best = NULL;
    double time = (double)INFINITY;
    for (size_t i = 0; i < contrasts->count; i++) {
        const kkt_contrast *pair = &contrasts->pairs[i];
        double least = fmin(pair->with->time_us, pair->without->time_us);
        if (least < time) {
            time = least;
            best = pair;
        }
    }
    return best;
}

static void add_claim(const kkt_view *view, const claim *said, const kkt_entry *like,
                      kkt_document *document, kkt_block *table) {
    const kkt_contrast_query query = {.kernel = like->kernel,
                                      .style = like->style,
                                      .chunk = said->chunk,
                                      .param = said->param,
                                      .with = said->better,
                                      .without = said->worse};
    kkt_contrasts contrasts;
    kkt_contrasts_find(view, &query, document->arena, &contrasts);
    const kkt_contrast *pair = fastest(&contrasts);
    kkt_row *row = kkt_document_row(document, table);
    kkt_document_cell(document, row, "%s, %s", like->kernel, like->style);
    kkt_document_cell(document, row, "%lld", (long long)said->chunk);
    kkt_document_cell(document, row, "%s (%s = %s against %s)", said->text, said->param,
                      said->better, said->worse);
    kkt_document_cell(document, row, "%zu", contrasts.count);
    add_gain(document, row, &contrasts);
    if (pair != NULL) {
        add_time(document, row, pair->with);
        add_time(document, row, pair->without);
    } else {
        kkt_document_cell(document, row, "-");
        kkt_document_cell(document, row, "-");
    }
    add_verdict(document, row, &contrasts);
}

/* Whether a kernel and style have the parameter's value at the chunk size at all. */
static bool concerns(const kkt_view *view, const claim *said, const kkt_entry *like) {
    for (size_t i = 0; i < view->row_count; i++) {
        const kkt_entry *row = &view->rows[i];
        if (row->chunk == said->chunk && strcmp(row->kernel, like->kernel) == 0 &&
            strcmp(row->style, like->style) == 0 &&
            kkt_pair_is(row->config, said->param, said->better))
            return true;
    }
    return false;
}

static void add_parameter_claims(const kkt_view *view, kkt_document *document) {
    static const char *const headings[] = {"Kernel",
                                           "#C",
                                           "Claim",
                                           "#Pairs",
                                           "#Faster by",
                                           "Fastest pair: with it",
                                           "Without (or against)",
                                           "Verdict",
                                           NULL};
    kkt_block *table = NULL;
    for (size_t c = 0; c < sizeof claims / sizeof claims[0]; c++) {
        for (size_t i = 0; i < view->entry_count; i++) {
            const kkt_entry *entry = &view->entries[i];
            bool seen = i > 0 && strcmp(entry[-1].kernel, entry->kernel) == 0 &&
                        strcmp(entry[-1].style, entry->style) == 0;
            if (seen || !concerns(view, &claims[c], entry))
                continue;
            if (table == NULL)
                table = kkt_document_table(document,
                                           "Pairs of measured results that differ in the claim's "
                                           "parameter alone",
                                           headings);
            add_claim(view, &claims[c], entry, document, table);
        }
    }
}

/* Published layout of a warp-specialized fused forward: 512 threads, q/k/v/a double-buffered. */
static void add_blocks_claim(const kkt_view *view, kkt_document *document, kkt_block *table,
                             int chunk, int kib) {
    enum { THREADS = 512 };
    int registers = view->arch->registers_per_sm / THREADS;
    kkt_occupancy_request request = {
        .threads = THREADS, .registers = registers, .dynamic_smem = (int64_t)kib * 1024};
    kkt_occupancy occupancy;
    kkt_occupancy_compute(view->arch, &request, &occupancy);
    kkt_row *row = kkt_document_row(document, table);
    kkt_document_cell(document, row, "warp-specialized forward, C = %d, %d KiB, %d threads", chunk,
                      kib, THREADS);
    kkt_document_cell(document, row, "%d", occupancy.limits[KKT_LIMIT_SHARED_MEMORY]);
    kkt_document_cell(document, row, "%d", occupancy.limits[KKT_LIMIT_REGISTERS]);
    kkt_document_cell(document, row, "%d", occupancy.blocks_per_sm);
    kkt_document_cell(document, row, "%s",
                      occupancy.limits[KKT_LIMIT_SHARED_MEMORY] > occupancy.blocks_per_sm
                          ? "counting shared memory alone promises too many blocks: its roles need "
                            "the whole register file"
                          : (occupancy.blocks_per_sm == 0 ? "does not fit at all"
                                                          : "shared memory is the limit"));
}

static void add_model_claims(const kkt_view *view, kkt_document *document) {
    static const char *const headings[] = {"Layout",         "#By shared memory", "#By registers",
                                           "#Blocks per SM", "What it means",     NULL};
    kkt_block *table = kkt_document_table(
        document, "Blocks per SM of a published layout on this architecture", headings);
    add_blocks_claim(view, document, table, 32, 63);
    add_blocks_claim(view, document, table, 64, 137);
    static const int chunks[] = {32, 64, 128};
    for (size_t i = 0; i < sizeof chunks / sizeof chunks[0]; i++) {
        int demand = 3 * chunks[i] * chunks[i] / 128;
        kkt_document_item(document,
                          "Three C x C fp32 tables in registers at C = %d take %d registers a "
                          "thread at 128 threads, %d at 256: %s.",
                          chunks[i], demand, demand / 2,
                          demand > view->arch->max_registers_per_thread
                              ? "above the limit at 128 threads, so they spill to local memory"
                              : "they fit");
    }
}

void kkt_content_claims(const kkt_view *view, kkt_document *document) {
    kkt_document_heading(document, 2, "Published claims, checked");
    kkt_document_paragraph(document,
                           "What is said in print about these kernels, beside what this database "
                           "and the model of %s say. What parameters are worth on an H200, each "
                           "timed in turns with its base, is in docs/experiments.md.",
                           view->arch->name);
    add_parameter_claims(view, document);
    add_model_claims(view, document);
}
