/* Any bytes as what parent and GPU worker say to each other: the first byte picks the message. All
 * that is accepted must be within its bounds; and as a stream of frames, nothing else comes out. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tuner/measure/backends.h"
#include "tuner/measure/wire.h"
#include "tuner/worker/stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_request(kkt_unpacker *in) {
    kkt_wire_request request;
    kkt_error error = {0};
    if (kkt_wire_unpack_request(in, kkt_kernel_parse, &request, &error) != KKT_OK) {
        if (error.message[0] == '\0')
            abort();
        return;
    }
    const kkt_measure_request *r = &request.request;
    if (!r->kernel || !r->variant || !r->arch || !r->device || r->policy->max_samples < 1)
        abort();
    kkt_packer again = {0};
    kkt_wire_pack_request(&again, r);
    kkt_packer_free(&again);
}

static void try_chain(kkt_unpacker *in) {
    static kkt_wire_chain chain;
    kkt_error error = {0};
    if (kkt_wire_unpack_chain(in, kkt_kernel_parse, &chain, &error) != KKT_OK) {
        if (error.message[0] == '\0')
            abort();
        return;
    }
    if (chain.request.count < 1 || chain.request.count > KKT_MEMBERS_MAX ||
        chain.request.order >= KKT_LAUNCH_ORDER_COUNT || !chain.request.whole.variant)
        abort();
    for (size_t i = 0; i < chain.request.count; i++)
        if (!chain.requests[i].variant || chain.requests[i].cubin_size == 0)
            abort();
    kkt_packer again = {0};
    kkt_wire_pack_chain(&again, &chain.request);
    kkt_packer_free(&again);
}

static void try_result(kkt_unpacker *in) {
    kkt_policy policy;
    kkt_measure_result result;
    bool replace = false;
    kkt_policy_defaults(&policy);
    kkt_measure_result_init(&result, &policy);
    if (kkt_wire_unpack_result(in, &result, &replace)) {
        if (result.run.outcome >= KKT_OUTCOME_COUNT || result.run.sample_count < 0)
            abort();
        for (int64_t i = 0; result.run.samples_us && i < result.run.sample_count; i++)
            if (isnan(result.run.samples_us[i]))
                abort();
        kkt_packer again = {0};
        kkt_wire_pack_result(&again, &result, replace);
        kkt_packer_free(&again);
    }
    kkt_measure_result_free(&result);
}

static void try_tensor(kkt_unpacker *in) {
    kkt_host_tensors tensors = {.count = 1};
    tensors.t[0].tensor = (kkt_tensor){"x", KKT_TENSOR_INPUT, KKT_FP32, 1, {4}, false};
    if (kkt_wire_unpack_tensor(in, &tensors) && tensors.t[0].data) {
        float values[4];
        memcpy(values, tensors.t[0].data, sizeof values);
    }
    kkt_host_tensors_free(&tensors);
}

/* The bytes come in one piece and the sender is gone: a frame is complete or never comes. */
static void try_stream(const uint8_t *data, size_t size) {
    int ends[2];
    size_t taken = 0;
    kkt_frame frame;
    if (size > 16384)
        return; /* more than a socket surely holds */
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        abort();
    kkt_stream stream = {.fd = ends[0]};
    if (write(ends[1], data, size) != (ssize_t)size)
        abort();
    close(ends[1]);
    while (kkt_stream_receive(&stream, INFINITY, &frame) == KKT_STREAM_OK) {
        taken += frame.size + 8;
        if (taken > size)
            abort();
        kkt_frame_free(&frame);
    }
    kkt_stream_close(&stream);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    kkt_backend_info info;
    kkt_error error;
    if (size == 0)
        return 0;
    kkt_unpacker in = {.data = data + 1, .size = size - 1};
    if (data[0] == UINT8_MAX) {
        try_chain(&in);
        return 0;
    }
    switch (data[0] % 6) {
    case 0:
        try_request(&in);
        break;
    case 1:
        try_result(&in);
        break;
    case 2:
        if (kkt_wire_unpack_info(&in, &info) && strlen(info.gpu) >= sizeof info.gpu)
            abort();
        break;
    case 3:
        if (kkt_wire_unpack_error(&in, &error) && strlen(error.message) >= sizeof error.message)
            abort();
        break;
    case 4:
        try_tensor(&in);
        break;
    default:
        try_stream(data + 1, size - 1);
        break;
    }
    return 0;
}
