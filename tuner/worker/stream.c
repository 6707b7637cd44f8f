#include "tuner/worker/stream.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HEADER_BYTES = 8, READ_BYTES = 64 * 1024 };

int kkt_poll_milliseconds(double deadline) {
    if (isinf(deadline) && deadline > 0)
        return -1;
    double left = ceil(1e3 * (deadline - kkt_clock_seconds()));
    if (!(left > 0))
        return 0;
    return left > (double)INT_MAX ? INT_MAX : (int)left;
}

/* Waits until the socket is ready for `events`. An error or hang-up counts as ready: the call that
 * follows then tells. */
static bool wait_ready(const kkt_stream *stream, short events, double deadline) {
    for (;;) {
        struct pollfd entry = {.fd = stream->fd, .events = events};
        int ready = poll(&entry, 1, kkt_poll_milliseconds(deadline));
        if (ready > 0)
            return true;
        if (ready == 0 || errno != EINTR)
            return false;
    }
}

static kkt_stream_state send_bytes(kkt_stream *stream, const unsigned char *bytes, size_t size,
                                   double deadline) {
    while (size > 0) {
        ssize_t sent = send(stream->fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent >= 0) {
            bytes += sent;
            size -= (size_t)sent;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            if (!wait_ready(stream, POLLOUT, deadline))
                return KKT_STREAM_TIMEOUT;
        } else if (errno != EINTR) {
            return KKT_STREAM_CLOSED;
        }
    }
    return KKT_STREAM_OK;
}

kkt_stream_state kkt_stream_send(kkt_stream *stream, uint32_t kind, const void *payload,
                                 size_t size, double deadline) {
    if (size > KKT_FRAME_LIMIT)
        return KKT_STREAM_DAMAGED;
    uint32_t words[2] = {(uint32_t)size, kind};
    unsigned char header[HEADER_BYTES];
    memcpy(header, words, sizeof header);
    kkt_stream_state state = send_bytes(stream, header, sizeof header, deadline);
    if (state != KKT_STREAM_OK)
        return state;
    return size > 0 ? send_bytes(stream, payload, size, deadline) : KKT_STREAM_OK;
}

static size_t announced_bytes(const kkt_stream *stream) {
    uint32_t size;
    memcpy(&size, stream->buffer, sizeof size);
    return size;
}

bool kkt_stream_buffered(const kkt_stream *stream) {
    if (stream->filled < HEADER_BYTES)
        return false;
    size_t size = announced_bytes(stream);
    return size > KKT_FRAME_LIMIT || stream->filled - HEADER_BYTES >= size;
}

/* Hands out the frame at the head of the buffer and moves what follows it to the front. */
static void take_frame(kkt_stream *stream, kkt_frame *out) {
    size_t size = announced_bytes(stream);
    memcpy(&out->kind, stream->buffer + sizeof(uint32_t), sizeof out->kind);
    out->size = size;
    out->payload = malloc(size + 1);
    if (out->payload == NULL)
        abort();
    memcpy(out->payload, stream->buffer + HEADER_BYTES, size);
    out->payload[size] = 0;
    stream->filled -= HEADER_BYTES + size;
    memmove(stream->buffer, stream->buffer + HEADER_BYTES + size, stream->filled);
}

static void make_room(kkt_stream *stream) {
    if (stream->capacity - stream->filled >= READ_BYTES)
        return;
    size_t capacity = stream->capacity == 0 ? 2 * (size_t)READ_BYTES : 2 * stream->capacity;
    unsigned char *buffer = realloc(stream->buffer, capacity);
    if (buffer == NULL)
        abort();
    stream->buffer = buffer;
    stream->capacity = capacity;
}

kkt_stream_state kkt_stream_receive(kkt_stream *stream, double deadline, kkt_frame *out) {
    for (;;) {
        if (kkt_stream_buffered(stream)) {
            if (announced_bytes(stream) > KKT_FRAME_LIMIT)
                return KKT_STREAM_DAMAGED;
            take_frame(stream, out);
            return KKT_STREAM_OK;
        }
        make_room(stream);
        ssize_t got = recv(stream->fd, stream->buffer + stream->filled,
                           stream->capacity - stream->filled, MSG_DONTWAIT);
        if (got > 0) {
            stream->filled += (size_t)got;
        } else if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            if (!wait_ready(stream, POLLIN, deadline))
                return KKT_STREAM_TIMEOUT;
        } else if (got == 0 || errno != EINTR) {
            return KKT_STREAM_CLOSED;
        }
    }
}

void kkt_stream_close(kkt_stream *stream) {
    if (stream->fd >= 0)
        close(stream->fd);
    free(stream->buffer);
    *stream = (kkt_stream){.fd = -1};
}
