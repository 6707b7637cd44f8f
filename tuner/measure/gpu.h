/* One GPU as the worker uses it: driver, context, stream, helper kernels and memory. Functions
 * return the driver's result; kkt_driver_error_text says it in words. */
#ifndef KKT_TUNER_MEASURE_GPU_H
#define KKT_TUNER_MEASURE_GPU_H

#include "kernels/kernel.h"
#include "tuner/measure/backend.h"
#include "tuner/measure/driver.h"
#include "tuner/measure/nvml.h"

/* Bytes kept around every buffer, filled like the poison: what reads them gets NaN, what writes
 * them is found out. */
#define KKT_GUARD_BYTES 4096
#define KKT_POISON 0xff

/* Device memory that is kept and grown, not freed, from candidate to candidate. */
typedef struct kkt_slab {
    CUdeviceptr base;
    size_t bytes, used;
} kkt_slab;

#define KKT_LIBRARIES_MAX 4

typedef struct kkt_library kkt_library; /* measure/library/library.h */

typedef struct kkt_gpu {
    kkt_driver driver;
    kkt_nvml *nvml; /* NULL: unknown */
    int others;     /* processes that used the GPU before this one did; -1: unknown */
    bool blind;     /* NVML's process numbers are not this container's */
    kkt_backend_info info;
    CUdevice device;
    CUcontext context; /* NULL until kkt_gpu_start */
    CUstream stream;
    CUmodule helpers;
    CUfunction flush, scan, compare;
    kkt_slab flush_slab, scan_slab;
    unsigned helper_blocks;
    kkt_library *libraries;  /* KKT_LIBRARIES_MAX; NULL: none was asked for yet */
    char library_error[200]; /* of the call that failed last, until it is told */
} kkt_gpu;

/* What kkt_scan of kernels/device/measure.cu finds in an output. */
typedef struct kkt_scan_result {
    unsigned long long unwritten, not_finite, hash;
} kkt_scan_result;

/* Two outputs side by side. */
typedef struct kkt_compare_result {
    double difference, largest; /* largest |a - b| and |b|, in single precision */
    int64_t first, end;         /* the largest difference is at an element from first up to end */
} kkt_compare_result;

/* Opens driver, device `index` (-1: the first visible) and NVML; makes no context yet. */
kkt_status kkt_gpu_open(kkt_gpu *gpu, int index, kkt_error *err);
/* Makes the context and loads the helper kernels. KKT_ERR_ENVIRONMENT where that fails. */
kkt_status kkt_gpu_start(kkt_gpu *gpu, const void *helpers, kkt_error *err);
void kkt_gpu_close(kkt_gpu *gpu);

/* Other processes that use the GPU now; -1: unknown. */
int kkt_gpu_others(const kkt_gpu *gpu);

/* Makes room for `bytes` and empties the slab; its old content is gone. */
CUresult kkt_slab_reserve(kkt_gpu *gpu, kkt_slab *slab, size_t bytes);
/* The next buffer of a slab, guards around it, 256-byte aligned. The room must be reserved. */
CUdeviceptr kkt_slab_take(kkt_slab *slab, size_t bytes);
/* What a buffer of `bytes` takes of a slab. */
size_t kkt_slab_need(size_t bytes);

/* Reads `bytes` of other memory, so that nothing of the last run is left in L2 (asynchronous). */
CUresult kkt_gpu_flush(kkt_gpu *gpu, size_t bytes);
/* Looks at all elements of an output; waits for the answer. */
CUresult kkt_gpu_scan(kkt_gpu *gpu, CUdeviceptr data, const kkt_tensor *tensor,
                      kkt_scan_result *out);
/* Compares all elements of two outputs, which must be finite; waits for the answer. Integers
 * compare as equal. */
CUresult kkt_gpu_compare(kkt_gpu *gpu, CUdeviceptr data, CUdeviceptr standard,
                         const kkt_tensor *tensor, kkt_compare_result *out);

#endif
