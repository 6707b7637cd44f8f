/* What the model alone can say of an entry: the prediction of a stored configuration, and the
 * configuration it likes best where nothing is stored. */
#ifndef KKT_REPORTS_MODELLED_H
#define KKT_REPORTS_MODELLED_H

#include "base/arena.h"
#include "kernels/kernel.h"
#include "reports/view.h"

/* The present registry's rows for an identity; false where kernel or style is gone. */
bool kkt_modelled_find(const char *kernel, const char *style, const kkt_kernel **out_kernel,
                       const kkt_variant **out_variant);

/* How many parameters of a configuration are not at their default; 0 where that is not known. */
int kkt_modelled_departures(const char *kernel, const char *style, const char *config);

/* Fills the model's members of an entry (threads, shared memory, traffic, chain, limiter, times)
 * from problem and configuration. */
void kkt_modelled_fill(const kkt_variant *variant, const kkt_arch *arch, const kkt_device *device,
                       const kkt_values *problem, const kkt_values *config, kkt_arena *arena,
                       kkt_entry *entry);

/* The configuration with the smallest predicted time at a chunk (0: the kernel has none), by
 * descent over one parameter at a time from the defaults until nothing improves, and back to the
 * defaults where that costs nothing: deterministic, a
 * few hundred predictions. False where none applies or all are infeasible. */
bool kkt_modelled_best(const kkt_kernel *kernel, const kkt_variant *variant, const kkt_arch *arch,
                       const kkt_device *device, const kkt_values *problem, int64_t chunk,
                       kkt_values *config);

/* Whether a configuration is not to be taken. */
typedef bool (*kkt_modelled_exclude)(const void *context, const kkt_values *config);

/* The same as an entry of provenance predicted, among what `exclude` (may be NULL: nothing) leaves.
 * What is to be recommended comes from kkt_failures_modelled (failures.h). */
bool kkt_modelled_entry(const kkt_kernel *kernel, const kkt_variant *variant, const kkt_arch *arch,
                        const kkt_device *device, const kkt_values *problem, int64_t chunk,
                        kkt_modelled_exclude exclude, const void *context, kkt_arena *arena,
                        kkt_entry *entry);

/* An entry with everything unknown. */
void kkt_entry_clear(kkt_entry *entry);

#endif
