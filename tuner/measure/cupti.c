#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "tuner/measure/cupti_internal.h"

#define OLDEST_VERSION 130000 /* CUPTI_API_VERSION of CUDA 13.0 */

/* Below a toolkit's root or a folder that wheels were put into. */
static const char *const FOLDERS[] = {"lib64", "lib", "extras/CUPTI/lib64", "nvidia/cu13/lib",
                                      "nvidia/cuda_cupti/lib"};
static const char *const LIBRARIES[] = {"libcupti.so.13", "libcupti.so"};
/* CUPTI opens these itself, by name, which fails in a private folder: one that is already loaded
 * is taken. */
static const char *const HELPERS[] = {"libnvperf_host.so", "libnvperf_target.so"};

/* The real CUPTI opens its helpers with RTLD_DEEPBIND, which ends a process with AddressSanitizer:
 * such a build takes only a library without them, as tests have. */
#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED true
#endif
#endif
#ifndef SANITIZED
#define SANITIZED false
#endif

typedef struct symbol {
    const char *name;
    size_t offset;
} symbol;

static const symbol SYMBOLS[] = {
    {"cuptiGetVersion", offsetof(kkt_cupti, version)},
    {"cuptiGetResultString", offsetof(kkt_cupti, result_string)},
    {"cuptiProfilerHostInitialize", offsetof(kkt_cupti, host_open)},
    {"cuptiProfilerHostDeinitialize", offsetof(kkt_cupti, host_close)},
    {"cuptiProfilerHostConfigAddMetrics", offsetof(kkt_cupti, host_add)},
    {"cuptiProfilerHostGetConfigImageSize", offsetof(kkt_cupti, host_image_size)},
    {"cuptiProfilerHostGetConfigImage", offsetof(kkt_cupti, host_image)},
    {"cuptiProfilerHostGetNumOfPasses", offsetof(kkt_cupti, host_passes)},
    {"cuptiProfilerHostEvaluateToGpuValues", offsetof(kkt_cupti, host_evaluate)},
    {"cuptiProfilerInitialize", offsetof(kkt_cupti, initialize)},
    {"cuptiDeviceGetChipName", offsetof(kkt_cupti, chip_name)},
    {"cuptiRangeProfilerEnable", offsetof(kkt_cupti, enable)},
    {"cuptiRangeProfilerDisable", offsetof(kkt_cupti, disable)},
    {"cuptiRangeProfilerGetCounterDataSize", offsetof(kkt_cupti, data_size)},
    {"cuptiRangeProfilerCounterDataImageInitialize", offsetof(kkt_cupti, data_init)},
    {"cuptiRangeProfilerGetCounterDataInfo", offsetof(kkt_cupti, data_info)},
    {"cuptiRangeProfilerCounterDataGetRangeInfo", offsetof(kkt_cupti, range_name)},
    {"cuptiRangeProfilerSetConfig", offsetof(kkt_cupti, set_config)},
    {"cuptiRangeProfilerStart", offsetof(kkt_cupti, start)},
    {"cuptiRangeProfilerStop", offsetof(kkt_cupti, stop)},
    {"cuptiRangeProfilerPushRange", offsetof(kkt_cupti, push)},
    {"cuptiRangeProfilerPopRange", offsetof(kkt_cupti, pop)},
    {"cuptiRangeProfilerDecodeData", offsetof(kkt_cupti, decode)},
};

/* ---- loading ---- */

/* The pointers are copied as bytes: ISO C has no cast from an object to a function pointer. */
static const char *missing_symbol(kkt_cupti *cupti) {
    for (size_t i = 0; i < sizeof SYMBOLS / sizeof SYMBOLS[0]; i++) {
        void *found = dlsym(cupti->library, SYMBOLS[i].name);
        if (found == NULL) {
            return SYMBOLS[i].name;
        }
        memcpy((char *)cupti + SYMBOLS[i].offset, &found, sizeof found);
    }
    return NULL;
}

/* Opens a library and notes in `looked` what came of it. Never unloaded: what its C++ runtime
 * allocates once would be lost each time. */
static bool try_library(kkt_cupti *cupti, const char *path, kkt_text *looked) {
    uint32_t version = 0;
    cupti->library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (cupti->library == NULL) {
        kkt_text_printf(looked, "; %s does not load", path);
        return false;
    }
    const char *missing = missing_symbol(cupti);
    if (missing != NULL) {
        kkt_text_printf(looked, "; %s has no %s", path, missing);
    } else if (cupti->version(&version) != CUPTI_SUCCESS || version < OLDEST_VERSION) {
        kkt_text_printf(looked, "; %s is version %u", path, version);
    } else {
        return true;
    }
    dlclose(cupti->library);
    cupti->library = NULL;
    return false;
}

/* False: they cannot be loaded in this build. */
static bool preload_helpers(const char *folder, kkt_text *looked) {
    bool good = true;
    for (size_t i = 0; i < sizeof HELPERS / sizeof HELPERS[0] && good; i++) {
        char *path = kkt_path_join(folder, HELPERS[i]);
        if (kkt_file_exists(path) && SANITIZED) {
            kkt_text_printf(looked, "; %s does not load beside AddressSanitizer", path);
            good = false;
        } else if (kkt_file_exists(path)) {
            dlopen(path, RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);
        }
        free(path);
    }
    return good;
}

static bool try_folder(kkt_cupti *cupti, const char *folder, kkt_text *looked) {
    bool found = false;
    for (size_t i = 0; i < sizeof LIBRARIES / sizeof LIBRARIES[0] && !found; i++) {
        char *path = kkt_path_join(folder, LIBRARIES[i]);
        if (kkt_file_exists(path) && preload_helpers(folder, looked)) {
            found = try_library(cupti, path, looked);
        }
        free(path);
    }
    return found;
}

static bool try_root(kkt_cupti *cupti, const char *root, const char *what, kkt_text *looked) {
    bool found = false;
    if (root == NULL || root[0] == '\0') {
        return false;
    }
    kkt_text_printf(looked, "%s%s%s", looked->length > 0 ? "; " : "", what, root);
    for (size_t i = 0; i < sizeof FOLDERS / sizeof FOLDERS[0] && !found; i++) {
        char *folder = kkt_path_join(root, FOLDERS[i]);
        found = try_folder(cupti, folder, looked);
        free(folder);
    }
    return found || try_folder(cupti, root, looked);
}

kkt_status kkt_cupti_open(kkt_cupti **out, kkt_error *err) {
    kkt_cupti *cupti = kkt_memory_alloc(sizeof *cupti);
    kkt_text looked = {0};
    *out = NULL;
    bool found = try_root(cupti, getenv("KKTTUNE_CUDA"), "KKTTUNE_CUDA=", &looked) ||
                 try_root(cupti, getenv("CUDA_HOME"), "CUDA_HOME=", &looked) ||
                 try_root(cupti, getenv("CUDA_PATH"), "CUDA_PATH=", &looked) ||
                 try_root(cupti, "/usr/local/cuda", "", &looked) ||
                 (!SANITIZED && try_library(cupti, LIBRARIES[0], &looked));
    kkt_status status = KKT_OK;
    if (found) {
        *out = cupti;
    } else {
        free(cupti);
        status = kkt_fail(err, KKT_ERR_ENVIRONMENT, 0,
                          "no CUPTI of CUDA 13.0 or later: set KKTTUNE_CUDA to the folder of a "
                          "toolkit or of the wheels (looked in: %s)",
                          kkt_text_get(&looked));
    }
    kkt_text_free(&looked);
    return status;
}

void kkt_cupti_close(kkt_cupti *cupti) {
    if (cupti != NULL) {
        dlclose(cupti->library);
        free(cupti);
    }
}

/* ---- the host side ---- */

static CUpti_Profiler_Host_Object *host_open(const kkt_cupti *cupti, const char *chip) {
    CUpti_Profiler_Host_Initialize_Params params = {
        .structSize = CUpti_Profiler_Host_Initialize_Params_STRUCT_SIZE};
    params.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
    params.pChipName = chip;
    return cupti->host_open(&params) == CUPTI_SUCCESS ? params.pHostObject : NULL;
}

static void host_close(const kkt_cupti *cupti, CUpti_Profiler_Host_Object *host) {
    CUpti_Profiler_Host_Deinitialize_Params params = {
        .structSize = CUpti_Profiler_Host_Deinitialize_Params_STRUCT_SIZE};
    params.pHostObject = host;
    if (host != NULL) {
        cupti->host_close(&params);
    }
}

/* All in one call: added one by one, the same metrics take several times the passes. */
static CUptiResult host_add(const kkt_cupti *cupti, CUpti_Profiler_Host_Object *host,
                            const char **metrics, size_t count) {
    CUpti_Profiler_Host_ConfigAddMetrics_Params params = {
        .structSize = CUpti_Profiler_Host_ConfigAddMetrics_Params_STRUCT_SIZE};
    params.pHostObject = host;
    params.ppMetricNames = metrics;
    params.numMetrics = count;
    return cupti->host_add(&params);
}

static bool accepted(const kkt_cupti *cupti, const char *chip, const char **metrics, size_t count) {
    CUpti_Profiler_Host_Object *host = host_open(cupti, chip);
    bool good = host != NULL && host_add(cupti, host, metrics, count) == CUPTI_SUCCESS;
    host_close(cupti, host);
    return good;
}

/* Fills ids and metrics with what the chip has; all at once, or each alone where one is refused. */
static void choose_metrics(const kkt_cupti *cupti, const char *chip, kkt_cupti_config *config) {
    for (int i = 0; i < KKT_COUNTER_COUNT; i++) {
        const char *metric = kkt_counter_metric((kkt_counter_id)i, chip);
        if (metric != NULL) {
            config->ids[config->count] = (kkt_counter_id)i;
            config->metrics[config->count++] = metric;
        }
    }
    if (accepted(cupti, chip, config->metrics, config->count)) {
        return;
    }
    size_t asked = config->count;
    config->count = 0;
    for (size_t i = 0; i < asked; i++) {
        kkt_counter_id id = config->ids[i];
        if (accepted(cupti, chip, &config->metrics[i], 1)) {
            config->metrics[config->count] = config->metrics[i];
            config->ids[config->count++] = id;
        } else {
            config->refused[config->refused_count++] = id;
        }
    }
}

static CUptiResult make_image(const kkt_cupti *cupti, kkt_cupti_config *config) {
    CUpti_Profiler_Host_GetConfigImageSize_Params size = {
        .structSize = CUpti_Profiler_Host_GetConfigImageSize_Params_STRUCT_SIZE};
    size.pHostObject = config->host;
    CUptiResult result = cupti->host_image_size(&size);
    if (result != CUPTI_SUCCESS) {
        return result;
    }
    config->image_size = size.configImageSize;
    config->image = kkt_memory_alloc(config->image_size);
    CUpti_Profiler_Host_GetConfigImage_Params image = {
        .structSize = CUpti_Profiler_Host_GetConfigImage_Params_STRUCT_SIZE};
    image.pHostObject = config->host;
    image.configImageSize = config->image_size;
    image.pConfigImage = config->image;
    result = cupti->host_image(&image);
    CUpti_Profiler_Host_GetNumOfPasses_Params passes = {
        .structSize = CUpti_Profiler_Host_GetNumOfPasses_Params_STRUCT_SIZE};
    passes.configImageSize = config->image_size;
    passes.pConfigImage = config->image;
    if (result == CUPTI_SUCCESS) {
        result = cupti->host_passes(&passes);
    }
    config->passes = passes.numOfPasses;
    return result;
}

kkt_status kkt_cupti_config_open(const kkt_cupti *cupti, const char *chip, kkt_cupti_config *out,
                                 kkt_error *err) {
    *out = (kkt_cupti_config){0};
    out->host = host_open(cupti, chip);
    if (out->host == NULL) {
        return kkt_fail(err, KKT_ERR_MISSING, 0,
                        "this CUPTI does not know the chip %s; install a newer CUDA", chip);
    }
    choose_metrics(cupti, chip, out);
    CUptiResult result = CUPTI_ERROR_INVALID_PARAMETER;
    if (out->count > 0) {
        result = host_add(cupti, out->host, out->metrics, out->count);
    }
    if (result == CUPTI_SUCCESS) {
        result = make_image(cupti, out);
    }
    if (result == CUPTI_SUCCESS) {
        return KKT_OK;
    }
    kkt_cupti_config_close(cupti, out);
    return kkt_fail(err, KKT_ERR_MISSING, (int)result,
                    "CUPTI makes no configuration of the counters for the chip %s (error %d)", chip,
                    (int)result);
}

void kkt_cupti_config_close(const kkt_cupti *cupti, kkt_cupti_config *config) {
    host_close(cupti, config->host);
    free(config->image);
    *config = (kkt_cupti_config){0};
}

/* ---- errors ---- */

typedef struct remedy {
    CUptiResult result;
    const char *text;
} remedy;

static const remedy REMEDIES[] = {
    {CUPTI_ERROR_INSUFFICIENT_PRIVILEGES,
     "the driver denies counters to this user; run as root or with CAP_SYS_ADMIN (in a container: "
     "--cap-add SYS_ADMIN), or load the driver with NVreg_RestrictProfilingToAdminUsers=0"},
    {CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES,
     "the host of this virtual GPU denies counters; its administrator can allow profiling"},
    {CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED,
     "this virtual GPU has no counters; its administrator can allow profiling"},
    {CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED,
     "CUPTI counts nothing on this MIG instance; use a GPU without MIG"},
    {CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED,
     "CUPTI counts nothing under WSL here; allow GPU performance counters in NVIDIA's control "
     "panel, or use Linux itself"},
    {CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED,
     "CUPTI counts nothing in confidential-computing mode; use a GPU without it"},
    {CUPTI_ERROR_CMP_DEVICE_NOT_SUPPORTED, "this GPU has no counters for profilers"},
    {CUPTI_ERROR_SLI_DEVICE_NOT_SUPPORTED, "CUPTI counts nothing with SLI; turn it off"},
    {CUPTI_ERROR_HARDWARE_BUSY,
     "another profiler holds the counters; end it, or pause DCGM with 'dcgmi profiling --pause'"},
    {CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED,
     "another tool is attached to this process; run without it"},
    {CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED, "CUPTI has no counters for this GPU"},
    {CUPTI_ERROR_NOT_SUPPORTED, "CUPTI has no counters for this GPU"},
    {CUPTI_ERROR_INVALID_CHIP_NAME, "this CUPTI does not know the GPU; install a newer CUDA"},
    {CUPTI_ERROR_NOT_COMPATIBLE, "this CUPTI does not suit the driver; install matching versions"},
};

void kkt_cupti_explain(const kkt_cupti *cupti, int result, const char *what, char *out, size_t size,
                       bool *everywhere) {
    const char *name = NULL;
    if (cupti == NULL || cupti->result_string((CUptiResult)result, &name) != CUPTI_SUCCESS ||
        name == NULL) {
        name = "CUPTI error";
    }
    for (size_t i = 0; i < sizeof REMEDIES / sizeof REMEDIES[0]; i++) {
        if (REMEDIES[i].result == (CUptiResult)result) {
            snprintf(out, size, "%s (%s, %d, at %s)", REMEDIES[i].text, name, result, what);
            *everywhere = true;
            return;
        }
    }
    snprintf(out, size, "%s failed (%s, %d)", what, name, result);
    *everywhere = false;
}
