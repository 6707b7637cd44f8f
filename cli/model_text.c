/* The model's tables for a person. */
#include <stdio.h>

#include "cli/model_article.h"
#include "cli/model_query.h"
#include "model/ledger.h"

#define OPEN(headings) kkt_table_open(sizeof(headings) / sizeof(headings)[0], headings)

static const char *mark(kkt_source source) {
    return source == KKT_SOURCE_UNCONFIRMED ? "?" : "";
}

static void finish(kkt_table *table) {
    kkt_table_print(table, stdout);
    kkt_table_close(table);
    putchar('\n');
}

static void print_fact(const char *what, kkt_fact fact, const char *unit) {
    if (fact.value > 0)
        printf("  %-28s %.6g%s %s (%s)\n", what, fact.value, mark(fact.source), unit,
               kkt_source_name(fact.source));
}

static void print_heading(const kkt_model_query *query) {
    const kkt_arch *a = query->arch;
    const kkt_device *d = query->device;
    kkt_fact l2 = d->l2_bytes;
    l2.value /= 1048576;
    printf("%s (%s, compute capability %d.%d), device row %s: %s\n", a->name, a->generation,
           a->major, a->minor, d->name, d->full_name);
    printf("  per SM: %d warps, %d blocks, %d registers, %d KB of shared memory (a block: %d KB, "
           "the driver keeps %d B)\n",
           a->max_warps_per_sm, a->max_blocks_per_sm, a->registers_per_sm,
           a->smem_per_sm_bytes / 1024, a->smem_optin_bytes / 1024, a->smem_reserved_bytes);
    print_fact("SMs", d->sm_count, "");
    print_fact("clock", d->clock_ghz, "GHz");
    print_fact("memory", d->hbm_gbps, "GB/s");
    print_fact("memory, clock x width", d->peak_gbps, "GB/s");
    print_fact("copy, read + written", d->copy_gbps, "GB/s");
    print_fact("read alone", d->read_gbps, "GB/s");
    print_fact("L2", l2, "MB");
    print_fact("L2 to an SM", a->l2_bytes_per_clock_sm, "B/clock");
    print_fact("dense bf16", kkt_device_tensor_rate(d, a), "FLOP/clock/SM");
    print_fact("mma.sync", a->mma_sync_flop_per_clock_sm, "FLOP/clock/SM");
    print_fact("fp32", a->fp32_flop_per_clock_sm, "FLOP/clock/SM");
    if (d->note)
        printf("  note: %s\n", d->note);
    putchar('\n');
}

static bool ledger_row(const kkt_model_query *query, size_t base, size_t chunk, kkt_ledger *out) {
    return query->bases.values[base] <= query->chunks.values[chunk] &&
           !kkt_ledger_compute(query->chunks.values[chunk], query->bases.values[base], query->dk,
                               query->dv, (int)kkt_dtype_bytes(query->dtype), out, NULL);
}

static void print_inverse(const kkt_model_query *query) {
    static const char *const headings[] = {"C",     "base",      "steps row", "recursive",
                                           "flat",  "FMA row",   "recursive", "flat",
                                           "x row", "per token", "levels",    "coupling pairs"};
    printf("Inverting a unit lower-triangular C x C matrix (dependent steps, multiply-adds)\n");
    kkt_table *table = OPEN(headings);
    for (size_t b = 0; b < query->bases.count; ++b)
        for (size_t c = 0; c < query->chunks.count; ++c) {
            kkt_ledger l;
            if (!ledger_row(query, b, c, &l))
                continue;
            kkt_table_cell(table, "%lld", (long long)l.chunk);
            kkt_table_cell(table, "%lld", (long long)l.base);
            kkt_table_cell(table, "%lld", (long long)l.chain_row);
            kkt_table_cell(table, "%lld", (long long)l.chain_recursive);
            kkt_table_cell(table, "%lld", (long long)l.chain_flat);
            kkt_table_cell(table, "%lld", (long long)l.fma_row);
            kkt_table_cell(table, "%lld", (long long)l.fma_recursive);
            kkt_table_cell(table, "%lld", (long long)l.fma_flat);
            kkt_table_cell(table, "%.2f",
                           l.fma_row ? (double)l.fma_recursive / (double)l.fma_row : 1);
            kkt_table_cell(table, "%.0f", l.fma_inverse_per_token);
            kkt_table_cell(table, "%lld", (long long)l.recursion_levels);
            kkt_table_cell(table, "%lld", (long long)l.coupling_gemm_pairs);
        }
    finish(table);
}

static void print_ledger(const kkt_model_query *query) {
    static const char *const headings[] = {
        "C",       "main FMA (article)", "share",       "main FMA (full)", "share",
        "state B", "T write B",          "C^2 fp32 KB", "regs a thread"};
    size_t base = query->bases.given ? 0 : 1;
    printf("Per token and value head, dk = %lld, dv = %lld, %s, inverse to blocks of %lld; a C^2 "
           "table's registers at",
           (long long)query->dk, (long long)query->dv, kkt_dtype_name(query->dtype),
           (long long)query->bases.values[base]);
    for (size_t t = 0; t < query->threads.count; ++t)
        printf("%s%lld", t ? "/" : " ", (long long)query->threads.values[t]);
    printf(" threads\n");
    kkt_table *table = OPEN(headings);
    for (size_t c = 0; c < query->chunks.count; ++c) {
        kkt_ledger l;
        char registers[256] = "";
        if (!ledger_row(query, base, c, &l))
            continue;
        for (size_t t = 0, at = 0; t < query->threads.count && at < sizeof registers; ++t)
            at += (size_t)snprintf(
                registers + at, sizeof registers - at, "%s%.4g", t ? "/" : "",
                kkt_ledger_table_registers(l.chunk, (int)query->threads.values[t]));
        kkt_table_cell(table, "%lld", (long long)l.chunk);
        kkt_table_cell(table, "%lld", (long long)l.fma_main_per_token_seed);
        kkt_table_cell(table, "%.1f %%", 100 * l.inverse_share_seed);
        kkt_table_cell(table, "%lld", (long long)l.fma_main_per_token_full);
        kkt_table_cell(table, "%.1f %%", 100 * l.inverse_share_full);
        kkt_table_cell(table, "%.6g", l.state_bytes_per_token);
        kkt_table_cell(table, "%lld", (long long)l.t_write_bytes_per_token);
        kkt_table_cell(table, "%.4g", (double)l.table_fp32_bytes / 1024);
        kkt_table_cell(table, "%s", registers);
    }
    kkt_table_print(table, stdout);
    kkt_table_close(table);
    printf("State bytes: where the state goes through HBM each chunk; a fused kernel keeps it on "
           "chip. T is read again downstream.\n\n");
}

static void print_stages(const kkt_model_query *query) {
    static const char *const headings[] = {"C", "base", "stage", "steps", "tasks", "outputs"};
    printf("Parallel width of the recursive inverse's stages\n");
    kkt_table *table = OPEN(headings);
    for (size_t b = 0; b < query->bases.count; ++b)
        for (size_t c = 0; c < query->chunks.count; ++c) {
            kkt_ledger l;
            kkt_stage stages[KKT_STAGES_MAX];
            if (!ledger_row(query, b, c, &l) || (!query->bases.given && l.base != 16))
                continue;
            int count = kkt_stage_widths(l.chunk, l.base, stages);
            for (int i = 0; i < count; ++i) {
                kkt_table_cell(table, "%lld", (long long)l.chunk);
                kkt_table_cell(table, "%lld", (long long)l.base);
                kkt_table_cell(table, "%s", stages[i].coupling ? "coupling" : "substitution");
                kkt_table_cell(table, "%lld", (long long)stages[i].depth);
                kkt_table_cell(table, "%lld", (long long)stages[i].tasks);
                kkt_table_cell(table, "%lld", (long long)stages[i].outputs);
            }
        }
    finish(table);
}

typedef struct text_context {
    const kkt_model_query *query;
    kkt_table *table;
} text_context;

static void layout_cells(void *context, const kkt_layout *layout) {
    const text_context *text = context;
    kkt_table_cell(text->table, "%s", layout->name);
    kkt_table_cell(text->table, "%lld", (long long)layout->chunk);
    kkt_table_cell(text->table, "%lld", (long long)layout->block_dv);
    kkt_table_cell(text->table, "%d", layout->buffers);
    kkt_table_cell(text->table, "%.1f", (double)layout->total / 1024);
    kkt_table_cell(text->table, "%d", kkt_layout_blocks_per_sm(layout, text->query->arch));
}

static void print_layouts(const kkt_model_query *query) {
    static const char *const headings[] = {"layout", "C",  "block_dv",
                                           "copies", "KB", "blocks per SM by shared memory"};
    printf("Shared memory of a block (buffer by buffer: --json)\n");
    text_context context = {query, OPEN(headings)};
    kkt_model_layouts(query, layout_cells, &context);
    finish(context.table);
}

static void print_hbm(const kkt_model_query *query) {
    static const char *const headings[] = {"T",      "Hk", "Hv", "dk",    "dv",
                                           "kernel", "C",  "MB", "GFLOP", "us at peak"};
    const int64_t *chunks;
    size_t count = kkt_model_chunks(query, 4, &chunks);
    double peak = kkt_device_peak_gbps(query->device) * 1e3;
    printf("Bytes through HBM, each input and output once\n");
    kkt_table *table = OPEN(headings);
    for (size_t p = 0; p < query->problem_count; ++p)
        for (size_t c = 0; c <= count; ++c) {
            const kkt_attention *a = &query->problems[p];
            bool solve = c < count;
            double bytes = solve ? (double)kkt_traffic_solve_bytes(a, chunks[c])
                                 : (double)kkt_traffic_forward_bytes(a);
            kkt_table_cell(table, "%lld", (long long)a->tokens);
            kkt_table_cell(table, "%lld", (long long)a->heads_k);
            kkt_table_cell(table, "%lld", (long long)a->heads_v);
            kkt_table_cell(table, "%lld", (long long)a->dk);
            kkt_table_cell(table, "%lld", (long long)a->dv);
            kkt_table_cell(table, "%s", solve ? "kkt_solve" : "gdn_fwd");
            if (solve)
                kkt_table_cell(table, "%lld", (long long)chunks[c]);
            else
                kkt_table_cell(table, "%s", "any");
            kkt_table_cell(table, "%.1f", bytes / 1e6);
            if (solve)
                kkt_table_cell(table, "%.1f",
                               (double)kkt_traffic_solve_flop(a, chunks[c], 16) / 1e9);
            else
                kkt_table_cell(table, "%s", "-");
            kkt_table_cell(table, "%.1f", bytes / peak);
        }
    finish(table);
}

enum { STYLE_FIGURES = 9 }; /* columns between threads and configuration */

/* A row that was asked for and does not exist: the reason stands where the configuration would. */
static void missing_cells(const text_context *text, const kkt_style_row *row) {
    int threads = kkt_params_find(&row->variant->params, "threads");
    kkt_table_cell(text->table, "%s", row->kernel->name);
    kkt_table_cell(text->table, "%s", kkt_style_get(row->variant->style)->name);
    kkt_table_cell(text->table, "%lld", (long long)row->chunk);
    if (threads >= 0 && (row->asked >> threads & 1) != 0)
        kkt_table_cell(text->table, "%lld", (long long)row->config.v[threads]);
    else
        kkt_table_cell(text->table, "-");
    for (int i = 0; i < STYLE_FIGURES; ++i)
        kkt_table_cell(text->table, "-");
    kkt_table_cell(text->table, "%s", row->missing);
}

static void style_cells(void *context, const kkt_style_row *row) {
    const text_context *text = context;
    const kkt_prediction *p = &row->prediction;
    if (row->missing[0] != '\0') {
        missing_cells(text, row);
        return;
    }
    kkt_text config = {0};
    kkt_params_format(&row->variant->params, &row->config, &config);
    kkt_table_cell(text->table, "%s", row->kernel->name);
    kkt_table_cell(text->table, "%s", kkt_style_get(row->variant->style)->name);
    kkt_table_cell(text->table, "%lld", (long long)row->chunk);
    kkt_table_cell(text->table, "%d", row->footprint.threads);
    kkt_table_cell(text->table, "%d%s", p->registers,
                   p->spills       ? " spills"
                   : p->at_the_cap ? " may spill"
                                   : "");
    kkt_table_cell(text->table, "%.1f", (double)p->smem_bytes / 1024);
    kkt_table_cell(text->table, "%.0f", p->hbm_bytes_per_token);
    kkt_table_cell(text->table, "%d", p->occupancy.blocks_per_sm);
    kkt_table_cell(text->table, "%s", kkt_limiter_name(p->occupancy.limiter));
    kkt_table_cell(text->table, "%.0f", p->chain_steps);
    if (p->infeasible == KKT_FEASIBLE) {
        kkt_table_cell(text->table, "%.1f", p->lower_bound_us);
        kkt_table_cell(text->table, "%.1f", p->predicted_us);
    } else {
        kkt_table_cell(text->table, "%s", "cannot");
        kkt_table_cell(text->table, "%s", "launch");
    }
    kkt_table_cell(text->table, "%s", kkt_limiter_name(p->limiter));
    kkt_table_cell(text->table, "%s", kkt_text_get(&config));
    kkt_text_free(&config);
}

static void print_styles(const kkt_model_query *query) {
    static const char *const headings[] = {
        "kernel",    "style",      "C",     "threads",     "regs",         "smem KB", "HBM B/token",
        "blocks/SM", "stopped by", "chain", "at least us", "predicted us", "limiter", "config"};
    _Static_assert(sizeof headings / sizeof headings[0] == 5 + STYLE_FIGURES, "a cell a heading");
    const kkt_attention *a = &query->problems[0];
    printf("Kernels of this project at their best predicted configuration; T %lld, Hk %lld, Hv "
           "%lld, dk %lld, dv %lld\n",
           (long long)a->tokens, (long long)a->heads_k, (long long)a->heads_v, (long long)a->dk,
           (long long)a->dv);
    text_context context = {query, OPEN(headings)};
    kkt_model_styles(query, style_cells, &context);
    kkt_table_print(context.table, stdout);
    kkt_table_close(context.table);
    printf("Times come from the architecture table, not from a calibration of this device: use "
           "them to rank.\n");
}

void kkt_model_print_text(const kkt_model_query *query) {
    print_heading(query);
    print_inverse(query);
    print_ledger(query);
    print_stages(query);
    kkt_model_print_article();
    print_layouts(query);
    print_hbm(query);
    print_styles(query);
}
