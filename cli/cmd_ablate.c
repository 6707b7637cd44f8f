/* `kkttune ablate KERNEL`: every parameter moved away from a base, every claim put to the test. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "cli/backend_choice.h"
#include "cli/interrupt.h"
#include "cli/pool_open.h"
#include "cli/progress.h"
#include "reports/ablation.h"
#include "tuner/engine/ablate.h"
#include "tuner/engine/freshness.h"

/* Without a GPU nothing is timed, and compiling for all bases together ends about a minute after it
 * began, but no base goes without its share: the command goes on where it stopped. */
static const double COMPILE_FOR_S = 57.0;
static const double COMPILE_EACH_S = 3.0;

static const kkt_option options[] = {
    KKT_OPTION_ARCH,
    KKT_OPTION_DEVICE,
    KKT_OPTION_DB,
    KKT_OPTION_JSON,
    {"--style", "NAME", "write style; default the kernel's first with device code"},
    {"--problem", "k=v,...", "problem; default the kernel's first"},
    {"--chunk", "LIST",
     "chunk sizes, a base each; default all that the style can launch, or that of --config"},
    {"--config", "k=v,...", "base, the rest at its default; default the best known"},
    {"--backend", "NAME",
     "cuda, replay or fake[:seed=N,fault=KIND]; default: a GPU of the architecture, else replay"},
    {"--counters", "finalists|all|none", "none: hardware counters are not read"},
    {"--seed", "N", "seed of inputs; default 1"},
    {"--retry", NULL, "try again what failed in earlier runs"},
    {"--gpu", "N", "index of the GPU; default: CUDA's first visible"},
    {"--cache", "DIR", "cubin cache; default $XDG_CACHE_HOME/kkttune"},
    {"--out", "FILE", "page in Markdown"},
};

/* Everything the command holds open. */
typedef struct job {
    const kkt_args *args;
    kkt_arena *arena;
    kkt_ablate_options options;
    kkt_ablation_set set;
    int64_t chunks[KKT_CHOICES_MAX]; /* 0: the base's own */
    size_t chunk_count;
    kkt_db *db;
    kkt_compile_pool *pool;
    kkt_backend_choice on;
    kkt_progress progress;
    double begun_s;
    bool interrupted;
    bool counters_told;
} job;

/* ---- what is asked for ---- */

/* NULL: none has any. */
static const kkt_variant *first_with_code(const kkt_kernel *kernel) {
    for (size_t i = 0; i < kernel->variant_count; i++) {
        if (kkt_variant_tuned(kernel->variants[i])) {
            return kernel->variants[i];
        }
    }
    return NULL;
}

static kkt_status choose_variant(job *j, kkt_error *err) {
    const kkt_kernel *kernel = j->options.session.kernel;
    const char *name = kkt_args_get(j->args, "--style");
    const kkt_style *style = name ? kkt_style_find(name) : NULL;
    if (!name) {
        j->options.variant = first_with_code(kernel);
        if (j->options.variant) {
            return KKT_OK;
        }
        return kkt_fail(err, KKT_ERR_INPUT, 0, "%s has no device code yet: nothing can be compared",
                        kernel->name);
    }
    j->options.variant = style ? kkt_kernel_variant(kernel, style->id) : NULL;
    if (j->options.variant && kkt_variant_tuned(j->options.variant)) {
        return KKT_OK;
    }
    return kkt_fail(err, KKT_ERR_INPUT, 0, "%s has no style '%.40s' with device code", kernel->name,
                    name);
}

/* With the values that the style has; NULL: there is no such parameter. */
static const kkt_param *chunk_param(const job *j) {
    const kkt_variant *variant = j->options.variant;
    const char *name = variant ? j->options.session.kernel->chunk_param : NULL;
    int index = name ? kkt_params_find(&variant->params, name) : -1;
    return index < 0 ? NULL : &variant->params.params[index];
}

static kkt_status check_chunk(const kkt_param *param, int64_t value, kkt_error *err) {
    kkt_text list = {0};
    for (size_t i = 0; i < param->count; i++) {
        if (param->values[i] == value) {
            kkt_text_free(&list);
            return KKT_OK;
        }
        kkt_text_printf(&list, "%s%lld", i > 0 ? ", " : "", (long long)param->values[i]);
    }
    kkt_status status = kkt_fail(err, KKT_ERR_INPUT, 0, "--chunk %lld: there are %s",
                                 (long long)value, kkt_text_get(&list));
    kkt_text_free(&list);
    return status;
}

static kkt_status choose_chunks(job *j, kkt_error *err) {
    const kkt_param *param = chunk_param(j);
    const char *text = kkt_args_get(j->args, "--chunk");
    j->chunk_count = 1;
    if (!param) {
        return !text ? KKT_OK
                     : kkt_fail(err, KKT_ERR_INPUT, 0, "--chunk: %s has no chunk",
                                j->options.session.kernel->name);
    }
    if (text) {
        kkt_status status = kkt_parse_i64_list(text, "--chunk", 1, 1 << 20, j->chunks,
                                               KKT_CHOICES_MAX, &j->chunk_count, err);
        for (size_t i = 0; i < j->chunk_count && status == KKT_OK; i++) {
            status = check_chunk(param, j->chunks[i], err);
        }
        return status;
    }
    if (!j->options.start) {
        j->chunk_count = param->count;
        memcpy(j->chunks, param->values, param->count * sizeof param->values[0]);
    }
    return KKT_OK;
}

/* Leaves out the chunk sizes that cannot be had on the problem, before the work on any other. One
 * that was asked for is an error, and so is it where none is left. */
static kkt_status keep_possible(job *j, kkt_error *err) {
    const bool asked = kkt_args_has(j->args, "--chunk");
    const size_t count = j->chunk_count;
    if (j->options.start || !chunk_param(j)) {
        return KKT_OK;
    }
    j->chunk_count = 0;
    for (size_t i = 0; i < count; i++) {
        kkt_error why = {0};
        j->options.chunk = j->chunks[i];
        kkt_status status = kkt_ablate_check_chunk(&j->options, &why);
        if (status == KKT_OK) {
            j->chunks[j->chunk_count++] = j->chunks[i];
            continue;
        }
        if (asked || status != KKT_ERR_MISSING || (i + 1 == count && j->chunk_count == 0)) {
            return kkt_fail(err, status, 0, "%s", why.message);
        }
        fprintf(stderr, "kkttune: %s\n", why.message);
    }
    return KKT_OK;
}

static kkt_status parse_options(job *j, kkt_error *err) {
    kkt_session_options *o = &j->options.session;
    const char *seed_text = kkt_args_get(j->args, "--seed");
    const char *counters = kkt_args_get(j->args, "--counters");
    int64_t seed = 1;
    kkt_policy_defaults(&o->policy);
    kkt_status status = kkt_kernel_parse(kkt_args_operand(j->args, 0), &o->kernel, err);
    if (status == KKT_OK) {
        status = kkt_args_arch(j->args, &o->arch, &o->device, err);
    }
    if (status == KKT_OK && seed_text && !kkt_parse_i64(seed_text, 0, INT64_MAX, &seed)) {
        return kkt_fail(err, KKT_ERR_INPUT, 0, "--seed '%s' is not a number from 0 up", seed_text);
    }
    o->seed = o->policy.seed = (uint64_t)seed;
    o->problem = kkt_args_get(j->args, "--problem");
    o->retry = kkt_args_has(j->args, "--retry");
    j->options.start = kkt_args_get(j->args, "--config");
    if (status == KKT_OK && counters) {
        status = kkt_counters_scope_parse(counters, &o->counters, err);
    }
    if (status == KKT_OK) {
        status = choose_variant(j, err);
    }
    return status == KKT_OK ? choose_chunks(j, err) : status;
}

static kkt_status check_out(job *j, kkt_error *err) {
    const char *out = kkt_args_get(j->args, "--out");
    if (!out) {
        return KKT_OK;
    }
    const char *slash = strrchr(out, '/');
    const char *folder = !slash ? "."
                         : slash == out
                             ? "/"
                             : kkt_arena_printf(j->arena, "%.*s", (int)(slash - out), out);
    if (out[0] == '\0' || (slash && slash[1] == '\0')) {
        return kkt_fail(err, KKT_ERR_INPUT, 0, "--out '%s' names no file", out);
    }
    kkt_status status = kkt_folder_make(folder, err);
    return status == KKT_OK ? kkt_folder_check_writable(folder, err) : status;
}

/* ---- the work ---- */

static void on_note(void *context, const char *line) {
    job *j = context;
    kkt_progress_note(&j->progress, line);
}

static kkt_status prepare(job *j, kkt_error *err) {
    kkt_session_options *o = &j->options.session;
    const char *db = kkt_args_has(j->args, "--db") ? kkt_args_get(j->args, "--db") : "kkttune.db";
    kkt_status status;
    if ((status = parse_options(j, err)) || (status = kkt_backend_choice_check(j->args, err)) ||
        (status = check_out(j, err))) {
        return status;
    }
    j->on = (kkt_backend_choice){.args = j->args,
                                 .json = kkt_args_has(j->args, "--json"),
                                 .arch = o->arch,
                                 .device = o->device};
    if ((status = kkt_backend_choice_make(&j->on, err))) {
        return status;
    }
    o->device = j->on.device;
    if ((status = keep_possible(j, err)) ||
        (status = kkt_backend_choice_try_recordings(&j->on, db, err)) ||
        (status = kkt_db_open(db, KKT_DB_WRITE, &j->db, err)) ||
        (status = kkt_pool_open(kkt_args_get(j->args, "--cache"), 0, &j->pool, err))) {
        return status;
    }
    kkt_backend_choice_say(&j->on);
    o->reference_folder = j->on.replay ? j->on.reference_folder : NULL;
    o->progress = kkt_progress_show;
    o->progress_context = &j->progress;
    o->note = on_note;
    o->event_context = j;
    j->begun_s = kkt_clock_seconds();
    if (kkt_compile_pool_unavailable(j->pool)) {
        fprintf(stderr, "kkttune: nothing is compiled: %s\n",
                kkt_compile_pool_unavailable(j->pool));
    }
    return KKT_OK;
}

static void note_counters(job *j, const kkt_session_summary *summary) {
    if (summary->counters_note[0] != '\0' && !j->counters_told) {
        fprintf(stderr, "kkttune: hardware counters were not read: %s\n", summary->counters_note);
        j->counters_told = true;
    }
}

/* Says which base of several begins, and gives it its part of the time that is left. */
static void begin_chunk(job *j, size_t index) {
    const size_t left = j->chunk_count - index;
    if (j->chunk_count > 1) {
        on_note(j, kkt_arena_printf(j->arena, "base %zu of %zu: C = %lld", index + 1,
                                    j->chunk_count, (long long)j->chunks[index]));
    }
    if (!j->on.backend) {
        const double seconds = j->begun_s + COMPILE_FOR_S - kkt_clock_seconds();
        j->options.session.budget_seconds = fmax(seconds / (double)left, COMPILE_EACH_S);
    }
}

static kkt_status ablate_chunk(job *j, size_t index, kkt_error *err) {
    kkt_ablate_result result;
    j->options.chunk = j->chunks[index];
    kkt_progress_open(&j->progress);
    begin_chunk(j, index);
    kkt_status status =
        kkt_ablate_run(&j->options, j->db, j->pool, j->on.type, j->on.backend, &result, err);
    kkt_progress_close(&j->progress);
    note_counters(j, &result.summary);
    if (status != KKT_OK) {
        return status;
    }
    j->interrupted = result.summary.interrupted;
    kkt_ablation_set *set = &j->set;
    set->kernel = j->options.session.kernel;
    set->variant = result.variant;
    set->arch = j->options.session.arch;
    set->device = j->options.session.device;
    set->problem = result.problem;
    bool compiles = !kkt_compile_pool_unavailable(j->pool);
    const kkt_freshness *freshness =
        kkt_freshness_make(j->arena, compiles ? kkt_compile_pool_version(j->pool) : NULL);
    return kkt_ablation_make(set, j->db, freshness, &result.base,
                             kkt_ablate_origin_name(result.origin), j->arena,
                             &set->ablations[set->count++], err);
}

/* ---- what it says ---- */

static void cell_change(kkt_table *table, const kkt_ablation_row *row, kkt_evidence evidence,
                        kkt_figure figure) {
    kkt_reading change = kkt_ablation_change(row, evidence, figure);
    if (isfinite(change.value)) {
        kkt_table_cell(table, "%+.1f", 100 * change.value);
    } else {
        kkt_table_cell(table, "-");
    }
}

static void print_moves(const job *j, const kkt_ablation *ablation) {
    static const char *const headings[] = {"move",   "predicted %", "wavefronts %", "counted %",
                                           "time %", "effect",      "note"};
    kkt_text base = {0};
    kkt_params_format_short(&j->set.variant->params, &ablation->points[0].point->config, &base);
    printf("\nfrom %s (%s, tier %s)\n", kkt_text_get(&base), ablation->origin, ablation->tier);
    kkt_text_free(&base);
    kkt_table *table = kkt_table_open(sizeof headings / sizeof *headings, headings);
    for (size_t i = 0; i < ablation->row_count; i++) {
        const kkt_ablation_row *row = &ablation->rows[i];
        if (row->move->claim) {
            continue;
        }
        kkt_table_cell(table, "%s", row->move->label);
        cell_change(table, row, KKT_EVIDENCE_PREDICTED, KKT_FIGURE_TIME);
        cell_change(table, row, KKT_EVIDENCE_PREDICTED, KKT_FIGURE_WAVEFRONTS);
        cell_change(table, row, KKT_EVIDENCE_COUNTED, KKT_FIGURE_WAVEFRONTS);
        cell_change(table, row, KKT_EVIDENCE_TIMED, KKT_FIGURE_TIME);
        kkt_table_cell(table, "%s", kkt_ablation_effect(row));
        kkt_table_cell(table, "%s", row->reason ? row->reason : "");
    }
    kkt_table_print(table, stdout);
    kkt_table_close(table);
}

/* What was measured stands in the documentation, of the kernels that have a page there. */
static void print_undecided(const kkt_claim_summary *claims, size_t count) {
    size_t undecided = 0;
    for (size_t i = 0; i < count; i++) {
        undecided += claims[i].finding == KKT_FINDING_UNDECIDED;
    }
    if (undecided > 0) {
        printf("%zu of %zu claims are not decidable here: what decides them was not measured or "
               "counted at these bases; docs/experiments.md has the verdicts of an H200\n",
               undecided, count);
    }
}

static void print_text(const job *j) {
    static const char *const headings[] = {"claim", "verdict", "what is claimed", "where"};
    size_t count;
    kkt_claim_summary *claims = kkt_ablation_claims(&j->set, j->arena, &count);
    for (size_t a = 0; a < j->set.count; a++) {
        print_moves(j, &j->set.ablations[a]);
    }
    if (count > 0) {
        kkt_table *table = kkt_table_open(sizeof headings / sizeof *headings, headings);
        printf("\n");
        for (size_t i = 0; i < count; i++) {
            kkt_table_cell(table, "%s", claims[i].claim->name);
            kkt_table_cell(table, "%s", kkt_finding_words(claims[i].finding));
            kkt_table_cell(table, "%s", claims[i].claim->statement);
            kkt_table_cell(table, "%s", claims[i].where);
        }
        kkt_table_print(table, stdout);
        kkt_table_close(table);
        print_undecided(claims, count);
    }
}

/* What would write the page again: neither database nor file, for those are the caller's. */
static const char *command_of(const job *j) {
    static const char *const repeated[] = {"--arch",    "--device", "--style",
                                           "--problem", "--chunk",  "--config"};
    kkt_text text = {0};
    kkt_text_printf(&text, "kkttune ablate %s", j->options.session.kernel->name);
    for (size_t i = 0; i < sizeof repeated / sizeof *repeated; i++) {
        const char *value = kkt_args_get(j->args, repeated[i]);
        if (value) {
            kkt_text_printf(&text, " %s %s", repeated[i], value);
        }
    }
    const char *copy = kkt_arena_strdup(j->arena, kkt_text_get(&text));
    kkt_text_free(&text);
    return copy;
}

static kkt_status write_page(job *j, kkt_error *err) {
    const char *out = kkt_args_get(j->args, "--out");
    if (!out) {
        return KKT_OK;
    }
    kkt_text page = {0};
    j->set.command = command_of(j);
    kkt_ablation_markdown(&j->set, &page);
    kkt_status status = kkt_file_write(out, kkt_text_get(&page), page.length, err);
    kkt_text_free(&page);
    if (status == KKT_OK && !j->on.json) {
        printf("%s\n", out);
    }
    return status;
}

static kkt_status work(job *j, kkt_error *err) {
    kkt_status status = prepare(j, err);
    if (status != KKT_OK) {
        return status;
    }
    kkt_interrupt_watch();
    j->set.ablations = kkt_arena_array(j->arena, j->chunk_count, sizeof *j->set.ablations);
    for (size_t i = 0; i < j->chunk_count && status == KKT_OK && !j->interrupted; i++) {
        status = ablate_chunk(j, i, err);
    }
    if (status != KKT_OK) {
        return status;
    }
    if (j->interrupted) {
        return kkt_fail(err, KKT_ERR_MISSING, 0,
                        "interrupted: what was done is kept; the same command goes on from there");
    }
    if (j->on.json) {
        kkt_json *root = kkt_json_object();
        kkt_ablation_json(&j->set, root);
        kkt_print_json(root);
    } else {
        print_text(j);
    }
    return write_page(j, err);
}

static kkt_status run(const kkt_args *args, kkt_error *err) {
    job j = {.args = args, .arena = kkt_arena_open()};
    kkt_status status = work(&j, err);
    kkt_backend_choice_drop(&j.on);
    kkt_compile_pool_close(j.pool);
    kkt_db_close(j.db);
    kkt_arena_close(j.arena);
    return status;
}

extern const kkt_command kkt_cmd_ablate;
const kkt_command kkt_cmd_ablate = {
    .name = "ablate",
    .operands = "KERNEL",
    .summary = "move every parameter away from the best configuration, and test claims",
    .details = "Predicted, compiled, counted and timed changes side by side, and a verdict for "
               "each claim\n"
               "of the kernel. Without a GPU recorded measurements are replayed; what they do not "
               "hold is\n"
               "compiled, for about a minute a run, and predicted, and decides nothing. "
               "docs/ablation.md says how to read it.",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run,
};
