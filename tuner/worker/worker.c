#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tuner/worker/process.h"
#include "tuner/worker/stream.h"

struct kkt_worker {
    kkt_stream stream;
};

/* A parent that died before the death signal was asked for has closed its end of the socket. */
static bool parent_gone(void) {
    struct pollfd entry = {.fd = STDIN_FILENO, .events = POLLRDHUP};
    return poll(&entry, 1, 0) > 0 && (entry.revents & (POLLHUP | POLLRDHUP)) != 0;
}

kkt_status kkt_worker_open(kkt_worker **out, kkt_error *err) {
    int type = 0;
    socklen_t length = sizeof type;
    if (getsockopt(STDIN_FILENO, SOL_SOCKET, SO_TYPE, &type, &length) != 0 || type != SOCK_STREAM)
        return kkt_fail(err, KKT_ERR_INPUT, 0,
                        "--worker is for the program's own child processes: standard input is not "
                        "the socket of a parent");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGINT, SIG_IGN); /* of a terminal: it is for the parent to say when this ends */
    if (parent_gone())
        return kkt_fail(err, KKT_ERR_MISSING, 0, "the parent of a worker process has ended");
    struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    int fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (fd < 0 || nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 ||
        dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
        int cause = errno;
        if (fd >= 0)
            close(fd);
        if (nothing >= 0)
            close(nothing);
        return kkt_fail_errno(err, KKT_ERR_ENVIRONMENT, cause,
                              "a worker process cannot set up its files");
    }
    close(nothing);
    kkt_worker *worker = calloc(1, sizeof *worker);
    if (worker == NULL)
        abort();
    worker->stream.fd = fd;
    *out = worker;
    return KKT_OK;
}

void kkt_worker_close(kkt_worker *worker) {
    if (worker == NULL)
        return;
    kkt_stream_close(&worker->stream);
    free(worker);
}

bool kkt_worker_receive(kkt_worker *worker, kkt_frame *out) {
    return kkt_stream_receive(&worker->stream, INFINITY, out) == KKT_STREAM_OK;
}

bool kkt_worker_send(kkt_worker *worker, uint32_t kind, const void *payload, size_t size) {
    return kkt_stream_send(&worker->stream, kind, payload, size, INFINITY) == KKT_STREAM_OK;
}
