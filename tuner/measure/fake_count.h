/* Counters of the fake backend. */
#ifndef KKT_TUNER_MEASURE_FAKE_COUNT_H
#define KKT_TUNER_MEASURE_FAKE_COUNT_H

#include "tuner/measure/backend.h"

/* Why counting fails, on request. */
typedef struct kkt_fake_trouble {
    const char *name; /* "denied" */
    kkt_count_state state;
    const char *note;
} kkt_fake_trouble;
/* KKT_ERR_INPUT lists what exists. */
kkt_status kkt_fake_trouble_parse(const char *name, const kkt_fake_trouble **out, kkt_error *err);

/* Counts that a real GPU could have given: bytes near the prediction's, shares below 100 %. Each
 * depends on `hash`, the prediction and the counter alone. `trouble` NULL: none. */
void kkt_fake_counts(uint64_t hash, const kkt_measure_request *request,
                     const kkt_fake_trouble *trouble, kkt_counts *out);

#endif
