/* Any bytes as the body of a cache entry whose checksum is right, and as a whole entry. */
#include <stdlib.h>

#include "base/sha256.h"
#include "tuner/compile/cache.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_entry(const void *bytes, size_t size) {
    kkt_compile_result result;
    if (!kkt_cache_entry_parse(bytes, size, "key", &result))
        return;
    if (!result.ok || result.cubin_size == 0 || result.log == NULL ||
        result.info.cubin_bytes != (int64_t)result.cubin_size)
        abort();
    kkt_compile_result_free(&result);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char hash[65];
    kkt_packer entry = {0};
    kkt_sha256_of(data, size, hash);
    kkt_pack_bytes(&entry, "kktcub01", 8);
    kkt_pack_bytes(&entry, hash, 64);
    kkt_pack_bytes(&entry, data, size);
    try_entry(entry.data, entry.size);
    kkt_packer_free(&entry);
    try_entry(data, size);
    return 0;
}
