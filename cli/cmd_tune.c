/* `kkttune --arch A` (the main job) and `kkttune tune NAME`. */
#include "cli/run_job.h"

static const kkt_option main_options[] = {
    KKT_RUN_OPTIONS,
};

static kkt_status run_main(const kkt_args *args, kkt_error *err) {
    return kkt_run_job(args, NULL, NULL, err);
}

const kkt_command kkt_cmd_main = {
    .name = "",
    .operands = "",
    .summary = "predict, compile, check, time, store, export and report all kernels",
    .details =
        "Without a GPU of the architecture the recorded measurements that ship are replayed.\n"
        "A run that was interrupted goes on where it stopped when started again.",
    .options = main_options,
    .option_count = sizeof main_options / sizeof *main_options,
    .run = run_main,
};

static const kkt_option tune_options[] = {
    KKT_RUN_OPTIONS,
    {"--problem", "k=v,...", "one problem instead of the kernel's or pipeline's own"},
    {"--config", "k=v,...", "parameters to hold at a value"},
    {"--style", "NAME", "one write style of the kernel; default all with device code"},
};

static kkt_status run_tune(const kkt_args *args, kkt_error *err) {
    const char *name = kkt_args_operand(args, 0);
    const kkt_kernel *kernel = NULL;
    const kkt_pipeline *pipeline = kkt_pipeline_find(name);
    kkt_error unknown = {0};
    if (!pipeline && kkt_kernel_parse(name, &kernel, &unknown) != KKT_OK) {
        return kkt_fail(err, unknown.status, 0, "%s; 'kkttune list pipelines' has the pipelines",
                        unknown.message);
    }
    return kkt_run_job(args, kernel, pipeline, err);
}

const kkt_command kkt_cmd_tune = {
    .name = "tune",
    .operands = "NAME",
    .summary = "search the configurations of one kernel, or of a pipeline's kernels",
    .details =
        "A pipeline ('kkttune list pipelines') is tuned at every chunk size that its kernels\n"
        "share, on all of its problems, and timed end to end; --config may then hold the\n"
        "chunk size alone.",
    .options = tune_options,
    .option_count = sizeof tune_options / sizeof *tune_options,
    .run = run_tune,
};
