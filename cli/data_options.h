/* The options that `reference` and `run` share: a kernel over a user's own data. */
#ifndef KKT_CLI_DATA_OPTIONS_H
#define KKT_CLI_DATA_OPTIONS_H

#include "cli/command.h"
#include "kernels/kernel.h"

typedef struct kkt_data_options {
    const kkt_kernel *kernel;
    const kkt_variant *variant;
    const char *in, *out; /* folders; `out` exists and can be written to; NULL: none is named */
    kkt_values config;
    uint64_t config_given; /* bits of the parameters that --config names */
} kkt_data_options;

/* Reads the operand, --config, --in and --out. The kernel must have a reference and, where
 * `device_code` is set, a source to run; --out must then be there. */
kkt_status kkt_data_options_read(const kkt_args *args, bool device_code, kkt_data_options *out,
                                 kkt_error *err);

#endif
