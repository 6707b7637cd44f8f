#include "cli/run_job.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/backend_choice.h"
#include "cli/interrupt.h"
#include "cli/pipeline_print.h"
#include "cli/pool_open.h"
#include "cli/progress.h"
#include "cli/run_log.h"
#include "cli/run_result.h"
#include "reports/failures.h"
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
    kkt_run_log *log;                /* NULL: none */
    kkt_json *files;                 /* an array */
    const char *broken, *broken_why; /* a kernel nothing of which could be built; NULL: none */
    bool works; /* something of the problem that was asked for does, by what is stored */
} job;

static const char *option_or(const kkt_args *args, const char *name, const char *otherwise) {
    const char *value = kkt_args_get(args, name);
    return value ? value : otherwise;
}

/* ---- options ---- */

static kkt_status parse_budget(const char *text, kkt_session_options *out, kkt_error *err) {
    static const kkt_param keys[] = {
        {.name = "evals", .help = "candidates", .low = 1, .high = INT64_C(1) << 40, .fallback = 0},
        {.name = "seconds", .help = "seconds", .low = 1, .high = 1 << 30, .fallback = 0},
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
    kkt_status status = kkt_kernel_problem_parse(kernel, problem, &values, err);
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
        if (o->variant ? o->variant != o->kernel->variants[v]
                       : o->kernel->variants[v]->library != NULL) {
            continue; /* it may lack the parameters of the style asked for, a baseline any */
        }
        kkt_params_defaults(table, &values);
        status = kkt_params_parse(table, o->fixed ? o->fixed : "", &values, NULL, err);
    }
    return status;
}

static kkt_status parse_style(const char *name, kkt_session_options *o, kkt_error *err) {
    const kkt_style *style = kkt_style_find(name);
    if (!o->kernel) {
        return kkt_fail(err, KKT_ERR_INPUT, 0,
                        "a pipeline has no style of its own; leave --style out, or tune a kernel");
    }
    o->variant = style ? kkt_kernel_variant(o->kernel, style->id) : NULL;
    if (o->variant && kkt_variant_runs(o->variant)) {
        return KKT_OK;
    }
    return kkt_fail(err, KKT_ERR_INPUT, 0,
                    "%s has no style '%.40s' with device code; 'kkttune list kernels' has them",
                    o->kernel->name, name);
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
    if (status == KKT_OK && one && kkt_args_get(j->args, "--style")) {
        status = parse_style(kkt_args_get(j->args, "--style"), o, err);
    }
    return status == KKT_OK && one ? check_texts(o, err) : status;
}

/* ---- results ---- */

static void note_file(void *context, const char *path) {
    job *j = context;
    kkt_json_add_string(j->files, NULL, path);
}

static bool kernel_measured(const job *j, const kkt_view *view) {
    const kkt_kernel *kernel = j->options.kernel;
    kkt_values values;
    if (kkt_kernel_problem_parse(kernel, j->options.problem, &values, NULL) != KKT_OK) {
        return false; /* not reached: the session has read it */
    }
    const char *problem = kkt_params_text(j->arena, &kernel->problem, &values);
    for (size_t i = 0; i < view->entry_count; i++) {
        const kkt_entry *entry = &view->entries[i];
        if (isfinite(entry->time_us) && !entry->stale_reason &&
            strcmp(entry->kernel, kernel->name) == 0 && strcmp(entry->problem, problem) == 0) {
            return true;
        }
    }
    return false;
}

/* Whether a kernel is one of those that the run is about. */
static bool is_asked(const job *j, const char *kernel) {
    const kkt_session_options *o = &j->options;
    if (!o->pipeline) {
        return !o->kernel || strcmp(o->kernel->name, kernel) == 0;
    }
    return kkt_pipeline_has(o->pipeline, kernel);
}

/* The first kernel of the run that fails to build, in this run or one before, whatever is tried. */
static void find_broken(job *j, const kkt_view *view) {
    size_t count;
    const kkt_kernel *const *kernels = kkt_kernels(&count);
    for (size_t k = 0; k < count && !j->broken; k++) {
        const char *why = kkt_view_unbuildable(view, kernels[k]->name);
        if (why && is_asked(j, kernels[k]->name)) {
            j->broken = kernels[k]->name;
            j->broken_why = kkt_arena_printf(j->arena, "%.*s", (int)strcspn(why, "\n"), why);
        }
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
    find_broken(j, &view);
    if (j->options.problem) {
        j->works = j->options.kernel
                       ? kernel_measured(j, &view)
                       : kkt_pipelines_measured(&view, j->options.pipeline, j->options.problem);
    }
    const kkt_run_result result = {&view, summary, &j->options, j->files, j->arena};
    if (j->json) {
        kkt_run_result_print_json(&result);
        j->files = NULL; /* part of what was printed */
    } else {
        kkt_run_result_print(&result);
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

static kkt_status check_out_folder(const char *folder, kkt_error *err) {
    kkt_error why = {0};
    if (kkt_folder_check_writable(folder, &why) == KKT_OK) {
        return KKT_OK;
    }
    return kkt_fail(err, why.status, why.native, "%s; --out names another", why.message);
}

/* All that may be refused, before anything is made. */
static kkt_status check(job *j, const kkt_kernel *kernel, const kkt_pipeline *pipeline,
                        kkt_error *err) {
    kkt_status status = kkt_args_arch(j->args, &j->options.arch, &j->options.device, err);
    if (status == KKT_OK) {
        status = parse_options(j, kernel, pipeline, err);
    }
    if (status == KKT_OK) {
        status = check_out_folder(j->out_folder, err);
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
    return status;
}

/* The log and the database; a refused one or a refused recording leaves neither new. */
static kkt_status open_files(job *j, kkt_error *err) {
    const char *log = kkt_args_get(j->args, "--log");
    bool new_log = log && !kkt_file_exists(log);
    kkt_status status = log ? kkt_run_log_open(log, &j->log, err) : KKT_OK;
    if (status != KKT_OK) {
        return status;
    }
    const char *path = option_or(j->args, "--db", "kkttune.db");
    status = kkt_backend_choice_try_recordings(&j->on, path, err);
    if (status == KKT_OK) {
        status = kkt_db_open(path, KKT_DB_WRITE, &j->db, err);
    }
    if (status != KKT_OK && new_log) {
        unlink(log);
    }
    return status == KKT_OK ? kkt_folder_make(j->out_folder, err) : status;
}

static kkt_status prepare(job *j, const kkt_kernel *kernel, const kkt_pipeline *pipeline,
                          kkt_error *err) {
    kkt_status status = check(j, kernel, pipeline, err);
    if (status == KKT_OK) {
        status = open_files(j, err);
    }
    if (status == KKT_OK) {
        status = kkt_pool_open(kkt_args_get(j->args, "--cache"), 0, &j->pool, err);
    }
    if (status != KKT_OK) {
        return status;
    }
    if (kkt_db_note(j->db)) {
        fprintf(stderr, "kkttune: %s\n", kkt_db_note(j->db));
    }
    kkt_backend_choice_say(&j->on);
    if (kkt_compile_pool_unavailable(j->pool)) {
        fprintf(stderr, "kkttune: nothing is compiled: %s\n",
                kkt_compile_pool_unavailable(j->pool));
    }
    return KKT_OK;
}

/* A kernel of which nothing builds is no success, whoever asked. A problem that was asked for and
 * has no candidate that works, of this run or known before, is no success; that some of the default
 * problems have none is in the report. Where nothing could be tried there is no failure. */
static kkt_status judge(const job *j, const kkt_session_counts *c, kkt_error *err) {
    const kkt_session_options *o = &j->options;
    if (j->broken) {
        return kkt_fail(err, KKT_ERR_MISSING, 0,
                        "nothing of %s could be built, so nothing of it is exported: %s; the "
                        "report has it all",
                        j->broken, j->broken_why);
    }
    int64_t failed = c->build_failed + c->wrong_result + c->racy + c->launch_failed + c->timed_out +
                     c->crashed + c->quarantined;
    int64_t tried = j->on.backend ? c->measured + c->noisy : c->compiled;
    int64_t good = tried + c->reused - c->quarantined;
    if (!o->problem || failed == 0 || good > 0 || j->works) {
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
