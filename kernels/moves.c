#include "kernels/moves.h"

#include <string.h>

typedef struct builder {
    const kkt_kernel *kernel;
    const kkt_variant *variant;
    const kkt_values *problem;
    const kkt_arch *arch;
    const kkt_device *device;
    kkt_arena *arena;
    kkt_move_set *set;
} builder;

static void judge(const builder *b, kkt_move_point *point) {
    char reason[512] = "";
    if (!b->variant->applicable(b->problem, &point->config, b->arch, reason, sizeof reason)) {
        point->reason = kkt_arena_strdup(b->arena, reason);
        return;
    }
    point->known = true;
    b->variant->footprint(b->problem, &point->config, b->arch, &point->footprint);
    kkt_predict(&point->footprint, b->arch, b->device, NULL, &point->prediction);
    if (point->prediction.infeasible != KKT_FEASIBLE) {
        kkt_prediction_reason(&point->footprint, b->arch, b->device, &point->prediction, reason,
                              sizeof reason);
        point->reason = kkt_arena_strdup(b->arena, reason);
    }
}

static size_t point_of(const builder *b, const kkt_values *config) {
    kkt_move_set *set = b->set;
    for (size_t i = 0; i < set->point_count; i++) {
        if (kkt_values_equal(&b->variant->params, &set->points[i].config, config)) {
            return i;
        }
    }
    set->points[set->point_count].config = *config;
    judge(b, &set->points[set->point_count]);
    return set->point_count++;
}

static void add_single_moves(const builder *b) {
    const kkt_param_table *table = &b->variant->params;
    const kkt_values base = b->set->points[0].config;
    for (size_t i = 0; i < table->count; i++) {
        const kkt_param *param = &table->params[i];
        if (b->kernel->chunk_param && strcmp(param->name, b->kernel->chunk_param) == 0) {
            continue;
        }
        for (size_t v = 0; v < param->count; v++) {
            kkt_values config = base;
            char from[24];
            char to[24];
            if (param->values[v] == base.v[i]) {
                continue;
            }
            config.v[i] = param->values[v];
            kkt_move *move = &b->set->moves[b->set->move_count++];
            move->to = point_of(b, &config);
            move->param = param;
            move->label = kkt_arena_printf(b->arena, "%s %s -> %s", param->name,
                                           kkt_param_value_text(param, base.v[i], from),
                                           kkt_param_value_text(param, config.v[i], to));
        }
    }
}

/* `patch` over the base, part by part (claim.h). */
static bool patched(const builder *b, const char *patch, kkt_values *out) {
    *out = b->set->points[0].config;
    for (const char *part = patch; part; part = strchr(part, ';')) {
        part += *part == ';';
        const char *text = kkt_arena_printf(b->arena, "%.*s", (int)strcspn(part, ";"), part);
        if (kkt_params_parse(&b->variant->params, text, out, NULL, NULL) != KKT_OK) {
            return false;
        }
    }
    return true;
}

static void add_claim(const builder *b, const kkt_claim *claim) {
    const char *chunk = b->kernel->chunk_param;
    const kkt_param_table *table = &b->variant->params;
    int64_t here = chunk ? kkt_params_get(table, &b->set->points[0].config, chunk) : 0;
    for (size_t i = 0; i < claim->count; i++) {
        const kkt_comparison *comparison = &claim->comparisons[i];
        kkt_values from;
        kkt_values to;
        if ((comparison->chunk != 0 && comparison->chunk != here) ||
            !patched(b, comparison->from, &from) || !patched(b, comparison->to, &to)) {
            continue;
        }
        kkt_move *move = &b->set->moves[b->set->move_count++];
        move->from = point_of(b, &from);
        move->to = point_of(b, &to);
        move->claim = claim;
        move->comparison = comparison;
        move->label = comparison->condition ? comparison->condition : "";
    }
}

/* The most moves there can be; each adds at most two points. */
static size_t most_moves(const kkt_kernel *kernel, const kkt_variant *variant) {
    size_t count = 1;
    for (size_t i = 0; i < variant->params.count; i++) {
        count += variant->params.params[i].count;
    }
    for (size_t i = 0; i < kernel->claim_count; i++) {
        count += kernel->claims[i].count;
    }
    return count;
}

kkt_status kkt_moves_make(const kkt_kernel *kernel, const kkt_variant *variant,
                          const kkt_values *problem, const kkt_values *base, const kkt_arch *arch,
                          const kkt_device *device, kkt_arena *arena, kkt_move_set *out,
                          kkt_error *err) {
    builder b = {kernel, variant, problem, arch, device, arena, out};
    size_t most = most_moves(kernel, variant);
    memset(out, 0, sizeof *out);
    out->points = kkt_arena_array(arena, 2 * most, sizeof *out->points);
    out->moves = kkt_arena_array(arena, most, sizeof *out->moves);
    point_of(&b, base);
    if (out->points[0].reason) {
        return kkt_fail(err, KKT_ERR_INPUT, 0,
                        "the configuration to start from cannot be had: %s; give another with "
                        "--config",
                        out->points[0].reason);
    }
    add_single_moves(&b);
    for (size_t i = 0; i < kernel->claim_count; i++) {
        add_claim(&b, &kernel->claims[i]);
    }
    return KKT_OK;
}
