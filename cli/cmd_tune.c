/* `kkttune --arch A` (the main job) and `kkttune tune KERNEL`. */
#include "cli/run_job.h"

static const kkt_option main_options[] = {
    KKT_RUN_OPTIONS,
};

static kkt_status run_main(const kkt_args *args, kkt_error *err) {
    return kkt_run_job(args, NULL, err);
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
    {"--problem", "k=v,...", "one problem instead of the kernel's default ones"},
    {"--config", "k=v,...", "parameters to hold at a value"},
};

static kkt_status run_tune(const kkt_args *args, kkt_error *err) {
    const kkt_kernel *kernel = NULL;
    kkt_status status = kkt_kernel_parse(kkt_args_operand(args, 0), &kernel, err);
    return status == KKT_OK ? kkt_run_job(args, kernel, err) : status;
}

const kkt_command kkt_cmd_tune = {
    .name = "tune",
    .operands = "KERNEL",
    .summary = "search one kernel's configurations",
    .options = tune_options,
    .option_count = sizeof tune_options / sizeof *tune_options,
    .run = run_tune,
};
