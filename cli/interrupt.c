#include "cli/interrupt.h"

#include <signal.h>
#include <stddef.h>

#include "tuner/engine/session.h"

static void on_interrupt(int signal_number) {
    kkt_session_interrupt();
    signal(signal_number, SIG_DFL); /* the second one ends the process at once */
}

void kkt_interrupt_watch(void) {
    struct sigaction action = {.sa_handler = on_interrupt};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}
