#include "cli/progress.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const double PLAIN_INTERVAL_S = 5.0;
static const double TERMINAL_INTERVAL_S = 0.1;

static double now_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void kkt_progress_open(kkt_progress *progress) {
    memset(progress, 0, sizeof *progress);
    progress->terminal = isatty(STDERR_FILENO) == 1;
}

void kkt_progress_show(void *context, const char *phase, int64_t done, int64_t total,
                       const char *detail) {
    kkt_progress *p = context;
    double now = now_seconds();
    bool new_phase = strcmp(p->phase, phase) != 0;
    if (new_phase) {
        kkt_progress_close(p);
        snprintf(p->phase, sizeof p->phase, "%s", phase);
        p->started_s = now;
    }
    double interval = p->terminal ? TERMINAL_INTERVAL_S : PLAIN_INTERVAL_S;
    if (!new_phase && done < total && now - p->last_s < interval) {
        return;
    }
    p->last_s = now;
    double left = done > 0 ? (now - p->started_s) * (double)(total - done) / (double)done : 0;
    char eta[32] = "";
    if (done < total && now - p->started_s > 2) {
        snprintf(eta, sizeof eta, ", about %.0f s left", left);
    }
    fprintf(stderr, "%s%s %lld of %lld%s%s%s%s", p->terminal ? "\r\033[K" : "", phase,
            (long long)done, (long long)total, eta, detail && *detail ? " (" : "",
            detail ? detail : "", detail && *detail ? ")" : "");
    if (p->terminal) {
        p->line_open = true;
        fflush(stderr);
    } else {
        fputc('\n', stderr);
    }
}

void kkt_progress_close(kkt_progress *progress) {
    if (progress->line_open) {
        fputc('\n', stderr);
        progress->line_open = false;
    }
}
