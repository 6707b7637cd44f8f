#include "tuner/measure/nvml.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Constants and prototypes of NVML's stable interface (NVML API reference, release 13). */
enum {
    NVML_OK = 0,
    NVML_INSUFFICIENT_SIZE = 7,
    NVML_CLOCK_SM = 1,
    NVML_CLOCK_MEMORY = 2,
    NVML_TEMPERATURE_GPU = 0
};

typedef void *nvml_device;

struct kkt_nvml {
    void *library;
    nvml_device device;
    int (*init)(void);
    int (*shutdown)(void);
    int (*by_pci)(const char *pci, nvml_device *device);
    int (*clock)(nvml_device device, int type, unsigned *mhz);
    int (*temperature)(nvml_device device, int sensor, unsigned *celsius);
    int (*power)(nvml_device device, unsigned *milliwatts);
    int (*throttle)(nvml_device device, unsigned long long *reasons);
    int (*driver)(char *version, unsigned size);
    int (*processes)(nvml_device device, unsigned *count, void *infos);
};

typedef struct symbol {
    const char *name;
    size_t offset;
} symbol;

static const symbol SYMBOLS[] = {
    {"nvmlInit_v2", offsetof(struct kkt_nvml, init)},
    {"nvmlShutdown", offsetof(struct kkt_nvml, shutdown)},
    {"nvmlDeviceGetHandleByPciBusId_v2", offsetof(struct kkt_nvml, by_pci)},
    {"nvmlDeviceGetClockInfo", offsetof(struct kkt_nvml, clock)},
    {"nvmlDeviceGetTemperature", offsetof(struct kkt_nvml, temperature)},
    {"nvmlDeviceGetPowerUsage", offsetof(struct kkt_nvml, power)},
    {"nvmlDeviceGetCurrentClocksThrottleReasons", offsetof(struct kkt_nvml, throttle)},
    {"nvmlSystemGetDriverVersion", offsetof(struct kkt_nvml, driver)},
    {"nvmlDeviceGetComputeRunningProcesses_v3", offsetof(struct kkt_nvml, processes)},
};

typedef struct throttle_reason {
    unsigned long long bit;
    const char *name;
} throttle_reason;

/* Idle, user-set clocks, sync boost and display clocks are left out: they are no disturbance. */
static const throttle_reason REASONS[] = {
    {0x04, "sw_power_cap"}, {0x08, "hw_slowdown"},    {0x20, "sw_thermal"},
    {0x40, "hw_thermal"},   {0x80, "hw_power_brake"},
};
#define REASON_COUNT (sizeof REASONS / sizeof REASONS[0])

static bool load(kkt_nvml *nvml) {
    nvml->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; nvml->library != NULL && i < sizeof SYMBOLS / sizeof SYMBOLS[0]; i++) {
        void *found = dlsym(nvml->library, SYMBOLS[i].name);
        if (found == NULL) {
            return false;
        }
        memcpy((char *)nvml + SYMBOLS[i].offset, &found, sizeof found);
    }
    return nvml->library != NULL;
}

kkt_nvml *kkt_nvml_open(const char *pci) {
    kkt_nvml *nvml = calloc(1, sizeof *nvml);
    if (nvml == NULL) {
        return NULL;
    }
    if (load(nvml) && nvml->init() == NVML_OK) {
        if (nvml->by_pci(pci, &nvml->device) == NVML_OK) {
            return nvml;
        }
        nvml->shutdown();
    }
    if (nvml->library != NULL) {
        dlclose(nvml->library);
    }
    free(nvml);
    return NULL;
}

void kkt_nvml_close(kkt_nvml *nvml) {
    if (nvml == NULL) {
        return;
    }
    nvml->shutdown();
    dlclose(nvml->library);
    free(nvml);
}

void kkt_nvml_state(const kkt_nvml *nvml, kkt_gpu_state *out) {
    *out = (kkt_gpu_state){NAN, NAN, NAN, NAN, 0};
    if (nvml == NULL) {
        return;
    }
    unsigned value = 0;
    unsigned long long reasons = 0;
    if (nvml->clock(nvml->device, NVML_CLOCK_SM, &value) == NVML_OK) {
        out->sm_clock_mhz = value;
    }
    if (nvml->clock(nvml->device, NVML_CLOCK_MEMORY, &value) == NVML_OK) {
        out->memory_clock_mhz = value;
    }
    if (nvml->temperature(nvml->device, NVML_TEMPERATURE_GPU, &value) == NVML_OK) {
        out->temperature_c = value;
    }
    if (nvml->power(nvml->device, &value) == NVML_OK) {
        out->power_w = value / 1000.0;
    }
    if (nvml->throttle(nvml->device, &reasons) == NVML_OK) {
        for (size_t i = 0; i < REASON_COUNT; i++) {
            out->throttle |= reasons & REASONS[i].bit;
        }
    }
}

bool kkt_nvml_driver(const kkt_nvml *nvml, char *out, size_t size) {
    return nvml != NULL && nvml->driver(out, (unsigned)size) == NVML_OK;
}

int kkt_nvml_processes(const kkt_nvml *nvml) {
    unsigned count = 0;
    if (nvml == NULL) {
        return -1;
    }
    int result = nvml->processes(nvml->device, &count, NULL);
    return result == NVML_OK || result == NVML_INSUFFICIENT_SIZE ? (int)count : -1;
}

void kkt_throttle_text(unsigned long long reasons, char *out, size_t size) {
    size_t at = 0;
    out[0] = '\0';
    for (size_t i = 0; i < REASON_COUNT && at < size; i++) {
        if ((reasons & REASONS[i].bit) != 0) {
            int more = snprintf(out + at, size - at, "%s%s", at > 0 ? "," : "", REASONS[i].name);
            at += (size_t)more;
        }
    }
}
