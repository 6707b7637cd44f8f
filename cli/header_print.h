/* What a person is told of the C header. */
#ifndef KKT_CLI_HEADER_PRINT_H
#define KKT_CLI_HEADER_PRINT_H

#include <stdio.h>

#include "kernels/pipeline.h"
#include "reports/view.h"

/* A line for each style that is the fastest somewhere and has no rows in the header, of the kernels
 * of a pipeline or of all (NULL). */
void kkt_header_print_left_out(const kkt_view *view, const kkt_pipeline *only, FILE *out);

#endif
