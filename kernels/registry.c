/* The one list of kernel families, in the order they are shown. Adding a kernel adds a line here;
 * docs/adding-a-kernel.md walks through it. */
#include <string.h>

#include "kernels/kernel.h"
#include "kernels/pipeline.h"

extern const kkt_kernel kkt_kernel_kkt_solve;
extern const kkt_kernel kkt_kernel_gdn_fwd;
extern const kkt_kernel kkt_kernel_gdn_fwd_t;
extern const kkt_kernel kkt_kernel_gdn_wu;
extern const kkt_kernel kkt_kernel_gdn_state;
extern const kkt_kernel kkt_kernel_gdn_output;
extern const kkt_kernel kkt_kernel_gemm;
extern const kkt_kernel kkt_kernel_gemv;

static const kkt_kernel *const families[] = {
    &kkt_kernel_kkt_solve, &kkt_kernel_gdn_fwd,    &kkt_kernel_gdn_fwd_t, &kkt_kernel_gdn_wu,
    &kkt_kernel_gdn_state, &kkt_kernel_gdn_output, &kkt_kernel_gemm,      &kkt_kernel_gemv,
};

const kkt_kernel *const *kkt_kernels(size_t *count) {
    *count = sizeof families / sizeof families[0];
    return families;
}

kkt_status kkt_kernel_parse(const char *name, const kkt_kernel **out, kkt_error *err) {
    size_t count = 0;
    const kkt_kernel *const *kernels = kkt_kernels(&count);
    const kkt_pipeline *pipeline = kkt_pipeline_find(name);
    kkt_text known = {0};
    for (size_t i = 0; i < count; i++) {
        if (strcmp(kernels[i]->name, name) == 0) {
            kkt_text_free(&known);
            *out = kernels[i];
            return KKT_OK;
        }
        kkt_text_printf(&known, "%s%s", i ? ", " : "", kernels[i]->name);
    }
    if (pipeline) {
        kkt_text_free(&known);
        for (size_t m = 0; pipeline->members[m]; m++) {
            kkt_text_printf(&known, "%s%s", m ? ", " : "", pipeline->members[m]);
        }
    }
    kkt_status status = kkt_fail(err, KKT_ERR_INPUT, 0,
                                 pipeline ? "'%.64s' is a pipeline, not a kernel; its kernels: %s"
                                          : "unknown kernel '%.64s'; known kernels: %s",
                                 name, kkt_text_get(&known));
    kkt_text_free(&known);
    return status;
}
