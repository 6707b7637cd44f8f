/* Child processes that may crash or hang: this program re-executed as `PROGRAM --worker ROLE`,
 * spoken to in frames over a socket that is the child's standard input and output.
 *
 * A child is spawned, never forked: nothing of the parent (database, CUDA context, open files) is
 * in it. It runs in its own process group, so that Ctrl-C reaches the parent alone, and dies with
 * the thread that opened it. One thread at a time may use a child.
 *
 * A frame is a kind and at most 1 GiB of bytes; on the wire: size (u32), kind (u32), payload, in
 * the machine's byte order. What comes from a child is not trusted: sizes are checked, and memory
 * is taken only for bytes that have come. */
#ifndef KKT_TUNER_PROCESS_H
#define KKT_TUNER_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define KKT_FRAME_LIMIT ((size_t)1 << 30)

typedef struct kkt_frame {
    uint32_t kind;          /* the caller's own numbering */
    unsigned char *payload; /* malloc'ed, never NULL in a received frame, followed by a NUL */
    size_t size;            /* bytes, the NUL not counted */
} kkt_frame;
void kkt_frame_free(kkt_frame *frame); /* and zeroes it */

/* ---- the parent's side ---- */

typedef struct kkt_child kkt_child;

typedef enum kkt_child_event {
    KKT_CHILD_FRAME,   /* a frame has come */
    KKT_CHILD_TIMEOUT, /* nothing whole has come in time; the child still runs */
    KKT_CHILD_ENDED    /* no more will come: kkt_child_reason says why */
} kkt_child_event;

/* Starts a child. `program` NULL: this program (/proc/self/exe). KKT_ERR_ENVIRONMENT where it
 * cannot be started. */
kkt_status kkt_child_open(const char *program, const char *role, kkt_child **out, kkt_error *err);
/* Kills what still runs, reaps it and frees the object; NULL is a no-op. */
void kkt_child_close(kkt_child *child);

/* Sends one frame, waiting at most `seconds` for the child to take it. KKT_ERR_MISSING where the
 * child has ended, took too long (it is then killed: half a frame cannot be taken back) or the
 * frame is above the limit; the message gives the reason. */
kkt_status kkt_child_send(kkt_child *child, uint32_t kind, const void *payload, size_t size,
                          double seconds, kkt_error *err);
/* Waits at most `seconds` (0: only what is there) for the next frame. `out` is filled for
 * KKT_CHILD_FRAME alone; the caller frees it. A frame above the limit ends the child. */
kkt_child_event kkt_child_receive(kkt_child *child, double seconds, kkt_frame *out);
/* Waits at most `seconds` until one of `count` children (NULL entries are skipped) may have
 * something to say and returns its index; -1: none in time. kkt_child_receive with 0 seconds then
 * tells; it may still answer KKT_CHILD_TIMEOUT where only part of a frame has come. Children are
 * looked at from `start` on, round robin, so that a chatty one does not starve the others. */
int kkt_child_wait(kkt_child *const *children, size_t count, size_t start, double seconds);
/* Ends the child at once and reaps it. `why` becomes its reason ("timed out after 20 s"); NULL:
 * "killed". A no-op on one that has ended. */
void kkt_child_kill(kkt_child *child, const char *why);

bool kkt_child_running(const kkt_child *child); /* as far as is known: no frame has failed yet */
int kkt_child_pid(const kkt_child *child);
/* Processor time of all its threads since it was started; negative where that is not known. */
double kkt_child_cpu_seconds(const kkt_child *child);
/* Of a child that has ended: "ended by signal 11 (Segmentation fault)", "ended with exit code 3",
 * or what kkt_child_kill was told. Before: "still running". Lives as long as the child. */
const char *kkt_child_reason(const kkt_child *child);
/* The signal that ended it; 0 where it was none or is not known. */
int kkt_child_signal(const kkt_child *child);

/* ---- the child's side ---- */

typedef struct kkt_worker kkt_worker;

/* Takes over standard input and output as the frame socket (what libraries print on standard
 * output goes to standard error from here on), asks to die with the parent and turns core files
 * off. KKT_ERR_INPUT where standard input is not the socket of a parent. */
kkt_status kkt_worker_open(kkt_worker **out, kkt_error *err);
void kkt_worker_close(kkt_worker *worker); /* NULL is a no-op */
/* The next frame; false where the parent is gone or the stream is damaged: the worker should end.
 * The caller frees the frame. */
bool kkt_worker_receive(kkt_worker *worker, kkt_frame *out);
/* False where the parent is gone or the frame is above the limit. */
bool kkt_worker_send(kkt_worker *worker, uint32_t kind, const void *payload, size_t size);

/* ---- payloads ---- */

/* Appending and reading plain values and strings of a payload; the reader never leaves the bytes
 * and remembers a failure, so that a caller checks once at the end. */
typedef struct kkt_packer {
    unsigned char *data; /* malloc'ed; zero-initialise, end with kkt_packer_free */
    size_t size, capacity;
} kkt_packer;
void kkt_packer_free(kkt_packer *packer); /* and zeroes it */
void kkt_pack_bytes(kkt_packer *packer, const void *bytes, size_t size);
void kkt_pack_i64(kkt_packer *packer, int64_t value);
void kkt_pack_real(kkt_packer *packer, double value);
void kkt_pack_blob(kkt_packer *packer, const void *bytes, size_t size); /* with its length */
void kkt_pack_string(kkt_packer *packer, const char *text);             /* NULL packs "" */

typedef struct kkt_unpacker {
    const unsigned char *data;
    size_t size, at;
    bool failed;
} kkt_unpacker;
/* Copies `size` bytes out; zeroes `out` and fails where they are not there. */
void kkt_unpack_bytes(kkt_unpacker *unpacker, void *out, size_t size);
int64_t kkt_unpack_i64(kkt_unpacker *unpacker);
double kkt_unpack_real(kkt_unpacker *unpacker);
/* A view into the payload; NULL with size 0 on failure. */
const unsigned char *kkt_unpack_blob(kkt_unpacker *unpacker, size_t *size);
/* A NUL-terminated view into the payload; "" on failure or where a NUL lies inside. */
const char *kkt_unpack_string(kkt_unpacker *unpacker);
/* All read, nothing failed, nothing left over. */
bool kkt_unpack_done(const kkt_unpacker *unpacker);

#endif
