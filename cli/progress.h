/* Progress on standard error: one updating line on a terminal, otherwise a line when a phase
 * begins for the first time, every ten seconds, and when it ends. */
#ifndef KKT_CLI_PROGRESS_H
#define KKT_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "tuner/engine/session.h"

typedef struct kkt_progress {
    double budget_seconds; /* of the whole run; 0: none. Set after opening. */
    bool terminal;
    bool line_open; /* a terminal line that has not been ended */
    char phase[32];
    char begun[8][32];  /* phases that had their first line: away from a terminal one is enough */
    double last_s;      /* when the last line was written */
    double begun_s;     /* of all */
    double phase_s;     /* when the phase began */
    int64_t phase_done; /* what was done of it before its first line */
    double best_us;     /* of the problem of the last result; NaN: none */
    char best_of[512];  /* its kernel and problem */
    char best_problem[512];
} kkt_progress;

void kkt_progress_open(kkt_progress *progress);
/* The session's callback; `context` is the kkt_progress. */
void kkt_progress_show(void *context, const char *phase, int64_t done, int64_t total,
                       const char *detail);
/* Keeps the best time of the result's problem, which is shown beside that problem alone. */
void kkt_progress_result(kkt_progress *progress, const kkt_session_event *event);
/* A line of its own, between those of the progress. */
void kkt_progress_note(kkt_progress *progress, const char *line);
void kkt_progress_close(kkt_progress *progress); /* ends an open line */

#endif
