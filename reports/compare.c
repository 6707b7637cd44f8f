#include "reports/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernel.h"
#include "reports/canonical.h"

static const char *const verdict_names[KKT_COMPARE_COUNT] = {
    [KKT_COMPARE_SAME] = "same",     [KKT_COMPARE_FASTER] = "faster",
    [KKT_COMPARE_SLOWER] = "slower", [KKT_COMPARE_REGRESSED] = "regressed",
    [KKT_COMPARE_FAILED] = "failed", [KKT_COMPARE_ABSENT] = "absent",
    [KKT_COMPARE_NEW] = "new",
};

const char *kkt_compare_verdict_name(kkt_compare_verdict verdict) {
    return verdict_names[verdict];
}

/* One stored result that counts, before the groups are made. */
typedef struct candidate {
    kkt_compare_row key; /* its identity alone */
    kkt_compare_side side;
    bool of_b;
    bool of_gpu; /* it was run on one */
} candidate;

typedef struct collector {
    kkt_arena *arena;
    candidate *all;
    size_t count, capacity;
    bool of_b;
} collector;

/* A kernel that this program no longer has most likely called it "chunk", too. */
static int64_t chunk_of(const char *kernel_name, const char *config) {
    const kkt_kernel *kernel = NULL;
    const char *key = "chunk";
    if (kkt_kernel_parse(kernel_name, &kernel, NULL) == KKT_OK)
        key = kernel->chunk_param;
    return key != NULL ? kkt_pair_integer(config, key, 0) : 0;
}

static kkt_status collect(void *context, const kkt_result *result, kkt_error *err) {
    (void)err;
    collector *c = context;
    if (!result->has_build && !result->has_run)
        return KKT_OK;
    c->all = kkt_arena_grow(c->arena, c->all, c->count, &c->capacity, sizeof *c->all);
    candidate *new = &c->all[c->count++];
    const kkt_run_record *run = &result->run;
    bool good = result->outcome == KKT_OUTCOME_OK || result->outcome == KKT_OUTCOME_NOISY;
    *new = (candidate){
        .key = {.arch = kkt_arena_strdup(c->arena, result->id.arch),
                .device = kkt_arena_strdup(c->arena, result->id.device),
                .kernel = kkt_arena_strdup(c->arena, result->id.kernel),
                .problem = kkt_arena_strdup(c->arena, result->id.problem),
                .chunk = chunk_of(result->id.kernel, result->id.config)},
        .side = {.tried = true,
                 .timed = good && result->has_run && isfinite(run->time_us) && run->time_us > 0,
                 .noisy = result->outcome == KKT_OUTCOME_NOISY,
                 .made_up = result->has_run && kkt_run_made_up(run),
                 .style = kkt_arena_strdup(c->arena, result->id.style),
                 .config = kkt_arena_strdup(c->arena, result->id.config)},
        .of_b = c->of_b,
        .of_gpu = result->has_run && !kkt_run_made_up(run),
    };
    if (new->side.timed) {
        new->side.time_us = run->time_us;
        new->side.low_us = isfinite(run->time_low_us) ? run->time_low_us : run->time_us;
        new->side.high_us = isfinite(run->time_high_us) ? run->time_high_us : run->time_us;
        new->side.samples = run->sample_count;
    }
    return KKT_OK;
}

static int compare_devices(const void *left, const void *right) {
    const candidate *a = left, *b = right;
    int order = (a->of_b > b->of_b) - (a->of_b < b->of_b);
    if (order == 0)
        order = strcmp(a->key.arch, b->key.arch);
    return order != 0 ? order : strcmp(a->key.device, b->key.device);
}

/* Where a database has results of a GPU, what the fake backend made up for the same device is
 * neither a time nor a failure. */
static void leave_out_made_up(collector *c, kkt_compared *out) {
    size_t kept = 0;
    qsort(c->all, c->count, sizeof *c->all, compare_devices);
    for (size_t i = 0, end; i < c->count; i = end) {
        bool real = false;
        for (end = i; end < c->count && compare_devices(&c->all[i], &c->all[end]) == 0; end++)
            real = real || c->all[end].of_gpu;
        for (size_t k = i; k < end; k++) {
            if (real && c->all[k].side.made_up)
                out->left_out[c->all[k].of_b] += c->all[k].side.timed;
            else
                c->all[kept++] = c->all[k];
        }
    }
    c->count = kept;
}

static int compare_keys(const kkt_compare_row *a, const kkt_compare_row *b) {
    int order = strcmp(a->kernel, b->kernel);
    if (order == 0)
        order = strcmp(a->arch, b->arch);
    if (order == 0)
        order = strcmp(a->device, b->device);
    if (order == 0)
        order = strcmp(a->problem, b->problem);
    return order != 0 ? order : (a->chunk > b->chunk) - (a->chunk < b->chunk);
}

/* Groups together, A before B, the best first: the first of each side is its winner. */
static int compare_candidates(const void *left, const void *right) {
    const candidate *a = left, *b = right;
    int order = compare_keys(&a->key, &b->key);
    if (order == 0)
        order = (a->of_b > b->of_b) - (a->of_b < b->of_b);
    if (order == 0)
        order = (a->side.timed < b->side.timed) - (a->side.timed > b->side.timed);
    if (order == 0)
        order = (a->side.noisy > b->side.noisy) - (a->side.noisy < b->side.noisy);
    if (order == 0)
        order = (a->side.time_us > b->side.time_us) - (a->side.time_us < b->side.time_us);
    if (order == 0)
        order = strcmp(a->side.style, b->side.style);
    return order != 0 ? order : strcmp(a->side.config, b->side.config);
}

static kkt_compare_verdict judge(const kkt_compare_row *row, double limit_percent) {
    const kkt_compare_side *a = &row->a, *b = &row->b;
    if (!a->timed)
        return KKT_COMPARE_NEW;
    if (!b->timed)
        return b->tried ? KKT_COMPARE_FAILED : KKT_COMPARE_ABSENT;
    if (b->low_us <= a->high_us && a->low_us <= b->high_us)
        return KKT_COMPARE_SAME;
    if (b->time_us < a->time_us)
        return KKT_COMPARE_FASTER;
    return row->ratio > 1.0 + limit_percent / 100.0 ? KKT_COMPARE_REGRESSED : KKT_COMPARE_SLOWER;
}

static void take(kkt_compare_side *out, const kkt_compare_side *winner) {
    if (out->tried)
        return; /* a better one was taken */
    *out = *winner;
    if (!winner->timed)
        out->style = out->config = NULL;
}

static void make_rows(const collector *c, kkt_compared *out) {
    out->rows = kkt_arena_array(c->arena, c->count + 1, sizeof *out->rows);
    for (size_t i = 0, end; i < c->count; i = end) {
        kkt_compare_row row = c->all[i].key;
        for (end = i; end < c->count && compare_keys(&row, &c->all[end].key) == 0; end++)
            take(c->all[end].of_b ? &row.b : &row.a, &c->all[end].side);
        if (!row.a.timed && !row.b.timed)
            continue;
        row.ratio = row.a.timed && row.b.timed ? row.b.time_us / row.a.time_us : KKT_UNKNOWN_REAL;
        row.verdict = judge(&row, out->limit_percent);
        out->counts[row.verdict]++;
        out->made_up[0] += row.a.timed && row.a.made_up;
        out->made_up[1] += row.b.timed && row.b.made_up;
        out->rows[out->row_count++] = row;
    }
}

kkt_status kkt_compare(kkt_db *a, kkt_db *b, const char *kernel, double limit_percent,
                       kkt_arena *arena, kkt_compared *out, kkt_error *err) {
    *out = (kkt_compared){.limit_percent = limit_percent};
    collector c = {.arena = arena};
    kkt_result_filter filter = {.kernel = kernel};
    kkt_status status = kkt_db_results(a, &filter, NULL, collect, &c, err);
    c.of_b = true;
    if (status == KKT_OK)
        status = kkt_db_results(b, &filter, NULL, collect, &c, err);
    if (status != KKT_OK)
        return status;
    if (c.count > 0) {
        leave_out_made_up(&c, out);
        qsort(c.all, c.count, sizeof *c.all, compare_candidates);
    }
    make_rows(&c, out);
    return KKT_OK;
}

size_t kkt_compare_failures(const kkt_compared *comparison) {
    return comparison->counts[KKT_COMPARE_REGRESSED] + comparison->counts[KKT_COMPARE_FAILED];
}

void kkt_compare_sentence(const kkt_compared *comparison, const kkt_compare_row *row,
                          kkt_text *out) {
    const kkt_compare_side *a = &row->a, *b = &row->b;
    switch (row->verdict) {
    case KKT_COMPARE_SAME:
    case KKT_COMPARE_FASTER:
    case KKT_COMPARE_SLOWER:
    case KKT_COMPARE_REGRESSED:
        kkt_text_printf(out, "%.4g us (%.4g to %.4g), was %.4g us (%.4g to %.4g): %.3f times",
                        b->time_us, b->low_us, b->high_us, a->time_us, a->low_us, a->high_us,
                        row->ratio);
        if (row->verdict == KKT_COMPARE_REGRESSED)
            kkt_text_printf(out, ", beyond the limit of %g %%", comparison->limit_percent);
        else if (row->verdict == KKT_COMPARE_SAME)
            kkt_text_add(out, "; the intervals overlap");
        break;
    case KKT_COMPARE_FAILED:
        kkt_text_printf(out, "nothing that was tried works any more; was %.4g us", a->time_us);
        break;
    case KKT_COMPARE_ABSENT:
        kkt_text_printf(out, "not tried; was %.4g us", a->time_us);
        break;
    case KKT_COMPARE_NEW:
        kkt_text_printf(out, "%.4g us, without a time before", b->time_us);
        break;
    case KKT_COMPARE_COUNT:
        break;
    }
}

void kkt_compare_caution(const kkt_compared *comparison, kkt_text *out) {
    static const char names[] = "AB";
    for (int side = 0; side < 2; side++) {
        if (comparison->left_out[side] > 0)
            kkt_text_printf(out,
                            "%zu made-up times of the fake backend in %c are left out: it has "
                            "times of a GPU\n",
                            comparison->left_out[side], names[side]);
        if (comparison->made_up[side] > 0)
            kkt_text_printf(out,
                            "the comparison is of made-up times: %zu of %c come from the fake "
                            "backend, and it has none of a GPU for that device\n",
                            comparison->made_up[side], names[side]);
    }
}

static void add_side(kkt_json *row, const char *key, const kkt_compare_side *side) {
    if (!side->timed)
        return;
    kkt_json *object = kkt_json_add_object(row, key);
    kkt_json_add_string(object, "style", side->style);
    kkt_json_add_string(object, "config", side->config);
    kkt_json *time = kkt_json_add_object(object, "time_us");
    kkt_json_add_real(time, "median", side->time_us);
    kkt_json_add_real(time, "low", side->low_us);
    kkt_json_add_real(time, "high", side->high_us);
    kkt_json_add_int(time, "samples", side->samples);
    if (side->noisy)
        kkt_json_add_bool(object, "noisy", true);
    if (side->made_up)
        kkt_json_add_bool(object, "made_up", true);
}

void kkt_compare_json(const kkt_compared *comparison, kkt_json *root) {
    kkt_json_add_string(root, "schema", "kkttune.compare/1");
    kkt_json_add_real(root, "fail_over_percent", comparison->limit_percent);
    kkt_json *rows = kkt_json_add_array(root, "rows");
    for (size_t i = 0; i < comparison->row_count; i++) {
        const kkt_compare_row *row = &comparison->rows[i];
        kkt_json *object = kkt_json_add_object(rows, NULL);
        kkt_json_add_string(object, "kernel", row->kernel);
        kkt_json_add_string(object, "arch", row->arch);
        kkt_json_add_string(object, "device", row->device);
        kkt_json_add_string(object, "problem", row->problem);
        kkt_json_add_int(object, "chunk", row->chunk);
        add_side(object, "a", &row->a);
        add_side(object, "b", &row->b);
        if (isfinite(row->ratio))
            kkt_json_add_real(object, "ratio", row->ratio);
        kkt_json_add_string(object, "verdict", kkt_compare_verdict_name(row->verdict));
    }
    kkt_json *counts = kkt_json_add_object(root, "counts");
    for (int i = 0; i < KKT_COMPARE_COUNT; i++)
        kkt_json_add_int(counts, verdict_names[i], (int64_t)comparison->counts[i]);
    kkt_json *left_out = kkt_json_add_object(root, "made_up_left_out");
    kkt_json_add_int(left_out, "a", (int64_t)comparison->left_out[0]);
    kkt_json_add_int(left_out, "b", (int64_t)comparison->left_out[1]);
    kkt_json_add_bool(root, "failed", kkt_compare_failures(comparison) > 0);
}
