#include "tuner/measure/fake_count.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"

#define COUNT_BIAS 0.02 /* counted bytes differ from the predicted by at most this share */

static const kkt_fake_trouble TROUBLES[] = {
    {"denied", KKT_COUNT_UNAVAILABLE,
     "the driver denies counters to this process (injected); run it with CAP_SYS_ADMIN"},
    {"busy", KKT_COUNT_UNAVAILABLE,
     "another profiler holds the counters (injected); pause it with dcgmi profiling --pause"},
    {"absent", KKT_COUNT_UNAVAILABLE, "there is no CUPTI (injected); set KKTTUNE_CUDA"},
    {"failed", KKT_COUNT_FAILED, "the counting worker ended by signal 6 (injected)"},
};
#define TROUBLE_COUNT (sizeof TROUBLES / sizeof TROUBLES[0])

kkt_status kkt_fake_trouble_parse(const char *name, const kkt_fake_trouble **out, kkt_error *err) {
    kkt_text known = {0};
    for (size_t i = 0; i < TROUBLE_COUNT; i++) {
        if (strcmp(TROUBLES[i].name, name) == 0) {
            *out = &TROUBLES[i];
            kkt_text_free(&known);
            return KKT_OK;
        }
        kkt_text_printf(&known, "%s%s", i > 0 ? ", " : "", TROUBLES[i].name);
    }
    kkt_status status = kkt_fail(err, KKT_ERR_INPUT, 0,
                                 "unknown trouble '%s' for the fake backend's counters; known: %s",
                                 name, kkt_text_get(&known));
    kkt_text_free(&known);
    return status;
}

static double value_of(const kkt_counter *counter, double share, double hbm_bytes) {
    if (strcmp(counter->unit, "bytes") == 0) {
        return round(0.5 * hbm_bytes * (1.0 + COUNT_BIAS * (2.0 * share - 1.0)));
    }
    if (strcmp(counter->unit, "%") == 0) {
        return 100.0 * share;
    }
    return strcmp(counter->unit, "warps/issue") == 0 ? share : round(1e6 * share);
}

void kkt_fake_counts(uint64_t hash, const kkt_measure_request *request,
                     const kkt_fake_trouble *trouble, kkt_counts *out) {
    if (trouble != NULL) {
        kkt_counts_set(out, trouble->state, "%s", trouble->note);
        return;
    }
    kkt_counts_set(out, KKT_COUNT_DONE, "%s", "");
    snprintf(out->chip, sizeof out->chip, "%s", request->arch->cupti_chip);
    out->passes = 1;
    for (int i = 0; i < KKT_COUNTER_COUNT; i++) {
        double share = kkt_random_unit(kkt_random_next(&hash));
        if (kkt_counter_metric((kkt_counter_id)i, out->chip) != NULL) {
            out->values[i] = value_of(&kkt_counters()[i], share, request->prediction->hbm_bytes);
        }
    }
}
