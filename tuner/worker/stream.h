/* Frames over a socket: the part that parent and child share. */
#ifndef KKT_TUNER_STREAM_H
#define KKT_TUNER_STREAM_H

#include "base/clock.h"
#include "tuner/worker/process.h"

typedef struct kkt_stream {
    int fd;
    unsigned char *buffer; /* bytes received and not yet handed out */
    size_t filled, capacity;
} kkt_stream;

typedef enum kkt_stream_state {
    KKT_STREAM_OK,
    KKT_STREAM_TIMEOUT,
    KKT_STREAM_CLOSED, /* the other side is gone */
    KKT_STREAM_DAMAGED /* a frame above the limit was announced */
} kkt_stream_state;

/* `deadline` in kkt_clock_seconds; INFINITY waits for ever. */
kkt_stream_state kkt_stream_send(kkt_stream *stream, uint32_t kind, const void *payload,
                                 size_t size, double deadline);
kkt_stream_state kkt_stream_receive(kkt_stream *stream, double deadline, kkt_frame *out);
/* Whether a whole frame, or a damaged header, is already in the buffer. */
bool kkt_stream_buffered(const kkt_stream *stream);
void kkt_stream_close(kkt_stream *stream);
/* What poll takes to wait until `deadline`: milliseconds rounded up, -1 for ever. */
int kkt_poll_milliseconds(double deadline);

#endif
