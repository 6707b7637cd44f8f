#include "cli/tensors.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

typedef struct tensor_file {
    bool found;
    const char *path; /* borrowed */
    kkt_npy array;
} tensor_file;

static const char *const npy_names[] = {
    [KKT_NPY_F2] = "f2", [KKT_NPY_F4] = "f4", [KKT_NPY_F8] = "f8",
    [KKT_NPY_U2] = "u2", [KKT_NPY_I4] = "i4", [KKT_NPY_I8] = "i8",
};

static const kkt_dtype npy_dtypes[] = {
    [KKT_NPY_F2] = KKT_FP16, [KKT_NPY_F4] = KKT_FP32, [KKT_NPY_F8] = KKT_FP64,
    [KKT_NPY_U2] = KKT_BF16, [KKT_NPY_I4] = KKT_I32,  [KKT_NPY_I8] = KKT_I64,
};

kkt_dtype kkt_npy_dtype(kkt_npy_type type) {
    return npy_dtypes[type];
}

static bool is_integer(kkt_dtype dtype) {
    return dtype == KKT_I32 || dtype == KKT_I64;
}

kkt_status kkt_dtype_parse(const char *name, kkt_dtype *out, kkt_error *err) {
    static const kkt_dtype floating[] = {KKT_BF16, KKT_FP16, KKT_FP32, KKT_FP64};
    for (size_t i = 0; i < sizeof floating / sizeof floating[0]; i++) {
        if (strcmp(name, kkt_dtype_name(floating[i])) == 0) {
            *out = floating[i];
            return KKT_OK;
        }
    }
    return kkt_fail(err, KKT_ERR_INPUT, 0, "unknown dtype '%.32s'; known: bf16, fp16, fp32, fp64",
                    name);
}

/* ---- files ---- */

char *kkt_tensor_path(const char *folder, const char *name) {
    kkt_text file = {0};
    kkt_text_printf(&file, "%s.npy", name);
    char *path = kkt_path_join(folder, kkt_text_get(&file));
    kkt_text_free(&file);
    return path;
}

static kkt_status file_open(const char *path, tensor_file *out, kkt_error *err) {
    memset(out, 0, sizeof *out);
    out->path = path;
    if (!kkt_file_exists(out->path))
        return KKT_OK;
    kkt_status status = kkt_npy_read(out->path, &out->array, err);
    out->found = status == KKT_OK;
    return status;
}

static void file_close(tensor_file *file) {
    kkt_npy_free(&file->array);
    memset(file, 0, sizeof *file);
}

static void add_shape(kkt_text *text, int rank, const int64_t *dims) {
    kkt_text_add(text, "[");
    for (int i = 0; i < rank; i++)
        kkt_text_printf(text, "%s%" PRId64, i ? "," : "", dims[i]);
    kkt_text_add(text, "]");
}

/* How many leading dimensions of the tensor the file leaves out: 0 or 1; -1: it does not fit. */
static int left_out(const kkt_tensor *tensor, const kkt_npy *array) {
    const int skipped = tensor->rank - array->rank;
    if (skipped != 0 && (skipped != 1 || tensor->rank < 2))
        return -1;
    return skipped;
}

static kkt_status check_shape(const kkt_tensor *tensor, const tensor_file *file, kkt_error *err) {
    const int skipped = left_out(tensor, &file->array);
    bool fits = skipped >= 0 && (skipped == 0 || tensor->dims[0] == 1);
    for (int i = 0; fits && i < file->array.rank; i++)
        fits = file->array.dims[i] == tensor->dims[i + skipped];
    if (fits)
        return KKT_OK;
    kkt_text text = {0};
    kkt_text_printf(&text, "tensor %s: expected shape ", tensor->name);
    add_shape(&text, tensor->rank, tensor->dims);
    kkt_text_add(&text, ", given ");
    add_shape(&text, file->array.rank, file->array.dims);
    kkt_status status =
        kkt_fail(err, KKT_ERR_INPUT, 0, "%s in %s", kkt_text_get(&text), file->path);
    kkt_text_free(&text);
    return status;
}

static kkt_status check_type(const kkt_tensor *tensor, const tensor_file *file, bool u2_is_bf16,
                             kkt_error *err) {
    const kkt_npy_type type = file->array.type;
    if (is_integer(npy_dtypes[type]) != is_integer(tensor->dtype))
        return kkt_fail(err, KKT_ERR_INPUT, 0, "tensor %s: %s holds %s, but %s is needed",
                        tensor->name, file->path, npy_names[type],
                        is_integer(tensor->dtype) ? "i4 or i8" : "f2, f4, f8 or bf16 as u2");
    if (type == KKT_NPY_U2 && !u2_is_bf16)
        return kkt_fail(
            err, KKT_ERR_INPUT, 0,
            "tensor %s: %s holds u2, which is read as bf16, but the problem's dtype is not",
            tensor->name, file->path);
    return KKT_OK;
}

/* Values of the file in another type, in new memory. */
static kkt_status convert(const kkt_tensor *tensor, tensor_file *file, kkt_dtype to, void **data,
                          kkt_error *err) {
    const kkt_dtype from = npy_dtypes[file->array.type];
    const size_t count = (size_t)file->array.elements;
    if (from == to) {
        *data = file->array.data;
        file->array.data = NULL;
        return KKT_OK;
    }
    *data = malloc(count * kkt_dtype_bytes(to) + 1);
    if (!*data)
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "out of memory for tensor %s", tensor->name);
    for (size_t i = 0; i < count; i++) {
        const double value = kkt_dtype_load(from, file->array.data, i);
        if (to == KKT_I32 && !(value >= INT32_MIN && value <= INT32_MAX)) {
            free(*data);
            *data = NULL;
            return kkt_fail(err, KKT_ERR_INPUT, 0, "tensor %s: element %zu is %.0f, beyond 32 bits",
                            tensor->name, i, value);
        }
        kkt_dtype_store(to, *data, i, value);
    }
    return KKT_OK;
}

/* The file as the tensor; `exact` keeps floating values in the file's own type. */
static kkt_status take(const kkt_tensor *tensor, tensor_file *file, bool exact, bool u2_is_bf16,
                       kkt_host_tensor *out, kkt_error *err) {
    out->tensor = *tensor;
    kkt_status status = check_shape(tensor, file, err);
    if (status == KKT_OK)
        status = check_type(tensor, file, u2_is_bf16, err);
    if (status != KKT_OK)
        return status;
    if (exact && !is_integer(tensor->dtype))
        out->tensor.dtype = npy_dtypes[file->array.type];
    return convert(tensor, file, out->tensor.dtype, &out->data, err);
}

kkt_status kkt_tensor_read(const char *path, const kkt_tensor *shape, kkt_host_tensor *out,
                           bool *found, kkt_error *err) {
    tensor_file file;
    memset(out, 0, sizeof *out);
    out->tensor = *shape;
    kkt_status status = file_open(path, &file, err);
    *found = file.found;
    if (file.found)
        status = take(shape, &file, true, true, out, err);
    file_close(&file);
    return status;
}

kkt_status kkt_tensor_write(const char *folder, const kkt_host_tensor *host, kkt_error *err) {
    kkt_npy_type type = KKT_NPY_F8;
    for (size_t i = 0; i < sizeof npy_dtypes / sizeof npy_dtypes[0]; i++)
        if (npy_dtypes[i] == host->tensor.dtype)
            type = (kkt_npy_type)i;
    char *path = kkt_tensor_path(folder, host->tensor.name);
    kkt_status status = kkt_folder_make(folder, err);
    if (status == KKT_OK)
        status = kkt_npy_write(path, type, host->tensor.rank, host->tensor.dims, host->data, err);
    free(path);
    return status;
}

kkt_status kkt_tensors_check_out(const char *in_folder, const char *out_folder, const char *name,
                                 kkt_error *err) {
    char *path = kkt_tensor_path(in_folder, name);
    char *in = realpath(in_folder, NULL), *out = realpath(out_folder, NULL);
    kkt_status status = KKT_OK;
    if (in && out && strcmp(in, out) == 0 && kkt_file_exists(path))
        status =
            kkt_fail(err, KKT_ERR_INPUT, 0, "%s would be replaced: choose another --out", path);
    free(path);
    free(in);
    free(out);
    return status;
}

/* ---- problem keys from shapes ---- */

/* A dimension or the presence of a tensor that follows a problem key is found by asking for the
 * tensors twice with different values of the key; no kernel has to say it a second time. */
static void tensors_with(const kkt_tensor_request *request, const kkt_values *problem, size_t key,
                         int64_t value, kkt_tensor *out) {
    kkt_values changed = *problem;
    changed.v[key] = value;
    memset(out, 0, sizeof *out * KKT_TENSORS_MAX); /* what a kernel does not set */
    request->kernel->tensors(&changed, request->config, out);
}

/* The extent of dimension `d` of tensor `i` with key `key` at `value`. */
static int64_t extent_with(const kkt_tensor_request *request, const kkt_values *problem, size_t key,
                           int64_t value, int i, int d) {
    kkt_tensor shapes[KKT_TENSORS_MAX];
    tensors_with(request, problem, key, value, shapes);
    return shapes[i].dims[d];
}

/* The key's value that makes dimension `d` of tensor `i` what the file says, where the extent
 * grows in proportion to the key over multiples of `unit`; false where it does not. */
static bool solve_extent(const kkt_tensor_request *request, const kkt_values *problem, size_t key,
                         int64_t unit, int i, int d, int64_t given, int64_t *value) {
    const int64_t one = extent_with(request, problem, key, unit, i, d);
    const int64_t two = extent_with(request, problem, key, 2 * unit, i, d);
    if (two <= one)
        return false;
    const int64_t scaled = (given - (2 * one - two)) * unit;
    *value = scaled / (two - one);
    return scaled >= 0 && extent_with(request, problem, key, *value, i, d) == given;
}

/* The value of key `key` as the files' shapes say it; false where they do not. An extent may be a
 * quotient (tokens a batch entry), so the units tried are multiples of each other key's value. */
static bool infer_dimension(const kkt_tensor_request *request, const kkt_values *problem,
                            size_t key, const tensor_file *files, int count, int64_t *value) {
    enum { UNIT = 4 };
    kkt_tensor shapes[KKT_TENSORS_MAX];
    request->kernel->tensors(problem, request->config, shapes);
    for (int i = 0; i < count; i++) {
        const int skipped = files[i].found ? left_out(&shapes[i], &files[i].array) : -1;
        for (int d = 0; skipped >= 0 && d < shapes[i].rank; d++) {
            const int64_t given = d < skipped ? 1 : files[i].array.dims[d - skipped];
            for (size_t other = 0; other < request->kernel->problem.count; other++) {
                const int64_t scale = other == key ? 1 : problem->v[other];
                if (scale > 0 && scale <= 65536 &&
                    solve_extent(request, problem, key, UNIT * scale, i, d, given, value))
                    return true;
            }
        }
    }
    return false;
}

/* The value of a listed key that decides whether a tensor is needed: needed if it is there. */
static bool infer_presence(const kkt_tensor_request *request, const kkt_values *problem, size_t key,
                           const tensor_file *files, int count, int64_t *value) {
    const kkt_param *param = &request->kernel->problem.params[key];
    kkt_tensor a[KKT_TENSORS_MAX], b[KKT_TENSORS_MAX];
    if (param->count != 2)
        return false;
    tensors_with(request, problem, key, param->values[0], a);
    tensors_with(request, problem, key, param->values[1], b);
    for (int i = 0; i < count; i++) {
        if (a[i].optional == b[i].optional)
            continue;
        *value = param->values[a[i].optional == files[i].found];
        return true;
    }
    return false;
}

/* The element type from the first tensor whose type follows the key and whose file is 16 bits. */
static bool infer_type(const kkt_tensor_request *request, const kkt_values *problem, size_t key,
                       const tensor_file *files, int count, int64_t *value) {
    const kkt_param *param = &request->kernel->problem.params[key];
    kkt_tensor shapes[KKT_TENSORS_MAX];
    for (size_t v = 0; v < param->count; v++) {
        tensors_with(request, problem, key, param->values[v], shapes);
        for (int i = 0; i < count; i++) {
            const kkt_dtype held =
                files[i].found ? npy_dtypes[files[i].array.type] : KKT_DTYPE_COUNT;
            if (shapes[i].dtype == held && (held == KKT_FP16 || held == KKT_BF16)) {
                *value = param->values[v];
                return true;
            }
        }
    }
    return false;
}

static kkt_status set_key(const kkt_param_table *table, size_t key, int64_t value,
                          kkt_values *problem, kkt_error *err) {
    char buffer[24];
    kkt_text text = {0};
    kkt_text_printf(&text, "%s=%s", table->params[key].name,
                    kkt_param_value_text(&table->params[key], value, buffer));
    kkt_status status = kkt_params_parse(table, kkt_text_get(&text), problem, NULL, err);
    kkt_text_free(&text);
    return status;
}

static kkt_status infer_keys(const kkt_tensor_request *request, uint64_t given,
                             const tensor_file *files, int count, kkt_values *problem,
                             kkt_error *err) {
    const kkt_param_table *table = &request->kernel->problem;
    kkt_status status = KKT_OK;
    for (size_t key = 0; key < table->count && status == KKT_OK; key++) {
        int64_t value;
        if (given >> key & 1)
            continue;
        const bool known = table->params[key].count == 0
                               ? infer_dimension(request, problem, key, files, count, &value)
                               : infer_presence(request, problem, key, files, count, &value) ||
                                     infer_type(request, problem, key, files, count, &value);
        if (known)
            status = set_key(table, key, value, problem, err);
    }
    return status;
}

/* Problem keys from the command line; --dtype sets the kernel's dtype key where it has the value
 * and --problem does not name it. Where values stay exact it is only what 16-bit files, which say
 * their type themselves, do not override. */
static kkt_status given_keys(const kkt_tensor_request *request, kkt_values *problem,
                             uint64_t *given, kkt_error *err) {
    const kkt_param_table *table = &request->kernel->problem;
    kkt_params_defaults(table, problem);
    kkt_status status =
        kkt_params_parse(table, request->problem ? request->problem : "", problem, given, err);
    const int key = kkt_params_find(table, "dtype");
    if (status != KKT_OK || !request->dtype || key < 0 || (*given >> key & 1))
        return status;
    kkt_dtype dtype;
    status = kkt_dtype_parse(request->dtype, &dtype, err);
    for (size_t i = 0; status == KKT_OK && i < table->params[key].count; i++) {
        if (table->params[key].values[i] == (int64_t)dtype) {
            problem->v[key] = dtype;
            *given |= (uint64_t)!request->exact << key;
        }
    }
    return status;
}

/* A file that is not there leaves the keys that follow from it at their defaults, and what these do
 * not fit is not the cause. */
static kkt_status check_present(const kkt_tensor_request *request, const kkt_values *problem,
                                const tensor_file *files, char *const *paths, kkt_error *err) {
    kkt_tensor shapes[KKT_TENSORS_MAX];
    const int count = request->kernel->tensors(problem, request->config, shapes);
    for (int i = 0; i < count; i++)
        if (shapes[i].role == KKT_TENSOR_INPUT && !shapes[i].optional && !files[i].found)
            return kkt_fail(err, KKT_ERR_INPUT, 0, "tensor %s is missing: there is no %s",
                            shapes[i].name, paths[i]);
    return KKT_OK;
}

static kkt_status take_all(const kkt_tensor_request *request, const kkt_values *problem,
                           tensor_file *files, kkt_host_tensors *out, kkt_error *err) {
    kkt_tensor shapes[KKT_TENSORS_MAX];
    const int key = kkt_params_find(&request->kernel->problem, "dtype");
    const bool u2_is_bf16 = key >= 0 && problem->v[key] == KKT_BF16;
    kkt_status status = KKT_OK;
    out->count = request->kernel->tensors(problem, request->config, shapes);
    for (int i = 0; i < out->count && status == KKT_OK; i++) {
        out->t[i].tensor = shapes[i];
        if (files[i].found)
            status = take(&shapes[i], &files[i], request->exact, u2_is_bf16, &out->t[i], err);
    }
    return status;
}

kkt_status kkt_tensors_read(const kkt_tensor_request *request, kkt_values *problem,
                            kkt_host_tensors *out, kkt_error *err) {
    tensor_file files[KKT_TENSORS_MAX] = {{0}};
    char *paths[KKT_TENSORS_MAX] = {0};
    kkt_tensor shapes[KKT_TENSORS_MAX];
    uint64_t given = 0;
    int count = 0;
    memset(out, 0, sizeof *out);
    kkt_status status = given_keys(request, problem, &given, err);
    if (status == KKT_OK)
        count = request->kernel->tensors(problem, request->config, shapes);
    for (int i = 0; i < count && status == KKT_OK; i++) {
        if (shapes[i].role != KKT_TENSOR_INPUT)
            continue;
        paths[i] = kkt_tensor_path(request->folder, shapes[i].name);
        status = file_open(paths[i], &files[i], err);
    }
    if (status == KKT_OK)
        status = infer_keys(request, given, files, count, problem, err);
    if (status == KKT_OK && request->kernel->problem_canonical)
        request->kernel->problem_canonical(problem);
    if (status == KKT_OK)
        status = check_present(request, problem, files, paths, err);
    char reason[200];
    if (status == KKT_OK &&
        !kkt_kernel_problem_valid(request->kernel, problem, reason, sizeof reason))
        status = kkt_fail(err, KKT_ERR_INPUT, 0, "%s", reason);
    if (status == KKT_OK)
        status = take_all(request, problem, files, out, err);
    for (int i = 0; i < count; i++) {
        file_close(&files[i]);
        free(paths[i]);
    }
    if (status != KKT_OK)
        kkt_host_tensors_free(out);
    return status;
}
