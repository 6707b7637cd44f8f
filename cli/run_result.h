/* What a run says at its end. */
#ifndef KKT_CLI_RUN_RESULT_H
#define KKT_CLI_RUN_RESULT_H

#include "base/arena.h"
#include "base/json.h"
#include "reports/view.h"
#include "tuner/engine/session.h"

typedef struct kkt_run_result {
    const kkt_view *view;
    const kkt_session_summary *summary;
    const kkt_session_options *options;
    kkt_json *files; /* an array of the paths that were written */
    kkt_arena *arena;
} kkt_run_result;

/* For people, on standard output: the best of each problem, that of the one asked for first. */
void kkt_run_result_print(const kkt_run_result *result);
/* The same as kkttune.run/1, of which `files` becomes a part. */
void kkt_run_result_print_json(const kkt_run_result *result);

#endif
