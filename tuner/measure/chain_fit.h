/* How the tensors of a pipeline's members meet: by name. Told from the descriptors alone, so that a
 * member that does not fit is found wherever the pipeline is timed. */
#ifndef KKT_TUNER_CHAIN_FIT_H
#define KKT_TUNER_CHAIN_FIT_H

#include "tuner/measure/backend.h"

/* One list for the whole pipeline. It begins with the whole kernel's tensors, so that regions and
 * outputs mean the same; what passes between members and their workspace follows, as workspace. */
typedef struct kkt_chain_fit {
    int count;
    kkt_tensor tensors[KKT_TENSORS_MAX];
    size_t bytes[KKT_TENSORS_MAX]; /* 0 for workspace of the whole kernel, which does not run */
    int places[KKT_MEMBERS_MAX][KKT_TENSORS_MAX]; /* of a member's tensor in the list */
} kkt_chain_fit;

/* False where they do not fit: `reason` names the member and its tensor. */
bool kkt_chain_fit_make(const kkt_chain_request *request, kkt_chain_fit *out, char *reason,
                        size_t size);

#endif
