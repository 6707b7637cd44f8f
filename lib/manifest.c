/* Prints, as CMake, the source files of each kernel in the order its hash covers them; the package
 * installs the text, so that a build can tell whether a kernel was edited. */
#include <stdio.h>

#include "kernels/kernel.h"

int main(void) {
    size_t count;
    const kkt_kernel *const *kernels = kkt_kernels(&count);
    for (size_t k = 0; k < count; k++) {
        for (size_t v = 0; v < kernels[k]->variant_count; v++) {
            const kkt_variant *variant = kernels[k]->variants[v];
            if (variant->sources == NULL || variant->sources[0] == NULL || variant->library != NULL)
                continue; /* or nothing of it is exported */
            char hash[65];
            kkt_variant_hash(variant, hash);
            printf("set(kkttune_hash_%s_%s %s)\n", kernels[k]->name,
                   kkt_style_get(variant->style)->name, hash);
            printf("set(kkttune_sources_%s_%s", kernels[k]->name,
                   kkt_style_get(variant->style)->name);
            for (const char *const *source = variant->sources; *source != NULL; source++)
                printf("\n  %s", *source);
            printf(")\n");
        }
    }
    return ferror(stdout) != 0 || fflush(stdout) != 0;
}
