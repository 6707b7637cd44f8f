#include "db/store_sqlite.h"

#define TEXT(token) #token
#define TEXT_OF(macro) TEXT(macro)
#define APPLICATION_ID TEXT_OF(KKT_DB_APPLICATION_ID)
#define VERSION TEXT_OF(KKT_DB_SCHEMA_VERSION)

/* Says what the file is and which schema it has. */
static const char mark_sql[] =
    "PRAGMA application_id=" APPLICATION_ID "; PRAGMA user_version=" VERSION ";"
    "INSERT OR REPLACE INTO meta VALUES ('schema_version', '" VERSION "'),"
    " ('description', 'kkttune results, see docs/formats.md')";

typedef struct migration {
    int from; /* schema version it starts from; it leads to the next */
    const char *sql;
} migration;

/* Oldest first. Tables alone: the views are made anew afterwards. */
static const migration migrations[] = {
    /* Version 0, before the first release: no mark of staleness, no note on counters. */
    {0, "ALTER TABLE builds ADD COLUMN stale_reason TEXT;"
        "ALTER TABLE runs ADD COLUMN counters_note TEXT;"},
    /* Version 1 had no counters but the bytes. */
    {1, "CREATE TABLE counters (run_id INTEGER NOT NULL REFERENCES runs (id), name TEXT NOT NULL,"
        " value REAL NOT NULL, unit TEXT NOT NULL, chip TEXT NOT NULL, UNIQUE (run_id, name))"
        " STRICT;"},
    /* Version 2 knew no energy, and neither outliers nor what disturbed a timing. */
    {2, "ALTER TABLE runs ADD COLUMN energy_mj REAL;"
        "ALTER TABLE runs ADD COLUMN outliers INTEGER;"
        "ALTER TABLE runs ADD COLUMN throttled INTEGER;"
        "ALTER TABLE runs ADD COLUMN disturbed TEXT;"},
    /* Version 3 knew single kernels alone. */
    {3, "CREATE TABLE pipeline_runs (id INTEGER PRIMARY KEY, pipeline TEXT NOT NULL,"
        " problem TEXT NOT NULL, arch TEXT NOT NULL, device TEXT NOT NULL, chunk"
        " INTEGER NOT NULL, launch TEXT NOT NULL CHECK (launch IN ('in_order',"
        " 'overlapped')), provenance TEXT NOT NULL CHECK (provenance IN ('measured',"
        " 'replayed')), outcome TEXT NOT NULL, reason TEXT, gpu TEXT, driver TEXT,"
        " date TEXT, policy TEXT, tool_version TEXT, time_us REAL, time_low_us REAL,"
        " time_high_us REAL, sample_count INTEGER NOT NULL CHECK (sample_count >= 0),"
        " rel_fro REAL, max_abs REAL, growth REAL, tolerance REAL, sm_clock_mhz REAL,"
        " memory_clock_mhz REAL, temperature_c REAL, power_w REAL, throttle TEXT,"
        " hbm_bytes_counted REAL, counters_note TEXT, energy_mj REAL, outliers"
        " INTEGER, throttled INTEGER, disturbed TEXT, times_us TEXT) STRICT;"
        "CREATE TABLE pipeline_members (pipeline_run_id INTEGER NOT NULL REFERENCES"
        " pipeline_runs (id), place INTEGER NOT NULL CHECK (place >= 0), build_id"
        " INTEGER NOT NULL REFERENCES builds (id), UNIQUE (pipeline_run_id, place))"
        " STRICT;"},
};

static kkt_status upgrade(kkt_db *db, int64_t version, kkt_error *err) {
    kkt_status status = KKT_OK;
    size_t count = sizeof migrations / sizeof migrations[0];
    for (size_t i = 0; status == KKT_OK && i < count; i++) {
        if (migrations[i].from >= version)
            status = kkt_db_exec(db, migrations[i].sql, err);
    }
    if (status == KKT_OK)
        status = kkt_db_exec(db,
                             "DROP VIEW IF EXISTS pipelines; DROP VIEW IF EXISTS results;"
                             " DROP VIEW IF EXISTS best_runs",
                             err);
    return status;
}

/* The version is read again inside the transaction: another process may have been faster. */
static kkt_status migrate_locked(kkt_db *db, kkt_error *err) {
    int64_t version = 0, objects = 0;
    kkt_status status = kkt_db_query_int(db, "PRAGMA user_version", &version, err);
    if (status == KKT_OK)
        status = kkt_db_query_int(db, "SELECT count(*) FROM sqlite_schema", &objects, err);
    if (status != KKT_OK || (objects > 0 && version >= KKT_DB_SCHEMA_VERSION))
        return status;
    status = objects == 0 ? kkt_db_exec(db, kkt_sql_schema, err) : upgrade(db, version, err);
    if (status == KKT_OK)
        status = kkt_db_exec(db, kkt_sql_views, err);
    if (status != KKT_OK)
        return status;
    return kkt_db_exec(db, mark_sql, err);
}

kkt_status kkt_db_migrate(kkt_db *db, kkt_error *err) {
    kkt_status status = kkt_db_begin(db, err);
    if (status != KKT_OK)
        return status;
    return kkt_db_scope_end(db, true, migrate_locked(db, err), err);
}
