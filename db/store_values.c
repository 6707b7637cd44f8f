#include "db/store_sqlite.h"

#include <limits.h>
#include <math.h>

void kkt_bind_text(sqlite3_stmt *statement, int index, const char *text) {
    if (text)
        sqlite3_bind_text(statement, index, text, -1, SQLITE_STATIC);
    else
        sqlite3_bind_null(statement, index);
}

void kkt_bind_key(sqlite3_stmt *statement, int index, const char *text) {
    kkt_bind_text(statement, index, text ? text : "");
}

void kkt_bind_int(sqlite3_stmt *statement, int index, int64_t value) {
    if (value >= 0)
        sqlite3_bind_int64(statement, index, value);
    else
        sqlite3_bind_null(statement, index);
}

void kkt_bind_real(sqlite3_stmt *statement, int index, double value) {
    if (isfinite(value))
        sqlite3_bind_double(statement, index, value);
    else
        sqlite3_bind_null(statement, index);
}

void kkt_bind_filter(sqlite3_stmt *statement, const kkt_result_filter *filter) {
    kkt_bind_text(statement, 1, filter->kernel);
    kkt_bind_text(statement, 2, filter->style);
    kkt_bind_text(statement, 3, filter->arch);
    kkt_bind_text(statement, 4, filter->device);
    kkt_bind_text(statement, 5, filter->problem);
    kkt_bind_text(statement, 6, filter->config);
}

const char *kkt_column_text(sqlite3_stmt *statement, int column) {
    return (const char *)sqlite3_column_text(statement, column);
}

const char *kkt_column_key(sqlite3_stmt *statement, int column) {
    const char *text = kkt_column_text(statement, column);
    return text && *text ? text : NULL;
}

int64_t kkt_column_int(sqlite3_stmt *statement, int column) {
    if (sqlite3_column_type(statement, column) == SQLITE_NULL)
        return KKT_UNKNOWN_INT;
    return sqlite3_column_int64(statement, column);
}

int kkt_column_small(sqlite3_stmt *statement, int column) {
    int64_t value = kkt_column_int(statement, column);
    return value > INT_MAX ? INT_MAX : value < KKT_UNKNOWN_INT ? KKT_UNKNOWN_INT : (int)value;
}

double kkt_column_real(sqlite3_stmt *statement, int column) {
    if (sqlite3_column_type(statement, column) == SQLITE_NULL)
        return KKT_UNKNOWN_REAL;
    double value = sqlite3_column_double(statement, column);
    return isfinite(value) ? value : KKT_UNKNOWN_REAL; /* what is not is never stored */
}

bool kkt_read_identity(sqlite3_stmt *statement, int at, kkt_identity *out) {
    *out = (kkt_identity){
        .kernel = kkt_column_text(statement, at),
        .style = kkt_column_text(statement, at + 1),
        .arch = kkt_column_text(statement, at + 2),
        .device = kkt_column_text(statement, at + 3),
        .problem = kkt_column_text(statement, at + 4),
        .config = kkt_column_text(statement, at + 5),
    };
    return out->kernel && out->style && out->arch && out->device && out->problem && out->config;
}

void kkt_read_prediction(sqlite3_stmt *statement, int at, kkt_prediction_record *out) {
    *out = (kkt_prediction_record){
        .model_version = kkt_column_text(statement, at),
        .registers = kkt_column_small(statement, at + 1),
        .smem_bytes = kkt_column_int(statement, at + 2),
        .hbm_bytes = kkt_column_real(statement, at + 3),
        .hbm_bytes_per_token = kkt_column_real(statement, at + 4),
        .blocks_per_sm = kkt_column_small(statement, at + 5),
        .feasible = sqlite3_column_int(statement, at + 6) != 0,
        .spills = sqlite3_column_int(statement, at + 7) != 0,
        .calibrated = sqlite3_column_int(statement, at + 8) != 0,
        .limiter = kkt_column_text(statement, at + 9),
        .reason = kkt_column_text(statement, at + 10),
        .chain_steps = kkt_column_real(statement, at + 11),
        .lower_bound_us = kkt_column_real(statement, at + 12),
        .predicted_us = kkt_column_real(statement, at + 13),
    };
}

bool kkt_read_build(sqlite3_stmt *statement, int at, kkt_build_record *out) {
    *out = (kkt_build_record){
        .kernel_hash = kkt_column_key(statement, at),
        .options = kkt_column_key(statement, at + 1),
        .compiler = kkt_column_key(statement, at + 2),
        .log = kkt_column_text(statement, at + 4),
        .registers = kkt_column_small(statement, at + 5),
        .static_smem_bytes = kkt_column_int(statement, at + 6),
        .dynamic_smem_bytes = kkt_column_int(statement, at + 7),
        .spill_store_bytes = kkt_column_int(statement, at + 8),
        .spill_load_bytes = kkt_column_int(statement, at + 9),
        .stack_bytes = kkt_column_int(statement, at + 10),
        .barriers = kkt_column_small(statement, at + 11),
        .cubin_bytes = kkt_column_int(statement, at + 12),
        .compile_ms = kkt_column_real(statement, at + 13),
    };
    return kkt_outcome_parse(kkt_column_text(statement, at + 3), &out->outcome);
}

bool kkt_read_run(sqlite3_stmt *statement, int at, kkt_run_record *out) {
    *out = (kkt_run_record){
        .reason = kkt_column_text(statement, at + 2),
        .gpu = kkt_column_text(statement, at + 3),
        .driver = kkt_column_text(statement, at + 4),
        .date = kkt_column_text(statement, at + 5),
        .policy = kkt_column_text(statement, at + 6),
        .tool_version = kkt_column_text(statement, at + 7),
        .time_us = kkt_column_real(statement, at + 8),
        .time_low_us = kkt_column_real(statement, at + 9),
        .time_high_us = kkt_column_real(statement, at + 10),
        .sample_count = kkt_column_int(statement, at + 11),
        .rel_fro = kkt_column_real(statement, at + 12),
        .max_abs = kkt_column_real(statement, at + 13),
        .growth = kkt_column_real(statement, at + 14),
        .tolerance = kkt_column_real(statement, at + 15),
        .sm_clock_mhz = kkt_column_real(statement, at + 16),
        .memory_clock_mhz = kkt_column_real(statement, at + 17),
        .temperature_c = kkt_column_real(statement, at + 18),
        .power_w = kkt_column_real(statement, at + 19),
        .throttle = kkt_column_text(statement, at + 20),
        .hbm_bytes_counted = kkt_column_real(statement, at + 21),
        .counters_note = kkt_column_text(statement, at + 22),
        .energy_mj = kkt_column_real(statement, at + 23),
        .outliers = kkt_column_int(statement, at + 24),
        .throttled = kkt_column_int(statement, at + 25),
        .disturbed = kkt_column_text(statement, at + 26),
    };
    return kkt_provenance_parse(kkt_column_text(statement, at), &out->provenance) &&
           kkt_outcome_parse(kkt_column_text(statement, at + 1), &out->outcome);
}

void kkt_bind_run(sqlite3_stmt *statement, int at, const kkt_run_record *record) {
    kkt_bind_text(statement, at, kkt_provenance_name(record->provenance));
    kkt_bind_text(statement, at + 1, kkt_outcome_name(record->outcome));
    kkt_bind_text(statement, at + 2, record->reason);
    kkt_bind_text(statement, at + 3, record->gpu);
    kkt_bind_text(statement, at + 4, record->driver);
    kkt_bind_text(statement, at + 5, record->date);
    kkt_bind_text(statement, at + 6, record->policy);
    kkt_bind_text(statement, at + 7, record->tool_version);
    kkt_bind_real(statement, at + 8, record->time_us);
    kkt_bind_real(statement, at + 9, record->time_low_us);
    kkt_bind_real(statement, at + 10, record->time_high_us);
    sqlite3_bind_int64(statement, at + 11, record->sample_count > 0 ? record->sample_count : 0);
    kkt_bind_real(statement, at + 12, record->rel_fro);
    kkt_bind_real(statement, at + 13, record->max_abs);
    kkt_bind_real(statement, at + 14, record->growth);
    kkt_bind_real(statement, at + 15, record->tolerance);
    kkt_bind_real(statement, at + 16, record->sm_clock_mhz);
    kkt_bind_real(statement, at + 17, record->memory_clock_mhz);
    kkt_bind_real(statement, at + 18, record->temperature_c);
    kkt_bind_real(statement, at + 19, record->power_w);
    kkt_bind_text(statement, at + 20, record->throttle);
    kkt_bind_real(statement, at + 21, record->hbm_bytes_counted);
    kkt_bind_text(statement, at + 22, record->counters_note);
    kkt_bind_real(statement, at + 23, record->energy_mj > 0 ? record->energy_mj : KKT_UNKNOWN_REAL);
    kkt_bind_int(statement, at + 24, record->outliers);
    kkt_bind_int(statement, at + 25, record->throttled);
    kkt_bind_text(statement, at + 26, record->disturbed);
}
