/* Prints, as CMake, which kernels and styles there are (kkttune_kernels, kkttune_styles_KERNEL),
 * the source files of each in the order its hash covers them (kkttune_sources_KERNEL_STYLE), and
 * that hash; the package installs the text, so that a build can tell whether a kernel was edited.
 */
#include <stdio.h>

#include "kernels/kernel.h"

/* Of others nothing is exported. */
static bool has_sources(const kkt_variant *variant) {
    return variant->sources != NULL && variant->sources[0] != NULL && variant->library == NULL;
}

static void print_variant(const kkt_kernel *kernel, const kkt_variant *variant) {
    const char *style = kkt_style_get(variant->style)->name;
    char hash[65];
    kkt_variant_hash(variant, hash);
    printf("set(kkttune_hash_%s_%s %s)\n", kernel->name, style, hash);
    printf("set(kkttune_sources_%s_%s", kernel->name, style);
    for (const char *const *source = variant->sources; *source != NULL; source++)
        printf("\n  %s", *source);
    printf(")\n");
}

static void print_kernel(const kkt_kernel *kernel) {
    printf("list(APPEND kkttune_kernels %s)\n", kernel->name);
    printf("set(kkttune_styles_%s", kernel->name);
    for (size_t v = 0; v < kernel->variant_count; v++)
        if (has_sources(kernel->variants[v]))
            printf(" %s", kkt_style_get(kernel->variants[v]->style)->name);
    printf(")\n");
    for (size_t v = 0; v < kernel->variant_count; v++)
        if (has_sources(kernel->variants[v]))
            print_variant(kernel, kernel->variants[v]);
}

int main(void) {
    size_t count;
    const kkt_kernel *const *kernels = kkt_kernels(&count);
    printf("set(kkttune_kernels)\n");
    for (size_t k = 0; k < count; k++)
        print_kernel(kernels[k]);
    return ferror(stdout) != 0 || fflush(stdout) != 0;
}
