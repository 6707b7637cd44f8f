/* The points of a space as a strategy keeps them: 24 bytes each, grouped by chunk size. */
#ifndef KKT_TUNER_POINTSET_H
#define KKT_TUNER_POINTSET_H

#include "tuner/engine/space.h"

typedef struct kkt_mark {
    int64_t ordinal;
    float predicted_us;
    float time_us; /* NaN until told, and for a failed one */
    bool proposed, told;
    uint8_t group; /* index of the chunk value */
} kkt_mark;

#define KKT_GROUPS_MAX 16

typedef struct kkt_pointset {
    kkt_mark *marks; /* by ordinal */
    int64_t count;
    uint32_t *order;                   /* of marks: by group, then predicted time, then ordinal */
    int groups;                        /* 1 where the kernel has no chunk */
    int64_t first[KKT_GROUPS_MAX + 1]; /* group g is order[first[g]] to order[first[g + 1] - 1] */
} kkt_pointset;

/* Walks through the space once; `rejected` as in kkt_space_next. KKT_ERR_ENVIRONMENT: out of
 * memory. */
kkt_status kkt_pointset_make(kkt_space *space, kkt_space_rejected rejected, void *context,
                             kkt_pointset *out, kkt_error *err);
kkt_status kkt_pointset_copy(const kkt_pointset *set, kkt_pointset *out, kkt_error *err);
void kkt_pointset_free(kkt_pointset *set);
/* The mark of a configuration, or NULL. */
kkt_mark *kkt_pointset_find(const kkt_pointset *set, const kkt_space *space,
                            const kkt_values *config);
/* Fills `out` from a mark and marks it proposed. */
bool kkt_pointset_propose(kkt_space *space, kkt_mark *mark, kkt_point *out);
/* Records what became of a configuration. */
void kkt_pointset_tell(kkt_pointset *set, const kkt_space *space, const kkt_values *config,
                       double time_us);

#endif
