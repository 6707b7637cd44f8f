#include "kernels/kernel.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"
#include "kernels/embedded.h"
#include "kernels/library.h"

int64_t kkt_tensor_elements(const kkt_tensor *tensor) {
    int64_t elements = 1;
    for (int i = 0; i < tensor->rank; i++)
        elements *= tensor->dims[i];
    return elements;
}

int64_t kkt_tensor_bytes(const kkt_tensor *tensor) {
    return kkt_tensor_elements(tensor) * (int64_t)kkt_dtype_bytes(tensor->dtype);
}

void kkt_tensor_element_name(const kkt_tensor *tensor, int64_t index, char *out, size_t size) {
    int64_t at[KKT_TENSOR_DIMS] = {0};
    for (int d = tensor->rank - 1; d >= 0; d--) {
        at[d] = index % tensor->dims[d];
        index /= tensor->dims[d];
    }
    size_t length = (size_t)snprintf(out, size, "%s[", tensor->name);
    for (int d = 0; d < tensor->rank && length < size; d++)
        length += (size_t)snprintf(out + length, size - length, "%s%" PRId64, d ? "," : "", at[d]);
    if (length < size)
        snprintf(out + length, size - length, "]");
}

kkt_misfit kkt_region_misfit(const kkt_region *region, int64_t row, int64_t column, double given,
                             double right) {
    return (kkt_misfit){.tensor = region->tensor,
                        .at = kkt_region_row(region, row) + column,
                        .given = given,
                        .right = right};
}

double kkt_resolved_size(kkt_dtype type, double value) {
    const double normal = type == KKT_FP16 ? 0x1p-14 : 0x1p-126;
    const double rounding = type == KKT_FP16 ? 0x1p-11 : 0x1p-8;
    const double size = fabs(value);
    return fmax(size, fmin(normal, size / rounding));
}

void kkt_score_error(kkt_score *score, const kkt_misfit *misfit, double size, double unavoidable) {
    const double error = fabs(misfit->given - misfit->right);
    if (error > score->max_abs)
        score->worst = *misfit;
    score->max_abs = fmax(score->max_abs, error);
    score->reference_sq[misfit->tensor] += size * size;
    if (error > unavoidable)
        score->error_sq[misfit->tensor] += error * error;
}

kkt_host_tensor *kkt_host_tensor_find(kkt_host_tensors *tensors, const char *name) {
    for (int i = 0; i < tensors->count; i++)
        if (strcmp(tensors->t[i].tensor.name, name) == 0)
            return &tensors->t[i];
    return NULL;
}

void kkt_host_tensors_free(kkt_host_tensors *tensors) {
    for (int i = 0; i < tensors->count; i++)
        free(tensors->t[i].data);
    memset(tensors, 0, sizeof *tensors);
}

const kkt_variant *kkt_kernel_variant(const kkt_kernel *kernel, kkt_style_id style) {
    for (size_t i = 0; i < kernel->variant_count; i++)
        if (kernel->variants[i]->style == style)
            return kernel->variants[i];
    return NULL;
}

bool kkt_variant_runs(const kkt_variant *variant) {
    return variant->source || variant->library;
}

bool kkt_variant_tuned(const kkt_variant *variant) {
    return variant->source && !variant->library;
}

int kkt_variant_tensors(const kkt_kernel *kernel, const kkt_variant *variant,
                        const kkt_values *problem, const kkt_values *config, kkt_tensor *out) {
    memset(out, 0, sizeof *out * KKT_TENSORS_MAX);
    int count = kernel->tensors ? kernel->tensors(problem, config, out) : 0;
    if (variant && variant->workspace)
        count += variant->workspace(problem, config, out + count);
    return count;
}

const char *kkt_device_source(const char *path, size_t *length) {
    for (const kkt_embedded_file *file = kkt_embedded_files; file->path; file++) {
        if (strcmp(file->path, path) == 0) {
            if (length)
                *length = file->length;
            return (const char *)file->bytes;
        }
    }
    return NULL;
}

static void add_name(kkt_sha256 *hash, const char *name) {
    kkt_sha256_add(hash, name, strlen(name) + 1);
}

void kkt_variant_hash(const kkt_variant *variant, char out[65]) {
    kkt_sha256 *hash = kkt_sha256_open();
    for (const char *const *path = variant->sources; path && *path; path++) {
        size_t length = 0;
        const char *bytes = kkt_device_source(*path, &length);
        if (bytes)
            kkt_sha256_add(hash, bytes, length);
    }
    if (variant->library)
        add_name(hash, variant->library);
    for (const char *const *name = variant->routines; name && *name; name++)
        add_name(hash, *name);
    const int calls = variant->library ? kkt_library_calls_revision(variant->library) : 1;
    if (calls > 1 || variant->calls_revision > 0) {
        char revision[40]; /* what was timed before there were revisions has none in its hash */
        snprintf(revision, sizeof revision, "calls %d.%d", calls, variant->calls_revision);
        add_name(hash, revision);
    }
    kkt_sha256_close(hash, out);
}

static void add_macros(const kkt_param_table *table, const kkt_values *values, kkt_text *out) {
    for (size_t i = 0; i < table->count; i++)
        if (table->params[i].macro)
            kkt_text_printf(out, "%s=%" PRId64 "\n", table->params[i].macro, values->v[i]);
}

void kkt_variant_defines(const kkt_kernel *kernel, const kkt_variant *variant,
                         const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                         kkt_text *out) {
    add_macros(&variant->params, config, out);
    add_macros(&kernel->problem, problem, out);
    if (variant->defines)
        variant->defines(problem, config, arch, out);
}

kkt_status kkt_kernel_problem_parse(const kkt_kernel *kernel, const char *text, kkt_values *out,
                                    kkt_error *err) {
    kkt_params_defaults(&kernel->problem, out);
    kkt_status status = kkt_params_parse(&kernel->problem, text ? text : "", out, NULL, err);
    if (status == KKT_OK && kernel->problem_canonical)
        kernel->problem_canonical(out);
    return status;
}

bool kkt_kernel_problem_valid(const kkt_kernel *kernel, const kkt_values *problem, char *reason,
                              size_t size) {
    return !kernel->problem_valid || kernel->problem_valid(problem, reason, size);
}
