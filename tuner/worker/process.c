#include "tuner/worker/process.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tuner/worker/stream.h"

/* How long a child that has closed its socket may take to end by itself, and how long a killed
 * one may take to be reaped: a process with a hung GPU kernel needs a while. */
static const double LEAVE_SECONDS = 2, REAP_SECONDS = 20;
enum { WAIT_MAX = 64 };

struct kkt_child {
    pid_t pid;
    kkt_stream stream;
    bool ended;
    int signal;
    char reason[200];
};

static void set_attributes(posix_spawnattr_t *attributes) {
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_init(attributes);
    posix_spawnattr_setsigmask(attributes, &none);
    posix_spawnattr_setsigdefault(attributes, &all);
    posix_spawnattr_setpgroup(attributes, 0);
    posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                             POSIX_SPAWN_SETPGROUP);
}

static int spawn(const char *program, const char *role, int fd, pid_t *pid) {
    char flag[] = "--worker";
    char *name = strdup(program), *role_copy = strdup(role);
    if (name == NULL || role_copy == NULL)
        abort();
    char *arguments[] = {name, flag, role_copy, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fd, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, STDIN_FILENO, STDOUT_FILENO);
    posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
    set_attributes(&attributes);
    int failure = posix_spawn(pid, program, &actions, &attributes, arguments, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    free(name);
    free(role_copy);
    return failure;
}

kkt_status kkt_child_open(const char *program, const char *role, kkt_child **out, kkt_error *err) {
    const char *file = program == NULL ? "/proc/self/exe" : program;
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return kkt_fail_errno(err, KKT_ERR_ENVIRONMENT, errno,
                              "cannot make a socket for the %s worker", role);
    kkt_child *child = calloc(1, sizeof *child);
    if (child == NULL)
        abort();
    child->stream.fd = pair[0];
    int failure = spawn(file, role, pair[1], &child->pid);
    close(pair[1]);
    if (failure != 0) {
        kkt_stream_close(&child->stream);
        free(child);
        return kkt_fail_errno(err, KKT_ERR_ENVIRONMENT, failure, "cannot start '%s --worker %s'",
                              file, role);
    }
    *out = child;
    return KKT_OK;
}

/* Reaps the child if it ends within `seconds`. */
static bool reap(kkt_child *child, double seconds, int *status) {
    double deadline = kkt_clock_seconds() + seconds;
    struct timespec pause = {.tv_nsec = 200000};
    for (;;) {
        pid_t got = waitpid(child->pid, status, WNOHANG);
        if (got == child->pid)
            return true;
        if (got < 0 && errno != EINTR) {
            *status = 0;
            return true;
        }
        if (kkt_clock_seconds() >= deadline)
            return false;
        nanosleep(&pause, NULL);
        if (pause.tv_nsec < 10000000)
            pause.tv_nsec *= 2;
    }
}

static void note_status(kkt_child *child, int status) {
    if (WIFSIGNALED(status)) {
        child->signal = WTERMSIG(status);
        snprintf(child->reason, sizeof child->reason, "ended by signal %d (%s)", child->signal,
                 strsignal(child->signal));
    } else {
        snprintf(child->reason, sizeof child->reason, "ended with exit code %d",
                 WEXITSTATUS(status));
    }
}

/* Kills the group, the child's own children included. */
static void put_down(kkt_child *child, int *status) {
    if (kill(-child->pid, SIGKILL) != 0)
        kill(child->pid, SIGKILL);
    reap(child, REAP_SECONDS, status);
}

static void end_of_stream(kkt_child *child) {
    int status = 0;
    if (reap(child, LEAVE_SECONDS, &status)) {
        note_status(child, status);
    } else {
        put_down(child, &status);
        snprintf(child->reason, sizeof child->reason, "closed its socket and did not end");
    }
    child->ended = true;
}

void kkt_child_kill(kkt_child *child, const char *why) {
    if (child->ended)
        return;
    int status = 0;
    put_down(child, &status);
    child->ended = true;
    snprintf(child->reason, sizeof child->reason, "%s", why == NULL ? "killed" : why);
}

void kkt_child_close(kkt_child *child) {
    if (child == NULL)
        return;
    kkt_child_kill(child, NULL);
    kkt_stream_close(&child->stream);
    free(child);
}

kkt_status kkt_child_send(kkt_child *child, uint32_t kind, const void *payload, size_t size,
                          double seconds, kkt_error *err) {
    if (size > KKT_FRAME_LIMIT)
        return kkt_fail(err, KKT_ERR_MISSING, 0,
                        "a message of %zu bytes to a worker is above the limit of %zu", size,
                        KKT_FRAME_LIMIT);
    if (!child->ended) {
        kkt_stream_state state =
            kkt_stream_send(&child->stream, kind, payload, size, kkt_clock_seconds() + seconds);
        if (state == KKT_STREAM_OK)
            return KKT_OK;
        if (state == KKT_STREAM_TIMEOUT)
            kkt_child_kill(child, "killed: it did not take a message in time");
        else
            end_of_stream(child);
    }
    return kkt_fail(err, KKT_ERR_MISSING, 0, "the worker process %s", child->reason);
}

kkt_child_event kkt_child_receive(kkt_child *child, double seconds, kkt_frame *out) {
    if (child->ended)
        return KKT_CHILD_ENDED;
    switch (kkt_stream_receive(&child->stream, kkt_clock_seconds() + seconds, out)) {
    case KKT_STREAM_OK:
        return KKT_CHILD_FRAME;
    case KKT_STREAM_TIMEOUT:
        return KKT_CHILD_TIMEOUT;
    case KKT_STREAM_CLOSED:
        end_of_stream(child);
        return KKT_CHILD_ENDED;
    case KKT_STREAM_DAMAGED:
        break;
    }
    kkt_child_kill(child, "killed: it announced a message above the limit");
    return KKT_CHILD_ENDED;
}

static bool has_news(const kkt_child *child) {
    return child != NULL && (child->ended || kkt_stream_buffered(&child->stream));
}

int kkt_child_wait(kkt_child *const *children, size_t count, size_t start, double seconds) {
    struct pollfd entries[WAIT_MAX];
    if (count > WAIT_MAX)
        abort();
    for (size_t i = 0; i < count; i++) {
        size_t at = (start + i) % count;
        if (has_news(children[at]))
            return (int)at;
        bool waits = children[at] != NULL;
        entries[i] = (struct pollfd){.fd = waits ? children[at]->stream.fd : -1, .events = POLLIN};
    }
    double deadline = kkt_clock_seconds() + seconds;
    int ready;
    do {
        ready = poll(entries, count, kkt_poll_milliseconds(deadline));
    } while (ready < 0 && errno == EINTR && kkt_clock_seconds() < deadline);
    for (size_t i = 0; ready > 0 && i < count; i++)
        if (entries[i].revents != 0)
            return (int)((start + i) % count);
    return -1;
}

bool kkt_child_running(const kkt_child *child) {
    return !child->ended;
}

int kkt_child_pid(const kkt_child *child) {
    return (int)child->pid;
}

double kkt_child_cpu_seconds(const kkt_child *child) {
    clockid_t clock;
    struct timespec used;
    if (child->ended || clock_getcpuclockid(child->pid, &clock) != 0 ||
        clock_gettime(clock, &used) != 0)
        return -1;
    return (double)used.tv_sec + 1e-9 * (double)used.tv_nsec;
}

const char *kkt_child_reason(const kkt_child *child) {
    return child->ended ? child->reason : "still running";
}

int kkt_child_signal(const kkt_child *child) {
    return child->signal;
}
