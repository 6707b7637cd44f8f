/* Search strategies: const descriptors in search_*.c, listed in search.c. A strategy
 * proposes configurations and is told what became of them; it knows neither compiler nor GPU. */
#ifndef KKT_TUNER_SEARCH_H
#define KKT_TUNER_SEARCH_H

#include "tuner/engine/space.h"

typedef struct kkt_search kkt_search;

typedef struct kkt_search_options {
    uint64_t seed;
    int64_t budget; /* candidates the caller means to try: strategies may plan for it */
} kkt_search_options;

typedef struct kkt_search_type {
    const char *name;    /* "model" */
    const char *summary; /* one line */
    kkt_status (*open)(kkt_space *space, const kkt_search_options *options, kkt_search **out,
                       kkt_error *err);
    void (*close)(kkt_search *search);
    /* The next configuration to try, never one twice. False: nothing more to propose. */
    bool (*propose)(kkt_search *search, kkt_point *out);
    /* The measured time of a proposed configuration; NaN where it failed. */
    void (*tell)(kkt_search *search, const kkt_values *config, double time_us);
} kkt_search_type;

const kkt_search_type *const *kkt_searches(size_t *count);
kkt_status kkt_search_parse(const char *name, const kkt_search_type **out, kkt_error *err);

#endif
