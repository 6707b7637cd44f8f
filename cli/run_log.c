#include "cli/run_log.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/version.h"

struct kkt_run_log {
    FILE *file;
    char *path;
    double begun_s;
    bool failed;
};

/* Each line is there for whoever follows the file, and after a crash. */
static void write_line(kkt_run_log *log, kkt_json *line) {
    char *text = kkt_json_print(line, false);
    bool wrote = fprintf(log->file, "%s\n", text) > 0 && fflush(log->file) == 0;
    log->failed = log->failed || !wrote;
    free(text);
    kkt_json_close(line);
}

static void add_known_real(kkt_json *line, const char *key, double value) {
    if (isfinite(value)) {
        kkt_json_add_real(line, key, value);
    }
}

static void add_known_string(kkt_json *line, const char *key, const char *value) {
    if (value && *value) {
        kkt_json_add_string(line, key, value);
    }
}

static void add_known_int(kkt_json *line, const char *key, int64_t value) {
    if (value >= 0) {
        kkt_json_add_int(line, key, value);
    }
}

kkt_status kkt_run_log_open(const char *path, kkt_run_log **out, kkt_error *err) {
    FILE *file = fopen(path, "we");
    if (!file) {
        return kkt_fail_errno(err, KKT_ERR_ENVIRONMENT, errno, "cannot write the log '%s'", path);
    }
    kkt_run_log *log = calloc(1, sizeof *log);
    if (!log) {
        fclose(file);
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "out of memory");
    }
    log->file = file;
    log->path = strdup(path);
    log->begun_s = kkt_clock_seconds();
    *out = log;
    return KKT_OK;
}

void kkt_run_log_begin(kkt_run_log *log, const kkt_session_options *options) {
    kkt_text policy = {0};
    if (!log) {
        return;
    }
    kkt_json *line = kkt_json_object();
    kkt_json_add_string(line, "schema", "kkttune.log/1");
    kkt_json_add_string(line, "step", "begin");
    kkt_json_add_string(line, "version", KKT_VERSION);
    kkt_json_add_string(line, "arch", options->arch->name);
    kkt_json_add_string(line, "device", options->device->name);
    kkt_json_add_string(line, "device_name", options->device->full_name);
    kkt_policy_format(&options->policy, &policy);
    kkt_json_add_string(line, "policy", kkt_text_get(&policy));
    kkt_text_free(&policy);
    write_line(log, line);
}

static kkt_json *new_line(const kkt_run_log *log, const char *step) {
    kkt_json *line = kkt_json_object();
    kkt_json_add_real(line, "seconds", kkt_clock_seconds() - log->begun_s);
    kkt_json_add_string(line, "step", step);
    return line;
}

void kkt_run_log_event(kkt_run_log *log, const kkt_session_event *event) {
    if (!log) {
        return;
    }
    const kkt_run_record *run = event->run;
    kkt_json *line = new_line(log, event->step);
    kkt_json_add_string(line, "kernel", event->id->kernel);
    kkt_json_add_string(line, "style", event->id->style);
    kkt_json_add_string(line, "problem", event->id->problem);
    kkt_json_add_string(line, "config", event->id->config);
    kkt_json_add_string(line, "outcome", kkt_outcome_name(event->outcome));
    add_known_string(line, "reason", event->reason);
    add_known_real(line, "predicted_us", event->predicted_us);
    add_known_real(line, "time_us", event->time_us);
    if (run) {
        add_known_real(line, "time_low_us", run->time_low_us);
        add_known_real(line, "time_high_us", run->time_high_us);
        add_known_int(line, "samples", run->sample_count);
        add_known_int(line, "outliers", run->outliers);
        add_known_int(line, "throttled", run->throttled);
        add_known_real(line, "energy_mj", run->energy_mj);
        add_known_real(line, "rel_fro", run->rel_fro);
        add_known_string(line, "throttle", run->throttle);
        add_known_string(line, "disturbed", run->disturbed);
    }
    write_line(log, line);
}

void kkt_run_log_note(kkt_run_log *log, const char *text) {
    if (log) {
        kkt_json *line = new_line(log, "note");
        kkt_json_add_string(line, "note", text);
        write_line(log, line);
    }
}

kkt_status kkt_run_log_end(kkt_run_log *log, const kkt_session_summary *summary, kkt_error *err) {
    if (!log) {
        return KKT_OK;
    }
    kkt_json *line = new_line(log, "end");
    kkt_json_add_string(line, "tier", kkt_tier_name(summary->tier));
    kkt_json_add_int(line, "measured", summary->counts.measured);
    kkt_json_add_int(line, "reused", summary->counts.reused);
    kkt_json_add_bool(line, "interrupted", summary->interrupted);
    write_line(log, line);
    if (!log->failed) {
        return KKT_OK;
    }
    return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0,
                    "the log '%s' is not complete: some line could not be written; the results "
                    "are in the database",
                    log->path);
}

void kkt_run_log_close(kkt_run_log *log) {
    if (log) {
        fclose(log->file);
        free(log->path);
        free(log);
    }
}
