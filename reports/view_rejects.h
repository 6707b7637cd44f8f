/* The part of a view on what was rejected or failed; internal to its making. */
#ifndef KKT_REPORTS_VIEW_REJECTS_H
#define KKT_REPORTS_VIEW_REJECTS_H

#include "reports/view.h"

/* Reasons with their numbers taken out, beside view->rejects. Zero-initialise. */
typedef struct kkt_reject_keys {
    const char **keys;
    size_t capacity;
} kkt_reject_keys;

/* Adds one result to the group of its cause. */
void kkt_view_count_reject(kkt_view *view, kkt_reject_keys *keys_of, kkt_arena *arena,
                           const kkt_result *result, const char *outcome);
void kkt_view_sort_rejects(kkt_view *view);

#endif
