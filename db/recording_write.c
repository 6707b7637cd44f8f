#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "db/recording.h"
#include "db/rows.h"

/* Rows share what produced them: each different provenance is written once, where it first
 * occurs, and numbered; rows name the number. */
typedef struct provenance_list {
    char **keys; /* the line's members as text */
    size_t count, capacity;
} provenance_list;

typedef struct writer {
    kkt_db *db;
    kkt_text *out;
    char *arch, *device;
    provenance_list provenances;
    int64_t rows;
    bool replayed;      /* rows that came from recordings are written, too */
    bool has_pipelines; /* the recording has rows of whole pipelines, which version 1 has not */
} writer;

static void add_string(kkt_text *out, const char *raw) {
    if (!raw) {
        kkt_text_add(out, "null");
        return;
    }
    kkt_text_add_bytes(out, "\"", 1);
    for (const char *c = raw; *c; c++) {
        size_t plain = 0;
        while ((unsigned char)c[plain] >= 0x20 && c[plain] != '"' && c[plain] != '\\')
            plain++;
        kkt_text_add_bytes(out, c, plain);
        c += plain;
        if (!*c)
            break;
        if (*c == '"' || *c == '\\')
            kkt_text_printf(out, "\\%c", *c);
        else
            kkt_text_printf(out, "\\u%04x", (unsigned char)*c);
    }
    kkt_text_add_bytes(out, "\"", 1);
}

static void add_text(kkt_text *out, const char *key, const char *value) {
    kkt_text_printf(out, ",\"%s\":", key);
    add_string(out, value);
}

/* What is unknown is left out. */
static void add_int(kkt_text *out, const char *key, int64_t value) {
    if (value >= 0)
        kkt_text_printf(out, ",\"%s\":%lld", key, (long long)value);
}

static void add_real(kkt_text *out, const char *key, double value) {
    if (!isfinite(value))
        return;
    char buffer[32];
    snprintf(buffer, sizeof buffer, "%.15g", value);
    if (strtod(buffer, NULL) != value)
        snprintf(buffer, sizeof buffer, "%.17g", value);
    kkt_text_printf(out, ",\"%s\":%s", key, buffer);
}

static void add_known(kkt_text *out, const char *key, const char *value) {
    if (value)
        add_text(out, key, value);
}

/* Either may be NULL: a pipeline's run has no build of its own, its members no run. */
static size_t number_provenance(writer *w, const kkt_build_record *build,
                                const kkt_run_record *run) {
    kkt_text key = {0};
    if (build) {
        add_known(&key, "kernel_hash", build->kernel_hash);
        add_known(&key, "compiler", build->compiler);
    }
    if (run) {
        add_known(&key, "gpu", run->gpu);
        add_known(&key, "driver", run->driver);
        add_known(&key, "policy", run->policy);
        add_known(&key, "tool_version", run->tool_version);
    }
    provenance_list *list = &w->provenances;
    for (size_t i = list->count; i-- > 0;) { /* the latest is the likeliest */
        if (strcmp(list->keys[i], kkt_text_get(&key)) == 0) {
            kkt_text_free(&key);
            return i;
        }
    }
    if (list->count == list->capacity) {
        list->capacity = list->capacity * 2 + 8;
        char **grown = realloc(list->keys, list->capacity * sizeof *grown);
        if (!grown)
            abort(); /* a few hundred bytes: as fatal as in base/text.h */
        list->keys = grown;
    }
    kkt_text_printf(w->out, "{\"provenance\":%zu%s}\n", list->count, kkt_text_get(&key));
    if (!key.data)
        kkt_text_add(&key, "");
    list->keys[list->count] = key.data;
    return list->count++;
}

static void add_build(kkt_text *out, const kkt_build_record *build) {
    kkt_text_printf(out, ",\"build\":{\"outcome\":\"%s\"", kkt_outcome_name(build->outcome));
    add_known(out, "options", build->options);
    add_known(out, "log", build->log);
    add_int(out, "registers", build->registers);
    add_int(out, "static_smem_bytes", build->static_smem_bytes);
    add_int(out, "dynamic_smem_bytes", build->dynamic_smem_bytes);
    add_int(out, "spill_store_bytes", build->spill_store_bytes);
    add_int(out, "spill_load_bytes", build->spill_load_bytes);
    add_int(out, "stack_bytes", build->stack_bytes);
    add_int(out, "barriers", build->barriers);
    add_int(out, "cubin_bytes", build->cubin_bytes);
    add_real(out, "compile_ms", build->compile_ms);
    kkt_text_add(out, "}");
}

/* All counters of a run are of one chip: the GPU it ran on. */
static void add_counters(kkt_text *out, const kkt_counter_list *counters) {
    if (counters->count == 0)
        return;
    add_text(out, "chip", counters->rows[0].chip);
    kkt_text_add(out, ",\"counters\":[");
    for (size_t i = 0; i < counters->count; i++) {
        kkt_text_add(out, i > 0 ? ",{\"name\":" : "{\"name\":");
        add_string(out, counters->rows[i].name);
        add_real(out, "value", counters->rows[i].value);
        add_text(out, "unit", counters->rows[i].unit);
        kkt_text_add(out, "}");
    }
    kkt_text_add(out, "]");
}

static void add_candidate(kkt_text *out, const kkt_identity *id, const kkt_build_record *build) {
    add_text(out, "kernel", id->kernel);
    add_text(out, "style", id->style);
    add_text(out, "problem", id->problem);
    add_text(out, "config", id->config);
    add_build(out, build);
}

static void add_run(kkt_text *out, const kkt_run_record *run, const kkt_counter_list *counters,
                    const char *samples_json) {
    kkt_text_printf(out, ",\"run\":{\"outcome\":\"%s\"", kkt_outcome_name(run->outcome));
    add_known(out, "reason", run->reason);
    add_known(out, "date", run->date);
    add_real(out, "time_us", run->time_us);
    add_real(out, "time_low_us", run->time_low_us);
    add_real(out, "time_high_us", run->time_high_us);
    add_real(out, "rel_fro", run->rel_fro);
    add_real(out, "max_abs", run->max_abs);
    add_real(out, "growth", run->growth);
    add_real(out, "tolerance", run->tolerance);
    add_real(out, "sm_clock_mhz", run->sm_clock_mhz);
    add_real(out, "memory_clock_mhz", run->memory_clock_mhz);
    add_real(out, "temperature_c", run->temperature_c);
    add_real(out, "power_w", run->power_w);
    add_known(out, "throttle", run->throttle);
    add_real(out, "hbm_bytes_counted", run->hbm_bytes_counted);
    add_known(out, "counters_note", run->counters_note);
    add_counters(out, counters);
    add_real(out, "energy_mj", run->energy_mj);
    add_int(out, "outliers", run->outliers);
    add_int(out, "throttled", run->throttled);
    add_known(out, "disturbed", run->disturbed);
    add_int(out, "sample_count", run->sample_count);
    if (samples_json)
        kkt_text_printf(out, ",\"samples_us\":%s", samples_json);
    kkt_text_add(out, "}");
}

static kkt_status start(writer *w, const char *arch, const char *device, kkt_error *err) {
    if (!w->arch) {
        w->arch = strdup(arch);
        w->device = strdup(device);
        if (!w->arch || !w->device)
            return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "out of memory");
        kkt_text_printf(w->out, "{\"schema\":\"kkttune.recording/%d\"", w->has_pipelines ? 2 : 1);
        add_text(w->out, "arch", w->arch);
        add_text(w->out, "device", w->device);
        kkt_text_add(w->out, "}\n");
    }
    if (strcmp(w->arch, arch) != 0)
        return kkt_fail(err, KKT_ERR_INPUT, 0,
                        "the rows belong to more than one architecture (%s, %s); a recording holds "
                        "one: name it with --arch",
                        w->arch, arch);
    if (strcmp(w->device, device) != 0)
        return kkt_fail(err, KKT_ERR_INPUT, 0,
                        "the rows belong to more than one device (%s, %s); a recording holds one: "
                        "name it with --device",
                        w->device, device);
    return KKT_OK;
}

/* Samples are copied as they are stored, so they are looked at first: the file may be anyone's. */
static bool samples_sound(const kkt_run_record *run, const char *json) {
    int64_t count = run->sample_count;
    if (!json)
        return true;
    if (count < 0 || (size_t)count > strlen(json))
        return false;
    float *values = calloc((size_t)count + 1, sizeof *values);
    bool sound = values && kkt_samples_parse(json, (size_t)count, values);
    free(values);
    return sound && !strpbrk(json, "\r\n");
}

static kkt_status write_row(void *context, const kkt_run_row *row, kkt_error *err) {
    writer *w = context;
    kkt_status status = start(w, row->id.arch, row->id.device, err);
    if (status != KKT_OK)
        return status;
    if (!samples_sound(&row->run, row->samples_json))
        return kkt_fail(err, KKT_ERR_INPUT, 0,
                        "the samples of %s with %s are unreadable; 'kkttune db check' lists what "
                        "is wrong",
                        row->id.kernel, row->id.config);
    kkt_counter_list counters = {0};
    status = kkt_db_read_counters(w->db, row->run_id, &counters, err);
    if (status != KKT_OK) {
        kkt_counter_list_free(&counters);
        return status;
    }
    size_t provenance = number_provenance(w, &row->build, &row->run);
    kkt_text_printf(w->out, "{\"p\":%zu", provenance);
    add_candidate(w->out, &row->id, &row->build);
    add_run(w->out, &row->run, &counters, row->samples_json);
    kkt_counter_list_free(&counters);
    kkt_text_add(w->out, "}\n");
    w->rows++;
    return KKT_OK;
}

static bool is_wanted(const writer *w, const kkt_pipeline_record *record) {
    return w->replayed || record->run.provenance == KKT_MEASURED;
}

static kkt_status look_for_pipeline(void *context, const kkt_pipeline_record *record,
                                    kkt_error *err) {
    (void)err;
    writer *w = context;
    w->has_pipelines = w->has_pipelines || is_wanted(w, record);
    return KKT_OK;
}

static kkt_status write_pipeline(void *context, const kkt_pipeline_record *record, kkt_error *err) {
    writer *w = context;
    static const kkt_counter_list none = {0};
    if (!is_wanted(w, record))
        return KKT_OK;
    kkt_status status = start(w, record->arch, record->device, err);
    if (status != KKT_OK)
        return status;
    if (!samples_sound(&record->run, record->samples_json))
        return kkt_fail(err, KKT_ERR_INPUT, 0,
                        "the samples of pipeline %s with %s are unreadable; 'kkttune db check' "
                        "lists what is wrong",
                        record->pipeline, record->problem);
    size_t numbers[KKT_PIPELINE_MEMBERS_MAX];
    for (size_t i = 0; i < record->member_count; i++)
        numbers[i] = number_provenance(w, &record->members[i].build, NULL);
    kkt_text_printf(w->out, "{\"p\":%zu", number_provenance(w, NULL, &record->run));
    add_text(w->out, "pipeline", record->pipeline);
    add_text(w->out, "problem", record->problem);
    add_int(w->out, "chunk", record->chunk);
    add_text(w->out, "launch", kkt_launch_order_name(record->order));
    kkt_text_add(w->out, ",\"members\":[");
    for (size_t i = 0; i < record->member_count; i++) {
        kkt_text_printf(w->out, "%s{\"p\":%zu", i > 0 ? "," : "", numbers[i]);
        add_candidate(w->out, &record->members[i].id, &record->members[i].build);
        kkt_text_add(w->out, "}");
    }
    kkt_text_add(w->out, "]");
    add_run(w->out, &record->run, &none, record->samples_json);
    kkt_text_add(w->out, "}\n");
    w->rows++;
    return KKT_OK;
}

/* Pipelines belong to no style or configuration; by kernel they are asked for with their own name.
 */
static kkt_status
each_pipeline(writer *w, const kkt_result_filter *filter,
              kkt_status (*visit)(void *context, const kkt_pipeline_record *record, kkt_error *err),
              kkt_error *err) {
    static const kkt_result_filter any = {0};
    const kkt_result_filter *f = filter ? filter : &any;
    if (f->style || f->config)
        return KKT_OK;
    const kkt_pipeline_filter wanted = {f->kernel, f->arch, f->device, f->problem};
    return kkt_db_pipeline_runs(w->db, &wanted, NULL, visit, w, err);
}

kkt_status kkt_recording_export_text(kkt_db *db, const kkt_result_filter *filter, bool replayed,
                                     kkt_text *out, int64_t *rows, kkt_error *err) {
    writer w = {.db = db, .out = out, .replayed = replayed};
    kkt_status status = each_pipeline(&w, filter, look_for_pipeline, err);
    if (status == KKT_OK)
        status = kkt_db_each_run(db, filter, replayed, write_row, &w, err);
    if (status == KKT_OK)
        status = each_pipeline(&w, filter, write_pipeline, err);
    if (status == KKT_OK && w.rows == 0)
        status = kkt_fail(err, KKT_ERR_MISSING, 0,
                          "no measured rows match, so there is no recording to write");
    if (status == KKT_OK)
        kkt_text_printf(out, "{\"rows\":%lld}\n", (long long)w.rows);
    for (size_t i = 0; i < w.provenances.count; i++)
        free(w.provenances.keys[i]);
    free(w.provenances.keys);
    free(w.arch);
    free(w.device);
    *rows = w.rows;
    return status;
}

kkt_status kkt_recording_export(kkt_db *db, const kkt_result_filter *filter, const char *path,
                                int64_t *rows, kkt_error *err) {
    kkt_text text = {0};
    kkt_status status = kkt_recording_export_text(db, filter, false, &text, rows, err);
    if (status == KKT_OK)
        status = kkt_file_write(path, text.data, text.length, err);
    kkt_text_free(&text);
    return status;
}
