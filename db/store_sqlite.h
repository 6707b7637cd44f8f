/* What the files store*.c share: the handle, its statements, and values in and out. The only
 * header that includes SQLite's. */
#ifndef KKT_DB_STORE_SQLITE_H
#define KKT_DB_STORE_SQLITE_H

#include <sqlite3.h>

#include "base/text.h"
#include "db/store.h"

#define KKT_DB_APPLICATION_ID 0x6b6b7474 /* "kktt" */
#define KKT_DB_SCHEMA_VERSION 4
#define KKT_DB_BUSY_MS 30000
#define KKT_DB_CACHED 96 /* distinct statements kept prepared */

typedef struct kkt_cached_statement {
    const char *sql; /* a string literal: its address is the key */
    sqlite3_stmt *statement;
} kkt_cached_statement;

struct kkt_db {
    sqlite3 *handle;
    char *path;
    bool wal, has_checks;
    const char *note;
    kkt_cached_statement cached[KKT_DB_CACHED];
    size_t cached_count;
    const kkt_freshness *freshness; /* of the kkt_db_results in progress */
};

/* A way in which rows mean nothing: the statement that gives a text for each such row (NULL: it is
 * found otherwise), and the one that takes them out. They use the functions of kkt_db_add_checks.
 */
typedef struct kkt_db_rule {
    const char *check, *mend;
} kkt_db_rule;
extern const kkt_db_rule kkt_db_rules[]; /* in the order of mending; the last has no `mend` */

/* The text of schema.sql and views.sql. */
extern const char kkt_sql_schema[];
extern const char kkt_sql_views[];

/* One sentence for an SQLite code: locked, full, read-only, damaged, not a database, ... */
kkt_status kkt_db_fail(const kkt_db *db, int code, kkt_error *err);
kkt_status kkt_db_exec(kkt_db *db, const char *sql, kkt_error *err);
/* A new statement, finalised by the caller; or one that is kept with the handle. A kept one is
 * reset by kkt_db_step_done; `sql` must then be a string literal. */
kkt_status kkt_db_prepare(kkt_db *db, const char *sql, sqlite3_stmt **out, kkt_error *err);
kkt_status kkt_db_cached(kkt_db *db, const char *sql, sqlite3_stmt **out, kkt_error *err);
/* Runs a kept statement that gives no rows, and resets it. */
kkt_status kkt_db_step_done(kkt_db *db, sqlite3_stmt *statement, kkt_error *err);
/* Runs a kept statement that gives at most one integer, and resets it; `*found` says whether. */
kkt_status kkt_db_step_int(kkt_db *db, sqlite3_stmt *statement, int64_t *out, bool *found,
                           kkt_error *err);
/* The integer of a query without parameters. */
kkt_status kkt_db_query_int(kkt_db *db, const char *sql, int64_t *out, kkt_error *err);

/* A put's own transaction, or none where the caller has one open. `flushed`: its commit also
 * survives a power cut. */
kkt_status kkt_db_scope_begin(kkt_db *db, bool flushed, bool *own, kkt_error *err);
kkt_status kkt_db_scope_end(kkt_db *db, bool own, kkt_status status, kkt_error *err);

/* Registers the SQL function that computes staleness; once a handle. */
kkt_status kkt_db_add_functions(kkt_db *db, kkt_error *err);
/* Registers canonical(text), outcome(name) and samples(json, count): 1 where sound, else 0. */
kkt_status kkt_db_add_checks(kkt_db *db, kkt_error *err);
/* What kkt_db_check says of the rows' meaning alone: its first finding, nothing where all is well.
 */
kkt_status kkt_db_check_meaning(kkt_db *db, kkt_text *first, kkt_error *err);
/* Makes the tables of a new database, or brings an older one up to date, in one transaction. */
kkt_status kkt_db_migrate(kkt_db *db, kkt_error *err);
/* "process 4711 (kkttune)", or "another process" where the kernel does not tell who has locked the
 * database for writing. */
void kkt_db_lock_holder(const char *path, char *out, size_t size);
/* Name of a network file system by its statfs magic number; NULL for a local one. */
const char *kkt_db_network_filesystem(long magic);

/* Values: unknown (NaN, infinite, negative, NULL) is SQL's NULL. Texts are borrowed until the
 * statement has run. */
void kkt_bind_text(sqlite3_stmt *statement, int index, const char *text);
void kkt_bind_key(sqlite3_stmt *statement, int index, const char *text); /* NULL is '' */
void kkt_bind_int(sqlite3_stmt *statement, int index, int64_t value);
void kkt_bind_real(sqlite3_stmt *statement, int index, double value);
const char *kkt_column_text(sqlite3_stmt *statement, int column);
const char *kkt_column_key(sqlite3_stmt *statement, int column); /* '' is NULL */
int64_t kkt_column_int(sqlite3_stmt *statement, int column);
int kkt_column_small(sqlite3_stmt *statement, int column); /* clamped to int */
double kkt_column_real(sqlite3_stmt *statement, int column);

/* Columns of a record, in the order these functions read them from column `at` on. Each gives
 * false where an outcome or provenance is no known name, or a text is missing that the schema
 * promises: the pages of a damaged file keep no promise. */
#define KKT_IDENTITY_COLUMNS "p.kernel, g.style, c.arch, c.device, p.text, g.text"
#define KKT_IDENTITY_COUNT 6
#define KKT_PREDICTION_COLUMNS                                                                     \
    "d.model_version, d.registers, d.smem_bytes, d.hbm_bytes, d.hbm_bytes_per_token, "             \
    "d.blocks_per_sm, d.feasible, d.spills, d.calibrated, d.limiter, d.reason, d.chain_steps, "    \
    "d.lower_bound_us, d.predicted_us"
#define KKT_PREDICTION_COUNT 14
#define KKT_BUILD_COLUMNS                                                                          \
    "b.kernel_hash, b.options, b.compiler, b.outcome, b.log, b.registers, b.static_smem_bytes, "   \
    "b.dynamic_smem_bytes, b.spill_store_bytes, b.spill_load_bytes, b.stack_bytes, b.barriers, "   \
    "b.cubin_bytes, b.compile_ms"
#define KKT_BUILD_COUNT 14
#define KKT_RUN_COLUMNS_OF(t)                                                                      \
    t ".provenance, " t ".outcome, " t ".reason, " t ".gpu, " t ".driver, " t ".date, " t          \
      ".policy, " t ".tool_version, " t ".time_us, " t ".time_low_us, " t ".time_high_us, " t      \
      ".sample_count, " t ".rel_fro, " t ".max_abs, " t ".growth, " t ".tolerance, " t             \
      ".sm_clock_mhz, " t ".memory_clock_mhz, " t ".temperature_c, " t ".power_w, " t              \
      ".throttle, " t ".hbm_bytes_counted, " t ".counters_note, " t ".energy_mj, " t               \
      ".outliers, " t ".throttled, " t ".disturbed"
#define KKT_RUN_COLUMNS KKT_RUN_COLUMNS_OF("r")
#define KKT_RUN_COUNT 27
bool kkt_read_identity(sqlite3_stmt *statement, int at, kkt_identity *out);
void kkt_read_prediction(sqlite3_stmt *statement, int at, kkt_prediction_record *out);
bool kkt_read_build(sqlite3_stmt *statement, int at, kkt_build_record *out);
bool kkt_read_run(sqlite3_stmt *statement, int at, kkt_run_record *out);
/* The other way round: binds the same columns to parameters from `at` on. */
void kkt_bind_run(sqlite3_stmt *statement, int at, const kkt_run_record *record);

/* Joins a candidate `c` with its problem `p` and configuration `g`. */
#define KKT_FROM_CANDIDATES                                                                        \
    " FROM candidates c JOIN problems p ON p.id = c.problem_id"                                    \
    " JOIN configurations g ON g.id = c.configuration_id"
/* Why a build `b` of candidate `c` is stale by the freshness of the handle; SQL's NULL: it is not.
 */
#define KKT_STALE(build)                                                                           \
    "stale(p.kernel, g.style, c.arch, c.device, p.text, g.text, " build ".kernel_hash, " build     \
    ".options, " build ".compiler)"
#define KKT_ORDER_IDENTITY " ORDER BY p.kernel, g.style, c.arch, c.device, p.text, g.text"
/* A new statement of `head`, a condition for the members of the filter that are given, and `tail`;
 * parameters 1 to 6 are bound. Only the condition's fixed text depends on the filter, so that the
 * indexes serve it. Finalised by the caller. */
kkt_status kkt_db_prepare_filtered(kkt_db *db, const char *head, const kkt_result_filter *filter,
                                   const char *tail, sqlite3_stmt **out, kkt_error *err);
void kkt_bind_filter(sqlite3_stmt *statement, const kkt_result_filter *filter);

#endif
