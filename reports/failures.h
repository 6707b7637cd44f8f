/* What is known not to work, so that the model recommends none of it. */
#ifndef KKT_REPORTS_FAILURES_H
#define KKT_REPORTS_FAILURES_H

#include "kernels/kernel.h"
#include "reports/view.h"

/* A configuration of today's sources that failed on a problem, in whatever way. */
typedef struct kkt_failure {
    const kkt_variant *variant;
    kkt_values problem, config;
} kkt_failure;

/* How the builds of one kernel and style went, over all problems; today's sources alone count. */
typedef struct kkt_build_tally {
    const kkt_kernel *kernel;
    const kkt_variant *variant;
    bool failed, good;
    const char *message; /* of the first that failed */
} kkt_build_tally;

/* Zero-initialise; all of it lives in the arena given. */
typedef struct kkt_failures {
    kkt_failure *all;
    size_t count, capacity;
    kkt_build_tally *builds;
    size_t build_count, build_capacity;
} kkt_failures;

/* Takes one result of the database into account. */
void kkt_failures_add(kkt_failures *failures, kkt_arena *arena, const kkt_result *result);
/* Whether every build of a style, or of its whole kernel, that was tried failed: what was not tried
 * is then no better.
 * Names that are not known are never so. */
bool kkt_failures_hopeless(const kkt_failures *failures, const char *kernel, const char *style);
/* kkt_modelled_entry (modelled.h) among what is not known to fail; false also for a style that is
 * hopeless. `failures` NULL: nothing is known. */
bool kkt_failures_modelled(const kkt_failures *failures, const kkt_kernel *kernel,
                           const kkt_variant *variant, const kkt_arch *arch,
                           const kkt_device *device, const kkt_values *problem, int64_t chunk,
                           kkt_arena *arena, kkt_entry *entry);
/* Takes out of rows what is only predicted and hopeless; the number that is left. */
size_t kkt_failures_drop(const kkt_failures *failures, kkt_entry *rows, size_t count);
/* The compiler's message where a kernel has a style that is hopeless and the view has nothing of
 * that kernel that could run: the first message; NULL where it is not so. */
const char *kkt_view_unbuildable(const kkt_view *view, const char *kernel);

#endif
