/* An NVML that reports one steady GPU. KKT_STUB_THROTTLED=N: the first N looks at the clocks see a
 * power cap. KKT_STUB_PROCESSES=N: so many processes have the device open. */
#include <stdlib.h>
#include <string.h>

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, void **device);
int nvmlDeviceGetClockInfo(void *device, int type, unsigned *mhz);
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius);
int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts);
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons);
int nvmlSystemGetDriverVersion(char *version, unsigned size);
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, void *infos);

static int device_object;

static int number_from(const char *name) {
    const char *text = getenv(name);
    return text != NULL ? atoi(text) : 0;
}

int nvmlInit_v2(void) {
    return 0;
}

int nvmlShutdown(void) {
    return 0;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, void **device) {
    *device = &device_object;
    return strcmp(pci, "0000:1b:00.0") == 0 ? 0 : 6;
}

int nvmlDeviceGetClockInfo(void *device, int type, unsigned *mhz) {
    *mhz = type == 1 ? 1980 : 3201;
    return device == &device_object ? 0 : 2;
}

int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius) {
    *celsius = 41;
    return device == &device_object && sensor == 0 ? 0 : 2;
}

int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts) {
    *milliwatts = 612500;
    return device == &device_object ? 0 : 2;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons) {
    static int looks;
    *reasons = looks++ < number_from("KKT_STUB_THROTTLED") ? 0x5 : 0x1; /* 0x1: idle, harmless */
    return device == &device_object ? 0 : 2;
}

int nvmlSystemGetDriverVersion(char *version, unsigned size) {
    strncpy(version, "580.99", size);
    return 0;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, void *infos) {
    *count = (unsigned)number_from("KKT_STUB_PROCESSES");
    return device == &device_object && infos == NULL ? 7 : 2;
}
