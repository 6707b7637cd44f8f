/* Progress on standard error: one updating line on a terminal, otherwise a line when a phase
 * begins, every few seconds, and when it ends. */
#ifndef KKT_CLI_PROGRESS_H
#define KKT_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct kkt_progress {
    bool terminal;
    bool line_open; /* a terminal line that has not been ended */
    char phase[32];
    double last_s;    /* when the last line was written */
    double started_s; /* of the phase */
} kkt_progress;

void kkt_progress_open(kkt_progress *progress);
/* The session's callback; `context` is the kkt_progress. */
void kkt_progress_show(void *context, const char *phase, int64_t done, int64_t total,
                       const char *detail);
void kkt_progress_close(kkt_progress *progress); /* ends an open line */

#endif
