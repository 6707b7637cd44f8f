/* The list of kernel families of the test program: `faulty` alone. It stands in for
 * kernels/registry.c. */
#include <string.h>

#include "family/faulty.h"

static const kkt_kernel *const families[] = {&kkt_kernel_faulty};

const kkt_kernel *const *kkt_kernels(size_t *count) {
    *count = sizeof families / sizeof families[0];
    return families;
}

kkt_status kkt_kernel_parse(const char *name, const kkt_kernel **out, kkt_error *err) {
    if (strcmp(name, kkt_kernel_faulty.name) != 0)
        return kkt_fail(err, KKT_ERR_INPUT, 0, "unknown kernel '%.64s'; known kernels: faulty",
                        name);
    *out = &kkt_kernel_faulty;
    return KKT_OK;
}
