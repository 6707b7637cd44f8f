#include "tuner/measure/cupti_range.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tuner/measure/cupti_internal.h"

int kkt_cupti_start(const kkt_cupti *cupti, int device, char *chip, size_t size,
                    const char **step) {
    CUpti_Profiler_Initialize_Params init = {.structSize =
                                                 CUpti_Profiler_Initialize_Params_STRUCT_SIZE};
    *step = "cuptiProfilerInitialize";
    CUptiResult result = cupti->initialize(&init);
    if (result != CUPTI_SUCCESS) {
        return (int)result;
    }
    CUpti_Device_GetChipName_Params name = {.structSize =
                                                CUpti_Device_GetChipName_Params_STRUCT_SIZE};
    name.deviceIndex = (size_t)device;
    *step = "cuptiDeviceGetChipName";
    result = cupti->chip_name(&name);
    if (result == CUPTI_SUCCESS) {
        snprintf(chip, size, "%s", name.pChipName);
    }
    return (int)result;
}

/* ---- life of a profiler ---- */

static CUptiResult make_data(kkt_cupti_profiler *p, size_t ranges) {
    const char *metrics[KKT_COUNTER_COUNT];
    memcpy(metrics, p->config->metrics, sizeof metrics);
    CUpti_RangeProfiler_GetCounterDataSize_Params size = {
        .structSize = CUpti_RangeProfiler_GetCounterDataSize_Params_STRUCT_SIZE};
    size.pRangeProfilerObject = p->object;
    size.pMetricNames = metrics;
    size.numMetrics = p->config->count;
    size.maxNumOfRanges = ranges;
    size.maxNumRangeTreeNodes = 2 * (uint32_t)ranges; /* room for nodes above the ranges */
    p->step = "cuptiRangeProfilerGetCounterDataSize";
    CUptiResult result = p->cupti->data_size(&size);
    if (result != CUPTI_SUCCESS) {
        return result;
    }
    p->data_size = size.counterDataSize;
    p->data = kkt_memory_alloc(p->data_size);
    CUpti_RangeProfiler_CounterDataImage_Initialize_Params init = {
        .structSize = CUpti_RangeProfiler_CounterDataImage_Initialize_Params_STRUCT_SIZE};
    init.pRangeProfilerObject = p->object;
    init.counterDataSize = p->data_size;
    init.pCounterData = p->data;
    p->step = "cuptiRangeProfilerCounterDataImageInitialize";
    return p->cupti->data_init(&init);
}

static CUptiResult set_config(kkt_cupti_profiler *p, size_t ranges) {
    CUpti_RangeProfiler_SetConfig_Params set = {
        .structSize = CUpti_RangeProfiler_SetConfig_Params_STRUCT_SIZE};
    set.pRangeProfilerObject = p->object;
    set.configSize = p->config->image_size;
    set.pConfig = p->config->image;
    set.counterDataImageSize = p->data_size;
    set.pCounterDataImage = p->data;
    set.range = CUPTI_UserRange;
    set.replayMode = CUPTI_UserReplay;
    set.maxRangesPerPass = ranges;
    set.numNestingLevels = 1;
    set.minNestingLevel = 1;
    set.passIndex = 0;
    set.targetNestingLevel = 1;
    p->step = "cuptiRangeProfilerSetConfig";
    return p->cupti->set_config(&set);
}

int kkt_cupti_profiler_open(const kkt_cupti *cupti, const kkt_cupti_config *config,
                            CUcontext context, size_t ranges, kkt_cupti_profiler *out) {
    *out = (kkt_cupti_profiler){.cupti = cupti, .config = config};
    CUpti_RangeProfiler_Enable_Params enable = {.structSize =
                                                    CUpti_RangeProfiler_Enable_Params_STRUCT_SIZE};
    enable.ctx = context;
    out->step = "cuptiRangeProfilerEnable";
    CUptiResult result = cupti->enable(&enable);
    if (result != CUPTI_SUCCESS) {
        return (int)result;
    }
    out->object = enable.pRangeProfilerObject;
    result = make_data(out, ranges);
    if (result == CUPTI_SUCCESS) {
        result = set_config(out, ranges);
    }
    return (int)result;
}

void kkt_cupti_profiler_close(kkt_cupti_profiler *profiler) {
    if (profiler->object != NULL) {
        CUpti_RangeProfiler_Disable_Params disable = {
            .structSize = CUpti_RangeProfiler_Disable_Params_STRUCT_SIZE};
        disable.pRangeProfilerObject = profiler->object;
        profiler->cupti->disable(&disable);
    }
    free(profiler->data);
    *profiler = (kkt_cupti_profiler){0};
}

/* ---- passes and ranges ---- */

int kkt_cupti_pass_begin(kkt_cupti_profiler *profiler) {
    CUpti_RangeProfiler_Start_Params start = {.structSize =
                                                  CUpti_RangeProfiler_Start_Params_STRUCT_SIZE};
    start.pRangeProfilerObject = profiler->object;
    profiler->step = "cuptiRangeProfilerStart";
    return (int)profiler->cupti->start(&start);
}

int kkt_cupti_pass_end(kkt_cupti_profiler *profiler, bool *all) {
    CUpti_RangeProfiler_Stop_Params stop = {.structSize =
                                                CUpti_RangeProfiler_Stop_Params_STRUCT_SIZE};
    stop.pRangeProfilerObject = profiler->object;
    profiler->step = "cuptiRangeProfilerStop";
    CUptiResult result = profiler->cupti->stop(&stop);
    *all = stop.isAllPassSubmitted != 0;
    return (int)result;
}

int kkt_cupti_push(kkt_cupti_profiler *profiler, const char *range) {
    CUpti_RangeProfiler_PushRange_Params push = {
        .structSize = CUpti_RangeProfiler_PushRange_Params_STRUCT_SIZE};
    push.pRangeProfilerObject = profiler->object;
    push.pRangeName = range;
    profiler->step = "cuptiRangeProfilerPushRange";
    return (int)profiler->cupti->push(&push);
}

int kkt_cupti_pop(kkt_cupti_profiler *profiler) {
    CUpti_RangeProfiler_PopRange_Params pop = {.structSize =
                                                   CUpti_RangeProfiler_PopRange_Params_STRUCT_SIZE};
    pop.pRangeProfilerObject = profiler->object;
    profiler->step = "cuptiRangeProfilerPopRange";
    return (int)profiler->cupti->pop(&pop);
}

/* ---- results ---- */

int kkt_cupti_decode(kkt_cupti_profiler *profiler) {
    CUpti_RangeProfiler_DecodeData_Params decode = {
        .structSize = CUpti_RangeProfiler_DecodeData_Params_STRUCT_SIZE};
    decode.pRangeProfilerObject = profiler->object;
    profiler->step = "cuptiRangeProfilerDecodeData";
    CUptiResult result = profiler->cupti->decode(&decode);
    profiler->dropped = decode.numOfRangeDropped;
    return (int)result;
}

/* Whether the range at `index` is called `name`, which may follow those around it. */
static bool is_called(const kkt_cupti_profiler *p, size_t index, const char *name) {
    CUpti_RangeProfiler_CounterData_GetRangeInfo_Params info = {
        .structSize = CUpti_RangeProfiler_CounterData_GetRangeInfo_Params_STRUCT_SIZE};
    info.pCounterDataImage = p->data;
    info.counterDataImageSize = p->data_size;
    info.rangeIndex = index;
    info.rangeDelimiter = "/";
    if (p->cupti->range_name(&info) != CUPTI_SUCCESS || info.rangeName == NULL) {
        return false;
    }
    const char *last = strrchr(info.rangeName, '/');
    return strcmp(last != NULL ? last + 1 : info.rangeName, name) == 0;
}

/* The place of a range: by its name, else the order in which they were run. */
static size_t place_of(const kkt_cupti_profiler *p, const char *range, size_t index, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (is_called(p, i, range)) {
            return i;
        }
    }
    return index;
}

int kkt_cupti_values(kkt_cupti_profiler *profiler, const char *range, size_t index,
                     double *values) {
    const kkt_cupti_config *config = profiler->config;
    double counted[KKT_COUNTER_COUNT] = {0};
    const char *metrics[KKT_COUNTER_COUNT];
    memcpy(metrics, config->metrics, sizeof metrics);
    for (int i = 0; i < KKT_COUNTER_COUNT; i++) {
        values[i] = (double)NAN;
    }
    CUpti_RangeProfiler_GetCounterDataInfo_Params info = {
        .structSize = CUpti_RangeProfiler_GetCounterDataInfo_Params_STRUCT_SIZE};
    info.pCounterDataImage = profiler->data;
    info.counterDataImageSize = profiler->data_size;
    profiler->step = "cuptiRangeProfilerGetCounterDataInfo";
    CUptiResult result = profiler->cupti->data_info(&info);
    if (result != CUPTI_SUCCESS) {
        return (int)result;
    }
    size_t place = place_of(profiler, range, index, info.numTotalRanges);
    if (place >= info.numTotalRanges) {
        profiler->step = "looking for a range's results";
        return (int)CUPTI_ERROR_INVALID_OPERATION;
    }
    CUpti_Profiler_Host_EvaluateToGpuValues_Params evaluate = {
        .structSize = CUpti_Profiler_Host_EvaluateToGpuValues_Params_STRUCT_SIZE};
    evaluate.pHostObject = config->host;
    evaluate.pCounterDataImage = profiler->data;
    evaluate.counterDataImageSize = profiler->data_size;
    evaluate.rangeIndex = place;
    evaluate.ppMetricNames = metrics;
    evaluate.numMetrics = config->count;
    evaluate.pMetricValues = counted;
    profiler->step = "cuptiProfilerHostEvaluateToGpuValues";
    result = profiler->cupti->host_evaluate(&evaluate);
    for (size_t i = 0; i < config->count && result == CUPTI_SUCCESS; i++) {
        values[config->ids[i]] = counted[i];
    }
    return (int)result;
}
