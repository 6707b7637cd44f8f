#include "tuner/measure/cuda_worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tuner/measure/count.h"
#include "tuner/measure/library/library.h"

#define RETIME_MOST 1024 /* candidates of one message */

typedef struct server {
    kkt_worker *worker;
    kkt_kernel_lookup lookup;
    kkt_bench bench;
    bool opened; /* the GPU, by HELLO */
    bool counts; /* this worker counts, and does nothing else */
    kkt_counting counting;
} server;

static bool answer(server *s, uint32_t kind, kkt_packer *payload) {
    bool sent = kkt_worker_send(s->worker, kind, payload->data, payload->size);
    kkt_packer_free(payload);
    return sent;
}

static bool answer_error(server *s, const kkt_error *error) {
    kkt_packer payload = {0};
    kkt_wire_pack_error(&payload, error);
    return answer(s, KKT_WIRE_ERROR, &payload);
}

static bool answer_ready(server *s) {
    return kkt_worker_send(s->worker, KKT_WIRE_READY, NULL, 0);
}

static bool answer_result(server *s, const kkt_measure_result *result) {
    kkt_packer payload = {0};
    kkt_wire_pack_result(&payload, result, s->bench.replace);
    return answer(s, KKT_WIRE_RESULT, &payload);
}

static bool damaged(server *s, const char *what) {
    kkt_error error = {0};
    kkt_fail(&error, KKT_ERR_INPUT, 0, "the GPU worker was sent a damaged %s message", what);
    return answer_error(s, &error);
}

static bool serve_hello(server *s, kkt_unpacker *in) {
    kkt_error error = {0};
    int64_t index = kkt_unpack_i64(in);
    if (!kkt_unpack_done(in) || index < -1 || index > 4096 || s->opened) {
        return damaged(s, "hello");
    }
    if (kkt_gpu_open(&s->bench.gpu, (int)index, &error) != KKT_OK) {
        return answer_error(s, &error);
    }
    s->opened = true;
    kkt_packer payload = {0};
    kkt_wire_pack_info(&payload, &s->bench.gpu.info);
    return answer(s, KKT_WIRE_INFO, &payload);
}

static bool serve_setup(server *s, kkt_unpacker *in) {
    kkt_error error = {0};
    size_t size = 0;
    const unsigned char *helpers = kkt_unpack_blob(in, &size);
    if (!kkt_unpack_done(in) || size == 0 || !s->opened || s->bench.gpu.context != NULL) {
        return damaged(s, "setup");
    }
    if (kkt_gpu_start(&s->bench.gpu, helpers, &error) != KKT_OK) {
        return answer_error(s, &error);
    }
    return answer_ready(s);
}

static bool serve_measure(server *s, kkt_unpacker *in) {
    kkt_error error = {0};
    kkt_wire_request decoded;
    if (kkt_wire_unpack_request(in, s->lookup, &decoded, &error) != KKT_OK) {
        return answer_error(s, &error);
    }
    if (!kkt_unpack_done(in) || kkt_wire_lacks_code(&decoded.request)) {
        return damaged(s, "measure");
    }
    if (kkt_bench_inputs(&s->bench, &decoded.request, &error) != KKT_OK) {
        return answer_error(s, &error);
    }
    if (!answer_ready(s)) {
        return false;
    }
    kkt_measure_result result;
    kkt_measure_result_init(&result, &decoded.policy);
    kkt_status status = kkt_bench_measure(&s->bench, &decoded.request, &result, &error);
    bool sent = status == KKT_OK ? answer_result(s, &result) : answer_error(s, &error);
    kkt_measure_result_free(&result);
    return sent;
}

static bool serve_chain(server *s, kkt_unpacker *in) {
    kkt_error error = {0};
    kkt_wire_chain decoded;
    if (kkt_wire_unpack_chain(in, s->lookup, &decoded, &error) != KKT_OK ||
        kkt_bench_inputs(&s->bench, &decoded.request.whole, &error) != KKT_OK) {
        return answer_error(s, &error);
    }
    if (!answer_ready(s)) {
        return false;
    }
    kkt_measure_result result;
    kkt_measure_result_init(&result, decoded.request.whole.policy);
    kkt_status status = kkt_bench_chain(&s->bench, &decoded.request, &result, &error);
    bool sent = status == KKT_OK ? answer_result(s, &result) : answer_error(s, &error);
    kkt_measure_result_free(&result);
    return sent;
}

/* Requests of one kernel and problem; anything else is refused. */
static kkt_status unpack_requests(server *s, kkt_unpacker *in, size_t count,
                                  kkt_wire_request *decoded, kkt_measure_request *requests,
                                  kkt_error *err) {
    for (size_t i = 0; i < count; i++) {
        kkt_status status = kkt_wire_unpack_request(in, s->lookup, &decoded[i], err);
        if (status != KKT_OK) {
            return status;
        }
        requests[i] = decoded[i].request;
        if (requests[i].kernel != requests[0].kernel || kkt_wire_lacks_code(&requests[i]) ||
            !kkt_values_equal(&requests[0].kernel->problem, requests[0].problem,
                              requests[i].problem)) {
            return kkt_fail(err, KKT_ERR_INPUT, 0, "finalists are not of one kernel and problem");
        }
    }
    return kkt_unpack_done(in) ? KKT_OK
                               : kkt_fail(err, KKT_ERR_INPUT, 0, "a worker request is damaged");
}

static bool answer_retime(server *s, const kkt_measure_request *requests, size_t count,
                          kkt_measure_result *results) {
    kkt_error error = {0};
    if (kkt_bench_inputs(&s->bench, &requests[0], &error) != KKT_OK) {
        return answer_error(s, &error);
    }
    if (!answer_ready(s)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        kkt_measure_result_init(&results[i], requests[i].policy);
    }
    if (kkt_bench_retime(&s->bench, requests, count, results, &error) != KKT_OK) {
        return answer_error(s, &error);
    }
    bool sent = true;
    for (size_t i = 0; i < count && sent; i++) {
        sent = answer_result(s, &results[i]);
    }
    return sent;
}

static bool serve_retime(server *s, kkt_unpacker *in) {
    kkt_error error = {0};
    int64_t count = kkt_unpack_i64(in);
    if (in->failed || count < 1 || count > RETIME_MOST) {
        return damaged(s, "retime");
    }
    size_t n = (size_t)count;
    kkt_wire_request *decoded = calloc(n, sizeof *decoded);
    kkt_measure_request *requests = calloc(n, sizeof *requests);
    kkt_measure_result *results = calloc(n, sizeof *results);
    bool sent = false;
    if (decoded == NULL || requests == NULL || results == NULL) {
        kkt_fail(&error, KKT_ERR_ENVIRONMENT, 0, "the GPU worker is out of memory");
        sent = answer_error(s, &error);
    } else if (unpack_requests(s, in, n, decoded, requests, &error) != KKT_OK) {
        sent = answer_error(s, &error);
    } else {
        sent = answer_retime(s, requests, n, results);
    }
    for (size_t i = 0; results != NULL && i < n; i++) {
        kkt_measure_result_free(&results[i]);
    }
    free(decoded);
    free(requests);
    free(results);
    return sent;
}

/* The caller's inputs, a frame each. */
static bool receive_tensors(server *s, int64_t count, kkt_host_tensors *tensors) {
    bool good = true;
    for (int64_t i = 0; i < count && good; i++) {
        kkt_frame frame;
        if (!kkt_worker_receive(s->worker, &frame)) {
            return false;
        }
        kkt_unpacker in = {.data = frame.payload, .size = frame.size};
        good = frame.kind == KKT_WIRE_TENSOR && kkt_wire_unpack_tensor(&in, tensors);
        kkt_frame_free(&frame);
    }
    return good;
}

static bool send_outputs(server *s, const kkt_host_tensors *tensors) {
    for (int i = 0; i < tensors->count; i++) {
        if (tensors->t[i].tensor.role == KKT_TENSOR_OUTPUT) {
            kkt_packer payload = {0};
            kkt_wire_pack_tensor(&payload, &tensors->t[i]);
            if (!answer(s, KKT_WIRE_TENSOR, &payload)) {
                return false;
            }
        }
    }
    return true;
}

static bool run_and_answer(server *s, const kkt_measure_request *request,
                           kkt_host_tensors *tensors) {
    kkt_error error = {0};
    kkt_measure_result result;
    if (!answer_ready(s)) {
        return false;
    }
    kkt_measure_result_init(&result, request->policy);
    bool sent = false;
    if (kkt_bench_run(&s->bench, request, tensors, &result, &error) != KKT_OK) {
        sent = answer_error(s, &error);
    } else {
        sent = answer_result(s, &result);
        if (sent && result.run.outcome == KKT_OUTCOME_OK) {
            sent = send_outputs(s, tensors);
        }
    }
    kkt_measure_result_free(&result);
    return sent;
}

static bool serve_run(server *s, kkt_unpacker *in) {
    kkt_error error = {0};
    kkt_wire_request decoded;
    kkt_host_tensors tensors = {0};
    kkt_tensor shapes[KKT_TENSORS_MAX] = {0};
    if (kkt_wire_unpack_request(in, s->lookup, &decoded, &error) != KKT_OK) {
        return answer_error(s, &error);
    }
    int64_t count = kkt_unpack_i64(in);
    if (!kkt_unpack_done(in) || kkt_wire_lacks_code(&decoded.request) || count < 0 ||
        count > KKT_TENSORS_MAX) {
        return damaged(s, "run");
    }
    tensors.count =
        decoded.request.kernel->tensors(decoded.request.problem, decoded.request.config, shapes);
    for (int i = 0; i < tensors.count; i++) {
        tensors.t[i].tensor = shapes[i];
    }
    bool sent = receive_tensors(s, count, &tensors) ? run_and_answer(s, &decoded.request, &tensors)
                                                    : damaged(s, "tensor");
    kkt_host_tensors_free(&tensors);
    return sent;
}

static bool serve_count(server *s, kkt_unpacker *in) {
    kkt_error error = {0};
    kkt_wire_request decoded;
    if (kkt_wire_unpack_request(in, s->lookup, &decoded, &error) != KKT_OK) {
        return answer_error(s, &error);
    }
    if (!kkt_unpack_done(in) || kkt_wire_lacks_code(&decoded.request)) {
        return damaged(s, "count");
    }
    if (kkt_bench_inputs(&s->bench, &decoded.request, &error) != KKT_OK) {
        return answer_error(s, &error);
    }
    kkt_counting_start(&s->counting, &s->bench);
    if (!answer_ready(s)) {
        return false;
    }
    kkt_counts counts;
    kkt_packer payload = {0};
    kkt_count(&s->counting, &s->bench, &decoded.request, &counts);
    kkt_wire_pack_counts(&payload, &counts, s->bench.replace || s->bench.lost);
    return answer(s, KKT_WIRE_COUNTS, &payload);
}

static bool serve_library(server *s, kkt_unpacker *in) {
    kkt_error error = {0};
    kkt_packer payload = {0};
    const kkt_library *library = NULL;
    const char *name = kkt_unpack_string(in);
    if (!kkt_unpack_done(in)) {
        return damaged(s, "library");
    }
    bool there = kkt_library_open(&s->bench.gpu, name, &library, &error) == KKT_OK;
    kkt_pack_string(&payload, there ? library->version : "");
    kkt_pack_string(&payload, there ? "" : error.message);
    return answer(s, KKT_WIRE_LIBRARY, &payload);
}

static bool serve(server *s, const kkt_frame *frame) {
    kkt_unpacker in = {.data = frame->payload, .size = frame->size};
    if (frame->kind == KKT_WIRE_HELLO) {
        return serve_hello(s, &in);
    }
    if (frame->kind == KKT_WIRE_SETUP) {
        return serve_setup(s, &in);
    }
    if (s->bench.gpu.context == NULL) {
        return damaged(s, "early");
    }
    if (s->counts) {
        return frame->kind == KKT_WIRE_COUNT ? serve_count(s, &in) : damaged(s, "unknown");
    }
    switch (frame->kind) {
    case KKT_WIRE_MEASURE:
        return serve_measure(s, &in);
    case KKT_WIRE_RETIME:
        return serve_retime(s, &in);
    case KKT_WIRE_CHAIN:
        return serve_chain(s, &in);
    case KKT_WIRE_RUN:
        return serve_run(s, &in);
    case KKT_WIRE_LIBRARY:
        return serve_library(s, &in);
    default:
        return damaged(s, "unknown");
    }
}

static int serve_all(kkt_kernel_lookup lookup, bool counts) {
    kkt_error error = {0};
    server *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return KKT_ERR_ENVIRONMENT;
    }
    s->lookup = lookup;
    s->counts = counts;
    if (kkt_worker_open(&s->worker, &error) != KKT_OK) {
        fprintf(stderr, "kkttune: %s\n", error.message);
        free(s);
        return (int)error.status;
    }
    bool going = true;
    while (going) {
        kkt_frame frame;
        going = kkt_worker_receive(s->worker, &frame);
        if (going) {
            going = serve(s, &frame) && !s->bench.replace && !s->bench.lost;
            kkt_frame_free(&frame);
        }
    }
    kkt_counting_close(&s->counting);
    kkt_bench_close(&s->bench);
    kkt_worker_close(s->worker);
    free(s);
    return 0;
}

int kkt_cuda_worker_serve(kkt_kernel_lookup lookup) {
    return serve_all(lookup, false);
}

int kkt_count_worker_serve(kkt_kernel_lookup lookup) {
    return serve_all(lookup, true);
}

int kkt_cuda_worker_main(void) {
    return kkt_cuda_worker_serve(kkt_kernel_parse);
}

int kkt_count_worker_main(void) {
    return kkt_count_worker_serve(kkt_kernel_parse);
}
