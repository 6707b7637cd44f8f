/* The backends, for the list in backend.c, and what they share. */
#ifndef KKT_TUNER_MEASURE_BACKENDS_H
#define KKT_TUNER_MEASURE_BACKENDS_H

#include "tuner/measure/backend.h"
#include "tuner/measure/statistics.h"

extern const kkt_backend_type kkt_backend_cuda;
extern const kkt_backend_type kkt_backend_fake;

/* Zeroes a result and sets every number to unknown, the strings to the result's own buffers and
 * `policy` to the request's canonical text. */
void kkt_measure_result_init(kkt_measure_result *result, const kkt_policy *policy);
/* Points the record's strings at the result's own buffers again, after the struct was copied. */
void kkt_measure_result_bind(kkt_measure_result *result);
/* Sets an outcome with its reason ("%s" style). */
void kkt_measure_result_set(kkt_measure_result *result, kkt_outcome outcome, const char *format,
                            ...) KKT_PRINTF(3, 4);
/* Median and interval of the samples; OK, or NOISY where the interval stayed wide. */
void kkt_measure_result_times(kkt_measure_result *result, const kkt_policy *policy);
/* True once enough samples were taken for the interval that the policy asks for. */
bool kkt_policy_satisfied(const kkt_policy *policy, const float *samples, size_t count);

#endif
