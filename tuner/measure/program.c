#include "tuner/measure/program.h"

#include <stdio.h>
#include <string.h>

#include "tuner/measure/library/library.h"

#define PORTABLE_CLUSTER 8 /* a larger cluster must be asked for */

/* ---- tensors ---- */

void kkt_bind_list(const kkt_measure_request *request, const kkt_values *problem,
                   kkt_bindings *out) {
    kkt_tensor tensors[KKT_TENSORS_MAX];
    memset(out, 0, sizeof *out);
    out->count =
        kkt_variant_tensors(request->kernel, request->variant, problem, request->config, tensors);
    for (int i = 0; i < out->count; i++) {
        out->t[i].tensor = tensors[i];
        out->t[i].bytes = (size_t)kkt_tensor_bytes(&tensors[i]);
    }
}

static const kkt_host_tensor *find_host(const kkt_host_tensors *host, const char *name) {
    for (int i = 0; i < host->count; i++) {
        if (strcmp(host->t[i].tensor.name, name) == 0) {
            return &host->t[i];
        }
    }
    return NULL;
}

CUresult kkt_bind_inputs(kkt_gpu *gpu, kkt_slab *slab, const kkt_host_tensors *host,
                         kkt_bindings *bindings) {
    size_t need = 0;
    for (int i = 0; i < bindings->count; i++) {
        const kkt_host_tensor *values = find_host(host, bindings->t[i].tensor.name);
        if (bindings->t[i].tensor.role == KKT_TENSOR_INPUT && values != NULL && values->data) {
            need += kkt_slab_need(bindings->t[i].bytes);
        }
    }
    CUresult result = kkt_slab_reserve(gpu, slab, need > 0 ? need : 1);
    if (result == CUDA_SUCCESS) {
        result = gpu->driver.fill(slab->base, KKT_POISON, slab->bytes, gpu->stream);
    }
    if (result == CUDA_SUCCESS) {
        result = gpu->driver.stream_wait(gpu->stream);
    }
    for (int i = 0; i < bindings->count && result == CUDA_SUCCESS; i++) {
        kkt_device_tensor *tensor = &bindings->t[i];
        const kkt_host_tensor *values = find_host(host, tensor->tensor.name);
        if (tensor->tensor.role != KKT_TENSOR_INPUT || values == NULL || values->data == NULL) {
            continue;
        }
        tensor->data = kkt_slab_take(slab, tensor->bytes);
        if (tensor->bytes > 0) {
            result = gpu->driver.copy_to_device(tensor->data, values->data, tensor->bytes);
        }
    }
    return result;
}

size_t kkt_bind_outputs_need(const kkt_bindings *bindings) {
    size_t need = 0;
    for (int i = 0; i < bindings->count; i++) {
        need += bindings->t[i].tensor.role != KKT_TENSOR_INPUT ? kkt_slab_need(bindings->t[i].bytes)
                                                               : 0;
    }
    return need > 0 ? need : 1;
}

CUresult kkt_bind_outputs(kkt_gpu *gpu, kkt_slab *slab, kkt_bindings *bindings) {
    CUresult result = kkt_slab_reserve(gpu, slab, kkt_bind_outputs_need(bindings));
    if (result != CUDA_SUCCESS) {
        return result;
    }
    for (int i = 0; i < bindings->count; i++) {
        kkt_device_tensor *tensor = &bindings->t[i];
        if (tensor->tensor.role != KKT_TENSOR_INPUT) {
            tensor->data = kkt_slab_take(slab, tensor->bytes);
        }
    }
    return CUDA_SUCCESS;
}

CUresult kkt_poison(kkt_gpu *gpu, const kkt_slab *slab) {
    return slab->used > 0 ? gpu->driver.fill(slab->base, KKT_POISON, slab->used, gpu->stream)
                          : CUDA_SUCCESS;
}

static bool is_poison(const unsigned char *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] != KKT_POISON) {
            return false;
        }
    }
    return true;
}

CUresult kkt_check_guards(kkt_gpu *gpu, const kkt_bindings *bindings, int *damaged) {
    unsigned char zone[KKT_GUARD_BYTES];
    *damaged = -1;
    for (int i = 0; i < bindings->count; i++) {
        const kkt_device_tensor *tensor = &bindings->t[i];
        if (tensor->data == 0) {
            continue;
        }
        CUdeviceptr zones[2] = {tensor->data - KKT_GUARD_BYTES, tensor->data + tensor->bytes};
        for (int side = 0; side < 2; side++) {
            CUresult result = gpu->driver.copy_to_host(zone, zones[side], sizeof zone);
            if (result != CUDA_SUCCESS) {
                return result;
            }
            if (!is_poison(zone, sizeof zone)) {
                *damaged = i;
                return CUDA_SUCCESS;
            }
        }
    }
    return CUDA_SUCCESS;
}

/* ---- code ---- */

CUresult kkt_program_load(kkt_gpu *gpu, const void *cubin, kkt_program *out) {
    if (cubin == NULL) {
        return CUDA_SUCCESS;
    }
    if (out->module_count == KKT_MODULES_MAX) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUresult result = gpu->driver.module_load(&out->modules[out->module_count], cubin);
    out->module_count += result == CUDA_SUCCESS;
    return result;
}

void kkt_program_unload(kkt_gpu *gpu, kkt_program *program) {
    for (int i = 0; i < program->module_count; i++) {
        gpu->driver.module_unload(program->modules[i]);
    }
    memset(program, 0, sizeof *program);
}

static bool has_cluster(const kkt_launch *launch) {
    return launch->cluster[0] != 0;
}

static CUresult prepare_function(kkt_gpu *gpu, const kkt_launch *launch, CUfunction function,
                                 const char **step) {
    const kkt_driver *driver = &gpu->driver;
    CUresult result = CUDA_SUCCESS;
    /* Always, where there is any: without it static and dynamic together stay below 48 KiB. */
    if (launch->dynamic_smem_bytes > 0) {
        *step = "dynamic shared memory";
        result = driver->function_set(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                      (int)launch->dynamic_smem_bytes);
    }
    if (result == CUDA_SUCCESS && launch->carveout_percent >= 0) {
        *step = "shared-memory carve-out";
        result = driver->function_set(function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                                      launch->carveout_percent);
    }
    if (result == CUDA_SUCCESS && has_cluster(launch) &&
        launch->cluster[0] * launch->cluster[1] * launch->cluster[2] > PORTABLE_CLUSTER) {
        *step = "cluster size";
        result =
            driver->function_set(function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
    }
    return result;
}

/* The function of the plan's next step, in the module that was loaded last. */
static CUresult find_function(kkt_gpu *gpu, kkt_program *program, const kkt_launch *launch,
                              char *what, size_t size) {
    const char *step = "entry point";
    CUfunction function = NULL;
    CUresult result = CUDA_ERROR_NOT_FOUND;
    if (program->module_count > 0) {
        result = gpu->driver.module_function(&function, program->modules[program->module_count - 1],
                                             launch->entry);
    }
    if (result == CUDA_SUCCESS) {
        result = prepare_function(gpu, launch, function, &step);
    }
    if (result != CUDA_SUCCESS) {
        snprintf(what, size, "%s of %s", step, launch->entry);
    }
    program->functions[program->plan.launch_count] = function;
    program->libraries[program->plan.launch_count] = NULL;
    program->routines[program->plan.launch_count] = NULL;
    return result;
}

/* The routine of the plan's next step, which a library has. */
static CUresult find_routine(kkt_gpu *gpu, kkt_program *program, const kkt_launch *launch,
                             char *what, size_t size) {
    const int at = program->plan.launch_count;
    program->functions[at] = NULL;
    return kkt_library_routine(gpu, launch, &program->libraries[at], &program->routines[at], what,
                               size)
               ? CUDA_SUCCESS
               : CUDA_ERROR_NOT_FOUND;
}

CUresult kkt_program_append(kkt_gpu *gpu, kkt_program *program, const kkt_plan *plan, char *what,
                            size_t size) {
    for (int i = 0; i < plan->launch_count; i++) {
        const kkt_launch *launch = &plan->launches[i];
        if (program->plan.launch_count == KKT_LAUNCHES_MAX) {
            snprintf(what, size, "%s is launch %d, and a plan has %d at most", launch->entry,
                     KKT_LAUNCHES_MAX + 1, KKT_LAUNCHES_MAX);
            return CUDA_ERROR_INVALID_VALUE;
        }
        CUresult result = launch->library != NULL ? find_routine(gpu, program, launch, what, size)
                                                  : find_function(gpu, program, launch, what, size);
        if (result != CUDA_SUCCESS) {
            return result;
        }
        program->plan.launches[program->plan.launch_count++] = *launch;
    }
    return CUDA_SUCCESS;
}

CUresult kkt_program_prepare(kkt_gpu *gpu, kkt_program *program, const kkt_measure_request *request,
                             const kkt_values *problem, char *what, size_t size) {
    kkt_plan plan = {0};
    request->variant->plan(problem, request->config, request->arch, &plan);
    program->plan.launch_count = 0;
    return kkt_program_append(gpu, program, &plan, what, size);
}

/* ---- launch ---- */

/* The values that the driver is given pointers to. */
typedef union argument {
    CUtensorMap map;
    CUdeviceptr pointer;
    int32_t i32;
    int64_t i64;
    float f32;
} argument;

static CUtensorMapDataType map_type(kkt_dtype dtype) {
    switch (dtype) {
    case KKT_BF16:
        return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    case KKT_FP16:
        return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    case KKT_FP32:
        return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    case KKT_FP64:
        return CU_TENSOR_MAP_DATA_TYPE_FLOAT64;
    case KKT_I32:
        return CU_TENSOR_MAP_DATA_TYPE_INT32;
    case KKT_I64:
    case KKT_DTYPE_COUNT:
        break;
    }
    return CU_TENSOR_MAP_DATA_TYPE_INT64;
}

static CUtensorMapSwizzle map_swizzle(int bytes) {
    switch (bytes) {
    case 32:
        return CU_TENSOR_MAP_SWIZZLE_32B;
    case 64:
        return CU_TENSOR_MAP_SWIZZLE_64B;
    case 128:
        return CU_TENSOR_MAP_SWIZZLE_128B;
    default:
        return CU_TENSOR_MAP_SWIZZLE_NONE;
    }
}

static CUtensorMapL2promotion map_promotion(int bytes) {
    switch (bytes) {
    case 64:
        return CU_TENSOR_MAP_L2_PROMOTION_L2_64B;
    case 128:
        return CU_TENSOR_MAP_L2_PROMOTION_L2_128B;
    case 256:
        return CU_TENSOR_MAP_L2_PROMOTION_L2_256B;
    default:
        return CU_TENSOR_MAP_L2_PROMOTION_NONE;
    }
}

static CUresult encode_map(const kkt_gpu *gpu, const kkt_tensor_map *map,
                           const kkt_device_tensor *tensor, CUtensorMap *out) {
    cuuint64_t dims[5] = {0};
    cuuint64_t strides[5] = {0};
    cuuint32_t box[5] = {0};
    cuuint32_t ones[5] = {1, 1, 1, 1, 1};
    if (gpu->driver.tensor_map == NULL || map->rank < 1 || map->rank > 5) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    for (int i = 0; i < map->rank; i++) {
        dims[i] = (cuuint64_t)map->dims[i];
        box[i] = (cuuint32_t)map->box[i];
        if (i > 0) {
            strides[i - 1] = (cuuint64_t)map->strides_bytes[i];
        }
    }
    void *base = NULL;
    const CUdeviceptr first =
        tensor->data + (CUdeviceptr)map->first * kkt_dtype_bytes(tensor->tensor.dtype);
    memcpy(&base, &first, sizeof base); /* a device address in a host pointer's clothes */
    return gpu->driver.tensor_map(
        out, map_type(tensor->tensor.dtype), (cuuint32_t)map->rank, base, dims, strides, box, ones,
        CU_TENSOR_MAP_INTERLEAVE_NONE, map_swizzle(map->swizzle_bytes),
        map_promotion(map->promotion_bytes), CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

static CUresult fill_argument(const kkt_gpu *gpu, const kkt_arg *arg, const kkt_bindings *bindings,
                              argument *out) {
    switch (arg->kind) {
    case KKT_ARG_TENSOR:
        out->pointer = bindings->t[arg->tensor].data;
        return CUDA_SUCCESS;
    case KKT_ARG_I32:
        out->i32 = (int32_t)arg->integer;
        return CUDA_SUCCESS;
    case KKT_ARG_I64:
        out->i64 = arg->integer;
        return CUDA_SUCCESS;
    case KKT_ARG_F32:
        out->f32 = (float)arg->real;
        return CUDA_SUCCESS;
    case KKT_ARG_TENSOR_MAP:
        return encode_map(gpu, &arg->map, &bindings->t[arg->tensor], &out->map);
    }
    return CUDA_ERROR_INVALID_VALUE;
}

/* `early`: while the launch before it ends. */
static CUresult launch_one(kkt_gpu *gpu, const kkt_launch *launch, CUfunction function,
                           const kkt_bindings *bindings, bool early) {
    argument values[KKT_ARGS_MAX];
    void *pointers[KKT_ARGS_MAX];
    for (int i = 0; i < launch->arg_count; i++) {
        CUresult result = fill_argument(gpu, &launch->args[i], bindings, &values[i]);
        if (result != CUDA_SUCCESS) {
            return result;
        }
        pointers[i] = &values[i];
    }
    CUlaunchAttribute attributes[2];
    unsigned count = 0;
    if (has_cluster(launch)) {
        attributes[count++] = (CUlaunchAttribute){
            .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
            .value.clusterDim = {launch->cluster[0], launch->cluster[1], launch->cluster[2]},
        };
    }
    if (early) {
        attributes[count++] = (CUlaunchAttribute){
            .id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
            .value.programmaticStreamSerializationAllowed = 1,
        };
    }
    CUlaunchConfig config = {
        .gridDimX = launch->grid[0],
        .gridDimY = launch->grid[1],
        .gridDimZ = launch->grid[2],
        .blockDimX = launch->block[0],
        .blockDimY = launch->block[1],
        .blockDimZ = launch->block[2],
        .sharedMemBytes = (unsigned)launch->dynamic_smem_bytes,
        .hStream = gpu->stream,
        .attrs = attributes,
        .numAttrs = count,
    };
    return gpu->driver.launch(&config, function, pointers, NULL);
}

/* A library's step: tensors by their addresses, everything else as integers. */
static CUresult call_routine(kkt_gpu *gpu, const kkt_program *program, int step,
                             const kkt_bindings *bindings) {
    const kkt_launch *launch = &program->plan.launches[step];
    kkt_call_value values[KKT_ARGS_MAX];
    for (int i = 0; i < launch->arg_count; i++) {
        const kkt_arg *arg = &launch->args[i];
        if (arg->kind == KKT_ARG_TENSOR) {
            values[i].pointer = bindings->t[arg->tensor].data;
        } else {
            values[i].integer = arg->integer;
        }
    }
    return kkt_library_call(gpu, program->libraries[step], program->routines[step], values);
}

/* The first timed step; the number of steps where none is. */
static int first_timed(const kkt_program *program) {
    int first = 0;
    while (first < program->plan.launch_count && program->plan.launches[first].untimed) {
        first++;
    }
    return first;
}

bool kkt_program_prepares(const kkt_program *program) {
    return first_timed(program) > 0;
}

static bool is_among(const kkt_program *program, int step, kkt_program_steps steps) {
    const bool untimed = program->plan.launches[step].untimed;
    return steps == KKT_STEPS_ALL || (steps == KKT_STEPS_TIMED && !untimed) ||
           (steps == KKT_STEPS_BEFORE && step < first_timed(program));
}

CUresult kkt_program_launch(kkt_gpu *gpu, const kkt_program *program, const kkt_bindings *bindings,
                            kkt_program_steps steps) {
    for (int i = 0; i < program->plan.launch_count; i++) {
        const kkt_launch *launch = &program->plan.launches[i];
        bool early = program->overlapped && launch->waits && i > 0;
        if (!is_among(program, i, steps)) {
            continue;
        }
        CUresult result = program->routines[i] != NULL
                              ? call_routine(gpu, program, i, bindings)
                              : launch_one(gpu, launch, program->functions[i], bindings, early);
        if (result != CUDA_SUCCESS) {
            return result;
        }
    }
    return CUDA_SUCCESS;
}

CUresult kkt_program_graph(kkt_gpu *gpu, const kkt_program *program, const kkt_bindings *bindings,
                           kkt_program_steps steps, CUgraphExec *out) {
    const kkt_driver *driver = &gpu->driver;
    CUgraph graph = NULL;
    *out = NULL;
    CUresult result = driver->capture_begin(gpu->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    result = kkt_program_launch(gpu, program, bindings, steps);
    CUresult ended = driver->capture_end(gpu->stream, &graph);
    result = result != CUDA_SUCCESS ? result : ended;
    if (result == CUDA_SUCCESS) {
        result = driver->graph_instantiate(out, graph, 0);
    }
    if (graph != NULL) {
        driver->graph_destroy(graph);
    }
    return result;
}
