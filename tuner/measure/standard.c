/* The full result of the first right candidate, kept on the GPU: what later ones of the same
 * problem and chunk are compared with, element by element. The reference is too slow for every
 * part; where two candidates differ, it decides on the part that is concerned. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tuner/measure/bench.h"

/* A standard must leave room for candidates of larger chunks. */
enum { FREE_SHARE = 16 };

static char *standard_key(const kkt_bench *bench, const kkt_measure_request *request) {
    const char *chunk = request->kernel->chunk_param;
    kkt_text key = {0};
    kkt_text_printf(&key, "%s chunk=%" PRId64, bench->inputs_key,
                    chunk ? kkt_params_get(&request->variant->params, request->config, chunk) : 0);
    return key.data;
}

/* The standard of a key; else, with `key` NULL, one to be overwritten. */
static kkt_standard *find(kkt_bench *bench, const char *key) {
    for (int i = 0; i < KKT_BENCH_STANDARDS; i++) {
        kkt_standard *at = &bench->standards[i];
        if (key == NULL ? at->key == NULL : at->key != NULL && strcmp(at->key, key) == 0) {
            return at;
        }
    }
    return key == NULL ? &bench->standards[bench->oldest_standard++ % KKT_BENCH_STANDARDS] : NULL;
}

/* Uploads the outputs, which the host has, into `at`; takes `key`. Without room for them there is
 * no standard, and later candidates are compared with none. */
static CUresult keep(kkt_bench *bench, const kkt_host_tensors *tensors, char *key, double tolerance,
                     kkt_standard *at) {
    kkt_gpu *gpu = &bench->gpu;
    size_t need = 0, free_bytes = 0, total = 0;
    for (int i = 0; i < tensors->count; i++) {
        if (tensors->t[i].tensor.role == KKT_TENSOR_OUTPUT) {
            need += kkt_slab_need((size_t)kkt_tensor_bytes(&tensors->t[i].tensor));
        }
    }
    if (at->key != key) {
        free(at->key);
        at->key = NULL;
    }
    CUresult status = gpu->driver.memory_info(&free_bytes, &total);
    if (status != CUDA_SUCCESS || need > at->slab.bytes + free_bytes / FREE_SHARE ||
        kkt_slab_reserve(gpu, &at->slab, need) != CUDA_SUCCESS) {
        free(key);
        at->key = NULL;
        return status;
    }
    at->key = key;
    at->tolerance = tolerance;
    for (int i = 0; i < tensors->count && status == CUDA_SUCCESS; i++) {
        const kkt_host_tensor *from = &tensors->t[i];
        const size_t bytes = (size_t)kkt_tensor_bytes(&from->tensor);
        if (from->tensor.role == KKT_TENSOR_OUTPUT && bytes > 0) {
            at->data[i] = kkt_slab_take(&at->slab, bytes);
            status = gpu->driver.copy_to_device(at->data[i], from->data, bytes);
        }
    }
    return status;
}

/* Whether a region has one of the elements from `first` up to `end`. */
static bool touches(const kkt_region *region, int64_t first, int64_t end) {
    for (int64_t row = 0; row < region->rows; row++) {
        const int64_t begin = kkt_region_row(region, row);
        if (begin < end && first < begin + region->columns) {
            return true;
        }
    }
    return false;
}

static kkt_status score_part(const kkt_measure_request *request, kkt_host_tensors *tensors,
                             int64_t part, const kkt_region *regions, int count, kkt_score *score,
                             kkt_error *err) {
    const kkt_kernel *kernel = request->kernel;
    const int64_t size = kkt_regions_size(regions, count);
    double *values = calloc((size_t)size + 1, sizeof *values);
    if (values == NULL) {
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "out of memory for the reference");
    }
    kkt_status status = kernel->reference(request->problem, request->config, tensors, part, values,
                                          (size_t)size, err);
    if (status == KKT_OK) {
        status = kkt_gate_score_part(kernel, request->problem, tensors, regions, count, values,
                                     score, err);
    }
    free(values);
    return status;
}

/* The parts that hold elements `first` up to `end` of tensor `index`, against the reference. */
static kkt_status judge_parts(const kkt_measure_request *request, kkt_host_tensors *tensors,
                              int index, const kkt_compare_result *found, double tolerance,
                              kkt_measure_result *result, bool *passed, kkt_error *err) {
    const kkt_kernel *kernel = request->kernel;
    const int64_t parts = kernel->part_count(request->problem, request->config, tensors);
    kkt_status status = KKT_OK;
    for (int64_t part = 0; part < parts && status == KKT_OK && *passed; part++) {
        kkt_region regions[KKT_REGIONS_MAX];
        bool concerned = false;
        const int count =
            kernel->part_regions(request->problem, request->config, tensors, part, regions);
        for (int r = 0; r < count; r++) {
            concerned = concerned || (regions[r].tensor == index &&
                                      touches(&regions[r], found->first, found->end));
        }
        if (concerned) {
            kkt_score score = {0};
            char where[96];
            snprintf(where, sizeof where, "full problem, part %" PRId64 " of %" PRId64, part,
                     parts);
            status = score_part(request, tensors, part, regions, count, &score, err);
            *passed = status == KKT_OK && kkt_check_judge(&score, tolerance, where, result);
        }
    }
    return status;
}

kkt_status kkt_check_standard(kkt_bench *bench, const kkt_measure_request *request,
                              const kkt_bindings *set, kkt_host_tensors *tensors, double tolerance,
                              kkt_measure_result *result, bool *passed, kkt_error *err) {
    char *key = standard_key(bench, request);
    kkt_standard *standard = find(bench, key);
    bool differs = false;
    kkt_status status = KKT_OK;
    for (int i = 0; i < set->count && standard != NULL && *passed && status == KKT_OK; i++) {
        const kkt_tensor *tensor = &set->t[i].tensor;
        kkt_compare_result found;
        if (tensor->role != KKT_TENSOR_OUTPUT || set->t[i].bytes == 0) {
            continue;
        }
        CUresult compared =
            kkt_gpu_compare(&bench->gpu, set->t[i].data, standard->data[i], tensor, &found);
        if (kkt_bench_failed(bench, result, "comparison of the outputs", compared)) {
            *passed = false;
        } else if (!(found.difference <= (tolerance + standard->tolerance) * found.largest)) {
            differs = true;
            status = judge_parts(request, tensors, i, &found, tolerance, result, passed, err);
        }
    }
    /* Where it differs and is right, the one before was not, or is as far off the other way. */
    if (status == KKT_OK && *passed && (standard == NULL || differs)) {
        CUresult kept =
            keep(bench, tensors, key, tolerance, standard != NULL ? standard : find(bench, NULL));
        key = NULL;
        *passed = !kkt_bench_failed(bench, result, "copy of the outputs", kept);
    }
    free(key);
    return status;
}
