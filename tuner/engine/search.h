/* Search strategies: const descriptors in search_*.c, listed in search.c. A strategy
 * proposes configurations and is told what became of them; it knows neither compiler nor GPU. */
#ifndef KKT_TUNER_SEARCH_H
#define KKT_TUNER_SEARCH_H

#include "tuner/engine/pointset.h"

typedef struct kkt_search kkt_search;

/* What became of one candidate of an earlier search. */
typedef struct kkt_memory_row {
    kkt_values config;
    int problem; /* number of the search, from 1 */
    double predicted_us;
    double time_us; /* NaN: it failed */
} kkt_memory_row;

/* What earlier searches of a run found out about the same variant on other problems. It depends on
 * nothing but their proposals and times, so that a resumed run remembers the same. */
typedef struct kkt_search_memory {
    kkt_memory_row *rows;
    size_t count, capacity;
    int problems;
} kkt_search_memory;

/* The number of a search that begins. */
int kkt_memory_begin(kkt_search_memory *memory);
/* What became of a candidate of search number `problem`. `time_us` NaN: it failed.
 * KKT_ERR_ENVIRONMENT: out of memory. */
kkt_status kkt_memory_add(kkt_search_memory *memory, int problem, const kkt_values *config,
                          double predicted_us, double time_us, kkt_error *err);
/* The fastest that search number `problem` tried, of those whose parameter number `param` has that
 * value (-1: of all); NULL: there is none. */
const kkt_memory_row *kkt_memory_best(const kkt_search_memory *memory, int problem, int param,
                                      int64_t value);
void kkt_memory_free(kkt_search_memory *memory);

typedef struct kkt_search_options {
    uint64_t seed;
    /* Candidates the caller means to try, with those of the search's own that are remembered:
     * strategies may plan for it. */
    int64_t budget;
    const kkt_pointset *points; /* of the space, where it was walked through already; NULL: not */
    const kkt_search_memory *memory; /* NULL: nothing to remember; read at `open` alone */
    int own; /* the search of the memory that goes on with this one; 0: it begins */
} kkt_search_options;

typedef struct kkt_search_type {
    const char *name;    /* "model" */
    const char *summary; /* one line */
    bool remembers;      /* it makes use of a memory */
    kkt_status (*open)(kkt_space *space, const kkt_search_options *options, kkt_search **out,
                       kkt_error *err);
    void (*close)(kkt_search *search);
    /* The next configuration to try, never one twice. False: nothing more to propose. */
    bool (*propose)(kkt_search *search, kkt_point *out);
    /* The measured time of a proposed configuration; NaN where it failed. */
    void (*tell)(kkt_search *search, const kkt_values *config, double time_us);
} kkt_search_type;

/* A strategy's own copy of the points; walks through the space where `options` has none. */
kkt_status kkt_search_points(kkt_space *space, const kkt_search_options *options, kkt_pointset *out,
                             kkt_error *err);

const kkt_search_type *const *kkt_searches(size_t *count);
kkt_status kkt_search_parse(const char *name, const kkt_search_type **out, kkt_error *err);

#endif
