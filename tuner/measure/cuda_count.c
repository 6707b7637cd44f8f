/* The parent's side of counting: one message and its answer. */
#include "tuner/measure/cuda_link.h"

/* For opening the profiler, beyond the candidate's own time. */
#define PROFILER_SECONDS 30.0

/* Unusable for this candidate alone: the next one gets a new worker. */
static void blame(kkt_link *link, const kkt_error *error, kkt_counts *out) {
    kkt_link_drop(link);
    kkt_counts_set(out, KKT_COUNT_FAILED, "%.300s", error->message);
}

static void take_counts(kkt_link *link, double seconds, kkt_counts *out) {
    kkt_error error = {0};
    kkt_frame frame;
    bool replace = false;
    if (kkt_link_must(link, KKT_WIRE_COUNTS, seconds, "while counting", &frame, &error) != KKT_OK) {
        blame(link, &error, out);
        return;
    }
    kkt_unpacker in = {.data = frame.payload, .size = frame.size};
    bool good = kkt_wire_unpack_counts(&in, out, &replace);
    kkt_frame_free(&frame);
    if (!good) {
        kkt_fail(&error, KKT_ERR_ENVIRONMENT, 0, "the counting worker sent damaged counts");
        blame(link, &error, out);
    } else if (replace) {
        kkt_link_drop(link);
    }
}

void kkt_link_count(kkt_link *link, const kkt_measure_request *request, double seconds,
                    kkt_counts *out) {
    kkt_error error = {0};
    kkt_packer payload = {0};
    if (kkt_link_ready(link, request->arch, &error) != KKT_OK) {
        kkt_link_drop(link);
        kkt_counts_set(out, KKT_COUNT_UNAVAILABLE, "%.300s", error.message);
        return;
    }
    kkt_wire_pack_request(&payload, request);
    if (kkt_link_begin(link, KKT_WIRE_COUNT, &payload, &error) != KKT_OK) {
        blame(link, &error, out);
        return;
    }
    take_counts(link, seconds + PROFILER_SECONDS, out);
}
