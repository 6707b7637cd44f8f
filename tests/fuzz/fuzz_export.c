/* Any bytes as an export: refused with a sentence, or looked into and rendered in every format. */
#include <stdlib.h>

#include "reports/lookup.h"
#include "reports/report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    kkt_arena *arena = kkt_arena_open();
    kkt_view view;
    kkt_error error = {0};
    size_t count;
    if (kkt_view_parse((const char *)data, size, "fuzz", arena, &view, &error) != KKT_OK) {
        if (error.message[0] == '\0')
            abort();
        kkt_arena_close(arena);
        return 0;
    }
    const kkt_kernel *kernel = kkt_kernels(&count)[0];
    kkt_values problem;
    kkt_lookup found;
    kkt_params_defaults(&kernel->problem, &problem);
    if (kkt_lookup_find(&view, 1, kernel, &problem, 0, view.arch, view.device, arena, &found,
                        &error) != KKT_OK)
        abort();
    const kkt_report_type *const *types = kkt_reports(&count);
    for (size_t i = 0; i < count; i++) {
        kkt_text text = {0};
        if (types[i]->render(&view, &text, &error) != KKT_OK)
            abort();
        kkt_text_free(&text);
    }
    kkt_arena_close(arena);
    return 0;
}
