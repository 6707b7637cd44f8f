/* The parent's side of a library: it is opened in the worker, where it may do no harm. */
#include <stdio.h>

#include "tuner/measure/cuda_link.h"

#define OPEN_SECONDS 60.0 /* of a library of half a gigabyte, from a slow disk */

kkt_status kkt_link_library(kkt_link *link, const kkt_arch *arch, const char *name,
                            char version[KKT_LIBRARY_VERSION_BYTES], kkt_error *err) {
    kkt_packer payload = {0};
    kkt_frame frame;
    kkt_error why = {0};
    kkt_status status = kkt_link_ready(link, arch, &why);
    if (status == KKT_OK) {
        kkt_pack_string(&payload, name);
        status = kkt_child_send(link->child, KKT_WIRE_LIBRARY, payload.data, payload.size,
                                KKT_LINK_SEND_SECONDS, &why);
        kkt_packer_free(&payload);
    }
    if (status == KKT_OK) {
        status = kkt_link_must(link, KKT_WIRE_LIBRARY, OPEN_SECONDS, "while opening a library",
                               &frame, &why);
    }
    if (status != KKT_OK) {
        kkt_link_drop(link);
        return kkt_fail(err, KKT_ERR_MISSING, why.native, "%.300s", why.message);
    }
    kkt_unpacker in = {.data = frame.payload, .size = frame.size};
    const char *found = kkt_unpack_string(&in);
    const char *reason = kkt_unpack_string(&in);
    if (!kkt_unpack_done(&in)) {
        kkt_link_drop(link);
        status = kkt_fail(err, KKT_ERR_MISSING, 0, "the GPU worker says nothing of a library");
    } else if (found[0] == '\0') {
        status = kkt_fail(err, KKT_ERR_MISSING, 0, "%.300s", reason);
    } else {
        snprintf(version, KKT_LIBRARY_VERSION_BYTES, "%.31s", found);
    }
    kkt_frame_free(&frame);
    return status;
}
