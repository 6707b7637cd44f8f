/* Pairs of measured results that differ in one parameter alone. Only such a pair says what a
 * parameter is worth: the best result with one value and the best with another may differ in
 * everything else, too. `kkttune ablate` measures pairs. */
#ifndef KKT_REPORTS_CONTRAST_H
#define KKT_REPORTS_CONTRAST_H

#include "base/arena.h"
#include "reports/view.h"

typedef struct kkt_contrast {
    const kkt_entry *with, *without; /* rows of the view */
    double gain;                     /* without / with - 1: 0.02 is 2 % faster with it */
    bool noise;                      /* the intervals overlap */
} kkt_contrast;

typedef struct kkt_contrast_query {
    const char *kernel, *style;
    const char *problem; /* NULL: pairs of every problem */
    int64_t chunk;
    const char *param;
    const char *with, *without; /* two of its values */
} kkt_contrast_query;

typedef struct kkt_contrasts {
    size_t count;
    kkt_contrast *pairs; /* by falling gain */
    size_t faster, slower, noise;
} kkt_contrasts;

/* All pairs of a view, in `arena`: same problem and every other parameter the same, both timed on
 * one GPU model with one driver from one source, neither noisy. Where the two were not timed in
 * turns, their intervals are widened by KKT_TIMED_APART_DRIFT. */
void kkt_contrasts_find(const kkt_view *view, const kkt_contrast_query *query, kkt_arena *arena,
                        kkt_contrasts *out);
double kkt_contrasts_median(const kkt_contrasts *contrasts); /* of the gains; NaN: no pair */

/* In words: "faster", "slower", "within noise", "faster in 3, within noise in 1",
 * "open: no measured pair differs in this alone". */
const char *kkt_contrasts_finding(const kkt_contrasts *contrasts, kkt_arena *arena);

#endif
