/* kkttune model: the analytic model's tables, for any values. */
#include "cli/model_query.h"

static const kkt_option options[] = {
    KKT_OPTION_ARCH,
    KKT_OPTION_DEVICE,
    {"--problem", "K=V,...", "problem; keys that are left out keep their default"},
    {"--chunk", "LIST", "chunk sizes, 1 to 4096; default 16,32,64,128,256"},
    {"--base", "LIST", "base blocks of the inverse; chunk / base must be a power of two"},
    {"--dk", "N", "key dimension; default 128"},
    {"--dv", "N", "value dimension; default 128"},
    {"--dtype", "T", "bf16, fp16 or fp32; default bf16"},
    {"--block-dv", "LIST", "columns of the state a block holds; default 64 in the layouts"},
    {"--threads", "LIST", "threads per block, 1 to 1024"},
    KKT_OPTION_JSON,
};

static kkt_status run(const kkt_args *args, kkt_error *err) {
    kkt_model_query query;
    kkt_status status = kkt_model_query_read(args, &query, err);
    if (status)
        return status;
    size_t count;
    const kkt_kernel *const *kernels = kkt_kernels(&count);
    for (size_t k = 0; k < count && k < KKT_MODEL_KERNELS; ++k)
        if (!query.kernel_usable[k] && query.kernel_reason[k][0])
            fprintf(stderr, "%s is left out of the styles: %s\n", kernels[k]->name,
                    query.kernel_reason[k]);
    if (kkt_args_has(args, "--json"))
        kkt_model_print_json(&query);
    else
        kkt_model_print_text(&query);
    return KKT_OK;
}

extern const kkt_command kkt_cmd_model;
const kkt_command kkt_cmd_model = {
    .name = "model",
    .operands = "",
    .summary = "the analytic model: ledger, layouts, occupancy, traffic, predicted times",
    .details = "Needs no GPU and no database. LIST is numbers separated by commas.\n"
               "Where --threads or --block-dv is given, the styles get a row for each of its "
               "values; other\nparameters stand at the best prediction. Times come from constants "
               "fitted on an "
               "H200; on other\ndevices they serve to rank.",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run,
};
