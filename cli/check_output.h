/* What `reference` and `run` print of a judged result (tuner/engine/data_check.h). */
#ifndef KKT_CLI_CHECK_OUTPUT_H
#define KKT_CLI_CHECK_OUTPUT_H

#include "base/json.h"
#include "tuner/engine/data_check.h"

/* kkt_data_check_run with its progress on standard error. */
kkt_status kkt_check_run(const kkt_data_check_request *request, kkt_data_check *out,
                         kkt_error *err);
/* schema kkttune.check/1 without the final printing; NULL texts are left out. */
kkt_json *kkt_check_json(const kkt_data_check *check, const char *kernel, const char *problem,
                         const char *config);
/* `result`: the tensor that could have been judged. */
void kkt_check_print(const kkt_data_check *check, const char *result);
/* KKT_OK, or for a wrong result KKT_ERR_MISSING with one sentence that names the element that shows
 * it; `tensors` are those that were judged, for their names. */
kkt_status kkt_check_status(const kkt_data_check *check, const kkt_host_tensors *tensors,
                            const char *what, kkt_error *err);

#endif
