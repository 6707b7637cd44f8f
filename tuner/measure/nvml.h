/* The GPU's state as NVML tells it; opened with dlopen, its few prototypes stated here, since not
 * every toolkit has nvml.h. Without the library everything is unknown, and nothing fails. */
#ifndef KKT_TUNER_MEASURE_NVML_H
#define KKT_TUNER_MEASURE_NVML_H

#include <stdbool.h>
#include <stddef.h>

typedef struct kkt_nvml kkt_nvml;

typedef struct kkt_gpu_state {
    double sm_clock_mhz, memory_clock_mhz, temperature_c, power_w; /* NaN: unknown */
    unsigned long long throttle; /* NVML's reason bits that make a GPU slower than its clock */
} kkt_gpu_state;

/* `pci` as CUDA gives it ("0000:1b:00.0"). NULL where NVML or the device is not there. */
kkt_nvml *kkt_nvml_open(const char *pci);
void kkt_nvml_close(kkt_nvml *nvml); /* NULL is a no-op */
/* All unknown where `nvml` is NULL. */
void kkt_nvml_state(const kkt_nvml *nvml, kkt_gpu_state *out);
/* "580.159"; false where unknown. */
bool kkt_nvml_driver(const kkt_nvml *nvml, char *out, size_t size);
/* Processes with a context on the device other than this one and those that its parent started
 * (what a tuner runs beside it); -1: unknown. Seen from a container that has process numbers of its
 * own, this process may count as another. */
int kkt_nvml_others(const kkt_nvml *nvml);
/* The device's energy since the driver was loaded, in millijoules; NaN: it is not counted (before
 * Volta, and some virtual GPUs). */
double kkt_nvml_energy_mj(const kkt_nvml *nvml);
/* "sw_power_cap,hw_thermal"; "" for none. */
void kkt_throttle_text(unsigned long long reasons, char *out, size_t size);

#endif
