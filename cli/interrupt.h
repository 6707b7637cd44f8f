/* SIGINT and SIGTERM end a session after the candidate in flight; a second one ends the process. */
#ifndef KKT_CLI_INTERRUPT_H
#define KKT_CLI_INTERRUPT_H

void kkt_interrupt_watch(void);

#endif
