/* kkttune db: what is in a database, whether it is sound, joining, exchanging and saving. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/db_names.h"
#include "db/maintain.h"
#include "db/recording.h"
#include "kernels/kernel.h"
#include "model/arch.h"

static const kkt_option options[] = {
    KKT_OPTION_DB,
    KKT_OPTION_ARCH,
    KKT_OPTION_DEVICE,
    {"--kernel", "KERNEL", "export: rows of this kernel alone"},
    {"--replayed", NULL, "export: rows that came from recordings as well"},
    {"-o", "FILE", "export: the recording to write"},
    KKT_OPTION_JSON,
};

static const char details[] =
    "info [FILE]            counts, schema version, tiers and outcomes\n"
    "check [FILE]           pages, references and meaning; exit 1 lists what is wrong\n"
    "merge FROM INTO        adds what FROM has and INTO lacks; twice adds nothing\n"
    "import [FILE] RECORDING  adds a recording's rows as replayed measurements\n"
    "export [FILE] --arch ARCH -o RECORDING  writes measured rows as text\n"
    "recover FROM NEW       copies what is sound of a damaged database\n"
    "FILE defaults to --db, else kkttune.db. Formats: docs/formats.md.";

/* The database of an action: the operand where it is given, else --db, else the default. */
static kkt_status database_path(const kkt_args *args, size_t operand, const char **out,
                                kkt_error *err) {
    const char *given = kkt_args_operand(args, operand), *option = kkt_args_get(args, "--db");
    if (given && option)
        return kkt_fail(err, KKT_ERR_INPUT, 0,
                        "the database is given twice, as '%.60s' and as --db '%.60s'; give one",
                        given, option);
    *out = given ? given : option ? option : "kkttune.db";
    return KKT_OK;
}

static kkt_status open_database(const kkt_args *args, size_t operand, kkt_db_mode mode,
                                const char **path, kkt_db **db, kkt_error *err) {
    kkt_status status = database_path(args, operand, path, err);
    if (status == KKT_OK && mode == KKT_DB_READ && kkt_args_operand(args, operand) &&
        !kkt_file_exists(*path)) /* no option names another here */
        return kkt_fail(err, KKT_ERR_INPUT, 0, "there is no database '%s'", *path);
    if (status == KKT_OK)
        status = kkt_db_open(*path, mode, db, err);
    if (status == KKT_OK && kkt_db_note(*db))
        fprintf(stderr, "note: %s\n", kkt_db_note(*db));
    return status;
}

static kkt_json *new_object(const kkt_args *args, const char *action) {
    if (!kkt_args_has(args, "--json"))
        return NULL;
    kkt_json *root = kkt_json_object();
    kkt_json_add_string(root, "schema", "kkttune.db/1");
    kkt_json_add_string(root, "action", action);
    return root;
}

/* Two words in the way of `A B`: FROM and INTO, FROM and NEW. */
static kkt_status two_operands(const kkt_args *args, const char *usage, const char **first,
                               const char **second, kkt_error *err) {
    *first = kkt_args_operand(args, 1);
    *second = kkt_args_operand(args, 2);
    if (!*second || kkt_args_has(args, "--db"))
        return kkt_fail(err, KKT_ERR_INPUT, 0, "give two files: kkttune db %s", usage);
    return KKT_OK;
}

static kkt_status one_operand(const kkt_args *args, const char *action, kkt_error *err) {
    const char *second = kkt_args_operand(args, 2);
    return second ? kkt_fail(err, KKT_ERR_INPUT, 0,
                             "kkttune db %s takes one file: '%.60s' is too "
                             "much",
                             action, second)
                  : KKT_OK;
}

/* ---- info ---- */

static void print_info_json(kkt_json *root, const kkt_db_info *info,
                            const kkt_db_summary *summary) {
    kkt_json_add_int(root, "schema_version", info->schema_version);
    kkt_json_add_int(root, "candidates", info->candidates);
    kkt_json_add_int(root, "predictions", info->predictions);
    kkt_json_add_int(root, "builds", info->builds);
    kkt_json_add_int(root, "runs", info->runs);
    kkt_json_add_int(root, "samples", info->samples);
    kkt_json_add_int(root, "pipeline_runs", info->pipeline_runs);
    kkt_json_add_int(root, "stale", summary->stale);
    kkt_json *tiers = kkt_json_add_object(root, "tiers");
    for (int i = 0; i < KKT_PROVENANCE_COUNT; i++)
        kkt_json_add_int(tiers, kkt_provenance_name((kkt_provenance)i), summary->tiers[i]);
    kkt_json *outcomes = kkt_json_add_object(root, "outcomes");
    for (int i = 0; i < KKT_OUTCOME_COUNT; i++)
        kkt_json_add_int(outcomes, kkt_outcome_name((kkt_outcome)i), summary->outcomes[i]);
    kkt_print_json(root);
}

static void print_info(const char *path, const kkt_db_info *info, const kkt_db_summary *summary) {
    printf("%s: schema version %d\n", path, info->schema_version);
    printf("%lld candidates, %lld predictions, %lld builds, %lld runs, %lld samples\n",
           (long long)info->candidates, (long long)info->predictions, (long long)info->builds,
           (long long)info->runs, (long long)info->samples);
    if (info->pipeline_runs > 0)
        printf("%lld runs of whole pipelines\n", (long long)info->pipeline_runs);
    printf("best tier, what failed there included:");
    for (int i = KKT_PROVENANCE_COUNT; i-- > 0;)
        printf(" %s %lld%s", kkt_provenance_name((kkt_provenance)i), (long long)summary->tiers[i],
               i ? "," : "");
    printf("; stale %lld\noutcomes:", (long long)summary->stale);
    const char *separator = "";
    for (int i = 0; i < KKT_OUTCOME_COUNT; i++) {
        if (summary->outcomes[i] > 0) {
            printf("%s %s %lld", separator, kkt_outcome_name((kkt_outcome)i),
                   (long long)summary->outcomes[i]);
            separator = ",";
        }
    }
    printf("%s\n", *separator ? "" : " none");
}

static kkt_status run_info(const kkt_args *args, kkt_error *err) {
    kkt_db *db = NULL;
    const char *path = NULL;
    kkt_db_info info;
    kkt_db_summary summary;
    kkt_status status = one_operand(args, "info", err);
    if (status == KKT_OK)
        status = open_database(args, 1, KKT_DB_READ, &path, &db, err);
    if (status == KKT_OK)
        status = kkt_db_get_info(db, &info, err);
    if (status == KKT_OK)
        status = kkt_db_summarize(db, &summary, err);
    kkt_db_close(db);
    if (status != KKT_OK)
        return status;
    kkt_json *root = new_object(args, "info");
    if (root)
        print_info_json(root, &info, &summary);
    else
        print_info(path, &info, &summary);
    return KKT_OK;
}

/* ---- check ---- */

static void show_finding(void *context, const char *finding) {
    kkt_json *list = context;
    if (list) {
        kkt_json_add_string(list, NULL, finding);
        return;
    }
    for (const char *c = finding; *c; c++) { /* texts of the file are anyone's */
        if (*c == '\n')
            fputs("\\n", stdout);
        else
            putchar((unsigned char)*c < 0x20 || *c == 0x7f ? '?' : *c);
    }
    putchar('\n');
}

static kkt_status run_check(const kkt_args *args, kkt_error *err) {
    kkt_db *db = NULL;
    const char *path = NULL;
    int64_t findings = 0;
    kkt_status status = one_operand(args, "check", err);
    if (status == KKT_OK)
        status = open_database(args, 1, KKT_DB_READ, &path, &db, err);
    if (status != KKT_OK)
        return status;
    kkt_json *root = new_object(args, "check");
    kkt_json *list = root ? kkt_json_add_array(root, "findings") : NULL;
    status = kkt_db_check(db, show_finding, list, &findings, err);
    if (status == KKT_OK && findings == 0)
        status = kkt_db_names_note(db, path, err);
    kkt_db_close(db);
    if (status != KKT_OK) {
        kkt_json_close(root);
        return status;
    }
    if (root) {
        kkt_json_add_bool(root, "ok", findings == 0);
        kkt_json_add_int(root, "count", findings);
        kkt_print_json(root);
    } else if (findings == 0) {
        printf("%s: sound\n", path);
    }
    if (findings > 0)
        return kkt_fail(err, KKT_ERR_MISSING, 0,
                        "database '%s' is damaged (%lld findings); 'kkttune db recover %s NEW' "
                        "copies what is sound",
                        path, (long long)findings, path);
    return KKT_OK;
}

/* ---- merge and recover ---- */

static void print_changes(const kkt_args *args, const char *action, const char *verb,
                          const kkt_db_changes *changes) {
    kkt_json *root = new_object(args, action);
    if (root) {
        kkt_json_add_int(root, "candidates", changes->candidates);
        kkt_json_add_int(root, "predictions", changes->predictions);
        kkt_json_add_int(root, "builds", changes->builds);
        kkt_json_add_int(root, "runs", changes->runs);
        kkt_json_add_int(root, "pipeline_runs", changes->pipeline_runs);
        kkt_json_add_int(root, "lost", changes->lost);
        kkt_print_json(root);
        return;
    }
    printf("%s %lld candidates, %lld predictions, %lld builds, %lld runs", verb,
           (long long)changes->candidates, (long long)changes->predictions,
           (long long)changes->builds, (long long)changes->runs);
    if (changes->pipeline_runs > 0)
        printf(", %lld runs of whole pipelines", (long long)changes->pipeline_runs);
    if (changes->lost > 0)
        printf("; at least %lld rows are lost", (long long)changes->lost);
    printf("\n");
}

static kkt_status run_merge(const kkt_args *args, kkt_error *err) {
    const char *from = NULL, *into = NULL;
    kkt_db *db = NULL;
    kkt_db_changes changes;
    kkt_status status = two_operands(args, "merge FROM INTO", &from, &into, err);
    if (status == KKT_OK)
        status = kkt_db_open(from, KKT_DB_READ, &db, err); /* before INTO is made */
    kkt_db_close(db);
    db = NULL;
    if (status == KKT_OK)
        status = kkt_db_open(into, KKT_DB_WRITE, &db, err);
    if (status == KKT_OK)
        status = kkt_db_merge(db, from, &changes, err);
    kkt_db_close(db);
    if (status == KKT_OK)
        print_changes(args, "merge", "added", &changes);
    return status;
}

static kkt_status run_recover(const kkt_args *args, kkt_error *err) {
    const char *from = NULL, *to = NULL;
    kkt_db_changes changes;
    kkt_status status = two_operands(args, "recover FROM NEW", &from, &to, err);
    if (status == KKT_OK)
        status = kkt_db_recover(from, to, &changes, err);
    if (status == KKT_OK)
        print_changes(args, "recover", "recovered", &changes);
    return status;
}

/* ---- recordings ---- */

static void print_rows(const kkt_args *args, const char *action, const char *path, int64_t rows,
                       int64_t added) {
    kkt_json *root = new_object(args, action);
    if (root) {
        kkt_json_add_string(root, "file", path);
        kkt_json_add_int(root, "rows", rows);
        if (added >= 0)
            kkt_json_add_int(root, "added", added);
        kkt_print_json(root);
    } else if (added >= 0) {
        printf("%s: %lld rows, %lld of them new\n", path, (long long)rows, (long long)added);
    } else {
        printf("%s: %lld rows\n", path, (long long)rows);
    }
}

/* Into memory: what is refused must leave no empty database behind. */
static kkt_status try_import(const char *recording, kkt_error *err) {
    kkt_db *db = NULL;
    int64_t rows = 0;
    kkt_status status = kkt_db_open(":memory:", KKT_DB_WRITE, &db, err);
    if (status == KKT_OK)
        status = kkt_recording_import(db, recording, &rows, err);
    kkt_db_close(db);
    return status;
}

static kkt_status run_import(const kkt_args *args, kkt_error *err) {
    size_t count = kkt_args_operand_count(args);
    if (count < 2)
        return kkt_fail(err, KKT_ERR_INPUT, 0,
                        "name the recording: kkttune db import [FILE] RECORDING");
    const char *recording = kkt_args_operand(args, count - 1), *path = NULL;
    const size_t operand = count == 3 ? 1 : 3; /* with one alone it is --db's or the default */
    kkt_db *db = NULL;
    kkt_db_info before, after;
    int64_t rows = 0;
    kkt_status status = database_path(args, operand, &path, err);
    if (status == KKT_OK && !kkt_file_exists(path))
        status = try_import(recording, err);
    if (status == KKT_OK)
        status = open_database(args, operand, KKT_DB_WRITE, &path, &db, err);
    if (status == KKT_OK)
        status = kkt_db_get_info(db, &before, err);
    if (status == KKT_OK)
        status = kkt_recording_import(db, recording, &rows, err);
    if (status == KKT_OK)
        status = kkt_db_get_info(db, &after, err);
    if (status == KKT_OK)
        status = kkt_db_names_note(db, path, err);
    kkt_db_close(db);
    if (status == KKT_OK)
        print_rows(args, "import", recording, rows,
                   after.runs + after.pipeline_runs - before.runs - before.pipeline_runs);
    return status;
}

static kkt_status make_filter(const kkt_args *args, kkt_result_filter *filter, kkt_error *err) {
    const kkt_arch *arch = NULL;
    const kkt_device *device = NULL;
    const kkt_kernel *kernel = NULL;
    kkt_status status = kkt_args_arch(args, &arch, &device, err);
    if (status == KKT_OK && kkt_args_has(args, "--kernel"))
        status = kkt_kernel_parse(kkt_args_get(args, "--kernel"), &kernel, err);
    if (status != KKT_OK)
        return status;
    *filter = (kkt_result_filter){.arch = arch->name};
    if (kkt_args_has(args, "--device"))
        filter->device = device->name;
    if (kernel)
        filter->kernel = kernel->name;
    return KKT_OK;
}

static kkt_status run_export(const kkt_args *args, kkt_error *err) {
    const char *out = kkt_args_get(args, "-o"), *path = NULL;
    kkt_db *db = NULL;
    kkt_result_filter filter;
    kkt_text text = {0};
    int64_t rows = 0;
    if (!out)
        return kkt_fail(err, KKT_ERR_INPUT, 0, "-o is missing; name the recording to write");
    kkt_status status = one_operand(args, "export", err);
    if (status == KKT_OK)
        status = make_filter(args, &filter, err);
    if (status == KKT_OK)
        status = open_database(args, 1, KKT_DB_READ, &path, &db, err);
    if (status == KKT_OK)
        status = kkt_recording_export_text(db, &filter, kkt_args_has(args, "--replayed"), &text,
                                           &rows, err);
    kkt_db_close(db);
    if (status == KKT_OK)
        status = kkt_file_write(out, text.data, text.length, err);
    kkt_text_free(&text);
    if (status == KKT_OK)
        print_rows(args, "export", out, rows, -1);
    return status;
}

/* ---- the command ---- */

typedef struct action {
    const char *name;
    kkt_status (*run)(const kkt_args *args, kkt_error *err);
} action;

static const action actions[] = {
    {"info", run_info},     {"check", run_check},   {"merge", run_merge},
    {"import", run_import}, {"export", run_export}, {"recover", run_recover},
};

static kkt_status run(const kkt_args *args, kkt_error *err) {
    const char *name = kkt_args_operand(args, 0);
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++) {
        if (strcmp(actions[i].name, name) == 0)
            return actions[i].run(args, err);
    }
    return kkt_fail(err, KKT_ERR_INPUT, 0,
                    "unknown action '%.60s' of kkttune db; known: info, check, merge, import, "
                    "export, recover",
                    name);
}

const kkt_command kkt_cmd_db = {
    .name = "db",
    .operands = "ACTION [FILE] [FILE]",
    .summary = "looks after databases: info, check, merge, import, export, recover",
    .details = details,
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run,
};
