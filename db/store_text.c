#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/rows.h"

/* Most times are whole thousandths of a microsecond: those are written without searching for the
 * number of digits. */
static bool format_fixed(float value, char buffer[32]) {
    if (!(value >= 0.0F && value < 1.0e6F))
        return false;
    int64_t thousandths = llround((double)value * 1000.0);
    if ((float)((double)thousandths / 1000.0) != value)
        return false;
    int64_t rest = thousandths % 1000;
    if (rest == 0)
        snprintf(buffer, 32, "%lld", (long long)(thousandths / 1000));
    else
        snprintf(buffer, 32, "%lld.%03lld", (long long)(thousandths / 1000), (long long)rest);
    return true;
}

static void format_sample(float value, char buffer[32]) {
    if (format_fixed(value, buffer))
        return;
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(buffer, 32, "%.*g", digits, (double)value);
        if (strtof(buffer, NULL) == value)
            return;
    }
}

void kkt_samples_format(const float *samples, size_t count, kkt_text *out) {
    char buffer[32];
    kkt_text_add_bytes(out, "[", 1);
    for (size_t i = 0; i < count; i++) {
        format_sample(samples[i], buffer);
        if (i > 0)
            kkt_text_add_bytes(out, ",", 1);
        kkt_text_add(out, buffer);
    }
    kkt_text_add_bytes(out, "]", 1);
}

static const char *skip_space(const char *text) {
    return text + strspn(text, " \t\r\n");
}

bool kkt_samples_parse(const char *json, size_t count, float *out) {
    const char *at = skip_space(json);
    if (*at++ != '[')
        return false;
    for (size_t i = 0; i < count; i++) {
        at = skip_space(at);
        if (*at != '-' && (*at < '0' || *at > '9')) /* strtof also takes "inf" and "nan" */
            return false;
        char *end = NULL;
        out[i] = strtof(at, &end);
        if (end == at || !isfinite(out[i]))
            return false;
        at = skip_space(end);
        if (i + 1 < count && *at++ != ',')
            return false;
    }
    at = skip_space(at);
    return *at == ']' && *skip_space(at + 1) == '\0';
}

bool kkt_canonical_valid(const char *text) {
    const char *last = NULL;
    size_t last_length = 0;
    for (const char *at = text; *at;) {
        size_t key = strcspn(at, "=,");
        size_t value = at[key] == '=' ? strcspn(at + key + 1, ",=") : 0;
        if (key == 0 || value == 0)
            return false;
        size_t shared = key < last_length ? key : last_length;
        int order = last ? memcmp(last, at, shared) : -1;
        if (order > 0 || (order == 0 && last && last_length >= key))
            return false;
        last = at;
        last_length = key;
        at += key + 1 + value;
        if (*at == '=')
            return false;
        if (*at == ',' && *++at == '\0')
            return false;
    }
    return true;
}
