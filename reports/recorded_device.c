#include "reports/recorded_device.h"

#include <stdlib.h>

#include "db/recording.h"

const kkt_device *kkt_recorded_device(const kkt_arch *arch, const char *folder) {
    const kkt_device *device = NULL;
    char *name = folder != NULL ? kkt_recording_device(folder, arch->name) : NULL;
    if (name == NULL || kkt_device_parse(name, arch, &device, NULL) != KKT_OK)
        device = kkt_device_first(arch);
    free(name);
    return device;
}
