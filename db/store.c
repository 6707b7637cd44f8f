#include "db/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/text.h"
#include "db/rows.h"
#include "db/store_sqlite.h"

typedef struct network_magic {
    long magic;
    const char *name;
} network_magic;

/* statfs(2) magic numbers of file systems whose memory maps and locks are not shared between
 * machines, which is what SQLite's write-ahead log needs. FUSE is among them for sshfs and the
 * like: a local FUSE file system loses some speed, nothing else. */
static const network_magic network_filesystems[] = {
    {0x6969, "NFS"},      {0x517b, "SMB"},      {0xff534d42, "CIFS"},   {0xfe534d42, "SMB2"},
    {0x01021997, "9p"},   {0x65735546, "FUSE"}, {0x0bd00bd0, "Lustre"}, {0x47504653, "GPFS"},
    {0x5346414f, "AFS"},  {0x00c36400, "Ceph"}, {0x7461636f, "OCFS2"},  {0x19830326, "BeeGFS"},
    {0x01161970, "GFS2"}, {0x6b414653, "AFS"},  {0x73757245, "Coda"},
};

const char *kkt_db_network_filesystem(long magic) {
    size_t count = sizeof network_filesystems / sizeof network_filesystems[0];
    for (size_t i = 0; i < count; i++) {
        if (network_filesystems[i].magic == (magic & 0xffffffffL))
            return network_filesystems[i].name;
    }
    return NULL;
}

kkt_status kkt_db_fail(const kkt_db *db, int code, kkt_error *err) {
    const char *path = db->path;
    switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED: {
        char holder[128];
        kkt_db_lock_holder(path, holder, sizeof holder);
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, code,
                        "database '%s' stayed locked by %s; wait for it to end or give another "
                        "file with --db",
                        path, holder);
    }
    case SQLITE_FULL:
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, code,
                        "no space left to write database '%s'; what was committed before is safe: "
                        "free some space and run again",
                        path);
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, code,
                        "cannot write or open database '%s' (%s); check the permissions of the "
                        "file and of its folder, or give another file with --db",
                        path, sqlite3_errstr(code));
    case SQLITE_NOTADB:
        return kkt_fail(err, KKT_ERR_INPUT, code,
                        "'%s' is not a kkttune database; it was left untouched: give another file "
                        "with --db",
                        path);
    case SQLITE_CORRUPT:
        return kkt_fail(err, KKT_ERR_INPUT, code,
                        "database '%s' is damaged: %s; 'kkttune db recover %s NEW' copies what is "
                        "sound into a new file",
                        path, db->handle ? sqlite3_errmsg(db->handle) : sqlite3_errstr(code), path);
    case SQLITE_IOERR:
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, code,
                        "reading or writing database '%s' failed (%s); what was committed before "
                        "is safe: check the disk and run again",
                        path, sqlite3_errstr(code));
    case SQLITE_CONSTRAINT:
        return kkt_fail(err, KKT_ERR_INPUT, code, "database '%s' refuses a row: %s", path,
                        sqlite3_errmsg(db->handle));
    case SQLITE_NOMEM:
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, code, "out of memory while using database '%s'",
                        path);
    default:
        return kkt_fail(err, KKT_ERR_INPUT, code,
                        "database '%s' is damaged: %s; 'kkttune db recover %s NEW' copies what is "
                        "sound into a new file",
                        path, db->handle ? sqlite3_errmsg(db->handle) : sqlite3_errstr(code), path);
    }
}

kkt_status kkt_db_exec(kkt_db *db, const char *sql, kkt_error *err) {
    int code = sqlite3_exec(db->handle, sql, NULL, NULL, NULL);
    return code == SQLITE_OK ? KKT_OK : kkt_db_fail(db, sqlite3_extended_errcode(db->handle), err);
}

kkt_status kkt_db_prepare(kkt_db *db, const char *sql, sqlite3_stmt **out, kkt_error *err) {
    int code = sqlite3_prepare_v2(db->handle, sql, -1, out, NULL);
    return code == SQLITE_OK ? KKT_OK : kkt_db_fail(db, sqlite3_extended_errcode(db->handle), err);
}

kkt_status kkt_db_cached(kkt_db *db, const char *sql, sqlite3_stmt **out, kkt_error *err) {
    for (size_t i = 0; i < db->cached_count; i++) {
        if (db->cached[i].sql == sql) {
            *out = db->cached[i].statement;
            return KKT_OK;
        }
    }
    if (db->cached_count == KKT_DB_CACHED)
        abort(); /* a programming error: the statements are literals in this folder */
    kkt_status status = kkt_db_prepare(db, sql, out, err);
    if (status == KKT_OK)
        db->cached[db->cached_count++] = (kkt_cached_statement){sql, *out};
    return status;
}

kkt_status kkt_db_step_done(kkt_db *db, sqlite3_stmt *statement, kkt_error *err) {
    int64_t ignored;
    bool found;
    return kkt_db_step_int(db, statement, &ignored, &found, err);
}

kkt_status kkt_db_step_int(kkt_db *db, sqlite3_stmt *statement, int64_t *out, bool *found,
                           kkt_error *err) {
    kkt_status status = KKT_OK;
    int code = sqlite3_step(statement);
    *found = code == SQLITE_ROW;
    if (*found)
        *out = sqlite3_column_int64(statement, 0);
    else if (code != SQLITE_DONE)
        status = kkt_db_fail(db, sqlite3_extended_errcode(db->handle), err);
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return status;
}

kkt_status kkt_db_query_int(kkt_db *db, const char *sql, int64_t *out, kkt_error *err) {
    sqlite3_stmt *statement = NULL;
    kkt_status status = kkt_db_prepare(db, sql, &statement, err);
    if (status != KKT_OK)
        return status;
    bool found = false;
    status = kkt_db_step_int(db, statement, out, &found, err);
    sqlite3_finalize(statement);
    if (status == KKT_OK && !found)
        *out = 0;
    return status;
}

/* ---- transactions ---- */

/* In WAL mode synchronous=NORMAL survives a killed process but may lose the last commits with the
 * power. A run costs GPU time, so its commit is flushed (FULL), which also flushes the predictions
 * and builds committed before it; those alone are cheap to repeat and are not waited for. */
static kkt_status begin(kkt_db *db, bool flushed, kkt_error *err) {
    kkt_status status = kkt_db_exec(
        db, flushed || !db->wal ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL", err);
    return status == KKT_OK ? kkt_db_exec(db, "BEGIN IMMEDIATE", err) : status;
}

kkt_status kkt_db_begin(kkt_db *db, kkt_error *err) {
    return begin(db, true, err);
}

kkt_status kkt_db_commit(kkt_db *db, kkt_error *err) {
    kkt_status status = kkt_db_exec(db, "COMMIT", err);
    if (status != KKT_OK)
        kkt_db_rollback(db);
    return status;
}

void kkt_db_rollback(kkt_db *db) {
    /* After a full disk SQLite may have rolled back already. */
    if (!sqlite3_get_autocommit(db->handle))
        sqlite3_exec(db->handle, "ROLLBACK", NULL, NULL, NULL);
}

kkt_status kkt_db_scope_begin(kkt_db *db, bool flushed, bool *own, kkt_error *err) {
    *own = sqlite3_get_autocommit(db->handle) != 0;
    return *own ? begin(db, flushed, err) : KKT_OK;
}

kkt_status kkt_db_scope_end(kkt_db *db, bool own, kkt_status status, kkt_error *err) {
    if (!own)
        return status;
    if (status == KKT_OK)
        return kkt_db_commit(db, err);
    kkt_db_rollback(db);
    return status;
}

kkt_status kkt_savepoint_begin(kkt_db *db, kkt_savepoint *out, kkt_error *err) {
    kkt_status status = kkt_db_scope_begin(db, true, &out->own, err);
    return status == KKT_OK && !out->own ? kkt_db_exec(db, "SAVEPOINT kkt", err) : status;
}

kkt_status kkt_savepoint_end(kkt_db *db, kkt_savepoint savepoint, kkt_status status,
                             kkt_error *err) {
    if (savepoint.own)
        return kkt_db_scope_end(db, true, status, err);
    if (status == KKT_OK)
        return kkt_db_exec(db, "RELEASE kkt", err);
    sqlite3_exec(db->handle, "ROLLBACK TO kkt; RELEASE kkt", NULL, NULL, NULL);
    return status;
}

/* ---- opening ---- */

/* Only looks: closing a descriptor of its own would drop the locks that another handle of this
 * process has on the file. SQLite reads a file that is something else, but changes none. */
static kkt_status check_file(const kkt_db *db, kkt_db_mode mode, kkt_error *err) {
    struct stat info;
    bool present = stat(db->path, &info) == 0;
    if (!present && errno != ENOENT)
        return kkt_fail_errno(err, KKT_ERR_ENVIRONMENT, errno, "cannot open database '%s'",
                              db->path);
    if (!present && mode == KKT_DB_READ)
        return kkt_fail(err, KKT_ERR_INPUT, ENOENT,
                        "there is no database '%s'; 'kkttune --arch ARCH' makes one, --db names "
                        "another",
                        db->path);
    if (present && !S_ISREG(info.st_mode))
        return kkt_fail(err, KKT_ERR_INPUT, 0, "'%s' is not a regular file, so no database",
                        db->path);
    return KKT_OK;
}

/* "file:..." with everything but plain characters escaped. */
static char *immutable_uri(const char *path) {
    kkt_text uri = {0};
    kkt_text_add(&uri, "file:");
    for (const char *c = path; *c; c++) {
        bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                     (*c >= '0' && *c <= '9') || strchr("/._-", *c);
        if (plain)
            kkt_text_add_bytes(&uri, c, 1);
        else
            kkt_text_printf(&uri, "%%%02X", (unsigned char)*c);
    }
    kkt_text_add(&uri, "?immutable=1");
    return uri.data;
}

static kkt_status configure(kkt_db *db, kkt_error *err) {
    sqlite3_extended_result_codes(db->handle, 1);
    sqlite3_busy_timeout(db->handle, KKT_DB_BUSY_MS);
    /* The file may come from anyone: its schema runs nothing, and its triggers are off. */
    sqlite3_db_config(db->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(db->handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(db->handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    /* Nothing is checkpointed into a file that turns out not to be ours. */
    sqlite3_db_config(db->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    kkt_status status = kkt_db_add_functions(db, err);
    if (status != KKT_OK)
        return status;
    return kkt_db_exec(db, "PRAGMA foreign_keys=ON; PRAGMA cell_size_check=ON", err);
}

/* A database in WAL mode cannot be read in a folder that cannot be written, unless it is declared
 * unchanging; with no log beside it, it is. */
static kkt_status reopen_immutable(kkt_db *db, kkt_error *err) {
    struct stat info;
    char *log = NULL;
    if (asprintf(&log, "%s-wal", db->path) < 0)
        return kkt_db_fail(db, SQLITE_NOMEM, err);
    bool logged = stat(log, &info) == 0 && info.st_size > 0;
    free(log);
    if (logged)
        return kkt_db_fail(db, SQLITE_CANTOPEN, err);
    sqlite3_close(db->handle);
    db->handle = NULL;
    char *uri = immutable_uri(db->path);
    int code = sqlite3_open_v2(uri, &db->handle, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL);
    free(uri);
    return code == SQLITE_OK ? configure(db, err) : kkt_db_fail(db, code, err);
}

static kkt_status open_handle(kkt_db *db, kkt_db_mode mode, kkt_error *err) {
    /* A reader that may write too leaves no log files behind when it closes; without the
     * permission SQLite opens for reading by itself. */
    int flags = SQLITE_OPEN_READWRITE | (mode == KKT_DB_WRITE ? SQLITE_OPEN_CREATE : 0);
    int code = sqlite3_open_v2(db->path, &db->handle, flags, NULL);
    if (code != SQLITE_OK)
        return kkt_db_fail(db, code, err);
    kkt_status status = configure(db, err);
    if (status != KKT_OK || mode == KKT_DB_WRITE)
        return status;
    code = sqlite3_exec(db->handle, "SELECT count(*) FROM sqlite_schema", NULL, NULL, NULL);
    code &= 0xff; /* without what the extended code adds */
    return code == SQLITE_CANTOPEN || code == SQLITE_READONLY ? reopen_immutable(db, err) : KKT_OK;
}

/* Whose file it is: `*version` is its schema, -1 for an empty database. */
static kkt_status identify(kkt_db *db, int64_t *version, kkt_error *err) {
    int64_t application = 0, objects = 0;
    kkt_status status = kkt_db_query_int(db, "PRAGMA application_id", &application, err);
    if (status == KKT_OK)
        status = kkt_db_query_int(db, "PRAGMA user_version", version, err);
    if (status == KKT_OK)
        status = kkt_db_query_int(db, "SELECT count(*) FROM sqlite_schema", &objects, err);
    if (status != KKT_OK)
        return status;
    if (application == 0 && objects == 0) {
        *version = -1;
        return KKT_OK;
    }
    if (application != KKT_DB_APPLICATION_ID)
        return kkt_fail(err, KKT_ERR_INPUT, 0,
                        "'%s' is an SQLite database of another program; it was left untouched: "
                        "give another file with --db",
                        db->path);
    if (*version > KKT_DB_SCHEMA_VERSION)
        return kkt_fail(err, KKT_ERR_INPUT, 0,
                        "database '%s' has schema version %lld, this kkttune knows up to %d; it "
                        "was left untouched: use a newer kkttune",
                        db->path, (long long)*version, KKT_DB_SCHEMA_VERSION);
    return KKT_OK;
}

/* Turns the write-ahead log on where it is safe. Switching needs the file alone, and SQLite does
 * not wait for that by itself. */
static kkt_status set_journal(kkt_db *db, kkt_error *err) {
    struct statfs info;
    const char *network =
        statfs(db->path, &info) == 0 ? kkt_db_network_filesystem((long)info.f_type) : NULL;
    const char *sql = network ? "PRAGMA journal_mode=DELETE" : "PRAGMA journal_mode=WAL";
    if (network)
        db->note = "the database lies on a network file system: written without a write-ahead "
                   "log, which is slower; let one process at a time use it";
    int code = SQLITE_BUSY;
    for (int waited_ms = 0; waited_ms <= KKT_DB_BUSY_MS; waited_ms += 50) {
        sqlite3_stmt *statement = NULL;
        code = sqlite3_prepare_v2(db->handle, sql, -1, &statement, NULL);
        if (code == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW) {
            const char *mode = (const char *)sqlite3_column_text(statement, 0);
            db->wal = mode && strcmp(mode, "wal") == 0;
        }
        code = sqlite3_finalize(statement);
        if ((code & 0xff) != SQLITE_BUSY)
            break;
        usleep(50000);
    }
    if (code != SQLITE_OK)
        return kkt_db_fail(db, code, err);
    if (!db->wal && !network && strcmp(db->path, ":memory:") != 0)
        db->note = "this file system cannot share memory: the database is written without a "
                   "write-ahead log, which is slower";
    return KKT_OK;
}

/* An older file that may only be read is brought up to date as a copy in memory. */
static kkt_status migrate_in_memory(kkt_db *db, kkt_error *err) {
    sqlite3 *copy = NULL;
    int code = sqlite3_open(":memory:", &copy);
    sqlite3_backup *backup =
        code == SQLITE_OK ? sqlite3_backup_init(copy, "main", db->handle, "main") : NULL;
    if (backup) {
        sqlite3_backup_step(backup, -1);
        code = sqlite3_backup_finish(backup);
    } else {
        code = SQLITE_NOMEM;
    }
    if (code != SQLITE_OK) {
        sqlite3_close(copy);
        return kkt_db_fail(db, code, err);
    }
    sqlite3_close(db->handle);
    db->handle = copy;
    kkt_status status = configure(db, err);
    return status == KKT_OK ? kkt_db_migrate(db, err) : status;
}

static kkt_status open_checked(kkt_db *db, kkt_db_mode mode, kkt_error *err) {
    int64_t version = -1;
    kkt_status status = check_file(db, mode, err);
    if (status == KKT_OK)
        status = open_handle(db, mode, err);
    if (status == KKT_OK)
        status = identify(db, &version, err);
    if (status != KKT_OK)
        return status;
    if (mode == KKT_DB_READ) {
        if (version < 0)
            return kkt_fail(err, KKT_ERR_INPUT, 0,
                            "database '%s' is empty; 'kkttune --arch ARCH' fills it", db->path);
        if (version < KKT_DB_SCHEMA_VERSION)
            return migrate_in_memory(db, err);
        sqlite3_db_config(db->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
        return kkt_db_exec(db, "PRAGMA query_only=ON", err);
    }
    sqlite3_db_config(db->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
    if (sqlite3_db_readonly(db->handle, "main") == 1)
        return kkt_db_fail(db, SQLITE_READONLY, err);
    status = set_journal(db, err);
    if (status == KKT_OK && version < KKT_DB_SCHEMA_VERSION)
        status = kkt_db_migrate(db, err);
    return status;
}

kkt_status kkt_db_open(const char *path, kkt_db_mode mode, kkt_db **out, kkt_error *err) {
    *out = NULL;
    kkt_db *db = calloc(1, sizeof *db);
    char *copy = strdup(path);
    if (!db || !copy) {
        free(db);
        free(copy);
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, ENOMEM, "out of memory");
    }
    db->path = copy;
    kkt_status status = open_checked(db, mode, err);
    if (status == KKT_OK)
        *out = db;
    else
        kkt_db_close(db);
    return status;
}

void kkt_db_close(kkt_db *db) {
    if (!db)
        return;
    for (size_t i = 0; i < db->cached_count; i++)
        sqlite3_finalize(db->cached[i].statement);
    sqlite3_close(db->handle);
    free(db->path);
    free(db);
}

const char *kkt_db_note(const kkt_db *db) {
    return db->note;
}

void kkt_db_set_timeout(kkt_db *db, int milliseconds) {
    sqlite3_busy_timeout(db->handle, milliseconds);
}
