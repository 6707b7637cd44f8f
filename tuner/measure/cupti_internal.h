/* What cupti.c and cupti_range.c share: the functions of the library. */
#ifndef KKT_TUNER_MEASURE_CUPTI_INTERNAL_H
#define KKT_TUNER_MEASURE_CUPTI_INTERNAL_H

#include <cuda.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>

#include "tuner/measure/cupti.h"

struct kkt_cupti {
    void *library;
    CUptiResult (*version)(uint32_t *version);
    CUptiResult (*result_string)(CUptiResult result, const char **text);
    /* Host side: no GPU needed. */
    CUptiResult (*host_open)(CUpti_Profiler_Host_Initialize_Params *params);
    CUptiResult (*host_close)(CUpti_Profiler_Host_Deinitialize_Params *params);
    CUptiResult (*host_add)(CUpti_Profiler_Host_ConfigAddMetrics_Params *params);
    CUptiResult (*host_image_size)(CUpti_Profiler_Host_GetConfigImageSize_Params *params);
    CUptiResult (*host_image)(CUpti_Profiler_Host_GetConfigImage_Params *params);
    CUptiResult (*host_passes)(CUpti_Profiler_Host_GetNumOfPasses_Params *params);
    CUptiResult (*host_evaluate)(CUpti_Profiler_Host_EvaluateToGpuValues_Params *params);
    /* Target side. */
    CUptiResult (*initialize)(CUpti_Profiler_Initialize_Params *params);
    CUptiResult (*chip_name)(CUpti_Device_GetChipName_Params *params);
    CUptiResult (*enable)(CUpti_RangeProfiler_Enable_Params *params);
    CUptiResult (*disable)(CUpti_RangeProfiler_Disable_Params *params);
    CUptiResult (*data_size)(CUpti_RangeProfiler_GetCounterDataSize_Params *params);
    CUptiResult (*data_init)(CUpti_RangeProfiler_CounterDataImage_Initialize_Params *params);
    CUptiResult (*data_info)(CUpti_RangeProfiler_GetCounterDataInfo_Params *params);
    CUptiResult (*range_name)(CUpti_RangeProfiler_CounterData_GetRangeInfo_Params *params);
    CUptiResult (*set_config)(CUpti_RangeProfiler_SetConfig_Params *params);
    CUptiResult (*start)(CUpti_RangeProfiler_Start_Params *params);
    CUptiResult (*stop)(CUpti_RangeProfiler_Stop_Params *params);
    CUptiResult (*push)(CUpti_RangeProfiler_PushRange_Params *params);
    CUptiResult (*pop)(CUpti_RangeProfiler_PopRange_Params *params);
    CUptiResult (*decode)(CUpti_RangeProfiler_DecodeData_Params *params);
};

#endif
