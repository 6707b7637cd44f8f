/* Any bytes as JSON: refused with a sentence, or printed and parsed again to the same text. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    kkt_json *root = NULL, *again = NULL;
    kkt_error error = {0};
    if (kkt_json_parse((const char *)data, size, "fuzz", &root, &error) != KKT_OK) {
        if (error.message[0] == '\0')
            abort();
        return 0;
    }
    char *text = kkt_json_print(root, false);
    if (kkt_json_parse(text, strlen(text), "fuzz", &again, &error) != KKT_OK)
        abort();
    char *same = kkt_json_print(again, false);
    if (strcmp(text, same) != 0)
        abort();
    free(text);
    free(same);
    kkt_json_close(root);
    kkt_json_close(again);
    return 0;
}
