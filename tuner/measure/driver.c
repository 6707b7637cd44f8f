#include "tuner/measure/driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define OLDEST_CUDA 13000 /* cubins of a 13.0 compiler do not load in a driver of CUDA 12 */

typedef struct symbol {
    const char *name;
    size_t offset;
    bool optional;
} symbol;

/* The versioned names that cuda.h's macros stand for, stated, since dlsym sees no macros. */
static const symbol SYMBOLS[] = {
    {"cuInit", offsetof(kkt_driver, init), false},
    {"cuDriverGetVersion", offsetof(kkt_driver, driver_version), false},
    {"cuGetErrorName", offsetof(kkt_driver, error_name), false},
    {"cuGetErrorString", offsetof(kkt_driver, error_string), false},
    {"cuDeviceGetCount", offsetof(kkt_driver, device_count), false},
    {"cuDeviceGet", offsetof(kkt_driver, device_get), false},
    {"cuDeviceGetName", offsetof(kkt_driver, device_name), false},
    {"cuDeviceGetAttribute", offsetof(kkt_driver, device_attribute), false},
    {"cuDeviceGetPCIBusId", offsetof(kkt_driver, device_pci), false},
    {"cuDevicePrimaryCtxRetain", offsetof(kkt_driver, context_retain), false},
    {"cuCtxSetCurrent", offsetof(kkt_driver, context_set), false},
    {"cuMemGetInfo_v2", offsetof(kkt_driver, memory_info), false},
    {"cuMemAlloc_v2", offsetof(kkt_driver, memory_alloc), false},
    {"cuMemFree_v2", offsetof(kkt_driver, memory_free), false},
    {"cuMemcpyHtoD_v2", offsetof(kkt_driver, copy_to_device), false},
    {"cuMemcpyDtoH_v2", offsetof(kkt_driver, copy_to_host), false},
    {"cuMemsetD8Async", offsetof(kkt_driver, fill), false},
    {"cuModuleLoadData", offsetof(kkt_driver, module_load), false},
    {"cuModuleUnload", offsetof(kkt_driver, module_unload), false},
    {"cuModuleGetFunction", offsetof(kkt_driver, module_function), false},
    {"cuFuncSetAttribute", offsetof(kkt_driver, function_set), false},
    {"cuLaunchKernelEx", offsetof(kkt_driver, launch), false},
    {"cuStreamCreate", offsetof(kkt_driver, stream_create), false},
    {"cuStreamSynchronize", offsetof(kkt_driver, stream_wait), false},
    {"cuStreamBeginCapture_v2", offsetof(kkt_driver, capture_begin), false},
    {"cuStreamEndCapture", offsetof(kkt_driver, capture_end), false},
    {"cuGraphInstantiateWithFlags", offsetof(kkt_driver, graph_instantiate), false},
    {"cuGraphLaunch", offsetof(kkt_driver, graph_launch), false},
    {"cuGraphExecDestroy", offsetof(kkt_driver, graph_exec_destroy), false},
    {"cuGraphDestroy", offsetof(kkt_driver, graph_destroy), false},
    {"cuEventCreate", offsetof(kkt_driver, event_create), false},
    {"cuEventDestroy_v2", offsetof(kkt_driver, event_destroy), false},
    {"cuEventRecord", offsetof(kkt_driver, event_record), false},
    {"cuEventElapsedTime", offsetof(kkt_driver, event_elapsed), false},
    {"cuTensorMapEncodeTiled", offsetof(kkt_driver, tensor_map), true},
};

static kkt_status load_symbols(kkt_driver *driver, kkt_error *err) {
    for (size_t i = 0; i < sizeof SYMBOLS / sizeof SYMBOLS[0]; i++) {
        void *found = dlsym(driver->library, SYMBOLS[i].name);
        if (found == NULL && !SYMBOLS[i].optional) {
            return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0,
                            "libcuda.so.1 has no %s; install an NVIDIA driver of 580 or later",
                            SYMBOLS[i].name);
        }
        /* A cast from an object to a function pointer is no ISO C; POSIX promises the copy. */
        memcpy((char *)driver + SYMBOLS[i].offset, &found, sizeof found);
    }
    return KKT_OK;
}

static kkt_status initialise(kkt_driver *driver, kkt_error *err) {
    char text[256];
    int version = 0;
    int count = 0;
    CUresult result = driver->init(0);
    if (result == CUDA_SUCCESS) {
        result = driver->driver_version(&version);
    }
    if (result == CUDA_SUCCESS) {
        result = driver->device_count(&count);
    }
    if (result == CUDA_ERROR_NO_DEVICE || (result == CUDA_SUCCESS && count == 0)) {
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, (int)result,
                        "no CUDA GPU is visible; check nvidia-smi and CUDA_VISIBLE_DEVICES");
    }
    if (result != CUDA_SUCCESS) {
        kkt_driver_error_text(driver, result, text, sizeof text);
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, (int)result,
                        "the CUDA driver cannot start (%s); check that nvidia-smi works", text);
    }
    if (version < OLDEST_CUDA) {
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0,
                        "the NVIDIA driver supports CUDA %d.%d only; install a driver of 580 or "
                        "later",
                        version / 1000, version % 1000 / 10);
    }
    return KKT_OK;
}

kkt_status kkt_driver_open(kkt_driver *out, kkt_error *err) {
    *out = (kkt_driver){0};
    out->library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (out->library == NULL) {
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0,
                        "no NVIDIA driver: libcuda.so.1 is not found; install a driver of 580 or "
                        "later");
    }
    kkt_status status = load_symbols(out, err);
    if (status == KKT_OK) {
        status = initialise(out, err);
    }
    if (status != KKT_OK) {
        kkt_driver_close(out);
    }
    return status;
}

void kkt_driver_close(kkt_driver *driver) {
    if (driver->library != NULL) {
        dlclose(driver->library);
    }
    *driver = (kkt_driver){0};
}

void kkt_driver_error_text(const kkt_driver *driver, CUresult result, char *out, size_t size) {
    const char *name = NULL;
    const char *text = NULL;
    if (driver->error_name(result, &name) != CUDA_SUCCESS || name == NULL) {
        snprintf(out, size, "CUDA error %d", (int)result);
        return;
    }
    if (driver->error_string(result, &text) != CUDA_SUCCESS || text == NULL) {
        text = "";
    }
    snprintf(out, size, "%s: %s", name, text);
}

bool kkt_driver_device_lost(CUresult result) {
    static const CUresult lost[] = {
        CUDA_ERROR_NO_DEVICE,       CUDA_ERROR_DEVICE_UNAVAILABLE, CUDA_ERROR_INVALID_DEVICE,
        CUDA_ERROR_NOT_INITIALIZED, CUDA_ERROR_DEINITIALIZED,      CUDA_ERROR_SYSTEM_NOT_READY,
    };
    for (size_t i = 0; i < sizeof lost / sizeof lost[0]; i++) {
        if (result == lost[i]) {
            return true;
        }
    }
    return false;
}

bool kkt_driver_context_lost(CUresult result) {
    static const CUresult lost[] = {
        CUDA_ERROR_ILLEGAL_ADDRESS,
        CUDA_ERROR_LAUNCH_TIMEOUT,
        CUDA_ERROR_ASSERT,
        CUDA_ERROR_HARDWARE_STACK_ERROR,
        CUDA_ERROR_ILLEGAL_INSTRUCTION,
        CUDA_ERROR_MISALIGNED_ADDRESS,
        CUDA_ERROR_INVALID_PC,
        CUDA_ERROR_INVALID_ADDRESS_SPACE,
        CUDA_ERROR_LAUNCH_FAILED,
        CUDA_ERROR_ECC_UNCORRECTABLE,
        CUDA_ERROR_TENSOR_MEMORY_LEAK,
        CUDA_ERROR_CONTAINED,
        CUDA_ERROR_UNKNOWN,
    };
    for (size_t i = 0; i < sizeof lost / sizeof lost[0]; i++) {
        if (result == lost[i]) {
            return true;
        }
    }
    return false;
}
