/* The two prints of `kkttune explain`. */
#include <inttypes.h>
#include <stdio.h>

#include "base/text.h"
#include "cli/explain.h"

static const char *value_text(const explain_move *move, int64_t value, char buffer[24]) {
    return kkt_param_value_text(move->param, value, buffer);
}

static void format(const kkt_param_table *table, const kkt_values *values, kkt_text *out) {
    kkt_params_format(table, values, out);
}

static int64_t blocks_of(const kkt_launch *launch) {
    return (int64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
}

static int64_t threads_of(const kkt_launch *launch) {
    return (int64_t)launch->block[0] * launch->block[1] * launch->block[2];
}

/* ---- JSON ---- */

static void add_prediction(kkt_json *out, const kkt_prediction *p) {
    kkt_json_add_int(out, "registers", p->registers);
    kkt_json_add_int(out, "smem_bytes", p->smem_bytes);
    kkt_json_add_int(out, "dynamic_smem_bytes", p->dynamic_smem_bytes);
    kkt_json_add_int(out, "most_smem_bytes", p->most_smem_bytes);
    kkt_json_add_real(out, "hbm_bytes", p->hbm_bytes);
    kkt_json_add_real(out, "hbm_bytes_per_token", p->hbm_bytes_per_token);
    kkt_json_add_int(out, "blocks_per_sm", p->occupancy.blocks_per_sm);
    kkt_json_add_int(out, "warps_per_sm", p->occupancy.warps_per_sm);
    kkt_json_add_string(out, "blocks_limiter", kkt_limiter_name(p->occupancy.limiter));
    kkt_json_add_string(out, "limiter", kkt_limiter_name(p->limiter));
    kkt_json_add_bool(out, "feasible", p->infeasible == KKT_FEASIBLE);
    kkt_json_add_bool(out, "spills", p->spills);
    kkt_json_add_bool(out, "may_spill", p->at_the_cap);
    kkt_json_add_real(out, "chain_steps", p->chain_steps);
    kkt_json_add_real(out, "lower_bound_us", p->lower_bound_us);
    kkt_json_add_real(out, "predicted_us", p->predicted_us);
    kkt_json_add_bool(out, "calibrated", p->calibrated);
}

static void add_compiled(kkt_json *root, const explain_query *q) {
    if (!q->compiled) {
        kkt_json_add_string(root, "compiled", NULL);
        kkt_json_add_string(root, "compiled_note", q->compile_note);
        return;
    }
    kkt_json *out = kkt_json_add_object(root, "compiled");
    kkt_json_add_string(out, "compiler", q->compiler);
    kkt_json_add_int(out, "registers", q->info.registers);
    kkt_json_add_int(out, "smem_bytes",
                     q->info.static_smem_bytes + q->here.prediction.dynamic_smem_bytes);
    kkt_json_add_int(out, "spill_store_bytes", q->info.spill_store_bytes);
    kkt_json_add_int(out, "spill_load_bytes", q->info.spill_load_bytes);
    kkt_json_add_int(out, "stack_bytes", q->info.stack_bytes);
    kkt_json_add_int(out, "barriers", q->info.barriers);
    kkt_json_add_int(out, "blocks_per_sm", q->compiled_blocks.blocks_per_sm);
    kkt_json_add_string(out, "blocks_limiter", kkt_limiter_name(q->compiled_blocks.limiter));
}

static void add_limits(kkt_json *root, const explain_query *q) {
    kkt_json *list = kkt_json_add_array(root, "limits");
    for (int i = 0; i < KKT_OCCUPANCY_LIMITS; i++) {
        const explain_limit *limit = &q->limits[i];
        if (limit->unit == NULL)
            continue;
        kkt_json *row = kkt_json_add_object(list, NULL);
        kkt_json_add_string(row, "name", kkt_limiter_name((kkt_limiter)i));
        kkt_json_add_string(row, "unit", limit->unit);
        kkt_json_add_int(row, "blocks_per_sm", limit->blocks_per_sm);
        kkt_json_add_int(row, "used", limit->used);
        if (limit->headroom < 0)
            kkt_json_add_string(row, "headroom", NULL);
        else
            kkt_json_add_int(row, "headroom", limit->headroom);
    }
}

static void add_moves(kkt_json *root, const explain_query *q) {
    kkt_json *list = kkt_json_add_array(root, "moves");
    for (int i = 0; i < q->move_count; i++) {
        const explain_move *move = &q->moves[i];
        char buffer[24];
        kkt_json *row = kkt_json_add_object(list, NULL);
        kkt_json_add_string(row, "name", move->param->name);
        kkt_json_add_string(row, "of", move->of_problem ? "problem" : "config");
        kkt_json_add_string(row, "from", value_text(move, move->from, buffer));
        kkt_json_add_string(row, "to", value_text(move, move->to, buffer));
        kkt_json_add_string(row, "verdict", explain_verdict_name(move->verdict));
        kkt_json_add_string(row, "reason", move->reason);
        if (move->verdict != EXPLAIN_REJECTED)
            add_prediction(row, &move->prediction);
    }
}

static void add_launches(kkt_json *root, const explain_query *q) {
    kkt_json *list = kkt_json_add_array(root, "launches");
    for (int i = 0; i < q->plan.launch_count; i++) {
        const kkt_launch *launch = &q->plan.launches[i];
        kkt_json *row = kkt_json_add_object(list, NULL);
        kkt_json_add_string(row, "entry", launch->entry);
        kkt_json_add_int(row, "blocks", blocks_of(launch));
        kkt_json_add_int(row, "threads", threads_of(launch));
        kkt_json_add_int(row, "dynamic_smem_bytes", launch->dynamic_smem_bytes);
        kkt_json_add_bool(row, "timed", !launch->untimed);
    }
    kkt_json_add_int(root, "workspace_bytes", q->workspace_bytes);
}

static void add_faster(kkt_json *root, const explain_query *q) {
    kkt_text config = {0};
    if (q->faster == NULL)
        return;
    format(&q->faster->params, &q->faster_config, &config);
    kkt_json *out = kkt_json_add_object(root, "faster_style");
    kkt_json_add_string(out, "style", kkt_style_get(q->faster->style)->name);
    kkt_json_add_string(out, "config", kkt_text_get(&config));
    kkt_json_add_real(out, "predicted_us", q->faster_us);
    kkt_text_free(&config);
}

void explain_print_json(const explain_query *q) {
    kkt_text problem = {0}, config = {0};
    format(&q->kernel->problem, &q->problem, &problem);
    format(&q->variant->params, &q->config, &config);
    kkt_json *root = kkt_json_object();
    kkt_json_add_string(root, "schema", "kkttune.explain/1");
    kkt_json_add_string(root, "kernel", q->kernel->name);
    kkt_json_add_string(root, "style", kkt_style_get(q->variant->style)->name);
    kkt_json_add_string(root, "arch", q->arch->name);
    kkt_json_add_string(root, "device", q->device->name);
    kkt_json_add_string(root, "device_name", q->device->full_name);
    kkt_json_add_string(root, "problem", kkt_text_get(&problem));
    kkt_json_add_string(root, "config", kkt_text_get(&config));
    if (q->config_note[0] != '\0')
        kkt_json_add_string(root, "config_note", q->config_note);
    kkt_json *predicted = kkt_json_add_object(root, "predicted");
    add_prediction(predicted, &q->here.prediction);
    kkt_json_add_string(predicted, "reason", q->here.reason);
    add_launches(root, q);
    add_faster(root, q);
    add_compiled(root, q);
    add_limits(root, q);
    add_moves(root, q);
    kkt_print_json(root);
    kkt_text_free(&problem);
    kkt_text_free(&config);
}

/* ---- text ---- */

static void compiled_cell(kkt_table *table, const explain_query *q, int64_t value) {
    if (q->compiled)
        kkt_table_cell(table, "%" PRId64, value);
    else
        kkt_table_cell(table, "%s", "");
}

static void print_resources(const explain_query *q) {
    const kkt_prediction *p = &q->here.prediction;
    static const char *const headings[] = {"resource", "predicted", "compiled"};
    kkt_table *table = kkt_table_open(3, headings);
    kkt_table_cell(table, "registers per thread");
    kkt_table_cell(table, "%d", p->registers);
    compiled_cell(table, q, q->info.registers);
    kkt_table_cell(table, "bytes spilled per thread");
    kkt_table_cell(table, "%s", p->spills ? "some" : p->at_the_cap ? "0 or a few" : "0");
    compiled_cell(table, q, q->info.spill_store_bytes);
    kkt_table_cell(table, "bytes of shared memory");
    kkt_table_cell(table, "%" PRId64, p->smem_bytes);
    compiled_cell(table, q, q->info.static_smem_bytes + p->dynamic_smem_bytes);
    if (p->most_smem_bytes > p->smem_bytes) {
        kkt_table_cell(table, "of the launch that takes most");
        kkt_table_cell(table, "%" PRId64, p->most_smem_bytes);
        kkt_table_cell(table, "%s", "");
    }
    kkt_table_cell(table, "blocks per SM");
    kkt_table_cell(table, "%d", p->occupancy.blocks_per_sm);
    compiled_cell(table, q, q->compiled_blocks.blocks_per_sm);
    const bool chunks = q->kernel->chunk_param != NULL; /* of a sequence of tokens */
    kkt_table_cell(table, "%s", chunks ? "HBM bytes per token" : "HBM bytes");
    kkt_table_cell(table, "%.0f", chunks ? p->hbm_bytes_per_token : p->hbm_bytes);
    kkt_table_cell(table, "%s", "");
    if (chunks) {
        kkt_table_cell(table, "dependent steps a chunk");
        kkt_table_cell(table, "%.0f", p->chain_steps);
        kkt_table_cell(table, "%s", "");
    }
    kkt_table_print(table, stdout);
    kkt_table_close(table);
    if (!q->compiled)
        printf("Not compiled: %s\n", q->compile_note);
}

static void print_limits(const explain_query *q) {
    static const char *const headings[] = {"limit", "blocks per SM", "used", "headroom", "of"};
    kkt_table *table = kkt_table_open(5, headings);
    for (int i = 0; i < KKT_OCCUPANCY_LIMITS; i++) {
        const explain_limit *limit = &q->limits[i];
        if (limit->unit == NULL)
            continue;
        kkt_table_cell(table, "%s", kkt_limiter_name((kkt_limiter)i));
        kkt_table_cell(table, "%d", limit->blocks_per_sm);
        kkt_table_cell(table, "%" PRId64, limit->used);
        if (limit->headroom < 0)
            kkt_table_cell(table, "any");
        else
            kkt_table_cell(table, "%" PRId64, limit->headroom);
        kkt_table_cell(table, "%s", limit->unit);
    }
    printf("\nHeadroom is what can be added before an SM holds one block less:\n");
    kkt_table_print(table, stdout);
    kkt_table_close(table);
}

static void print_move(kkt_table *table, const explain_move *move) {
    const kkt_prediction *p = &move->prediction;
    char from[24], to[24];
    kkt_table_cell(table, "%s %s -> %s", move->param->name, value_text(move, move->from, from),
                   value_text(move, move->to, to));
    kkt_table_cell(table, "%s", explain_verdict_name(move->verdict));
    if (move->verdict == EXPLAIN_REJECTED) {
        for (int i = 0; i < 4; i++)
            kkt_table_cell(table, "%s", "");
        kkt_table_cell(table, "%s", move->reason);
        return;
    }
    kkt_table_cell(table, "%d", p->registers);
    kkt_table_cell(table, "%" PRId64, p->smem_bytes);
    kkt_table_cell(table, "%d", p->occupancy.blocks_per_sm);
    if (p->infeasible == KKT_FEASIBLE)
        kkt_table_cell(table, "%.1f", p->predicted_us);
    else
        kkt_table_cell(table, "%s", "");
    kkt_table_cell(table, "%s",
                   p->infeasible != KKT_FEASIBLE ? move->reason : kkt_limiter_name(p->limiter));
}

static void print_moves(const explain_query *q) {
    static const char *const headings[] = {"one value moved", "then",         "registers", "smem",
                                           "blocks per SM",   "predicted us", "limited by"};
    kkt_table *table = kkt_table_open(7, headings);
    for (int verdict = EXPLAIN_INFEASIBLE; verdict <= EXPLAIN_REJECTED; verdict++)
        for (int i = 0; i < q->move_count; i++)
            if ((int)q->moves[i].verdict == verdict)
                print_move(table, &q->moves[i]);
    printf("\nWhat breaks first, worst on top:\n");
    kkt_table_print(table, stdout);
    kkt_table_close(table);
}

/* One launch is what the resources say already. */
static void print_launches(const explain_query *q) {
    static const char *const headings[] = {"launch", "blocks", "threads", "dynamic smem", ""};
    if (q->plan.launch_count < 2 && q->workspace_bytes == 0)
        return;
    kkt_table *table = kkt_table_open(5, headings);
    for (int i = 0; i < q->plan.launch_count; i++) {
        const kkt_launch *launch = &q->plan.launches[i];
        kkt_table_cell(table, "%s", launch->entry);
        kkt_table_cell(table, "%" PRId64, blocks_of(launch));
        kkt_table_cell(table, "%" PRId64, threads_of(launch));
        kkt_table_cell(table, "%" PRId64, launch->dynamic_smem_bytes);
        kkt_table_cell(table, "%s", launch->untimed ? "not in the time" : "");
    }
    printf("\n");
    kkt_table_print(table, stdout);
    kkt_table_close(table);
    printf("%" PRId64 " bytes of workspace beside the kernel's tensors\n", q->workspace_bytes);
}

/* The configuration is the model's choice at this chunk size, not the style's defaults. */
static void print_faster(const explain_query *q) {
    kkt_text config = {0};
    if (q->faster == NULL)
        return;
    format(&q->faster->params, &q->faster_config, &config);
    printf("Style %s is predicted to take %.4g us here; '--style %s --config %s' explains it.\n",
           kkt_style_get(q->faster->style)->name, q->faster_us,
           kkt_style_get(q->faster->style)->name, kkt_text_get(&config));
    kkt_text_free(&config);
}

void explain_print_text(const explain_query *q) {
    kkt_text problem = {0}, config = {0};
    format(&q->kernel->problem, &q->problem, &problem);
    format(&q->variant->params, &q->config, &config);
    printf("%s (%s) on %s, %s\n  %s\n  %s\n", q->kernel->name,
           kkt_style_get(q->variant->style)->name, q->arch->name, q->device->full_name,
           kkt_text_get(&problem), kkt_text_get(&config));
    if (q->config_note[0] != '\0')
        printf("  (%s)\n", q->config_note);
    printf("%s\n", q->here.reason);
    print_faster(q);
    printf("\n");
    print_resources(q);
    print_launches(q);
    print_limits(q);
    print_moves(q);
    kkt_text_free(&problem);
    kkt_text_free(&config);
}
