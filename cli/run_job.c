#include "cli/run_job.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cli/backend_choice.h"
#include "cli/interrupt.h"
#include "cli/pipeline_print.h"
#include "cli/pool_open.h"
#include "cli/progress.h"
#include "cli/run_log.h"
#include "reports/report.h"
#include "tuner/engine/freshness.h"
#include "tuner/engine/session.h"

/* Everything one run holds open. */
typedef struct job {
    const kkt_args *args;
    bool json;
    const char *out_folder;
    kkt_arena *arena;
    kkt_db *db;
    kkt_compile_pool *pool;
    kkt_backend_choice on;
    kkt_session_options options;
    kkt_progress progress;
    kkt_run_log *log; /* NULL: none */
    kkt_json *files;  /* an array */
} job;

static const char *option_or(const kkt_args *args, const char *name, const char *otherwise) {
    const char *value = kkt_args_get(args, name);
    return value ? value : otherwise;
}

/* ---- options ---- */

static kkt_status parse_budget(const char *text, kkt_session_options *out, kkt_error *err) {
    static const kkt_param keys[] = {
        {.name = "evals", .help = "candidates", .low = 0, .high = INT64_C(1) << 40, .fallback = 0},
        {.name = "seconds", .help = "seconds", .low = 0, .high = 1 << 30, .fallback = 0},
    };
    static const kkt_param_table table = {"budget key", keys, sizeof keys / sizeof *keys};
    kkt_values values;
    kkt_params_defaults(&table, &values);
    kkt_status status = kkt_params_parse(&table, text, &values, NULL, err);
    if (status == KKT_OK) {
        out->budget_evals = values.v[0];
        out->budget_seconds = (double)values.v[1];
    }
    return status;
}

static kkt_status check_problem(const kkt_kernel *kernel, const char *problem, kkt_error *err) {
    kkt_values values;
    char reason[240];
    kkt_params_defaults(&kernel->problem, &values);
    kkt_status status =
        kkt_params_parse(&kernel->problem, problem ? problem : "", &values, NULL, err);
    if (status == KKT_OK && !kkt_kernel_problem_valid(kernel, &values, reason, sizeof reason)) {
        return kkt_fail(err, KKT_ERR_INPUT, 0, "%s: %s", kernel->name, reason);
    }
    return status;
}

/* A pipeline's problem is that of its whole kernel; of parameters it has the chunk size alone. */
static kkt_status check_pipeline(const kkt_session_options *o, kkt_error *err) {
    kkt_pipeline_kernels p;
    kkt_values values;
    const char *missing = NULL;
    if (!kkt_pipeline_open(o->pipeline, &p, &missing)) {
        return kkt_fail(err, KKT_ERR_INPUT, 0, "%s needs the kernel %s, which is not there yet",
                        o->pipeline->name, missing);
    }
    kkt_param chunk = {.name = p.whole->chunk_param, .count = p.chunk_count, .fallback = 64};
    memcpy(chunk.values, p.chunks, sizeof p.chunks);
    const kkt_param_table table = {"parameter of a pipeline", &chunk, 1};
    kkt_params_defaults(&table, &values);
    kkt_status status = check_problem(p.whole, o->problem, err);
    return status == KKT_OK ? kkt_params_parse(&table, o->fixed ? o->fixed : "", &values, NULL, err)
                            : status;
}

/* Problem and held parameters, so that a wrong one leaves nothing behind. */
static kkt_status check_texts(const kkt_session_options *o, kkt_error *err) {
    kkt_values values;
    if (o->pipeline) {
        return check_pipeline(o, err);
    }
    kkt_status status = check_problem(o->kernel, o->problem, err);
    for (size_t v = 0; v < o->kernel->variant_count && status == KKT_OK; v++) {
        const kkt_param_table *table = &o->kernel->variants[v]->params;
        kkt_params_defaults(table, &values);
        status = kkt_params_parse(table, o->fixed ? o->fixed : "", &values, NULL, err);
    }
    return status;
}

static kkt_status parse_options(job *j, const kkt_kernel *kernel, const kkt_pipeline *pipeline,
                                kkt_error *err) {
    bool one = kernel || pipeline;
    kkt_session_options *o = &j->options;
    size_t count;
    int64_t seed = 1;
    const char *seed_text = kkt_args_get(j->args, "--seed");
    kkt_policy_defaults(&o->policy);
    o->kernel = kernel;
    o->pipeline = pipeline;
    o->problem = one ? kkt_args_get(j->args, "--problem") : NULL;
    o->fixed = one ? kkt_args_get(j->args, "--config") : NULL;
    o->exhaustive = kkt_args_has(j->args, "--exhaustive");
    o->retry = kkt_args_has(j->args, "--retry");
    o->revalidate = kkt_args_has(j->args, "--revalidate");
    if (seed_text && !kkt_parse_i64(seed_text, 0, INT64_MAX, &seed)) {
        return kkt_fail(err, KKT_ERR_INPUT, 0, "--seed '%s' is not a number from 0 up", seed_text);
    }
    o->seed = (uint64_t)seed;
    o->policy.seed = (uint64_t)seed;
    const char *search = o->exhaustive ? "exhaustive" : kkt_searches(&count)[0]->name;
    kkt_status status = kkt_search_parse(option_or(j->args, "--search", search), &o->search, err);
    if (status == KKT_OK && kkt_args_get(j->args, "--budget")) {
        status = parse_budget(kkt_args_get(j->args, "--budget"), o, err);
    }
    if (status == KKT_OK && kkt_args_get(j->args, "--objective")) {
        status = kkt_objective_parse(kkt_args_get(j->args, "--objective"), &o->objective, err);
        /* Otherwise the finalists alone would have an energy, and they are chosen by time. */
        o->policy.energy_each = o->objective == KKT_OBJECTIVE_ENERGY;
    }
    if (status == KKT_OK && kkt_args_get(j->args, "--counters")) {
        status = kkt_counters_scope_parse(kkt_args_get(j->args, "--counters"), &o->counters, err);
    }
    if (status == KKT_OK) {
        status = kkt_backend_choice_check(j->args, err);
    }
    return status == KKT_OK && one ? check_texts(o, err) : status;
}

/* ---- results ---- */

static void note_file(void *context, const char *path) {
    job *j = context;
    kkt_json_add_string(j->files, NULL, path);
}

/* A canonical text as a person would type it: without what is the default anyway. */
static void short_cell(kkt_table *out, const kkt_param_table *table, const char *canonical) {
    kkt_values values;
    kkt_text text = {0};
    kkt_params_defaults(table, &values);
    if (kkt_params_parse(table, canonical, &values, NULL, NULL) == KKT_OK) {
        kkt_params_format_short(table, &values, &text);
    } else {
        kkt_text_add(&text, canonical);
    }
    kkt_table_cell(out, "%s", kkt_text_get(&text));
    kkt_text_free(&text);
}

/* Beside the time: what the choice was made by, or what was expected. */
static void cell_figure(kkt_table *out, kkt_objective objective, const kkt_entry *e) {
    double cost = kkt_objective_cost(objective, e->predicted_us, e->energy_mj, e->rel_fro);
    if (!isfinite(cost)) {
        kkt_table_cell(out, "-");
    } else if (objective == KKT_OBJECTIVE_ERROR) {
        kkt_table_cell(out, "%.3g", cost);
    } else {
        kkt_table_cell(out, "%.1f", cost);
    }
}

static void print_best(const kkt_view *view) {
    static const char *const figures[] = {[KKT_OBJECTIVE_TIME] = "predicted us",
                                          [KKT_OBJECTIVE_ENERGY] = "energy mJ",
                                          [KKT_OBJECTIVE_ERROR] = "relative error"};
    const char *const headings[] = {"kernel",     "problem",
                                    "C",          "time us",
                                    "ties",       figures[view->objective],
                                    "provenance", "configuration (what is not the default)"};
    kkt_table *table = kkt_table_open(sizeof headings / sizeof *headings, headings);
    for (size_t i = 0; i < view->entry_count; i++) {
        const kkt_entry *e = &view->entries[i];
        const kkt_kernel *kernel = NULL;
        const kkt_style *style = kkt_style_find(e->style);
        if (!e->best_of_problem || !style || kkt_kernel_parse(e->kernel, &kernel, NULL) != KKT_OK) {
            continue;
        }
        kkt_table_cell(table, "%s", e->kernel);
        short_cell(table, &kernel->problem, e->problem);
        if (e->chunk > 0) {
            kkt_table_cell(table, "%lld", (long long)e->chunk);
        } else {
            kkt_table_cell(table, "-");
        }
        if (isfinite(e->time_us)) {
            kkt_table_cell(table, "%.1f", e->time_us);
        } else {
            kkt_table_cell(table, "-");
        }
        kkt_table_cell(table, "%zu", e->tie_count);
        cell_figure(table, view->objective, e);
        kkt_table_cell(table, "%s", e->stale_reason ? "stale" : kkt_provenance_name(e->provenance));
        short_cell(table, &kkt_kernel_variant(kernel, style->id)->params, e->config);
    }
    kkt_table_print(table, stdout);
    kkt_table_close(table);
}

/* A kernel's macros in the header are not those of the row above where another chunk size is the
 * faster one by itself: said for the problem that the macros are of. */
static void print_macros(const kkt_view *view) {
    const char *kernel = NULL;
    for (size_t i = 0; i < view->entry_count; i++) {
        const kkt_entry *first = &view->entries[i];
        if (first->model_only || (kernel && strcmp(kernel, first->kernel) == 0)) {
            continue;
        }
        kernel = first->kernel;
        const kkt_entry *taken = kkt_view_standing(view, kernel, first->problem, 0);
        if (!taken || taken->best_of_problem) {
            continue;
        }
        bool timed = isfinite(taken->time_us);
        const kkt_curve *curve = kkt_view_chunk(view, kernel, first->problem)->curve;
        printf("%s: the header's macros are those of C = %lld (%.1f us%s on the first problem), ",
               kernel, (long long)taken->chunk, timed ? taken->time_us : taken->predicted_us,
               timed ? "" : " predicted");
        if (curve) {
            printf("at which %s takes least time; its table has every C\n", curve->pipeline->name);
        } else {
            printf("which stands until a pipeline is timed with each C; its table has every C\n");
        }
    }
}

static void add_counts(kkt_json *root, const kkt_session_counts *c) {
    const struct {
        const char *name;
        int64_t value;
    } rows[] = {
        {"enumerated", c->enumerated},
        {"rejected", c->rejected},
        {"compiled", c->compiled},
        {"build_failed", c->build_failed},
        {"verified", c->verified},
        {"wrong_result", c->wrong_result},
        {"racy", c->racy},
        {"launch_failed", c->launch_failed},
        {"timed_out", c->timed_out},
        {"crashed", c->crashed},
        {"noisy", c->noisy},
        {"measured", c->measured},
        {"replayed", c->replayed},
        {"reused", c->reused},
        {"quarantined", c->quarantined},
        {"counted", c->counted},
        {"disturbed", c->disturbed},
        {"pipelines", c->pipelines},
    };
    kkt_json *counts = kkt_json_add_object(root, "candidates");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kkt_json_add_int(counts, rows[i].name, rows[i].value);
    }
}

static void print_summary_json(job *j, const kkt_view *view, const kkt_session_summary *summary) {
    kkt_json *root = kkt_json_object();
    kkt_json_add_string(root, "schema", "kkttune.run/1");
    kkt_json_add_string(root, "arch", j->options.arch->name);
    kkt_json_add_string(root, "device", j->options.device->full_name);
    kkt_json_add_string(root, "device_id", j->options.device->name);
    kkt_json_add_string(root, "tier", kkt_tier_name(summary->tier));
    add_counts(root, &summary->counts);
    kkt_json *best = kkt_json_add_array(root, "best");
    for (size_t i = 0; i < view->entry_count; i++) {
        if (view->entries[i].best_of_problem) {
            kkt_entry_add_json(&view->entries[i], best, NULL);
        }
    }
    kkt_pipelines_add_json(view, j->options.pipeline, root);
    kkt_json_add_root(root, "files", j->files);
    j->files = NULL;
    kkt_json_add_real(root, "seconds", summary->seconds);
    kkt_json_add_bool(root, "interrupted", summary->interrupted);
    if (summary->counters_note[0] != '\0') {
        kkt_json_add_string(root, "counters_note", summary->counters_note);
    }
    kkt_print_json(root);
}

static void print_summary(job *j, const kkt_view *view, const kkt_session_summary *summary) {
    const kkt_session_counts *c = &summary->counts;
    print_best(view);
    if (!j->options.kernel) {
        kkt_pipelines_print(view, j->options.pipeline);
    }
    print_macros(view);
    printf("tier %s: %lld configurations, %lld rejected, %lld compiled, %lld measured, %lld "
           "replayed, %lld reused in %.1f s\n",
           kkt_tier_name(summary->tier), (long long)c->enumerated, (long long)c->rejected,
           (long long)c->compiled, (long long)c->measured, (long long)c->replayed,
           (long long)c->reused, summary->seconds);
    int64_t failed = c->build_failed + c->wrong_result + c->racy + c->launch_failed + c->timed_out +
                     c->crashed + c->noisy;
    if (failed > 0) {
        printf("%lld candidates failed: %lld build, %lld wrong, %lld racy, %lld launch, %lld "
               "timed out, %lld crashed, %lld noisy; the report says which and why\n",
               (long long)failed, (long long)c->build_failed, (long long)c->wrong_result,
               (long long)c->racy, (long long)c->launch_failed, (long long)c->timed_out,
               (long long)c->crashed, (long long)c->noisy);
    }
    if (c->quarantined > 0) {
        printf("%lld of the reused candidates failed in an earlier run and were not tried again; "
               "--retry does\n",
               (long long)c->quarantined);
    }
    if (c->pipelines > 0) {
        printf("%lld whole pipelines were timed end to end\n", (long long)c->pipelines);
    }
    if (c->disturbed > 0) {
        printf("%lld timings were disturbed by something else on the GPU; their rows say by what\n",
               (long long)c->disturbed);
    }
    for (const kkt_json *file = kkt_json_first(j->files); file; file = kkt_json_next(file)) {
        printf("%s\n", kkt_json_as_string(file));
    }
}

static kkt_status write_results(job *j, const kkt_session_summary *summary, kkt_error *err) {
    kkt_view view;
    bool compiles = !kkt_compile_pool_unavailable(j->pool);
    const kkt_freshness *freshness =
        kkt_freshness_make(j->arena, compiles ? kkt_compile_pool_version(j->pool) : NULL);
    kkt_status status = kkt_view_make_by(j->db, freshness, j->options.arch, j->options.device,
                                         j->options.kernel ? j->options.kernel->name : NULL,
                                         j->options.objective, j->arena, &view, err);
    if (status != KKT_OK) {
        return status;
    }
    if (kkt_args_has(j->args, "--pareto")) {
        kkt_view_add_pareto(&view, j->arena);
    }
    const char *suffix =
        kkt_args_has(j->args, "--device")
            ? kkt_arena_printf(j->arena, "%s_%s", j->options.arch->name, j->options.device->name)
            : j->options.arch->name;
    status = kkt_report_write(&view, j->out_folder, suffix, NULL, note_file, j, err);
    if (status != KKT_OK) {
        return status;
    }
    if (j->json) {
        print_summary_json(j, &view, summary);
    } else {
        print_summary(j, &view, summary);
    }
    return KKT_OK;
}

/* ---- the run ---- */

static void on_event(void *context, const kkt_session_event *event) {
    job *j = context;
    if (strcmp(event->step, "pipeline") != 0) { /* not of the problem at hand */
        kkt_progress_result(&j->progress, event);
    }
    kkt_run_log_event(j->log, event);
}

static void on_note(void *context, const char *line) {
    job *j = context;
    kkt_progress_note(&j->progress, line);
    kkt_run_log_note(j->log, line);
}

static kkt_status prepare(job *j, const kkt_kernel *kernel, const kkt_pipeline *pipeline,
                          kkt_error *err) {
    kkt_status status = kkt_args_arch(j->args, &j->options.arch, &j->options.device, err);
    if (status == KKT_OK) {
        status = parse_options(j, kernel, pipeline, err);
    }
    if (status == KKT_OK) {
        status = kkt_folder_make(j->out_folder, err);
    }
    if (status == KKT_OK) {
        status = kkt_folder_check_writable(j->out_folder, err);
    }
    if (status == KKT_OK && kkt_args_get(j->args, "--log")) {
        status = kkt_run_log_open(kkt_args_get(j->args, "--log"), &j->log, err);
    }
    if (status == KKT_OK) {
        status = kkt_db_open(option_or(j->args, "--db", "kkttune.db"), KKT_DB_WRITE, &j->db, err);
    }
    if (status == KKT_OK && kkt_db_note(j->db)) {
        fprintf(stderr, "kkttune: %s\n", kkt_db_note(j->db));
    }
    if (status == KKT_OK) {
        j->on.arch = j->options.arch;
        j->on.device = j->options.device;
        status = kkt_backend_choice_make(&j->on, err);
        j->options.device = j->on.device;
    }
    if (status == KKT_OK && j->options.revalidate && !j->on.backend) {
        status = kkt_fail(err, KKT_ERR_ENVIRONMENT, 0,
                          "--revalidate measures again, and there is no GPU of %s here; leave it "
                          "out to replay recorded measurements",
                          j->options.arch->name);
    }
    if (status == KKT_OK) {
        status = kkt_pool_open(kkt_args_get(j->args, "--cache"), 0, &j->pool, err);
    }
    if (status == KKT_OK && kkt_compile_pool_unavailable(j->pool)) {
        fprintf(stderr, "kkttune: nothing is compiled: %s\n",
                kkt_compile_pool_unavailable(j->pool));
    }
    return status;
}

/* A problem that was asked for and has no candidate that works is no success; that some of the
 * default problems have none is in the report. Where nothing could be tried there is no failure. */
static kkt_status judge(const job *j, const kkt_session_counts *c, kkt_error *err) {
    const kkt_session_options *o = &j->options;
    int64_t failed = c->build_failed + c->wrong_result + c->racy + c->launch_failed + c->timed_out +
                     c->crashed + c->quarantined;
    int64_t tried = j->on.backend ? c->measured + c->noisy : c->compiled;
    int64_t good = tried + c->reused - c->quarantined;
    if (!o->problem || failed == 0 || good > 0) {
        return KKT_OK;
    }
    return kkt_fail(err, KKT_ERR_MISSING, 0,
                    "no candidate of %s with %s works: all %lld that were tried failed%s; the "
                    "report says which and why",
                    o->kernel ? o->kernel->name : o->pipeline->name, o->problem, (long long)failed,
                    c->quarantined > 0 ? ", some in an earlier run (--retry tries them again)"
                                       : "");
}

static kkt_status run(job *j, const kkt_kernel *kernel, const kkt_pipeline *pipeline,
                      kkt_error *err) {
    kkt_status status = prepare(j, kernel, pipeline, err);
    if (status != KKT_OK) {
        return status;
    }
    kkt_session_summary summary;
    j->options.reference_folder = j->on.replay ? j->on.reference_folder : NULL;
    j->options.progress = kkt_progress_show;
    j->options.progress_context = &j->progress;
    j->options.event = on_event;
    j->options.note = on_note;
    j->options.event_context = j;
    kkt_run_log_begin(j->log, &j->options);
    kkt_progress_open(&j->progress);
    j->progress.budget_seconds = j->options.budget_seconds;
    kkt_interrupt_watch();
    status = kkt_session_run(&j->options, j->db, j->pool, j->on.type, j->on.backend, &summary, err);
    kkt_progress_close(&j->progress);
    if (summary.counters_note[0] != '\0') {
        fprintf(stderr, "kkttune: hardware counters were not read: %s\n", summary.counters_note);
    }
    if (status == KKT_OK) {
        status = write_results(j, &summary, err);
    }
    if (status == KKT_OK) {
        status = kkt_run_log_end(j->log, &summary, err);
    }
    if (status == KKT_OK && summary.interrupted) {
        return kkt_fail(err, KKT_ERR_MISSING, 0,
                        "interrupted: what was done is kept; the same command goes on from there");
    }
    return status == KKT_OK ? judge(j, &summary.counts, err) : status;
}

kkt_status kkt_run_job(const kkt_args *args, const kkt_kernel *kernel, const kkt_pipeline *pipeline,
                       kkt_error *err) {
    job j = {
        .args = args,
        .json = kkt_args_has(args, "--json"),
        .out_folder = option_or(args, "--out", "kkttune-out"),
        .on = {.args = args, .json = kkt_args_has(args, "--json")},
        .arena = kkt_arena_open(),
        .files = kkt_json_array(),
    };
    kkt_status status = run(&j, kernel, pipeline, err);
    kkt_run_log_close(j.log);
    kkt_backend_choice_drop(&j.on);
    kkt_compile_pool_close(j.pool);
    kkt_db_close(j.db);
    kkt_json_close(j.files);
    kkt_arena_close(j.arena);
    return status;
}
