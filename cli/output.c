#include "cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"

void kkt_print_json(kkt_json *root) {
    char *text = kkt_json_print(root, true);
    fputs(text, stdout);
    fputc('\n', stdout);
    free(text);
    kkt_json_close(root);
}

void kkt_output_begin(void) {
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) != -1)
            continue;
        int opened = open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
        if (opened >= 0 && opened != fd)
            close(opened);
    }
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file-size limit is a full disk: write() says so */
}

kkt_status kkt_output_end(kkt_status status) {
    errno = 0;
    bool failed = fflush(stdout) != 0;
    int cause = errno;
    failed = failed || ferror(stdout) != 0;
    if (!failed)
        return status;
    if (cause == EPIPE) { /* the reader has seen enough: end as other programs do */
        signal(SIGPIPE, SIG_DFL);
        raise(SIGPIPE);
    }
    fprintf(stderr, "kkttune: cannot write to standard output: %s\n",
            cause ? strerror(cause) : "an earlier write failed");
    return status != KKT_OK ? status : KKT_ERR_ENVIRONMENT;
}
