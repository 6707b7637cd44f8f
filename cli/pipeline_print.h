/* What a run says of whole pipelines. */
#ifndef KKT_CLI_PIPELINE_PRINT_H
#define KKT_CLI_PIPELINE_PRINT_H

#include "base/json.h"
#include "reports/curve.h"

/* Totals by chunk size, of all pipelines with device code or of the one given: a row a chunk size
 * for one, a row a measured problem for all. `problem`: of it that one alone ("k=v,..."; NULL:
 * all). Prints nothing where there is none. */
void kkt_pipelines_print(const kkt_view *view, const kkt_pipeline *only, const char *problem);
/* Whether the pipeline, or each of its kernels, was measured on the problem ("k=v,...") at some
 * chunk size, by what is there now. */
bool kkt_pipelines_measured(const kkt_view *view, const kkt_pipeline *pipeline,
                            const char *problem);
/* The same as the array `chunk_choice` of a JSON object. */
void kkt_pipelines_add_json(const kkt_view *view, const kkt_pipeline *only, kkt_json *root);
/* One curve: a row a chunk size. */
void kkt_curve_print(const kkt_curve *curve);

#endif
