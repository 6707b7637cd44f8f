/* What is expected of each point of a space before it is tried: a time, from the model's prediction
 * and what other problems showed of its error, and a chance that it works at all. */
#ifndef KKT_TUNER_OUTLOOK_H
#define KKT_TUNER_OUTLOOK_H

#include "tuner/engine/search.h"
#include "tuner/engine/surrogate.h"

typedef struct kkt_outlook kkt_outlook;

/* `set` is of `space`; both are borrowed. `memory` may be NULL; it is read here alone, without what
 * it has of search number `own` (0: nothing). */
kkt_status kkt_outlook_open(kkt_space *space, const kkt_pointset *set,
                            const kkt_search_memory *memory, int own, kkt_outlook **out,
                            kkt_error *err);
void kkt_outlook_close(kkt_outlook *outlook);

/* Mark `at` as the surrogates see it: its value indices, and the logarithm of its expected time. */
const kkt_surrogate_point *kkt_outlook_point(const kkt_outlook *outlook, uint32_t at);
/* The chance that it works, between 0 and 1. */
double kkt_outlook_chance(const kkt_outlook *outlook, uint32_t at);
/* What became of a point: failures teach where not to go. */
void kkt_outlook_tell(kkt_outlook *outlook, uint32_t at, bool failed);
/* Learns from what was told; to be called before kkt_outlook_chance after a tell. */
void kkt_outlook_update(kkt_outlook *outlook);

/* The mark of a group that is most like a configuration, whatever the group: fewest named values
 * that differ, numbers by their distance; of equals the one expected to be fastest. -1: the group
 * is empty. */
int64_t kkt_outlook_nearest(const kkt_outlook *outlook, int group, const kkt_values *config);

/* The marks that are most like what won a group on each of the other problems, the latest first,
 * each once: at most `most` into `out`; returns how many. `own` is no other problem. */
int kkt_outlook_winners(const kkt_outlook *outlook, int group, const kkt_search_memory *memory,
                        int own, int most, int64_t *out);

#endif
