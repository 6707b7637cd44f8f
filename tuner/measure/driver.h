/* The CUDA driver API, opened with dlopen: the program itself needs no CUDA library. Opened by the
 * GPU worker alone, never by the process that owns the database. */
#ifndef KKT_TUNER_MEASURE_DRIVER_H
#define KKT_TUNER_MEASURE_DRIVER_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

typedef struct kkt_driver {
    void *library;
    CUresult (*init)(unsigned flags);
    CUresult (*driver_version)(int *version);
    CUresult (*error_name)(CUresult result, const char **text);
    CUresult (*error_string)(CUresult result, const char **text);
    CUresult (*device_count)(int *count);
    CUresult (*device_get)(CUdevice *device, int ordinal);
    CUresult (*device_name)(char *name, int size, CUdevice device);
    CUresult (*device_attribute)(int *value, CUdevice_attribute attribute, CUdevice device);
    CUresult (*device_pci)(char *id, int size, CUdevice device);
    CUresult (*context_retain)(CUcontext *context, CUdevice device);
    CUresult (*context_set)(CUcontext context);
    CUresult (*memory_info)(size_t *free_bytes, size_t *total_bytes);
    CUresult (*memory_alloc)(CUdeviceptr *at, size_t bytes);
    CUresult (*memory_free)(CUdeviceptr at);
    CUresult (*copy_to_device)(CUdeviceptr to, const void *from, size_t bytes);
    CUresult (*copy_to_host)(void *to, CUdeviceptr from, size_t bytes);
    CUresult (*fill)(CUdeviceptr at, unsigned char value, size_t bytes, CUstream stream);
    CUresult (*module_load)(CUmodule *module, const void *image);
    CUresult (*module_unload)(CUmodule module);
    CUresult (*module_function)(CUfunction *function, CUmodule module, const char *name);
    CUresult (*function_set)(CUfunction function, CUfunction_attribute attribute, int value);
    CUresult (*launch)(const CUlaunchConfig *config, CUfunction function, void **arguments,
                       void **extra);
    CUresult (*stream_create)(CUstream *stream, unsigned flags);
    CUresult (*stream_wait)(CUstream stream);
    CUresult (*capture_begin)(CUstream stream, CUstreamCaptureMode mode);
    CUresult (*capture_end)(CUstream stream, CUgraph *graph);
    CUresult (*graph_instantiate)(CUgraphExec *exec, CUgraph graph, unsigned long long flags);
    CUresult (*graph_launch)(CUgraphExec exec, CUstream stream);
    CUresult (*graph_exec_destroy)(CUgraphExec exec);
    CUresult (*graph_destroy)(CUgraph graph);
    CUresult (*event_create)(CUevent *event, unsigned flags);
    CUresult (*event_destroy)(CUevent event);
    CUresult (*event_record)(CUevent event, CUstream stream);
    CUresult (*event_elapsed)(float *milliseconds, CUevent from, CUevent to);
    /* NULL where the driver has none (before CUDA 12). */
    CUresult (*tensor_map)(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *base,
                           const cuuint64_t *dims, const cuuint64_t *strides, const cuuint32_t *box,
                           const cuuint32_t *element_strides, CUtensorMapInterleave interleave,
                           CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                           CUtensorMapFloatOOBfill fill);
} kkt_driver;

/* Opens libcuda.so.1 and initialises it. KKT_ERR_ENVIRONMENT says in one line what is missing (no
 * driver, no GPU, a driver older than CUDA 13) and the remedy. */
kkt_status kkt_driver_open(kkt_driver *out, kkt_error *err);
void kkt_driver_close(kkt_driver *driver);

/* "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered". */
void kkt_driver_error_text(const kkt_driver *driver, CUresult result, char *out, size_t size);
/* Whether the device itself is gone or unusable, so that no other candidate can run either. */
bool kkt_driver_device_lost(CUresult result);
/* Whether the context is poisoned: nothing can run in this process any more. */
bool kkt_driver_context_lost(CUresult result);

#endif
