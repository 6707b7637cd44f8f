/* What was timed of libraries' routines, beside the best of what was tuned. */
#ifndef KKT_REPORTS_BASELINE_H
#define KKT_REPORTS_BASELINE_H

#include "reports/view.h"

/* While a view is made. Zero-initialise. */
typedef struct kkt_baselines {
    kkt_baseline *rows;
    size_t count, capacity;
} kkt_baselines;

/* Whether a result is of a library. */
bool kkt_baseline_is(const kkt_entry *entry);
/* Takes a result in, where it was measured. */
void kkt_baselines_add(kkt_baselines *baselines, const kkt_entry *entry, kkt_arena *arena);
/* Gives them to the view, whose entries are chosen: those of `kernel` (NULL: all). */
void kkt_baselines_finish(kkt_baselines *baselines, const char *kernel, kkt_view *view);

/* What of a configuration says which call it is: all that has an effect but the chunk size. In the
 * arena. */
const char *kkt_baseline_call(const kkt_entry *entry, kkt_arena *arena);

#endif
