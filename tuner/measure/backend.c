#include "tuner/measure/backend.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tuner/measure/backends.h"

static const kkt_backend_type *const BACKENDS[] = {
    &kkt_backend_cuda,
    &kkt_backend_fake,
};

/* A median whose interval is wider than this many times the share asked for ranks nothing. */
#define NOISY_SHARES 5.0
/* A timing of which more samples than this share are outliers was disturbed by something. */
#define OUTLIERS_SHARE 0.1
/* Events resolve about half a microsecond: an interval of two such steps is as good as it gets. */
#define EVENT_STEPS_US 1.0

const kkt_backend_type *const *kkt_backends(size_t *count) {
    *count = sizeof BACKENDS / sizeof BACKENDS[0];
    return BACKENDS;
}

const kkt_backend_type *kkt_backend_find(const char *name) {
    for (size_t i = 0; i < sizeof BACKENDS / sizeof BACKENDS[0]; i++) {
        if (strcmp(BACKENDS[i]->name, name) == 0) {
            return BACKENDS[i];
        }
    }
    return NULL;
}

void kkt_measure_result_free(kkt_measure_result *result) {
    if (result == NULL) {
        return;
    }
    free(result->samples);
    *result = (kkt_measure_result){0};
}

void kkt_measure_result_init(kkt_measure_result *result, const kkt_policy *policy) {
    *result = (kkt_measure_result){0};
    kkt_run_record *run = &result->run;
    run->provenance = KKT_MEASURED;
    run->time_us = run->time_low_us = run->time_high_us = KKT_UNKNOWN_REAL;
    run->rel_fro = run->max_abs = run->growth = run->tolerance = KKT_UNKNOWN_REAL;
    run->sm_clock_mhz = run->memory_clock_mhz = KKT_UNKNOWN_REAL;
    run->temperature_c = run->power_w = run->hbm_bytes_counted = KKT_UNKNOWN_REAL;
    run->energy_mj = KKT_UNKNOWN_REAL;
    run->outliers = run->throttled = KKT_UNKNOWN_INT;
    kkt_text text = {0};
    kkt_policy_format(policy, &text);
    snprintf(result->policy, sizeof result->policy, "%s", kkt_text_get(&text));
    kkt_text_free(&text);
    kkt_measure_result_bind(result);
}

void kkt_measure_result_bind(kkt_measure_result *result) {
    kkt_run_record *run = &result->run;
    run->reason = result->reason[0] != '\0' ? result->reason : NULL;
    run->date = result->date;
    run->policy = result->policy;
    run->throttle = result->throttle;
    run->disturbed = result->disturbed[0] != '\0' ? result->disturbed : NULL;
    run->samples_us = result->samples;
}

void kkt_measure_result_set(kkt_measure_result *result, kkt_outcome outcome, const char *format,
                            ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(result->reason, sizeof result->reason, format, args);
    va_end(args);
    result->run.outcome = outcome;
    kkt_measure_result_bind(result);
}

void kkt_counts_set(kkt_counts *counts, kkt_count_state state, const char *format, ...) {
    va_list args;
    *counts = (kkt_counts){.state = state};
    for (int i = 0; i < KKT_COUNTER_COUNT; i++) {
        counts->values[i] = KKT_UNKNOWN_REAL;
    }
    va_start(args, format);
    vsnprintf(counts->note, sizeof counts->note, format, args);
    va_end(args);
}

double kkt_counts_hbm_bytes(const kkt_counts *counts) {
    return counts->values[KKT_COUNTER_DRAM_READ_BYTES] +
           counts->values[KKT_COUNTER_DRAM_WRITE_BYTES];
}

bool kkt_policy_satisfied(const kkt_policy *policy, const float *samples, size_t count) {
    if (count < (size_t)policy->min_samples) {
        return false;
    }
    kkt_median median;
    kkt_median_of(samples, count, &median);
    return median.high - median.low < policy->interval_share * median.median;
}

void kkt_measure_result_times(kkt_measure_result *result, const kkt_policy *policy) {
    kkt_run_record *run = &result->run;
    kkt_median median;
    kkt_median_of(result->samples, (size_t)run->sample_count, &median);
    run->time_us = median.median;
    run->time_low_us = median.low;
    run->time_high_us = median.high;
    run->outliers = (int64_t)kkt_outliers_of(result->samples, (size_t)run->sample_count);
    if (result->disturbed[0] == '\0' &&
        (double)run->outliers > OUTLIERS_SHARE * (double)run->sample_count) {
        snprintf(result->disturbed, sizeof result->disturbed,
                 "%lld of %lld samples are far from the median", (long long)run->outliers,
                 (long long)run->sample_count);
    }
    double width = median.high - median.low;
    if (width > NOISY_SHARES * policy->interval_share * median.median && width > EVENT_STEPS_US) {
        if (result->disturbed[0] == '\0') {
            snprintf(result->disturbed, sizeof result->disturbed, "the samples spread widely");
        }
        kkt_measure_result_set(result, KKT_OUTCOME_NOISY,
                               "the median %.4g us is known to within %.2g us after %lld samples; "
                               "is something else using the GPU?",
                               median.median, width, (long long)run->sample_count);
        return;
    }
    run->outcome = KKT_OUTCOME_OK;
    result->reason[0] = '\0';
    kkt_measure_result_bind(result);
}
