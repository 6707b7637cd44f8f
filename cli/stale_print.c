#include "cli/stale_print.h"

#include <string.h>

static bool concerns(const kkt_entry *row, const char *kernel, const kkt_pipeline *pipeline) {
    if (kernel != NULL)
        return strcmp(row->kernel, kernel) == 0;
    return pipeline == NULL || kkt_pipeline_has(pipeline, row->kernel);
}

size_t kkt_stale_times(const kkt_view *view, const char *kernel, const kkt_pipeline *pipeline,
                       const char **why) {
    size_t count = 0;
    if (why != NULL)
        *why = NULL;
    for (size_t i = 0; i < view->row_count; i++) {
        const kkt_entry *row = &view->rows[i];
        if (!kkt_entry_measured(row) || row->stale_reason == NULL ||
            !concerns(row, kernel, pipeline))
            continue;
        if (count++ == 0 && why != NULL)
            *why = row->stale_reason;
    }
    return count;
}

void kkt_stale_print(const kkt_view *view, const char *kernel, const kkt_pipeline *pipeline,
                     FILE *out) {
    const char *why;
    const size_t count = kkt_stale_times(view, kernel, pipeline, &why);
    if (count > 0)
        fprintf(out,
                "%zu stored time%s stale (%s): fresh results come first, however slow; 'kkttune "
                "tune' with --revalidate and their --problem measures %s again\n",
                count, count == 1 ? " is" : "s are", why, count == 1 ? "it" : "them");
}
