/* `kkttune export` and `kkttune report`: files from the database alone; no GPU, no compiler. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "cli/command.h"
#include "cli/header_print.h"
#include "db/store.h"
#include "kernels/kernel.h"
#include "reports/report.h"
#include "tuner/compile/compile.h"
#include "tuner/engine/freshness.h"

typedef struct written {
    kkt_json *files; /* NULL: print each path */
} written;

static void note_file(void *context, const char *path) {
    const written *w = context;
    if (w->files != NULL)
        kkt_json_add_string(w->files, NULL, path);
    else
        printf("%s\n", path);
}

/* The present compiler's version where there is one, so that what another one built is shown as
 * stale here as in a run. */
static const kkt_freshness *present(kkt_arena *arena) {
    kkt_compiler *compiler = NULL;
    const char *version = NULL;
    if (kkt_compiler_open(&compiler, NULL) == KKT_OK)
        version = kkt_arena_strdup(arena, kkt_compiler_version(compiler));
    kkt_compiler_close(compiler);
    return kkt_freshness_make(arena, version);
}

static kkt_status write_types(const kkt_args *args, const kkt_view *view, kkt_arena *arena,
                              const char *const *names, size_t count, written *w, kkt_error *err) {
    const char *folder = kkt_args_get(args, "--out");
    const char *suffix =
        kkt_args_has(args, "--device")
            ? kkt_arena_printf(arena, "%s_%s", view->arch->name, view->device->name)
            : view->arch->name;
    bool header = false;
    kkt_status status = KKT_OK;
    for (size_t i = 0; i < count && status == KKT_OK; i++) {
        const kkt_report_type *type;
        status = kkt_report_parse(names[i], &type, err);
        header = header || strcmp(names[i], "header") == 0;
        if (status == KKT_OK)
            status = kkt_report_write(view, folder != NULL ? folder : "kkttune-out", suffix, type,
                                      note_file, w, err);
    }
    if (status == KKT_OK && header)
        kkt_header_print_left_out(view, NULL, stderr);
    if (status == KKT_ERR_ENVIRONMENT && err != NULL)
        return kkt_fail(err, status, err->native, "%s; --out names another folder", err->message);
    return status;
}

/* The device of the rows where none is named: the first of the table that has any. */
static kkt_status count_row(void *context, const kkt_result *result, kkt_error *err) {
    (void)result;
    (void)err;
    ++*(int64_t *)context;
    return KKT_OK;
}

static kkt_status stored_device(kkt_db *db, const kkt_arch *arch, const kkt_device **device,
                                kkt_error *err) {
    size_t count;
    const kkt_device *devices = kkt_devices(&count);
    int64_t most = 0;
    for (size_t i = 0; i < count; i++) {
        kkt_result_filter filter = {.arch = arch->name, .device = devices[i].name};
        int64_t rows = 0;
        if (kkt_device_parse(devices[i].name, arch, &(const kkt_device *){NULL}, NULL) != KKT_OK)
            continue;
        kkt_status status = kkt_db_results(db, &filter, NULL, count_row, &rows, err);
        if (status != KKT_OK)
            return status;
        if (rows > most) {
            most = rows;
            *device = &devices[i];
        }
    }
    return KKT_OK;
}

static kkt_status export_types(const kkt_args *args, const char *const *names, size_t count,
                               const char *schema, kkt_error *err) {
    const kkt_arch *arch;
    const kkt_device *device;
    const kkt_kernel *kernel = NULL;
    kkt_objective objective = KKT_OBJECTIVE_TIME;
    const char *path = kkt_args_get(args, "--db");
    kkt_db *db = NULL;
    kkt_arena *arena = kkt_arena_open();
    kkt_view view;
    kkt_json *root = kkt_args_has(args, "--json") ? kkt_json_object() : NULL;
    written w = {NULL};
    kkt_status status = kkt_args_arch(args, &arch, &device, err);
    if (status == KKT_OK && kkt_args_has(args, "--kernel"))
        status = kkt_kernel_parse(kkt_args_get(args, "--kernel"), &kernel, err);
    if (status == KKT_OK && kkt_args_has(args, "--objective"))
        status = kkt_objective_parse(kkt_args_get(args, "--objective"), &objective, err);
    if (status == KKT_OK)
        status = kkt_db_open(path != NULL ? path : "kkttune.db", KKT_DB_READ, &db, err);
    if (status == KKT_OK && !kkt_args_has(args, "--device"))
        status = stored_device(db, arch, &device, err);
    if (status == KKT_OK)
        status =
            kkt_view_make_by(db, present(arena), arch, device, kernel != NULL ? kernel->name : NULL,
                             objective, arena, &view, err);
    if (status == KKT_OK && kkt_args_has(args, "--pareto"))
        kkt_view_add_pareto(&view, arena);
    if (root != NULL) {
        kkt_json_add_string(root, "schema", schema);
        w.files = kkt_json_add_array(root, "files");
    }
    if (status == KKT_OK)
        status = write_types(args, &view, arena, names, count, &w, err);
    if (status == KKT_OK && root != NULL) {
        kkt_print_json(root);
        root = NULL;
    }
    kkt_json_close(root);
    kkt_db_close(db);
    kkt_arena_close(arena);
    return status;
}

#define OUT_OPTIONS                                                                                \
    KKT_OPTION_ARCH, KKT_OPTION_DEVICE, KKT_OPTION_DB, KKT_OPTION_JSON,                            \
        {"--out", "DIR", "folder of the files; default kkttune-out"},                              \
        {"--objective", "time|energy|error", "what makes a result the best; default time"},        \
        {"--pareto", NULL, "list what no other result beats in time, energy and error at once"}, { \
        "--kernel", "KERNEL", "one kernel; default: all"                                           \
    }

static const kkt_option export_options[] = {
    OUT_OPTIONS,
    {"--format", "NAME", "json, header or dispatch; default: all three"},
};

static kkt_status run_export(const kkt_args *args, kkt_error *err) {
    static const char *const all[] = {"json", "header", "dispatch"};
    const char *one = kkt_args_get(args, "--format");
    return one != NULL
               ? export_types(args, &one, 1, "kkttune.files/1", err)
               : export_types(args, all, sizeof all / sizeof all[0], "kkttune.files/1", err);
}

const kkt_command kkt_cmd_export = {
    .name = "export",
    .operands = "",
    .summary = "write the best configurations as JSON and as a C header",
    .details = "Reads the database alone: the same database gives the same bytes.",
    .options = export_options,
    .option_count = sizeof export_options / sizeof export_options[0],
    .run = run_export,
};

static const kkt_option report_options[] = {
    OUT_OPTIONS,
    {"--format", "NAME", "html or markdown; default: both"},
};

static kkt_status run_report(const kkt_args *args, kkt_error *err) {
    static const char *const all[] = {"html", "markdown"};
    const char *one = kkt_args_get(args, "--format");
    return one != NULL
               ? export_types(args, &one, 1, "kkttune.files/1", err)
               : export_types(args, all, sizeof all / sizeof all[0], "kkttune.files/1", err);
}

const kkt_command kkt_cmd_report = {
    .name = "report",
    .operands = "",
    .summary = "write the report on chunk sizes as HTML and Markdown",
    .details = "Reads the database alone.",
    .options = report_options,
    .option_count = sizeof report_options / sizeof report_options[0],
    .run = run_report,
};
