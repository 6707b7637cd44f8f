#include "cli/header_print.h"

#include "kernels/kernel.h"
#include "reports/header_rows.h"

void kkt_header_print_left_out(const kkt_view *view, const kkt_pipeline *only, FILE *out) {
    size_t count;
    const kkt_kernel *const *kernels = kkt_kernels(&count);
    for (size_t k = 0; k < count; k++) {
        const kkt_entry *standing = kkt_header_standing(view, kernels[k]->name);
        for (size_t v = 0; v < kernels[k]->variant_count && standing != NULL; v++) {
            const char *style = kkt_style_get(kernels[k]->variants[v]->style)->name;
            const size_t rows = only == NULL || kkt_pipeline_has(only, kernels[k]->name)
                                    ? kkt_header_left_out(view, kernels[k]->name, style)
                                    : 0;
            if (rows > 0)
                fprintf(
                    out,
                    "%s: not in the header, whose rows are all %s: %zu row%s of style %s, "
                    "which is faster or alone there; the JSON export, 'kkttune lookup' and the C "
                    "library have %s\n",
                    kernels[k]->name, standing->style, rows, rows == 1 ? "" : "s", style,
                    rows == 1 ? "it" : "them");
        }
    }
}
