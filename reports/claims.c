/* What is claimed of such kernels in print, held against the model and against what was measured.
 * The claims are data; no kernel is named: a claim about a parameter is held against every kernel
 * that has it. */
#include <math.h>
#include <string.h>

#include "model/occupancy.h"
#include "reports/content.h"

/* "A configuration with `param` = `better` beats one with `worse`." */
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

static const kkt_entry *find_effect(const kkt_view *view, const kkt_effect *like,
                                    const char *value) {
    for (size_t i = 0; i < view->effect_count; i++) {
        const kkt_effect *effect = &view->effects[i];
        if (effect->chunk == like->chunk && strcmp(effect->param, like->param) == 0 &&
            strcmp(effect->kernel, like->kernel) == 0 && strcmp(effect->style, like->style) == 0 &&
            strcmp(effect->problem, like->problem) == 0 && strcmp(effect->value, value) == 0)
            return effect->best;
    }
    return NULL;
}

static void add_times(kkt_document *document, kkt_row *row, const kkt_entry *entry) {
    char time[32], low[32], high[32];
    if (entry == NULL)
        kkt_document_cell(document, row, "not in the database");
    else if (!kkt_entry_measured(entry))
        kkt_document_cell(document, row, "%s us (%s)", kkt_content_real(entry->predicted_us, time),
                          kkt_entry_provenance(entry));
    else
        kkt_document_cell(document, row, "%s us [%s, %s] (%s)",
                          kkt_content_real(entry->time_us, time),
                          kkt_content_real(entry->low_us, low),
                          kkt_content_real(entry->high_us, high), kkt_entry_provenance(entry));
}

static void add_verdict(kkt_document *document, kkt_row *row, const kkt_entry *better,
                        const kkt_entry *worse) {
    if (better == NULL || worse == NULL || !kkt_entry_measured(better) ||
        !kkt_entry_measured(worse)) {
        kkt_document_cell(document, row, "open: needs a measurement of both");
        return;
    }
    double gain = 100.0 * (worse->time_us / better->time_us - 1.0);
    if (better->low_us <= worse->high_us && worse->low_us <= better->high_us)
        kkt_document_cell(document, row, "no difference beyond the noise");
    else if (gain > 0)
        kkt_document_cell(document, row, "holds: %.1f %% faster", gain);
    else
        kkt_document_cell(document, row, "does not hold: %.1f %% slower",
                          100.0 * (better->time_us / worse->time_us - 1.0));
}

static void add_parameter_claims(const kkt_view *view, kkt_document *document) {
    static const char *const headings[] = {
        "Kernel", "#C", "Claim", "With it", "Without (or against)", "Verdict", NULL};
    kkt_block *table = NULL;
    for (size_t c = 0; c < sizeof claims / sizeof claims[0]; c++) {
        for (size_t i = 0; i < view->effect_count; i++) {
            const kkt_effect *effect = &view->effects[i];
            if (effect->chunk != claims[c].chunk || strcmp(effect->param, claims[c].param) != 0 ||
                strcmp(effect->value, claims[c].better) != 0)
                continue;
            if (table == NULL)
                table = kkt_document_table(document,
                                           "The best result with a parameter's value against the "
                                           "best with the other, all else free",
                                           headings);
            const kkt_entry *worse = find_effect(view, effect, claims[c].worse);
            kkt_row *row = kkt_document_row(document, table);
            kkt_document_cell(document, row, "%s", effect->kernel);
            kkt_document_cell(document, row, "%lld", (long long)effect->chunk);
            kkt_document_cell(document, row, "%s (%s = %s against %s)", claims[c].text,
                              claims[c].param, claims[c].better, claims[c].worse);
            add_times(document, row, effect->best);
            add_times(document, row, worse);
            add_verdict(document, row, effect->best, worse);
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
                           "and the model of %s say.",
                           view->arch->name);
    add_parameter_claims(view, document);
    add_model_claims(view, document);
}
