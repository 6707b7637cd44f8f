#include "reports/view_check.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "kernels/kernel.h"

/* The object that members are in: the entry itself where `name` is NULL; NULL where it is absent.
 */
static kkt_status find_part(const kkt_json *json, const char *name, const kkt_json **out,
                            kkt_error *err) {
    *out = name ? kkt_json_get(json, name) : json;
    if (*out && !kkt_json_is_object(*out))
        return kkt_fail(err, KKT_ERR_INPUT, 0, "%s is no object", name);
    return KKT_OK;
}

/* A member of such a part; NULL where it or the part is absent. */
static kkt_status find_member(const kkt_json *json, const char *part_name, const char *key,
                              const kkt_json **out, kkt_error *err) {
    const kkt_json *part = NULL;
    kkt_status status = find_part(json, part_name, &part, err);
    *out = status == KKT_OK && part ? kkt_json_get(part, key) : NULL;
    return status;
}

static kkt_status check_integers(const kkt_json *json, const kkt_arch *arch, kkt_error *err) {
    const struct {
        const char *part, *key;
        int64_t low, high;
    } rows[] = {
        {"launch", "threads", 1, 1024},
        {"launch", "smem_bytes", 0, arch->smem_per_sm_bytes},
        {"launch", "registers", 1, arch->registers_per_sm},
        {"time_us", "samples", 0, INT_MAX},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const kkt_json *member = NULL;
        int64_t value;
        kkt_status status = find_member(json, rows[i].part, rows[i].key, &member, err);
        if (status != KKT_OK)
            return status;
        if (!member)
            continue;
        if (!kkt_json_as_int(member, &value))
            return kkt_fail(err, KKT_ERR_INPUT, 0, "%s.%s is no integer", rows[i].part,
                            rows[i].key);
        if (value < rows[i].low || value > rows[i].high)
            return kkt_fail(err, KKT_ERR_INPUT, 0, "%s.%s is %lld, not %lld to %lld", rows[i].part,
                            rows[i].key, (long long)value, (long long)rows[i].low,
                            (long long)rows[i].high);
    }
    return KKT_OK;
}

static kkt_status check_reals(const kkt_json *json, kkt_error *err) {
    static const struct {
        const char *part, *key;
    } rows[] = {
        {"time_us", "median"},  {"time_us", "low"},       {"time_us", "high"},
        {"error", "rel_fro"},   {"error", "max_abs"},     {"error", "tolerance"},
        {NULL, "predicted_us"}, {NULL, "lower_bound_us"}, {NULL, "energy_mj"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const kkt_json *member = NULL;
        double value;
        kkt_status status = find_member(json, rows[i].part, rows[i].key, &member, err);
        if (status != KKT_OK)
            return status;
        if (!member)
            continue;
        const char *dot = rows[i].part ? "." : "";
        const char *name = rows[i].part ? rows[i].part : "";
        if (!kkt_json_as_real(member, &value))
            return kkt_fail(err, KKT_ERR_INPUT, 0, "%s%s%s is no number", name, dot, rows[i].key);
        if (!isfinite(value) || value < 0)
            return kkt_fail(err, KKT_ERR_INPUT, 0, "%s%s%s is %g, not a number from 0 up", name,
                            dot, rows[i].key, value);
    }
    return KKT_OK;
}

/* A time has all of its parts, and its median is inside its interval. */
static kkt_status check_time(const kkt_json *json, kkt_error *err) {
    const kkt_json *time = kkt_json_get(json, "time_us");
    static const char *const keys[] = {"median", "low", "high"};
    double values[3];
    if (!time)
        return KKT_OK;
    for (int i = 0; i < 3; i++)
        if (!kkt_json_real(time, keys[i], &values[i]))
            return kkt_fail(err, KKT_ERR_INPUT, 0, "time_us.%s is missing", keys[i]);
    if (values[1] > values[0] || values[0] > values[2])
        return kkt_fail(err, KKT_ERR_INPUT, 0,
                        "time_us.median is %g, outside of its interval from %g to %g", values[0],
                        values[1], values[2]);
    return KKT_OK;
}

/* Texts that are shown, and the one truth value. */
static kkt_status check_others(const kkt_json *json, kkt_error *err) {
    static const char *const parts[] = {"measured_on", "measured_on", "measured_on",
                                        NULL,          NULL,          NULL};
    static const char *const keys[] = {"gpu",     "driver",      "date",
                                       "limiter", "kernel_hash", "stale_reason"};
    bool noisy;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const kkt_json *part = NULL;
        kkt_status status = find_part(json, parts[i], &part, err);
        if (status != KKT_OK)
            return status;
        if (part && kkt_json_get(part, keys[i]) && !kkt_json_string(part, keys[i]))
            return kkt_fail(err, KKT_ERR_INPUT, 0, "%s%s%s is no text", parts[i] ? parts[i] : "",
                            parts[i] ? "." : "", keys[i]);
    }
    if (kkt_json_get(json, "noisy") && !kkt_json_bool(json, "noisy", &noisy))
        return kkt_fail(err, KKT_ERR_INPUT, 0, "noisy is neither true nor false");
    return KKT_OK;
}

/* A text is quoted from outside: at most so much of it. */
#define SHOWN "%.60s"

static kkt_status check_names(const kkt_entry *entry, kkt_error *err) {
    const kkt_kernel *kernel = NULL;
    kkt_error cause = {0};
    kkt_values values;
    if (kkt_kernel_parse(entry->kernel, &kernel, &cause) != KKT_OK)
        return kkt_fail(err, KKT_ERR_INPUT, 0, "kernel is '" SHOWN "', which is not known",
                        entry->kernel);
    const kkt_style *style = kkt_style_find(entry->style);
    const kkt_variant *variant = style ? kkt_kernel_variant(kernel, style->id) : NULL;
    if (!variant)
        return kkt_fail(err, KKT_ERR_INPUT, 0, "style is '" SHOWN "', which %s does not have",
                        entry->style, kernel->name);
    if (kkt_kernel_problem_parse(kernel, entry->problem, &values, &cause) != KKT_OK)
        return kkt_fail(err, KKT_ERR_INPUT, 0, "%s", cause.message);
    kkt_params_defaults(&variant->params, &values);
    if (kkt_params_parse(&variant->params, entry->config, &values, NULL, &cause) != KKT_OK)
        return kkt_fail(err, KKT_ERR_INPUT, 0, "config: %s", cause.message);
    return KKT_OK;
}

kkt_status kkt_view_check_entry(const kkt_json *json, const kkt_entry *entry, const kkt_arch *arch,
                                kkt_error *err) {
    kkt_status status = check_names(entry, err);
    if (status == KKT_OK)
        status = check_integers(json, arch, err);
    if (status == KKT_OK)
        status = check_reals(json, err);
    if (status == KKT_OK)
        status = check_time(json, err);
    return status == KKT_OK ? check_others(json, err) : status;
}
