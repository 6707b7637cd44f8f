#include "tuner/measure/nvml.h"

#include <dlfcn.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Constants and prototypes of NVML's stable interface (NVML API reference, release 13). */
enum {
    NVML_OK = 0,
    NVML_INSUFFICIENT_SIZE = 7,
    NVML_CLOCK_SM = 1,
    NVML_CLOCK_MEMORY = 2,
    NVML_TEMPERATURE_GPU = 0
};
enum { PROCESSES_MOST = 64 };

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
    int (*energy)(nvml_device device, unsigned long long *millijoules); /* NULL: none */
};

typedef struct symbol {
    const char *name;
    size_t offset;
    bool optional;
} symbol;

/* nvmlProcessInfo_t of nvmlDeviceGetComputeRunningProcesses_v3. */
typedef struct process_info {
    unsigned pid;
    unsigned long long used_bytes;
    unsigned gpu_instance, compute_instance;
} process_info;

static const symbol SYMBOLS[] = {
    {"nvmlInit_v2", offsetof(struct kkt_nvml, init), false},
    {"nvmlShutdown", offsetof(struct kkt_nvml, shutdown), false},
    {"nvmlDeviceGetHandleByPciBusId_v2", offsetof(struct kkt_nvml, by_pci), false},
    {"nvmlDeviceGetClockInfo", offsetof(struct kkt_nvml, clock), false},
    {"nvmlDeviceGetTemperature", offsetof(struct kkt_nvml, temperature), false},
    {"nvmlDeviceGetPowerUsage", offsetof(struct kkt_nvml, power), false},
    {"nvmlDeviceGetCurrentClocksThrottleReasons", offsetof(struct kkt_nvml, throttle), false},
    {"nvmlSystemGetDriverVersion", offsetof(struct kkt_nvml, driver), false},
    {"nvmlDeviceGetComputeRunningProcesses_v3", offsetof(struct kkt_nvml, processes), false},
    {"nvmlDeviceGetTotalEnergyConsumption", offsetof(struct kkt_nvml, energy), true},
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
        if (found == NULL && !SYMBOLS[i].optional) {
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

/* The parent of a process, from the fourth field of /proc/PID/stat; its name, in brackets, may hold
 * anything. -1: there is no such process here. */
static int parent_of(unsigned pid) {
    char path[48];
    char text[512];
    int parent = -1;
    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return -1;
    }
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = '\0';
    const char *after = strrchr(text, ')');
    if (after == NULL || strlen(after) < 4) {
        return -1;
    }
    char *end = NULL;
    long value = strtol(after + 3, &end, 10); /* ") S 123 ..." */
    if (end != after + 3 && value > 0 && value <= INT_MAX) {
        parent = (int)value;
    }
    return parent;
}

int kkt_nvml_others(const kkt_nvml *nvml) {
    process_info infos[PROCESSES_MOST];
    unsigned count = PROCESSES_MOST;
    if (nvml == NULL) {
        return -1;
    }
    memset(infos, 0, sizeof infos);
    int result = nvml->processes(nvml->device, &count, infos);
    if (result == NVML_INSUFFICIENT_SIZE) {
        return PROCESSES_MOST; /* at least */
    }
    if (result != NVML_OK || count > PROCESSES_MOST) {
        return -1;
    }
    int others = 0;
    for (unsigned i = 0; i < count; i++) {
        bool own = infos[i].pid == (unsigned)getpid() || infos[i].pid == (unsigned)getppid() ||
                   parent_of(infos[i].pid) == (int)getppid();
        others += !own;
    }
    return others;
}

double kkt_nvml_energy_mj(const kkt_nvml *nvml) {
    unsigned long long value = 0;
    if (nvml == NULL || nvml->energy == NULL || nvml->energy(nvml->device, &value) != NVML_OK) {
        return (double)NAN;
    }
    return (double)value;
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
