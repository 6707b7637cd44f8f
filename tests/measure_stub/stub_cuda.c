/* A CUDA driver that runs on the CPU: memory is host memory, a module is a word that says how its
 * kernels behave, and time is a counter that each launch moves on. Enough for the GPU worker. */
#include <cuda.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FLUSH_US 100.0 /* must never show up in a sample */
#define LAUNCH_US 5.0
#define CAPTURED_MAX 8

struct CUmod_st {
    char word[16];
};
struct CUfunc_st {
    CUmodule module;
    char name[32];
    int smem_limit;
};
typedef struct captured {
    CUfunction function;
    void *pointers[3];
    long long n;
    float factor;
    bool early; /* launched while the one before it ends: takes half the time */
    void (*host)(const void *arguments); /* what a library enqueued; NULL: a kernel */
    unsigned char arguments[128];
} captured;
struct CUgraph_st {
    int count;
    captured launches[CAPTURED_MAX];
};
struct CUevent_st {
    double at_us;
};

/* The state of the "device"; a worker process has one. */
static struct {
    double now_us;
    unsigned toy_launches, graph_launches, flushes;
    CUresult sticky;
    CUgraph capturing;
} gpu;

/* What the stub of CUPTI counts. */
void kkt_stub_launches(unsigned *toys, unsigned *flushes);
void kkt_stub_launches(unsigned *toys, unsigned *flushes) {
    *toys = gpu.toy_launches;
    *flushes = gpu.flushes;
}

/* What the stub of cuBLAS enqueues on the one stream. */
CUresult kkt_stub_enqueue(void (*host)(const void *arguments), const void *arguments, size_t size);

/* The driver's old name, which the worker asks for; cuda.h knows the newer one alone. */
#undef cuEventElapsedTime
CUresult CUDAAPI cuEventElapsedTime(float *milliseconds, CUevent from, CUevent to);

CUresult cuInit(unsigned flags) {
    return flags == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDriverGetVersion(int *version) {
    const char *old = getenv("KKT_STUB_VERSION");
    *version = old != NULL ? atoi(old) : 13000;
    return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult result, const char **text) {
    static const struct {
        CUresult result;
        const char *name;
    } names[] = {
        {CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS"},
        {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
        {CUDA_ERROR_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE"},
        {CUDA_ERROR_DEVICE_UNAVAILABLE, "CUDA_ERROR_DEVICE_UNAVAILABLE"},
    };
    *text = NULL;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (names[i].result == result) {
            *text = names[i].name;
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult result, const char **text) {
    *text = "words of the stub";
    return result == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count) {
    const char *devices = getenv("KKT_STUB_DEVICES");
    *count = devices != NULL ? atoi(devices) : 1;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int size, CUdevice device) {
    snprintf(name, (size_t)size, "Stub GPU %d", device);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
    *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR   ? 9
             : attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR ? 0
                                                                         : 132;
    return device >= 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetPCIBusId(char *id, int size, CUdevice device) {
    snprintf(id, (size_t)size, "0000:1b:00.%d", device);
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    *context = (CUcontext)&gpu;
    return device >= 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuCtxSetCurrent(CUcontext context) {
    return context == (CUcontext)&gpu ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuMemGetInfo(size_t *free_bytes, size_t *total_bytes) {
    *free_bytes = *total_bytes = (size_t)1 << 36;
    return CUDA_SUCCESS;
}

CUresult cuMemAlloc(CUdeviceptr *at, size_t bytes) {
    void *memory = aligned_alloc(512, (bytes + 511) / 512 * 512);
    *at = (CUdeviceptr)(uintptr_t)memory;
    return memory != NULL ? gpu.sticky : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemFree(CUdeviceptr at) {
    free((void *)(uintptr_t)at);
    return gpu.sticky;
}

CUresult cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t bytes) {
    memcpy((void *)(uintptr_t)to, from, bytes);
    return gpu.sticky;
}

CUresult cuMemcpyDtoH(void *to, CUdeviceptr from, size_t bytes) {
    memcpy(to, (const void *)(uintptr_t)from, bytes);
    return gpu.sticky;
}

CUresult cuMemsetD8Async(CUdeviceptr at, unsigned char value, size_t bytes, CUstream stream) {
    memset((void *)(uintptr_t)at, value, bytes);
    return stream != NULL ? gpu.sticky : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image) {
    *module = calloc(1, sizeof **module);
    if (*module == NULL || memcmp(image, "badimage", 8) == 0) {
        return CUDA_ERROR_INVALID_IMAGE;
    }
    /* The helpers' cubin is a real one; all that counts is that it begins with no known word. */
    memcpy((*module)->word, image, sizeof(*module)->word - 1);
    return gpu.sticky;
}

CUresult cuModuleUnload(CUmodule module) {
    free(module);
    return CUDA_SUCCESS;
}

/* Functions live as long as the process: few, and tests are short. */
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    static struct CUfunc_st pool[4096];
    static size_t used;
    if (used == sizeof pool / sizeof pool[0]) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *function = &pool[used++];
    (*function)->module = module;
    (*function)->smem_limit = 48 * 1024;
    snprintf((*function)->name, sizeof(*function)->name, "%s", name);
    return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
    if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
        return CUDA_SUCCESS;
    }
    if (value > 227 * 1024) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    function->smem_limit = value;
    return CUDA_SUCCESS;
}

static bool behaves(CUfunction function, const char *word) {
    return strcmp(function->module->word, word) == 0;
}

/* One half of y = factor x, with the module's fault. */
static void run_toy(const captured *launch) {
    CUfunction function = launch->function;
    const float *x = launch->pointers[0];
    float *y = launch->pointers[2];
    bool high = strcmp(function->name, "toy_high") == 0;
    long long middle = launch->n / 2;
    for (long long i = high ? middle : 0; i < (high ? launch->n : middle); i++) {
        y[i] = launch->factor * x[i];
    }
    gpu.toy_launches++;
    bool large = launch->n > 1000;
    if (!high) {
        return;
    }
    if (behaves(function, "wrong") || (behaves(function, "wrongmiddle") && large)) {
        y[launch->n / 2] += 1.0F;
    } else if (behaves(function, "wronglarge") && large) {
        y[launch->n - 1] += 1.0F;
    } else if (behaves(function, "race")) {
        y[3] += 1e-7F * (float)(gpu.toy_launches % 5) * y[3];
    } else if (behaves(function, "racelarge") && large) {
        y[3] = y[3] * (1.0F + 1e-6F * (float)(gpu.toy_launches % 5));
    } else if (behaves(function, "unwritten")) {
        memset(&y[launch->n - 1], 0xff, sizeof *y);
    } else if (behaves(function, "unwrittenlarge") && large) {
        memset(&y[launch->n / 3], 0xff, sizeof *y);
    } else if (behaves(function, "overrun")) {
        y[launch->n] = 0.0F;
    } else if (behaves(function, "underrun")) {
        y[-1] = 0.0F;
    } else if (behaves(function, "illegal")) {
        gpu.sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
    } else if (behaves(function, "lost")) {
        gpu.sticky = CUDA_ERROR_DEVICE_UNAVAILABLE;
    } else if (behaves(function, "hang")) {
        pause();
    } else if (behaves(function, "segv")) {
        signal(SIGSEGV, SIG_DFL);
        raise(SIGSEGV);
    } else if (launch->pointers[1] != NULL) {
        y[0] = -1.0F; /* the absent optional input must be a null pointer */
    }
    if (behaves(function, "wild")) {
        static const double wild[] = {5.0, 500.0};
        gpu.now_us += wild[gpu.toy_launches / 2 % 2];
    }
    if (behaves(function, "hangretime") && gpu.graph_launches > 0 && getenv("KKT_STUB_RETIME")) {
        pause();
    }
    if (behaves(function, "illegalretime") && gpu.graph_launches > 0 && getenv("KKT_STUB_RETIME")) {
        gpu.sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
    }
}

static void run_scan(void **arguments) {
    const uint32_t *data = *(void **)arguments[0];
    unsigned long long count = *(unsigned long long *)arguments[1];
    unsigned long long exponent = *(unsigned long long *)arguments[3];
    unsigned long long *sums = *(void **)arguments[4];
    for (unsigned long long i = 0; i < count; i++) {
        sums[0] += data[i] == UINT32_MAX;
        sums[1] += (data[i] & exponent) == exponent;
        sums[2] += (i + 1) * 0x9e3779b97f4a7c15ULL ^ data[i] * 0xbf58476d1ce4e5b9ULL;
    }
}

static void run_compare(void **arguments) {
    const float *a = *(void **)arguments[0], *b = *(void **)arguments[1];
    unsigned long long count = *(unsigned long long *)arguments[2];
    unsigned long long *out = *(void **)arguments[5];
    for (unsigned long long i = 0; i < count; i++) {
        const float values[2] = {fabsf(a[i] - b[i]), fabsf(b[i])};
        uint32_t bits[2];
        memcpy(bits, values, sizeof bits);
        const unsigned long long worst = (unsigned long long)bits[0] << 32 | i;
        out[0] = worst > out[0] ? worst : out[0];
        out[1] = bits[1] > out[1] ? bits[1] : out[1];
    }
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **arguments,
                          void **extra) {
    if (extra != NULL || config->hStream == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (gpu.sticky != CUDA_SUCCESS) {
        return gpu.sticky;
    }
    if ((int)config->sharedMemBytes > function->smem_limit) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (strcmp(function->name, "kkt_flush") == 0) {
        gpu.now_us += FLUSH_US;
        gpu.flushes++;
        return CUDA_SUCCESS;
    }
    if (strcmp(function->name, "kkt_scan") == 0) {
        run_scan(arguments);
        return CUDA_SUCCESS;
    }
    if (strcmp(function->name, "kkt_compare") == 0) {
        run_compare(arguments);
        return CUDA_SUCCESS;
    }
    captured launch = {
        .function = function, .n = *(long long *)arguments[3], .factor = *(float *)arguments[4]};
    for (int i = 0; i < 3; i++) {
        memcpy(&launch.pointers[i], arguments[i], sizeof launch.pointers[i]);
    }
    bool cluster = false;
    for (unsigned i = 0; i < config->numAttrs; i++) {
        const CUlaunchAttribute *attribute = &config->attrs[i];
        if (attribute->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
            cluster = attribute->value.clusterDim.x == 1;
        } else if (attribute->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION) {
            launch.early = attribute->value.programmaticStreamSerializationAllowed == 1;
        } else {
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    if (cluster != (strcmp(function->name, "toy_high") == 0)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (gpu.capturing != NULL) {
        if (gpu.capturing->count == CAPTURED_MAX) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        gpu.capturing->launches[gpu.capturing->count++] = launch;
        return CUDA_SUCCESS;
    }
    run_toy(&launch);
    return CUDA_SUCCESS;
}

CUresult kkt_stub_enqueue(void (*host)(const void *arguments), const void *arguments, size_t size) {
    captured call = {.host = host};
    if (size > sizeof call.arguments || gpu.sticky != CUDA_SUCCESS) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (gpu.capturing == NULL) {
        host(arguments);
        return CUDA_SUCCESS;
    }
    memcpy(call.arguments, arguments, size);
    if (gpu.capturing->count == CAPTURED_MAX) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    gpu.capturing->launches[gpu.capturing->count++] = call;
    return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
    *stream = (CUstream)&gpu;
    return flags == CU_STREAM_DEFAULT ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuStreamSynchronize(CUstream stream) {
    return stream != NULL ? gpu.sticky : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode) {
    (void)mode;
    gpu.capturing = calloc(1, sizeof *gpu.capturing);
    return stream != NULL && gpu.capturing != NULL ? gpu.sticky : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph) {
    *graph = gpu.capturing;
    gpu.capturing = NULL;
    return stream != NULL ? gpu.sticky : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags) {
    CUgraph copy = flags == 0 ? malloc(sizeof *copy) : NULL;
    if (copy == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *copy = *graph;
    *exec = (CUgraphExec)copy;
    return CUDA_SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
    const struct CUgraph_st *graph = (const struct CUgraph_st *)exec;
    gpu.graph_launches++;
    for (int i = 0; i < graph->count; i++) {
        if (graph->launches[i].host != NULL) {
            graph->launches[i].host(graph->launches[i].arguments);
        } else {
            run_toy(&graph->launches[i]);
        }
        gpu.now_us += LAUNCH_US * (graph->launches[i].early ? 0.5 : 1.0) +
                      0.001 * (double)(gpu.graph_launches * 7 % 13);
    }
    return stream != NULL ? gpu.sticky : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuGraphExecDestroy(CUgraphExec exec) {
    free(exec);
    return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph graph) {
    free(graph);
    return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent *event, unsigned flags) {
    *event = calloc(1, sizeof **event);
    return *event != NULL && flags == CU_EVENT_DEFAULT ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuEventDestroy(CUevent event) {
    free(event);
    return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
    event->at_us = gpu.now_us;
    return stream != NULL ? gpu.sticky : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent from, CUevent to) {
    *milliseconds = (float)((to->at_us - from->at_us) * 1e-3);
    return gpu.sticky;
}
