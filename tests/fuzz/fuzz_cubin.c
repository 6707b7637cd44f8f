/* Any bytes as a cubin: refused with a sentence, or figures within what hardware can have. */
#include <stdlib.h>

#include "tuner/compile/compile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    kkt_cubin_info info;
    kkt_error error = {0};
    if (kkt_cubin_read(data, size, &info, &error) != KKT_OK) {
        if (error.message[0] == '\0')
            abort();
        return 0;
    }
    if (info.registers < 1 || info.registers > 255 || info.max_threads < 0 ||
        info.max_threads > 1024 || info.static_smem_bytes < 0 || info.barriers < 0)
        abort();
    return 0;
}
