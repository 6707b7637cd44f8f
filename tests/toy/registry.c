/* The list of kernel families of the test programs; it stands in for kernels/registry.c. */
#include <string.h>

#include "kernels/kernel.h"

extern const kkt_kernel kkt_kernel_row_sum, kkt_kernel_clash;

static const kkt_kernel *const families[] = {&kkt_kernel_row_sum, &kkt_kernel_clash};

const kkt_kernel *const *kkt_kernels(size_t *count) {
    *count = sizeof families / sizeof families[0];
    return families;
}

kkt_status kkt_kernel_parse(const char *name, const kkt_kernel **out, kkt_error *err) {
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        if (strcmp(name, families[i]->name) == 0) {
            *out = families[i];
            return KKT_OK;
        }
    }
    return kkt_fail(err, KKT_ERR_INPUT, 0, "unknown kernel '%.64s'; known kernels: row_sum, clash",
                    name);
}
