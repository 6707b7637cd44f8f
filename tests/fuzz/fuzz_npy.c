/* Any bytes as a .npy file: refused with a sentence, or an array whose parts agree. */
#include <stdlib.h>

#include "base/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    kkt_npy array = {0};
    kkt_error error = {0};
    if (kkt_npy_parse("fuzz", data, size, &array, &error) != KKT_OK) {
        if (error.message[0] == '\0')
            abort();
        return 0;
    }
    int64_t elements = 1;
    if (array.rank < 0 || array.rank > KKT_NPY_DIMS)
        abort();
    for (int i = 0; i < array.rank; i++)
        elements *= array.dims[i];
    if (elements != array.elements || (size_t)elements > size)
        abort();
    kkt_npy_free(&array);
    return 0;
}
