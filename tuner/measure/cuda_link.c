/* The parent's end of the line to the GPU worker: starting it, asking it, and telling an answer
 * from silence, nonsense and death. */
#include "tuner/measure/cuda_link.h"

#include <stdio.h>
#include <stdlib.h>

#include "tuner/compile/pool.h"

#define HELPER_SOURCE "device/measure.cu"

typedef enum reply {
    REPLY_FRAME,
    REPLY_ERROR,   /* the worker said so: `err` is filled */
    REPLY_TIMEOUT, /* killed */
    REPLY_ENDED,
    REPLY_DAMAGED /* killed */
} reply;

void kkt_link_close(kkt_link *link) {
    kkt_link_drop(link);
    free(link->helpers);
    *link = (kkt_link){0};
}

void kkt_link_drop(kkt_link *link) {
    kkt_child_close(link->child);
    link->child = NULL;
    link->started = false;
}

/* The next frame, which must be of `kind`. */
static reply await(kkt_link *link, kkt_wire_kind kind, double seconds, kkt_frame *frame,
                   kkt_error *err) {
    char why[64];
    switch (kkt_child_receive(link->child, seconds, frame)) {
    case KKT_CHILD_FRAME:
        break;
    case KKT_CHILD_TIMEOUT:
        snprintf(why, sizeof why, "timed out after %.3g s", seconds);
        kkt_child_kill(link->child, why);
        return REPLY_TIMEOUT;
    case KKT_CHILD_ENDED:
        return REPLY_ENDED;
    }
    if (frame->kind == (uint32_t)kind) {
        return REPLY_FRAME;
    }
    kkt_error told = {0};
    kkt_unpacker in = {.data = frame->payload, .size = frame->size};
    bool error = frame->kind == KKT_WIRE_ERROR && kkt_wire_unpack_error(&in, &told);
    kkt_frame_free(frame);
    if (error) {
        kkt_fail(err, told.status, told.native, "%s", told.message);
        return REPLY_ERROR;
    }
    kkt_child_kill(link->child, "killed: its answer makes no sense");
    return REPLY_DAMAGED;
}

kkt_status kkt_link_must(kkt_link *link, kkt_wire_kind kind, double seconds, const char *during,
                         kkt_frame *frame, kkt_error *err) {
    switch (await(link, kind, seconds, frame, err)) {
    case REPLY_FRAME:
        return KKT_OK;
    case REPLY_ERROR: {
        kkt_status status = err != NULL ? err->status : KKT_ERR_ENVIRONMENT;
        kkt_link_drop(link);
        return status;
    }
    case REPLY_TIMEOUT:
    case REPLY_ENDED:
    case REPLY_DAMAGED:
        break;
    }
    kkt_status status =
        kkt_fail(err, KKT_ERR_ENVIRONMENT, kkt_child_signal(link->child),
                 "the GPU worker %s %s; check memory and nvidia-smi, then run again",
                 kkt_child_reason(link->child), during);
    kkt_link_drop(link);
    return status;
}

kkt_status kkt_link_hello(kkt_link *link, kkt_backend_info *info, kkt_error *err) {
    kkt_status status = kkt_child_open(
        link->program, link->role != NULL ? link->role : KKT_CUDA_ROLE, &link->child, err);
    if (status != KKT_OK) {
        link->child = NULL;
        return status;
    }
    kkt_packer payload = {0};
    kkt_pack_i64(&payload, link->gpu);
    status = kkt_child_send(link->child, KKT_WIRE_HELLO, payload.data, payload.size,
                            KKT_LINK_SEND_SECONDS, err);
    kkt_packer_free(&payload);
    if (status != KKT_OK) {
        kkt_link_drop(link);
        return KKT_ERR_ENVIRONMENT;
    }
    kkt_frame frame;
    status =
        kkt_link_must(link, KKT_WIRE_INFO, KKT_LINK_SEND_SECONDS, "while starting", &frame, err);
    if (status != KKT_OK) {
        return status;
    }
    kkt_unpacker in = {.data = frame.payload, .size = frame.size};
    bool good = kkt_wire_unpack_info(&in, info);
    kkt_frame_free(&frame);
    if (!good) {
        kkt_link_drop(link);
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "the GPU worker describes no GPU");
    }
    return KKT_OK;
}

/* Through the pool, for its cache and because a compiler may crash or hang like any candidate. */
static kkt_status compile_in(kkt_compile_pool *pool, const kkt_arch *arch, kkt_compile_result *out,
                             kkt_error *err) {
    static const char *const sources[] = {HELPER_SOURCE, NULL};
    const kkt_variant variant = {.source = HELPER_SOURCE, .sources = sources};
    const kkt_compile_job job = {
        .source_path = HELPER_SOURCE, .nvrtc_arch = arch->nvrtc_arch, .defines = ""};
    int64_t tag = 0;
    bool got = false;
    kkt_status status = kkt_compile_pool_submit(pool, &variant, &job, 0, err);
    if (status == KKT_OK) {
        status = kkt_compile_pool_next(pool, KKT_LINK_SEND_SECONDS, &got, &tag, out, err);
    }
    if (status != KKT_OK || (got && out->ok)) {
        return status;
    }
    const char *why = kkt_compile_pool_unavailable(pool);
    if (why == NULL) {
        why = got && out->log != NULL ? out->log : "no answer from the compiler";
    }
    return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "%s cannot be compiled for %s: %.300s",
                    HELPER_SOURCE, arch->nvrtc_arch, why);
}

static kkt_status compile_helpers(kkt_link *link, const kkt_arch *arch, kkt_error *err) {
    if (link->helpers != NULL && link->helpers_arch == arch) {
        return KKT_OK;
    }
    const kkt_compile_pool_options options = {
        .workers = 1, .cache = link->cache, .program = link->program};
    kkt_compile_pool *pool = NULL;
    kkt_compile_result result = {0};
    kkt_status status = kkt_compile_pool_open(&options, &pool, err);
    if (status == KKT_OK) {
        status = compile_in(pool, arch, &result, err);
    }
    if (status == KKT_OK) {
        free(link->helpers);
        link->helpers = result.cubin;
        link->helpers_size = result.cubin_size;
        link->helpers_arch = arch;
        result.cubin = NULL;
    }
    kkt_compile_result_free(&result);
    kkt_compile_pool_close(pool);
    return status;
}

kkt_status kkt_link_ready(kkt_link *link, const kkt_arch *arch, kkt_error *err) {
    kkt_backend_info again;
    kkt_status status = KKT_OK;
    if (link->child != NULL && !kkt_child_running(link->child)) {
        kkt_link_drop(link);
    }
    if (link->child == NULL) {
        status = kkt_link_hello(link, &again, err);
    }
    if (status != KKT_OK || link->started) {
        return status;
    }
    status = compile_helpers(link, arch, err);
    if (status != KKT_OK) {
        return status;
    }
    kkt_packer payload = {0};
    kkt_pack_blob(&payload, link->helpers, link->helpers_size);
    status = kkt_child_send(link->child, KKT_WIRE_SETUP, payload.data, payload.size,
                            KKT_LINK_SEND_SECONDS, err);
    kkt_packer_free(&payload);
    kkt_frame frame;
    if (status == KKT_OK) {
        status = kkt_link_must(link, KKT_WIRE_READY, KKT_LINK_SEND_SECONDS,
                               "while making its context", &frame, err);
    }
    if (status == KKT_OK) {
        kkt_frame_free(&frame);
        link->started = true;
    }
    return status == KKT_ERR_MISSING ? KKT_ERR_ENVIRONMENT : status;
}

kkt_status kkt_link_begin(kkt_link *link, kkt_wire_kind kind, kkt_packer *payload, kkt_error *err) {
    kkt_frame frame;
    kkt_status status = kkt_child_send(link->child, (uint32_t)kind, payload->data, payload->size,
                                       KKT_LINK_SEND_SECONDS, err);
    kkt_packer_free(payload);
    if (status != KKT_OK) {
        kkt_link_drop(link);
        return status == KKT_ERR_MISSING ? KKT_ERR_ENVIRONMENT : status;
    }
    if (kind == KKT_WIRE_RUN) {
        return KKT_OK; /* tensors follow before it is ready */
    }
    status = kkt_link_must(link, KKT_WIRE_READY, KKT_LINK_INPUT_SECONDS, "while making inputs",
                           &frame, err);
    if (status == KKT_OK) {
        kkt_frame_free(&frame);
    }
    return status;
}

/* What a candidate gets whose worker gave no answer. */
static void blame(const kkt_link *link, reply got, double seconds, kkt_measure_result *out) {
    if (got == REPLY_TIMEOUT) {
        kkt_measure_result_set(out, KKT_OUTCOME_TIMED_OUT,
                               "no answer within %.3g s: the kernel hangs or is far too slow",
                               seconds);
    } else {
        kkt_measure_result_set(out, KKT_OUTCOME_CRASHED, "the worker process %s",
                               kkt_child_reason(link->child));
    }
}

kkt_status kkt_link_result(kkt_link *link, double seconds, kkt_measure_result *out, bool *replace,
                           kkt_error *err) {
    kkt_frame frame;
    kkt_error told = {0};
    reply got = await(link, KKT_WIRE_RESULT, seconds, &frame, &told);
    *replace = got != REPLY_FRAME;
    if (got == REPLY_ERROR) {
        return kkt_fail(err, told.status, told.native, "%s", told.message);
    }
    if (got == REPLY_FRAME) {
        kkt_unpacker in = {.data = frame.payload, .size = frame.size};
        bool good = kkt_wire_unpack_result(&in, out, replace);
        kkt_frame_free(&frame);
        if (good) {
            return KKT_OK;
        }
        *replace = true;
        kkt_child_kill(link->child, "sent a damaged result");
        got = REPLY_DAMAGED;
    }
    blame(link, got, seconds, out);
    return KKT_OK;
}
