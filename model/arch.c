#include "model/arch.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

/* "sm90", "sm_90", "sm90a", "90", "9.0" to 90; -1 where the text is none of these. Blackwell has
 * two-digit majors: "10.0" and "100" both give 100. */
static int parse_capability(const char *text) {
    if (strncasecmp(text, "sm", 2) == 0)
        text += text[2] == '_' ? 3 : 2;
    int value = 0, digits = 0, dots = 0, after_dot = 0;
    for (; *text; ++text) {
        if (isdigit((unsigned char)*text) && digits < 3) {
            value = value * 10 + (*text - '0');
            ++digits;
            after_dot += dots;
        } else if (*text == '.' && digits > 0 && dots == 0) {
            ++dots;
        } else {
            break;
        }
    }
    /* A feature letter may follow: sm_90a, sm_100f. */
    if ((*text == 'a' || *text == 'f') && text[1] == '\0' && dots == 0)
        ++text;
    if (*text || digits < 2 || (dots && after_dot != 1))
        return -1;
    return value;
}

const kkt_arch *kkt_arch_find(const char *text) {
    int wanted = text ? parse_capability(text) : -1;
    size_t count;
    const kkt_arch *archs = kkt_archs(&count);
    for (size_t i = 0; wanted >= 0 && i < count; ++i)
        if (archs[i].major * 10 + archs[i].minor == wanted)
            return &archs[i];
    return NULL;
}

static const kkt_device *device_find(const char *text, const kkt_arch *arch) {
    size_t count;
    const kkt_device *devices = kkt_devices(&count);
    for (size_t i = 0; i < count; ++i) {
        if (arch && strcmp(devices[i].arch, arch->name) != 0)
            continue;
        if (strcasecmp(devices[i].name, text) == 0 || strcasecmp(devices[i].full_name, text) == 0)
            return &devices[i];
    }
    return NULL;
}

kkt_status kkt_arch_parse(const char *text, const kkt_arch **out, kkt_error *err) {
    *out = kkt_arch_find(text);
    if (*out)
        return KKT_OK;
    const kkt_device *device = device_find(text ? text : "", NULL);
    if (device)
        return kkt_fail(err, KKT_ERR_INPUT, 0, "'%.60s' is a device of %s: --arch %s --device %s",
                        text, device->arch, device->arch, device->name);
    size_t count;
    const kkt_arch *archs = kkt_archs(&count);
    kkt_text list = {0};
    for (size_t i = 0; i < count; ++i)
        kkt_text_printf(&list, "%s%s", i ? ", " : "", archs[i].name);
    kkt_status status = kkt_fail(err, KKT_ERR_INPUT, 0, "unknown architecture '%.60s'; known: %s",
                                 text ? text : "", kkt_text_get(&list));
    kkt_text_free(&list);
    return status;
}

kkt_status kkt_device_parse(const char *text, const kkt_arch *arch, const kkt_device **out,
                            kkt_error *err) {
    *out = device_find(text ? text : "", arch);
    if (*out)
        return KKT_OK;
    size_t count;
    const kkt_device *devices = kkt_devices(&count);
    kkt_text list = {0};
    for (size_t i = 0; i < count; ++i)
        if (!arch || strcmp(devices[i].arch, arch->name) == 0)
            kkt_text_printf(&list, "%s%s", list.length ? ", " : "", devices[i].name);
    const kkt_device *elsewhere = arch ? device_find(text ? text : "", NULL) : NULL;
    kkt_status status;
    if (elsewhere)
        status = kkt_fail(
            err, KKT_ERR_INPUT, 0, "device '%s' has architecture %s, not %s; devices of %s: %s",
            elsewhere->name, elsewhere->arch, arch->name, arch->name, kkt_text_get(&list));
    else
        status = kkt_fail(err, KKT_ERR_INPUT, 0, "unknown device '%.60s'; known%s%s: %s",
                          text ? text : "", arch ? " of " : "", arch ? arch->name : "",
                          kkt_text_get(&list));
    kkt_text_free(&list);
    return status;
}

const kkt_device *kkt_device_first(const kkt_arch *arch) {
    size_t count;
    const kkt_device *devices = kkt_devices(&count);
    for (size_t i = 0; i < count; ++i)
        if (strcmp(devices[i].arch, arch->name) == 0)
            return &devices[i];
    return NULL;
}

const kkt_device *kkt_device_by_full_name(const char *driver_name) {
    if (!driver_name)
        return NULL;
    size_t count, best_length = 0;
    const kkt_device *devices = kkt_devices(&count);
    const kkt_device *best = NULL;
    for (size_t i = 0; i < count; ++i) {
        size_t length = strlen(devices[i].full_name);
        /* A whole word must match: "NVIDIA H20" is no H200. */
        if (strncmp(devices[i].full_name, driver_name, length) == 0 &&
            !isalnum((unsigned char)driver_name[length]) && length > best_length) {
            best = &devices[i];
            best_length = length;
        }
    }
    return best;
}

const char *kkt_source_name(kkt_source source) {
    static const char *const names[] = {
        [KKT_SOURCE_UNCONFIRMED] = "unconfirmed",
        [KKT_SOURCE_DATASHEET] = "datasheet",
        [KKT_SOURCE_QUERIED] = "queried",
        [KKT_SOURCE_MEASURED] = "measured",
    };
    return names[source];
}

double kkt_device_peak_gbps(const kkt_device *device) {
    return device->peak_gbps.value > device->hbm_gbps.value ? device->peak_gbps.value
                                                            : device->hbm_gbps.value;
}

kkt_fact kkt_device_tensor_rate(const kkt_device *device, const kkt_arch *arch) {
    return device->bf16_flop_per_clock_sm.value > 0 ? device->bf16_flop_per_clock_sm
                                                    : arch->bf16_flop_per_clock_sm;
}

kkt_fact kkt_device_mma_sync_rate(const kkt_device *device, const kkt_arch *arch) {
    const kkt_fact whole = kkt_device_tensor_rate(device, arch);
    const kkt_fact reached = arch->mma_sync_flop_per_clock_sm;
    return reached.value > 0 && reached.value < whole.value ? reached : whole;
}
