/* --log: what became of each candidate, as it happens, one JSON object a line. */
#ifndef KKT_CLI_RUN_LOG_H
#define KKT_CLI_RUN_LOG_H

#include "tuner/engine/session.h"

typedef struct kkt_run_log kkt_run_log;

/* Replaces the file; KKT_ERR_ENVIRONMENT where it cannot be written. */
kkt_status kkt_run_log_open(const char *path, kkt_run_log **out, kkt_error *err);
/* The first line: of what the log is. NULL is a no-op, here and below. */
void kkt_run_log_begin(kkt_run_log *log, const kkt_session_options *options);
void kkt_run_log_event(kkt_run_log *log, const kkt_session_event *event);
void kkt_run_log_note(kkt_run_log *log, const char *line);
/* Writes the last line. KKT_ERR_ENVIRONMENT where any line could not be written. */
kkt_status kkt_run_log_end(kkt_run_log *log, const kkt_session_summary *summary, kkt_error *err);
void kkt_run_log_close(kkt_run_log *log);

#endif
