/* `kkttune lookup PIPELINE`. */
#ifndef KKT_CLI_LOOKUP_PIPELINE_H
#define KKT_CLI_LOOKUP_PIPELINE_H

#include "cli/command.h"
#include "kernels/pipeline.h"

kkt_status kkt_lookup_pipeline(const kkt_args *args, const kkt_pipeline *pipeline, kkt_error *err);

#endif
