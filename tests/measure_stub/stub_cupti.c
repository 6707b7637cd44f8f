/* A CUPTI that counts what the stub driver runs: two passes, user ranges, and an L2 that keeps some
 * of a plan's last writes until something else is read through it. It refuses calls in any order
 * but the one that the real library documents. */
#include <cuda.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_result.h>
#include <cupti_target.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PASSES 2
#define RANGES_MAX 8
#define PLAN_READ 5000.0 /* bytes of a launch */
#define PLAN_WRITTEN 1000.0
#define PLAN_DIRTY 300.0 /* of a plan, left in L2 until a drain */
#define DRAIN_READ 1048576.0
#define DRAIN_WRITTEN 7.0

typedef struct range {
    char name[32];
    unsigned toys, flushes;
} range;

/* The profiler of the process. */
static struct {
    bool initialized, enabled, configured, in_pass, in_range, decoded;
    int passes;
    unsigned toys, flushes, set_up; /* launches before the range */
    size_t count, most;
    range ranges[RANGES_MAX];
    size_t metric_count;
} profiler;

CUptiResult cuptiGetVersion(uint32_t *version);

static void launches(unsigned *toys, unsigned *flushes) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    void (*ask)(unsigned *toys, unsigned *flushes) = NULL;
    void *found = driver != NULL ? dlsym(driver, "kkt_stub_launches") : NULL;
    if (found == NULL) {
        abort();
    }
    memcpy(&ask, &found, sizeof ask);
    ask(toys, flushes);
    dlclose(driver);
}

static bool told(const char *word) {
    const char *how = getenv("KKT_STUB_CUPTI");
    return how != NULL && strcmp(how, word) == 0;
}

CUptiResult cuptiGetVersion(uint32_t *version) {
    *version = told("old") ? 26 : 130000;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetResultString(CUptiResult result, const char **text) {
    *text = result == CUPTI_SUCCESS ? "success" : "words of the stub";
    return CUPTI_SUCCESS;
}

/* ---- host ---- */

CUptiResult cuptiProfilerHostInitialize(CUpti_Profiler_Host_Initialize_Params *params) {
    if (strcmp(params->pChipName, "GH100") != 0) {
        return CUPTI_ERROR_INVALID_CHIP_NAME;
    }
    params->pHostObject = calloc(1, 16);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerHostDeinitialize(CUpti_Profiler_Host_Deinitialize_Params *params) {
    free(params->pHostObject);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerHostConfigAddMetrics(CUpti_Profiler_Host_ConfigAddMetrics_Params *params) {
    profiler.metric_count = params->numMetrics;
    return CUPTI_SUCCESS;
}

CUptiResult
cuptiProfilerHostGetConfigImageSize(CUpti_Profiler_Host_GetConfigImageSize_Params *params) {
    params->configImageSize = 64;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerHostGetConfigImage(CUpti_Profiler_Host_GetConfigImage_Params *params) {
    memset(params->pConfigImage, 42, params->configImageSize);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerHostGetNumOfPasses(CUpti_Profiler_Host_GetNumOfPasses_Params *params) {
    params->numOfPasses = params->pConfigImage[0] == 42 ? PASSES : 0;
    return CUPTI_SUCCESS;
}

/* In the reverse order, so that a reader has to go by the names. */
static const range *decoded_range(size_t index) {
    return &profiler.ranges[profiler.count - 1 - index];
}

static double value_of(const range *r, const char *metric) {
    double plans = (double)r->toys / 2.0;
    double drains = (double)r->flushes;
    if (strcmp(metric, "dram__bytes_read.sum") == 0) {
        return (double)r->toys * PLAN_READ + drains * DRAIN_READ;
    }
    if (strcmp(metric, "dram__bytes_write.sum") == 0) {
        return (double)r->toys * PLAN_WRITTEN - (drains > 0 ? 0.0 : plans * PLAN_DIRTY) +
               drains * DRAIN_WRITTEN;
    }
    return strcmp(metric, "smsp__inst_executed.sum") == 0 ? (double)r->toys * 11.0 : 1.0;
}

CUptiResult
cuptiProfilerHostEvaluateToGpuValues(CUpti_Profiler_Host_EvaluateToGpuValues_Params *params) {
    if (!profiler.decoded || params->rangeIndex >= profiler.count ||
        params->numMetrics != profiler.metric_count) {
        return CUPTI_ERROR_INVALID_PARAMETER;
    }
    for (size_t i = 0; i < params->numMetrics; i++) {
        params->pMetricValues[i] =
            value_of(decoded_range(params->rangeIndex), params->ppMetricNames[i]);
    }
    return CUPTI_SUCCESS;
}

/* ---- target ---- */

CUptiResult cuptiProfilerInitialize(CUpti_Profiler_Initialize_Params *params) {
    (void)params;
    profiler.initialized = true;
    return told("wsl") ? CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED : CUPTI_SUCCESS;
}

CUptiResult cuptiDeviceGetChipName(CUpti_Device_GetChipName_Params *params) {
    params->pChipName = told("newer") ? "GX100" : "GH100";
    return profiler.initialized ? CUPTI_SUCCESS : CUPTI_ERROR_NOT_INITIALIZED;
}

CUptiResult cuptiRangeProfilerEnable(CUpti_RangeProfiler_Enable_Params *params) {
    if (told("denied")) {
        return CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
    }
    if (profiler.enabled || params->ctx == NULL || !profiler.initialized) {
        return CUPTI_ERROR_INVALID_OPERATION;
    }
    profiler.enabled = true;
    params->pRangeProfilerObject = (CUpti_RangeProfiler_Object *)&profiler;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerDisable(CUpti_RangeProfiler_Disable_Params *params) {
    bool good = params->pRangeProfilerObject == (CUpti_RangeProfiler_Object *)&profiler;
    bool initialized = profiler.initialized;
    size_t metric_count = profiler.metric_count;
    memset(&profiler, 0, sizeof profiler);
    profiler.initialized = initialized;
    profiler.metric_count = metric_count;
    return good ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

CUptiResult
cuptiRangeProfilerGetCounterDataSize(CUpti_RangeProfiler_GetCounterDataSize_Params *params) {
    if (params->maxNumRangeTreeNodes < params->maxNumOfRanges ||
        params->numMetrics != profiler.metric_count) {
        return CUPTI_ERROR_INVALID_PARAMETER;
    }
    params->counterDataSize = 128;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerCounterDataImageInitialize(
    CUpti_RangeProfiler_CounterDataImage_Initialize_Params *params) {
    memset(params->pCounterData, 7, params->counterDataSize);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerSetConfig(CUpti_RangeProfiler_SetConfig_Params *params) {
    if (params->range != CUPTI_UserRange || params->replayMode != CUPTI_UserReplay ||
        params->pConfig[0] != 42 || params->pCounterDataImage[0] != 7 ||
        params->numNestingLevels != 1) {
        return CUPTI_ERROR_INVALID_PARAMETER;
    }
    profiler.configured = true;
    profiler.most = params->maxRangesPerPass;
    return told("busy") ? CUPTI_ERROR_HARDWARE_BUSY : CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerStart(CUpti_RangeProfiler_Start_Params *params) {
    (void)params;
    if (told("abort")) {
        abort();
    }
    if (!profiler.configured || profiler.in_pass) {
        return CUPTI_ERROR_INVALID_OPERATION;
    }
    profiler.in_pass = true;
    profiler.count = 0;
    launches(&profiler.toys, &profiler.set_up);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerStop(CUpti_RangeProfiler_Stop_Params *params) {
    if (!profiler.in_pass || profiler.in_range) {
        return CUPTI_ERROR_INVALID_OPERATION;
    }
    profiler.in_pass = false;
    profiler.passes++;
    params->isAllPassSubmitted = profiler.passes >= PASSES && !told("endless");
    return CUPTI_SUCCESS;
}

/* Something must have emptied the L2 since the range before. */
CUptiResult cuptiRangeProfilerPushRange(CUpti_RangeProfiler_PushRange_Params *params) {
    launches(&profiler.toys, &profiler.flushes);
    if (!profiler.in_pass || profiler.in_range || profiler.count == profiler.most ||
        profiler.count == RANGES_MAX || profiler.flushes == profiler.set_up) {
        return CUPTI_ERROR_INVALID_OPERATION;
    }
    profiler.in_range = true;
    snprintf(profiler.ranges[profiler.count].name, sizeof profiler.ranges[0].name, "%s",
             params->pRangeName);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerPopRange(CUpti_RangeProfiler_PopRange_Params *params) {
    (void)params;
    unsigned toys = 0;
    unsigned flushes = 0;
    launches(&toys, &flushes);
    if (!profiler.in_range || told("pop")) {
        return CUPTI_ERROR_UNKNOWN;
    }
    range *r = &profiler.ranges[profiler.count++];
    r->toys = toys - profiler.toys;
    r->flushes = flushes - profiler.flushes;
    profiler.set_up = flushes;
    profiler.in_range = false;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerDecodeData(CUpti_RangeProfiler_DecodeData_Params *params) {
    params->numOfRangeDropped = told("dropped");
    profiler.decoded = !profiler.in_pass && profiler.passes == PASSES;
    return profiler.decoded ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_OPERATION;
}

CUptiResult
cuptiRangeProfilerGetCounterDataInfo(CUpti_RangeProfiler_GetCounterDataInfo_Params *params) {
    params->numTotalRanges = profiler.count;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerCounterDataGetRangeInfo(
    CUpti_RangeProfiler_CounterData_GetRangeInfo_Params *params) {
    if (params->rangeIndex >= profiler.count) {
        return CUPTI_ERROR_INVALID_PARAMETER;
    }
    params->rangeName = decoded_range(params->rangeIndex)->name;
    return CUPTI_SUCCESS;
}
