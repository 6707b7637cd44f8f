#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "db/rows.h"
#include "db/store_sqlite.h"

/* ---- staleness ---- */

/* One of the tools of "nvrtc 13.0.48, cublas 13.1.0". */
typedef struct tool {
    const char *name, *version;
    size_t name_length, version_length;
} tool;

/* The next of a list; false at its end. Of a compiler major and minor version decide, of a library,
 * whose kernels may be others in any release, all of it. */
static bool next_tool(const char **list, tool *out) {
    *list += strspn(*list, ", ");
    size_t length = strcspn(*list, ",");
    const char *space = memchr(*list, ' ', length);
    *out = (tool){.name = *list, .name_length = space ? (size_t)(space - *list) : length};
    out->version = *list + out->name_length;
    out->version_length = length - out->name_length;
    if (strncmp(out->name, "nvrtc ", 6) == 0) {
        size_t major = strcspn(out->version, ".");
        size_t decides = major + 1 + strspn(out->version + major + 1, "0123456789");
        if (major < out->version_length && decides < out->version_length)
            out->version_length = decides;
    }
    *list += length;
    return length > 0;
}

/* Whether no tool that both lists name has another version; `*other` is that tool of `now`. */
static bool same_tools(const char *then, const char *now, tool *other) {
    tool a;
    while (next_tool(&then, &a)) {
        const char *rest = now;
        while (next_tool(&rest, other)) {
            bool named = a.name_length == other->name_length &&
                         strncmp(a.name, other->name, a.name_length) == 0;
            bool same = a.version_length == other->version_length &&
                        strncmp(a.version, other->version, a.version_length) == 0;
            if (named && !same)
                return false;
        }
    }
    return true;
}

/* Why a build no longer matches, into `out`; false where it does. */
static bool explain_stale(const kkt_freshness *freshness, const kkt_identity *id,
                          const kkt_build_record *build, kkt_text *out) {
    const char *hash = NULL, *options = NULL;
    if (freshness->present && !freshness->present(freshness->context, id, &hash, &options)) {
        kkt_text_printf(out, "kernel gone: this kkttune has no %s in style %s", id->kernel,
                        id->style);
        return true;
    }
    if (freshness->readable && !freshness->readable(freshness->context, id)) {
        kkt_text_add(out, "configuration is no longer one of the kernel's");
        return true;
    }
    if (hash && build->kernel_hash && strcmp(hash, build->kernel_hash) != 0) {
        kkt_text_printf(out, "kernel source changed: %.12s then, %.12s now", build->kernel_hash,
                        hash);
        return true;
    }
    if (options && build->options && strcmp(options, build->options) != 0) {
        kkt_text_add(out, "compiler options changed");
        return true;
    }
    tool now;
    if (freshness->compiler && build->compiler &&
        !same_tools(build->compiler, freshness->compiler, &now)) {
        bool library = strncmp(now.name, "nvrtc", now.name_length) != 0;
        kkt_text_printf(out, "%s changed: %s then, %s now", library ? "library" : "compiler",
                        build->compiler, freshness->compiler);
        return true;
    }
    return false;
}

/* SQL function stale(kernel, style, arch, device, problem, config, kernel_hash, options,
 * compiler): NULL or the reason, as the kkt_db_results in progress sees it. */
static void stale_function(sqlite3_context *context, int count, sqlite3_value **values) {
    const kkt_db *db = sqlite3_user_data(context);
    const char *text[9] = {0};
    if (!db->freshness)
        return;
    for (int i = 0; i < count && i < 9; i++) {
        text[i] = (const char *)sqlite3_value_text(values[i]);
        if (i < KKT_IDENTITY_COUNT && !text[i])
            return;
    }
    const kkt_identity id = {text[0], text[1], text[2], text[3], text[4], text[5]};
    const kkt_build_record build = {
        .kernel_hash = text[6] && *text[6] ? text[6] : NULL,
        .options = text[7] && *text[7] ? text[7] : NULL,
        .compiler = text[8] && *text[8] ? text[8] : NULL,
    };
    kkt_text reason = {0};
    if (explain_stale(db->freshness, &id, &build, &reason))
        sqlite3_result_text(context, reason.data, -1, SQLITE_TRANSIENT);
    kkt_text_free(&reason);
}

kkt_status kkt_db_add_functions(kkt_db *db, kkt_error *err) {
    int code = sqlite3_create_function(db->handle, "stale", 9, SQLITE_UTF8 | SQLITE_DIRECTONLY, db,
                                       stale_function, NULL, NULL);
    return code == SQLITE_OK ? KKT_OK : kkt_db_fail(db, code, err);
}

/* ---- results ---- */

static const char results_columns[] =
    "SELECT c.id, c.verdict, c.verdict_reason, d.candidate_id, b.id, r.id,"
    " CASE WHEN b.id IS NOT NULL THEN " KKT_STALE(
        "b") " END,"
             " " KKT_IDENTITY_COLUMNS ", " KKT_PREDICTION_COLUMNS ", " KKT_BUILD_COLUMNS
             ", " KKT_RUN_COLUMNS KKT_FROM_CANDIDATES
             " LEFT JOIN predictions d ON d.candidate_id = c.id LEFT JOIN runs r ON r.id = ";

/* ORDER BY of a sub-select sees none of the tables around it, hence the candidate once more. */
#define STALE_OF(build)                                                                            \
    "(SELECT " KKT_STALE(build) KKT_FROM_CANDIDATES " WHERE c.id = " build ".candidate_id)"

/* Which run and which build stand for a candidate is said in views.sql alone. This takes the
 * sub-select over from there, `begin` its first words, up to the parenthesis that closes it; the
 * staleness of each build is computed instead of read. */
static void add_choice(kkt_text *sql, const char *begin) {
    static const struct {
        const char *read, *computed;
    } columns[] = {{"b.stale_reason", STALE_OF("b")}, {"b2.stale_reason", STALE_OF("b2")}};
    const char *at = strstr(kkt_sql_views, begin);
    if (!at)
        abort(); /* a programming error */
    int depth = 0;
    do {
        size_t taken = 0;
        for (size_t i = 0; i < sizeof columns / sizeof columns[0] && taken == 0; i++) {
            size_t length = strlen(columns[i].read);
            if (strncmp(at, columns[i].read, length) == 0) {
                kkt_text_add(sql, columns[i].computed);
                taken = length;
            }
        }
        if (taken == 0) {
            depth += (*at == '(') - (*at == ')');
            kkt_text_add_bytes(sql, at, 1);
            taken = 1;
        }
        at += taken;
    } while (depth > 0);
}

static kkt_status prepare_results(kkt_db *db, const kkt_result_filter *filter, sqlite3_stmt **out,
                                  kkt_error *err) {
    kkt_text sql = {0};
    kkt_text_add(&sql, results_columns);
    add_choice(&sql, "(SELECT r.id");
    kkt_text_add(&sql, " LEFT JOIN builds b ON b.id = coalesce(r.build_id, ");
    add_choice(&sql, "(SELECT b2.id");
    kkt_text_add(&sql, ")");
    kkt_status status =
        kkt_db_prepare_filtered(db, kkt_text_get(&sql), filter, KKT_ORDER_IDENTITY, out, err);
    kkt_text_free(&sql);
    return status;
}

static kkt_status unknown_name(const kkt_db *db, int64_t candidate_id, kkt_error *err) {
    return kkt_fail(
        err, KKT_ERR_INPUT, 0,
        "database '%s' has an unknown outcome or provenance, or lacks a text, at candidate %lld; "
        "'kkttune db check' lists what is wrong",
        db->path, (long long)candidate_id);
}

/* A prediction that was never made: nothing is known, nothing is claimed. */
static const kkt_prediction_record no_prediction = {
    .registers = KKT_UNKNOWN_INT,
    .smem_bytes = KKT_UNKNOWN_INT,
    .hbm_bytes = KKT_UNKNOWN_REAL,
    .hbm_bytes_per_token = KKT_UNKNOWN_REAL,
    .blocks_per_sm = KKT_UNKNOWN_INT,
    .feasible = true,
    .chain_steps = KKT_UNKNOWN_REAL,
    .lower_bound_us = KKT_UNKNOWN_REAL,
    .predicted_us = KKT_UNKNOWN_REAL,
};

/* The outcome and its reason: the verdict's, else the run's, else the build's. `first_line` holds
 * the start of a compiler's log. */
static void derive_outcome(kkt_result *result, kkt_text *first_line) {
    if (result->has_run) {
        result->outcome = result->run.outcome;
        result->reason = result->run.reason;
    } else if (result->has_build) {
        result->outcome = result->build.outcome;
        if (result->build.log && result->outcome != KKT_OUTCOME_COMPILED) {
            first_line->length = 0;
            kkt_text_add_bytes(first_line, result->build.log, strcspn(result->build.log, "\n"));
            result->reason = kkt_text_get(first_line);
        }
    }
}

static bool read_result(sqlite3_stmt *s, kkt_result *out, kkt_text *first_line) {
    enum { AT_IDENTITY = 7 };
    int at_prediction = AT_IDENTITY + KKT_IDENTITY_COUNT;
    int at_build = at_prediction + KKT_PREDICTION_COUNT;
    int at_run = at_build + KKT_BUILD_COUNT;
    *out = (kkt_result){
        .candidate_id = sqlite3_column_int64(s, 0),
        .build_id = sqlite3_column_int64(s, 4),
        .run_id = sqlite3_column_int64(s, 5),
        .outcome = KKT_OUTCOME_PREDICTED,
        .has_prediction = sqlite3_column_type(s, 3) != SQLITE_NULL,
        .has_build = sqlite3_column_type(s, 4) != SQLITE_NULL,
        .has_run = sqlite3_column_type(s, 5) != SQLITE_NULL,
        .provenance = KKT_PREDICTED,
        .stale_reason = kkt_column_text(s, 6),
        .prediction = no_prediction,
    };
    bool good = kkt_read_identity(s, AT_IDENTITY, &out->id);
    if (out->has_prediction)
        kkt_read_prediction(s, at_prediction, &out->prediction);
    good = (kkt_read_build(s, at_build, &out->build) || !out->has_build) && good;
    good = (kkt_read_run(s, at_run, &out->run) || !out->has_run) && good;
    if (!out->has_run)
        out->run.sample_count = 0;
    if (out->has_build)
        out->provenance = out->has_run ? out->run.provenance : KKT_COMPILED;
    derive_outcome(out, first_line);
    const char *verdict = kkt_column_text(s, 1);
    if (verdict) {
        good = kkt_outcome_parse(verdict, &out->outcome) && good;
        out->reason = kkt_column_text(s, 2);
    }
    return good;
}

kkt_status
kkt_db_results(kkt_db *db, const kkt_result_filter *filter, const kkt_freshness *freshness,
               kkt_status (*visit)(void *context, const kkt_result *result, kkt_error *err),
               void *context, kkt_error *err) {
    sqlite3_stmt *s = NULL;
    kkt_status status = prepare_results(db, filter, &s, err);
    if (status != KKT_OK)
        return status;
    kkt_text first_line = {0};
    const kkt_freshness *outer = db->freshness; /* `visit` may ask for results in its turn */
    int code = SQLITE_DONE;
    while (status == KKT_OK) {
        db->freshness = freshness;
        code = sqlite3_step(s);
        db->freshness = outer;
        if (code != SQLITE_ROW)
            break;
        kkt_result result;
        status = read_result(s, &result, &first_line)
                     ? visit(context, &result, err)
                     : unknown_name(db, sqlite3_column_int64(s, 0), err);
    }
    if (status == KKT_OK && code != SQLITE_DONE)
        status = kkt_db_fail(db, sqlite3_extended_errcode(db->handle), err);
    sqlite3_finalize(s);
    kkt_text_free(&first_line);
    return status;
}

kkt_status kkt_db_prepare_filtered(kkt_db *db, const char *head, const kkt_result_filter *filter,
                                   const char *tail, sqlite3_stmt **out, kkt_error *err) {
    static const kkt_result_filter any = {0};
    const kkt_result_filter *f = filter ? filter : &any;
    const struct {
        const char *value, *condition;
    } members[] = {
        {f->kernel, " AND p.kernel = ?1 AND g.kernel = ?1"},
        {f->style, " AND g.style = ?2"},
        {f->arch, " AND c.arch = ?3"},
        {f->device, " AND c.device = ?4"},
        {f->problem, " AND p.text = ?5"},
        {f->config, " AND g.text = ?6"},
    };
    kkt_text sql = {0};
    kkt_text_add(&sql, head);
    kkt_text_add(&sql, " WHERE 1");
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        if (members[i].value)
            kkt_text_add(&sql, members[i].condition);
    }
    kkt_text_add(&sql, tail);
    kkt_status status = kkt_db_prepare(db, sql.data, out, err);
    kkt_text_free(&sql);
    if (status == KKT_OK)
        kkt_bind_filter(*out, f);
    return status;
}

/* ---- samples ---- */

kkt_status kkt_db_first_time(kkt_db *db, int64_t build_id, double *time_us, kkt_error *err) {
    sqlite3_stmt *s = NULL;
    *time_us = (double)NAN;
    kkt_status status = kkt_db_cached(db,
                                      "SELECT time_us FROM runs WHERE build_id = ?1 AND provenance "
                                      "= 'measured' AND outcome IN ('ok', 'noisy') AND time_us IS "
                                      "NOT NULL ORDER BY id LIMIT 1",
                                      &s, err);
    if (status != KKT_OK)
        return status;
    sqlite3_bind_int64(s, 1, build_id);
    int code = sqlite3_step(s);
    if (code == SQLITE_ROW)
        *time_us = kkt_column_real(s, 0);
    else if (code != SQLITE_DONE)
        status = kkt_db_fail(db, code, err);
    sqlite3_reset(s);
    return status;
}

kkt_status kkt_db_samples(kkt_db *db, int64_t candidate_id, float **samples, size_t *count,
                          kkt_error *err) {
    *samples = NULL;
    *count = 0;
    sqlite3_stmt *s = NULL;
    kkt_status status = kkt_db_prepare(
        db,
        "SELECT r.sample_count, t.times_us FROM best_runs f JOIN runs r ON r.id = f.run_id"
        " JOIN samples t ON t.run_id = r.id WHERE f.candidate_id = ?1",
        &s, err);
    if (status != KKT_OK)
        return status;
    sqlite3_bind_int64(s, 1, candidate_id);
    int code = sqlite3_step(s);
    if (code == SQLITE_ROW) {
        int64_t kept = sqlite3_column_int64(s, 0);
        const char *json = kkt_column_text(s, 1);
        /* A sample takes two characters at least, so a hostile count allocates nothing. */
        bool plausible = json && kept >= 0 && kept <= sqlite3_column_bytes(s, 1);
        float *values = plausible ? calloc((size_t)kept + 1, sizeof *values) : NULL;
        if (values && kkt_samples_parse(json, (size_t)kept, values)) {
            *samples = values;
            *count = (size_t)kept;
        } else {
            free(values);
            status = kkt_fail(err, KKT_ERR_INPUT, 0,
                              "database '%s' has unreadable samples at candidate %lld; 'kkttune db "
                              "check' lists what is wrong",
                              db->path, (long long)candidate_id);
        }
    } else if (code != SQLITE_DONE) {
        status = kkt_db_fail(db, sqlite3_extended_errcode(db->handle), err);
    }
    sqlite3_finalize(s);
    return status;
}

/* ---- marks and counts ---- */

kkt_status kkt_db_mark_stale(kkt_db *db, const kkt_freshness *freshness, kkt_error *err) {
    bool own = false;
    sqlite3_stmt *s = NULL;
    kkt_status status = kkt_db_scope_begin(db, false, &own, err);
    if (status != KKT_OK)
        return status;
    const kkt_freshness *outer = db->freshness;
    db->freshness = freshness;
    status = kkt_db_cached(
        db,
        "UPDATE builds AS b SET stale_reason = m.reason FROM (SELECT x.id AS id,"
        " " KKT_STALE("x") " AS reason" KKT_FROM_CANDIDATES
                           " JOIN builds x ON x.candidate_id = c.id)"
                           " AS m WHERE m.id = b.id AND b.stale_reason IS NOT m.reason",
        &s, err);
    if (status == KKT_OK)
        status = kkt_db_step_done(db, s, err);
    db->freshness = outer;
    return kkt_db_scope_end(db, own, status, err);
}

kkt_status kkt_db_get_info(kkt_db *db, kkt_db_info *out, kkt_error *err) {
    const struct {
        const char *sql;
        int64_t *value;
    } queries[] = {
        {"SELECT count(*) FROM candidates", &out->candidates},
        {"SELECT count(*) FROM predictions", &out->predictions},
        {"SELECT count(*) FROM builds", &out->builds},
        {"SELECT count(*) FROM runs", &out->runs},
        {"SELECT count(*) FROM pipeline_runs", &out->pipeline_runs},
        {"SELECT coalesce(sum(r.sample_count), 0) FROM runs r JOIN samples s ON s.run_id = r.id",
         &out->samples},
    };
    int64_t version = 0;
    *out = (kkt_db_info){0};
    kkt_status status = kkt_db_query_int(db, "PRAGMA user_version", &version, err);
    out->schema_version = (int)version;
    for (size_t i = 0; status == KKT_OK && i < sizeof queries / sizeof queries[0]; i++)
        status = kkt_db_query_int(db, queries[i].sql, queries[i].value, err);
    return status;
}

/* ---- runs for recordings and merging ---- */

/* No id takes part in the order: a copy of the rows sorts alike. */
static const char runs_sql[] =
    "SELECT " KKT_IDENTITY_COLUMNS ", " KKT_BUILD_COLUMNS ", " KKT_RUN_COLUMNS
    ", s.times_us, c.id, r.id" KKT_FROM_CANDIDATES " JOIN builds b ON b.candidate_id = c.id"
    " JOIN runs r ON r.build_id = b.id AND (?7 OR r.provenance = 'measured')"
    " LEFT JOIN samples s ON s.run_id = r.id";
static const char runs_order[] =
    KKT_ORDER_IDENTITY ", b.kernel_hash, b.options, b.compiler, r.date, r.gpu, r.driver,"
                       " r.time_us, r.outcome, r.reason, s.times_us";

kkt_status kkt_db_each_run(kkt_db *db, const kkt_result_filter *filter, bool replayed,
                           kkt_status (*visit)(void *context, const kkt_run_row *row,
                                               kkt_error *err),
                           void *context, kkt_error *err) {
    int at_run = KKT_IDENTITY_COUNT + KKT_BUILD_COUNT;
    sqlite3_stmt *s = NULL;
    kkt_status status = kkt_db_prepare_filtered(db, runs_sql, filter, runs_order, &s, err);
    if (status != KKT_OK)
        return status;
    sqlite3_bind_int(s, 7, replayed);
    int code = SQLITE_DONE;
    while (status == KKT_OK && (code = sqlite3_step(s)) == SQLITE_ROW) {
        kkt_run_row row;
        bool good = kkt_read_identity(s, 0, &row.id);
        good = kkt_read_build(s, KKT_IDENTITY_COUNT, &row.build) && good;
        good = kkt_read_run(s, at_run, &row.run) && good;
        row.samples_json = kkt_column_text(s, at_run + KKT_RUN_COUNT);
        row.run_id = sqlite3_column_int64(s, at_run + KKT_RUN_COUNT + 2);
        status = good ? visit(context, &row, err)
                      : unknown_name(db, sqlite3_column_int64(s, at_run + KKT_RUN_COUNT + 1), err);
    }
    if (status == KKT_OK && code != SQLITE_DONE)
        status = kkt_db_fail(db, sqlite3_extended_errcode(db->handle), err);
    sqlite3_finalize(s);
    return status;
}
