/* --log: what became of each candidate, as it happens, one JSON object a line. */
#ifndef KKT_CLI_RUN_LOG_H
#define KKT_CLI_RUN_LOG_H

#include "tuner/engine/session.h"

typedef struct kkt_run_log kkt_run_log;

/* Replaces the file and writes the first line, which says of what the log is. */
kkt_status kkt_run_log_open(const char *path, const kkt_session_options *options, kkt_run_log **out,
                            kkt_error *err);
void kkt_run_log_event(kkt_run_log *log, const kkt_session_event *event); /* NULL is a no-op */
void kkt_run_log_note(kkt_run_log *log, const char *line);                /* NULL is a no-op */
/* Writes the last line and closes. KKT_ERR_ENVIRONMENT where any line could not be written. */
kkt_status kkt_run_log_end(kkt_run_log *log, const kkt_session_summary *summary, kkt_error *err);
void kkt_run_log_close(kkt_run_log *log); /* without a last line; NULL is a no-op */

#endif
