/* An NVML that reports one steady GPU. KKT_STUB_THROTTLED=N: the first N looks at the clocks see a
 * power cap. KKT_STUB_PROCESSES=N: so many other processes have the device open,
 * with KKT_STUB_FAMILY=1 this one and its parent, too. The energy counter
 * runs at KKT_STUB_WATTS and moves on every 25 ms; without that there is none. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, void **device);
int nvmlDeviceGetClockInfo(void *device, int type, unsigned *mhz);
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius);
int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts);
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons);
int nvmlSystemGetDriverVersion(char *version, unsigned size);
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, void *infos);
int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *millijoules);

typedef struct process_info {
    unsigned pid;
    unsigned long long used_bytes;
    unsigned gpu_instance, compute_instance;
} process_info;

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

/* Numbers that no process has here, as a container sees those of its host. */
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, void *infos) {
    const unsigned family[] = {(unsigned)getpid(), (unsigned)getppid()};
    unsigned own = number_from("KKT_STUB_FAMILY") != 0 ? 2 : 0;
    unsigned number = own + (unsigned)number_from("KKT_STUB_PROCESSES");
    process_info *rows = infos;
    unsigned room = *count;
    *count = number;
    if (device != &device_object) {
        return 2;
    }
    if (room < number) {
        return 7;
    }
    for (unsigned i = 0; i < number; i++) {
        rows[i] = (process_info){.pid = i < own ? family[i] : 4000000000U + i};
    }
    return 0;
}

int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *millijoules) {
    struct timespec now;
    long long watts = number_from("KKT_STUB_WATTS");
    clock_gettime(CLOCK_MONOTONIC, &now);
    long long steps = ((long long)now.tv_sec * 1000 + now.tv_nsec / 1000000) / 25;
    *millijoules = (unsigned long long)(steps * 25 * watts); /* W x ms */
    return device == &device_object && watts > 0 ? 0 : 3;
}
