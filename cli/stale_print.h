/* How many stored times no longer count: what a person would otherwise have to find row by row. */
#ifndef KKT_CLI_STALE_PRINT_H
#define KKT_CLI_STALE_PRINT_H

#include <stdio.h>

#include "kernels/pipeline.h"
#include "reports/view.h"

/* The stale times of a view: of one kernel (NULL: of all), or of the kernels of a pipeline (NULL:
 * of all). `*why` (may be NULL) receives the reason of the
 * first, or NULL. */
size_t kkt_stale_times(const kkt_view *view, const char *kernel, const kkt_pipeline *pipeline,
                       const char **why);
/* A line of it, and how to measure again; nothing where nothing is stale. */
void kkt_stale_print(const kkt_view *view, const char *kernel, const kkt_pipeline *pipeline,
                     FILE *out);

#endif
