/* The parent's end of the line to the GPU worker. */
#ifndef KKT_TUNER_MEASURE_CUDA_LINK_H
#define KKT_TUNER_MEASURE_CUDA_LINK_H

#include "tuner/measure/backends.h"
#include "tuner/measure/cuda_worker.h"

/* Seconds for messages that no candidate's code delays. */
#define KKT_LINK_SEND_SECONDS 120.0
#define KKT_LINK_INPUT_SECONDS 600.0

/* Zero-initialise but for the first four. */
typedef struct kkt_link {
    int gpu;
    const char *program;    /* what to re-execute; NULL: this program */
    const char *cache;      /* cubin cache folder; NULL: the default */
    const char *role;       /* what the worker does; NULL: it times */
    kkt_child *child;       /* NULL: none */
    bool started;           /* the child has its context */
    unsigned char *helpers; /* cubin of the helper kernels; NULL: not compiled yet */
    size_t helpers_size;
    const kkt_arch *helpers_arch;
} kkt_link;

void kkt_link_close(kkt_link *link);
/* Ends the worker; the next kkt_link_ready starts another. */
void kkt_link_drop(kkt_link *link);
/* Starts a worker and asks it for its GPU. KKT_ERR_ENVIRONMENT where there is none. */
kkt_status kkt_link_hello(kkt_link *link, kkt_backend_info *info, kkt_error *err);
/* A worker with a context on the GPU, new where the last one is gone. */
kkt_status kkt_link_ready(kkt_link *link, const kkt_arch *arch, kkt_error *err);
/* Sends a request and, but for RUN, waits until the worker has its inputs: from then on the
 * candidate's own code runs, and the candidate's time limit counts. Frees the payload. */
kkt_status kkt_link_begin(kkt_link *link, kkt_wire_kind kind, kkt_packer *payload, kkt_error *err);
/* The next frame, which must be of `kind`: what no candidate can be blamed for ends the run. */
kkt_status kkt_link_must(kkt_link *link, kkt_wire_kind kind, double seconds, const char *during,
                         kkt_frame *frame, kkt_error *err);
/* The next result. Silence is TIMED_OUT, death CRASHED; `*replace`: the worker must be dropped. An
 * error is what the worker calls one. */
kkt_status kkt_link_result(kkt_link *link, double seconds, kkt_measure_result *out, bool *replace,
                           kkt_error *err);
/* Has the counting worker count a candidate. Whatever goes wrong is in `out`: a run goes on without
 * counters. In cuda_count.c. */
void kkt_link_count(kkt_link *link, const kkt_measure_request *request, double seconds,
                    kkt_counts *out);

/* Asks the worker for a library. Whatever goes wrong is KKT_ERR_MISSING: a run goes on without the
 * baselines that call it. In cuda_library.c. */
kkt_status kkt_link_library(kkt_link *link, const kkt_arch *arch, const char *name,
                            char version[KKT_LIBRARY_VERSION_BYTES], kkt_error *err);

#endif
