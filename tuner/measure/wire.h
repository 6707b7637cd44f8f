/* What the parent and the GPU worker say to each other, as payloads of worker/process.h frames.
 * Both sides are this program, but a worker may run beside a misbehaving kernel and is not
 * trusted: every value is checked on its way in, and names are looked up again. */
#ifndef KKT_TUNER_MEASURE_WIRE_H
#define KKT_TUNER_MEASURE_WIRE_H

#include "tuner/measure/backend.h"
#include "tuner/worker/process.h"

typedef enum kkt_wire_kind {
    KKT_WIRE_HELLO = 1, /* parent: the GPU's index; answer INFO or ERROR */
    KKT_WIRE_SETUP,     /* parent: the helper kernels' cubin; answer READY or ERROR */
    KKT_WIRE_MEASURE,   /* parent: one request; answer READY once inputs are there, then RESULT */
    KKT_WIRE_RETIME,    /* parent: requests of one problem; READY, then a RESULT for each */
    KKT_WIRE_RUN,       /* parent: one request, then TENSORs; READY, RESULT, then TENSORs */
    KKT_WIRE_CHAIN,     /* parent: a pipeline; answer READY once inputs are there, then RESULT */
    KKT_WIRE_COUNT,     /* parent, to the counting worker: one request; READY, then COUNTS */
    KKT_WIRE_LIBRARY,   /* parent: a library's name; answer LIBRARY: its version, or "" and why */
    KKT_WIRE_TENSOR,
    KKT_WIRE_INFO,
    KKT_WIRE_READY,
    KKT_WIRE_RESULT,
    KKT_WIRE_COUNTS,
    KKT_WIRE_ERROR /* status, native code and message: nothing more can run */
} kkt_wire_kind;

/* Finds a kernel by name; kkt_kernel_parse outside of tests. */
typedef kkt_status (*kkt_kernel_lookup)(const char *name, const kkt_kernel **out, kkt_error *err);

/* A request as decoded; `request` points into this struct and into the frame's payload, so neither
 * may move or be freed while it is used. */
typedef struct kkt_wire_request {
    kkt_measure_request request;
    kkt_values problem, config;
    kkt_policy policy;
    kkt_prediction prediction; /* predicted_us and lower_bound_us alone */
} kkt_wire_request;

void kkt_wire_pack_request(kkt_packer *out, const kkt_measure_request *request);
/* KKT_ERR_INPUT where the bytes are no valid request; the reader may be left anywhere then. */
kkt_status kkt_wire_unpack_request(kkt_unpacker *in, kkt_kernel_lookup lookup,
                                   kkt_wire_request *out, kkt_error *err);

/* Whether a request is without code, and its variant is not one that calls a library alone. */
bool kkt_wire_lacks_code(const kkt_measure_request *request);

/* A pipeline as decoded; as kkt_wire_request. The whole kernel has no cubin. */
typedef struct kkt_wire_chain {
    kkt_chain_request request;
    kkt_wire_request whole, members[KKT_MEMBERS_MAX];
    kkt_measure_request requests[KKT_MEMBERS_MAX];
} kkt_wire_chain;

void kkt_wire_pack_chain(kkt_packer *out, const kkt_chain_request *request);
/* KKT_ERR_INPUT where the bytes are no valid pipeline. */
kkt_status kkt_wire_unpack_chain(kkt_unpacker *in, kkt_kernel_lookup lookup, kkt_wire_chain *out,
                                 kkt_error *err);

/* `replace`: the worker's context is lost, the parent must start another. Date, figures, reason
 * and samples travel; gpu, driver and policy are the parent's own. */
void kkt_wire_pack_result(kkt_packer *out, const kkt_measure_result *result, bool replace);
/* Fills a result that kkt_measure_result_init has prepared. False: not a valid result. */
bool kkt_wire_unpack_result(kkt_unpacker *in, kkt_measure_result *result, bool *replace);

void kkt_wire_pack_counts(kkt_packer *out, const kkt_counts *counts, bool replace);
/* False: no valid counts. */
bool kkt_wire_unpack_counts(kkt_unpacker *in, kkt_counts *counts, bool *replace);

void kkt_wire_pack_info(kkt_packer *out, const kkt_backend_info *info);
bool kkt_wire_unpack_info(kkt_unpacker *in, kkt_backend_info *info);

void kkt_wire_pack_error(kkt_packer *out, const kkt_error *error);
bool kkt_wire_unpack_error(kkt_unpacker *in, kkt_error *error);

/* A tensor's name and bytes; `present` false: an optional one that is absent. */
void kkt_wire_pack_tensor(kkt_packer *out, const kkt_host_tensor *tensor);
/* Finds the tensor of that name in `tensors` and gives it a copy of the bytes, which must be as
 * many as its shape says. False: not a valid tensor. */
bool kkt_wire_unpack_tensor(kkt_unpacker *in, kkt_host_tensors *tensors);

#endif
