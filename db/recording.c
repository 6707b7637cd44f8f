#include "db/recording.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "db/rows.h"

#define RECORDING_LIMIT ((size_t)256 << 20) /* bytes of one file */
#define PROVENANCES_MAX 65536
#define SAMPLES_MAX 1000000
#define COUNTERS_MAX 256  /* of a run */
#define REGISTERS_MAX 255 /* of a thread, on every architecture */
#define NO_RECORDING "not a recording (no schema kkttune.recording/1)"

/* One recording being read. Parsed lines of provenances stay open: rows borrow their strings. */
typedef struct reader {
    kkt_db *db;
    const char *name;
    int64_t line;
    kkt_json *header;
    const char *arch, *device;
    kkt_json **provenances;
    size_t provenance_count, provenance_capacity;
    int64_t rows;
    bool ended;
    bool storing; /* `savepoint` was begun: with the first row, so that what is refused before it
                     never touches the database */
    kkt_savepoint savepoint;
    float *samples; /* reused from row to row */
    size_t sample_capacity;
    kkt_counter_record counters[COUNTERS_MAX]; /* of the row being read; borrowed strings */
    size_t counter_count;
} reader;

static kkt_status malformed(const reader *r, const char *what, kkt_error *err) {
    return kkt_fail(err, KKT_ERR_INPUT, 0,
                    "recording '%s', line %lld: %s; nothing was imported from it", r->name,
                    (long long)r->line, what);
}

static kkt_status read_header(reader *r, kkt_json *line, kkt_error *err) {
    const char *schema = kkt_json_string(line, "schema");
    r->header = line;
    if (!schema || strncmp(schema, "kkttune.recording/", 18) != 0)
        return malformed(r, NO_RECORDING, err);
    if (strcmp(schema, "kkttune.recording/1") != 0 && strcmp(schema, "kkttune.recording/2") != 0)
        return malformed(r, "written by a newer kkttune: this one reads kkttune.recording/1 and /2",
                         err);
    r->arch = kkt_json_string(line, "arch");
    r->device = kkt_json_string(line, "device");
    if (!r->arch || !r->device || !*r->arch || !*r->device)
        return malformed(r, "the header names no arch or no device", err);
    return KKT_OK;
}

/* A SHA-256 as it is written everywhere. */
static bool is_hash(const char *text) {
    return strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64;
}

static kkt_status keep_provenance(reader *r, kkt_json *line, kkt_error *err) {
    int64_t number = -1;
    bool numbered = kkt_json_int(line, "provenance", &number);
    if (!numbered || number != (int64_t)r->provenance_count || number >= PROVENANCES_MAX) {
        kkt_json_close(line);
        return malformed(r, "provenances are not numbered from 0 in order", err);
    }
    const char *hash = kkt_json_string(line, "kernel_hash");
    if (hash && !is_hash(hash)) {
        kkt_json_close(line);
        return malformed(r, "'kernel_hash' is not 64 hex digits", err);
    }
    if (r->provenance_count == r->provenance_capacity) {
        size_t capacity = r->provenance_capacity * 2 + 8;
        kkt_json **grown = realloc(r->provenances, capacity * sizeof(kkt_json *));
        if (!grown) {
            kkt_json_close(line);
            return kkt_fail(err, KKT_ERR_ENVIRONMENT, ENOMEM, "out of memory");
        }
        r->provenances = grown;
        r->provenance_capacity = capacity;
    }
    r->provenances[r->provenance_count++] = line;
    return KKT_OK;
}

/* ---- members; one that is there but of another type is an error, not unknown ---- */

typedef struct fields {
    const kkt_json *object;
    const char *bad; /* the first member of a wrong type */
} fields;

static const char *text_of(fields *f, const char *key) {
    const char *text = kkt_json_string(f->object, key);
    if (!text && kkt_json_get(f->object, key) && !f->bad)
        f->bad = key;
    return text;
}

static int64_t int_of(fields *f, const char *key, int64_t most) {
    int64_t value = KKT_UNKNOWN_INT;
    if (!kkt_json_get(f->object, key))
        return KKT_UNKNOWN_INT;
    if ((!kkt_json_int(f->object, key, &value) || value < 0 || value > most) && !f->bad)
        f->bad = key;
    return value;
}

static double real_of(fields *f, const char *key) {
    double value = KKT_UNKNOWN_REAL;
    if (kkt_json_get(f->object, key) && !kkt_json_real(f->object, key, &value) && !f->bad)
        f->bad = key;
    return value;
}

static kkt_outcome outcome_of(fields *f) {
    kkt_outcome outcome = KKT_OUTCOME_PREDICTED;
    if (!kkt_outcome_parse(kkt_json_string(f->object, "outcome"), &outcome) && !f->bad)
        f->bad = "outcome";
    return outcome;
}

static kkt_build_record build_of(fields *f, fields *provenance) {
    const int64_t most = (int64_t)1 << 40;
    return (kkt_build_record){
        .kernel_hash = text_of(provenance, "kernel_hash"),
        .compiler = text_of(provenance, "compiler"),
        .options = text_of(f, "options"),
        .outcome = outcome_of(f),
        .log = text_of(f, "log"),
        .registers = (int)int_of(f, "registers", REGISTERS_MAX),
        .static_smem_bytes = int_of(f, "static_smem_bytes", most),
        .dynamic_smem_bytes = int_of(f, "dynamic_smem_bytes", most),
        .spill_store_bytes = int_of(f, "spill_store_bytes", most),
        .spill_load_bytes = int_of(f, "spill_load_bytes", most),
        .stack_bytes = int_of(f, "stack_bytes", most),
        .barriers = (int)int_of(f, "barriers", 65536),
        .cubin_bytes = int_of(f, "cubin_bytes", most),
        .compile_ms = real_of(f, "compile_ms"),
    };
}

static kkt_run_record run_of(fields *f, fields *provenance) {
    return (kkt_run_record){
        .provenance = KKT_REPLAYED,
        .outcome = outcome_of(f),
        .reason = text_of(f, "reason"),
        .gpu = text_of(provenance, "gpu"),
        .driver = text_of(provenance, "driver"),
        .policy = text_of(provenance, "policy"),
        .tool_version = text_of(provenance, "tool_version"),
        .date = text_of(f, "date"),
        .time_us = real_of(f, "time_us"),
        .time_low_us = real_of(f, "time_low_us"),
        .time_high_us = real_of(f, "time_high_us"),
        .sample_count = int_of(f, "sample_count", SAMPLES_MAX),
        .rel_fro = real_of(f, "rel_fro"),
        .max_abs = real_of(f, "max_abs"),
        .growth = real_of(f, "growth"),
        .tolerance = real_of(f, "tolerance"),
        .sm_clock_mhz = real_of(f, "sm_clock_mhz"),
        .memory_clock_mhz = real_of(f, "memory_clock_mhz"),
        .temperature_c = real_of(f, "temperature_c"),
        .power_w = real_of(f, "power_w"),
        .throttle = text_of(f, "throttle"),
        .hbm_bytes_counted = real_of(f, "hbm_bytes_counted"),
        .counters_note = text_of(f, "counters_note"),
        .energy_mj = real_of(f, "energy_mj"),
        .outliers = int_of(f, "outliers", SAMPLES_MAX),
        .throttled = int_of(f, "throttled", SAMPLES_MAX),
        .disturbed = text_of(f, "disturbed"),
    };
}

/* Samples of a row into the reader's buffer; false where they are not finite numbers of the
 * number announced. */
static bool read_samples(reader *r, const kkt_json *array, kkt_run_record *run) {
    if (!array)
        return true;
    size_t count = kkt_json_count(array);
    if (!kkt_json_is_array(array) || count > SAMPLES_MAX || (int64_t)count != run->sample_count)
        return false;
    if (count >= r->sample_capacity) {
        float *grown = realloc(r->samples, (count + 1) * 2 * sizeof *grown);
        if (!grown)
            return false;
        r->samples = grown;
        r->sample_capacity = (count + 1) * 2;
    }
    size_t at = 0;
    for (const kkt_json *v = kkt_json_first(array); v; v = kkt_json_next(v)) {
        double value = 0;
        if (!kkt_json_as_real(v, &value) || !isfinite((float)value))
            return false;
        r->samples[at++] = (float)value;
    }
    run->samples_us = r->samples;
    return true;
}

/* Counters of a row into the reader; false where one lacks a name, a unit or a finite value. */
static bool read_counters(reader *r, const kkt_json *run) {
    const kkt_json *array = kkt_json_get(run, "counters");
    const char *chip = kkt_json_string(run, "chip");
    r->counter_count = 0;
    if (!array)
        return true;
    if (!kkt_json_is_array(array) || kkt_json_count(array) > COUNTERS_MAX || !chip)
        return false;
    for (const kkt_json *v = kkt_json_first(array); v; v = kkt_json_next(v)) {
        kkt_counter_record *counter = &r->counters[r->counter_count++];
        *counter = (kkt_counter_record){
            .name = kkt_json_string(v, "name"), .unit = kkt_json_string(v, "unit"), .chip = chip};
        if (!counter->name || !*counter->name || !counter->unit ||
            !kkt_json_real(v, "value", &counter->value) || !isfinite(counter->value))
            return false;
    }
    return true;
}

/* The first row begins to store. */
static kkt_status begin_storing(reader *r, kkt_error *err) {
    if (r->storing)
        return KKT_OK;
    kkt_status status = kkt_savepoint_begin(r->db, &r->savepoint, err);
    r->storing = status == KKT_OK;
    return status;
}

static kkt_status store_row(reader *r, const kkt_identity *id, const kkt_build_record *build,
                            const kkt_run_record *run, kkt_error *err) {
    int64_t candidate = 0, build_id = 0, run_id = 0;
    bool added = false;
    kkt_status status = begin_storing(r, err);
    if (status == KKT_OK)
        status = kkt_db_candidate(r->db, id, &candidate, err);
    if (status == KKT_OK)
        status = kkt_db_keep_build(r->db, candidate, build, &build_id, &added, err);
    if (status == KKT_OK)
        status = kkt_db_keep_run(r->db, build_id, run, NULL, &run_id, &added, err);
    if (status == KKT_OK)
        status = kkt_db_keep_counters(r->db, run_id, r->counters, r->counter_count,
                                      run->hbm_bytes_counted, run->counters_note, err);
    return status;
}

static kkt_status bad_member(const reader *r, const char *name, kkt_error *err) {
    char what[80];
    snprintf(what, sizeof what, "'%s' is missing or no such value", name);
    return malformed(r, what, err);
}

/* The provenance that an object names by "p"; NULL where there is none. */
static const kkt_json *provenance_of(const reader *r, const kkt_json *object) {
    int64_t number = -1;
    if (!kkt_json_int(object, "p", &number) || number < 0 || number >= (int64_t)r->provenance_count)
        return NULL;
    return r->provenances[number];
}

/* What a row, or a member of a pipeline's, says of its candidate and build. */
static kkt_status read_candidate(const reader *r, const kkt_json *object, kkt_identity *id,
                                 kkt_build_record *build, kkt_error *err) {
    fields row = {object, NULL}, build_fields = {kkt_json_get(object, "build"), NULL};
    fields provenance = {provenance_of(r, object), NULL};
    if (!provenance.object)
        return malformed(r, "the row names no provenance that is given before it", err);
    if (!kkt_json_is_object(build_fields.object))
        return malformed(r, "the row has no build or no run", err);
    *id = (kkt_identity){.kernel = text_of(&row, "kernel"),
                         .style = text_of(&row, "style"),
                         .arch = r->arch,
                         .device = r->device,
                         .problem = text_of(&row, "problem"),
                         .config = text_of(&row, "config")};
    if (!id->kernel || !id->style || !id->problem || !id->config || !*id->kernel || !*id->style ||
        !kkt_canonical_valid(id->problem) || !kkt_canonical_valid(id->config))
        return malformed(r, "kernel, style, problem or config is missing or not canonical", err);
    *build = build_of(&build_fields, &provenance);
    const char *bad = build_fields.bad ? build_fields.bad : provenance.bad;
    return bad ? bad_member(r, bad, err) : KKT_OK;
}

/* The run of a row, with its samples and counters. */
static kkt_status read_run(reader *r, const kkt_json *line, kkt_run_record *run, kkt_error *err) {
    fields run_fields = {kkt_json_get(line, "run"), NULL};
    fields provenance = {provenance_of(r, line), NULL};
    if (!provenance.object)
        return malformed(r, "the row names no provenance that is given before it", err);
    if (!kkt_json_is_object(run_fields.object))
        return malformed(r, "the row has no build or no run", err);
    *run = run_of(&run_fields, &provenance);
    const char *bad = run_fields.bad ? run_fields.bad : provenance.bad;
    if (!bad && (run->time_us < run->time_low_us || run->time_us > run->time_high_us))
        bad = "time_us";
    if (!bad && run->energy_mj <= 0)
        bad = "energy_mj";
    if (!bad && (run->outliers > run->sample_count || run->throttled > run->sample_count))
        bad = run->outliers > run->sample_count ? "outliers" : "throttled";
    if (!bad && !read_samples(r, kkt_json_get(run_fields.object, "samples_us"), run))
        bad = "samples_us";
    if (!bad && !read_counters(r, run_fields.object))
        bad = "counters";
    return bad ? bad_member(r, bad, err) : KKT_OK;
}

static kkt_status read_row(reader *r, const kkt_json *line, kkt_error *err) {
    kkt_identity id;
    kkt_build_record build;
    kkt_run_record run;
    kkt_status status = read_candidate(r, line, &id, &build, err);
    if (status == KKT_OK)
        status = read_run(r, line, &run, err);
    if (status != KKT_OK)
        return status;
    r->rows++;
    return store_row(r, &id, &build, &run, err);
}

/* A whole pipeline: its members are builds of candidates, and one run is of them all. */
static kkt_status read_pipeline(reader *r, const kkt_json *line, kkt_error *err) {
    fields row = {line, NULL};
    kkt_pipeline_record record = {.pipeline = text_of(&row, "pipeline"),
                                  .problem = text_of(&row, "problem"),
                                  .arch = r->arch,
                                  .device = r->device};
    const kkt_json *members = kkt_json_get(line, "members");
    if (!kkt_json_int(line, "chunk", &record.chunk) || record.chunk < 1)
        return bad_member(r, "chunk", err);
    if (!kkt_launch_order_parse(kkt_json_string(line, "launch"), &record.order))
        return bad_member(r, "launch", err);
    if (!record.pipeline || !*record.pipeline)
        return bad_member(r, "pipeline", err);
    if (!record.problem || !kkt_canonical_valid(record.problem))
        return bad_member(r, "problem", err);
    if (!members || !kkt_json_is_array(members) || kkt_json_count(members) == 0 ||
        kkt_json_count(members) > KKT_PIPELINE_MEMBERS_MAX)
        return bad_member(r, "members", err);
    kkt_status status = read_run(r, line, &record.run, err);
    for (const kkt_json *v = kkt_json_first(members); v && status == KKT_OK; v = kkt_json_next(v)) {
        kkt_member_record *member = &record.members[record.member_count++];
        status = kkt_json_is_object(v) ? read_candidate(r, v, &member->id, &member->build, err)
                                       : bad_member(r, "members", err);
    }
    int64_t run_id = 0;
    bool added = false;
    if (status == KKT_OK)
        status = begin_storing(r, err);
    if (status == KKT_OK)
        status = kkt_db_keep_pipeline_run(r->db, &record, &run_id, &added, err);
    r->rows += status == KKT_OK;
    return status;
}

/* A line that cannot be parsed. The first one: a file of another kind, most likely. */
static kkt_status broken_line(const reader *r, kkt_status status, kkt_error *err) {
    if (status != KKT_ERR_INPUT || !err)
        return status;
    if (!r->header)
        return malformed(r, NO_RECORDING, err);
    return kkt_fail(err, status, err->native, "%s; nothing was imported from it", err->message);
}

static kkt_status read_line(reader *r, const char *text, size_t length, kkt_error *err) {
    if (r->ended)
        return malformed(r, "there is text after the last line", err);
    char name[300];
    snprintf(name, sizeof name, "%.250s, line %lld", r->name, (long long)r->line);
    kkt_json *line = NULL;
    kkt_status status = kkt_json_parse(text, length, name, &line, err);
    if (status != KKT_OK)
        return broken_line(r, status, err);
    if (!kkt_json_is_object(line)) {
        kkt_json_close(line);
        return malformed(r, r->header ? "not a JSON object" : NO_RECORDING, err);
    }
    if (!r->header)
        return read_header(r, line, err); /* keeps the line */
    if (kkt_json_get(line, "provenance"))
        return keep_provenance(r, line, err); /* keeps the line */
    int64_t rows = 0;
    if (kkt_json_get(line, "pipeline")) {
        status = read_pipeline(r, line, err);
    } else if (!kkt_json_get(line, "rows")) {
        status = read_row(r, line, err);
    } else {
        r->ended = true;
        if (!kkt_json_int(line, "rows", &rows) || rows != r->rows)
            status = malformed(r, "the row count does not match: lines are missing", err);
    }
    kkt_json_close(line);
    return status;
}

static kkt_status read_lines(reader *r, const char *text, size_t length, kkt_error *err) {
    const char *at = text, *end = text + length;
    kkt_status status = KKT_OK;
    while (status == KKT_OK && at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        r->line++;
        if (!stop)
            return malformed(r, "the file is truncated within this line", err);
        status = read_line(r, at, (size_t)(stop - at), err);
        at = stop + 1;
    }
    if (status == KKT_OK && !r->ended)
        status = malformed(r, "the file is truncated: the line with the row count is missing", err);
    return status;
}

static void close_reader(reader *r) {
    for (size_t i = 0; i < r->provenance_count; i++)
        kkt_json_close(r->provenances[i]);
    free(r->provenances);
    free(r->samples);
    kkt_json_close(r->header);
}

kkt_status kkt_recording_import_text(kkt_db *db, const char *name, const char *text, size_t length,
                                     int64_t *rows, kkt_error *err) {
    reader r = {.db = db, .name = name};
    *rows = 0;
    kkt_status status = read_lines(&r, text, length, err);
    if (r.storing)
        status = kkt_savepoint_end(db, r.savepoint, status, err);
    if (status == KKT_OK)
        *rows = r.rows;
    close_reader(&r);
    return status;
}

kkt_status kkt_recording_import(kkt_db *db, const char *path, int64_t *rows, kkt_error *err) {
    char *text = NULL;
    size_t length = 0;
    *rows = 0;
    kkt_status status = kkt_file_read(path, RECORDING_LIMIT, &text, &length, err);
    if (status == KKT_OK)
        status = kkt_recording_import_text(db, path, text, length, rows, err);
    free(text);
    return status;
}
