/* The correctness gate: what a candidate must pass before it is timed. Independent of how the
 * candidate is run: the caller gives a function that runs it on host tensors. */
#ifndef KKT_TUNER_GATE_H
#define KKT_TUNER_GATE_H

#include "db/record.h"
#include "kernels/kernel.h"

typedef struct kkt_verdict {
    kkt_outcome outcome; /* OK, WRONG_RESULT, RACY or what the runner returned */
    char reason[320];    /* names the check problem, the case and the figures */
    double rel_fro, max_abs, growth, tolerance; /* of the check with the least headroom */
} kkt_verdict;

/* Runs the candidate on `tensors`: inputs filled; outputs allocated and set to bytes 0xFF (NaN), to
 * be overwritten in place. The runner's own copies of outputs are poisoned and guarded by it; it
 * reports elements never written and damaged guards as WRONG_RESULT. Returns the outcome; OK where
 * it ran. Called twice a check, on separate copies: both outputs must agree bit for bit. */
typedef kkt_outcome (*kkt_gate_runner)(void *context, const kkt_values *problem,
                                       kkt_host_tensors *tensors, char *reason, size_t size);

/* All check problems of the kernel (small ones, hard inputs), in double precision. References are
 * cached in `cache` across candidates (NULL: none). */
typedef struct kkt_reference_cache kkt_reference_cache;
kkt_reference_cache *kkt_reference_cache_open(void);
void kkt_reference_cache_close(kkt_reference_cache *cache);

kkt_status kkt_gate_check(const kkt_kernel *kernel, const kkt_variant *variant,
                          const kkt_values *problem, const kkt_values *config, uint64_t seed,
                          kkt_gate_runner runner, void *context, kkt_reference_cache *cache,
                          kkt_verdict *out, kkt_error *err);

/* Scores given outputs against the reference: every part, or `max_parts` spread over all (first
 * and last included) where that is smaller. Used for the full problem, `run` and `verify`. */
kkt_status kkt_gate_score(const kkt_kernel *kernel, const kkt_values *problem,
                          const kkt_values *config, kkt_host_tensors *tensors, int64_t max_parts,
                          kkt_score *score, kkt_error *err);
/* Adds one part to a score: `regions` of `tensors` against `expected` (dense, one region after the
 * other), by the kernel's own rule or elementwise. */
kkt_status kkt_gate_score_part(const kkt_kernel *kernel, const kkt_values *problem,
                               const kkt_host_tensors *tensors, const kkt_region *regions,
                               int count, const double *expected, kkt_score *score, kkt_error *err);
/* Infinite where an element is not finite, or wrong where the reference is all zero. */
double kkt_score_rel_fro(const kkt_score *score);
/* Whether a score is within `tolerance` and exact where it must be; false with the finding, where
 * `finding` is not NULL. */
bool kkt_score_right(const kkt_score *score, double tolerance, char *finding, size_t size);
/* Values of all regions of a part, dense. */
int64_t kkt_regions_size(const kkt_region *regions, int count);
/* Which of `parts` is looked at as number `i` of `checked`: spread evenly, first and last included.
 */
int64_t kkt_gate_part(int64_t i, int64_t checked, int64_t parts);

#endif
