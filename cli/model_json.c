/* kkttune.model/1: docs/formats.md. */
#include <stdio.h>

#include "cli/model_query.h"
#include "model/ledger.h"

static void add_ledger_row(const kkt_model_query *query, kkt_json *array, int64_t chunk,
                           int64_t base) {
    kkt_ledger l;
    if (base > chunk || kkt_ledger_compute(chunk, base, query->dk, query->dv,
                                           (int)kkt_dtype_bytes(query->dtype), &l, NULL))
        return;
    kkt_json *row = kkt_json_add_object(array, NULL);
    kkt_json_add_int(row, "chunk", l.chunk);
    kkt_json_add_int(row, "base", l.base);
    kkt_json_add_int(row, "dk", l.dk);
    kkt_json_add_int(row, "dv", l.dv);
    kkt_json_add_int(row, "chain_row", l.chain_row);
    kkt_json_add_int(row, "chain_recursive", l.chain_recursive);
    kkt_json_add_int(row, "chain_flat", l.chain_flat);
    kkt_json_add_int(row, "fma_row", l.fma_row);
    kkt_json_add_int(row, "fma_recursive", l.fma_recursive);
    kkt_json_add_int(row, "fma_flat", l.fma_flat);
    kkt_json_add_int(row, "recursion_levels", l.recursion_levels);
    kkt_json_add_int(row, "diagonal_blocks", l.diagonal_blocks);
    kkt_json_add_int(row, "coupling_gemm_pairs", l.coupling_gemm_pairs);
    kkt_json_add_real(row, "fma_inverse_per_token", l.fma_inverse_per_token);
    kkt_json_add_int(row, "fma_main_per_token_seed", l.fma_main_per_token_seed);
    kkt_json_add_real(row, "inverse_share_seed", l.inverse_share_seed);
    kkt_json_add_int(row, "fma_main_per_token_full", l.fma_main_per_token_full);
    kkt_json_add_real(row, "inverse_share_full", l.inverse_share_full);
    kkt_json_add_real(row, "state_bytes_per_token", l.state_bytes_per_token);
    kkt_json_add_int(row, "t_write_bytes_per_token", l.t_write_bytes_per_token);
    kkt_json_add_int(row, "table_fp32_bytes", l.table_fp32_bytes);
    kkt_json *registers = kkt_json_add_object(row, "table_regs_per_thread");
    for (size_t t = 0; t < query->threads.count; ++t) {
        char key[24];
        snprintf(key, sizeof key, "%lld", (long long)query->threads.values[t]);
        kkt_json_add_real(registers, key,
                          kkt_ledger_table_registers(chunk, (int)query->threads.values[t]));
    }
}

typedef struct json_context {
    const kkt_model_query *query;
    kkt_json *array;
} json_context;

static void add_layout(void *context, const kkt_layout *layout) {
    const json_context *json = context;
    kkt_json *row = kkt_json_add_object(json->array, NULL);
    kkt_json_add_string(row, "name", layout->name);
    kkt_json_add_int(row, "chunk", layout->chunk);
    kkt_json_add_int(row, "block_dv", layout->block_dv);
    kkt_json_add_int(row, "buffers", layout->buffers);
    kkt_json_add_int(row, "threads", layout->threads);
    kkt_json *parts = kkt_json_add_object(row, "parts");
    for (int i = 0; i < layout->part_count; ++i)
        if (!layout->parts[i].reuses)
            kkt_json_add_int(parts, layout->parts[i].name, layout->parts[i].bytes);
    kkt_json *overlays = kkt_json_add_object(row, "overlays");
    for (int i = 0; i < layout->part_count; ++i)
        if (layout->parts[i].reuses)
            kkt_json_add_string(overlays, layout->parts[i].name, layout->parts[i].reuses);
    kkt_json_add_int(row, "total", layout->total);
    kkt_json_add_int(row, "blocks_per_sm", kkt_layout_blocks_per_sm(layout, json->query->arch));
}

static void add_hbm(const kkt_model_query *query, kkt_json *traffic) {
    kkt_json *array = kkt_json_add_array(traffic, "hbm");
    const int64_t *chunks;
    size_t count = kkt_model_chunks(query, 4, &chunks);
    for (size_t p = 0; p < query->problem_count; ++p) {
        const kkt_attention *a = &query->problems[p];
        for (size_t c = 0; c < count; ++c) {
            kkt_json *row = kkt_json_add_object(array, NULL);
            kkt_json_add_string(row, "kernel", "kkt_solve");
            kkt_json_add_int(row, "tokens", a->tokens);
            kkt_json_add_int(row, "heads_k", a->heads_k);
            kkt_json_add_int(row, "heads_v", a->heads_v);
            kkt_json_add_int(row, "dk", a->dk);
            kkt_json_add_int(row, "chunk", chunks[c]);
            kkt_json_add_int(row, "gated", a->gated);
            kkt_json_add_int(row, "bytes", kkt_traffic_solve_bytes(a, chunks[c]));
            kkt_json_add_int(row, "flop", kkt_traffic_solve_flop(a, chunks[c], 16));
        }
        kkt_json *row = kkt_json_add_object(array, NULL);
        kkt_json_add_string(row, "kernel", "gdn_fwd");
        kkt_json_add_int(row, "tokens", a->tokens);
        kkt_json_add_int(row, "heads_k", a->heads_k);
        kkt_json_add_int(row, "heads_v", a->heads_v);
        kkt_json_add_int(row, "dk", a->dk);
        kkt_json_add_int(row, "dv", a->dv);
        kkt_json_add_int(row, "sequences", a->sequences);
        kkt_json_add_int(row, "bytes", kkt_traffic_forward_bytes(a));
    }
}

static void add_stage_row(kkt_json *array, int64_t chunk, int64_t base) {
    kkt_stage stages[KKT_STAGES_MAX];
    int count = kkt_stage_widths(chunk, base, stages);
    kkt_json *row = kkt_json_add_object(array, NULL);
    kkt_json_add_int(row, "chunk", chunk);
    kkt_json_add_int(row, "base", base);
    kkt_json *list = kkt_json_add_array(row, "stages");
    for (int i = 0; i < count; ++i) {
        kkt_json *stage = kkt_json_add_object(list, NULL);
        kkt_json_add_string(stage, "kind", stages[i].coupling ? "coupling" : "substitution");
        kkt_json_add_int(stage, "depth", stages[i].depth);
        kkt_json_add_int(stage, "tasks", stages[i].tasks);
        kkt_json_add_int(stage, "outputs", stages[i].outputs);
    }
}

/* Without --chunk and --base: what the article shows, C = 32, 64 and 128 over blocks of 16. */
static void add_stage_widths(const kkt_model_query *query, kkt_json *traffic) {
    kkt_json *array = kkt_json_add_array(traffic, "stage_widths");
    for (size_t c = 0; c < query->chunks.count; ++c)
        for (size_t b = 0; b < query->bases.count; ++b) {
            int64_t chunk = query->chunks.values[c], base = query->bases.values[b];
            bool shown = (query->chunks.given || (chunk > 16 && chunk <= 128)) &&
                         (query->bases.given || base == 16);
            kkt_ledger row;
            if (shown && base <= chunk && !kkt_ledger_compute(chunk, base, 1, 1, 2, &row, NULL))
                add_stage_row(array, chunk, base);
        }
}

static void add_gemm_row(const kkt_model_query *query, kkt_json *array, kkt_gemm_tile tile) {
    int element_bytes = (int)kkt_dtype_bytes(query->dtype);
    kkt_json *row = kkt_json_add_object(array, NULL);
    kkt_json_add_int(row, "bm", tile.bm);
    kkt_json_add_int(row, "bn", tile.bn);
    kkt_json_add_int(row, "bk", tile.bk);
    kkt_json_add_int(row, "threads", tile.threads);
    kkt_json_add_int(row, "stages", tile.stages);
    kkt_json_add_string(row, "operands", tile.operands_in_registers ? "fragment" : "shared");
    kkt_json_add_real(row, "accumulator_regs", kkt_gemm_accumulator_registers(&tile));
    kkt_json_add_real(row, "operand_fragment_regs",
                      kkt_gemm_operand_registers(&tile, element_bytes));
    kkt_json_add_int(row, "smem_bytes", kkt_gemm_smem_bytes(&tile, element_bytes));
}

static void add_gemm(const kkt_model_query *query, kkt_json *traffic) {
    kkt_json *array = kkt_json_add_array(traffic, "gemm");
    size_t count;
    const kkt_gemm_tile *tiles = kkt_gemm_tiles(&count);
    for (size_t i = 0; i < count; ++i)
        for (size_t t = 0; t < (query->threads.given ? query->threads.count : 1); ++t) {
            kkt_gemm_tile tile = tiles[i];
            if (query->threads.given)
                tile.threads = (int)query->threads.values[t];
            add_gemm_row(query, array, tile);
        }
}

static void add_bank(const kkt_model_query *query, kkt_json *traffic) {
    kkt_json *array = kkt_json_add_array(traffic, "bank");
    for (size_t b = 0; b < query->bases.count; ++b)
        for (int64_t pad = 0; pad <= 1; ++pad) {
            int64_t base = query->bases.values[b], offset;
            if (!query->bases.given && base != 16)
                continue;
            int wavefronts = kkt_bank_substitution(base, pad, &offset);
            kkt_json *row = kkt_json_add_object(array, NULL);
            kkt_json_add_string(row, "case", "substitution");
            if (base != 16)
                kkt_json_add_int(row, "base", base);
            kkt_json_add_int(row, "block_pad", pad);
            kkt_json_add_int(row, "offset", offset);
            kkt_json_add_int(row, "bank", offset % 32);
            kkt_json_add_int(row, "wavefronts", wavefronts);
        }
    array = kkt_json_add_array(traffic, "transposed_store");
    for (int64_t stride = 16; stride <= 17; ++stride) {
        kkt_json *row = kkt_json_add_object(array, NULL);
        kkt_json_add_int(row, "base", 16);
        kkt_json_add_int(row, "row_stride", stride);
        kkt_json_add_int(row, "wavefronts", kkt_bank_transposed_store(16, stride));
    }
}

static void add_config(kkt_json *row, const kkt_style_row *style) {
    kkt_json *config = kkt_json_add_object(row, "config");
    const kkt_param_table *table = &style->variant->params;
    for (size_t i = 0; i < table->count; ++i) {
        char buffer[24];
        if (style->missing[0] != '\0' && (style->asked >> i & 1) == 0)
            continue;
        if (table->params[i].names)
            kkt_json_add_string(
                config, table->params[i].name,
                kkt_param_value_text(&table->params[i], style->config.v[i], buffer));
        else
            kkt_json_add_int(config, table->params[i].name, style->config.v[i]);
    }
}

/* The keys of a row without a configuration: what was asked for, why there is none, and null for
 * what nobody can know. */
static void add_missing(kkt_json *row, const kkt_style_row *style) {
    static const char *const unknown[] = {"registers",     "register_demand",     "table_registers",
                                          "smem_bytes",    "hbm_bytes_per_token", "hbm_bytes",
                                          "blocks_per_sm", "occupancy_limiter",   "limiter",
                                          "chain_steps",   "lower_bound_us",      "predicted_us"};
    int threads = kkt_params_find(&style->variant->params, "threads");
    if (threads >= 0 && (style->asked >> threads & 1) != 0)
        kkt_json_add_int(row, "threads", style->config.v[threads]);
    else
        kkt_json_add_string(row, "threads", NULL);
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; ++i)
        kkt_json_add_string(row, unknown[i], NULL);
    kkt_json_add_bool(row, "feasible", false);
    kkt_json_add_bool(row, "spills", false);
    kkt_json_add_bool(row, "may_spill", false);
    kkt_json_add_bool(row, "calibrated", false);
    kkt_json_add_string(row, "reason", style->missing);
}

static void add_style(void *context, const kkt_style_row *style) {
    const json_context *json = context;
    const kkt_prediction *p = &style->prediction;
    char reason[400];
    kkt_json *row = kkt_json_add_object(json->array, NULL);
    kkt_json_add_string(row, "kernel", style->kernel->name);
    kkt_json_add_string(row, "style", kkt_style_get(style->variant->style)->name);
    kkt_json_add_int(row, "chunk", style->chunk);
    add_config(row, style);
    if (style->missing[0] != '\0') {
        add_missing(row, style);
        return;
    }
    kkt_prediction_reason(&style->footprint, json->query->arch, json->query->device, p, reason,
                          sizeof reason);
    kkt_json_add_int(row, "threads", style->footprint.threads);
    kkt_json_add_int(row, "registers", p->registers);
    kkt_json_add_real(row, "register_demand", p->register_demand);
    kkt_json_add_real(row, "table_registers", p->table_registers);
    kkt_json_add_int(row, "smem_bytes", p->smem_bytes);
    kkt_json_add_real(row, "hbm_bytes_per_token", p->hbm_bytes_per_token);
    kkt_json_add_real(row, "hbm_bytes", p->hbm_bytes);
    kkt_json_add_int(row, "blocks_per_sm", p->occupancy.blocks_per_sm);
    kkt_json_add_string(row, "occupancy_limiter", kkt_limiter_name(p->occupancy.limiter));
    kkt_json_add_bool(row, "feasible", p->infeasible == KKT_FEASIBLE);
    kkt_json_add_bool(row, "spills", p->spills);
    kkt_json_add_bool(row, "may_spill", p->at_the_cap);
    kkt_json_add_string(row, "limiter", kkt_limiter_name(p->limiter));
    kkt_json_add_string(row, "reason", reason);
    kkt_json_add_real(row, "chain_steps", p->chain_steps);
    kkt_json_add_real(row, "lower_bound_us", p->lower_bound_us);
    kkt_json_add_real(row, "predicted_us", p->predicted_us);
    kkt_json_add_bool(row, "calibrated", p->calibrated);
}

void kkt_model_print_json(const kkt_model_query *query) {
    kkt_json *root = kkt_json_object();
    kkt_json_add_string(root, "schema", "kkttune.model/1");
    kkt_json_add_string(root, "arch", query->arch->name);
    kkt_json_add_string(root, "device", query->device->name);
    kkt_json_add_string(root, "device_name", query->device->full_name);
    kkt_json *ledger = kkt_json_add_array(root, "ledger");
    for (size_t b = 0; b < query->bases.count; ++b)
        for (size_t c = 0; c < query->chunks.count; ++c)
            add_ledger_row(query, ledger, query->chunks.values[c], query->bases.values[b]);
    json_context context = {query, kkt_json_add_array(root, "layouts")};
    kkt_model_layouts(query, add_layout, &context);
    kkt_json *traffic = kkt_json_add_object(root, "traffic");
    add_hbm(query, traffic);
    add_stage_widths(query, traffic);
    add_gemm(query, traffic);
    add_bank(query, traffic);
    context.array = kkt_json_add_array(root, "styles");
    kkt_model_styles(query, add_style, &context);
    kkt_print_json(root);
}
