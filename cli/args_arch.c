#include <stdlib.h>

#include "base/text.h"
#include "cli/command.h"
#include "cli/data_folder.h"
#include "reports/recorded_device.h"

kkt_status kkt_default_device(const struct kkt_arch *arch, const struct kkt_device **device,
                              kkt_error *err) {
    char *folder = NULL;
    kkt_status status = kkt_reference_folder(&folder, err);
    if (status == KKT_OK)
        *device = kkt_recorded_device(arch, folder);
    free(folder);
    return status;
}

kkt_status kkt_args_arch(const kkt_args *args, const struct kkt_arch **arch,
                         const struct kkt_device **device, kkt_error *err) {
    const char *name = kkt_args_get(args, "--arch");
    if (!name) {
        kkt_text list = {0};
        size_t count = 0;
        const kkt_arch *archs = kkt_archs(&count);
        for (size_t i = 0; i < count; i++)
            kkt_text_printf(&list, "%s%s", i ? ", " : "", archs[i].name);
        kkt_status status = kkt_fail(
            err, KKT_ERR_INPUT, 0, "option --arch ARCH is needed; known: %s", kkt_text_get(&list));
        kkt_text_free(&list);
        return status;
    }
    kkt_status status = kkt_arch_parse(name, arch, err);
    if (status != KKT_OK)
        return status;
    const char *wanted = kkt_args_get(args, "--device");
    if (wanted)
        return kkt_device_parse(wanted, *arch, device, err);
    return kkt_default_device(*arch, device, err);
}
