/* What the files on pipelines of a session share. */
#ifndef KKT_TUNER_SESSION_PIPELINE_H
#define KKT_TUNER_SESSION_PIPELINE_H

#include "kernels/pipeline.h"
#include "tuner/engine/session_internal.h"

/* What a member runs with at a chunk size. */
typedef struct choice {
    const kkt_kernel *kernel;
    const kkt_variant *variant; /* NULL: nothing is measured */
    const char *problem;        /* canonical */
    int64_t chunk;
    bool made_up;
    kkt_values config;
    double time_us;
    char text[1024]; /* canonical configuration */
} choice;

/* session_chain.c: times a pipeline with these members end to end, in order and, where a launch
 * waits by itself, overlapped, unless that was done before; stores what came of it. `problem_text`
 * is the pipeline's, canonical. */
kkt_status session_time_chain(session *s, const kkt_pipeline_kernels *pipeline,
                              const char *problem_text, const kkt_values *problem, int64_t chunk,
                              const choice *members, kkt_error *err);

#endif
