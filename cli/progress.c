#include "cli/progress.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"

static const double PLAIN_INTERVAL_S = 10.0;
static const double TERMINAL_INTERVAL_S = 0.1;
static const double ETA_AFTER_S = 2.0;
enum { COLUMNS = 80 };

void kkt_progress_open(kkt_progress *progress) {
    memset(progress, 0, sizeof *progress);
    progress->terminal = isatty(STDERR_FILENO) == 1;
    progress->begun_s = kkt_clock_seconds();
    progress->best_us = (double)NAN;
}

static void add_duration(kkt_text *out, double seconds) {
    long long whole = (long long)(fmax(seconds, 0.0) + 0.5);
    if (whole >= 3600) {
        kkt_text_printf(out, "%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60, whole % 60);
    } else {
        kkt_text_printf(out, "%lld:%02lld", whole / 60, whole % 60);
    }
}

/* "measure 12 of 64, 52 left, best 103.2 us, 0:12 of 10:00, ETA 0:45 (problem)". */
static void compose(const kkt_progress *p, double now, int64_t done, int64_t total,
                    const char *detail, kkt_text *out) {
    kkt_text_printf(out, "%s %lld of %lld", p->phase, (long long)done, (long long)total);
    if (done < total) {
        kkt_text_printf(out, ", %lld left", (long long)(total - done));
    }
    if (isfinite(p->best_us) && detail && strcmp(detail, p->best_problem) == 0) {
        kkt_text_printf(out, ", best %.1f us", p->best_us);
    }
    double used = now - p->begun_s;
    double budget_left = p->budget_seconds > 0 ? p->budget_seconds - used : (double)INFINITY;
    if (p->budget_seconds > 0) {
        kkt_text_add(out, ", ");
        add_duration(out, used);
        kkt_text_add(out, " of ");
        add_duration(out, p->budget_seconds);
    }
    double spent = now - p->phase_s;
    int64_t new_ones = done - p->phase_done;
    if (done < total && new_ones > 0 && spent > ETA_AFTER_S) {
        kkt_text_add(out, ", ETA ");
        add_duration(out, fmin(spent * (double)(total - done) / (double)new_ones, budget_left));
    }
    if (detail && *detail) {
        kkt_text_printf(out, " (%s)", detail);
    }
}

/* What does not fit on the terminal's line would stay there for ever. */
static void write_terminal(const kkt_text *line) {
    struct winsize size = {0};
    size_t columns = COLUMNS;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        columns = size.ws_col;
    }
    size_t room = columns - 1;
    fprintf(stderr, "\r\033[K%.*s", (int)(line->length < room ? line->length : room),
            kkt_text_get(line));
    fflush(stderr);
}

static bool first_time(kkt_progress *p) {
    for (size_t i = 0; i < sizeof p->begun / sizeof p->begun[0]; i++) {
        if (p->begun[i][0] == '\0') {
            snprintf(p->begun[i], sizeof p->begun[i], "%s", p->phase);
            return true;
        }
        if (strcmp(p->begun[i], p->phase) == 0) {
            return false;
        }
    }
    return false;
}

void kkt_progress_show(void *context, const char *phase, int64_t done, int64_t total,
                       const char *detail) {
    kkt_progress *p = context;
    double now = kkt_clock_seconds();
    bool new_phase = strcmp(p->phase, phase) != 0;
    if (new_phase) {
        kkt_progress_close(p);
        snprintf(p->phase, sizeof p->phase, "%s", phase);
        p->phase_s = now;
        p->phase_done = done;
    }
    double interval = p->terminal ? TERMINAL_INTERVAL_S : PLAIN_INTERVAL_S;
    bool announce = new_phase && (first_time(p) || p->terminal);
    if (!announce && done < total && now - p->last_s < interval) {
        return;
    }
    p->last_s = now;
    kkt_text line = {0};
    compose(p, now, done, total, detail, &line);
    if (p->terminal) {
        write_terminal(&line);
        p->line_open = true;
    } else {
        fprintf(stderr, "%s\n", kkt_text_get(&line));
    }
    kkt_text_free(&line);
}

void kkt_progress_result(kkt_progress *progress, const kkt_session_event *event) {
    char problem[sizeof progress->best_of];
    bool timed = event->outcome == KKT_OUTCOME_OK && event->time_us > 0;
    snprintf(problem, sizeof problem, "%s %s", event->id->kernel, event->id->problem);
    if (strcmp(problem, progress->best_of) != 0) {
        snprintf(progress->best_of, sizeof progress->best_of, "%s", problem);
        snprintf(progress->best_problem, sizeof progress->best_problem, "%s", event->id->problem);
        progress->best_us = (double)NAN;
    }
    if (timed && !(event->time_us >= progress->best_us)) {
        progress->best_us = event->time_us;
    }
}

void kkt_progress_note(kkt_progress *progress, const char *line) {
    kkt_progress_close(progress);
    fprintf(stderr, "kkttune: %s\n", line);
}

void kkt_progress_close(kkt_progress *progress) {
    if (progress->line_open) {
        fputc('\n', stderr);
        progress->line_open = false;
    }
}
