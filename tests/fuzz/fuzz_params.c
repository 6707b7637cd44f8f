/* Any text as a configuration: refused with a sentence and without effect, or its canonical text
 * gives the same values again. */
#include <stdlib.h>
#include <string.h>

#include "kernels/kernel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_table(const kkt_param_table *table, const char *text) {
    kkt_values defaults, values, again;
    kkt_error error = {0};
    kkt_params_defaults(table, &defaults);
    values = again = defaults;
    if (kkt_params_parse(table, text, &values, NULL, &error) != KKT_OK) {
        if (error.message[0] == '\0' || !kkt_values_equal(table, &values, &defaults))
            abort();
        return;
    }
    kkt_text canonical = {0};
    kkt_params_format(table, &values, &canonical);
    if (kkt_params_parse(table, kkt_text_get(&canonical), &again, NULL, &error) != KKT_OK ||
        !kkt_values_equal(table, &values, &again))
        abort();
    kkt_text_free(&canonical);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    if (text == NULL)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    size_t count;
    const kkt_kernel *const *kernels = kkt_kernels(&count);
    for (size_t k = 0; k < count; k++) {
        try_table(&kernels[k]->problem, text);
        for (size_t v = 0; v < kernels[k]->variant_count; v++)
            try_table(&kernels[k]->variants[v]->params, text);
    }
    free(text);
    return 0;
}
