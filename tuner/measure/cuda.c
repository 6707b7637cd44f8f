/* The parent's side of the GPU: it owns no CUDA, only a worker process that it replaces whenever
 * a candidate has hung, crashed or poisoned it. */
#include <stdlib.h>
#include <string.h>

#include "base/version.h"
#include "tuner/measure/cuda_link.h"

/* Beyond the candidate's limit, for messages and loading the cubin: a share of it, and a bit. */
#define GRACE_SHARE 0.25
#define GRACE_SECONDS 0.25
#define LAUNCHES 1000.0 /* of one candidate, about: what a slow one may take longer */

struct kkt_backend {
    kkt_backend_info info;
    char *program; /* NULL: this one */
    char *cache;   /* NULL: the default */
    kkt_link link;
    kkt_link counter; /* to the worker that counts; it runs only while nothing is timed */
};

static double limit_seconds(const kkt_measure_request *request) {
    double predicted_us = request->prediction != NULL ? request->prediction->predicted_us : 0.0;
    double slow = predicted_us > 0.0 && predicted_us < 1e9 ? predicted_us * 1e-6 * LAUNCHES : 0.0;
    return (1.0 + GRACE_SHARE) * request->policy->candidate_seconds + GRACE_SECONDS + slow;
}

static void start_result(const kkt_backend *backend, const kkt_measure_request *request,
                         kkt_measure_result *out) {
    kkt_measure_result_init(out, request->policy);
    out->run.gpu = backend->info.gpu;
    out->run.driver = backend->info.driver;
    out->run.tool_version = KKT_VERSION;
}

/* ---- the backend ---- */

static void cuda_close(kkt_backend *backend) {
    if (backend == NULL) {
        return;
    }
    kkt_link_close(&backend->link);
    kkt_link_close(&backend->counter);
    free(backend->program);
    free(backend->cache);
    free(backend);
}

static kkt_status cuda_open(const kkt_backend_options *options, kkt_backend **out, kkt_error *err) {
    *out = NULL;
    kkt_backend *backend = calloc(1, sizeof *backend);
    if (backend == NULL) {
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "out of memory for the cuda backend");
    }
    if (options->program != NULL) {
        backend->program = strdup(options->program);
    }
    backend->link.gpu = options->gpu;
    backend->link.program = backend->program;
    if (options->cache != NULL) {
        backend->cache = strdup(options->cache);
    }
    backend->link.cache = backend->cache;
    backend->counter = backend->link;
    backend->counter.role = KKT_COUNT_ROLE;
    kkt_status status = kkt_link_hello(&backend->link, &backend->info, err);
    if (status != KKT_OK) {
        cuda_close(backend);
        return status;
    }
    *out = backend;
    return KKT_OK;
}

static const kkt_backend_info *cuda_info(const kkt_backend *backend) {
    return &backend->info;
}

static kkt_status cuda_measure(kkt_backend *backend, const kkt_measure_request *request,
                               kkt_measure_result *out, kkt_error *err) {
    start_result(backend, request, out);
    kkt_link_drop(&backend->counter);
    kkt_status status = kkt_link_ready(&backend->link, request->arch, err);
    if (status != KKT_OK) {
        return status;
    }
    kkt_packer payload = {0};
    kkt_wire_pack_request(&payload, request);
    status = kkt_link_begin(&backend->link, KKT_WIRE_MEASURE, &payload, err);
    if (status != KKT_OK) {
        return status;
    }
    bool replace = false;
    status = kkt_link_result(&backend->link, limit_seconds(request), out, &replace, err);
    if (replace) {
        kkt_link_drop(&backend->link);
    }
    return status;
}

/* ---- finalists ---- */

typedef struct group {
    size_t count;
    size_t *index; /* of the requests, all of one kernel and problem */
} group;

static bool same_problem(const kkt_measure_request *a, const kkt_measure_request *b) {
    return a->kernel == b->kernel && kkt_values_equal(&a->kernel->problem, a->problem, b->problem);
}

/* The requests without a result that share the first such one's problem; or that one alone. */
static void next_group(const kkt_measure_request *requests, size_t count, const bool *settled,
                       bool alone, group *out) {
    out->count = 0;
    for (size_t i = 0; i < count; i++) {
        bool first = out->count == 0;
        if (!settled[i] &&
            (first || (!alone && same_problem(&requests[out->index[0]], &requests[i])))) {
            out->index[out->count++] = i;
        }
    }
}

/* Receives the results of a group. Where the worker gave none, nobody knows which of several
 * candidates to blame: nothing is settled then and `*alone` set, to ask them one by one. */
static kkt_status take_group(kkt_backend *backend, const kkt_measure_request *requests,
                             const group *asked, double seconds, kkt_measure_result *out,
                             bool *settled, bool *alone, kkt_error *err) {
    bool any = false;
    bool silent = false;
    bool lost = false;
    for (size_t i = 0; i < asked->count && !silent; i++) {
        bool replace = false;
        size_t at = asked->index[i];
        kkt_measure_result_free(&out[at]);
        start_result(backend, &requests[at], &out[at]);
        kkt_status status = kkt_link_result(&backend->link, seconds, &out[at], &replace, err);
        if (status != KKT_OK) {
            kkt_link_drop(&backend->link);
            return status;
        }
        silent = !kkt_child_running(backend->link.child);
        lost = lost || replace;
        settled[at] = out[at].run.outcome != KKT_OUTCOME_PREDICTED;
        if (silent && asked->count > 1) {
            settled[at] = false;
            *alone = true;
            any = true;
        }
        any = any || settled[at];
    }
    if (lost) {
        kkt_link_drop(&backend->link); /* all its results have come: the last thing it said */
    }
    if (!any) {
        kkt_measure_result_set(&out[asked->index[0]], KKT_OUTCOME_CRASHED,
                               "the worker lost its context and blamed no candidate");
        settled[asked->index[0]] = true;
    }
    return KKT_OK;
}

static kkt_status retime_group(kkt_backend *backend, const kkt_measure_request *requests,
                               const group *asked, kkt_measure_result *out, bool *settled,
                               bool *alone, kkt_error *err) {
    kkt_packer payload = {0};
    double seconds = 0.0;
    kkt_status status = kkt_link_ready(&backend->link, requests[asked->index[0]].arch, err);
    if (status != KKT_OK) {
        return status;
    }
    kkt_pack_i64(&payload, (int64_t)asked->count);
    for (size_t i = 0; i < asked->count; i++) {
        kkt_wire_pack_request(&payload, &requests[asked->index[i]]);
        seconds += limit_seconds(&requests[asked->index[i]]);
    }
    status = kkt_link_begin(&backend->link, KKT_WIRE_RETIME, &payload, err);
    if (status != KKT_OK) {
        return status;
    }
    return take_group(backend, requests, asked, seconds, out, settled, alone, err);
}

static kkt_status cuda_retime(kkt_backend *backend, const kkt_measure_request *requests,
                              size_t count, kkt_measure_result *out, kkt_error *err) {
    bool *settled = calloc(count + 1, sizeof *settled);
    group asked = {.index = calloc(count + 1, sizeof *asked.index)};
    bool alone = false;
    kkt_status status = KKT_OK;
    kkt_link_drop(&backend->counter);
    for (size_t i = 0; i < count; i++) {
        start_result(backend, &requests[i], &out[i]);
    }
    if (settled == NULL || asked.index == NULL) {
        free(settled);
        free(asked.index);
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "out of memory for %zu finalists", count);
    }
    while (status == KKT_OK) {
        next_group(requests, count, settled, alone, &asked);
        if (asked.count == 0) {
            break;
        }
        status = retime_group(backend, requests, &asked, out, settled, &alone, err);
    }
    for (size_t i = 0; i < count && status != KKT_OK; i++) {
        kkt_measure_result_free(&out[i]);
    }
    free(settled);
    free(asked.index);
    return status;
}

/* ---- pipelines ---- */

static kkt_status cuda_chain(kkt_backend *backend, const kkt_chain_request *request,
                             kkt_measure_result *out, kkt_error *err) {
    double seconds = 0.0;
    bool replace = false;
    start_result(backend, &request->whole, out);
    kkt_link_drop(&backend->counter);
    for (size_t i = 0; i < request->count; i++) {
        seconds += limit_seconds(&request->members[i]);
    }
    kkt_status status = kkt_link_ready(&backend->link, request->whole.arch, err);
    if (status != KKT_OK) {
        return status;
    }
    kkt_packer payload = {0};
    kkt_wire_pack_chain(&payload, request);
    status = kkt_link_begin(&backend->link, KKT_WIRE_CHAIN, &payload, err);
    if (status == KKT_OK) {
        status = kkt_link_result(&backend->link, seconds, out, &replace, err);
    }
    if (replace) {
        kkt_link_drop(&backend->link);
    }
    return status;
}

/* ---- the caller's own data ---- */

static kkt_status send_inputs(kkt_backend *backend, const kkt_host_tensors *tensors,
                              kkt_error *err) {
    for (int i = 0; i < tensors->count; i++) {
        if (tensors->t[i].tensor.role != KKT_TENSOR_INPUT) {
            continue;
        }
        kkt_packer payload = {0};
        kkt_wire_pack_tensor(&payload, &tensors->t[i]);
        kkt_status status = kkt_child_send(backend->link.child, KKT_WIRE_TENSOR, payload.data,
                                           payload.size, KKT_LINK_SEND_SECONDS, err);
        kkt_packer_free(&payload);
        if (status != KKT_OK) {
            return status;
        }
    }
    return KKT_OK;
}

static kkt_status receive_outputs(kkt_backend *backend, kkt_host_tensors *tensors, kkt_error *err) {
    for (int i = 0; i < tensors->count; i++) {
        if (tensors->t[i].tensor.role != KKT_TENSOR_OUTPUT) {
            continue;
        }
        kkt_frame frame;
        kkt_status status = kkt_link_must(&backend->link, KKT_WIRE_TENSOR, KKT_LINK_SEND_SECONDS,
                                          "while sending the outputs", &frame, err);
        if (status != KKT_OK) {
            return status;
        }
        kkt_unpacker in = {.data = frame.payload, .size = frame.size};
        bool good = kkt_wire_unpack_tensor(&in, tensors);
        kkt_frame_free(&frame);
        if (!good) {
            kkt_link_drop(&backend->link);
            return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "the GPU worker sent a damaged tensor");
        }
    }
    return KKT_OK;
}

/* The list that the worker keeps: every tensor of the kernel, the caller's where it has one. */
static void complete_list(const kkt_measure_request *request, kkt_host_tensors *tensors) {
    kkt_tensor shapes[KKT_TENSORS_MAX] = {0};
    int count = request->kernel->tensors(request->problem, request->config, shapes);
    for (int i = 0; i < count; i++) {
        kkt_host_tensor *known = kkt_host_tensor_find(tensors, shapes[i].name);
        if (known == NULL && tensors->count < KKT_TENSORS_MAX) {
            known = &tensors->t[tensors->count++];
            *known = (kkt_host_tensor){.tensor = shapes[i]};
        } else if (known != NULL && known->data == NULL) {
            known->tensor = shapes[i]; /* an output's shape depends on the configuration */
        }
    }
}

static int count_inputs(const kkt_host_tensors *tensors) {
    int count = 0;
    for (int i = 0; i < tensors->count; i++) {
        count += tensors->t[i].tensor.role == KKT_TENSOR_INPUT;
    }
    return count;
}

static kkt_status cuda_run(kkt_backend *backend, const kkt_measure_request *request,
                           kkt_host_tensors *tensors, kkt_error *err) {
    kkt_measure_result result;
    kkt_packer payload = {0};
    kkt_frame frame;
    bool replace = false;
    kkt_status status = kkt_link_ready(&backend->link, request->arch, err);
    if (status != KKT_OK) {
        return status;
    }
    complete_list(request, tensors);
    kkt_wire_pack_request(&payload, request);
    kkt_pack_i64(&payload, count_inputs(tensors));
    status = kkt_link_begin(&backend->link, KKT_WIRE_RUN, &payload, err);
    if (status == KKT_OK) {
        status = send_inputs(backend, tensors, err);
    }
    if (status != KKT_OK) {
        kkt_link_drop(&backend->link); /* it may still wait for the rest */
    }
    if (status == KKT_OK) {
        status = kkt_link_must(&backend->link, KKT_WIRE_READY, KKT_LINK_INPUT_SECONDS,
                               "while taking inputs", &frame, err);
    }
    if (status != KKT_OK) {
        return status;
    }
    kkt_frame_free(&frame);
    start_result(backend, request, &result);
    status = kkt_link_result(&backend->link, limit_seconds(request), &result, &replace, err);
    if (status == KKT_OK && result.run.outcome == KKT_OUTCOME_OK) {
        status = receive_outputs(backend, tensors, err);
    } else if (status == KKT_OK) {
        status = kkt_fail(err, KKT_ERR_MISSING, 0, "%s did not run (%s): %s", request->kernel->name,
                          kkt_outcome_name(result.run.outcome), result.reason);
    }
    if (replace) {
        kkt_link_drop(&backend->link);
    }
    kkt_measure_result_free(&result);
    return status;
}

static kkt_status cuda_library(kkt_backend *backend, const kkt_arch *arch, const char *name,
                               char version[KKT_LIBRARY_VERSION_BYTES], kkt_error *err) {
    return kkt_link_library(&backend->link, arch, name, version, err);
}

/* The timing worker only waits meanwhile. */
static kkt_status cuda_count(kkt_backend *backend, const kkt_measure_request *request,
                             kkt_counts *out, kkt_error *err) {
    (void)err;
    kkt_link_count(&backend->counter, request, limit_seconds(request), out);
    return KKT_OK;
}

const kkt_backend_type kkt_backend_cuda = {
    .name = "cuda",
    .needs_cubin = true,
    .open = cuda_open,
    .close = cuda_close,
    .info = cuda_info,
    .measure = cuda_measure,
    .run = cuda_run,
    .retime = cuda_retime,
    .chain = cuda_chain,
    .library = cuda_library,
    .count = cuda_count,
};
