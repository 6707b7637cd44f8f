/* An ablation as kkttune.ablate/1. */
#include <math.h>
#include <string.h>

#include "reports/ablation.h"

static void add_reading(kkt_json *parent, const char *key, const kkt_reading *reading) {
    if (!kkt_reading_known(reading))
        return;
    kkt_json *object = kkt_json_add_object(parent, key);
    kkt_json_add_real(object, "value", reading->value);
    if (reading->low < reading->high) {
        kkt_json_add_real(object, "low", reading->low);
        kkt_json_add_real(object, "high", reading->high);
    }
}

/* Members predicted, compiled, counted, timed: each with the figures that are known. */
static void add_figures(kkt_json *parent, const kkt_ablation_point *point) {
    kkt_json *all = kkt_json_add_object(parent, "figures");
    for (kkt_evidence e = 0; e < KKT_EVIDENCE_COUNT; e++) {
        kkt_json *object = kkt_json_add_object(all, kkt_evidence_name(e));
        for (kkt_figure f = 0; f < KKT_FIGURE_COUNT; f++)
            add_reading(object, kkt_figure_name(f), &point->figures[e][f]);
    }
}

static void add_changes(kkt_json *parent, const kkt_ablation_row *row) {
    kkt_json *all = kkt_json_add_object(parent, "changes");
    for (kkt_evidence e = 0; e < KKT_EVIDENCE_COUNT; e++) {
        kkt_json *object = kkt_json_add_object(all, kkt_evidence_name(e));
        for (kkt_figure f = 0; f < KKT_FIGURE_COUNT; f++) {
            kkt_reading change = kkt_ablation_change(row, e, f);
            add_reading(object, kkt_figure_name(f), &change);
        }
    }
}

static void add_point(kkt_json *parent, const char *key, const kkt_ablation_point *point) {
    kkt_json *object = kkt_json_add_object(parent, key);
    kkt_json_add_string(object, "config", point->config);
    kkt_json_add_string(object, "outcome", point->outcome);
    kkt_json_add_string(object, "reason",
                        point->point->reason ? point->point->reason : point->reason);
    kkt_json_add_string(object, "provenance", kkt_provenance_name(point->provenance));
    kkt_json_add_string(object, "stale_reason", point->stale_reason);
    kkt_json_add_string(object, "gpu", point->gpu);
    kkt_json_add_string(object, "driver", point->driver);
    kkt_json_add_string(object, "limiter",
                        point->point->known ? kkt_limiter_name(point->point->prediction.limiter)
                                            : NULL);
    add_figures(object, point);
}

static void add_move(kkt_json *array, const kkt_ablation_row *row) {
    kkt_json *object = kkt_json_add_object(array, NULL);
    kkt_json_add_string(object, "move", row->move->label);
    kkt_json_add_string(object, "parameter", row->move->param->name);
    kkt_json_add_string(object, "effect", kkt_ablation_effect(row));
    kkt_json_add_string(object, "reason", row->reason);
    add_point(object, "to", row->to);
    add_changes(object, row);
}

static void add_comparison(kkt_json *array, int64_t chunk, const kkt_ablation_row *row) {
    kkt_json *object = kkt_json_add_object(array, NULL);
    kkt_json_add_int(object, "chunk", chunk);
    kkt_json_add_string(object, "condition", row->move->label);
    kkt_json_add_string(object, "expected", kkt_expectation_name(row->move->comparison->expect));
    kkt_json_add_real(object, "within", row->move->comparison->within);
    kkt_json_add_string(object, "decided_by", kkt_evidence_name(row->decided_by));
    kkt_json_add_string(object, "verdict", kkt_finding_name(row->finding));
    kkt_json_add_string(object, "reason", row->reason);
    add_point(object, "from", row->from);
    add_point(object, "to", row->to);
    add_changes(object, row);
}

static void add_claim(const kkt_ablation_set *set, const kkt_claim_summary *summary,
                      kkt_json *array) {
    kkt_json *object = kkt_json_add_object(array, NULL);
    kkt_json_add_string(object, "name", summary->claim->name);
    kkt_json_add_string(object, "statement", summary->claim->statement);
    kkt_json_add_string(object, "account", summary->claim->account);
    kkt_json_add_string(object, "figure", kkt_figure_name(summary->claim->figure));
    kkt_json_add_string(object, "verdict", kkt_finding_name(summary->finding));
    kkt_json_add_string(object, "where", summary->where);
    kkt_json *comparisons = kkt_json_add_array(object, "comparisons");
    for (size_t a = 0; a < set->count; a++)
        for (size_t i = 0; i < set->ablations[a].row_count; i++)
            if (set->ablations[a].rows[i].move->claim == summary->claim)
                add_comparison(comparisons, set->ablations[a].chunk, &set->ablations[a].rows[i]);
}

void kkt_ablation_json(const kkt_ablation_set *set, kkt_json *root) {
    kkt_arena *arena = kkt_arena_open();
    kkt_text problem = {0};
    kkt_params_format(&set->kernel->problem, &set->problem, &problem);
    kkt_json_add_string(root, "schema", "kkttune.ablate/1");
    kkt_json_add_string(root, "arch", set->arch->name);
    kkt_json_add_string(root, "device", set->device->full_name);
    kkt_json_add_string(root, "device_id", set->device->name);
    kkt_json_add_string(root, "kernel", set->kernel->name);
    kkt_json_add_string(root, "style", kkt_style_get(set->variant->style)->name);
    kkt_json_add_string(root, "problem", kkt_text_get(&problem));
    kkt_json *claims = kkt_json_add_array(root, "claims");
    size_t count;
    kkt_claim_summary *summaries = kkt_ablation_claims(set, arena, &count);
    for (size_t i = 0; i < count; i++)
        add_claim(set, &summaries[i], claims);
    kkt_json *ablations = kkt_json_add_array(root, "ablations");
    for (size_t a = 0; a < set->count; a++) {
        const kkt_ablation *ablation = &set->ablations[a];
        kkt_json *object = kkt_json_add_object(ablations, NULL);
        kkt_json_add_int(object, "chunk", ablation->chunk);
        kkt_json_add_string(object, "tier", ablation->tier);
        kkt_json_add_string(object, "base_from", ablation->origin);
        add_point(object, "base", &ablation->points[0]);
        kkt_json *moves = kkt_json_add_array(object, "moves");
        for (size_t i = 0; i < ablation->row_count; i++)
            if (ablation->rows[i].move->claim == NULL)
                add_move(moves, &ablation->rows[i]);
    }
    kkt_text_free(&problem);
    kkt_arena_close(arena);
}
