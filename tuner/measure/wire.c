#include "tuner/measure/wire.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tuner/measure/backends.h"

#define SAMPLES_LIMIT 1000000
#define FLUSH_LIMIT (INT64_C(64) << 30)

static void pack_policy(kkt_packer *out, const kkt_policy *policy) {
    kkt_pack_i64(out, policy->warmup_launches);
    kkt_pack_i64(out, policy->min_samples);
    kkt_pack_i64(out, policy->max_samples);
    kkt_pack_real(out, policy->interval_share);
    kkt_pack_real(out, policy->sample_seconds);
    kkt_pack_real(out, policy->candidate_seconds);
    kkt_pack_i64(out, policy->flush_bytes);
    kkt_pack_i64(out, (int64_t)policy->seed);
    kkt_pack_i64(out, policy->large_parts);
    kkt_pack_real(out, policy->energy_seconds);
    kkt_pack_i64(out, policy->energy_each);
}

static int64_t unpack_within(kkt_unpacker *in, int64_t low, int64_t high) {
    int64_t value = kkt_unpack_i64(in);
    if (value < low || value > high) {
        in->failed = true;
        return low;
    }
    return value;
}

static double unpack_positive(kkt_unpacker *in) {
    double value = kkt_unpack_real(in);
    if (!(value >= 0.0) || isinf(value)) {
        in->failed = true;
        return 0.0;
    }
    return value;
}

static void unpack_policy(kkt_unpacker *in, kkt_policy *out) {
    out->warmup_launches = (int)unpack_within(in, 0, SAMPLES_LIMIT);
    out->min_samples = (int)unpack_within(in, 0, SAMPLES_LIMIT);
    out->max_samples = (int)unpack_within(in, 1, SAMPLES_LIMIT);
    out->interval_share = unpack_positive(in);
    out->sample_seconds = unpack_positive(in);
    out->candidate_seconds = unpack_positive(in);
    out->flush_bytes = unpack_within(in, 0, FLUSH_LIMIT);
    out->seed = (uint64_t)kkt_unpack_i64(in);
    out->large_parts = (int)unpack_within(in, 0, INT32_MAX);
    out->energy_seconds = unpack_positive(in);
    out->energy_each = unpack_within(in, 0, 1) != 0;
}

static void pack_values(kkt_packer *out, const kkt_param_table *table, const kkt_values *values) {
    kkt_text text = {0};
    kkt_params_format(table, values, &text);
    kkt_pack_string(out, kkt_text_get(&text));
    kkt_text_free(&text);
}

void kkt_wire_pack_request(kkt_packer *out, const kkt_measure_request *request) {
    kkt_pack_string(out, request->kernel->name);
    kkt_pack_string(out, kkt_style_get(request->variant->style)->name);
    kkt_pack_string(out, request->arch->name);
    kkt_pack_string(out, request->device != NULL ? request->device->name : "");
    pack_values(out, &request->kernel->problem, request->problem);
    pack_values(out, &request->variant->params, request->config);
    pack_policy(out, request->policy);
    kkt_pack_real(out, request->prediction != NULL ? request->prediction->predicted_us : 0.0);
    kkt_pack_real(out, request->prediction != NULL ? request->prediction->lower_bound_us : 0.0);
    kkt_pack_blob(out, request->cubin, request->cubin_size);
}

static kkt_status unpack_names(kkt_unpacker *in, kkt_kernel_lookup lookup,
                               kkt_measure_request *request, kkt_error *err) {
    const char *name = kkt_unpack_string(in);
    const char *style_name = kkt_unpack_string(in);
    const char *arch_name = kkt_unpack_string(in);
    const char *device_name = kkt_unpack_string(in);
    kkt_status status = lookup(name, &request->kernel, err);
    if (status == KKT_OK) {
        status = kkt_arch_parse(arch_name, &request->arch, err);
    }
    if (status == KKT_OK && device_name[0] != '\0') {
        status = kkt_device_parse(device_name, request->arch, &request->device, err);
    }
    if (status != KKT_OK) {
        return status;
    }
    const kkt_style *style = kkt_style_find(style_name);
    request->variant = style != NULL ? kkt_kernel_variant(request->kernel, style->id) : NULL;
    if (request->variant == NULL) {
        return kkt_fail(err, KKT_ERR_INPUT, 0, "a worker request names style '%s', which %s lacks",
                        style_name, request->kernel->name);
    }
    return KKT_OK;
}

kkt_status kkt_wire_unpack_request(kkt_unpacker *in, kkt_kernel_lookup lookup,
                                   kkt_wire_request *out, kkt_error *err) {
    memset(out, 0, sizeof *out);
    kkt_measure_request *request = &out->request;
    kkt_status status = unpack_names(in, lookup, request, err);
    if (status != KKT_OK) {
        return status;
    }
    kkt_params_defaults(&request->variant->params, &out->config);
    status = kkt_kernel_problem_parse(request->kernel, kkt_unpack_string(in), &out->problem, err);
    if (status == KKT_OK) {
        status = kkt_params_parse(&request->variant->params, kkt_unpack_string(in), &out->config,
                                  NULL, err);
    }
    if (status != KKT_OK) {
        return status;
    }
    unpack_policy(in, &out->policy);
    out->prediction.predicted_us = kkt_unpack_real(in);
    out->prediction.lower_bound_us = kkt_unpack_real(in);
    request->cubin = kkt_unpack_blob(in, &request->cubin_size);
    if (request->cubin_size == 0) {
        request->cubin = NULL;
    }
    request->problem = &out->problem;
    request->config = &out->config;
    request->policy = &out->policy;
    request->prediction = &out->prediction;
    if (in->failed) {
        return kkt_fail(err, KKT_ERR_INPUT, 0, "a worker request is damaged");
    }
    char reason[200];
    if (!kkt_kernel_problem_valid(request->kernel, request->problem, reason, sizeof reason)) {
        return kkt_fail(err, KKT_ERR_INPUT, 0, "a worker request has an invalid problem: %s",
                        reason);
    }
    return KKT_OK;
}

bool kkt_wire_lacks_code(const kkt_measure_request *request) {
    const kkt_variant *variant = request->variant;
    return request->cubin_size == 0 && (variant->source != NULL || variant->library == NULL);
}

void kkt_wire_pack_chain(kkt_packer *out, const kkt_chain_request *request) {
    kkt_pack_i64(out, (int64_t)request->order);
    kkt_pack_i64(out, (int64_t)request->count);
    kkt_wire_pack_request(out, &request->whole);
    for (size_t i = 0; i < request->count; i++) {
        kkt_wire_pack_request(out, &request->members[i]);
    }
}

kkt_status kkt_wire_unpack_chain(kkt_unpacker *in, kkt_kernel_lookup lookup, kkt_wire_chain *out,
                                 kkt_error *err) {
    memset(out, 0, sizeof *out);
    out->request.order = (kkt_launch_order)unpack_within(in, 0, KKT_LAUNCH_ORDER_COUNT - 1);
    out->request.count = (size_t)unpack_within(in, 1, KKT_MEMBERS_MAX);
    out->request.members = out->requests;
    kkt_status status = kkt_wire_unpack_request(in, lookup, &out->whole, err);
    out->request.whole = out->whole.request;
    for (size_t i = 0; i < out->request.count && status == KKT_OK; i++) {
        status = kkt_wire_unpack_request(in, lookup, &out->members[i], err);
        out->requests[i] = out->members[i].request;
        if (status == KKT_OK && out->requests[i].cubin_size == 0) {
            status = kkt_fail(err, KKT_ERR_INPUT, 0, "a member of a pipeline has no code");
        }
    }
    return status == KKT_OK && !kkt_unpack_done(in)
               ? kkt_fail(err, KKT_ERR_INPUT, 0, "a worker request is damaged")
               : status;
}

/* The record's numbers, in the order they travel. */
static const size_t FIGURES[] = {
    offsetof(kkt_run_record, time_us),          offsetof(kkt_run_record, time_low_us),
    offsetof(kkt_run_record, time_high_us),     offsetof(kkt_run_record, rel_fro),
    offsetof(kkt_run_record, max_abs),          offsetof(kkt_run_record, growth),
    offsetof(kkt_run_record, tolerance),        offsetof(kkt_run_record, sm_clock_mhz),
    offsetof(kkt_run_record, memory_clock_mhz), offsetof(kkt_run_record, temperature_c),
    offsetof(kkt_run_record, power_w),          offsetof(kkt_run_record, energy_mj),
};
#define FIGURE_COUNT (sizeof FIGURES / sizeof FIGURES[0])

void kkt_wire_pack_result(kkt_packer *out, const kkt_measure_result *result, bool replace) {
    const kkt_run_record *run = &result->run;
    kkt_pack_i64(out, (int64_t)run->outcome);
    kkt_pack_i64(out, replace);
    kkt_pack_string(out, result->reason);
    kkt_pack_string(out, result->throttle);
    kkt_pack_string(out, result->date);
    kkt_pack_string(out, result->disturbed);
    kkt_pack_i64(out, run->outliers);
    kkt_pack_i64(out, run->throttled);
    for (size_t i = 0; i < FIGURE_COUNT; i++) {
        double value = 0.0;
        memcpy(&value, (const char *)run + FIGURES[i], sizeof value);
        kkt_pack_real(out, value);
    }
    size_t count = result->samples != NULL ? (size_t)run->sample_count : 0;
    kkt_pack_blob(out, result->samples, count * sizeof *result->samples);
}

static bool copy_string(kkt_unpacker *in, char *out, size_t size) {
    const char *text = kkt_unpack_string(in);
    snprintf(out, size, "%s", text);
    for (char *at = out; *at != '\0'; at++) {
        if ((unsigned char)*at < ' ') {
            *at = '?';
        }
    }
    return !in->failed && strlen(text) < size;
}

/* Times that can be times: what a worker beside a broken kernel says is not trusted. A candidate
 * that was run once, on the caller's data, has none. */
static bool times_sound(const kkt_run_record *run, const float *samples, size_t count) {
    bool timed = run->outcome == KKT_OUTCOME_OK || run->outcome == KKT_OUTCOME_NOISY;
    bool untimed = count == 0 && isnan(run->time_us);
    if (timed && !untimed && !(isfinite(run->time_us) && run->time_us > 0.0)) {
        return false;
    }
    if (run->time_us < run->time_low_us || run->time_us > run->time_high_us) {
        return false;
    }
    if (run->energy_mj <= 0.0 || isinf(run->energy_mj) || run->outliers > (int64_t)count ||
        run->throttled > (int64_t)count) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(samples[i]) || samples[i] < 0.0F) {
            return false;
        }
    }
    return true;
}

bool kkt_wire_unpack_result(kkt_unpacker *in, kkt_measure_result *result, bool *replace) {
    kkt_run_record *run = &result->run;
    run->outcome = (kkt_outcome)unpack_within(in, 0, KKT_OUTCOME_COUNT - 1);
    *replace = unpack_within(in, 0, 1) != 0;
    bool good = copy_string(in, result->reason, sizeof result->reason);
    good = copy_string(in, result->throttle, sizeof result->throttle) && good;
    good = copy_string(in, result->date, sizeof result->date) && good;
    good = copy_string(in, result->disturbed, sizeof result->disturbed) && good;
    run->outliers = unpack_within(in, KKT_UNKNOWN_INT, SAMPLES_LIMIT);
    run->throttled = unpack_within(in, KKT_UNKNOWN_INT, SAMPLES_LIMIT);
    for (size_t i = 0; i < FIGURE_COUNT; i++) {
        double value = kkt_unpack_real(in);
        memcpy((char *)run + FIGURES[i], &value, sizeof value);
    }
    size_t bytes = 0;
    const unsigned char *samples = kkt_unpack_blob(in, &bytes);
    good = good && kkt_unpack_done(in) && bytes % sizeof(float) == 0;
    free(result->samples);
    result->samples = NULL;
    run->sample_count = 0;
    if (good && bytes > 0) {
        result->samples = malloc(bytes);
        good = result->samples != NULL;
        if (good) {
            memcpy(result->samples, samples, bytes);
            run->sample_count = (int64_t)(bytes / sizeof(float));
        }
    }
    good = good && times_sound(run, result->samples, (size_t)run->sample_count);
    kkt_measure_result_bind(result);
    return good;
}

void kkt_wire_pack_counts(kkt_packer *out, const kkt_counts *counts, bool replace) {
    kkt_pack_i64(out, (int64_t)counts->state);
    kkt_pack_i64(out, replace);
    kkt_pack_i64(out, counts->passes);
    kkt_pack_string(out, counts->chip);
    kkt_pack_string(out, counts->note);
    for (int i = 0; i < KKT_COUNTER_COUNT; i++) {
        kkt_pack_real(out, counts->values[i]);
    }
}

bool kkt_wire_unpack_counts(kkt_unpacker *in, kkt_counts *counts, bool *replace) {
    kkt_counts_set(counts, KKT_COUNT_FAILED, "%s", "");
    counts->state = (kkt_count_state)unpack_within(in, KKT_COUNT_DONE, KKT_COUNT_UNAVAILABLE);
    *replace = unpack_within(in, 0, 1) != 0;
    counts->passes = (int)unpack_within(in, 0, INT32_MAX);
    bool good = copy_string(in, counts->chip, sizeof counts->chip);
    good = copy_string(in, counts->note, sizeof counts->note) && good;
    for (int i = 0; i < KKT_COUNTER_COUNT; i++) {
        double value = kkt_unpack_real(in);
        counts->values[i] = isfinite(value) && value >= 0.0 ? value : KKT_UNKNOWN_REAL;
    }
    return good && kkt_unpack_done(in);
}

void kkt_wire_pack_info(kkt_packer *out, const kkt_backend_info *info) {
    kkt_pack_string(out, info->gpu);
    kkt_pack_string(out, info->driver);
    kkt_pack_string(out, info->note);
    kkt_pack_i64(out, info->major);
    kkt_pack_i64(out, info->minor);
    kkt_pack_i64(out, info->index);
}

bool kkt_wire_unpack_info(kkt_unpacker *in, kkt_backend_info *info) {
    bool good = copy_string(in, info->gpu, sizeof info->gpu);
    good = copy_string(in, info->driver, sizeof info->driver) && good;
    good = copy_string(in, info->note, sizeof info->note) && good;
    info->major = (int)unpack_within(in, 0, 99);
    info->minor = (int)unpack_within(in, 0, 99);
    info->index = (int)unpack_within(in, 0, 4096);
    return good && kkt_unpack_done(in);
}

void kkt_wire_pack_error(kkt_packer *out, const kkt_error *error) {
    kkt_pack_i64(out, (int64_t)error->status);
    kkt_pack_i64(out, error->native);
    kkt_pack_string(out, error->message);
}

bool kkt_wire_unpack_error(kkt_unpacker *in, kkt_error *error) {
    error->status = (kkt_status)unpack_within(in, KKT_ERR_MISSING, KKT_ERR_ENVIRONMENT);
    error->native = (int)unpack_within(in, INT32_MIN, INT32_MAX);
    bool good = copy_string(in, error->message, sizeof error->message);
    return good && kkt_unpack_done(in);
}

void kkt_wire_pack_tensor(kkt_packer *out, const kkt_host_tensor *tensor) {
    kkt_pack_string(out, tensor->tensor.name);
    kkt_pack_i64(out, tensor->data != NULL);
    size_t bytes = tensor->data != NULL ? (size_t)kkt_tensor_bytes(&tensor->tensor) : 0;
    kkt_pack_blob(out, tensor->data, bytes);
}

bool kkt_wire_unpack_tensor(kkt_unpacker *in, kkt_host_tensors *tensors) {
    kkt_host_tensor *tensor = kkt_host_tensor_find(tensors, kkt_unpack_string(in));
    bool present = unpack_within(in, 0, 1) != 0;
    size_t bytes = 0;
    const unsigned char *data = kkt_unpack_blob(in, &bytes);
    if (!kkt_unpack_done(in) || tensor == NULL) {
        return false;
    }
    if (!present) {
        return bytes == 0 && tensor->tensor.optional;
    }
    if (bytes != (size_t)kkt_tensor_bytes(&tensor->tensor)) {
        return false;
    }
    if (tensor->data == NULL) {
        tensor->data = malloc(bytes > 0 ? bytes : 1);
    }
    if (tensor->data == NULL) {
        return false;
    }
    memcpy(tensor->data, data, bytes);
    return true;
}
