#include "reports/report.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "reports/export/exporters.h"

static const kkt_report_type *const types[] = {
    &kkt_report_json, &kkt_report_header,   &kkt_report_dispatch,
    &kkt_report_html, &kkt_report_markdown,
};

const kkt_report_type *const *kkt_reports(size_t *count) {
    *count = sizeof types / sizeof types[0];
    return types;
}

kkt_status kkt_report_parse(const char *name, const kkt_report_type **out, kkt_error *err) {
    kkt_text known = {0};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(types[i]->name, name) == 0) {
            kkt_text_free(&known);
            *out = types[i];
            return KKT_OK;
        }
        kkt_text_printf(&known, "%s%s", i == 0 ? "" : ", ", types[i]->name);
    }
    kkt_status status = kkt_fail(err, KKT_ERR_INPUT, 0, "unknown format '%.60s'; known: %s", name,
                                 kkt_text_get(&known));
    kkt_text_free(&known);
    return status;
}

/* The file's name: `format` with its one "%s" replaced. */
static void add_file_name(kkt_text *out, const char *format, const char *suffix) {
    const char *hole = strstr(format, "%s");
    if (hole == NULL) {
        kkt_text_add(out, format);
        return;
    }
    kkt_text_add_bytes(out, format, (size_t)(hole - format));
    kkt_text_add(out, suffix);
    kkt_text_add(out, hole + 2);
}

static kkt_status write_one(const kkt_report_type *type, const kkt_view *view, const char *folder,
                            const char *suffix, void (*wrote)(void *context, const char *path),
                            void *context, kkt_error *err) {
    kkt_text text = {0}, name = {0};
    char *path = NULL;
    kkt_status status = type->render(view, &text, err);
    if (status == KKT_OK) {
        add_file_name(&name, type->file_format, suffix);
        path = kkt_path_join(folder, kkt_text_get(&name));
        status = kkt_file_write(path, kkt_text_get(&text), text.length, err);
    }
    if (status == KKT_OK && wrote != NULL)
        wrote(context, path);
    free(path);
    kkt_text_free(&name);
    kkt_text_free(&text);
    return status;
}

kkt_status kkt_report_write(const kkt_view *view, const char *folder, const char *suffix,
                            const kkt_report_type *only,
                            void (*wrote)(void *context, const char *path), void *context,
                            kkt_error *err) {
    kkt_status status = kkt_folder_make(folder, err);
    for (size_t i = 0; i < sizeof types / sizeof types[0] && status == KKT_OK; i++)
        if (only == NULL || only == types[i])
            status = write_one(types[i], view, folder, suffix, wrote, context, err);
    return status;
}
