/* Exporters and reports: const descriptors, one format a file, listed once in report.c. */
#ifndef KKT_REPORTS_REPORT_H
#define KKT_REPORTS_REPORT_H

#include "base/text.h"
#include "reports/view.h"

typedef struct kkt_report_type {
    const char *name;        /* "json", "header", "markdown", "html" */
    const char *summary;     /* one line */
    const char *file_format; /* printf format of the file name with one %s, the arch and device
                                suffix: "kkttune_%s.json" */
    /* Appends the whole file to `out`. Holds no clock time, no path, no count of the run. */
    kkt_status (*render)(const kkt_view *view, kkt_text *out, kkt_error *err);
} kkt_report_type;

const kkt_report_type *const *kkt_reports(size_t *count);
kkt_status kkt_report_parse(const char *name, const kkt_report_type **out, kkt_error *err);

/* Renders all (or the named) types into `folder`; `suffix` is "sm90" or "sm90_h100". File names
 * are given to `wrote` one by one (may be NULL). Each file is replaced atomically. */
kkt_status kkt_report_write(const kkt_view *view, const char *folder, const char *suffix,
                            const kkt_report_type *only,
                            void (*wrote)(void *context, const char *path), void *context,
                            kkt_error *err);
/* An entry as JSON, by docs/formats.md; used by the export, `lookup` and the run's summary. */
struct kkt_json;
void kkt_entry_add_json(const kkt_entry *entry, struct kkt_json *array_or_parent, const char *key);
/* The view's baselines as an array; nothing where there are none. */
void kkt_baselines_add_json(const kkt_view *view, struct kkt_json *parent, const char *key);

#endif
