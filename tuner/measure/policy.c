#include "tuner/measure/backend.h"

#include <stdlib.h>
#include <string.h>

void kkt_policy_defaults(kkt_policy *out) {
    *out = (kkt_policy){
        .warmup_launches = 5,
        .min_samples = 20,
        .max_samples = 200,
        .interval_share = 0.01,
        .sample_seconds = 1.0,
        .candidate_seconds = 10.0,
        /* Ten times the largest L2 of the device table, so that nothing of the last run is left. */
        .flush_bytes = INT64_C(512) << 20,
        .seed = 1,
        .large_parts = 64,
        /* Several periods of the power sensor: 100 ms on A100 and H100 (Yang, Adamek and Armour,
         * SC 2024). */
        .energy_seconds = 0.5,
    };
}

void kkt_policy_format(const kkt_policy *policy, kkt_text *out) {
    kkt_text_printf(out,
                    "candidate_seconds=%g,energy_each=%d,energy_seconds=%g,flush_bytes=%lld,"
                    "gate=%d,interval_share=%g,large_parts=%d,max_samples=%d,min_samples=%d,"
                    "sample_seconds=%g,seed=%llu,warmup_launches=%d",
                    policy->candidate_seconds, policy->energy_each, policy->energy_seconds,
                    (long long)policy->flush_bytes, KKT_GATE_REVISION, policy->interval_share,
                    policy->large_parts, policy->max_samples, policy->min_samples,
                    policy->sample_seconds, (unsigned long long)policy->seed,
                    policy->warmup_launches);
}

int kkt_policy_gate(const char *policy) {
    const char *at = policy != NULL ? strstr(policy, ",gate=") : NULL;
    return at != NULL ? (int)strtol(at + strlen(",gate="), NULL, 10) : 1;
}
