/* A compile worker: answers one frame by one. */
#include "tuner/compile/cache.h"
#include "tuner/compile/frames.h"
#include "tuner/compile/pool.h"
#include "tuner/worker/process.h"

static void send_error(kkt_worker *worker, const kkt_error *error) {
    kkt_packer out = {0};
    kkt_pack_i64(&out, error->native);
    kkt_pack_string(&out, error->message);
    kkt_worker_send(worker, KKT_FRAME_COMPILE_ERROR, out.data, out.size);
    kkt_packer_free(&out);
}

static kkt_status answer(kkt_compiler **compiler, const kkt_frame *frame, kkt_packer *out,
                         kkt_error *err) {
    kkt_unpacker in = {.data = frame->payload, .size = frame->size};
    kkt_compile_job job = {.source_path = kkt_unpack_string(&in)};
    job.nvrtc_arch = kkt_unpack_string(&in);
    job.defines = kkt_unpack_string(&in);
    bool has_text = kkt_unpack_i64(&in) == 1;
    const char *text = kkt_unpack_string(&in);
    job.source_text = has_text ? text : NULL;
    if (frame->kind != KKT_FRAME_COMPILE || !kkt_unpack_done(&in))
        return kkt_fail(err, KKT_ERR_INPUT, 0, "a compile worker was sent a malformed job");
    if (*compiler == NULL) {
        kkt_status status = kkt_compiler_open(compiler, err);
        if (status != KKT_OK)
            return status;
    }
    kkt_compile_result result;
    kkt_status status = kkt_compile(*compiler, &job, &result, err);
    if (status == KKT_OK) {
        kkt_result_pack(&result, out);
        kkt_compile_result_free(&result);
    }
    return status;
}

int kkt_compile_worker_main(void) {
    kkt_worker *worker;
    kkt_error error = {0};
    kkt_status status = kkt_worker_open(&worker, &error);
    if (status != KKT_OK)
        return (int)status;
    kkt_compiler *compiler = NULL;
    kkt_frame frame = {0};
    while (kkt_worker_receive(worker, &frame)) {
        kkt_packer out = {0};
        if (answer(&compiler, &frame, &out, &error) == KKT_OK)
            kkt_worker_send(worker, KKT_FRAME_COMPILED, out.data, out.size);
        else
            send_error(worker, &error);
        kkt_packer_free(&out);
        kkt_frame_free(&frame);
    }
    kkt_compiler_close(compiler);
    kkt_worker_close(worker);
    return 0;
}
