/* Any text as the options of the fake backend: refused with a sentence that lists what there is, or
 * a backend that can be asked about itself. */
#include <stdlib.h>
#include <string.h>

#include "tuner/measure/backend.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const kkt_backend_type *fake = kkt_backend_find("fake");
    kkt_error error = {0};
    kkt_backend *backend = NULL;
    char *text = malloc(size + 1);
    if (text == NULL || fake == NULL)
        abort();
    memcpy(text, data, size);
    text[size] = '\0';
    kkt_backend_options options = {.gpu = -1, .fake = text};
    kkt_status status = fake->open(&options, &backend, &error);
    if (status == KKT_OK ? fake->info(backend)->note[0] == '\0'
                         : backend != NULL || status != KKT_ERR_INPUT || error.message[0] == '\0')
        abort();
    if (status == KKT_OK)
        fake->close(backend);
    free(text);
    return 0;
}
