#include "tuner/measure/gpu.h"

#include <stdio.h>
#include <string.h>

#include "tuner/measure/library/library.h"

#define HELPER_THREADS 256
#define HELPER_BLOCKS_PER_SM 8
#define ALIGNMENT 256
#define ANSWER_BYTES 64 /* of a helper, at most */

static void describe(kkt_gpu *gpu, int index) {
    const kkt_driver *driver = &gpu->driver;
    kkt_backend_info *info = &gpu->info;
    char pci[32] = "";
    int version = 0;
    int multiprocessors = 1;
    info->index = index;
    driver->device_name(info->gpu, sizeof info->gpu, gpu->device);
    driver->device_attribute(&info->major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                             gpu->device);
    driver->device_attribute(&info->minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
                             gpu->device);
    driver->device_attribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
                             gpu->device);
    gpu->helper_blocks = (unsigned)multiprocessors * HELPER_BLOCKS_PER_SM;
    if (driver->device_pci(pci, sizeof pci, gpu->device) == CUDA_SUCCESS) {
        gpu->nvml = kkt_nvml_open(pci);
    }
    if (!kkt_nvml_driver(gpu->nvml, info->driver, sizeof info->driver)) {
        driver->driver_version(&version);
        snprintf(info->driver, sizeof info->driver, "CUDA %d.%d", version / 1000,
                 version % 1000 / 10);
    }
    /* This process has no context yet, so every process that NVML lists is another's. */
    int others = kkt_nvml_others(gpu->nvml);
    gpu->others = others;
    if (others > 0) {
        snprintf(info->note, sizeof info->note,
                 "%d other process%s use%s GPU %d: times may be disturbed", others,
                 others == 1 ? "" : "es", others == 1 ? "s" : "", index);
    }
}

kkt_status kkt_gpu_open(kkt_gpu *gpu, int index, kkt_error *err) {
    memset(gpu, 0, sizeof *gpu);
    kkt_status status = kkt_driver_open(&gpu->driver, err);
    if (status != KKT_OK) {
        return status;
    }
    int count = 0;
    int ordinal = index < 0 ? 0 : index;
    gpu->driver.device_count(&count);
    if (ordinal >= count) {
        kkt_gpu_close(gpu);
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0,
                        "there is no GPU %d; %d visible to CUDA, numbered from 0", ordinal, count);
    }
    CUresult result = gpu->driver.device_get(&gpu->device, ordinal);
    if (result != CUDA_SUCCESS) {
        char text[256];
        kkt_driver_error_text(&gpu->driver, result, text, sizeof text);
        kkt_gpu_close(gpu);
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, (int)result, "GPU %d cannot be used (%s)",
                        ordinal, text);
    }
    describe(gpu, ordinal);
    return KKT_OK;
}

kkt_status kkt_gpu_start(kkt_gpu *gpu, const void *helpers, kkt_error *err) {
    const kkt_driver *driver = &gpu->driver;
    const char *what = "make a context";
    CUresult result = driver->context_retain(&gpu->context, gpu->device);
    if (result == CUDA_SUCCESS) {
        result = driver->context_set(gpu->context);
    }
    if (result == CUDA_SUCCESS) {
        /* One that waits for the default stream: a copy from pageable memory may still be on its
         * way there when cuMemcpyHtoD returns. */
        what = "make a stream";
        result = driver->stream_create(&gpu->stream, CU_STREAM_DEFAULT);
    }
    if (result == CUDA_SUCCESS) {
        what = "load its helper kernels";
        result = driver->module_load(&gpu->helpers, helpers);
    }
    if (result == CUDA_SUCCESS) {
        result = driver->module_function(&gpu->flush, gpu->helpers, "kkt_flush");
    }
    if (result == CUDA_SUCCESS) {
        result = driver->module_function(&gpu->scan, gpu->helpers, "kkt_scan");
    }
    if (result == CUDA_SUCCESS) {
        result = driver->module_function(&gpu->compare, gpu->helpers, "kkt_compare");
    }
    if (result == CUDA_SUCCESS) {
        gpu->blind = kkt_nvml_others(gpu->nvml) > gpu->others;
        return KKT_OK;
    }
    char text[256];
    kkt_driver_error_text(driver, result, text, sizeof text);
    return kkt_fail(err, KKT_ERR_ENVIRONMENT, (int)result,
                    "cannot %s on GPU %d (%s); check with nvidia-smi that it is free", what,
                    gpu->info.index, text);
}

/* Where this process counts as another, those that come later cannot be told from what the tuner
 * itself starts. */
int kkt_gpu_others(const kkt_gpu *gpu) {
    return gpu->blind ? gpu->others : kkt_nvml_others(gpu->nvml);
}

void kkt_gpu_close(kkt_gpu *gpu) {
    /* The context and all in it end with the process. */
    kkt_libraries_close(gpu);
    kkt_nvml_close(gpu->nvml);
    kkt_driver_close(&gpu->driver);
    memset(gpu, 0, sizeof *gpu);
}

size_t kkt_slab_need(size_t bytes) {
    size_t padded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return padded + 2 * (size_t)KKT_GUARD_BYTES;
}

CUresult kkt_slab_reserve(kkt_gpu *gpu, kkt_slab *slab, size_t bytes) {
    slab->used = 0;
    if (slab->bytes >= bytes && slab->base != 0) {
        return CUDA_SUCCESS;
    }
    if (slab->base != 0) {
        CUresult result = gpu->driver.memory_free(slab->base);
        if (result != CUDA_SUCCESS) {
            return result;
        }
    }
    *slab = (kkt_slab){0};
    CUresult result = gpu->driver.memory_alloc(&slab->base, bytes);
    slab->bytes = result == CUDA_SUCCESS ? bytes : 0;
    return result;
}

CUdeviceptr kkt_slab_take(kkt_slab *slab, size_t bytes) {
    CUdeviceptr at = slab->base + slab->used + KKT_GUARD_BYTES;
    slab->used += kkt_slab_need(bytes);
    return at;
}

static CUresult launch_helper(kkt_gpu *gpu, CUfunction function, void **arguments) {
    CUlaunchConfig config = {
        .gridDimX = gpu->helper_blocks,
        .gridDimY = 1,
        .gridDimZ = 1,
        .blockDimX = HELPER_THREADS,
        .blockDimY = 1,
        .blockDimZ = 1,
        .hStream = gpu->stream,
    };
    return gpu->driver.launch(&config, function, arguments, NULL);
}

CUresult kkt_gpu_flush(kkt_gpu *gpu, size_t bytes) {
    if (bytes == 0) {
        return CUDA_SUCCESS;
    }
    if (gpu->flush_slab.bytes < bytes + ALIGNMENT) {
        CUresult result = kkt_slab_reserve(gpu, &gpu->flush_slab, bytes + ALIGNMENT);
        if (result == CUDA_SUCCESS) {
            result = gpu->driver.fill(gpu->flush_slab.base, 0, bytes + ALIGNMENT, gpu->stream);
        }
        if (result != CUDA_SUCCESS) {
            return result;
        }
    }
    /* The words are all 0: their exclusive or is never 1, and the sink is never written. */
    CUdeviceptr words = gpu->flush_slab.base;
    CUdeviceptr sink = words + bytes;
    unsigned long long count = bytes / 16;
    unsigned never = 1;
    void *arguments[] = {&words, &count, &never, &sink};
    return launch_helper(gpu, gpu->flush, arguments);
}

static unsigned long long exponent_bits(kkt_dtype dtype) {
    switch (dtype) {
    case KKT_BF16:
        return 0x7f80;
    case KKT_FP16:
        return 0x7c00;
    case KKT_FP32:
        return 0x7f800000;
    case KKT_FP64:
        return 0x7ff0000000000000;
    case KKT_I32:
    case KKT_I64:
    case KKT_DTYPE_COUNT:
        break;
    }
    return 0;
}

/* Room for the answer of a helper, all zero. */
static CUresult clear_answer(kkt_gpu *gpu) {
    CUresult result = CUDA_SUCCESS;
    if (gpu->scan_slab.base == 0) {
        result = kkt_slab_reserve(gpu, &gpu->scan_slab, ANSWER_BYTES);
    }
    if (result == CUDA_SUCCESS) {
        result = gpu->driver.fill(gpu->scan_slab.base, 0, ANSWER_BYTES, gpu->stream);
    }
    return result;
}

/* Launches a helper that ends in the address of its answer, and fetches that. */
static CUresult ask(kkt_gpu *gpu, CUfunction function, void **arguments, void *out, size_t bytes) {
    CUresult result = launch_helper(gpu, function, arguments);
    if (result == CUDA_SUCCESS) {
        result = gpu->driver.stream_wait(gpu->stream);
    }
    if (result == CUDA_SUCCESS) {
        result = gpu->driver.copy_to_host(out, gpu->scan_slab.base, bytes);
    }
    return result;
}

CUresult kkt_gpu_scan(kkt_gpu *gpu, CUdeviceptr data, const kkt_tensor *tensor,
                      kkt_scan_result *out) {
    CUresult result = clear_answer(gpu);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    CUdeviceptr sums = gpu->scan_slab.base;
    unsigned long long count = (unsigned long long)kkt_tensor_elements(tensor);
    int bytes = (int)kkt_dtype_bytes(tensor->dtype);
    unsigned long long exponent = exponent_bits(tensor->dtype);
    void *arguments[] = {&data, &count, &bytes, &exponent, &sums};
    return ask(gpu, gpu->scan, arguments, out, sizeof *out);
}

/* As kkt_compare of kernels/device/measure.cu counts types; -1: it knows none such. */
static int compared_kind(kkt_dtype dtype) {
    switch (dtype) {
    case KKT_BF16:
        return 0;
    case KKT_FP16:
        return 1;
    case KKT_FP32:
        return 2;
    case KKT_FP64:
        return 3;
    case KKT_I32:
    case KKT_I64:
    case KKT_DTYPE_COUNT:
        break;
    }
    return -1;
}

static float float_of_bits(unsigned long long bits) {
    const uint32_t low = (uint32_t)bits;
    float value;
    memcpy(&value, &low, sizeof value);
    return value;
}

CUresult kkt_gpu_compare(kkt_gpu *gpu, CUdeviceptr data, CUdeviceptr standard,
                         const kkt_tensor *tensor, kkt_compare_result *out) {
    int kind = compared_kind(tensor->dtype), shift = 0;
    unsigned long long count = (unsigned long long)kkt_tensor_elements(tensor), answer[2];
    *out = (kkt_compare_result){0};
    if (kind < 0) {
        return CUDA_SUCCESS;
    }
    /* The place shares 64 bits with the difference, so that one maximum finds both. */
    while (count >> shift > UINT32_MAX) {
        shift++;
    }
    CUresult result = clear_answer(gpu);
    CUdeviceptr where = gpu->scan_slab.base;
    void *arguments[] = {&data, &standard, &count, &kind, &shift, &where};
    if (result == CUDA_SUCCESS) {
        result = ask(gpu, gpu->compare, arguments, answer, sizeof answer);
    }
    if (result == CUDA_SUCCESS) {
        const int64_t place = (int64_t)(answer[0] & UINT32_MAX);
        out->difference = (double)float_of_bits(answer[0] >> 32);
        out->largest = (double)float_of_bits(answer[1]);
        out->first = place << shift;
        out->end = (place + 1) << shift;
    }
    return result;
}
