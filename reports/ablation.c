#include "reports/ablation.h"

#include <math.h>
#include <string.h>

#include "reports/view.h"

static kkt_reading exact(double value) {
    return (kkt_reading){value, value, value};
}

static kkt_reading whole(int64_t value) {
    return exact(value < 0 ? KKT_UNKNOWN_REAL : (double)value);
}

/* ---- a configuration's figures ---- */

static void fill_predicted(kkt_ablation_point *out) {
    kkt_reading *f = out->figures[KKT_EVIDENCE_PREDICTED];
    const kkt_prediction *p = &out->point->prediction;
    const kkt_footprint *footprint = &out->point->footprint;
    if (!out->point->known)
        return;
    f[KKT_FIGURE_TIME] = exact(p->predicted_us);
    f[KKT_FIGURE_WAVEFRONTS] = exact(footprint->smem_wavefronts);
    f[KKT_FIGURE_INSTRUCTIONS] = exact(footprint->instructions);
    f[KKT_FIGURE_HBM_BYTES] = exact(p->hbm_bytes);
    f[KKT_FIGURE_REGISTERS] = whole(p->registers);
    f[KKT_FIGURE_SMEM] = whole(p->smem_bytes);
    f[KKT_FIGURE_BLOCKS] = whole(p->occupancy.blocks_per_sm);
}

static void fill_compiled(const kkt_arch *arch, const kkt_build_record *build,
                          kkt_ablation_point *out) {
    kkt_reading *f = out->figures[KKT_EVIDENCE_COMPILED];
    if (build->registers < 0)
        return;
    kkt_occupancy occupancy;
    kkt_occupancy_request request = {.threads = out->point->footprint.threads,
                                     .registers = build->registers,
                                     .dynamic_smem = build->dynamic_smem_bytes,
                                     .static_smem = build->static_smem_bytes,
                                     .barriers = build->barriers};
    kkt_occupancy_compute(arch, &request, &occupancy);
    f[KKT_FIGURE_REGISTERS] = whole(build->registers);
    f[KKT_FIGURE_SPILLS] = whole(build->spill_store_bytes);
    f[KKT_FIGURE_SMEM] = whole(build->static_smem_bytes + build->dynamic_smem_bytes);
    f[KKT_FIGURE_BLOCKS] = whole(occupancy.blocks_per_sm);
}

static kkt_status visit_counter(void *context, const kkt_counter_record *counter, kkt_error *err) {
    (void)err;
    /* Shared memory counts loads and stores apart. */
    static const struct {
        const char *name;
        kkt_figure figure;
    } figures[] = {
        {"smem_load_wavefronts", KKT_FIGURE_WAVEFRONTS},
        {"smem_store_wavefronts", KKT_FIGURE_WAVEFRONTS},
        {"instructions", KKT_FIGURE_INSTRUCTIONS},
        {"dram_read_bytes", KKT_FIGURE_HBM_BYTES},
        {"dram_write_bytes", KKT_FIGURE_HBM_BYTES},
    };
    kkt_ablation_point *out = context;
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) {
        if (strcmp(counter->name, figures[i].name) == 0) {
            kkt_reading *reading = &out->figures[KKT_EVIDENCE_COUNTED][figures[i].figure];
            *reading = exact((isnan(reading->value) ? 0 : reading->value) + counter->value);
        }
    }
    return KKT_OK;
}

static void fill_timed(kkt_arena *arena, const kkt_run_record *run, kkt_ablation_point *out) {
    kkt_reading *time = &out->figures[KKT_EVIDENCE_TIMED][KKT_FIGURE_TIME];
    *time = (kkt_reading){kkt_figure_round(run->time_low_us), kkt_figure_round(run->time_us),
                          kkt_figure_round(run->time_high_us)};
    out->apart = run->policy == NULL || strstr(run->policy, "ablation=") == NULL;
    if (out->apart) {
        time->low = fmin(time->low, time->value * (1 - KKT_TIMED_APART_DRIFT));
        time->high = fmax(time->high, time->value * (1 + KKT_TIMED_APART_DRIFT));
    }
    out->provenance = run->provenance;
    out->gpu = kkt_arena_strdup(arena, run->gpu);
    out->driver = kkt_arena_strdup(arena, run->driver);
}

/* ---- reading the database ---- */

typedef struct reader {
    const kkt_ablation_set *set;
    kkt_arena *arena;
    kkt_ablation *out;
    int64_t *run_ids; /* of the points; 0: none */
} reader;

static kkt_status visit_result(void *context, const kkt_result *result, kkt_error *err) {
    (void)err;
    reader *r = context;
    for (size_t i = 0; i < r->out->point_count; i++) {
        kkt_ablation_point *point = &r->out->points[i];
        if (strcmp(point->config, result->id.config) != 0 || point->point->reason != NULL)
            continue;
        bool timed = result->outcome == KKT_OUTCOME_OK || result->outcome == KKT_OUTCOME_NOISY;
        point->outcome = kkt_outcome_name(result->outcome);
        point->stale_reason = kkt_arena_strdup(r->arena, result->stale_reason);
        point->reason = kkt_arena_strdup(r->arena, result->reason);
        if (result->has_build)
            fill_compiled(r->set->arch, &result->build, point);
        if (result->has_run && timed) {
            fill_timed(r->arena, &result->run, point);
            r->run_ids[i] = result->run_id;
        }
    }
    return KKT_OK;
}

static kkt_status read_points(reader *r, kkt_db *db, const kkt_freshness *freshness,
                              kkt_error *err) {
    const kkt_ablation_set *set = r->set;
    kkt_text problem = {0};
    kkt_params_format(&set->kernel->problem, &set->problem, &problem);
    kkt_result_filter filter = {.kernel = set->kernel->name,
                                .style = kkt_style_get(set->variant->style)->name,
                                .arch = set->arch->name,
                                .device = set->device->name,
                                .problem = kkt_text_get(&problem)};
    kkt_status status = kkt_db_results(db, &filter, freshness, visit_result, r, err);
    for (size_t i = 0; i < r->out->point_count && status == KKT_OK; i++)
        if (r->run_ids[i] > 0)
            status = kkt_db_counters(db, r->run_ids[i], visit_counter, &r->out->points[i], err);
    kkt_text_free(&problem);
    return status;
}

/* ---- rows ---- */

/* What decides a figure, whether or not it is known. */
static kkt_evidence evidence_of(kkt_figure figure) {
    switch (figure) {
    case KKT_FIGURE_TIME:
        return KKT_EVIDENCE_TIMED;
    case KKT_FIGURE_WAVEFRONTS:
    case KKT_FIGURE_INSTRUCTIONS:
    case KKT_FIGURE_HBM_BYTES:
        return KKT_EVIDENCE_COUNTED;
    case KKT_FIGURE_REGISTERS:
    case KKT_FIGURE_SPILLS:
    case KKT_FIGURE_SMEM:
    case KKT_FIGURE_BLOCKS:
    case KKT_FIGURE_COUNT:
        break;
    }
    return KKT_EVIDENCE_COMPILED;
}

static const char *why_undecided(kkt_arena *arena, const kkt_ablation_row *row) {
    const kkt_ablation_point *sides[] = {row->from, row->to};
    for (size_t i = 0; i < 2; i++) {
        const kkt_ablation_point *point = sides[i];
        if (point->point->reason != NULL)
            return point->point->reason;
        if (point->reason != NULL)
            return kkt_arena_printf(arena, "%s: %s", point->outcome, point->reason);
    }
    return kkt_arena_printf(arena, "not %s here", kkt_evidence_name(row->decided_by));
}

/* An old source's figures say nothing beside a new one's. */
static bool ages_differ(const kkt_ablation_row *row) {
    return (row->from->stale_reason != NULL) != (row->to->stale_reason != NULL);
}

static void judge(kkt_arena *arena, kkt_ablation_row *row) {
    const kkt_comparison *comparison = row->move->comparison;
    kkt_figure figure = row->move->claim ? row->move->claim->figure : KKT_FIGURE_TIME;
    row->decided_by = evidence_of(figure);
    row->finding = kkt_finding_of(
        comparison ? comparison->expect : KKT_EXPECT_LOWER, comparison ? comparison->within : 0,
        row->decided_by == KKT_EVIDENCE_TIMED, &row->from->figures[row->decided_by][figure],
        &row->to->figures[row->decided_by][figure],
        row->from->figures[KKT_EVIDENCE_PREDICTED][figure].value,
        row->to->figures[KKT_EVIDENCE_PREDICTED][figure].value);
    if (row->finding == KKT_FINDING_UNDECIDED) {
        row->reason = why_undecided(arena, row);
    } else if (ages_differ(row)) {
        row->finding = KKT_FINDING_UNDECIDED;
        row->reason = "one of the two is stale";
    } else if (row->decided_by == KKT_EVIDENCE_TIMED && (row->from->apart || row->to->apart)) {
        row->reason = "timed apart, not in turns";
    }
}

static const char *tier_of(const kkt_ablation_point *base) {
    if (base->stale_reason != NULL)
        return "stale";
    if (base->provenance == KKT_MEASURED || base->provenance == KKT_REPLAYED)
        return kkt_provenance_name(base->provenance);
    bool compiled = kkt_reading_known(&base->figures[KKT_EVIDENCE_COMPILED][KKT_FIGURE_REGISTERS]);
    return kkt_provenance_name(compiled ? KKT_COMPILED : KKT_PREDICTED);
}

static void make_points(reader *r, const kkt_move_set *moves) {
    kkt_ablation *out = r->out;
    out->point_count = moves->point_count;
    out->points = kkt_arena_array(r->arena, moves->point_count, sizeof *out->points);
    r->run_ids = kkt_arena_array(r->arena, moves->point_count, sizeof *r->run_ids);
    for (size_t i = 0; i < out->point_count; i++) {
        kkt_ablation_point *point = &out->points[i];
        point->point = &moves->points[i];
        point->config =
            kkt_params_text(r->arena, &r->set->variant->params, &moves->points[i].config);
        point->outcome =
            kkt_outcome_name(point->point->reason ? KKT_OUTCOME_REJECTED : KKT_OUTCOME_PREDICTED);
        point->provenance = KKT_PREDICTED;
        for (size_t e = 0; e < KKT_EVIDENCE_COUNT; e++)
            for (size_t f = 0; f < KKT_FIGURE_COUNT; f++)
                point->figures[e][f] = exact(KKT_UNKNOWN_REAL);
        fill_predicted(point);
    }
}

kkt_status kkt_ablation_make(const kkt_ablation_set *set, kkt_db *db,
                             const kkt_freshness *freshness, const kkt_values *base,
                             const char *origin, kkt_arena *arena, kkt_ablation *out,
                             kkt_error *err) {
    memset(out, 0, sizeof *out);
    const kkt_kernel *kernel = set->kernel;
    kkt_move_set *moves = kkt_arena_alloc(arena, sizeof *moves);
    kkt_status status = kkt_moves_make(kernel, set->variant, &set->problem, base, set->arch,
                                       set->device, arena, moves, err);
    if (status != KKT_OK)
        return status;
    reader r = {.set = set, .arena = arena, .out = out};
    make_points(&r, moves);
    status = read_points(&r, db, freshness, err);
    if (status != KKT_OK)
        return status;
    out->chunk =
        kernel->chunk_param ? kkt_params_get(&set->variant->params, base, kernel->chunk_param) : 0;
    out->origin = origin;
    out->tier = tier_of(&out->points[0]);
    out->row_count = moves->move_count;
    out->rows = kkt_arena_array(arena, moves->move_count, sizeof *out->rows);
    for (size_t i = 0; i < out->row_count; i++) {
        out->rows[i].move = &moves->moves[i];
        out->rows[i].from = &out->points[moves->moves[i].from];
        out->rows[i].to = &out->points[moves->moves[i].to];
        judge(arena, &out->rows[i]);
    }
    return KKT_OK;
}

/* ---- claims over all bases ---- */

/* The comparisons of one base with that finding: " at C = 32 (row_stride 16; row_stride 17)", after
 * another base without "at"; of a kernel without chunk sizes " (bk 16; bk 32)". False: none. */
static bool add_where(kkt_text *where, const kkt_ablation *ablation, const kkt_claim *claim,
                      kkt_finding finding) {
    kkt_text labels = {0};
    bool any = false;
    for (size_t i = 0; i < ablation->row_count; i++) {
        const kkt_ablation_row *row = &ablation->rows[i];
        if (row->move->claim != claim || row->finding != finding)
            continue;
        any = true;
        if (row->move->label[0] != '\0')
            kkt_text_printf(&labels, "%s%s", labels.length > 0 ? "; " : "", row->move->label);
    }
    if (any && ablation->chunk != 0)
        kkt_text_printf(where, "%s C = %lld", where->length > 0 ? "," : " at",
                        (long long)ablation->chunk);
    if (labels.length > 0)
        kkt_text_printf(where, " (%s)", kkt_text_get(&labels));
    kkt_text_free(&labels);
    return any;
}

/* "confirmed at C = 32, C = 64; refuted at C = 128" */
static void describe(const kkt_ablation_set *set, kkt_arena *arena, kkt_claim_summary *out) {
    kkt_text text = {0};
    for (kkt_finding finding = 0; finding < KKT_FINDING_COUNT; finding++) {
        kkt_text where = {0};
        bool any = false;
        for (size_t a = 0; a < set->count; a++)
            any = add_where(&where, &set->ablations[a], out->claim, finding) || any;
        if (any)
            kkt_text_printf(&text, "%s%s%s", text.length > 0 ? "; " : "",
                            kkt_finding_words(finding), kkt_text_get(&where));
        kkt_text_free(&where);
    }
    out->where = kkt_arena_strdup(arena, kkt_text_get(&text));
    kkt_text_free(&text);
}

static void summarize(const kkt_ablation_set *set, kkt_arena *arena, kkt_claim_summary *out) {
    size_t most = 1;
    for (size_t a = 0; a < set->count; a++)
        most += set->ablations[a].row_count;
    kkt_finding *findings = kkt_arena_array(arena, most, sizeof *findings);
    for (size_t a = 0; a < set->count; a++) {
        for (size_t i = 0; i < set->ablations[a].row_count; i++) {
            const kkt_ablation_row *row = &set->ablations[a].rows[i];
            if (row->move->claim != out->claim)
                continue;
            findings[out->compared++] = row->finding;
            out->confirmed += row->finding == KKT_FINDING_CONFIRMED;
            out->refuted += row->finding == KKT_FINDING_REFUTED;
            out->noise += row->finding == KKT_FINDING_WITHIN_NOISE;
            out->undecided += row->finding == KKT_FINDING_UNDECIDED;
        }
    }
    out->finding = kkt_finding_join(findings, out->compared);
    describe(set, arena, out);
}

kkt_claim_summary *kkt_ablation_claims(const kkt_ablation_set *set, kkt_arena *arena,
                                       size_t *count) {
    size_t claims = set->kernel->claim_count;
    kkt_claim_summary *all = kkt_arena_array(arena, claims + 1, sizeof *all);
    *count = 0;
    for (size_t i = 0; i < claims; i++) {
        kkt_claim_summary *next = &all[*count];
        memset(next, 0, sizeof *next);
        next->claim = &set->kernel->claims[i];
        summarize(set, arena, next);
        *count += next->compared > 0;
    }
    return all;
}

kkt_reading kkt_ablation_change(const kkt_ablation_row *row, kkt_evidence evidence,
                                kkt_figure figure) {
    const kkt_reading *from = &row->from->figures[evidence][figure];
    const kkt_reading *to = &row->to->figures[evidence][figure];
    if (!kkt_reading_known(from) || !kkt_reading_known(to) || !(from->low > 0))
        return exact(KKT_UNKNOWN_REAL);
    return (kkt_reading){to->low / from->high - 1, to->value / from->value - 1,
                         to->high / from->low - 1};
}

const char *kkt_ablation_effect(const kkt_ablation_row *row) {
    if (row->to->point->reason != NULL)
        return "rejected";
    switch (row->finding) {
    case KKT_FINDING_CONFIRMED:
        return "faster";
    case KKT_FINDING_REFUTED:
        return "slower";
    case KKT_FINDING_WITHIN_NOISE:
        return "within noise";
    case KKT_FINDING_CONDITIONAL:
    case KKT_FINDING_UNDECIDED:
    case KKT_FINDING_COUNT:
        break;
    }
    bool failed = row->to->provenance == KKT_PREDICTED && row->to->reason != NULL;
    return failed ? row->to->outcome : "not timed";
}
