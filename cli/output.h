/* Standard output as a whole process sees it. */
#ifndef KKT_CLI_OUTPUT_H
#define KKT_CLI_OUTPUT_H

#include "kkttune/status.h"

/* Before anything else. A closed standard descriptor is replaced by one that refuses use, so that
 * no database ever becomes descriptor 1. SIGPIPE is ignored: a worker or reader that is gone is an
 * error code of a write. */
void kkt_output_begin(void);

/* Flushes; a result that could not be written turns KKT_OK into KKT_ERR_ENVIRONMENT with one line
 * on standard error. Where the reader of a pipe is gone the process ends by SIGPIPE, silently. */
kkt_status kkt_output_end(kkt_status status);

#endif
