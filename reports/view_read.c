/* An export read back (docs/formats.md, "Export"). Nothing in the file is trusted: texts are
 * bounded, unknown members ignored, and what does not fit is refused (view_check.h). */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "reports/curve.h"
#include "reports/lookup.h"
#include "reports/modelled.h"
#include "reports/view_check.h"

#define FILE_LIMIT ((size_t)64 * 1024 * 1024)

static int compare_texts(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* An object of integers and names as canonical "k=v,...", keys sorted; NULL where it is none. */
static const char *pairs_text(const kkt_json *object, kkt_arena *arena) {
    if (object == NULL || !kkt_json_is_object(object))
        return NULL;
    size_t count = kkt_json_count(object), used = 0;
    const char **pairs = kkt_arena_array(arena, count + 1, sizeof *pairs);
    for (const kkt_json *member = kkt_json_first(object); member != NULL;
         member = kkt_json_next(member)) {
        int64_t integer;
        const char *name = kkt_json_as_string(member);
        if (kkt_json_as_int(member, &integer))
            pairs[used++] =
                kkt_arena_printf(arena, "%s=%lld", kkt_json_key(member), (long long)integer);
        else if (name != NULL)
            pairs[used++] = kkt_arena_printf(arena, "%s=%s", kkt_json_key(member), name);
        else
            return NULL;
    }
    qsort(pairs, used, sizeof *pairs, compare_texts);
    kkt_text text = {0};
    for (size_t i = 0; i < used; i++)
        kkt_text_printf(&text, "%s%s", i == 0 ? "" : ",", pairs[i]);
    const char *out = kkt_arena_strdup(arena, kkt_text_get(&text));
    kkt_text_free(&text);
    return out;
}

static const char *need_text(const kkt_json *object, const char *key, kkt_arena *arena) {
    return kkt_arena_strdup(arena, kkt_json_string(object, key));
}

static void read_real(const kkt_json *object, const char *key, double *out) {
    double value;
    if (object != NULL && kkt_json_real(object, key, &value))
        *out = value;
}

static void read_int(const kkt_json *object, const char *key, int *out) {
    int64_t value;
    if (object != NULL && kkt_json_int(object, key, &value) && value >= 0 && value <= INT_MAX)
        *out = (int)value;
}

/* The member that does not fit, or NULL. */
static const char *read_provenance(const kkt_json *json, kkt_arena *arena, kkt_entry *entry) {
    const char *name = kkt_json_string(json, "provenance");
    if (name == NULL)
        return "provenance";
    if (strcmp(name, "stale") == 0) {
        const char *why = kkt_json_string(json, "stale_reason");
        entry->stale_reason = kkt_arena_strdup(arena, why != NULL ? why : "stale");
        entry->provenance = kkt_json_get(json, "time_us") != NULL ? KKT_MEASURED : KKT_COMPILED;
        return NULL;
    }
    return kkt_provenance_parse(name, &entry->provenance) ? NULL : "provenance";
}

static const char *read_entry(const kkt_json *json, kkt_arena *arena, kkt_entry *entry) {
    kkt_entry_clear(entry);
    entry->kernel = need_text(json, "kernel", arena);
    entry->style = need_text(json, "style", arena);
    entry->problem = pairs_text(kkt_json_get(json, "problem"), arena);
    entry->config = pairs_text(kkt_json_get(json, "config"), arena);
    if (entry->kernel == NULL || entry->style == NULL)
        return entry->kernel == NULL ? "kernel" : "style";
    if (entry->problem == NULL || entry->config == NULL)
        return entry->problem == NULL ? "problem" : "config";
    const char *bad = read_provenance(json, arena, entry);
    if (bad != NULL)
        return bad;
    entry->departures = kkt_modelled_departures(entry->kernel, entry->style, entry->config);
    const kkt_json *launch = kkt_json_get(json, "launch");
    const kkt_json *time = kkt_json_get(json, "time_us");
    const kkt_json *error = kkt_json_get(json, "error");
    int smem = KKT_UNKNOWN_INT, samples = 0, chunk = 0;
    read_int(launch, "threads", &entry->threads);
    read_int(launch, "registers", &entry->registers);
    read_int(launch, "smem_bytes", &smem);
    read_int(time, "samples", &samples);
    read_int(kkt_json_get(json, "config"), "chunk", &chunk);
    entry->smem_bytes = smem;
    entry->samples = samples;
    entry->chunk = chunk;
    read_real(time, "median", &entry->time_us);
    entry->low_us = entry->high_us = entry->time_us;
    read_real(time, "low", &entry->low_us);
    read_real(time, "high", &entry->high_us);
    read_real(json, "predicted_us", &entry->predicted_us);
    read_real(json, "lower_bound_us", &entry->lower_bound_us);
    read_real(json, "energy_mj", &entry->energy_mj);
    read_real(error, "rel_fro", &entry->rel_fro);
    read_real(error, "max_abs", &entry->max_abs);
    read_real(error, "tolerance", &entry->tolerance);
    kkt_json_bool(json, "noisy", &entry->noisy);
    const kkt_json *on = kkt_json_get(json, "measured_on");
    if (on != NULL) {
        entry->gpu = need_text(on, "gpu", arena);
        entry->driver = need_text(on, "driver", arena);
        entry->date = need_text(on, "date", arena);
    }
    entry->limiter = need_text(json, "limiter", arena);
    entry->kernel_hash = need_text(json, "kernel_hash", arena);
    return NULL;
}

/* Architecture and device that the export is of. */
static kkt_status read_device(const kkt_json *root, const char *path, kkt_view *out,
                              kkt_error *err) {
    const char *arch = kkt_json_string(root, "arch");
    const kkt_json *device = kkt_json_get(root, "device");
    const char *name = device == NULL ? NULL : kkt_json_string(device, "name");
    kkt_error cause = {0};
    kkt_status status = KKT_OK;
    if (arch != NULL)
        status = kkt_arch_parse(arch, &out->arch, &cause);
    if (arch == NULL || (status == KKT_OK && name == NULL))
        return kkt_fail(err, KKT_ERR_INPUT, 0, "%s: member '%s' is missing or of the wrong kind",
                        path, arch == NULL ? "arch" : "device.name");
    if (status == KKT_OK)
        status = kkt_device_parse(name, out->arch, &out->device, &cause);
    return status == KKT_OK ? KKT_OK : kkt_fail(err, status, 0, "%s: %s", path, cause.message);
}

static kkt_status read_root(const kkt_json *root, const char *path, kkt_arena *arena, kkt_view *out,
                            kkt_error *err) {
    const char *schema = kkt_json_string(root, "schema");
    if (schema == NULL || strcmp(schema, "kkttune.config/1") != 0)
        return kkt_fail(err, KKT_ERR_INPUT, 0,
                        "%s is no kkttune export: its schema is '%.60s', not 'kkttune.config/1'",
                        path, schema != NULL ? schema : "");
    kkt_status status = read_device(root, path, out, err);
    if (status != KKT_OK)
        return status;
    const kkt_json *entries = kkt_json_get(root, "entries");
    if (entries == NULL || !kkt_json_is_array(entries))
        return kkt_fail(err, KKT_ERR_INPUT, 0, "%s has no array 'entries'", path);
    out->entries = kkt_arena_array(arena, kkt_json_count(entries) + 1, sizeof *out->entries);
    for (const kkt_json *json = kkt_json_first(entries); json != NULL; json = kkt_json_next(json)) {
        const char *bad = read_entry(json, arena, &out->entries[out->entry_count]);
        if (bad != NULL)
            return kkt_fail(err, KKT_ERR_INPUT, 0,
                            "%s: entry %zu: member '%s' is missing or of the wrong kind", path,
                            out->entry_count + 1, bad);
        kkt_error cause = {0};
        status = kkt_view_check_entry(json, &out->entries[out->entry_count], out->arch, &cause);
        if (status != KKT_OK)
            return kkt_fail(err, status, 0, "%s: entry %zu: %s", path, out->entry_count + 1,
                            cause.message);
        out->entry_count++;
    }
    return KKT_OK;
}

/* The chunk sizes that stand for kernels and problems; curves of pipelines name no kernel and are
 * passed by. A member that does not fit is passed by, too: the default stands then. */
static void read_standing(const kkt_json *root, kkt_arena *arena, kkt_view *out) {
    const kkt_json *choices = kkt_json_get(root, "chunk_choice");
    if (choices == NULL || !kkt_json_is_array(choices))
        return;
    kkt_standing *all = kkt_arena_array(arena, kkt_json_count(choices) + 1, sizeof *all);
    out->standing = all;
    for (const kkt_json *json = kkt_json_first(choices); json != NULL; json = kkt_json_next(json)) {
        const char *kernel = kkt_json_string(json, "pipeline");
        const char *problem = pairs_text(kkt_json_get(json, "problem"), arena);
        int64_t best = 0;
        if (kernel == NULL || problem == NULL || kkt_pipeline_find(kernel) != NULL ||
            !kkt_json_int(json, "best", &best) || best < 1)
            continue;
        all[out->standing_count++] =
            (kkt_standing){kkt_arena_strdup(arena, kernel), problem, best, NULL};
    }
}

kkt_status kkt_view_parse(const char *text, size_t length, const char *name, kkt_arena *arena,
                          kkt_view *out, kkt_error *err) {
    kkt_json *root = NULL;
    memset(out, 0, sizeof *out);
    kkt_status status = kkt_json_parse(text, length, name, &root, err);
    if (status == KKT_OK)
        status = read_root(root, name, arena, out, err);
    if (status == KKT_OK)
        read_standing(root, arena, out);
    kkt_json_close(root);
    return status;
}

kkt_status kkt_view_read(const char *path, kkt_arena *arena, kkt_view *out, kkt_error *err) {
    char *data = NULL;
    size_t length;
    memset(out, 0, sizeof *out);
    kkt_status status = kkt_file_read(path, FILE_LIMIT, &data, &length, err);
    if (status == KKT_OK)
        status = kkt_view_parse(data, length, path, arena, out, err);
    free(data);
    return status;
}
